"""`llrnn discourse`: convert texts with paragraphs to training data of the task `discourse`."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.files.atomic_write import may_replace, writing

if TYPE_CHECKING:
    from llrnn_research.discourse.preparing import Counts

NAME = "discourse"
HELP = "make the data for sentence encoders that learn from the order of sentences"
EXAMPLES = (
    "llrnn discourse --train novels.txt --valid others.txt --language en --lower --out discourse-bin",
    "llrnn discourse --train train.txt.gz --valid valid.txt.gz --test test.txt.gz --language fr --words 30000 --out fr",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; a text has a sentence a line, words between blanks, an empty line after a paragraph"
    texts = parser.add_argument_group("the texts")
    for split, purpose in (("train", "for training"), ("valid", "for validation"), ("test", "for testing")):
        required = split != "test"
        texts.add_argument(
            f"--{split}", nargs="+", metavar="FILE", required=required, default=[], help=f"texts {purpose} (.gz too)"
        )
    texts.add_argument(
        "--language", choices=("en", "fr"), required=True, help="language of the conjunctions"
    )
    texts.add_argument("--lower", action="store_true", help="lower-case the words (default: keep their case)")
    texts.add_argument(
        "--words", type=int, default=100_000, metavar="N",
        help="number of most frequent words in the dictionary (default: 100,000); others are unknown, except to "
        "--source-characters",
    )  # fmt: skip
    texts.add_argument(
        "--next-every", type=int, default=8, metavar="N",
        help="distance between NEXT examples of a paragraph, in sentences (default: 8, without overlap; 1 gives the "
        "most examples)",
    )  # fmt: skip
    texts.add_argument("--seed", type=int, default=1, metavar="N", help="random seed (default: 1)")
    result = parser.add_argument_group("the data")
    result.add_argument("--out", required=True, metavar="DIR", help="the data folder")


def run(args: argparse.Namespace) -> int:
    from llrnn_research.discourse.preparing import FILES, Settings, prepare

    check_least("--words", args.words, 1)
    check_least("--next-every", args.next_every, 1)
    out = Path(args.out)
    if not os.path.isdir(out.absolute().parent) or (os.path.exists(out) and not os.path.isdir(out)):
        raise OptionError(f"--out {out}: expected a folder, or a new name in an existing folder")
    if not may_replace(out, FILES.__contains__):
        raise OptionError(
            f"--out {out}: expected a new folder, or one of an earlier run, found something else, which would be lost; "
            "give another name"
        )
    settings = Settings(args.language, args.lower, args.words, args.seed, args.next_every)
    with writing(args.out, "result"):
        counts = prepare({"train": args.train, "valid": args.valid, "test": args.test}, settings, out)
    print(table(counts))
    for split, of_split in counts.items():
        for objective, number in of_split.examples.items():
            if not number:
                note(f"{split} has no example of {objective.upper()}")
        if of_split.repeated:
            repeated = plural(of_split.repeated, "paragraph")
            note(f"{repeated} of {split} left out, because another split has the same")
    return 0


def table(counts: "dict[str, Counts]") -> str:
    """Return the table of split sizes. Chance is the share of the most frequent answer."""
    lines = [f"{'':<7}{'paragraphs':>12}{'sentences':>12}{'words':>13}{'ORDER':>10}{'NEXT':>9}{'CONJUNCTION':>13}"]
    for split, of_split in counts.items():
        examples = of_split.examples
        lines.append(
            f"{split:<7}{of_split.paragraphs:>12,}{of_split.sentences:>12,}{of_split.words:>13,}{examples['order']:>10,}"
            f"{examples['next']:>9,}{examples['conjunction']:>13,}"
        )
        chance = {name: max(answers, default=0) / max(1, sum(answers)) for name, answers in of_split.answers.items()}
        lines.append(
            f"{'  chance':<44}{chance['order']:>10.1%}{chance['next']:>9.1%}{chance['conjunction']:>13.1%}"
        )
    return "\n".join(lines)
