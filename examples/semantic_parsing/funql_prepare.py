#!/usr/bin/env python3
"""Convert questions and forms to symbols, one sentence per line, and write the dictionary of the grammar's symbols.

    funql_prepare.py --train funql_train.tsv --test funql_test.tsv --out OUT [--held-out 100] [--pairs 200 --seed 1]

writes OUT/{train,test}.{question,form}, OUT/test.tsv (questions and forms unchanged) and OUT/dict.form.txt: every
terminal of funql.grammar with its count in the training forms. With --held-out N, N random pairs of the training file,
with a fixed seed, are the test, and the test file is not used: for the choice of sizes. With --pairs N, the training
text has the first N pairs of a list that --seed shuffles.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from funql_mentions import Question, read_names, read_question, to_symbols
from funql_pairs import Pair, read_pairs
from funql_recognise import derives, read_rules, terminals

from fairseq_llrnn.errors import check_least, one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines

HERE = Path(__file__).resolve().parent
NAMES, GRAMMAR = HERE / "names.tsv", HERE / "funql.grammar"


def split_off(pairs: Sequence[Pair], held_out: int) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs without some, and these. Pairs of one question stay together."""
    order = sorted({pair.question for pair in pairs})
    random.Random(1).shuffle(order)
    chosen = set(order[:held_out])
    return [p for p in pairs if p.question not in chosen], [p for p in pairs if p.question in chosen]


@one_line_errors("funql_prepare.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", type=int, default=0, metavar="N")
    parser.add_argument("--pairs", type=int, metavar="N", help="training pairs (default: all, in file order)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of pairs (default: 1)")
    args = parser.parse_args()
    if args.pairs is not None:
        check_least("--pairs", args.pairs, 1)
    names, rules = read_names(NAMES), read_rules(GRAMMAR)
    train = read_pairs(args.train)
    train, test = split_off(train, args.held_out) if args.held_out else (train, read_pairs(args.test))
    if args.pairs is not None:
        random.Random(args.seed).shuffle(train)
        train = train[: args.pairs]
    args.out.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    for split, pairs in (("train", train), ("test", test)):
        questions: list[Question] = [read_question(pair.question, names) for pair in pairs]
        forms = [to_symbols(pair.form, question) for pair, question in zip(pairs, questions, strict=True)]
        write_lines(args.out / f"{split}.question", [" ".join(question.words) for question in questions])
        write_lines(args.out / f"{split}.form", [" ".join(form) for form in forms])
        accepted = sum(derives(rules, form) for form in forms)
        print(f"{split}: {len(pairs)} pairs; the grammar accepts {accepted} of their forms")
        counts.update(symbol for form in forms if split == "train" for symbol in form)
    write_lines(args.out / "test.tsv", [f"{pair.question}\t{pair.form}" for pair in test])
    words = sorted(terminals(rules), key=lambda word: (-counts[word], word))
    write_lines(args.out / "dict.form.txt", [f"{word} {counts[word]}" for word in words])


if __name__ == "__main__":
    sys.exit(main())
