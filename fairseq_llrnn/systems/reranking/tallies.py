"""Recall of words that a translation should contain: by training frequency, by a rule, and by gold facts.

Gold facts list the words of each test sentence that must be copied or mapped, and those that must agree. They are JSON
lines, one object a sentence, written by `scripts/make_corpus.py --bilingual` (examples/toy_french/bilingual):

    {"copies": [{"kind": "number", "french": "57.843", "seen": false}, …],
     "agreements": [{"form": "fermées", "seen": true}, …]}

Other keys are ignored. "agreements" may be missing.

A word that the reference has r times and the output c times in a sentence counts min(r, c) times (BLEU's clipped
counts), in any position. The tallies thus measure the recall of words, not their order. Words matched by a rule also
have a precision.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.files.text_lines import iter_sentences, place, shown
from fairseq_llrnn.systems.reranking.texts import clipped, has_letters, occurrences, words

AGREEMENT = "agreement"
EXPECTED = (
    'expected {"copies": [{"kind": "number", "french": "37", "seen": true}, …], "agreements": [{"form": "belle", '
    '"seen": false}, …]}, the format of scripts/make_corpus.py --bilingual'
)


@dataclass(frozen=True)
class Fact:
    """Words that the translation must contain. `seen`: whether they occur in training."""

    kind: str
    form: tuple[str, ...]
    seen: bool


def read_facts(path: str, reference: Sequence[Sequence[str]]) -> list[list[Fact]]:
    """Return the facts of every sentence of the reference, which is given in words.

    Raises:
        DataError: an invalid line, another number of lines, or a fact that does not hold for the reference.
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
        if not isinstance(record["copies"], list):
            raise TypeError
        facts = [(fact["kind"], fact["french"], fact["seen"]) for fact in record["copies"]]
        facts += [(AGREEMENT, fact["form"], fact["seen"]) for fact in record.get("agreements", ())]
        for kind, form, seen in facts:
            (kind + form).encode()  # ValueError for lone surrogates
            parts = tuple(words(form))
            if not kind or not parts or not isinstance(seen, bool):
                raise TypeError
            yield Fact(kind, parts, seen)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{where}: {EXPECTED}; found {shown(line)}") from None


Sentences = Sequence[Sequence[str]]  # words
BUCKETS = (("0", 0), ("1", 1), ("2–5", 5), ("6–20", 20), ("21–100", 100), (">100", None))  # name, largest count


@dataclass(frozen=True)
class Tally:
    """How many of `total` words or facts of the reference each system (Y) has in its outputs."""

    label: str
    total: int
    matches: list[int]


@dataclass(frozen=True)
class RuleTally:
    """Words that match a rule: their number in the reference, in each output (Y), and the correct ones among these (Y).
    """

    total: int
    in_outputs: list[int]
    right: list[int]


def by_frequency(reference: Sentences, systems: Sequence[Sentences], counts: Mapping[str, int]) -> list[Tally]:
    """Count every word of the reference, punctuation included, by its frequency in the training text."""
    bucket = {word: _bucket(counts.get(word, 0)) for sentence in reference for word in sentence}
    totals = Counter(bucket[word] for sentence in reference for word in sentence)
    matches = [
        Counter(bucket[word] for pair in zip(reference, outputs, strict=True) for word in clipped(*pair).elements())
        for outputs in systems
    ]
    return [Tally(name, totals[name], [of_system[name] for of_system in matches]) for name, _ in BUCKETS]


def _bucket(count: int) -> str:
    return next(name for name, largest in BUCKETS if largest is None or count <= largest)


def by_rule(reference: Sentences, systems: Sequence[Sentences], rule: UserPatterns) -> RuleTally:
    """Count words that match `rule` as a whole.

    If most sentences of the reference begin with a capital, a sentence-initial word counts only if it also matches in
    lower case, because its capital does not mark a name (*Les 37 hommes*).

    Raises:
        OptionError: the rule is far too slow.
    """
    firsts = [_first(sentence) for sentence in reference]
    letters = [word for word in firsts if word is not None and word[0].isalpha()]
    initial_capitals = 2 * sum(word[0].isupper() for word in letters) > len(letters)

    @cache
    def matches(word: str) -> bool:
        return bool(rule.features(word))

    def matching(sentence: Sequence[str]) -> list[str]:
        first = _first(sentence) if initial_capitals else None
        matching_words = []
        for word in sentence:
            if word is first:
                first = None
                if not matches(word.lower()):
                    continue
            if matches(word):
                matching_words.append(word)
        return matching_words

    wanted = [matching(sentence) for sentence in reference]
    matched = [[matching(sentence) for sentence in outputs] for outputs in systems]
    return RuleTally(
        sum(map(len, wanted)),
        [sum(map(len, of_system)) for of_system in matched],
        [sum(clipped(w, g).total() for w, g in zip(wanted, of_system, strict=True)) for of_system in matched],
    )


def _first(sentence: Sequence[str]) -> str | None:
    return next((word for word in sentence if has_letters(word)), None)


def by_facts(facts: Sequence[Sequence[Fact]], systems: Sequence[Sentences]) -> list[Tally]:
    """Count the facts (N) of each kind, those seen in training first."""
    totals: Counter[tuple[str, bool]] = Counter()
    matches: list[Counter[tuple[str, bool]]] = [Counter() for _ in systems]
    for number, of_sentence in enumerate(facts):
        totals.update((fact.kind, not fact.seen) for fact in of_sentence)
        for of_system, outputs in zip(matches, systems, strict=True):
            of_system.update((fact.kind, not fact.seen) for fact in _contained(of_sentence, outputs[number]))
    return [
        Tally(f"{key[0]}, {'unseen' if key[1] else 'seen'}", total, [of_system[key] for of_system in matches])
        for key, total in sorted(totals.items())
    ]


def _contained(facts: Iterable[Fact], output: Sequence[str]) -> Iterable[Fact]:
    """Yield facts whose form the output has. Several facts of one form need as many occurrences."""
    used: Counter[tuple[str, ...]] = Counter()
    for fact in facts:
        if occurrences(fact.form, output) > used[fact.form]:
            used[fact.form] += 1
            yield fact
