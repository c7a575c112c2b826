#!/usr/bin/env python3
"""What the analyses of a package are worth beside a treebank: united with it, or as kinds of words (prior/guessing.py).

    python scripts/analyses_beside_treebank.py DATA OUT

DATA: a folder with ud-french-domains and ud-french-gsd-1.4. Treebank and texts are Sequoia's; the lexicon of GSD, with
all readings of its forms, is in the place of a package. OUT gets data-bin, and the priors `treebank`, `united`,
`kinds` to train with.
"""

import sys
from pathlib import Path

from fairseq_llrnn.cli.main import main as llrnn
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages import gathering
from fairseq_llrnn.lexicon.readers import read_tsv_lexicon
from fairseq_llrnn.prior import languages


def main() -> None:
    data, out = map(Path, sys.argv[1:])
    treebank, lexicon = data / "ud-french-domains" / "Sequoia", str(data / "ud-french-gsd-1.4" / "lexicon.tsv.gz")
    texts = [str(out / f"{part}.txt") for part in ("train", "dev", "test")]
    for text in texts:
        llrnn(["text", "--conllu", str(treebank / f"{Path(text).stem}.conllu.gz"), "--lower", "--out", text])
    dictionary = str(out / "dict.txt")
    llrnn(["dictionary", "--text", *texts, "--out", dictionary])
    command = ["prior", "--dict", dictionary, "--count-text", texts[0], "--conllu", str(treebank / "train.conllu.gz")]

    def gather(*given: object) -> gathering.Gathered:
        found, known = Lexicon(), read_tsv_lexicon(lexicon, lowercase=True)
        for word in given[0]:  # type: ignore[attr-defined]
            if known.features(word):
                found.add(word, known.features(word))
        return gathering.Gathered("fr", analyses=found)

    languages.gather = gather  # type: ignore[assignment, attr-defined]
    for name, options in (("treebank", []), ("united", ["--lexicon", lexicon]), ("kinds", ["--language", "fr"])):
        print(f"--- {name}")
        llrnn([*command, *options, "--suffixes", "--out", str(out / name)])


if __name__ == "__main__":
    main()
