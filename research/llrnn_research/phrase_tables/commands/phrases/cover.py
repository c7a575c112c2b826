"""`llrnn phrases cover`: give each hypothesis of an n-best list the scores of a phrase table, as features."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from fairseq_llrnn.cli.places import check_text_place, report_stream, text_output
from fairseq_llrnn.cli.tables import percent, plural
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.systems.reranking.rescoring import Job, open_job
from llrnn_research.phrase_tables.phrase_table import UNKNOWN, WORDS, PhraseTable

NAME = "phrases cover"
HELP = "add features to an n-best list: how well the phrases of a table cover each hypothesis"
EXAMPLES = ("llrnn phrases cover --table phrase-table.gz --source test.en --nbest test.nbest --out covered.jsonl",)
FEATURE = "phrases"  # with the number of a column, from 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    table = parser.add_argument_group("input")
    table.add_argument("--table", required=True, metavar="FILE", help="a phrase table in the format of Moses (.gz too)")
    table.add_argument("--nbest", required=True, metavar="FILE", help="an n-best list, as for `llrnn rescore`")
    table.add_argument("--source", metavar="FILE", help="its source, a sentence a line (default: the list's own)")
    result = parser.add_argument_group("output")
    result.add_argument(
        "--out", required=True, metavar="FILE",
        help="the list as JSON lines (`-`: stdout), with a feature phrases1, phrases2, … for each score of the table: "
        "the sum of log scores over the source phrases whose translations cover the hypothesis best",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    check_text_place(args.out, [args.table, args.nbest, *([args.source] if args.source else [])])
    job = open_job(args.nbest, args.source, None)
    if args.source is None and not job.lists.has_sources:
        raise OptionError(f"--nbest {args.nbest}: the list has no source; give --source FILE")
    table = PhraseTable.read(args.table, (nbest.source or "" for nbest in job))
    with text_output(args.out) as file:
        for record in _covered(job, table):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    left = percent(table.notes[UNKNOWN] / max(1, table.notes[WORDS]))
    hypotheses = plural(job.lists.hypotheses, "hypothesis", "hypotheses")
    print(f"{hypotheses}, {left} of their words without a phrase", file=report_stream(args.out))
    return 0


def _covered(job: Job, table: PhraseTable) -> Iterator[dict[str, Any]]:
    """Yield the sentences of a list, with the new features."""
    for nbest in job:
        if any(h.output != h.text for h in nbest.hypotheses):
            raise DataError(
                f"{job.lists.path}: expected hypotheses in one form, found another text in D- lines; generate without "
                "--remove-bpe and without a tokenizer"
            )
        texts = [h.text for h in nbest.hypotheses]
        rows = table.scores([nbest.source or ""] * len(texts), texts)
        hypotheses = []
        for h, row in zip(nbest.hypotheses, rows, strict=True):
            covered = {f"{FEATURE}{n}": value for n, value in enumerate(row, 1)}
            total = {} if h.score is None else {"score": h.score}
            hypotheses.append({"text": h.text, **total, "features": {**h.features, **covered}})
        yield {"id": nbest.number, "source": nbest.source, "hypotheses": hypotheses}
