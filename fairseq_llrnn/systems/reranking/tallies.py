"""How much of what a translation should contain it contains: by frequency in training, by rule, and by gold facts.

Gold facts about the sentences of a test say which words must be copied or mapped, and which must agree. They are JSON
lines, one object a sentence, as `scripts/make_corpus.py --bilingual` writes (core/toy_french/bilingual):

    {"copies": [{"kind": "number", "french": "57.843", "seen": false}, …],
     "agreements": [{"form": "fermées", "seen": true}, …]}

Whatever else an object holds is not read. "agreements" may be missing.

In a tally, sentence by sentence, a word that the reference has r times and the output c times counts min(r, c) times
(BLEU's clipped counts); where it stands does not matter. So this measures the choice of words, not their order, and
is recall; for words matched by a rule, precision stands beside it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.spelling import UserPatterns
from fairseq_llrnn.files.text_lines import iter_sentences, place, shown
from fairseq_llrnn.systems.reranking.texts import clipped, has_letters, occurrences, words

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
        if not isinstance(record["copies"], list):
            raise TypeError
        facts = [(fact["kind"], fact["french"], fact["seen"]) for fact in record["copies"]]
        facts += [(AGREEMENT, fact["form"], fact["seen"]) for fact in record.get("agreements", ())]
        for kind, form, seen in facts:
            (kind + form).encode()  # ValueError for halves of characters, which no file can hold
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
    """Words that match a rule: how many the reference has, each output has (Y), and how many of these are right (Y)."""

    total: int
    in_outputs: list[int]
    right: list[int]


def by_frequency(reference: Sentences, systems: Sequence[Sentences], counts: Mapping[str, int]) -> list[Tally]:
    """Every word of the reference, punctuation included, by how often the training text has it."""
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
    """Words that match `rule`, as wholes.

    Where most of the reference's sentences begin with a capital, the first word of a sentence counts only if it
    also matches in lower case: *Les 37 hommes* does not begin with a name, for all a rule can tell.

    Raises:
        OptionError: the rule takes far too long.
    """
    firsts = [_first(sentence) for sentence in reference]
    letters = [word for word in firsts if word is not None and word[0].isalpha()]
    initial_capitals = 2 * sum(word[0].isupper() for word in letters) > len(letters)

    @cache
    def matches(word: str) -> bool:
        return bool(rule.features(word))

    def matching(sentence: Sequence[str]) -> list[str]:
        first = _first(sentence) if initial_capitals else None
        kept = []
        for word in sentence:
            if word is first:
                first = None
                if not matches(word.lower()):
                    continue
            if matches(word):
                kept.append(word)
        return kept

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
    """The facts (N) of each kind, first those whose words training shows, then the unseen."""
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
    """Facts whose form the output has; facts of one form need as many occurrences."""
    used: Counter[tuple[str, ...]] = Counter()
    for fact in facts:
        if occurrences(fact.form, output) > used[fact.form]:
            used[fact.form] += 1
            yield fact
