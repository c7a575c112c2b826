"""The rules of evidence: which source tokens are evidence, and for which target words.

A source token has at most one kind, the first of the chosen kinds that matches it:

    mapped    the user's table maps it
    patterns  one of the user's expressions matches the whole token
    numbers   12 · 1.234,5 · -3
    dates     2024-01-31 · 31/12/2024
    codes     other tokens with a digit: B-52, 10:30
    urls      addresses of sites and people, @names, #tags
    names     capitalised, and the lower-cased form is not in the vocabulary
    copies    not in the vocabulary, with a letter
    translations  matches no token: translations without an indicator feature (evidence/translation_slots.py)

A system may also require other strings, for any source (evidence/group_slots.py). No token has such a kind.
`register_kind` registers it, in a module that registry.py finds in the group `evidence`.

Numbers, dates, codes, urls and names exclude each other. So the kind of a token does not depend on the chosen kinds:
if only codes are chosen, 12 has no kind. Words are split as in fairseq: they have no blanks. Known words are
those of a dictionary, with or without its special symbols.

Users list the target words of tokens of the kind `mapped` in tab-separated rows: token, target words
(`1,000<TAB>1 000`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

from fairseq_llrnn import registry
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.spelling_features import NUMBER, UserPatterns
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, place, shown
from fairseq_llrnn.lexicon.languages.names import CODES

FEATURES = {  # of every kind of tokens, by priority
    "mapped": "Evidence:Mapped",
    "patterns": "Evidence:Pattern",
    "numbers": "Evidence:Number",
    "dates": "Evidence:Date",
    "codes": "Evidence:Code",
    "urls": "Evidence:Url",
    "names": "Evidence:Name",
    "copies": "Evidence:Copy",
    "translations": "Evidence:Translation",
}
KINDS = tuple(FEATURES)
UNKNOWN = "Evidence:Unknown"  # the source word is in no dictionary
NEXT = "Evidence:Next"  # the second and later words of a mapped string
ASKED: dict[str, StringKind] = {}  # by name; `features` includes them
BY_KNOWN_WORDS = ("names", "copies")  # kinds that depend on the known words
DEFAULT_WEIGHT = 0.25  # ε
ENTRIES = ("kinds", "weight", "mapping", "patterns")  # of a description


@dataclass(frozen=True)
class StringKind:
    """A kind of strings that a system requires."""

    feature: str  # of their slots: `Evidence:…`
    origin: str  # for `llrnn show`


def register_kind(name: str, kind: StringKind) -> None:
    """Register a kind of strings. Over pieces, the part then also stores the words of the target's training text."""
    ASKED[name] = kind


def features() -> dict[str, str]:
    """Return the feature of every kind, kinds of systems first."""
    registry.load_all("evidence")
    return {name: kind.feature for name, kind in ASKED.items()} | FEATURES


# Every expression here takes time linear in the token's length.
_DATE = re.compile(r"(\d{1,4})([./\-])(\d{1,2})\2(\d{1,4})")
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.\-]*://|www\.)\S+", re.IGNORECASE)
_MAIL = re.compile(r"[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+")
_SITE = re.compile(r"(?:[\w\-]+\.)+(?:com|org|net|edu|gov|info|eu)(?:[/:?#]\S*)?", re.IGNORECASE)
_NAMED = re.compile(r"[@#]\w+")
_ESCAPE = re.compile(r"&(?:#\d+|\w+);")  # punctuation as Moses's tokeniser writes it: &#91; &apos;


@dataclass(frozen=True)
class Evidence:
    """The evidence of a source token."""

    kind: str  # one of KINDS
    words: tuple[str, ...]  # target words: the token itself, or the words of its mapping


