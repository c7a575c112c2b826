"""The public sets for vectors of sentences: sentence classification, and DiscoEval's sentence ordering.

A folder has MR (`rt-polarity`), CR (`custrev`), SUBJ, MPQA, TREC and SST-2 (`stsa.binary`) as `label text`, and
`discoeval-bso-DOMAIN.SPLIT.txt`: two sentences with a tab between them, which are swapped here in a random half of the
lines. MR, CR, SUBJ and MPQA have no splits and are cross-validated. A few lines of CR and MPQA have a label and no
text; they are left out.
"""

import gzip
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_llrnn.errors import DataError

FILES = {
    "MR": ("rt-polarity.all",),
    "CR": ("custrev.all",),
    "SUBJ": ("subj.all",),
    "MPQA": ("mpqa.all",),
    "TREC": ("TREC.train.all", "TREC.test.all"),
    "SST-2": ("stsa.binary.train", "stsa.binary.dev", "stsa.binary.test"),
    "BSO wiki": tuple(f"discoeval-bso-wiki.{split}.txt" for split in ("train", "valid", "test")),
    "BSO arxiv": tuple(f"discoeval-bso-arxiv.{split}.txt" for split in ("train", "valid", "test")),
}


@dataclass(frozen=True)
class SentenceSet:
    """Texts of one sentence or two, their labels, and the ends of the parts."""

    name: str
    texts: list[tuple[str, ...]]
    labels: list[int]
    ends: list[int]  # of train, (valid,) test; one part: it is cross-validated


def read_set(name: str, folder: Path) -> SentenceSet:
    """Read one of FILES, compressed or not. Raises DataError: a missing file, or an invalid line."""
    texts: list[tuple[str, ...]] = []
    labels: list[int] = []
    ends: list[int] = []
    for file in FILES[name]:
        rng = random.Random(file)
        for number, line in enumerate(_lines(folder, file), 1):
            if name.startswith("BSO"):
                pair = tuple(line.split("\t"))
                label, text = rng.randrange(2), pair
                good = len(pair) == 2 and all(sentence.strip() for sentence in pair)
                text = pair[::-1] if label else pair
            else:
                first, _, rest = line.partition(" ")
                good, text = first.isdecimal(), (rest,)
                if good and not rest.strip():
                    continue
                label = int(first) if good else 0
            if not good:
                raise DataError(f"{folder / file}, line {number}: expected a label and a text, found {line[:60]!r}")
            texts.append(text)
            labels.append(label)
        ends.append(len(texts))
    return SentenceSet(name, texts, labels, ends)


def _lines(folder: Path, file: str) -> Sequence[str]:
    for path in (folder / f"{file}.gz", folder / file):
        if path.exists():
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            try:
                return raw.decode("utf-8").rstrip("\n").split("\n")
            except UnicodeDecodeError:  # the older of these sets
                return raw.decode("latin-1").rstrip("\n").split("\n")
    raise DataError(f"{folder / file}: expected this file, or {file}.gz, found neither; give the folder with --sets")
