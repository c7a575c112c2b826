"""The grammar of a hunspell dictionary: which moves make a form, and the derivations of a form.

A form is made in steps, each of which chooses one of the possible moves: an entry, a first suffix or none, a second
suffix or none, a prefix or none. A move is possible if its rule applies to the form and a word can follow.
affixed_strings.py gives the moves probabilities.

The spelling of FILE.dic becomes that of texts by OCONV. Two forms at most have the same spelling (`Affixes.outer`).
Prefixes that bring suffixes, FORBIDDENWORD and compounds are ignored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.readers.hunspell import iter_entries, rules_of
from fairseq_llrnn.lexicon.readers.hunspell_affixes import Affixes, Rule, read_affixes

NO_SUFFIX, NO_SECOND, NO_PREFIX = 0, 1, 2  # moves without a rule
FIRST_RULE = 3
MOST_DERIVATIONS = 1_000  # of a form
MOST_ENTRIES = 5_000_000
KEPT_FORMS = 1 << 20  # forms whose derivations are kept


class Derivation(NamedTuple):
    """An entry, and the chosen move of each step with all that were possible."""

    entry: int
    steps: tuple[tuple[int, tuple[int, ...]], ...]


class _Group(NamedTuple):
    """Suffixes that apply to the same forms, and their moves."""

    rules: Sequence[Rule]
    moves: Sequence[int]
    are_whole: bool  # whether no form with one of them needs a further affix


class Grammar:
    """The entries and rules of a dictionary, and the possible moves."""

    def __init__(self, affixes: Affixes, entries: Sequence[tuple[str, frozenset[str]]]) -> None:
        self.affixes, self.entries = affixes, entries
        groups = (*affixes.suffixes.values(), *affixes.prefixes.values())
        self.rules = [rule for group in groups for rule in group]
        self._id = {id(rule): FIRST_RULE + i for i, rule in enumerate(self.rules)}
        self.num_moves = FIRST_RULE + len(self.rules)
        self._entries_of: dict[str, list[int]] = defaultdict(list)
        for i, (word, _) in enumerate(entries):
            self._entries_of[word].append(i)
        self._suffixes = _by_addition(affixes.suffixes.values())
        self._prefixes = _by_addition(affixes.prefixes.values())
        suffixes = [rule for group in affixes.suffixes.values() for rule in group]
        self._continuing = frozenset(flag for rule in suffixes for flag in rule.flags)
        # forms with the same head and tail have the same possible moves
        self._tail = max((rule.shortest for rule in suffixes), default=0)
        self._head = max((rule.shortest for group in affixes.prefixes.values() for rule in group), default=0)
        self._firsts: dict[tuple[frozenset[str], str], tuple[int, ...]] = {}
        self._seconds: dict[tuple[frozenset[str], int, str], tuple[int, ...]] = {}
        self._reaches: dict[frozenset[str], int | None] = {}
        self._groups: dict[frozenset[str], tuple[_Group, ...]] = {}
        self._alike: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._found: dict[str, tuple[Derivation, ...]] = {}

    # ---- possible moves -------------------------------------------------------------------------------------------

    def _key(self, form: str) -> str:
        head, tail = self._head, self._tail
        return form if len(form) <= 2 * tail + head else f"{form[:head]}\0{form[-tail - 1:]}"

    def firsts(self, form: str, flags: frozenset[str]) -> tuple[int, ...]:
        """Return the moves after an entry."""
        reach = self._reach(flags)
        key = flags, self._key(form) if reach is None else form[max(0, len(form) - reach - 1) :]
        if key not in self._firsts:
            needs_more = self.affixes.has(flags, "bare") and not self.prefixes(form, flags, None, None)
            moves = [] if needs_more else [NO_SUFFIX]
            for group in self._grouped(flags):
                if group.rules[0].of(form, True):
                    if group.are_whole:
                        moves += group.moves
                        continue
                    for rule, move in zip(group.rules, group.moves, strict=True):
                        if self._is_whole(rule) or self.seconds(rule.of(form, True) or "", flags, rule):
                            moves.append(move)
            self._firsts[key] = self._shared(moves)
        return self._firsts[key]

    def seconds(self, form: str, flags: frozenset[str], first: Rule) -> tuple[int, ...]:
        """Return the moves after a first suffix."""
        key = flags, id(first), self._key(form)
        if not first.flags:
            key = frozenset(), id(first), ""  # no second suffix, no prefix of its own
        if key not in self._seconds:
            is_whole = self._is_whole(first)
            moves = [NO_SECOND] * (is_whole or bool(self.prefixes(form, flags, first, None)))
            for group in self._grouped(first.flags):
                if group.rules[0].of(form, True):
                    for rule, move in zip(group.rules, group.moves, strict=True):
                        if is_whole or self.prefixes(rule.of(form, True) or "", flags, first, rule):
                            moves.append(move)
            self._seconds[key] = self._shared(moves)
        return self._seconds[key]

    def prefixes(self, form: str, flags: frozenset[str], first: Rule | None, second: Rule | None) -> tuple[int, ...]:
        """Return the moves after the suffixes: prefixes, or NO_PREFIX if the form needs none."""
        affixes = self.affixes
        if first is None:
            needs_prefix = affixes.has(flags, "bare")
            around = affixes.prefixes_around(flags, False, True, crosses=False)
        else:
            is_half, is_bare = affixes.has(first.flags, "circumfix"), affixes.has(first.flags, "bare")
            if second is None:
                needs_prefix = is_half or is_bare
                around = affixes.prefixes_around(flags | first.flags, is_half, is_bare) if first.crosses else ()
            else:
                needs_prefix, around = is_half, ()
                if second.crosses:
                    named = (flags | first.flags) - second.flags
                    around = affixes.prefixes_around(named, is_half, False) if first.crosses else ()
                    if not is_half:
                        around = tuple(dict.fromkeys((*around, *affixes.prefixes_around(second.flags, None, False))))
        moves = [] if needs_prefix else [NO_PREFIX]
        moves += [self._id[id(rule)] for rule in around if rule.of(form, False)]
        return tuple(moves)

    def _grouped(self, flags: frozenset[str]) -> tuple[_Group, ...]:
        """Return the suffixes of flags, in groups that apply to the same forms."""
        if flags not in self._groups:
            groups: dict[Hashable, list[Rule]] = defaultdict(list)
            for rule in self.affixes.rules_of(flags, True):
                groups[rule.strip, rule.condition, rule.shortest, bool(rule.add)].append(rule)
            self._groups[flags] = tuple(
                _Group(rules, [self._id[id(rule)] for rule in rules], all(map(self._is_whole, rules)))
                for rules in groups.values()
            )
        return self._groups[flags]

    def _reach(self, flags: frozenset[str]) -> int | None:
        """Return the number of last letters that choose the moves after an entry; None: its first ones may, too."""
        if flags not in self._reaches:
            rules = self.affixes.rules_of(flags, True)
            depends = self.affixes.has(flags, "bare") or not all(group.are_whole for group in self._grouped(flags))
            self._reaches[flags] = None if depends else max((rule.shortest for rule in rules), default=0)
        return self._reaches[flags]

    def _is_whole(self, rule: Rule) -> bool:
        """Return whether a form with this first suffix needs no further affix."""
        return not (rule.flags and (self.affixes.has(rule.flags, "circumfix") or self.affixes.has(rule.flags, "bare")))

    def _shared(self, moves: list[int]) -> tuple[int, ...]:
        ids = tuple(moves)
        return self._alike.setdefault(ids, ids)

    def rule(self, move: int) -> Rule | None:
        """Return the rule of a move, or None for a move without a rule."""
        return None if move < FIRST_RULE else self.rules[move - FIRST_RULE]

    # ---- derivations of a form ------------------------------------------------------------------------------------

    def of_text(self, word: str) -> tuple[Derivation, ...]:
        """Return the derivations of a word in the spelling of texts."""
        if word not in self._found:
            inner = dict.fromkeys((self.affixes.read(word), self.affixes.inner(word)))
            forms = [form for form in inner if self.affixes.outer(form) == word]
            found = tuple(islice((found for form in forms for found in self.derivations(form)), MOST_DERIVATIONS))
            if len(self._found) >= KEPT_FORMS:
                self._found.clear()
            self._found[word] = found
        return self._found[word]

    def derivations(self, form: str) -> Iterator[Derivation]:
        """Yield the derivations of a form in the spelling of FILE.dic."""
        yield from self._suffixed(form, form, NO_PREFIX)
        for rule, inner in _undone(self._prefixes, form, False):
            yield from self._suffixed(form, inner, self._id[id(rule)])

    def _suffixed(self, form: str, inner: str, prefix: int) -> Iterator[Derivation]:
        for entry in self._entries_of.get(inner, ()):
            flags = self.entries[entry][1]
            last = self.prefixes(inner, flags, None, None)
            firsts = self.firsts(inner, flags)
            if prefix in last and NO_SUFFIX in firsts:
                yield Derivation(entry, ((NO_SUFFIX, firsts), (prefix, last)))
        for second, middle in _undone(self._suffixes, inner, True):
            for entry in self._entries_of.get(middle, ()):
                flags = self.entries[entry][1]
                if second.flag in flags:
                    yield from self._with_steps(entry, middle, second, inner, None, inner, prefix)
            if second.flag in self._continuing:
                for first, stem in _undone(self._suffixes, middle, True):
                    if second.flag in first.flags:
                        for entry in self._entries_of.get(stem, ()):
                            if first.flag in self.entries[entry][1]:
                                yield from self._with_steps(entry, stem, first, middle, second, inner, prefix)

    def _with_steps(
        self, entry: int, stem: str, first: Rule, middle: str, second: Rule | None, inner: str, prefix: int
    ) -> Iterator[Derivation]:
        flags = self.entries[entry][1]
        firsts, seconds = self.firsts(stem, flags), self.seconds(middle, flags, first)
        last = self.prefixes(inner, flags, first, second)
        chosen = NO_SECOND if second is None else self._id[id(second)]
        if self._id[id(first)] in firsts and chosen in seconds and prefix in last:
            yield Derivation(entry, ((self._id[id(first)], firsts), (chosen, seconds), (prefix, last)))


def _by_addition(groups: Iterable[Sequence[Rule]]) -> dict[int, dict[str, dict[str, list[Rule]]]]:
    """Return rules by the length of the added text, the text, and the removed text."""
    found: dict[int, dict[str, dict[str, list[Rule]]]] = {}
    for group in groups:
        for rule in group:
            of_text = found.setdefault(len(rule.add), {}).setdefault(rule.add, {})
            of_text.setdefault(rule.strip, []).append(rule)
    return found


def _undone(
    rules: Mapping[int, Mapping[str, Mapping[str, Sequence[Rule]]]], form: str, are_suffixes: bool
) -> Iterator[tuple[Rule, str]]:
    """Yield the rules that may have made a form, and the form before."""
    for size, of_size in rules.items():
        if size > len(form):
            continue
        added = form[len(form) - size :] if are_suffixes else form[:size]
        for strip, group in of_size.get(added, {}).items():
            before = form[: len(form) - size] + strip if are_suffixes else strip + form[size:]
            for rule in group:
                if rule.of(before, are_suffixes) == form:
                    yield rule, before


def read_grammar(path: Path | str, spelling: Spelling) -> Grammar:
    """Read FILE.dic and FILE.aff. Words get the case of the text.

    Raises:
        DataError: as `read_affixes` and `iter_entries`, or a dictionary without words or with too many.
    """
    affixes = read_affixes(rules_of(path), spelling.form and "nfc")
    entries: dict[tuple[str, frozenset[str]], None] = {}
    for location, word, flags, _ in iter_entries(path, affixes):
        if word and not affixes.has(flags, "forbidden") and not affixes.has(flags, "in compounds"):
            entries[spelling.cased(word), flags] = None
        if len(entries) > MOST_ENTRIES:
            raise DataError(
                f"{location}: expected at most {MOST_ENTRIES:,} words, found more; take a smaller dictionary"
            )
    if not entries:
        raise DataError(f"{path}: expected words, found none; is the file empty?")
    grammar = Grammar(affixes, list(entries))
    # without a form: a word that needs an affix, and has none that applies
    useless = {entry for entry in entries if affixes.has(entry[1], "bare") and not grammar.firsts(*entry)}
    return Grammar(affixes, [entry for entry in entries if entry not in useless]) if useless else grammar
