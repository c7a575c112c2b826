"""Gold facts about the sentences of a test: which words must be copied or mapped, and which must agree.

JSON lines, one object a sentence, as `scripts/make_corpus.py --bilingual` writes (core/toy_french/bilingual):

    {"copies": [{"kind": "number", "french": "57.843", "seen": false}, …],
     "agreements": [{"form": "fermées", "seen": true}, …]}

Whatever else an object holds is not read. "agreements" may be missing.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import occurrences, words
from fairseq_llrnn.files.read_count import iter_sentences
from fairseq_llrnn.files.text_lines import place, shown

AGREEMENT = "agreement"
EXPECTED = (
    'expected {"copies": [{"kind": "number", "french": "37", "seen": true}, …], "agreements": [{"form": "belle", '
    '"seen": false}, …]}, as scripts/make_corpus.py --bilingual writes'
)


@dataclass(frozen=True)
class Fact:
    """The words that the translation has to contain; `seen`: training shows them."""

    kind: str
    form: tuple[str, ...]
    seen: bool


def read_facts(path: str, reference: Sequence[Sequence[str]]) -> list[list[Fact]]:
    """The facts of every sentence of the reference, which is given in words.

    Raises:
        DataError: a line of another form, another number of lines, or a fact that the reference does not bear out.
    """
    facts = [list(_facts(line, place(path, number))) for number, line in iter_sentences(path)]
    if len(facts) != len(reference):
        raise DataError(
            f"{path}: expected {len(reference):,} lines, one for each sentence of the reference, found {len(facts):,}; "
            "give the facts of this text"
        )
    for number, (of_sentence, sentence) in enumerate(zip(facts, reference, strict=True), start=1):
        for fact in of_sentence:
            if not occurrences(fact.form, sentence):
                raise DataError(
                    f"{place(path, number)}: the {fact.kind} {shown(' '.join(fact.form))} is not in line {number} of "
                    f"the reference; give the facts of this text"
                )
    return facts


def _facts(line: str, where: str) -> Iterator[Fact]:
    try:
        record = json.loads(line)
        for fact in _objects(record["copies"]):
            yield _fact(_text(fact["kind"]), fact["french"], fact["seen"])
        for fact in _objects(record.get("agreements", [])):
            yield _fact(AGREEMENT, fact["form"], fact["seen"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{where}: {EXPECTED}; found {shown(line)}") from None


def _objects(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    value.encode()  # ValueError for halves of characters, which no file can hold
    return value


def _fact(kind: str, form: Any, seen: Any) -> Fact:
    if not isinstance(seen, bool) or not (parts := tuple(words(_text(form)))):
        raise TypeError
    return Fact(kind, parts, seen)
