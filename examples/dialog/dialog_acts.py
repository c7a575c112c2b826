"""Dialog acts in the format of the RNNLG data set: `inform(name='red door cafe';pricerange=cheap;kidsallowed=yes)`.

An act has a kind and pairs of a slot and a value. Values are of three sorts:

    text      a sentence must contain it literally: red door cafe
    special   yes, no, none, dontcare: expressed in many ways, never by the value itself
    asked     no value at all, as in ?request(area)

The slot `type` is none of the three: its value, `restaurant`, is the subject of all sentences, and is not counted.

Two acts of the same kind, slots and special values are *alike*: sentences of one, with the other's texts put in, are
sentences of the other (Wen et al. 2015, "Semantically Conditioned LSTM-based Natural Language Generation for Spoken
Dialogue Systems", delexicalisation). The special values, and the shared references of acts that are alike, follow their
toolkit (RNNLG, loader/FeatParser.py and DataReader.py).
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError

SPECIAL = {
    "none": "none",
    **{"yes": "yes", "true": "yes"},
    **{"no": "no", "false": "no"},
    **{"dontcare": "dontcare", "dont_care": "dontcare"},
}
ASKED = "?"
SUBJECT = "type"
FORM = "kind(slot=value;…)"
_ACT = re.compile(r"([^()\s]+)\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Act:
    """One dialog act."""

    kind: str
    pairs: tuple[tuple[str, str], ...]  # slot and value, in the order of the file; ASKED where there is no value

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The pairs whose values a sentence must contain literally."""
        return tuple((slot, value) for slot, value in self.pairs if slot != SUBJECT and not is_special(value))

    @property
    def alike(self) -> tuple[str, ...]:
        """A key that is equal for acts that are alike."""
        return (self.kind, *sorted(f"{slot}={value if is_special(value) else '_'}" for slot, value in self.pairs))


@dataclass(frozen=True)
class Example:
    """A line of the data: an act, and a sentence that a person wrote for it."""

    act: Act
    sentence: str


def is_special(value: str) -> bool:
    """Return whether a value is not written literally."""
    return value == ASKED or value in SPECIAL.values()


def parse_act(text: str) -> Act:
    """Parse an act. Raises ValueError if the text is none."""
    match = _ACT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a dialog act {FORM}, found {text!r}")
    pairs = []
    for part in filter(None, (part.strip() for part in match[2].split(";"))):
        name, equals, value = part.partition("=")
        slot = re.sub(r"[\s_]", "", name.strip().strip("'\""))
        value = value.strip().strip("'\"").strip()
        if not re.fullmatch(r"[a-z]+", slot):
            raise ValueError(f"expected a slot's name in small letters in {FORM}, found {name!r} in {text!r}")
        pairs.append((slot, SPECIAL.get(value, value) if equals and value else ASKED))
    return Act(match[1], tuple(pairs))


def read_examples(path: Path) -> list[Example]:
    """Read a file of RNNLG, plain or .gz: lines that begin with `#`, then a JSON list of [act, sentence, baseline
    sentence].

    Raises:
        DataError: it cannot be read, or has other content. The message names the entry.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        lines = raw.decode("utf-8").splitlines()
        entries = json.loads("\n".join(line for line in lines if not line.startswith("#")))
    except (OSError, EOFError, ValueError) as error:
        raise DataError(
            f"{path}: expected a file of RNNLG (lines with `#`, then JSON), found one that cannot be read: {error}; "
            "give the folder that holds train, valid and test.json, or .json.gz"
        ) from None
    if not isinstance(entries, list) or not entries:
        raise DataError(
            f"{path}: expected a list of [act, sentence, …], found {_shown(entries)}; is it the right file?"
        )
    return [_example(path, number, entry) for number, entry in enumerate(entries, 1)]


def _example(path: Path, number: int, entry: Any) -> Example:
    if not isinstance(entry, list) or len(entry) < 2 or not all(isinstance(part, str) for part in entry[:2]):
        raise DataError(f"{path}: entry {number}: expected [act, sentence, …], found {_shown(entry)}; fix the entry")
    try:
        return Example(parse_act(entry[0]), entry[1])
    except ValueError as error:
        raise DataError(f"{path}: entry {number}: {error}; fix the entry") from None


def _shown(value: Any) -> str:
    return f"{str(value)[:60]!r}"
