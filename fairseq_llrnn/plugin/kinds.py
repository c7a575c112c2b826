"""What goes for the models of each task of ours, in `llrnn train` and its sisters (commands.py); systems add theirs."""

from dataclasses import dataclass


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
    """

    arch: str
    training: tuple[tuple[str, ...], ...]
    recorded: tuple[str, ...]
    refused: dict[str, str]
    next: str
    of_setting: str | None = None
    search: tuple[tuple[str, ...], ...] = ()


OF_BEAMS = ("--constraints", "--diverse-beam-groups", "--diversity-rate", "--match-source-len")  # no sampling with them

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
    ),
    "llrnn_translation": Kind(
        "llrnn_lstm",
        (),
        ("source_lang", "target_lang", "max_slots", "evidence_once"),
        {"eval-lm": "llrnn validate"},
        "llrnn generate {data} --path {path} --gen-subset {subset} --max-len-b 50 > translations.txt",
    ),
}