@dataclass(frozen=True)
class EvidenceRules:
    """The rules for source tokens. `check` validates them."""

    kinds: tuple[str, ...]  # in the order of `features`
    mapping: Mapping[str, tuple[str, ...]]  # source token -> target words; empty unless "mapped" is chosen
    patterns: Mapping[str, str]  # name -> the user's expression; evidence only if "patterns" is chosen
    weight: float = DEFAULT_WEIGHT  # ε, the total weight of a sentence's slots if the words have weight one
    unsupported: Mapping[str, float] = field(default_factory=dict)  # by kind of FORMED: factor of words without a slot

    def find(self, word: str, vocabulary: Container[str]) -> Evidence | None:
        """Return the evidence of the source token `word`, or None if there is none. vocabulary: the source dictionary.

        Raises:
            OptionError: a pattern takes far too long.
        """
        if not word or word in SPECIALS:
            return None
        form = form_of(word, vocabulary)
        for kind in self.kinds:
            if kind == "mapped" and word in self.mapping:
                return Evidence(kind, self.mapping[word])
            if kind == "patterns" and self.user_patterns is not None and self.user_patterns.features(word):
                return Evidence(kind, (word,))
            if kind == form or (kind == "copies" and _can_be_copied(word, vocabulary)):
                return Evidence(kind, (word,))
        return None

    @cached_property
    def user_patterns(self) -> UserPatterns | None:
        """The user's compiled expressions, which have a time limit."""
        return UserPatterns(dict(self.patterns), "the prior's patterns") if self.patterns else None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of slots in addition to those of their words."""
        several = any(len(words) > 1 for words in self.mapping.values())
        return (*(features()[kind] for kind in self.kinds), UNKNOWN, *((NEXT,) if several else ()))

    @property
    def asked(self) -> tuple[str, ...]:
        """The kinds of strings that systems require."""
        return tuple(kind for kind in self.kinds if kind not in FEATURES)

    @property
    def identity(self) -> str:
        """The description on which a model's weights depend: everything but the mapping, which may grow."""
        return json.dumps(self.description() | {"mapping": {}}, sort_keys=True)

    def description(self) -> dict[str, Any]:
        """Return the description for the prior's JSON."""
        return {
            "kinds": list(self.kinds),
            "weight": self.weight,
            "mapping": {source: list(words) for source, words in sorted(self.mapping.items())},
            "patterns": dict(self.patterns),
            **({"unsupported": dict(self.unsupported)} if self.unsupported else {}),  # earlier priors lack it
        }

    @classmethod
    def described(cls, description: object) -> EvidenceRules:
        """Return the rules of a `description`. Raises ValueError if it is invalid."""
        parts = [description.get(name) for name in ENTRIES] if isinstance(description, dict) else [None] * len(ENTRIES)
        kinds, weight, mapping, patterns = parts
        unsupported = description.get("unsupported", {}) if isinstance(description, dict) else None
        if not (
            _are_strings(kinds)
            and isinstance(weight, float)
            and isinstance(mapping, dict)
            and all(_are_strings(words) for words in mapping.values())
            and isinstance(patterns, dict)
            and _are_strings(list(patterns.values()))
            and isinstance(unsupported, dict)
            and all(isinstance(factor, float) for factor in unsupported.values())
        ):
            raise ValueError(f"the evidence is described by something else than {', '.join(ENTRIES)}")
        table = {source: tuple(words) for source, words in mapping.items()}
        rules = cls(tuple(kinds), table, patterns, weight, unsupported)
        rules.check()
        return rules

    def check(self) -> None:
        """Raise ValueError if the rules are invalid."""
        all_features = features()
        if not self.kinds or self.kinds != tuple(kind for kind in all_features if kind in self.kinds):
            reason = next(filter(None, map(registry.lost, self.kinds)), f"expected some of {', '.join(all_features)}")
            raise ValueError(f"the evidence is of the kinds {list(self.kinds)}, {reason}")
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"the evidence has the weight {self.weight}, which is none")
        if not all(kind in FORMED and 0.0 <= factor <= 1.0 for kind, factor in self.unsupported.items()):
            raise ValueError(f"the weights of words without evidence are invalid: {dict(self.unsupported)}")
        if bool(self.mapping) != ("mapped" in self.kinds) or ("patterns" in self.kinds and not self.patterns):
            raise ValueError("the evidence and its mapping or patterns do not belong together")
        for source, words in self.mapping.items():
            if not (words and all(map(is_token, (source, *words)))):
                raise ValueError(f"the evidence maps {source!r} to {list(words)}, expected words without blanks")
        try:
            _ = self.user_patterns
        except OptionError as error:
            raise ValueError(str(error)) from None


def form_of(word: str, vocabulary: Container[str]) -> str | None:
    """Return which of FORMED a word is by its form. `vocabulary`: the dictionary of its language."""
    if _ESCAPE.fullmatch(word):
        return None
    return next((kind for kind, matches in _FORMS.items() if matches(word, vocabulary)), None)


