#!/usr/bin/env python3
"""Generate sentences from dialog acts of RNNLG: the steps of examples/dialog/run.sh besides fairseq's commands.

    dialog.py prepare --data FOLDER --out OUT               a bitext of acts and sentences, dictionaries, evidence
    dialog.py score --data FOLDER --system NAME=NBEST …     BLEU and slot errors of the best five and of the best one
    dialog.py toy --out FOLDER                              a small generated data set in RNNLG's format

FOLDER has train, valid and test.json (.gz too), as in RNNLG's data/original/restaurant. NBEST is the output of
fairseq-interactive for OUT/test.acts, or with --delexicalised for OUT/delexicalised/test.acts.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

logging.getLogger("fairseq").setLevel(logging.WARNING)  # before it is imported: it reports while it is

import dialog_rank as rank  # noqa: E402
import dialog_toy as toy  # noqa: E402
from dialog_acts import read_examples  # noqa: E402
from dialog_prepare import delexicalised_source, different, find, prepare, source_of  # noqa: E402
from dialog_rank import Scores  # noqa: E402

from fairseq_llrnn.errors import DataError, OptionError, one_line_errors  # noqa: E402

COLUMNS = f"{'BLEU':>8}{'ERR':>9}{'missing':>9}{'added':>9}"
HEAD = f"{'':34}{'the best five':>35}{'the best one':>35}\n{'':34}{COLUMNS * 2}{'unsupported':>13}"


def run_prepare(args: argparse.Namespace) -> None:
    facts = prepare(args.data, args.out)
    print("\n".join(f"{name:16} {many:7,}" for name, many in facts.items()))


def run_toy(args: argparse.Namespace) -> None:
    toy.write_toy(args.out, args.seed)


def run_score(args: argparse.Namespace) -> None:
    examples = read_examples(find(args.data, args.set))
    acts, sentences = [example.act for example in examples], [example.sentence for example in examples]
    errors = rank.reference_errors(acts, sentences)
    own = f"{errors.missing} missing, {errors.added} added ({errors.share(errors.errors):.2f} %)"
    print(f"{args.set}: {len(acts):,} acts, {errors.slots:,} slots; the references' own errors: {own}\n{HEAD}")
    for text, delexicalised in [(text, False) for text in args.system] + [(text, True) for text in args.delexicalised]:
        name, equals, path = text.partition("=")
        if not equals:
            raise OptionError(f"{text}: expected NAME=NBEST, what fairseq-interactive wrote; add a name")
        written = rank.read_hypotheses(Path(path))
        sources = [tuple(source) for source in different(acts, delexicalised)]
        if sorted(written) != list(range(len(sources))):
            raise DataError(
                f"{path}: expected hypotheses for {len(sources)} acts, all of the {args.set} set, found them for "
                f"{len(written)}; write sentences for {args.set}.acts again"
            )
        number = {source: i for i, source in enumerate(sources)}
        make = delexicalised_source if delexicalised else source_of
        found = [rank.hypotheses_of(act, written[number[tuple(make(act))]]) for act in acts]
        print(_row(f"{name}, as it comes", rank.score(acts, sentences, [some[: rank.KEPT] for some in found])))
        for label, keywords in (("ranked as RNNLG", False), ("ranked", True)):
            ranked = [rank.best(act, some, keywords) for act, some in zip(acts, found, strict=True)]
            print(_row(f"{name}, {label}", rank.score(acts, sentences, ranked)))


def _row(name: str, scores: Scores) -> str:
    cells = [f"{name:34}"]
    for bleu, errors in ((scores.bleu, scores.errors), (scores.first_bleu, scores.first_errors)):
        counts = (errors.errors, errors.missing, errors.added)
        cells.append(f"{bleu:8.4f}" + "".join(f"{errors.share(count):8.2f}%" for count in counts))
    return "".join(cells) + f"{scores.unsupported:13}"


@one_line_errors("dialog.py")
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("prepare")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=run_prepare)
    one = commands.add_parser("score")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--set", choices=("valid", "test"), default="test")
    one.add_argument("--system", nargs="+", default=[], metavar="NAME=NBEST")
    one.add_argument("--delexicalised", nargs="+", default=[], metavar="NAME=NBEST")
    one.set_defaults(run=run_score)
    one = commands.add_parser("toy")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--seed", type=int, default=1)
    one.set_defaults(run=run_toy)
    args = parser.parse_args(argv)
    args.run(args)


if __name__ == "__main__":
    sys.exit(main())
