#!/usr/bin/env python3
"""Measure the overlap of word lists of the same language, and of different ones (lexicon/language_check.py).

    python examples/languages/language_shares.py DATA

DATA: a folder with czech-treebanks, eltec-eng, eltec-fra, multi30k-en-cs-de, multi30k-en-fr, ud-french-domains,
ud-french-gsd-1.4, ud-greek-gdt and ud-hungarian-szeged.
"""

import sys
from collections.abc import Iterable
from itertools import combinations, islice
from pathlib import Path

from fairseq_llrnn.files.text_lines import ReadCount, iter_lines
from fairseq_llrnn.lexicon.language_check import FEW, has_letters
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_words
from fairseq_llrnn.lexicon.readers.tsv import iter_tsv_rows

TREEBANKS = {
    "cs": ("czech-treebanks/*", "czech-treebanks/cs_pud*"),
    "el": ("ud-greek-gdt/*.conllu*",),
    "fr": ("ud-french-gsd-1.4/*.conllu*", "ud-french-gsd-1.4/dev*", *(f"ud-french-domains/{name}/*.conllu*" for name in
           ("ParTUT", "ParisStories", "Rhapsodie", "Sequoia"))),
    "hu": ("ud-hungarian-szeged/*.conllu*",),
}  # fmt: skip
TEXTS = {
    "cs": ("multi30k-en-cs-de/train.tok.cs.gz",),
    "de": ("multi30k-en-cs-de/train.tok.de.gz",),
    "en": ("multi30k-en-fr/train.tok.en.gz", "eltec-eng/train.txt.gz"),
    "fr": ("multi30k-en-fr/train.tok.fr.gz", "eltec-fra/train.txt.gz"),
}
LEXICON = "ud-french-gsd-1.4/lexicon.tsv.gz"
LINES = 100_000, 500  # of a text


def lists(data: Path) -> Iterable[tuple[str, str, set[str]]]:
    """Return language, name and words of each list."""
    for code, patterns in TREEBANKS.items():
        for pattern in patterns:
            sentences = (sentence for path in data.glob(pattern) for sentence in iter_conllu_words(path, True))
            yield code, pattern, {word.form for sentence in sentences for word in sentence}
    for code, paths in TEXTS.items():
        for path in paths:
            for most in LINES:
                lines = islice(iter_lines(data / path), most)
                yield code, f"{path}, {most} lines", {word for _, line in lines for word in line.lower().split()}


def main() -> None:
    data = Path(sys.argv[1])
    found = [(code, name, set(filter(has_letters, words))) for code, name, words in lists(data)]
    shares: dict[bool, list[tuple[float, str, str]]] = {True: [], False: []}
    for (code, name, words), (other, second, others) in combinations(found, 2):
        share = len(words & others) / min(len(words), len(others))
        shares[code == other].append((share, name, second))
    for same, some in shares.items():
        some.sort()
        what = "the same language" if same else "different languages"
        print(f"{what}: {len(some)} pairs, median {some[len(some) // 2][0]:.1%}")
        for share, name, second in some[:3] if same else some[-3:]:
            print(f"  {share:.1%}  {name} | {second}")
    print(f"different languages below {FEW:.0%}: {sum(s < FEW for s, *_ in shares[False]) / len(shares[False]):.0%}")
    rows = [(row.form.lower(), row.features) for row in iter_tsv_rows(ReadCount(data / LEXICON))]
    for tag in ("POS:VERB", "POS:ADJ"):
        own = {form for form, features in rows if tag in features}
        french = [(len(own & words) / min(len(own), len(words)), name) for code, name, words in found if code == "fr"]
        print(f"{tag} alone: {min(french)[0]:.1%} at least, of {min(french)[1]}")


if __name__ == "__main__":
    main()