def is_token(word: str) -> bool:
    """Return whether a word can be a token of a text: not empty, without blanks, and no special symbol."""
    return word.split() == [word] and word not in SPECIALS


def _can_be_copied(word: str, vocabulary: Container[str]) -> bool:
    return word not in vocabulary and any(map(str.isalpha, word)) and not _ESCAPE.fullmatch(word)


def _is_date(word: str) -> bool:
    """Return whether a word has day, month and year in a common order. A year has four digits, or two at the end."""
    match = _DATE.fullmatch(word)
    if match is None:
        return False
    first, middle, last = match[1], match[3], match[4]
    if len(first) == 4:  # 2024-01-31
        return len(last) <= 2 and _day_and_month(int(middle), int(last))
    return len(first) <= 2 and len(last) in (2, 4) and _day_and_month(int(first), int(middle))


def _day_and_month(first: int, second: int) -> bool:
    """Return whether two numbers can be a day and a month, in either order."""
    return 1 <= min(first, second) <= 12 and 1 <= max(first, second) <= 31


def _is_address(word: str) -> bool:
    if _NAMED.fullmatch(word):
        return any(map(str.isalpha, word))
    return any(form.fullmatch(word) for form in (_ADDRESS, _MAIL, _SITE))


def _is_name(word: str, vocabulary: Container[str]) -> bool:
    capitalised = word[:1].isupper() or word[:1].istitle()
    return capitalised and sum(map(str.isalpha, word)) > 1 and word.lower() not in vocabulary  # `I` is no name


# kinds that the form of a target word shows, too; the first match counts
_FORMS: Mapping[str, Callable[[str, Container[str]], bool]] = {
    "dates": lambda word, _: _is_date(word),
    "numbers": lambda word, _: NUMBER.fullmatch(word) is not None,
    "urls": lambda word, _: _is_address(word),
    "codes": lambda word, _: any(map(str.isdecimal, word)),
    "names": _is_name,
}
FORMED = tuple(kind for kind in KINDS if kind in _FORMS)


def _are_strings(values: object) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


REPEATED = "repeated"
# column names in the first row of a table; short codes of languages may be words (it, es, is)
SOURCE_NAMES, TARGET_NAMES = ("source", "src", "sl", "term", "token"), ("target", "tgt", "trg", "tl", "translation")
LANGUAGES = [name for name in CODES if len(name) > 3]
HEADER = (*SOURCE_NAMES, *LANGUAGES), (*TARGET_NAMES, *LANGUAGES)


def read_evidence_map(
    path: Path | str, form: str | None = None, header: Sequence[Container[str]] = HEADER
) -> dict[str, tuple[str, ...]]:
    """Return a mapping of source tokens to target words. Repeated rows and a header are skipped.

    `form`, `header`: as in files/text_lines.py, or () for a file without a header.

    Raises:
        DataError: with file and line, for a row of another shape, an empty side, a source of several tokens, a special
            symbol, a source with two different targets, or a file without rows.
    """
    mapping: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    count = ReadCount(path, "rows", form)
    for number, (source, text) in count.rows({2}, "`source token<TAB>target words`", header=header):
        where, target = place(path, number), tuple(text.split())
        check_not_blank(source, where, "the source side")
        check_not_blank(text, where, "the target side")
        if source.split() != [source]:
            raise DataError(
                f"{where}: expected one source token, found a blank in {shown(source)}; only single tokens can be "
                "mapped: fix or remove the row"
            )
        for word in (source, *target):
            check_not_blank(word, where, "a word")
            if not is_token(word):
                raise DataError(f"{where}: {word!r} is a special symbol, not a word; fix or remove the row")
        if mapping.setdefault(source, target) != target:
            raise DataError(
                f"{where}: {source!r} was mapped to {' '.join(mapping[source])!r} in line {lines[source]}, found "
                f"{' '.join(target)!r} here; remove one of them"
            )
        if lines.setdefault(source, number) == number:
            count.read += 1
        else:
            count.left_out[REPEATED] += 1
    if not mapping:
        raise DataError(f"{path}: expected rows `source token<TAB>target words`, found none; is it the right file?")
    return mapping
