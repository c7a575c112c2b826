"""What goes for the models of each task of ours, in `llrnn train` and its sisters (commands.py); systems add theirs."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kind:
    """What goes for the models of a task.

    Attributes:
        arch: of a training that names none.
        training: what is added to the options of a training, then the options that keep it out, beside its own first.
        recorded: options of the task that every command needs as training had them.
        refused: commands that cannot take such a model, and what can.
        next: what to type after training.
        of_setting: a setting that priors for this task alone have.
        search: what is added to `llrnn generate`, in the form of `training`.
        presets: options that `llrnn train --preset NAME` adds, by name, in the form of `training`.
    """

    arch: str
    training: tuple[tuple[str, ...], ...]
    recorded: tuple[str, ...]
    refused: dict[str, str]
    next: str
    of_setting: str | None = None
    search: tuple[tuple[str, ...], ...] = ()
    presets: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


OF_BEAMS = ("--constraints", "--diverse-beam-groups", "--diversity-rate", "--match-source-len")  # no sampling with them

# For fewer words of training text than SMALL_TEXT (docs/results/small-texts.md). The network is an architecture.
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
        search=(
            ("--sampling --beam 1", "--prefix-size", "--beam", "--nbest", *OF_BEAMS),
            ("--sample-break-mode eos",),
        ),
        presets={"small": SMALL},
    ),
    "llrnn_translation": Kind(
        "llrnn_lstm",
        (),
        ("source_lang", "target_lang", "max_slots", "evidence_once"),
        {"eval-lm": "llrnn validate"},
        "llrnn generate {data} --path {path} --gen-subset {subset} --max-len-b 50 > translations.txt",
    ),
}
