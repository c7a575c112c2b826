"""Compare language models on twelve languages with 30,000 words of text, with `fairseq_llrnn.compare`.

    languages.py DATA OUT [LANGUAGE …] [--words 30000] [--seeds 1 2 3] [--pretrained FOLDER]

Texts are in OUT/LANGUAGE/text, comparisons in OUT/LANGUAGE/compare. Finished models are skipped. The last table has
bits per character of the test text. Each cell is the row that is best on the validation text.
"""

import argparse
from pathlib import Path

from language_texts import HEAD, LANGUAGES, Language, analysed, chosen, prepare, row

import fairseq_llrnn
from fairseq_llrnn.comparison.results import ComparisonTable
from fairseq_llrnn.errors import check_least, one_line_errors
from fairseq_llrnn.lexicon.options import LexiconOptions

FAMILIES = {  # column: beginnings of names of rows
    "n-grams": ("ngrams",),
    "pretrained": ("pretrained",),
    "softmax": ("softmax", "pieces", "characters", "mixed-softmax", "mixed-pieces", "mixed-characters"),
    "ours": ("suffixes", "lexicon", "mixed-ours"),
}


def compared(language: Language, args: argparse.Namespace) -> ComparisonTable:
    """Return the comparison of a language."""
    place = args.out / language.name
    train, valid, test = (place / "text" / f"{split}.txt" for split in ("train", "valid", "test"))
    words = LexiconOptions(conllu=tuple(analysed(language, args.data)))
    return fairseq_llrnn.compare(
        train=train, valid=valid, test=test, words=words, pretrained=args.pretrained, seeds=args.seeds,
        tries=args.tries, quick=True, out=place / "compare", is_verbose=True,
    )  # fmt: skip


def summary(tables: dict[str, ComparisonTable]) -> str:
    """Return the best row of each family, by language, as Markdown."""
    lines = [f"| language | {' | '.join(FAMILIES)} |", "|---|" + "---:|" * len(FAMILIES)]
    for name, table in tables.items():
        cells = []
        for names in FAMILIES.values():
            rows = [row for row in table.rows if row.failure is None and row.name.startswith(names)]
            cells.append(f"{min(rows, key=lambda row: row.valid).test:.3f}" if rows else "–")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


@one_line_errors("languages.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="language models of many languages")
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder of all texts")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write to")
    parser.add_argument("languages", nargs="*", metavar="LANGUAGE", help=f"{', '.join(LANGUAGES)} (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of each network (default: 1)")
    parser.add_argument("--words", type=int, default=30_000, help="of each training text (default: %(default)s)")
    parser.add_argument("--pretrained", type=Path, metavar="FOLDER", help="also fine-tune this network of transformers")
    parser.add_argument("--tries", type=int, default=1, help="settings of each network (default: 1)")
    args = parser.parse_args()
    check_least("--words", args.words, 1, "words")
    found = chosen(args.languages)
    sizes = [row(one.name, prepare(one, args.data, args.out, args.words)) for one in found]
    print("\n".join([HEAD, *sizes]), flush=True)
    tables = {}
    for language in found:
        print(f"\n{language.name}", flush=True)
        tables[language.name] = compared(language, args)
        print(tables[language.name], flush=True)
    print(f"\n{summary(tables)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
