"""What the tests of `llrnn` share: what a command left, and the files of a language of twelve words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairseq_llrnn.prior.prior import Prior


@dataclass(frozen=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The message of a command that failed as a user's error must: status 2, one line, nothing printed.

        Not counted: that the test says an option once more than those before it.
        """
        assert (self.code, self.out) == (2, "")
        (line,) = (line for line in self.err.splitlines() if not line.endswith("; the last value is used"))
        assert line.startswith("llrnn: error: ")
        return line.removeprefix("llrnn: error: ")

    def refuses(self, expected: str) -> None:
        """The command failed with this message, in which … stands for anything."""
        assert re.fullmatch(re.escape(expected).replace("…", ".*"), self.error), self.error


Llrnn = Callable[..., Done]
Build = Callable[..., Done]
Explain = Callable[..., Done]
Change = Callable[[Callable[[dict[str, Any]], None]], Path]  # a checkpoint in which something was changed
Built = Callable[..., Prior]

DICTIONARY = """\
le 9
la 8
chat 5
table 4
dort 3
petite 2
petit 2
tables 2
12 1
chien 1
chatte 1
zut 0
madeupword0000 0
"""

# id, form, UPOS, FEATS
SENTENCES = [
    ["Le DET Gender=Masc|Number=Sing", "petit ADJ Gender=Masc|Number=Sing", "chat NOUN Gender=Masc|Number=Sing"],
    ["La DET Gender=Fem|Number=Sing", "petite ADJ Gender=Fem|Number=Sing", "table NOUN Gender=Fem|Number=Sing"],
    ["tables NOUN Gender=Fem|Number=Plur", "chatte NOUN Gender=Fem|Number=Sing", "dort VERB Mood=Ind|Number=Sing"],
    ["chien NOUN Gender=Masc|Number=Sing", "12 NUM _"],
]


@dataclass(frozen=True)
class Corpus:
    """Files of a language of twelve words."""

    place: Path

    @property
    def dictionary(self) -> Path:
        return self.place / "dict.txt"

    @property
    def treebank(self) -> Path:
        return self.place / "train.conllu"

    @property
    def out(self) -> Path:
        return self.place / "prior"

    @classmethod
    def make(cls, place: Path) -> Corpus:
        """Write dictionary and treebank."""
        corpus = cls(place)
        corpus.write("dict.txt", DICTIONARY)
        rows = []
        for sentence in SENTENCES:
            for number, word in enumerate(sentence, 1):
                form, upos, feats = word.split()
                rows.append("\t".join((str(number), form, form.lower(), upos, "_", feats, "0", "_", "_", "_")))
            rows.append("")
        corpus.write("train.conllu", "\n".join(rows) + "\n")
        return corpus

    def write(self, name: str, text: str | bytes) -> Path:
        """A further file."""
        path = self.place / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path


def row(prior: Prior, word: str) -> dict[str, float]:
    """φ of a word."""
    return prior.output.features.row(int(prior.output.class_of[prior.symbols.index(word)]))


def read_row(prior: Prior, word: str) -> dict[str, float]:
    """ψ of a word."""
    return prior.input.features.row(int(prior.input.class_of[prior.symbols.index(word)]))


def weight(prior: Prior, word: str) -> float:
    """b of a word."""
    return float(np.exp(prior.log_weights[prior.symbols.index(word)]))


def files(directory: Path) -> dict[str, str]:
    """Hashes of all files of a directory."""
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(directory.iterdir())}
