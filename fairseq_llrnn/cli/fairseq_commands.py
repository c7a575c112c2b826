"""`llrnn train`, `validate`, `eval-lm`, `generate`, `interactive`: fairseq's commands with defaults for our models.

plugin/commands.py adds the defaults to the arguments, and fairseq parses all of them. So every option of fairseq works
here. The options listed here are only for help.
"""

import argparse
import os
from dataclasses import dataclass

import fairseq_llrnn
from fairseq_llrnn.cli.model_options import need_fairseq

# metavar, what it does
OPTIONS = {
    "--path": ("FILE", "checkpoint; it also sets the task, the prior and the form of the text; separate several by :"),
    "--prior": ("PRIOR", "folder of `llrnn prior` (default: that of the checkpoint; in training DATA/prior)"),
    "--arch": ("NAME", "network (default: by the task; llrnn_lm_small for a language model of a small text)"),
    "--save-dir": ("DIR", "folder of the checkpoints; training resumes from its last one (default: checkpoints)"),
    "--max-epoch": ("N", "most epochs (default: 30, small texts 60); --patience (3, small texts 5) may end it earlier"),
    "--max-tokens": ("N", "tokens in a batch (default: 2048 in training and validation)"),
    "--optimizer": ("NAME", "default: adam, with --lr 0.002 (small texts 0.004) --clip-norm 1.0"),
    "--lr": ("X", "learning rate"),
    "--dropout": ("P", "dropout probability"),
    "--valid-subset": ("NAME", "text to score (default: valid)"),
    "--gen-subset": ("NAME", "text to read (default: test)"),
    "--beam": ("N", "beam size (default: 5; for a language model `llrnn generate` samples one sentence)"),
    "--nbest": ("N", "hypotheses to print (default: 1)"),
    "--max-len-b": ("N", "maximum length of a hypothesis in words (default: 200)"),
    "--prefix-size": ("N", "words of each line that begin its hypothesis (0: a language model samples sentences)"),
    "--input": ("FILE", "file to read (default: stdin)"),
}
CONSTRAINTS = (
    "a grammar or regular expression in the prior of the training (llrnn prior --background automaton:FILE), required "
    "terms after a tab in each line (llrnn prior --evidence terms); see the guides grammars and copying-and-terminology"
)


@dataclass(frozen=True)
class FairseqCommand:
    """A command of fairseq as a sub-command of `llrnn`."""

    NAME: str
    HELP: str
    EXAMPLES: tuple[str, ...]
    options: tuple[str, ...]  # of OPTIONS

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        data = parser.add_argument_group("data and model")
        data.add_argument("data", metavar="DATA", help="folder of fairseq-preprocess")
        for name in self.options:
            metavar, text = OPTIONS[name]
            data.add_argument(name, metavar=metavar, help=text)
        data.add_argument("--cpu", action="store_true", help="use no GPU")
        if "--beam" in self.options:
            parser.add_argument_group("constraints", CONSTRAINTS)
        output = parser.add_argument_group("all other options of fairseq work, too")
        output.add_argument("-v", action="store_true", help="print all messages of fairseq")
        output.add_argument("--help-all", action="store_true", help="show all of fairseq's options")

    def run(self, args: argparse.Namespace) -> int:
        has_path = any(word.partition("=")[0] in ("--path", "--help-all") for word in args.arguments)
        if self.NAME == "eval-lm" and not has_path:
            from fairseq_llrnn.cli import eval_prior

            return eval_prior.run(args.arguments)
        need_fairseq()
        from fairseq_llrnn.plugin.commands import run

        return run(self.NAME, args.arguments, os.path.abspath(fairseq_llrnn.__path__[0]))


_TRAINED = "--path checkpoints/checkpoint_best.pt"
_SEARCH = ("--path", "--prior", "--beam", "--nbest", "--max-len-b")
TRAIN = FairseqCommand(
    "train",
    "train a language model, a translation model or a classifier, depending on the data",
    ("llrnn train data-bin --prior data-bin/prior --max-epoch 30 --save-dir another",),
    ("--prior", "--arch", "--save-dir", "--max-epoch", "--max-tokens", "--optimizer", "--lr", "--dropout"),
)
VALIDATE = FairseqCommand(
    "validate",
    "compute the validation loss of a model on a text: loss, perplexity, and the loss by kind of word",
    (f"llrnn validate data-bin {_TRAINED} --valid-subset test",),
    ("--path", "--prior", "--valid-subset", "--max-tokens"),
)
EVAL_LM = FairseqCommand(
    "eval-lm",
    "compute the perplexity of a language model, or without --path of the background of a prior",
    (f"llrnn eval-lm data-bin {_TRAINED} --gen-subset test", "llrnn eval-lm data-bin --prior data-bin/prior"),
    ("--path", "--prior", "--gen-subset", "--max-tokens"),
)
GENERATE = FairseqCommand(
    "generate",
    "translate a text of the data folder; with a language model, sample sentences or continue those of the text",
    (f"llrnn generate data-bin {_TRAINED} --gen-subset test --prefix-size 2 --max-len-b 20",),
    (*_SEARCH, "--gen-subset", "--prefix-size"),
)
INTERACTIVE = FairseqCommand(
    "interactive",
    "translate lines from stdin, or continue them with a language model",
    (f'echo "le" | llrnn interactive data-bin {_TRAINED} --beam 5 --max-len-b 20',),
    (*_SEARCH, "--input"),
)
