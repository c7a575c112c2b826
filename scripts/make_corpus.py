"""Write the embedded corpus: python scripts/make_corpus.py --out DIR [--bilingual] [--sentences N] [--seed S]."""

import argparse
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # if the package is not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))  # the embedded corpus
logging.getLogger("fairseq").setLevel(logging.WARNING)  # before the import, which logs

from fairseq_llrnn.errors import one_line_errors  # noqa: E402
from toy_french import bilingual, make_corpus, summary, write_corpus  # noqa: E402
from toy_french.corpus import DEFAULT_SENTENCES  # noqa: E402


@one_line_errors("make_corpus")
def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write a corpus of a small French-like language: a gold treebank, or pairs with English."
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--bilingual", action="store_true", help="write English-French pairs with gold facts instead of the treebank"
    )
    parser.add_argument(
        "--sentences", type=int, default=DEFAULT_SENTENCES, metavar="N", help="training sentences or pairs"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="seed of the random numbers"
    )
    args = parser.parse_args()
    if args.bilingual:
        bitext = bilingual.make_bitext(args.sentences, args.seed)
        bilingual.write_bitext(bitext, args.out)
        table = bilingual.summary(bitext)
    else:
        corpus = make_corpus(args.sentences, args.seed)
        write_corpus(corpus, args.out)
        table = summary(corpus)
    print(table)


if __name__ == "__main__":
    sys.exit(main())
