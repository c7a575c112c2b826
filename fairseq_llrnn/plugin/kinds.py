"""Defaults of the `llrnn` commands for each task (commands.py). Systems add their tasks."""

from dataclasses import dataclass

from fairseq_llrnn import defaults


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
        small: options of a training with fewer than SMALL_TEXT words, in the form of `training`.
    """

    arch: str
    training: tuple[tuple[str, ...], ...]
    recorded: tuple[str, ...]
    refused: dict[str, str]
    next: str
    of_setting: str | None = None
    search: tuple[tuple[str, ...], ...] = ()
    evaluation: tuple[tuple[str, ...], ...] = ()
    small: tuple[tuple[str, ...], ...] = ()


OF_BEAMS = ("--constraints", "--diverse-beam-groups", "--diversity-rate", "--match-source-len")  # exclude sampling

LIMITS = ("--max-update", "--stop-time-hours", "--stop-min-lr")  # of a training, instead of those by epochs
SMALL = (  # docs/results/small-texts.md
    (f"--arch {defaults.SMALL_ARCH}", "-a"),
    (f"--max-tokens {defaults.SMALL_MAX_TOKENS}", "--batch-size", "--max-sentences"),
    (f"{defaults.FALLING_RATE} {defaults.RATE_PATIENCE}",),
    ("--max-epoch 60", "--patience", *LIMITS),
    (f"--patience {defaults.SMALL_PATIENCE}", *LIMITS),
    ("--lr 0.004", "--optimizer"),
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
        small=SMALL,
    ),
    "llrnn_translation": Kind(
        "llrnn_lstm",
        (),
        ("source_lang", "target_lang", "max_slots"),
        {"eval-lm": "llrnn validate"},
        "llrnn generate {data} --path {path} --gen-subset {subset} --max-len-b 50 > translations.txt",
    ),
}
