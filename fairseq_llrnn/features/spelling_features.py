r"""Features of a word from its spelling: its shape, its suffix, and the user's own regular expressions.

Shapes and suffixes cover words that no lexicon lists. `Shape:SmallNumber` is a real value that falls as the number
grows, so that a model can prefer small numbers over large ones without having seen either (Dymetman & Xiao 2016, §3).

`refused` rejects expressions that call their own groups, and repeats that would fill the memory. The `regex` package
expands repeats, and follows `(?R)` forever. The time limit of a match does not stop this before the memory is full. So
an expression is checked before it is compiled. The check is simpler than the package's parser, for example inside
comments of `(?x)`, and there it counts too much.

`UserPatterns` are read from a TOML file with one table:

    [patterns]
    ordinal = '\d+(er|re|e|es)'       # 3e, 1er -> Pattern:ordinal
    url = 'https?://.*|www\..*'

A word has `Pattern:ordinal` if the *whole* word matches. Expressions are those of Python's `re`. They are run by the
`regex` package, which supports the same language and more (`\p{Lu}`) and can stop a match. Otherwise an expression with
exponentially many paths would hang a command without a message.
"""

from __future__ import annotations

import re
import reprlib
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import regex  # type: ignore[import-untyped]

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.text_lines import ReadCount, is_letter, shown
from fairseq_llrnn.files.toml import read_toml

# 12 · 1.234,5 · 1'000 · -3 · ,5 ; a separator is between digits, except for a leading decimal point
NUMBER = re.compile(r"[+\-\u2212]?[.,]?\d+(?:[.,'\u2019 \u00a0\u2009\u202f]\d+)*")
FOUR_DIGITS = re.compile(r"\d{4}")
ONE_OR_TWO_DIGITS = re.compile(r"\d{1,2}")
INNER_HYPHEN = re.compile(r"(?<=(.))[-\u2010\u2011]\w")
_IN_WORD = re.compile(r"\w")

FIRST_YEAR, LAST_YEAR = 1000, 2100
# Shape:SmallNumber falls linearly from 1 for 0 to 0 for this number; above it, the feature is absent
SMALL_NUMBER_END = 100

SUFFIX_LENGTHS = (2, 3, 4)
MIN_STEM_LENGTH = 2
DEFAULT_SUFFIX_FLOOR = 20


def shape_features(word: str) -> dict[str, float]:
    """Return features of the group `Shape`. The two about capitals need a cased text."""
    features: dict[str, float] = {}
    if NUMBER.fullmatch(word):
        features["Shape:Number"] = 1.0
        if FOUR_DIGITS.fullmatch(word) and FIRST_YEAR <= int(word) <= LAST_YEAR:
            features["Shape:Year"] = 1.0
        if ONE_OR_TWO_DIGITS.fullmatch(word):
            features["Shape:SmallNumber"] = 1.0 - int(word) / SMALL_NUMBER_END
    if word[:1].isupper() or word[:1].istitle():
        features["Shape:Capitalised"] = 1.0
    if word.isupper() and sum(character.isupper() for character in word) >= 2:
        features["Shape:AllCaps"] = 1.0
    if any(is_letter(hyphen[1]) or _IN_WORD.match(hyphen[1]) for hyphen in INNER_HYPHEN.finditer(word)):
        features["Shape:Hyphenated"] = 1.0
    # Unicode separates symbols such as $ + = ° from punctuation; for a text they are the same kind
    if word and all(unicodedata.category(character)[0] in "PS" for character in word):
        features["Shape:Punctuation"] = 1.0
    return features


def suffix_features(words: Sequence[str], floor: int = DEFAULT_SUFFIX_FLOOR) -> list[dict[str, float]]:
    """Return the features `Suffix:ées` of each word of a vocabulary: its endings of 2 to 4 letters, lower-cased.

    Only alphabetic words have suffixes, and only after at least MIN_STEM_LENGTH characters. A suffix of fewer than
    `floor` different words of the vocabulary is left out: it would identify words, not a class.
    """
    return list(iter_suffix_features(words, floor))


