"""`llrnn train`, `validate`, `eval-lm`, `generate`, `interactive`: fairseq's commands with what our models need.

One table. plugin/commands.py says what is added to the arguments; fairseq reads all of them, so that every option of
its own works here. Those listed here are for help and completion.
"""

import argparse
import os
from dataclasses import dataclass

import fairseq_llrnn
from fairseq_llrnn.cli.model_options import need_fairseq

# metavar, what it does
OPTIONS = {
    "--path": ("FILE", "the checkpoint; it says the task, how text is read, and the prior; several with colons"),
    "--prior": ("PRIOR", "folder that `llrnn prior` wrote (default: that of the checkpoint; in training DATA/prior)"),
    "--preset": ("NAME", "options by the size of the text: small, a language model of fewer than 100,000 words"),
    "--arch": ("NAME", "the network (default: by the task, as llrnn_lm and llrnn_lstm)"),
    "--save-dir": ("DIR", "where checkpoints go; training goes on from those in it (default: checkpoints)"),
    "--max-epoch": ("N", "passes over the text; with no limit of this kind: 30, or 3 without progress (--patience)"),
    "--max-tokens": ("N", "tokens in a batch (default: 2048 in training and validation)"),
    "--optimizer": ("NAME", "default: adam, with --lr 0.002 --clip-norm 1.0"),
    "--lr": ("X", "learning rate"),
    "--dropout": ("P", "share of the values of a layer that training leaves out"),
    "--valid-subset": ("NAME", "which text (default: valid)"),
    "--gen-subset": ("NAME", "which text (default: test)"),
    "--beam": ("N", "hypotheses that a search keeps (default: 5)"),
    "--nbest": ("N", "hypotheses that it prints (default: 1)"),
    "--max-len-b": ("N", "words of a hypothesis at most (default: 200)"),
    "--prefix-size": ("N", "words of the text that each hypothesis begins with (0: a language model draws sentences)"),
    "--input": ("FILE", "what is read (default: stdin)"),
}


@dataclass(frozen=True)
class FairseqCommand:
    """One of fairseq's commands as a sub-command of ours."""

    NAME: str
    HELP: str
    EXAMPLES: tuple[str, ...]
    options: tuple[str, ...]  # of OPTIONS

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        data = parser.add_argument_group("data and model")
        data.add_argument("data", metavar="DATA", help="folder that fairseq-preprocess made")
        for name in self.options:
            metavar, text = OPTIONS[name]
            data.add_argument(name, metavar=metavar, help=text)
        data.add_argument("--cpu", action="store_true", help="use no GPU")
        output = parser.add_argument_group("everything else that fairseq has is passed on to it")
        output.add_argument("-v", action="store_true", help="print all that fairseq prints")
        output.add_argument("--help-all", action="store_true", help="show all of fairseq's options")

    def run(self, args: argparse.Namespace) -> int:
        need_fairseq()
        from fairseq_llrnn.plugin.commands import run

        return run(self.NAME, args.arguments, os.path.abspath(fairseq_llrnn.__path__[0]))


_TRAINED = "--path checkpoints/checkpoint_best.pt"
_SEARCH = ("--path", "--prior", "--beam", "--nbest", "--max-len-b")
TRAIN = FairseqCommand(
    "train",
    "train a model: a language model, a translator, or a classifier, as the data is",
    ("llrnn train data-bin --prior data-bin/prior --max-epoch 30 --save-dir another",),
    ("--prior", "--preset", "--arch", "--save-dir", "--max-epoch", "--max-tokens", "--optimizer", "--lr", "--dropout"),
)
VALIDATE = FairseqCommand(
    "validate",
    "measure a model on a text as training does: loss, perplexity, and the loss by kind of word",
    (f"llrnn validate data-bin {_TRAINED} --valid-subset test",),
    ("--path", "--prior", "--valid-subset", "--max-tokens"),
)
EVAL_LM = FairseqCommand(
    "eval-lm",
    "measure the perplexity of a language model",
    (f"llrnn eval-lm data-bin {_TRAINED} --gen-subset test",),
    ("--path", "--prior", "--gen-subset", "--max-tokens"),
)
GENERATE = FairseqCommand(
    "generate",
    "translate a text of the data folder; with a language model, draw sentences or continue those of the text",
    (f"llrnn generate data-bin {_TRAINED} --gen-subset test --prefix-size 2 --max-len-b 20",),
    (*_SEARCH, "--gen-subset", "--prefix-size"),
)
INTERACTIVE = FairseqCommand(
    "interactive",
    "translate what is typed, or go on from it",
    (f'echo "le" | llrnn interactive data-bin {_TRAINED} --beam 5 --max-len-b 20',),
    (*_SEARCH, "--input"),
)
