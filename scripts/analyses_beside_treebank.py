#!/usr/bin/env python3
"""Compare two ways to add a package's analyses to a treebank: united with it, or as kinds of words
(lexicon/guessing.py).

    python scripts/analyses_beside_treebank.py DATA OUT

DATA: a folder with ud-french-domains and ud-french-gsd-1.4. Treebank and texts are Sequoia's. The lexicon of GSD, with
all readings of its forms, stands for a package. OUT gets data-bin, and the priors `treebank`, `united` and `kinds`.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from fairseq_llrnn.cli.main import main as llrnn
from fairseq_llrnn.lexicon.languages.base import SOURCES, FeatureSource, Spelling
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.options import LexiconOptions


class Beside(FeatureSource):
    """A lexicon that stands for a package."""

    name, gives = "beside", "analyses"
    codes: ClassVar[Mapping[str, str]] = {"fr": "fr"}

    def __init__(self, lexicon: str) -> None:
        self.known = gather(LexiconOptions(lexicon=lexicon)).lexicon()

    def packages(self, code: str) -> Sequence[str]:
        return ("numpy",)

    def licence(self, code: str) -> str:
        return "as the treebank's"

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        return ((word, self.known.features(word)) for word in words if self.known.features(word))


def main() -> None:
    data, out = map(Path, sys.argv[1:])
    treebank, lexicon = data / "ud-french-domains" / "Sequoia", str(data / "ud-french-gsd-1.4" / "lexicon.tsv.gz")
    texts = [str(out / f"{part}.txt") for part in ("train", "dev", "test")]
    for text in texts:
        llrnn(["text", "--conllu", str(treebank / f"{Path(text).stem}.conllu.gz"), "--lower", "--out", text])
    dictionary = str(out / "dict.txt")
    llrnn(["dictionary", "--text", *texts, "--out", dictionary])
    command = ["prior", "--dict", dictionary, "--count-text", texts[0], "--conllu", str(treebank / "train.conllu.gz")]

    SOURCES.clear()
    SOURCES["beside"] = Beside(lexicon)
    for name, options in (("treebank", []), ("united", ["--lexicon", lexicon]), ("kinds", ["--language", "fr"])):
        print(f"--- {name}")
        llrnn([*command, *options, "--suffixes", "--out", str(out / name)])


if __name__ == "__main__":
    main()