def iter_suffix_features(words: Sequence[str], floor: int) -> Iterator[dict[str, float]]:
    """Yield the features of `suffix_features`, word by word."""
    types = Counter(suffix for word in set(words) for suffix in suffixes(word))
    names = {suffix: f"Suffix:{suffix}" for suffix, num_words in types.items() if num_words >= floor}
    for word in words:
        yield {names[suffix]: 1.0 for suffix in suffixes(word) if suffix in names}


def suffixes(word: str) -> list[str]:
    """Return the endings of a word, whether or not others share them."""
    word = word.lower()
    if not all(map(is_letter, word)):
        return []
    return [word[-length:] for length in SUFFIX_LENGTHS if len(word) >= length + MIN_STEM_LENGTH]


MOST_PIECES = 100_000  # characters and groups when repeats are written out: below 0.1 GB

# an escaped character, a set of characters, the beginning of a group, its end, a repeat, or anything else
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<call>\(\?(?:R|[+-]?\d|&|P[>&]))|(?P<begin>\()|(?P<end>\))"
    r"|\{(?P<least>[0-9]*)(?:,[0-9]*)?\}|.",
    re.DOTALL,
)
_VERBOSE = re.compile(r"\(\?[a-zA-Z0-9-]*x")
_BROKEN_REPEAT = re.compile(r"\{[0-9,]*[\s#]")  # in (?x), the package parses `{ 2 0 }` as 20


def refused(expression: str) -> str | None:
    """Return why an expression must not be compiled, for a message, or None."""
    is_verbose = _VERBOSE.search(expression) is not None
    if is_verbose and _BROKEN_REPEAT.search(expression):
        return "has a blank or a comment in a repeat; write repeats as {3} or {2,5}, also after (?x)"
    groups = [0]  # the pieces of each open group
    last = 0  # the pieces that a repeat would repeat
    product = 1
    for piece in _PIECE.finditer(expression):
        if piece["call"] is not None:
            return "calls its own group, which may never end; write the content of the group instead"
        if piece["begin"] is not None:
            groups.append(0)
            last = 0
        elif piece["end"] is not None:
            last = groups.pop() + 1
            groups = groups or [0]
            groups[-1] += last
        elif piece["least"] is not None:
            times = int(piece["least"].lstrip("0")[:9] or 0)
            groups[-1] += last * max(times - 1, 0)
            last *= max(times, 1)
            product *= max(times, 1)
        else:
            groups[-1] += 1
            last = 1
    pieces = len(expression) * product if is_verbose else sum(groups)
    if pieces > MOST_PIECES:
        return f"has more than {MOST_PIECES:,} characters when its repeats are written out; repeat less, or use + or *"
    return None


# A pattern has this processor time, and gains a little with each word, so that a large vocabulary does not stop it (an
# ordinary match takes about a microsecond).
SECONDS_AT_ONCE = 1.0
SECONDS_PER_WORD = 1e-4

HOW_TO_WRITE = "expected a table [patterns] with lines  name = 'regular expression'"


