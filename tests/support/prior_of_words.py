"""A prior of eleven symbols, and what damages one on disk."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "le", "la", "maison", "fenêtre", "chat", "12", "madeupword0000")
COUNTS = np.array([0, 0, 5, 1, 9, 8, 3, 2, 2, 1, 0])


def lexicon() -> Lexicon:
    made = Lexicon()
    made.add("la", ["POS:DET", "Gender:Fem"])
    made.add("le", ["POS:DET", "Gender:Masc"])
    for word in ("maison", "fenêtre"):
        made.add(word, ["POS:NOUN", "Gender:Fem"])
    made.add("chat", ["POS:NOUN", "Gender:Masc"])
    return made


def build(settings: Recipe | None = None, counts: np.ndarray = COUNTS) -> Prior:
    settings = settings or Recipe(top_words=2)
    return plain_prior(WordList(SYMBOLS, counts), counts, lexicon(), settings)[0]


def tree(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(directory.iterdir())}


def damage_json(directory: Path, **changes: object) -> None:
    path = directory / "prior.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def replace_arrays(directory: Path, **changes: np.ndarray) -> None:
    """Put others in their place, with a hash that fits."""
    with np.load(directory / "arrays.npz") as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    kept |= changes
    np.savez(directory / "arrays.npz", **{n: a for n, a in kept.items() if a is not None})
    digest = hashlib.sha256((directory / "arrays.npz").read_bytes()).hexdigest()
    damage_json(directory, arrays_sha256=digest)


def assert_needs_its_source_words(directory: Path) -> None:
    """A prior of a source is refused with other source words, and without any."""
    source = directory / "source.txt"
    source.write_text("<s>\nx\n", encoding="utf-8")
    with pytest.raises(PriorError, match=r"source\.txt: expected the words the prior was made for.*; build it again"):
        Prior.load(directory)
    source.unlink()
    with pytest.raises(PriorError, match="a file of the prior cannot be read"):
        Prior.load(directory)
