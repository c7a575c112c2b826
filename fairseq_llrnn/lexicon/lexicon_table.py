r"""The lexicon as one table of all features of words, from all sources. Its file can be read, edited and compared.

    form    lemma  UPOS  FEATS                    count  source   guessed  values
    chats   chat   NOUN  Gender=Masc|Number=Plur      3  conllu   no       _
    chats   _      _     POS=NOUN|Number=Plur@0.75    3  guess    yes      _
    paris   _      _     _                           12  values   no       Population=Log@6.3

A row is an analysis of a form. Several rows are several analyses. UPOS and FEATS are as in CoNLL-U, `_` is an empty
cell. A value other than 1 follows its feature: `Number=Plur@0.75`. `values` are features in the same notation that do
not depend on spelling and are never guessed: real values, shared lemmas, morphemes. `count` is the frequency of the
analysis in its treebank or table, or else of the form in the text, or else 0. `source` is the option, or the package
with its language (`simplemma:cs`). Rows of the source `guess` replace all other analyses of their form.

A backslash escapes itself, one of | = , @ in names, and \t, \n, \r. Rows are sorted by their cells. Words are in the
Unicode form of their sources (mostly NFC).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TextIO

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_COUNT, LARGEST_VALUE, read_count
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, place, shown
from fairseq_llrnn.lexicon.features import Lexicon, as_upos, feature_group, pos_feature, what_is_wrong
from fairseq_llrnn.lexicon.held_out import HeldOut
from fairseq_llrnn.lexicon.morphemes import GROUPS as MORPHEMES

if TYPE_CHECKING:
    from fairseq_llrnn.lexicon.languages.language_source import Gathered, Spelling

COLUMNS = ("form", "lemma", "UPOS", "FEATS", "count", "source", "guessed", "values")
EXPECTED = f"{len(COLUMNS)} columns ({', '.join(COLUMNS)}) separated by tabs"
HEADER = "\t".join(COLUMNS)
NOTHING, GUESS = "_", "guess"
REPEATED = "repeated"
ANSWERS = {"yes": True, "no": False}
POS = "POS"

Features = tuple[tuple[str, float], ...]  # names and values, in the order of the names
_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_PLAIN = {"\\t": "\t", "\\n": "\n", "\\r": "\r"}
_ESCAPE = re.compile(r"\\(.)")


@dataclass(frozen=True)
class ReadRequest:
    """The arguments of a reader of words: `read(place, request)` yields rows with their counts (readers/)."""

    spelling: Spelling  # of forms and lemmas in the text
    words: Collection[str] | None = None  # of the text, for readers that look words up; None: all words
    notes: Counter[str] = field(default_factory=Counter)  # gets remarks with their numbers
    held_out: HeldOut = field(default_factory=HeldOut)  # gets the sentences of treebanks


class Row(NamedTuple):
    """One analysis of a form."""

    form: str
    lemma: str = ""  # "" if unknown
    features: Features = ()  # from UPOS and FEATS
    source: str = NOTHING
    guessed: bool = False
    values: Features = ()

    @property
    def is_word(self) -> bool:
        """Whether the form is one word, not a phrase. Only terms use phrases."""
        return not any(map(str.isspace, self.form))


@lru_cache(maxsize=65536)
def _unit_features(names: tuple[str, ...]) -> Features:
    return tuple((name, 1.0) for name in sorted(set(names)))


def as_features(features: Mapping[str, float] | Iterable[str]) -> Features:
    """Return names, or names and values, in the format of a row. Equal ones are one object."""
    if not isinstance(features, Mapping):
        return _unit_features(tuple(features))
    if all(value == 1.0 for value in features.values()):
        return _unit_features(tuple(features))
    return tuple(sorted((name, float(value)) for name, value in features.items()))


@dataclass(frozen=True)
class Coverage:
    """Numbers of the dictionary's words, and of those that the lexicon has."""

    text: tuple[int, int]  # (covered, all) of the words of the counted text
    others: tuple[int, int]  # of all others

    @property
    def differs(self) -> bool:
        """Whether the lexicon covers the text's words better than the others."""
        return self.text[0] * self.others[1] > self.others[0] * self.text[1]


