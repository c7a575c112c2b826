"""Defaults of the `llrnn` commands for each task (commands.py). Systems add their tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    """Defaults for the models of a task.

    Attributes:
        arch: default --arch.
        training: default options of a training, each with the options that replace it.
        recorded: task options that every command takes from the checkpoint.
        refused: commands that do not support the model, and their replacements.
        next: command to type after training.
        of_setting: setting that only priors for this task have.
        search: default options of `llrnn generate`, in the form of `training`.
        evaluation: default options of `llrnn eval-lm`, in the form of `training`.
        presets: options of `llrnn train --preset NAME` by name, in the form of `training`.
    """

    arch: str
    training: tuple[tuple[str, ...], ...]
    recorded: tuple[str, ...]
    refused: dict[str, str]
    next: str
    of_setting: str | None = None
    search: tuple[tuple[str, ...], ...] = ()
    evaluation: tuple[tuple[str, ...], ...] = ()
    presets: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


OF_BEAMS = ("--constraints", "--diverse-beam-groups", "--diversity-rate", "--match-source-len")  # exclude sampling

# for fewer than SMALL_TEXT words of training text (docs/results/small-texts.md)
SMALL = (
    ("--arch llrnn_lm_small", "-a"),
    ("--max-tokens 1024", "--batch-size", "--max-sentences"),
    ("--lr-scheduler reduce_lr_on_plateau --lr-shrink 0.4 --lr-patience 0",),
    ("--max-epoch 60",),
    ("--patience 5",),
)
SMALL_TEXT = 100_000

KINDS = {
    "llrnn_language_modeling": Kind(
        "llrnn_lm",
        (("--sample-break-mode eos --tokens-per-sample 512",),),
        ("sample_break_mode", "tokens_per_sample"),
        {},
        "llrnn eval-lm {data} --path {path} --gen-subset {subset}",
        search=(("--sampling --beam 1", "--prefix-size", "--beam", "--nbest", *OF_BEAMS), ("--sample-break-mode eos",)),
        evaluation=(("--sample-break-mode eos",),),
        presets={"small": SMALL},
    ),
    "llrnn_translation": Kind(
        "llrnn_lstm",
        (),
        ("source_lang", "target_lang", "max_slots"),
        {"eval-lm": "llrnn validate"},
        "llrnn generate {data} --path {path} --gen-subset {subset} --max-len-b 50 > translations.txt",
    ),
}
