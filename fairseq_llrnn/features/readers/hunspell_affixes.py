"""The affix rules of a dictionary of hunspell, FILE.aff (hunspell.py): what forms a word with flags has.

Files are untrusted: a file has at most MOST_RULES rules, a word at most MOST_FORMS forms, found by at most MOST_TRIES
rules; nothing is executed, and conditions are compared letter by letter.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import MAX_LINE_BYTES, opened, place, shown
from fairseq_llrnn.files.unicode_forms import in_form

MOST_FORMS = 2_000  # of a word, the first ones; only languages such as Hungarian have more
MOST_TRIES = 100_000
MOST_RULES = 200_000
# of SET
ENCODING = re.compile(r"(?i)(utf-?8|(us-)?ascii|iso-?8859-\d{1,2}|koi8-[ru]|(microsoft-)?cp-?125\d|tis620(-2533)?)")
FLAG_KINDS = ("short", "long", "num", "utf-8")
SPECIAL = {
    "NEEDAFFIX": "bare", "PSEUDOROOT": "bare", "ONLYINCOMPOUND": "bare", "FORBIDDENWORD": "forbidden",
    "CIRCUMFIX": "circumfix",
}  # fmt: skip


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
class Affixes:
    """What FILE.aff says."""

    encoding: str = "latin-1"
    flag_kind: str = "short"
    suffixes: dict[str, list[Rule]] = field(default_factory=dict)
    prefixes: dict[str, list[Rule]] = field(default_factory=dict)
    crosses: dict[str, bool] = field(default_factory=dict)  # by kind and flag, of the headers that were read
    aliases: list[frozenset[str]] = field(default_factory=list)  # AF
    special: dict[str, set[str]] = field(default_factory=dict)  # bare, forbidden, circumfix -> flags
    rules: int = 0
    _known: dict[tuple[frozenset[str], bool], tuple[Rule, ...]] = field(default_factory=dict)
    _strips: dict[frozenset[str], frozenset[int]] = field(default_factory=dict)

    def has(self, flags: frozenset[str], what: str) -> bool:
        return not flags.isdisjoint(self.special.get(what, ()))

    def forms(self, word: str, flags: frozenset[str]) -> list[str]:
        """All forms of a word, itself first if it is one; the first MOST_FORMS of them."""
        found = {} if self.has(flags, "bare") else {word: None}
        tries = 0
        # word and forms: whether a prefix may come before it, flags that bring prefixes, whether of a circumfix, and
        # flags that bring one more suffix
        stems = [(word, True, flags, False, flags)]
        for depth in (1, 2):
            begin = 0 if depth == 1 else 1
            for stem, crosses, own, _, more in stems[begin:]:
                rules = self._rules(more, True)
                tries += len(rules)
                if tries > MOST_TRIES or len(found) > MOST_FORMS:
                    break
                for rule in rules:
                    form = rule.of(stem, True)
                    if form is None:
                        continue
                    both = self.has(rule.flags, "circumfix")
                    if not both and not self.has(rule.flags, "bare"):
                        found[form] = None
                    stems.append((form, crosses and rule.crosses, own | rule.flags, both, rule.flags))
        for stem, crosses, own, both, _ in stems:
            rules = self._rules(own, False) if crosses else ()
            tries += len(rules)
            if tries > MOST_TRIES or len(found) > MOST_FORMS:
                break
            for rule in rules:
                form = rule.of(stem, False)
                allowed = form is not None and (rule.crosses or stem == word) and not self.has(rule.flags, "bare")
                if form is not None and allowed and self.has(rule.flags, "circumfix") == both:
                    found[form] = None
        return list(found)[:MOST_FORMS]

    def strips(self, flags: frozenset[str]) -> frozenset[int]:
        """How many letters the suffixes of a word with such flags can take away, the second ones too; 0 always.

        More than there can be, rather than fewer: a second suffix may take what the first has added, or not.
        """
        known = self._strips.get(flags)
        if known is None:
            first = self._rules(flags, True)
            of_first = {(len(rule.strip), len(rule.add)) for rule in first}
            named = frozenset(flag for more in {rule.flags for rule in first} for flag in more)
            second = max((len(rule.strip) for rule in self._rules(named, True)), default=0)
            most = max((strip + max(0, second - add) for strip, add in of_first), default=0)
            known = frozenset(range(most + 1)) if second else frozenset({0} | {strip for strip, _ in of_first})
            self._strips[flags] = known
        return known

    def _rules(self, flags: frozenset[str], are_suffixes: bool) -> tuple[Rule, ...]:
        """Those that a set of flags names."""
        known = self._known.get((flags, are_suffixes))
        if known is None:
            rules = self.suffixes if are_suffixes else self.prefixes
            known = tuple(rule for flag in sorted(flags) for rule in rules.get(flag, ()))
            self._known[flags, are_suffixes] = known
        return known


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
    counted = False
    for number, line in iter_encoded(path, affixes.encoding, form):
        cells = line.split()
        if not cells or cells[0].startswith("#"):
            continue
        where = place(path, number)
        if cells[0] in SPECIAL and len(cells) > 1:
            affixes.special.setdefault(SPECIAL[cells[0]], set()).update(_flags(cells[1], _plain(affixes), where))
        elif cells[0] == "AF" and len(cells) > 1:
            if counted:
                affixes.aliases.append(_flags(cells[1], _plain(affixes), where))
            counted = True
        elif cells[0] in ("SFX", "PFX"):
            _add_rule(cells, affixes, where)
    return affixes


def _add_rule(cells: list[str], affixes: Affixes, where: str) -> None:
    if len(cells) < 4:
        raise DataError(
            f"{where}: expected `{cells[0]} flag Y|N number` or `{cells[0]} flag strip add condition`, found "
            f"{shown(' '.join(cells))}; correct the line"
        )
    kind, flag, strip, add = cells[:4]
    name = f"{kind} {flag}"
    if name not in affixes.crosses:
        if strip not in "YN" or not add.isdecimal():
            raise DataError(
                f"{where}: expected the header of rule {shown(flag)}, `{kind} {flag} Y|N number`, found "
                f"{shown(' '.join(cells))}; add it before the rule's lines"
            )
        affixes.crosses[name] = strip == "Y"
        return
    affixes.rules += 1
    if affixes.rules > MOST_RULES:
        raise DataError(f"{where}: expected at most {MOST_RULES:,} rules, found more; take a smaller dictionary")
    text, flags = ("", frozenset[str]()) if add == "0" else split_flags(add, affixes, where)
    if add.startswith("0/"):
        text = ""
    rule = Rule(
        affixes.crosses[name], "" if strip == "0" else strip, text,
        _condition(cells[4] if len(cells) > 4 else ".", where), flags,
    )  # fmt: skip
    (affixes.suffixes if kind == "SFX" else affixes.prefixes).setdefault(flag, []).append(rule)


def _condition(text: str, where: str) -> tuple[tuple[bool, str], ...]:
    """`[^ij]a` as what each letter is or is not; `.` is any."""
    found = []
    rest = "" if text == "." else text
    while rest:
        if rest[0] == "[":
            letters, bracket, rest = rest[1:].partition("]")
            if not bracket:
                raise DataError(f"{where}: expected ] behind [ in the condition, found {shown(text)}; correct the line")
            found.append((letters.startswith("^"), letters.removeprefix("^")))
        else:
            found.append((True, "") if rest[0] == "." else (False, rest[0]))
            rest = rest[1:]
    return tuple(found)


def _plain(affixes: Affixes) -> Affixes:
    """By which flags are read that are no alias."""
    return Affixes(flag_kind=affixes.flag_kind)


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
    """Numbers and lines, in a Unicode form.

    Raises DataError for what is not in that encoding, and for a line that is far too long.
    """
    with opened(path) as (source, _):
        number = 0
        while raw := source.readline(MAX_LINE_BYTES + 1):
            number += 1
            raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if len(raw) > MAX_LINE_BYTES:
                raise DataError(
                    f"{place(path, number)}: expected a line of at most {MAX_LINE_BYTES:,} bytes, found a longer one; "
                    "is it a dictionary of hunspell?"
                )
            try:
                line = raw.decode(encoding)
            except UnicodeDecodeError:
                raise DataError(
                    f"{place(path, number)}: expected {encoding}, as FILE.aff says (SET), found other bytes; take .dic "
                    "and .aff of the same dictionary"
                ) from None
            yield number, in_form(line.rstrip("\r\n"), form)


def split_flags(text: str, affixes: Affixes, where: str) -> tuple[str, frozenset[str]]:
    """A word or affix and its flags: `word/AB`; `\\/` is a slash of the word."""
    at = next((i for i in range(1, len(text)) if text[i] == "/" and text[i - 1] != "\\"), len(text))
    return text[:at].replace("\\/", "/"), _flags(text[at + 1 :], affixes, where)


def _flags(text: str, affixes: Affixes, where: str) -> frozenset[str]:
    if affixes.aliases and text:
        if not (text.isdecimal() and len(text) < 10 and 0 < int(text) <= len(affixes.aliases)):
            raise DataError(
                f"{where}: expected a number of the {len(affixes.aliases):,} sets of flags (AF), found {shown(text)}; "
                "take .dic and .aff of the same dictionary"
            )
        return affixes.aliases[int(text) - 1]
    if affixes.flag_kind == "num":
        return frozenset(flag.strip() for flag in text.split(",") if flag.strip())
    if affixes.flag_kind == "long":
        return frozenset(text[i : i + 2] for i in range(0, len(text), 2))
    return frozenset(text)
