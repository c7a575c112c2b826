"""The affix rules of a dictionary of hunspell, FILE.aff (hunspell.py), and the forms of a word with flags.

A word has at most two suffixes and one prefix. With COMPLEXPREFIXES it has two prefixes and one suffix: words and rules
are then read from right to left, and prefixes are treated as suffixes. Two halves of a circumfix (CIRCUMFIX) need each
other. An affix that needs another (NEEDAFFIX) is completed by a second suffix, or by a prefix around it.

Files are untrusted. A file has at most MOST_RULES rules, and a word at most MOST_FORMS forms, found by at most
MOST_TRIES rules. Nothing is executed, and conditions are compared letter by letter.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import decoded, in_form, numbered, opened, place, shown

MOST_FORMS = 2_000  # of a word; only languages such as Hungarian have more
MOST_TRIES = 100_000
MOST_RULES = 200_000
# values of SET
ENCODING = re.compile(r"(?i)(utf-?8|(us-)?ascii|iso-?8859-\d{1,2}|koi8-[ru]|(microsoft-)?cp-?125\d|tis620(-2533)?)")
FLAG_KINDS = ("short", "long", "num", "utf-8")
# directives with a flag, and the meaning of the flag
SPECIAL = {
    "NEEDAFFIX": "bare", "PSEUDOROOT": "bare", "ONLYINCOMPOUND": "in compounds", "FORBIDDENWORD": "forbidden",
    "WARN": "warn", "CIRCUMFIX": "circumfix",
    **dict.fromkeys(("COMPOUNDFLAG", "COMPOUNDBEGIN", "COMPOUNDMIDDLE", "COMPOUNDLAST", "COMPOUNDEND"), "compounds"),
}  # fmt: skip
CONVERSIONS = ("ICONV", "OCONV")
TABLES = ("AF", "AM", *CONVERSIONS)
# directives without effect on forms; those of WITH_FLAGS name flags, and COMPOUNDRULE defines compounds
WITH_FLAGS = (
    "KEEPCASE", "NOSUGGEST", "NONGRAMSUGGEST", "SUBSTANDARD", "LEMMA_PRESENT", "COMPOUNDPERMITFLAG",
    "COMPOUNDFORBIDFLAG", "COMPOUNDROOT", "COMPOUNDRULE", "CHECKCOMPOUNDPATTERN", "FORCEUCASE", "SYLLABLENUM",
)  # fmt: skip
HARMLESS = (
    "TRY", "KEY", "REP", "MAP", "PHONE", "BREAK", "WORDCHARS", "LANG", "LANGCODE", "NAME", "HOME", "VERSION",
    "MAXCPDSUGS", "MAXNGRAMSUGS", "MAXDIFF", "ONLYMAXDIFF", "NOSPLITSUGS", "SUGSWITHDOTS", "CHECKSHARPS", "CHECKNUM",
    "COMPOUNDMIN", "COMPOUNDWORDMAX", "COMPOUNDSYLLABLE", "COMPOUNDMORESUFFIXES", "CHECKCOMPOUNDDUP",
    "CHECKCOMPOUNDREP", "CHECKCOMPOUNDCASE", "CHECKCOMPOUNDTRIPLE", "SIMPLIFIEDTRIPLE",
)  # fmt: skip
# directives -> number of cells that are read
DIRECTIVES = {
    **dict.fromkeys((*SPECIAL, *WITH_FLAGS, "SET", "FLAG", "IGNORE", "AF"), 2),
    **dict.fromkeys((*HARMLESS, "FULLSTRIP", "COMPLEXPREFIXES", "FORBIDWARN"), 1),
    "SFX": 5, "PFX": 5, "ICONV": 3, "OCONV": 3, "AM": 1_000,
}  # fmt: skip
DIRECTIVE = re.compile(r"[A-Z][A-Z_]+")
CELL = re.compile(r"[^ \t]+")  # hunspell treats no other character as a blank, not even U+00A0
UNDECODED = re.compile("[\udc80-\udcff]")
RULE_FLAG = re.compile(r"\(([^)]*)\)|([^*?])")  # of COMPOUNDRULE: `(aa)*b?`
VARIATION_SELECTORS = "\ufe0e\ufe0f"  # after a sign, to show it as text or as a picture
SAME = "take .dic and .aff of the same dictionary"
Alias = TypeVar("Alias")
NUMBER = re.compile(r"\s*0*([1-9]\d{0,8}|0)(?!\d)", re.ASCII)  # text after it is ignored


@dataclass(frozen=True, eq=False)
class Rule:
    """An affix."""

    flag: str
    crosses: bool
    strip: str
    add: str
    condition: tuple[tuple[bool, str], ...]  # for each letter: whether the set is negated, and the set
    flags: frozenset[str]
    shortest: int  # length of the shortest word that it applies to

    def of(self, word: str, is_suffix: bool) -> str | None:
        """Return the form, or None if the rule does not apply."""
        fits = word.endswith(self.strip) if is_suffix else word.startswith(self.strip)
        if not fits or len(word) < self.shortest:
            return None
        first = len(word) - len(self.condition) if is_suffix else 0
        for at, (negated, letters) in enumerate(self.condition, first):
            if (word[at] in letters) == negated:
                return None
        if is_suffix:
            return word[: len(word) - len(self.strip)] + self.add
        return self.add + word[len(self.strip) :]


class Conversion:
    """Replaces parts of words, the longest first: `ICONV ’ '`. `_` is the edge of the word."""

    def __init__(self) -> None:
        self.texts: dict[str, dict[int, str]] = {}  # by place: 1 at the beginning, 2 at the end, 3 both

    def add(self, part: str, text: str) -> None:
        edges = part.startswith("_") + 2 * (part.endswith("_") and len(part) > 1)
        self.texts.setdefault(part.removeprefix("_").removesuffix("_"), {})[edges] = text

    def pairs(self) -> list[tuple[str, str]]:
        """Return the arguments of `add`."""
        return [
            (f"{'_' * (edges % 2)}{part}{'_' * (edges // 2)}", text)
            for part, texts in self.texts.items()
            for edges, text in texts.items()
        ]

    def of(self, word: str) -> str:
        if not self.texts:
            return word
        longest = max(map(len, self.texts))
        converted, at = "", 0
        while at < len(word):
            part = next((word[at : at + n] for n in range(longest, 0, -1) if word[at : at + n] in self.texts), word[at])
            edges = (at == 0) + 2 * (at + len(part) == len(word))
            texts = self.texts.get(part, {})
            text = next((texts[edge] for edge in (3, 2, 1, 0) if edge & edges == edge and edge in texts), None)
            converted += word[at] if text is None else text
            at += 1 if text is None else len(part)
        return converted


@dataclass
class _Table:
    """Lines that a header announces: rules of a flag, aliases or conversions."""

    location: str
    expected: int
    crosses: bool = False
    lines: int = 0


@dataclass
class Affixes:
    """Directives and rules of FILE.aff."""

    encoding: str = "latin-1"
    form: str | None = None  # the Unicode form that both files are read in
    flag_kind: str = "short"
    has_byte_flags: bool = False  # flags are single bytes, in a file of UTF-8
    full_strip: bool = False  # FULLSTRIP: a rule may remove the whole word
    is_reversed: bool = False  # COMPLEXPREFIXES
    ignored: dict[int, None] = field(default_factory=dict)  # IGNORE
    conversions: dict[str, Conversion] = field(default_factory=lambda: {name: Conversion() for name in CONVERSIONS})
    suffixes: dict[str, list[Rule]] = field(default_factory=dict)
    prefixes: dict[str, list[Rule]] = field(default_factory=dict)
    tables: dict[str, _Table] = field(default_factory=dict)  # by kind and flag, of the last header
    aliases: list[frozenset[str]] = field(default_factory=list)  # AF
    morphology: list[str] = field(default_factory=list)  # AM
    special: dict[str, set[str]] = field(default_factory=dict)  # values of SPECIAL -> flags
    lines: Counter[str] = field(default_factory=Counter)  # by directive
    named: str = ""  # flags in lines without effect on forms
    other_flags: dict[str, str] = field(default_factory=dict)  # of directives, not of `flag_kind`: text -> first place
    rules: int = 0
    cut: list[str] = field(default_factory=list)  # words with more forms than MOST_FORMS
    words: Counter[frozenset[str]] = field(default_factory=Counter)  # by their flags
    _memo: dict[tuple[frozenset[str], bool], tuple[Rule, ...]] = field(default_factory=dict)
    _prefixes: dict[tuple[frozenset[str], bool | None, bool, bool], tuple[Rule, ...]] = field(default_factory=dict)
    _strips: dict[frozenset[str], frozenset[int]] = field(default_factory=dict)

    def has(self, flags: frozenset[str], role: str) -> bool:
        return not flags.isdisjoint(self.special.get(role, ()))

    def inner(self, word: str) -> str:
        """Return a word or affix in the form that rules apply to: without IGNORE's characters, reversed if rules
        are.
        """
        word = word.translate(self.ignored) if self.ignored else word
        return word[::-1] if self.is_reversed else word

    def read(self, word: str) -> str:
        """Return a word of a text in the dictionary's spelling."""
        return self.inner(self.conversions["ICONV"].of(word))

    def outer(self, form: str) -> str:
        """Return a form in the spelling of texts: converted by OCONV, unless ICONV cannot convert it back."""
        plain = form[::-1] if self.is_reversed else form
        converted = self.conversions["OCONV"].of(plain)
        return converted if converted == plain or self.read(converted) == form else plain

    def forms(self, word: str, flags: frozenset[str]) -> list[str]:
        """Return all forms of a word, beginning with the word itself if it is one.

        A word with more than MOST_FORMS forms gets the first of them, and is added to `cut`.
        """
        forms: dict[str, None] = {}
        for tries, form in enumerate(() if self.has(flags, "in compounds") else self._tried(word, flags)):
            if tries > MOST_TRIES or len(forms) > MOST_FORMS:
                self.cut.append(word)
                break
            if form:
                forms[form] = None
        return list(forms)[:MOST_FORMS]

    def _tried(self, word: str, flags: frozenset[str]) -> Iterator[str | None]:
        """Yield a form, or None, for each rule that is tried: the word, its suffixes, then its prefixes.

        A prefix is the outer affix: its condition applies to the word with its suffixes, which may name it.
        """
        yield None if self.has(flags, "bare") else word
        stems = [(word, self.prefixes_around(flags, False, True, crosses=False))]  # with their possible prefixes
        firsts = []
        for prefix in (None, *(rule for rule in self.rules_of(flags, False) if rule.crosses and rule.flags)):
            for rule in self.rules_of(prefix.flags if prefix else flags, True):
                if (form := rule.of(word, True)) is None:
                    yield None
                    continue
                is_half, is_bare = self.has(rule.flags, "circumfix"), self.has(rule.flags, "bare")
                yield None if prefix or is_half or is_bare else form
                around = self.prefixes_around(flags | rule.flags, is_half, is_bare) if rule.crosses else ()
                stems.append((form, _choose_prefixes(prefix, around)))
                firsts.append((form, rule, is_half, prefix))
        for first, rule_of_first, is_half, prefix in firsts:
            for rule in self.rules_of(rule_of_first.flags, True):
                form = rule.of(first, True)
                yield None if prefix or is_half else form
                if form is not None and rule.crosses:
                    named = (flags | rule_of_first.flags) - rule.flags
                    around = self.prefixes_around(named, is_half, False) if rule_of_first.crosses else ()
                    stems.append((form, _choose_prefixes(prefix, around)))
                    if not prefix and not is_half:
                        stems.append((form, self.prefixes_around(rule.flags, None, False)))
        for stem, prefixes in stems:
            yield from (rule.of(stem, False) for rule in prefixes)

    def prefixes_around(
        self, flags: frozenset[str], is_half: bool | None, is_bare: bool, crosses: bool = True
    ) -> tuple[Rule, ...]:
        """Return the prefixes of flags that complete a word with suffixes.

        Args:
            is_half: whether the first suffix is half of a circumfix (None: a prefix may be half of one, or not).
            is_bare: whether the first suffix needs a further affix.
            crosses: whether the prefix must be able to combine with suffixes.
        """
        key = (flags, is_half, is_bare, crosses)
        if key not in self._prefixes:
            self._prefixes[key] = tuple(
                rule
                for rule in self.rules_of(flags, False)
                if (rule.crosses or not crosses)
                and is_half in (None, self.has(rule.flags, "circumfix"))
                and not (is_bare and self.has(rule.flags, "bare"))
            )
        return self._prefixes[key]

    def strips(self, flags: frozenset[str]) -> frozenset[int]:
        """Return the numbers of letters that the suffixes of a word with these flags may remove, also second ones;
        always with 0.

        The result may include more numbers than possible: a second suffix may remove letters of the first, or not.
        """
        lengths = self._strips.get(flags)
        if lengths is None:
            prefix_flags = {flag for rule in self.rules_of(flags, False) for flag in rule.flags}
            first = self.rules_of(flags | prefix_flags, True)
            first_lengths = {(len(rule.strip), len(rule.add)) for rule in first}
            suffix_flags = frozenset(flag for flags_of_rule in {rule.flags for rule in first} for flag in flags_of_rule)
            second = max((len(rule.strip) for rule in self.rules_of(suffix_flags, True)), default=0)
            most = max((strip + max(0, second - add) for strip, add in first_lengths), default=0)
            lengths = frozenset(range(most + 1)) if second else frozenset({0} | {strip for strip, _ in first_lengths})
            self._strips[flags] = lengths
        return lengths

    def notes(self) -> list[str]:
        """Return warnings after all words were read."""
        notes = []
        if self.cut:
            notes.append(
                f"{len(self.cut):,} words have many forms ({_quote(self.cut, 3)}): the first {MOST_FORMS:,} are read"
            )
        if compounds := sum(count for flags, count in self.words.items() if self.has(flags, "compounds")):
            names = [name for name in (*SPECIAL, "COMPOUNDRULE") if name in self.lines and name.startswith("COMPOUND")]
            notes.append(f"{compounds:,} words also form compounds ({', '.join(names)}), which are not listed")
        if self.other_flags:
            expected = {"num": "a number", "long": "two characters"}.get(self.flag_kind, "one character")
            text, location = next(iter(self.other_flags.items()))
            notes.append(
                f"{len(self.other_flags):,} flags of directives are not {expected} ({shown(text)}, {location}): only "
                "their beginning counts, as in hunspell"
            )
        if unknown := [name for name, lines in self.lines.items() if lines and name not in DIRECTIVES]:
            lines = sum(self.lines[name] for name in unknown)
            notes.append(f"{lines:,} lines of FILE.aff have no directive of hunspell ({_quote(unknown)}) and no effect")
        all_rules = [rule for rules in (self.suffixes, self.prefixes) for group in rules.values() for rule in group]
        defined = {*self.suffixes, *self.prefixes, *VARIATION_SELECTORS}.union(*self.special.values())

        def undefined(flags: frozenset[str]) -> list[str]:
            return [flag for flag in flags - defined if flag not in self.named]

        if gaps := {flag for flags in (*self.words, *(rule.flags for rule in all_rules)) for flag in undefined(flags)}:
            words = sum(count for flags, count in self.words.items() if undefined(flags))
            rules = sum(bool(undefined(rule.flags)) for rule in all_rules)
            notes.append(
                f"{words:,} words and {rules:,} affix rules have flags that no line defines ({_quote(sorted(gaps))})"
            )
        return notes

    def rules_of(self, flags: frozenset[str], are_suffixes: bool) -> tuple[Rule, ...]:
        """Return the rules of flags, without those that only apply in compounds."""
        if (flags, are_suffixes) not in self._memo:
            rules = self.suffixes if are_suffixes else self.prefixes
            named = (rule for flag in sorted(flags) for rule in rules.get(flag, ()))
            self._memo[flags, are_suffixes] = tuple(rule for rule in named if not self.has(rule.flags, "in compounds"))
        return self._memo[flags, are_suffixes]


