"""The affix rules of a dictionary of hunspell, FILE.aff (hunspell.py): what forms a word with flags has.

Files are untrusted: a file has at most MOST_RULES rules, a word at most MOST_FORMS forms, found by at most MOST_TRIES
rules; nothing is executed, and conditions are compared letter by letter.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import in_form, numbered, opened, place, shown

MOST_FORMS = 2_000  # of a word, the first ones; only languages such as Hungarian have more
MOST_TRIES = 100_000
MOST_RULES = 200_000
# of SET
ENCODING = re.compile(r"(?i)(utf-?8|(us-)?ascii|iso-?8859-\d{1,2}|koi8-[ru]|(microsoft-)?cp-?125\d|tis620(-2533)?)")
FLAG_KINDS = ("short", "long", "num", "utf-8")
SPECIAL = {
    "NEEDAFFIX": "bare", "PSEUDOROOT": "bare", "ONLYINCOMPOUND": "bare", "FORBIDDENWORD": "forbidden",
    "CIRCUMFIX": "circumfix",
} | dict.fromkeys(
    (
        "COMPOUNDFLAG", "COMPOUNDBEGIN", "COMPOUNDLAST", "COMPOUNDEND", "COMPOUNDMIDDLE", "COMPOUNDPERMITFLAG",
        "COMPOUNDFORBIDFLAG", "COMPOUNDROOT", "FORCEUCASE", "KEEPCASE", "LEMMA_PRESENT", "NOSUGGEST", "SUBSTANDARD",
        "SYLLABLENUM", "WARN",
    ),
    "of no use here",
)  # fmt: skip
PATTERNS = ("COMPOUNDRULE", "CHECKCOMPOUNDPATTERN")  # have flags among other signs
VARIATION_SELECTORS = "\ufe0e\ufe0f"  # behind a sign, that it be shown as text or as a picture
SAME = "take .dic and .aff of the same dictionary"
Alias = TypeVar("Alias")
NUMBER = re.compile(r"\s*0*([1-9]\d{0,8}|0)(?!\d)", re.ASCII)  # what stands behind it does not count


@dataclass(frozen=True)
class Rule:
    """An affix."""

    crosses: bool
    strip: str
    add: str
    condition: tuple[tuple[bool, str], ...]  # letters in order: whether it is none of these, and which
    flags: frozenset[str]

    def of(self, word: str, is_suffix: bool) -> str | None:
        """The form; None where the rule does not apply. Nothing is left of no word."""
        fits = word.endswith(self.strip) if is_suffix else word.startswith(self.strip)
        if not fits or len(word) <= len(self.strip) or len(word) < len(self.condition):
            return None
        first = len(word) - len(self.condition) if is_suffix else 0
        for at, (negated, letters) in enumerate(self.condition, first):
            if (word[at] in letters) == negated:
                return None
        if is_suffix:
            return word[: len(word) - len(self.strip)] + self.add
        return self.add + word[len(self.strip) :]


@dataclass
class _Table:
    """The rules of a flag, or the aliases, that a header announces."""

    where: str
    expected: int
    crosses: bool = False
    lines: int = 0


@dataclass
class Affixes:
    """What FILE.aff says."""

    encoding: str = "latin-1"
    flag_kind: str = "short"
    suffixes: dict[str, list[Rule]] = field(default_factory=dict)
    prefixes: dict[str, list[Rule]] = field(default_factory=dict)
    tables: dict[str, _Table] = field(default_factory=dict)  # by kind and flag, of the last header that was read
    aliases: list[frozenset[str]] = field(default_factory=list)  # AF
    morphology: list[str] = field(default_factory=list)  # AM
    special: dict[str, set[str]] = field(default_factory=dict)  # bare, forbidden, circumfix, … -> flags
    patterns: str = ""  # of compounds
    rules: int = 0
    cut: list[str] = field(default_factory=list)  # words that have more forms than were found
    words: Counter[frozenset[str]] = field(default_factory=Counter)  # by their flags
    _memo: dict[tuple[frozenset[str], bool], tuple[Rule, ...]] = field(default_factory=dict)
    _strips: dict[frozenset[str], frozenset[int]] = field(default_factory=dict)

    def has(self, flags: frozenset[str], what: str) -> bool:
        return not flags.isdisjoint(self.special.get(what, ()))

    def forms(self, word: str, flags: frozenset[str]) -> list[str]:
        """All forms of a word, itself first if it is one; the first MOST_FORMS of them, and then it is among `cut`."""
        forms = {} if self.has(flags, "bare") else {word: None}
        tries, is_cut = 0, False
        # word and forms: whether a prefix may come before it, flags that bring prefixes, whether of a circumfix, and
        # flags that bring one more suffix
        stems = [(word, True, flags, False, flags)]
        for depth in (1, 2):
            begin = 0 if depth == 1 else 1
            for stem, crosses, flags_of_stem, _, more in stems[begin:]:
                rules = self._rules(more, True)
                tries += len(rules)
                if is_cut := tries > MOST_TRIES or len(forms) > MOST_FORMS:
                    break
                for rule in rules:
                    form = rule.of(stem, True)
                    if form is None:
                        continue
                    both = self.has(rule.flags, "circumfix")
                    if not both and not self.has(rule.flags, "bare"):
                        forms[form] = None
                    stems.append((form, crosses and rule.crosses, flags_of_stem | rule.flags, both, rule.flags))
        for stem, crosses, flags_of_stem, both, _ in stems:
            rules = self._rules(flags_of_stem, False) if crosses else ()
            tries += len(rules)
            if is_cut := is_cut or tries > MOST_TRIES or len(forms) > MOST_FORMS:
                break
            for rule in rules:
                form = rule.of(stem, False)
                if form is None or not (rule.crosses or stem == word):
                    continue
                around = self.has(rule.flags, "circumfix")
                if around == both and not self.has(rule.flags, "bare"):
                    forms[form] = None
                # a prefix of the word itself may bring a suffix
                further = self._rules(rule.flags, True) if rule.crosses and stem == word else ()
                tries += len(further)
                for suffix in further:
                    whole = suffix.of(form, True) if suffix.crosses else None
                    fits = self.has(suffix.flags, "circumfix") == around
                    if whole is not None and fits and not self.has(suffix.flags, "bare"):
                        forms[whole] = None
        self.cut += [word] * (is_cut or len(forms) > MOST_FORMS)
        return list(forms)[:MOST_FORMS]

    def strips(self, flags: frozenset[str]) -> frozenset[int]:
        """How many letters the suffixes of a word with such flags can take away, the second ones too; 0 always.

        More than there can be, rather than fewer: a second suffix may take what the first has added, or not.
        """
        lengths = self._strips.get(flags)
        if lengths is None:
            brought = {flag for rule in self._rules(flags, False) for flag in rule.flags}
            first = self._rules(flags | brought, True)
            of_first = {(len(rule.strip), len(rule.add)) for rule in first}
            named = frozenset(flag for more in {rule.flags for rule in first} for flag in more)
            second = max((len(rule.strip) for rule in self._rules(named, True)), default=0)
            most = max((strip + max(0, second - add) for strip, add in of_first), default=0)
            lengths = frozenset(range(most + 1)) if second else frozenset({0} | {strip for strip, _ in of_first})
            self._strips[flags] = lengths
        return lengths

    def notes(self) -> list[str]:
        """What is worth telling when all words were read: those that are cut, and flags that nothing defines."""
        notes = []
        if self.cut:
            some = ", ".join(map(shown, self.cut[:3])) + (", …" if len(self.cut) > 3 else "")
            notes.append(
                f"{len(self.cut):,} words have too many forms ({some}): those behind {MOST_FORMS:,} are left out"
            )
        every = [rule for rules in (self.suffixes, self.prefixes) for some in rules.values() for rule in some]
        defined = {*self.suffixes, *self.prefixes}.union(*self.special.values())

        def unknown(flags: frozenset[str]) -> list[str]:
            return [flag for flag in flags - defined if flag not in self.patterns and flag not in VARIATION_SELECTORS]

        if lost := {flag for flags in (*self.words, *(rule.flags for rule in every)) for flag in unknown(flags)}:
            words = sum(count for flags, count in self.words.items() if unknown(flags))
            rules = sum(bool(unknown(rule.flags)) for rule in every)
            some = ", ".join(map(shown, sorted(lost)[:5])) + (", …" if len(lost) > 5 else "")
            notes.append(f"{words:,} words and {rules:,} affix rules have flags that no line defines ({some})")
        return notes

    def _rules(self, flags: frozenset[str], are_suffixes: bool) -> tuple[Rule, ...]:
        """Those that a set of flags names."""
        rules_of_flags = self._memo.get((flags, are_suffixes))
        if rules_of_flags is None:
            rules = self.suffixes if are_suffixes else self.prefixes
            rules_of_flags = tuple(rule for flag in sorted(flags) for rule in rules.get(flag, ()))
            self._memo[flags, are_suffixes] = rules_of_flags
        return rules_of_flags


def read_affixes(path: Path | str, form: str | None = None) -> Affixes:
    """The rules of a dictionary, read in a Unicode form. Raises DataError, with line."""
    affixes = Affixes()
    for number, line in iter_encoded(path, "latin-1"):  # what it is written in is written in it, in ASCII
        cells = line.split()
        if cells[:1] == ["SET"] and len(cells) > 1:
            affixes.encoding = _encoding(cells[1], place(path, number))
        elif cells[:1] == ["FLAG"]:
            affixes.flag_kind = cells[1].lower() if len(cells) > 1 else ""
            if affixes.flag_kind not in FLAG_KINDS:
                raise DataError(
                    f"{place(path, number)}: expected FLAG long, num or UTF-8, found {shown(line)}; correct the line"
                )
    plain = Affixes(flag_kind=affixes.flag_kind)  # by which flags are read that are no alias
    for number, line in iter_encoded(path, affixes.encoding, form):
        cells = line.split()
        if not cells or cells[0].startswith("#"):
            continue
        where = place(path, number)
        if cells[0] in SPECIAL and len(cells) > 1:
            affixes.special.setdefault(SPECIAL[cells[0]], set()).add(_flag(cells[1], affixes.flag_kind, where))
        elif cells[0] in PATTERNS:
            affixes.patterns += f" {line}"
        elif cells[0] in ("AF", "AM") and len(cells) > 1:
            if cells[0] not in affixes.tables:
                affixes.tables[cells[0]] = _Table(where, _number(cells[1], f"{cells[0]} number", cells, where))
                continue
            affixes.tables[cells[0]].lines += 1
            if cells[0] == "AF":
                affixes.aliases.append(_flags(cells[1], plain, where))
            else:
                affixes.morphology.append(" ".join(cells[1:]))
        elif cells[0] in ("SFX", "PFX"):
            _add_rule(cells, affixes, where)
    for name, table in affixes.tables.items():
        if table.lines != table.expected:
            raise DataError(
                f"{table.where}: expected {table.expected:,} lines `{name} …` below, as it says, found "
                f"{table.lines:,}; correct the number, or copy the file again"
            )
    return affixes


def _number(text: str, shape: str, cells: list[str], where: str) -> int:
    if not (text.isdecimal() and len(text) < 10):
        raise DataError(f"{where}: expected `{shape}`, found {shown(' '.join(cells))}; correct the line")
    return int(text)


def _add_rule(cells: list[str], affixes: Affixes, where: str) -> None:
    if len(cells) < 4:
        raise DataError(
            f"{where}: expected `{cells[0]} flag Y|N number` or `{cells[0]} flag strip add condition`, found "
            f"{shown(' '.join(cells))}; correct the line"
        )
    kind, named, strip, add = cells[:4]
    flag = _flag(named, affixes.flag_kind, where)
    name = f"{kind} {flag}"
    table = affixes.tables.get(name)
    if table is None or (table.lines == table.expected and strip in ("Y", "N") and add.isdecimal()):
        # a flag may have several tables, which add up, each with a header of its own
        if strip not in ("Y", "N") or not add.isdecimal():
            raise DataError(
                f"{where}: expected the header of rule {shown(flag)}, `{kind} {flag} Y|N number`, found "
                f"{shown(' '.join(cells))}; add it before the rule's lines"
            )
        affixes.tables[name] = _Table(where, _number(add, f"{kind} {flag} Y|N number", cells, where), strip == "Y")
        return
    table.lines += 1
    affixes.rules += 1
    if affixes.rules > MOST_RULES:
        raise DataError(f"{where}: expected at most {MOST_RULES:,} rules, found more; take a smaller dictionary")
    text, flags = split_flags(add, affixes, where, word=False)
    rule = Rule(
        table.crosses, "" if strip == "0" else strip, "" if text == "0" else text,
        _condition(cells[4] if len(cells) > 4 else ".", where), flags,
    )  # fmt: skip
    (affixes.suffixes if kind == "SFX" else affixes.prefixes).setdefault(flag, []).append(rule)


def _condition(text: str, where: str) -> tuple[tuple[bool, str], ...]:
    """`[^ij]a` as what each letter is or is not; `.` is any."""
    characters = []
    rest = "" if text == "." else text
    while rest:
        if rest[0] == "[":
            letters, bracket, rest = rest[1:].partition("]")
            if not bracket:
                raise DataError(f"{where}: expected ] behind [ in the condition, found {shown(text)}; correct the line")
            characters.append((letters.startswith("^"), letters.removeprefix("^")))
        else:
            characters.append((True, "") if rest[0] == "." else (False, rest[0]))
            rest = rest[1:]
    return tuple(characters)


def _encoding(name: str, where: str) -> str:
    plain = name.lower().removeprefix("microsoft-").removesuffix("-2533").replace("iso8859", "iso-8859")
    try:
        if ENCODING.fullmatch(name):
            return codecs.lookup(plain).name
    except LookupError:
        pass
    raise DataError(
        f"{where}: expected a character set such as UTF-8 or ISO8859-2, found {shown(name)}, which is none of those "
        "that are read; convert both files to UTF-8, and say SET UTF-8"
    )


def iter_encoded(path: Path | str, encoding: str, form: str | None = None) -> Iterator[tuple[int, str]]:
    """Numbers and lines, in a Unicode form. Raises DataError as `files.text_lines.decoded`."""
    with opened(path) as (source, _):
        for number, line in numbered(source, path, encoding, f"SET of FILE.aff says so; {SAME}"):
            yield number, in_form(line, form)


def named_by(text: str, aliases: Sequence[Alias], what: str, where: str) -> Alias:
    """What a number stands for. Raises DataError: there is none of that number."""
    number = NUMBER.match(text)
    if number is None or not 0 < int(number[1]) <= len(aliases):
        raise DataError(f"{where}: expected a number of the {len(aliases):,} {what}, found {shown(text)}; {SAME}")
    return aliases[int(number[1]) - 1]


def split_flags(text: str, affixes: Affixes, where: str, word: bool = True) -> tuple[str, frozenset[str]]:
    """A word or affix and its flags: `word/AB`; `\\/` is a slash of it, and so is one that begins a word."""
    at = next((i for i in range(word, len(text)) if text[i] == "/" and text[i - 1 : i] != "\\"), len(text))
    return text[:at].replace("\\/", "/"), _flags(text[at + 1 :], affixes, where)


def _flag(text: str, kind: str, where: str) -> str:
    """The flag that a line is about."""
    flag = text if kind == "long" else text.rstrip(VARIATION_SELECTORS)
    number = NUMBER.fullmatch(text)
    if kind == "num" and number:
        return number[1]
    if kind == "num" or len(flag) != (2 if kind == "long" else 1):
        expected = {"num": "a number", "long": "two characters"}.get(kind, "one character")
        why = f"as FLAG {kind} says" if kind != "short" else "as no line FLAG says otherwise"
        raise DataError(
            f"{where}: expected a flag of {expected}, {why}, found {shown(text)}; correct it, or write the line FLAG "
            "long (two characters) or FLAG num (numbers) at the head of FILE.aff"
        )
    return flag


def _flags(text: str, affixes: Affixes, where: str) -> frozenset[str]:
    if affixes.aliases and text.strip():
        return named_by(text, affixes.aliases, "sets of flags (AF)", where)
    if affixes.flag_kind == "num":
        cells = [cell for cell in text.split(",") if cell.strip()]
        numbers = [number[1] for cell in cells if (number := NUMBER.match(cell))]
        if len(numbers) != len(cells):
            raise DataError(
                f"{where}: expected numbers of flags with commas between, as FLAG num says, found {shown(text)}; "
                "correct the line"
            )
        return frozenset(numbers)
    if affixes.flag_kind == "long":
        return frozenset(text[i : i + 2] for i in range(0, len(text), 2))
    return frozenset(text.replace(" ", ""))
