"""`llrnn mrf train`: a Markov random field of words from a text, or of words and tags from a treebank."""

import argparse
import sys
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.tables import note
from fairseq_llrnn.errors import OptionError, check_unused_options

if TYPE_CHECKING:
    from fairseq_llrnn.systems.markov_field.learning import Progress

NAME = "mrf train"
HELP = "train a Markov random field: of words from a text, or of words and tags from a treebank"
EXAMPLES = (
    "llrnn mrf train --text train.txt --words 2000 --out field",
    "llrnn mrf train --text train.txt --prior data-bin/prior --order 1 --out composed",
    "llrnn mrf train --conllu train.conllu --order 1 --near 1 --out tagger",
)
OF_TEXT = ("valid", "form", "width", "words", "prior", "objective", "method", "seed", "memory")
OF_TREEBANK = ("near", "rare")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    texts = parser.add_argument_group("what it is trained on")
    texts.add_argument("--text", nargs="+", metavar="FILE", help="a tokenised text, a sentence a line (.gz too)")
    texts.add_argument("--conllu", nargs="+", metavar="FILE", help="treebanks, whose tags (UPOS) are learned")
    texts.add_argument(
        "--valid", nargs="+", metavar="FILE",
        help="of --text: another text; training stops when it gets worse, and the best step is kept",
    )  # fmt: skip
    model = parser.add_argument_group("the field")
    model.add_argument(
        "--order", type=int, default=2, metavar="K", help="how many neighbours each side has an edge to (default: 2)"
    )
    model.add_argument(
        "--form", choices=("explicit", "urw", "uw", "uvw"),
        help="of --text: potentials of pairs, explicit or of low rank: U R W, U W, or U V + V W (default: uw)",
    )  # fmt: skip
    model.add_argument("--width", type=int, metavar="D", help="of --text: numbers in a row of U, V, W (default: 30)")
    model.add_argument(
        "--words", type=int, metavar="V", help="of --text: the most frequent words; others are <unk> (default: 2000)"
    )
    model.add_argument(
        "--prior", metavar="DIR",
        help="of --text: rows are composed of the features of this prior, and its words and background are the field's",
    )  # fmt: skip
    model.add_argument(
        "--near", type=int, metavar="M", help="of --conllu: words that each tag has an edge to, 1 or 3 (default: 1)"
    )
    model.add_argument(
        "--rare", type=int, metavar="N",
        help="of --conllu: words that come less often have no feature of their own, only their spelling (default: 3)",
    )  # fmt: skip
    how = parser.add_argument_group("training")
    how.add_argument(
        "--objective", choices=("bound", "pseudo-likelihood"),
        help="of --text: the bound on the likelihood, or p(word | neighbours) by stochastic gradients (default: bound)",
    )  # fmt: skip
    how.add_argument(
        "--method", choices=("both", "nested"),
        help="of --text: climb in potentials and dual variables at once, or tighten the bound before each step "
        "(default: both)",
    )  # fmt: skip
    how.add_argument(
        "--penalty", type=float, metavar="P", help="P/2 times the sum of squares, in nats a token (default: 0; of "
        "--conllu: 1e-6)",
    )  # fmt: skip
    how.add_argument(
        "--iterations", type=int, default=200, metavar="N",
        help="steps of L-BFGS at most, or epochs of pseudo-likelihood (default: 200)",
    )  # fmt: skip
    how.add_argument("--seed", type=int, metavar="N", help="of --text: of the first rows (default: 1)")
    how.add_argument(
        "--memory", type=float, metavar="GIB",
        help="of --text: what exponentials of all pairs may take; where it is too little, they are made in blocks, "
        "again and again (default: 2)",
    )  # fmt: skip
    result = parser.add_argument_group("the result")
    result.add_argument(
        "--out", required=True, metavar="DIR",
        help="its folder; where a training of the same text was stopped, it goes on from its last minute",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if (args.text is None) == (args.conllu is None):
        content = "neither" if args.text is None else "both"
        raise OptionError(f"expected --text for a field of words, or --conllu for a tagger, found {content}")
    wrong = OF_TREEBANK if args.conllu is None else OF_TEXT
    for name in wrong:
        if getattr(args, name) is not None:
            needed = "--conllu" if args.conllu is None else "--text"
            raise OptionError(f"--{name}: it needs {needed}; add that, or leave it out")
    return _train_field(args) if args.conllu is None else _train_tagger(args)


def _train_field(args: argparse.Namespace) -> int:
    from fairseq_llrnn.systems.markov_field.training import FieldOptions, train

    if args.prior is not None and args.words is not None:
        raise OptionError("--words: found --prior beside it, which has words of its own; leave one of them out")
    if args.memory is not None and not 0 < args.memory < 1e6:
        raise OptionError(f"--memory {args.memory:g}: expected a number of GiB above 0")
    pseudo = args.objective == "pseudo-likelihood"
    if args.form == "explicit":
        seed = None if pseudo else args.seed  # which also says the order of its windows
        check_unused_options(
            {"width": args.width, "seed": seed}, "it is of rows, which --form explicit has not; leave it out"
        )
    if pseudo:
        check_unused_options({"method": args.method}, "it belongs to --objective bound; leave it out")
    values = {name: getattr(args, name) for name in (*OF_TEXT, "text", "order", "penalty", "iterations")}
    values["memory"] = None if args.memory is None else int(args.memory * 2**30)
    options = FieldOptions(**{name: value for name, value in values.items() if value is not None})
    _, notes = train(options, args.out, say)
    for text in notes:
        note(text)
    print(f"written to {args.out}")
    return 0


def _train_tagger(args: argparse.Namespace) -> int:
    from fairseq_llrnn.systems.markov_field.tagger_training import TaggerOptions, train_tagger

    values = {name: getattr(args, name) for name in (*OF_TREEBANK, "conllu", "order", "penalty", "iterations")}
    options = TaggerOptions(**{name: value for name, value in values.items() if value is not None})
    train_tagger(options, args.out, say)
    print(f"written to {args.out}")
    return 0


def say(progress: "Progress") -> None:
    """A line on stderr after each step."""
    valid = "" if progress.valid is None else f", valid {progress.valid:.4f}{'*' if progress.best else ''}"
    print(
        f"{progress.iteration:>4}  {progress.seconds:8.1f} s  {progress.bound:.5f} nats a token{valid}", file=sys.stderr
    )
