"""`llrnn phrases score`: add a translation model's score to every phrase pair (Cho et al. 2014, §3.1, §4.1)."""

import argparse
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tqdm import tqdm

from fairseq_llrnn.cli.model_options import add_places, need_fairseq, places_in
from fairseq_llrnn.cli.places import check_text_place, report_stream, text_output
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.errors import DataError, check_least
from llrnn_research.phrase_tables.phrase_table import PhrasePair, read_phrase_table, write_phrase_table

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.scoring.sentences import Scorer

NAME = "phrases score"
HELP = "add the probability of a translation model to every line of a phrase table"
EXAMPLES = (
    "llrnn phrases score --path translator/checkpoint_best.pt --table phrase-table.gz --out scored-table.gz",
)
CHUNK = 1000  # phrase pairs scored together


def add_arguments(parser: argparse.ArgumentParser) -> None:
    table = parser.add_argument_group("the table")
    table.add_argument("--table", required=True, metavar="FILE", help="a phrase table in the format of Moses (.gz too)")
    table.add_argument(
        "--out", required=True, metavar="FILE",
        help="the table (`-`: stdout) with an additional score, p(target </s> | source </s>), compressed if the name "
        "ends in .gz",
    )  # fmt: skip
    model = parser.add_argument_group("the model, ours or fairseq's")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint of a translation model")
    add_places(model)
    model.add_argument("--max-tokens", type=int, default=2048, metavar="N", help="tokens in a batch (default: 2048)")


def run(args: argparse.Namespace) -> int:
    check_least("--max-tokens", args.max_tokens, 1)
    check_text_place(args.out, [args.table, args.path])
    number = sum(1 for _ in read_phrase_table(args.table))  # reports errors before any computation
    need_fairseq()
    from fairseq_llrnn.plugin.scoring.sentences import load_scorer

    scorer = load_scorer(args.path, args.max_tokens, places_in(args))
    if scorer.languages is None:
        raise DataError(f"--path {args.path}: expected a translation model, found a language model; give another one")
    bar = tqdm(total=number, desc="scoring phrases", unit=" pairs", leave=False, disable=None)
    with bar, text_output(args.out) as file:
        written = write_phrase_table(file, _scored(read_phrase_table(args.table), scorer, bar))
    _note(scorer)
    print(f"{plural(written, 'phrase pair')} scored", file=report_stream(args.out))
    if scorer.prior is not None:
        print(f"prior  {scorer.prior}", file=report_stream(args.out))
    return 0


def _scored(pairs: Iterator[PhrasePair], scorer: "Scorer", bar: "tqdm[None]") -> Iterator[PhrasePair]:
    while chunk := list(itertools.islice(pairs, CHUNK)):
        sources, targets = [" ".join(pair.source) for pair in chunk], [" ".join(pair.target) for pair in chunk]
        for pair, log_prob in zip(chunk, scorer.score(sources, targets), strict=True):
            yield replace(pair, scores=(*pair.scores, math.exp(min(0.0, log_prob))))
        bar.update(len(chunk))


def _note(scorer: "Scorer") -> None:
    from fairseq_llrnn.plugin.scoring.sentences import UNKNOWN, UNSCORED, WORDS

    if scorer.notes[UNKNOWN]:
        number = plural(scorer.notes[WORDS], 'word')
        note(f"{scorer.notes[UNKNOWN]:,} of {number} unknown to the model, scored as <unk>")
    for remark in UNSCORED:
        if scorer.notes[remark]:
            note(f"{plural(scorer.notes[remark], 'phrase pair')} {remark}; their score is 0")
