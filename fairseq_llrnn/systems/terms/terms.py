"""Match terms in source sentences, and mark their tokens.

A phrase matches by its words or, word by word, by a lemma of the source word if lemmas are known. In lower-cased text
case is ignored. Of overlapping matches the longest counts, then the first in the sentence. With pieces, terms are still
words: those that the source pieces spell. A form is one target token, however many pieces spell it
(evidence/piece_table.py).

The forms of a term come from the first source that has any:

* its row;
* the known forms of the lemma (lexicon/lemmas.py), restricted to the part of speech of the row;
* for a phrase, the agreeing forms of its words (systems/terms/phrases.py);
* the lemma alone, with a warning.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from fairseq_llrnn.errors import DataError, as_one_line
from fairseq_llrnn.evidence.evidence_table import EvidenceTable, Use
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.files.text_lines import form_of, in_form
from fairseq_llrnn.lexicon.casing import is_lower
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.systems.terms.groups import LEAST_GUESS, MOST_FORMS, TermGroups
from fairseq_llrnn.systems.terms.phrases import PhraseForms
from fairseq_llrnn.systems.terms.tsv_file import (
    Entries,
    EntriesByKey,
    TermEntry,
    check_entry,
    check_kind_places,
    check_no_lists,
    check_same_term,
)

logger = logging.getLogger(__name__)

ARROW = " => "
OTHER_ARROWS = ("->", "-->", "→", "⇒")  # common misspellings of ARROW
BAR = "|"
IN_CELLS = f"after the term, with blanks around the bar: `dog{ARROW}pes {BAR} NOUN`"
CELL = f"`term` or `source phrase{ARROW}term`, optionally followed by its part of speech: `term {BAR} NOUN`"

MOST_AT_HAND = 10_000  # cached terms of a file
NAMED = 5  # targets in one remark
MOST_WARNINGS = 1000  # in a run, for targets of single sentences
UNKNOWN = "no forms are known: the term is used in the given form only"
OTHER_KIND = "no known form has the given part of speech: all forms are used"
CUT = f"more than {MOST_FORMS} forms are known: some are left out"
SEPARATORS = ("/", "|")
ALTERNATIVES = "expected one term, found possible alternatives: the text is used unchanged"
ADVICE = {
    ALTERNATIVES: "write targets as forms in the fourth column of a TSV, separated by |, and a row for each source",
    UNKNOWN: "give forms with --term-forms, as in training, or in the fourth column of a TSV",
    OTHER_KIND: "fix the part of speech, or leave it out",
    CUT: "list the forms that you need in the fourth column of a TSV",
}


def _may_be_alternatives(word: str, index: Container[str]) -> bool:
    """Return whether a word such as `maison/domicile` is not in the dictionary, and all its parts are."""
    parts = word.split("/")
    return len(parts) > 1 and word not in index and all(part in index and len(part) > 1 for part in parts)


class Terms:
    """Find the terms of a file and of single sentences in source sentences."""

    def __init__(
        self,
        table: EvidenceTable,
        forms: WordForms,
        entries: Entries = (),
        *,
        must: bool = True,
        source_lemmas: Mapping[str, Iterable[str]] | None = None,
        phrases: PhraseForms | None = None,
    ) -> None:
        """
        Args:
            entries: terms for all sentences.
            must: whether each term is required.
            source_lemmas: lemmas of source words, by word.
            phrases: derives the forms of phrases (`phrase_forms` of phrases.py) (default from `forms`).
        """
        self.table, self.forms, self.must, self.groups = table, forms, must, TermGroups(table)
        self.phrases = PhraseForms(forms) if phrases is None else phrases
        self._lemmas = source_lemmas or {}
        self._is_lower = is_lower(table.source.word_index)
        self.matched = 0  # matches of the entries in sentences, and repetitions of entries in single sentences
        self._noted: dict[str, list[str]] = {remark: [] for remark in ADVICE}  # the first NAMED
        self._times: Counter[str] = Counter()
        self._warned: set[tuple[str, str]] | None = None  # by terms of single sentences; None while entries are read
        self._unicode = form_of(table.source.word_index), form_of(table.target.word_index)
        self._by_key = EntriesByKey(map(self._checked_keys, entries))
        self._entry_at = lru_cache(MOST_AT_HAND)(lambda row: self._spelled(entries[row]))
        self._group_at = lru_cache(MOST_AT_HAND)(self._read_group)
        table.groups.required |= must
        for remark, targets in self._noted.items():
            if targets:
                named = "; ".join(targets) + ("; …" if self._times[remark] > len(targets) else "")
                number = f"{self._times[remark]:,} of {len(entries):,} targets"
                logger.warning(as_one_line(f"terms: {number} ({named}): {remark}; {ADVICE[remark]}"))
        self._noted, self._warned = {}, set()

    def _note(self, remark: str, target: str, where: str) -> None:
        """Add a remark on a file's entry to the common warning, or warn once about a single sentence's target."""
        if self._warned is None:
            self._times[remark] += 1
            if self._times[remark] <= NAMED:
                self._noted[remark].append(f"{target} in {where}" if where else target)
        elif (remark, target) not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add((remark, target))
            warning = f"terms: the target {target!r} of a single sentence: {remark}; {ADVICE[remark]}"
            logger.warning(as_one_line(warning))

    def _checked_keys(self, entry: TermEntry) -> set[str]:
        """Check a row of the file, collect its remarks, and return the keys of its first word."""
        entry = self._spelled(entry)
        self._check(entry)
        self.forms_of(entry)
        return self._phrase_keys(entry.source[0])

    def _read_group(self, row: int) -> int:
        """Return the group of a row of the file, cached because it takes much longer than reading an entry."""
        entry = self._entry_at(row)
        return self.groups.number(entry.target, self.forms_of(entry, is_noted=True), self.must)

    def _of_run(self, key: str) -> list[tuple[TermEntry, int]]:
        """Return the entries of the file whose first word has the key, with their row numbers."""
        rows = ((self._entry_at(row), row) for row in self._by_key.rows(key))
        return [(entry, row) for entry, row in rows if key in self._phrase_keys(entry.source[0])]

    def _spelled(self, entry: TermEntry) -> TermEntry:
        """Return an entry in the Unicode forms of the dictionaries."""
        of_source, of_target = self._unicode
        source = tuple(in_form(word, of_source) for word in entry.source)
        forms = tuple(in_form(form, of_target) for form in entry.forms)
        return replace(entry, source=source, target=in_form(entry.target, of_target), forms=forms)

    def _check(self, entry: TermEntry) -> None:
        """Raise DataError for a part of speech or a list among the words, and for pieces."""
        for refuse in (check_kind_places, check_no_lists):
            refuse(entry, self.table.source.word_index, self.table.target.word_index)
        for words, index in (
            (entry.source, self.table.source.word_index),
            (entry.target.split(), self.table.target.word_index),
        ):
            if any(word in SEPARATORS or _may_be_alternatives(word, index) for word in words):
                self._note(ALTERNATIVES, " ".join(words), entry.where)
        pieces = self.table.target_words.convention
        if pieces is None:
            return
        words = [*entry.source, *(word for phrase in (entry.target, *entry.forms) for word in phrase.split())]
        wrong = next((word for word in words if pieces.mark("") in word), None)
        if wrong is not None:
            raise DataError(
                f"{entry.where}: expected words, found pieces: {wrong!r}; write terms as whole words, even if the text "
                "is segmented"
            )

    # ---- forms ------------------------------------------------------------------------------------------------------

    def forms_of(self, entry: TermEntry, is_noted: bool = False) -> Mapping[str, Mapping[str, float]]:
        """Return the forms of a term with their features. is_noted: whether its remarks were logged before."""
        note = self._note if not is_noted else lambda *_: None
        if entry.forms:
            return {form: {} for form in entry.forms}
        forms = self.forms.of(entry.target)
        words = entry.target.split()
        is_combined = not forms and len(words) > 1
        if is_combined:
            forms = self.phrases.of(words)
        if entry.upos is not None:
            wanted = f"POS:{entry.upos}"
            of_kind = {form: f for form, f in forms.items() if wanted in self._parts_of_speech(form, f)}
            if forms and not of_kind:
                note(OTHER_KIND, f"{entry.target} {entry.upos}", entry.where)
            if of_kind and not is_combined:  # the forms of a phrase share one part of speech
                forms = of_kind
        if not forms:
            note(UNKNOWN, entry.target, entry.where)
            return {entry.target: {}}
        if len(forms) > MOST_FORMS:
            note(CUT, entry.target, entry.where)
        index = self.table.target.word_index  # words of the dictionary first, because a group is cut at MOST_FORMS
        in_order = sorted(forms.items(), key=lambda item: self.table.token_string(item[0]) not in index)
        return {entry.target: forms.get(entry.target, {}), **dict(in_order)}

    def _parts_of_speech(self, form: str, features: Mapping[str, float]) -> set[str]:
        """Return the listed parts of speech of a form, else those that the prior knows or guesses.

        A phrase has the parts of speech of all its words, whichever is the head.
        """
        listed = {name for name in features if name.startswith("POS:")}
        by_word = self.phrases.analyses.features if not listed else {}
        rows = (by_word.get(word, {}) for word in (form, *form.split()))
        return listed or {name for row in rows for name, value in row.items() if value >= LEAST_GUESS}

    # ---- sentences --------------------------------------------------------------------------------------------------

    def _cased(self, word: str) -> str:
        return word.lower() if self._is_lower else word

    def _keys(self, word: str) -> set[str]:
        """Return the keys of a word in a text: the word, and its lemmas after a tab."""
        cased = self._cased(word)
        return {cased, *(f"\t{lemma}" for lemma in self._lemmas.get(cased, ()))}

    def _phrase_keys(self, word: str) -> set[str]:
        """Return the keys of a word in a phrase. The word may be a lemma that does not occur in the text."""
        return self._keys(word) | {f"\t{self._cased(word)}"}

    def marked(self, tokens: Sequence[int], cells: Sequence[str] = ()) -> list[int]:
        """Return the source tokens of a sentence with the marks of its terms.

        Args:
            cells: the terms of this sentence alone, in the format CELL.

        Raises:
            DataError: a cell has no term, or a phrase that the sentence lacks, or contradicts another cell.
        """
        read = np.array([plain(token) for token in tokens], dtype=np.int64)
        spans = self.table.source_words.spans(read)
        words = [self.table.source_words.word(read[begin:end]) for begin, end in spans]
        keys = [set() if word is None else self._keys(word) for word in words]
        of_sentence: dict[tuple[str, ...], TermEntry] = {}
        anywhere: list[int] = []
        for cell in cells:
            entry = self._entry(cell)
            if entry.source:
                check_same_term(of_sentence.setdefault(entry.source, entry), entry)
            else:
                anywhere.append(self.groups.number(entry.target, self.forms_of(entry), self.must))
        single = {
            source: (entry, self.groups.number(entry.target, self.forms_of(entry), self.must))
            for source, entry in of_sentence.items()
        }
        matches = self._matches(keys, single.values())
        groups = self.table.groups.groups
        of_file = [groups[group].name for _, _, group in matches if group not in {g for _, g in single.values()}]
        repeated = sum(self._is_in_file(entry) for entry in of_sentence.values())
        self.matched += len(of_file) + repeated
        for group in tuple(anywhere):  # drop cells that repeat a term of the file
            if groups[group].name in of_file:
                of_file.remove(groups[group].name)
                anywhere.remove(group)
        missing = [
            entry for entry, group in single.values()
            if all(group != g or self._lemmas_needed(entry, keys[start:end]) is None for start, end, g in matches)
        ]  # fmt: skip
        if missing:
            raise DataError(
                f"{missing[0].where}: the sentence lacks the phrase {' '.join(missing[0].source)!r}, or a longer term "
                f"covers it; fix the phrase, or give the term alone: {missing[0].target}"
            )
        uses: dict[int, list[Use]] = {}
        for start, end, group in matches:
            first = spans[start][0]
            for place in range(first, spans[end - 1][1]):
                uses.setdefault(place, []).append(Use(group, place == first, True))
        symbols = self.table.source.symbols
        ordinary = [begin for begin, _ in spans if symbols[read[begin]] not in ("<s>", "<pad>", "</s>")]
        if anywhere and not ordinary:
            raise DataError("terms: an empty source cannot have a term; leave the term out")
        for number, group in enumerate(anywhere):
            uses.setdefault(ordinary[number % len(ordinary)], []).append(Use(group, True, False))
        with_marks = list(tokens)
        for place, term_uses in uses.items():
            with_marks[place] = self.table.groups.marked(with_marks[place], term_uses)
        return with_marks

    def _is_in_file(self, entry: TermEntry) -> bool:
        """Return whether the file has the same source and target."""
        rows = {row for key in self._phrase_keys(entry.source[0]) for row in self._by_key.rows(key)}
        return any(
            (stored.source, stored.target) == (entry.source, entry.target) for stored in map(self._entry_at, rows)
        )

    def _entry(self, cell: str) -> TermEntry:
        source, arrow, target = cell.partition(ARROW.strip())
        source, target = (source, target) if arrow else ("", source)
        where = f"the column {cell.strip()!r}"
        other = next((word for word in cell.split()[1:-1] if word in OTHER_ARROWS), None)
        if other is not None and not arrow:
            raise DataError(f"{where}: found `{other}` instead of `{ARROW.strip()}`; expected {CELL}")
        if arrow and not source.strip():
            raise DataError(f"{where}: the source side is empty; expected {CELL}")
        target, bar, upos = target.rstrip().partition(f" {BAR} ")
        if ARROW.strip() in target.split():
            raise DataError(f"{where}: found a second `{ARROW.strip()}`; expected {CELL}")
        if target.split()[1:] and target.split()[-1] == BAR:
            raise DataError(f"{where}: found nothing after the `{BAR}`; expected {CELL}")
        kind = upos.strip().upper() if bar else None
        entry = self._spelled(TermEntry(tuple(source.split()), " ".join(target.split()), kind, (), where, IN_CELLS))
        check_entry(entry)
        self._check(entry)
        return entry

    def _matches(self, keys: Sequence[set[str]], single: Iterable[tuple[TermEntry, int]]) -> list[tuple[int, int, int]]:
        """Return the (start, end, group) of terms. Terms of the sentence alone go before those of the file."""
        of_first: dict[str, list[tuple[TermEntry, int]]] = {}
        for entry, group in single:
            for key in self._phrase_keys(entry.source[0]):
                of_first.setdefault(key, []).append((entry, group))
        matched: list[tuple[int, int, int]] = []
        taken: set[int] = set()
        for entries, group_of in ((lambda key: of_first.get(key, ()), int), (self._of_run, self._group_at)):
            matches = self._all_matches(keys, entries)
            for (start, end), number in sorted(matches.items(), key=lambda item: (item[0][0] - item[0][1], item[0][0])):
                if taken.isdisjoint(range(start, end)):
                    taken.update(range(start, end))
                    matched.append((start, end, group_of(number)))
        return sorted(matched)

    def _all_matches(
        self, keys: Sequence[set[str]], entries: Callable[[str], Sequence[tuple[TermEntry, int]]]
    ) -> dict[tuple[int, int], int]:
        """Return all matches of phrases, which may overlap: (start, end) -> the number paired with the entry."""
        matches: dict[tuple[int, int], int] = {}
        for place, word_keys in enumerate(keys):
            fitting = []
            for entry, number in (item for key in sorted(word_keys) for item in entries(key)):
                end = place + len(entry.source)
                if (lemmas := self._lemmas_needed(entry, keys[place:end])) is not None:
                    fitting.append((lemmas, number, end))
            for _, number, end in sorted(fitting, key=lambda item: item[0]):  # words go before lemmas
                matches.setdefault((place, end), number)
        return matches

    def _lemmas_needed(self, entry: TermEntry, keys: Sequence[set[str]]) -> int | None:
        """Return how many words match a phrase by lemma only, or None if the phrase does not match."""
        if len(keys) != len(entry.source):
            return None
        words = list(zip(keys, entry.source, strict=True))
        if any(key.isdisjoint(self._phrase_keys(word)) for key, word in words):
            return None
        return sum(self._cased(word) not in key for key, word in words)
