"""`llrnn mrf train`: train a Markov random field, of words from a text, or of words and tags from a treebank."""

import argparse
import sys
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.tables import note
from fairseq_llrnn.errors import OptionError, check_unused_options

if TYPE_CHECKING:
    from llrnn_research.markov_field.learning import Progress

NAME = "mrf train"
HELP = "train a Markov random field: of words from a text, or of words and tags from a treebank"
EXAMPLES = (
    "llrnn mrf train --text train.txt --words 2000 --out field",
    "llrnn mrf train --text train.txt --prior data-bin/prior --order 1 --out composed",
    "llrnn mrf train --conllu train.conllu --out tagger",
)
OF_TEXT = ("valid", "form", "width", "words", "prior", "objective", "method", "seed", "memory")
OF_TREEBANK = ("near", "rare")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    texts = parser.add_argument_group("training data")
    texts.add_argument("--text", nargs="+", metavar="FILE", help="a tokenised text, a sentence a line (.gz too)")
    texts.add_argument("--conllu", nargs="+", metavar="FILE", help="treebanks with the tags (UPOS) to learn")
    texts.add_argument(
        "--valid", nargs="+", metavar="FILE",
        help="with --text: another text; training stops when its score falls, and keeps the best step",
    )  # fmt: skip
    model = parser.add_argument_group("the field")
    model.add_argument(
        "--order", type=int, metavar="K",
        help="number of neighbours on each side with an edge (default: 2, with --conllu 1)",
    )  # fmt: skip
    model.add_argument(
        "--form", choices=("explicit", "urw", "uw", "uvw"),
        help="with --text: potentials of pairs, explicit or of low rank: U R W, U W, or U V + V W (default: uw)",
    )  # fmt: skip
    model.add_argument("--width", type=int, metavar="D", help="with --text: width of a row of U, V, W (default: 30)")
    model.add_argument(
        "--words", type=int, metavar="V", help="with --text: most frequent words; others are <unk> (default: 2000)"
    )
    model.add_argument(
        "--prior", metavar="DIR",
        help="with --text: compose rows from the features of this prior, and use its words and background",
    )  # fmt: skip
    model.add_argument(
        "--near", type=int, metavar="M", help="with --conllu: words with an edge to each tag, 1 or 3 (default: 3)"
    )
    model.add_argument(
        "--rare", type=int, metavar="N",
        help="with --conllu: least count of a word with an indicator feature; others have spelling features only "
                "(default: 3)",
    )  # fmt: skip
    how = parser.add_argument_group("training")
    how.add_argument(
        "--objective", choices=("bound", "pseudo-likelihood"),
        help="with --text: the bound on the likelihood, or p(word | neighbours) by stochastic gradients (default: "
        "bound)",
    )  # fmt: skip
    how.add_argument(
        "--method", choices=("both", "nested"),
        help="with --text: optimise potentials and dual variables together, or tighten the bound before each step "
        "(default: both)",
    )  # fmt: skip
    how.add_argument(
        "--penalty", type=float, metavar="P", help="P/2 times the sum of squares, in nats a token (default: 0, with "
        "--conllu 1e-6)",
    )  # fmt: skip
    how.add_argument(
        "--iterations", type=int, default=200, metavar="N",
        help="maximal number of L-BFGS steps, or epochs of pseudo-likelihood (default: 200)",
    )  # fmt: skip
    how.add_argument("--seed", type=int, metavar="N", help="with --text: seed of the initial rows (default: 1)")
    how.add_argument(
        "--memory", type=float, metavar="GIB",
        help="with --text: memory for the exponentials of all pairs; if it is too small, they are recomputed in blocks "
        "(default: 2)",
    )  # fmt: skip
    result = parser.add_argument_group("the result")
    result.add_argument(
        "--out", required=True, metavar="DIR",
        help="folder of the field; an interrupted training of the same text resumes from its last checkpoint",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if (args.text is None) == (args.conllu is None):
        content = "neither" if args.text is None else "both"
        raise OptionError(f"expected --text for a field of words, or --conllu for a tagger, found {content}")
    wrong = OF_TREEBANK if args.conllu is None else OF_TEXT
    for name in wrong:
        if getattr(args, name) is not None:
            needed, given = ("--conllu", "--text") if args.conllu is None else ("--text", "--conllu")
            raise OptionError(f"--{name}: it needs {needed}; use {needed} instead of {given}, or remove --{name}")
    return _train_field(args) if args.conllu is None else _train_tagger(args)


def _train_field(args: argparse.Namespace) -> int:
    from llrnn_research.markov_field.training import FieldOptions, train

    if args.prior is not None and args.words is not None:
        raise OptionError("--words: not possible with --prior, which defines the words; leave one of them out")
    if args.memory is not None and not 0 < args.memory < 1e6:
        raise OptionError(f"--memory {args.memory:g}: expected a number of GiB above 0")
    pseudo = args.objective == "pseudo-likelihood"
    if args.form == "explicit":
        seed = None if pseudo else args.seed  # also determines the order of windows
        check_unused_options(
            {"width": args.width, "seed": seed}, "it is for rows, and --form explicit has none; leave it out"
        )
    if pseudo:
        check_unused_options({"method": args.method}, "it belongs to --objective bound; leave it out")
    values = {name: getattr(args, name) for name in (*OF_TEXT, "text", "order", "penalty", "iterations")}
    values["memory"] = None if args.memory is None else int(args.memory * 2**30)
    options = FieldOptions(**{name: value for name, value in values.items() if value is not None})
    _, notes = train(options, args.out, print_progress)
    for text in notes:
        note(text)
    print(f"written to {args.out}")
    return 0


def _train_tagger(args: argparse.Namespace) -> int:
    from llrnn_research.markov_field.tagger_training import TaggerOptions, train_tagger

    values = {name: getattr(args, name) for name in (*OF_TREEBANK, "conllu", "order", "penalty", "iterations")}
    options = TaggerOptions(**{name: value for name, value in values.items() if value is not None})
    train_tagger(options, args.out, print_progress)
    print(f"written to {args.out}")
    return 0


def print_progress(progress: "Progress") -> None:
    """Print a line to stderr after each step."""
    valid = "" if progress.valid is None else f", valid {progress.valid:.4f}{'*' if progress.best else ''}"
    print(
        f"{progress.iteration:>4}  {progress.seconds:8.1f} s  {progress.bound:.5f} nats a token{valid}", file=sys.stderr
    )