def _choose_prefixes(prefix: Rule | None, around: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the prefixes around a stem: only `prefix` if it brought the stem's suffix."""
    return around if prefix is None else (prefix,) if prefix in around else ()


def _quote(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(map(shown, names[:most])) + (", …" if len(names) > most else "")


def read_affixes(path: Path | str, form: str | None = None) -> Affixes:
    """Read FILE.aff in a Unicode form. Raises DataError, with line."""
    affixes = Affixes()
    for number, line in iter_encoded(path, "latin-1", used=_relevant_text):  # names of directives are ASCII
        cells = CELL.findall(line)
        location = place(path, number)
        if cells[:1] == ["SET"] and len(cells) > 1:
            affixes.encoding = _encoding(cells[1], location)
        elif cells[:1] == ["FLAG"]:
            affixes.flag_kind = cells[1].lower() if len(cells) > 1 else ""
            if affixes.flag_kind not in FLAG_KINDS:
                raise DataError(f"{location}: expected FLAG long, num or UTF-8, found {shown(line)}; correct the line")
        elif cells[:1] in (["SFX"], ["PFX"], ["AF"]) and not line.isascii():  # AF flags; SFX flag strip add/flags
            named = "".join(cells[1:2] + [cell.partition("/")[2] for cell in cells[3:4]])
            affixes.has_byte_flags |= bool(UNDECODED.search(named.encode("latin-1").decode("utf-8", "surrogateescape")))
        affixes.lines.update(cells[:1])
    if affixes.flag_kind == "utf-8" and "SET" not in affixes.lines:
        affixes.encoding = "utf-8"
    affixes.has_byte_flags &= affixes.flag_kind in ("short", "long") and affixes.encoding == "utf-8"
    affixes.full_strip, affixes.is_reversed = "FULLSTRIP" in affixes.lines, "COMPLEXPREFIXES" in affixes.lines
    # conversions depend on the Unicode form, such as between a syllable of Korean and its letters
    affixes.form = None if affixes.lines.keys() & set(CONVERSIONS) else form
    plain = Affixes(flag_kind=affixes.flag_kind, has_byte_flags=affixes.has_byte_flags)  # for flags that are no alias
    kind, flag, table = "", [""], None  # of the current table
    for number, line in iter_encoded(path, affixes.encoding, affixes.form, _relevant_text, affixes.has_byte_flags):
        name, *cells = CELL.findall(line) or [""]
        location = place(path, number)
        if name in SPECIAL:
            affixes.special.setdefault(SPECIAL[name], set()).add(_flag("".join(cells), affixes, location))
        elif name == "IGNORE":
            affixes.ignored = dict.fromkeys(map(ord, "".join(cells)))
        elif name in TABLES and cells:
            _add_line(name, cells, affixes, plain, location)
        elif name in ("SFX", "PFX"):
            kind, flag = name, cells[:1]
            table = _add_rule([name, *cells], affixes, location)
        elif name not in DIRECTIVES and cells[:1] == flag and table and table.lines < table.expected:
            # hunspell reads only the name in a table's header: Debian's mn_MN has `SFT F0 …` in a table of `SFX F0`
            affixes.lines[name] -= 1
            _add_rule([kind, *cells], affixes, location)
        elif name == "COMPOUNDRULE":
            rule = "".join(cells[:1])
            flags = [] if rule.isdecimal() else [either or flag for either, flag in RULE_FLAG.findall(rule)]
            affixes.special.setdefault("compounds", set()).update(flags)
        elif name in WITH_FLAGS or name not in DIRECTIVES:
            affixes.named += f" {''.join(cells[:1])}"
    for name, table in affixes.tables.items():
        if table.lines != table.expected:
            raise DataError(
                f"{table.location}: expected {table.expected:,} lines `{name} …` below this header, found "
                f"{table.lines:,}; correct the number, or copy the file again"
            )
    if "FORBIDWARN" in affixes.lines:
        affixes.special.setdefault("forbidden", set()).update(affixes.special.get("warn", ()))
    return affixes


def _relevant_text(line: str) -> str:
    """Return the relevant cells of a line of FILE.aff. Others, such as comments, may be in another encoding."""
    cells = CELL.findall(line)
    if not cells or not DIRECTIVE.fullmatch(cells[0]):
        return ""
    name = cells[0]
    if name in WITH_FLAGS or name not in DIRECTIVES:
        return UNDECODED.sub("", " ".join(cells[:5]))
    is_header = name in ("SFX", "PFX") and len(cells) > 3 and cells[2] in "YN" and cells[3].isdecimal()
    return " ".join(cells[: 4 if is_header else DIRECTIVES[name]])


def _add_line(name: str, cells: list[str], affixes: Affixes, plain: Affixes, location: str) -> None:
    """Add a line of TABLES: the header, an alias, or a conversion."""
    if name not in affixes.tables:
        affixes.tables[name] = _Table(location, _number(cells[0], f"{name} number", [name, *cells], location))
        return
    affixes.tables[name].lines += 1
    if name == "AF":
        affixes.aliases.append(_flags(cells[0], plain, location))
    elif name == "AM":
        affixes.morphology.append(" ".join(cells))
    elif len(cells) == 2 and cells[0].strip("_"):
        affixes.conversions[name].add(*cells)
    else:
        raise DataError(
            f"{location}: expected `{name} characters characters`, found {shown(' '.join([name, *cells]))}; correct "
            "the line"
        )


def _number(text: str, shape: str, cells: list[str], location: str) -> int:
    if not (text.isdecimal() and len(text) < 10):
        raise DataError(f"{location}: expected `{shape}`, found {shown(' '.join(cells))}; correct the line")
    return int(text)


def _add_rule(cells: list[str], affixes: Affixes, location: str) -> _Table:
    """Add a rule, or a header of rules, and return their table."""
    if len(cells) < 4:
        raise DataError(
            f"{location}: expected `{cells[0]} flag Y|N number` or `{cells[0]} flag strip add condition`, found "
            f"{shown(' '.join(cells))}; correct the line"
        )
    kind, named, strip, add = cells[:4]
    flag = _flag(named, affixes, location)
    name = f"{kind} {flag}"
    table = affixes.tables.get(name)
    if table is None or (table.lines == table.expected and strip in ("Y", "N") and add.isdecimal()):
        # a flag may have several tables, each with a header
        if strip not in ("Y", "N") or not add.isdecimal():
            raise DataError(
                f"{location}: expected the header of rule {shown(flag)}, `{kind} {flag} Y|N number`, found "
                f"{shown(' '.join(cells))}; add it before the rule's lines"
            )
        expected = _number(add, f"{kind} {flag} Y|N number", cells, location)
        affixes.tables[name] = _Table(location, expected, strip == "Y")
        return affixes.tables[name]
    table.lines += 1
    affixes.rules += 1
    if affixes.rules > MOST_RULES:
        raise DataError(f"{location}: expected at most {MOST_RULES:,} rules, found more; take a smaller dictionary")
    text, flags = split_flags(add, affixes, location, word=False)
    text, strip = affixes.inner("" if text == "0" else text), "" if strip == "0" else strip
    condition = _condition(cells[4] if len(cells) > 4 else ".", location)
    if affixes.is_reversed:
        strip, condition = strip[::-1], condition[::-1]
    shortest = max(len(condition), len(strip) + (not affixes.full_strip))
    rule = Rule(flag, table.crosses, strip, text, condition, flags, shortest)
    is_suffix = (kind == "SFX") != affixes.is_reversed
    (affixes.suffixes if is_suffix else affixes.prefixes).setdefault(flag, []).append(rule)
    return table


def _condition(text: str, location: str) -> tuple[tuple[bool, str], ...]:
    """Return `[^ij]a` as a pair for each letter: whether the set is negated, and the set. `.` is any letter."""
    characters = []
    tail = "" if text == "." else text
    while tail:
        if tail[0] == "[":
            letters, bracket, tail = tail[1:].partition("]")
            if not bracket:
                raise DataError(f"{location}: expected ] after [ in the condition, found {shown(text)}; correct it")
            characters.append((letters.startswith("^"), letters.removeprefix("^")))
        else:
            characters.append((True, "") if tail[0] == "." else (False, tail[0]))
            tail = tail[1:]
    return tuple(characters)


def _encoding(name: str, location: str) -> str:
    plain = name.lower().removeprefix("microsoft-").removesuffix("-2533").replace("iso8859", "iso-8859")
    try:
        if ENCODING.fullmatch(name):
            return codecs.lookup(plain).name
    except LookupError:
        pass
    raise DataError(
        f"{location}: expected a character set such as UTF-8 or ISO8859-2, found {shown(name)}, which is not "
        "supported; convert both files to UTF-8, and write SET UTF-8"
    )


def iter_encoded(
    path: Path | str,
    encoding: str,
    form: str | None = None,
    used: Callable[[str], str] = str,
    has_byte_flags: bool = False,
) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines in a Unicode form. `used` selects the relevant text of a line.

    Raises:
        DataError: that text is not in the encoding, or the file cannot be read (`files.text_lines.decoded`).
    """
    with opened(path) as (source, _):
        for number, line in numbered(source, path, "latin-1"):
            raw = line.encode("latin-1")
            text = used(raw.decode(encoding, "surrogateescape"))
            if not has_byte_flags and UNDECODED.search(text):
                decoded(raw, path, number, encoding, f"as declared by SET in FILE.aff; {SAME}")
            yield number, in_form(text, form)


def named_by(text: str, aliases: Sequence[Alias], kind: str, location: str) -> Alias:
    """Return the alias of a number. Raises DataError if there is none."""
    number = NUMBER.match(text)
    if number is None or not 0 < int(number[1]) <= len(aliases):
        raise DataError(f"{location}: expected a number of the {len(aliases):,} {kind}, found {shown(text)}; {SAME}")
    return aliases[int(number[1]) - 1]


def split_flags(text: str, affixes: Affixes, location: str, word: bool = True) -> tuple[str, frozenset[str]]:
    r"""Return a word or affix and its flags: `word/AB`. `\/` is a slash of the word, and so is one that begins it."""
    end = next((i for i in range(word, len(text)) if text[i] == "/" and text[i - 1 : i] != "\\"), len(text))
    if affixes.has_byte_flags and UNDECODED.search(text[:end]):
        raise DataError(f"{location}: expected {affixes.encoding} before /, found other bytes; convert the line")
    return text[:end].replace("\\/", "/"), _flags(text[end + 1 :], affixes, location)


def _flag(text: str, affixes: Affixes, location: str) -> str:
    """Return the flag of a line: as in hunspell, the beginning of a longer text."""
    if not text:
        raise DataError(f"{location}: expected a flag after the directive, found none; add it, or remove the line")
    kind, text = affixes.flag_kind, _decode_flags(text, affixes)
    if kind == "num":
        flag, is_whole = _number_flag(text), NUMBER.fullmatch(text) is not None
    else:
        size = 2 if kind == "long" else 1
        flag, is_whole = text[:size], len(text if kind == "long" else text.rstrip(VARIATION_SELECTORS)) == size
    if not is_whole:
        affixes.other_flags.setdefault(text, location)
    return flag


def _number_flag(text: str) -> str:
    """Return the number that begins a text, or 0, as hunspell does."""
    number = NUMBER.match(text)
    return number[1] if number else "0"


def _decode_flags(text: str, affixes: Affixes) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1") if affixes.has_byte_flags else text


def _flags(text: str, affixes: Affixes, location: str) -> frozenset[str]:
    if affixes.aliases and text.strip():
        return named_by(text, affixes.aliases, "sets of flags (AF)", location)
    text = _decode_flags(text, affixes)
    if affixes.flag_kind == "num":
        return frozenset(_number_flag(cell) for cell in text.split(",") if cell.strip())
    if affixes.flag_kind == "long":
        return frozenset(text[i : i + 2] for i in range(0, len(text) - 1, 2))
    return frozenset(text.replace(" ", ""))
