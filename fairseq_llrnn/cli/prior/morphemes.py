"""The options of `llrnn prior` about morphemes (prior/morphemes.py)."""

import argparse

from fairseq_llrnn.cli.prior.alone import refuse_alone
from fairseq_llrnn.defaults import MORFESSOR
from fairseq_llrnn.lexicon.morphemes import MORPHEME_FLOOR


def add_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--morphemes", metavar="MORFESSOR_OR_FILE",
        help=f"add morphemes with their place (Prefix:un, Stem:happy, Ending:ness): `{MORFESSOR}` learns them from the "
        "words and their counts (it needs the extra `morphemes`); a FILE has words cut into segments by any tool "
        "(word, tab, segments with blanks between; or the segments alone)",
    )  # fmt: skip
    group.add_argument(
        "--morpheme-floor", type=int, metavar="N",
        help="how many word types of the counted text must share a morpheme, for it to be a feature (default: "
        f"{MORPHEME_FLOOR})",
    )  # fmt: skip


def floor(args: argparse.Namespace) -> int:
    """--morpheme-floor, which needs --morphemes."""
    if args.morphemes is None:
        refuse_alone(args, ("morpheme_floor",), "--morphemes")
    return MORPHEME_FLOOR if args.morpheme_floor is None else int(args.morpheme_floor)