@dataclass(frozen=True)
class Completed:
    """The coverage of a text's words by a table, and its guesses."""

    coverage: Coverage
    entries: int = 0  # words with features that are not guessed
    guessed: frozenset[str] = frozenset()  # words of the text whose features are guessed
    groups: tuple[str, ...] = ()  # of guessed features
    accuracy: Mapping[str, float] = field(default_factory=dict)  # of guesses for known words: WHOLE, and by group
    added: int = 0  # words that have features only from guesses
    crossed: int = 0  # guessed words of the text that have analyses
    package: str | None = None  # use of a package's analyses: UNITED, KINDS or LEFT_OUT; None: there are none
    without: float | None = None  # accuracy (WHOLE) without these analyses, or with them if they are LEFT_OUT
    beginnings: tuple[str, ...] = ()  # groups of features that are guessed from the beginnings of words


class Table:
    """Rows with their counts, in order of insertion, and remarks."""

    def __init__(self, rows: Iterable[tuple[Row, int]] = ()) -> None:
        self.rows: dict[Row, int] = {}
        self.notes: Counter[str] = Counter()  # remarks with their numbers
        self.completed: Completed | None = None  # coverage and guesses
        self.packages: Gathered | None = None  # findings in the packages of a language
        for row, count in rows:
            self.add(row, count)

    def add(self, row: Row, count: int = 0) -> None:
        """Add a row. Counts of equal rows add up."""
        self.rows[row] = self.rows.get(row, 0) + count

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, chosen: Callable[[Row], bool]) -> Table:
        """Return a table of the chosen rows."""
        return Table((row, count) for row, count in self.rows.items() if chosen(row))

    def _words(self) -> Iterator[Row]:
        return (row for row in self.rows if row.is_word)

    def lexicon(self, values: bool = True) -> Lexicon:
        """Return the features of words: of their guesses, or else of all their analyses, and `values` if requested."""
        lexicon, guessed = Lexicon(), {row.form for row in self.rows if row.source == GUESS}
        for row in self._words():
            if row.source == GUESS or (row.features and row.form not in guessed):
                lexicon.add(row.form, dict(row.features))
            features = {name: value for name, value in row.values if values and feature_group(name) not in MORPHEMES}
            if features:
                lexicon.add(row.form, features)
        return lexicon

    def morphemes(self) -> dict[str, dict[str, float]] | None:
        """Return the morphemes of each word, or None if there are none."""
        morphemes: dict[str, dict[str, float]] = {}
        for row in self._words():
            if features := {name: value for name, value in row.values if feature_group(name) in MORPHEMES}:
                morphemes.setdefault(row.form, {}).update(features)
        return morphemes or None

    def keep_words(self, counts: Mapping[str, int]) -> None:
        """Keep only the rows of words in `counts`, and of other forms of their lemmas. Replace counts of 0."""
        lemmas = {row.lemma for row in self.rows if row.form in counts} - {""}
        self.rows = {
            row: count or counts.get(row.form, 0)
            for row, count in self.rows.items()
            if row.form in counts or row.lemma in lemmas
        }

    # ---- the file ---------------------------------------------------------------------------------------------------

    def write(self, file: TextIO) -> None:
        """Write all rows, sorted."""
        file.write(f"{HEADER}\n")
        for cells in sorted(_cells(row, count) for row, count in self.rows.items()):
            file.write("\t".join(cells) + "\n")


def _cells(row: Row, count: int) -> tuple[str, ...]:
    tags = [name for name, value in row.features if name.startswith("POS:") and value == 1.0]
    tag = tags[0][4:] if len(tags) == 1 else ""
    if tag in ("", NOTHING) or as_upos(tag) != tag or any(n.startswith("POS:") and v != 1.0 for n, v in row.features):
        tag = ""
    feats = tuple(feature for feature in row.features if not (tag and feature[0] == tags[0]))
    return (
        _escaped(row.form), _escaped(row.lemma) or NOTHING, _escaped(tag) or NOTHING, written(feats), str(count),
        _escaped(row.source), "yes" if row.guessed else "no", written(row.values),
    )  # fmt: skip


def _escaped(text: str, marks: str = "") -> str:
    for mark, replacement in _ESCAPED.items():
        text = text.replace(mark, replacement)
    for mark in marks:
        text = text.replace(mark, f"\\{mark}")
    return text