class UserPatterns:
    """Named regular expressions. Build them with `UserPatterns.load(path)`."""

    def __init__(self, expressions: dict[str, str], source: str) -> None:
        """`source` names the origin of the expressions in errors."""
        if not expressions:
            raise OptionError(f"{source}: it contains no pattern; {HOW_TO_WRITE}")
        self._source = source
        self._patterns = {name: self._compiled(name, expression) for name, expression in expressions.items()}
        self._seconds_left = dict.fromkeys(expressions, SECONDS_AT_ONCE)

    @classmethod
    def load(cls, path: Path | str) -> UserPatterns:
        """Read the TOML file. Raises OptionError for any error in it."""
        try:
            table = read_toml(path)
        except OSError as error:
            raise OptionError(f"{path}: cannot be read: {error.strerror or error}; {HOW_TO_WRITE}") from error
        except UnicodeDecodeError as error:
            raise OptionError(
                f"{path}: expected UTF-8, found the byte 0x{error.object[error.start]:02x} at byte "
                f"{error.start + 1}; convert the file to UTF-8"
            ) from error
        except ValueError as error:
            raise OptionError(
                f"{path}: is not TOML: {error}; {HOW_TO_WRITE} (single quotes keep backslashes)"
            ) from error
        if set(table) != {"patterns"} or not isinstance(table["patterns"], dict):
            names = ", ".join(map(repr, table)) or "nothing"
            raise OptionError(f"{path}: {HOW_TO_WRITE}, and nothing else; found {names}")
        for name, expression in table["patterns"].items():
            if not isinstance(expression, str):
                raise OptionError(
                    f"{path}: pattern {name!r} is {reprlib.repr(expression)}; expected a regular expression in quotes"
                )
        patterns = cls(table["patterns"], str(path))
        ReadCount(path, "patterns", None, len(table["patterns"]), len(patterns.names)).done()
        return patterns

    def _compiled(self, name: str, expression: str) -> regex.Pattern[str]:
        if not name or any(character.isspace() for character in name):
            raise OptionError(f"{self._source}: {name!r} cannot name a pattern; use a name without spaces")
        reason = refused(expression)
        if reason is not None:
            raise OptionError(f"{self._source}: pattern {name!r} ({shown(expression)}) {reason}")
        try:
            return regex.compile(expression)
        except regex.error as error:
            position = "" if error.pos is None else f" at character {error.pos + 1}"
            raise OptionError(
                f"{self._source}: pattern {name!r} is no regular expression: {error.msg}{position} of "
                f"{expression!r}"
            ) from error
        except (RecursionError, OverflowError, MemoryError) as error:
            raise OptionError(
                f"{self._source}: pattern {name!r} is too deep or too large to compile: {expression!r}; "
                "simplify it"
            ) from error

    @property
    def names(self) -> list[str]:
        """The names in the order of the file."""
        return list(self._patterns)

    @property
    def expressions(self) -> dict[str, str]:
        """name -> expression, as written."""
        return {name: str(pattern.pattern) for name, pattern in self._patterns.items()}

    def features(self, word: str) -> dict[str, float]:
        """Return `Pattern:name` for every pattern that matches the whole word.

        Raises:
            OptionError: a pattern takes too long.
        """
        return {f"Pattern:{name}": 1.0 for name in self._patterns if self._matches(name, word)}

    def check_used(self, words: Iterable[str]) -> None:
        """Raise OptionError if a pattern matches no word of the vocabulary."""
        unused = set(self._patterns)
        for word in words:
            unused = {name for name in unused if not self._matches(name, word)}
            if not unused:
                return
        name = next(name for name in self._patterns if name in unused)
        raise OptionError(
            f"{self._source}: pattern {name!r} ({self._patterns[name].pattern!r}) matches no word of the "
            "vocabulary; a pattern must match the whole word (and lower-case letters if the text is "
            "lower-cased); fix or remove it"
        )

    def _matches(self, name: str, word: str) -> bool:
        seconds = self._seconds_left[name]
        start = time.process_time()
        try:
            matches = self._patterns[name].fullmatch(word, timeout=seconds) is not None
        except TimeoutError as error:
            raise OptionError(
                f"{self._source}: pattern {name!r} ({self._patterns[name].pattern!r}) takes too long, "
                f"stopped at the word {word!r}; repeats inside repeats, such as (a+)+, try exponentially "
                "many ways: rewrite the expression"
            ) from error
        elapsed = time.process_time() - start
        # at least the time of one word remains for the next match
        self._seconds_left[name] = min(SECONDS_AT_ONCE, max(seconds - elapsed, 0.0) + SECONDS_PER_WORD)
        return matches