@lru_cache(maxsize=65536)
def written(features: Features) -> str:
    """Return the text of a cell: `Gender=Fem,Masc|Number=Plur@0.75`, or `_`. Groups are in the order of UD, ignoring
    case.
    """
    groups: dict[str, list[str]] = {}
    for name, value in features:
        group, _, value_name = name.partition(":")
        share = "" if value == 1.0 else f"@{value!r}"
        groups.setdefault(group, []).append(_escaped(value_name, "|=,@") + share)
    ordered = sorted(groups, key=lambda group: (group.lower(), group))
    return "|".join(f"{_escaped(group, '|=,@')}={','.join(groups[group])}" for group in ordered) or NOTHING


@lru_cache(maxsize=65536)
def parsed(cell: str) -> Features:
    """Parse a cell of `written`. Raises ValueError for malformed text. The caller adds the place."""
    if cell == NOTHING:
        return ()
    features: dict[str, float] = {}
    for part in _split(cell, "|"):
        group, *values = _split(part, "=")
        for value in _split(values[0], ",") if len(values) == 1 else [""]:
            value_name, *share = _split(value, "@")
            name = f"{_unescaped(group)}:{_unescaped(value_name)}"
            if not group or ":" in _unescaped(group) or not value_name or len(share) > 1:
                detail = "" if part == cell else f" with the part {shown(part)}"
                raise ValueError(
                    "expected _ or Name=Value pairs joined by |, such as Gender=Fem|Number=Sing, or Number=Sing@0.5; "
                    f"found {shown(cell)}{detail}"
                )
            if reason := what_is_wrong(name):
                raise ValueError(reason)
            if name in features:
                raise ValueError(f"expected each feature once, found {shown(f'{group}={value_name}')} again")
            features[name] = _number(share[0], name) if share else 1.0
    return as_features(features)


def _number(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) <= LARGEST_VALUE:  # NaN is not
        raise ValueError(
            f"expected a finite number of at most {LARGEST_VALUE:,.0f} as value of {name!r}, found {shown(text)}"
        )
    return value


def _split(text: str, mark: str) -> list[str]:
    """Split at each `mark` without a backslash before it."""
    if "\\" not in text:
        return text.split(mark)
    return re.findall(rf"(?:\A|\{mark})((?:\\.?|[^\\{mark}])*)", text, re.DOTALL)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: _PLAIN.get(match[0], match[1]), text) if "\\" in text else text


def iter_rows(count: ReadCount, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[Row, int]]:
    """Yield the rows of a file after its header, each once, as written.

    Args:
        count: of the file.
        lines: after the header, with their numbers.

    Raises:
        DataError: with file and line, a malformed row.
    """
    seen: set[Row] = set()
    for number, cells in count.rows({len(COLUMNS)}, EXPECTED, lines=lines):
        location = place(count.file, number)
        form, lemma, tag, feats, count_text, source, guessed, values = cells
        form = _unescaped(form)
        check_not_blank(form, location, "column 1 (form)")
        counted = read_count(count_text) if count_text.isascii() else None
        if counted is None:
            raise DataError(
                f"{location}: expected a count up to {LARGEST_COUNT:,} in column 5, found {shown(count_text)}; give a "
                "number, or 0"
            )
        if guessed not in ANSWERS:
            raise DataError(f"{location}: expected yes or no in column 7 (guessed), found {shown(guessed)}; fix it")
        try:
            features = parsed(feats or NOTHING)
            if tag not in (NOTHING, ""):
                name = pos_feature(as_upos(_unescaped(tag)))
                features = as_features({**dict(features), name: 1.0})
            row = Row(
                form, "" if lemma == NOTHING else _unescaped(lemma), features, _unescaped(source) or NOTHING,
                ANSWERS[guessed], parsed(values or NOTHING),
            )  # fmt: skip
        except ValueError as error:
            raise DataError(f"{location}: {error}; fix the row") from None
        if row in seen:
            count.left_out[REPEATED] += 1
            continue
        seen.add(row)
        count.read += 1
        yield row, counted
    if not seen:
        raise DataError(f"{count.file}: expected rows with {', '.join(COLUMNS)}, found none; is the file empty?")
