"""Read terms from TBX files (TermBase eXchange, ISO 30042): the older and newer dialects, and TBX-Min.

    entry      <termEntry>, <conceptEntry>       one concept
               or <entry>
    language   <langSet>, <langSec> or           its terms in one language
               <langGroup>, with xml:lang
    term       <tig>, <ntig>, <termSec> or       <term>, and notes: <termNote type="partOfSpeech">, administrativeStatus
               <termGroup>                       (with style="dct", and in TBX-Min, elements of these names)

Each source term of an entry becomes a row. Its target is the entry's preferred target term, or else the first one.
Terms with a status that forbids them are dropped. Of several regional variants (`pt-BR`, `pt-PT`) of the target, the
requested one comes first, then the language without a region. Source terms of all regions are used. If several entries
have the same source term, the first one counts.

expat parses the file as XML. Nothing outside the file is fetched. Entities raise an error, except those of XML, such as
`&amp;`.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from xml.parsers import expat

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, is_blank, opened, place, shown
from fairseq_llrnn.lexicon.features import UPOS
from fairseq_llrnn.systems.terms.tsv_file import StoredTerms, TermEntry, check_entry

ROOTS = ("martif", "tbx")  # in small letters
ENTRIES = ("termEntry", "conceptEntry", "entry")
LANGUAGES = ("langSet", "langSec", "langGroup")
TERMS = ("tig", "ntig", "termSec", "termGroup")
XML = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff\0)?\s*<[^\t\n]*")  # at the start of a file
logger = logging.getLogger(__name__)

KINDS = {
    "adjective": "ADJ", "adverb": "ADV", "noun": "NOUN", "propernoun": "PROPN", "verb": "VERB", "numeral": "NUM",
    "pronoun": "PRON", "preposition": "ADP", "interjection": "INTJ", "determiner": "DET", "particle": "PART",
    "coordinatingconjunction": "CCONJ", "subordinatingconjunction": "SCONJ", "other": None,
} | {tag.lower(): tag for tag in UPOS}  # fmt: skip
IN_NOTES = 'in <termNote type="partOfSpeech"> of the target\'s term'
UNUSED, WITHOUT_TARGET = "empty, or not to be used by their status", "of entries without a target term to use"
REPEATED, OTHERWISE = "repeated", "with another translation in an earlier entry"
MOST_NAMED = 5
PART_OF_SPEECH, STATUS = "partofspeech", ("administrativestatus", "normativeauthorization", "termstatus", "status")
NO_STATUS = ("", "none", "unknown", "unspecified", "notspecified", "na")
NEVER = (
    "deprecat", "supersed", "forbid", "obsole", "not", "non", "unapprov", "unprefer", "unaccept", "disallow",
    "disapprov", "discourag", "prohibit", "reject", "withdraw", "avoid", "donot", "outdated", "banned", "invalid",
)  # fmt: skip
# Prefixes of statuses, the best rank first; a term without a status has the rank ADMITTED.
RANKS = (("prefer", "approv", "recommend"), ("standard", "legal", "regulat"), ("admit", "accept", "allow", "permit"))
ADMITTED, UNKNOWN = 2, 3
MOST_NOTES = 8  # kinds of notes in the warning, most frequent first
BLOCK = 1 << 14  # bytes
LONGEST = 10_000  # characters of a term or a note


@dataclass
class _Term:
    text: str = ""
    upos: str | None = None
    rank: int | None = ADMITTED  # index in RANKS, or UNKNOWN; None: forbidden
    line: int = 0


@dataclass
class _Reading:
    """State of the entry that is being read."""

    path: Path | str
    languages_to_read: tuple[str, ...]  # without regions
    entries: list[TermEntry] = field(default_factory=list)
    languages: set[str] = field(default_factory=set)  # of the whole file
    entry: dict[str, list[_Term]] = field(default_factory=dict)  # terms by language and region, as `pt-br`
    notes: Counter[str] = field(default_factory=Counter)
    lines: dict[str, int] = field(default_factory=dict)  # of the first note of each kind
    is_in_root: bool = False
    language: str = ""
    term: _Term | None = None
    text: list[str] | None = None  # of <term> or <termNote>, while it is read
    note: str = ""

    def count_note(self, note: str, line: int) -> None:
        """Count a note if the current language is one of those to read."""
        if _primary(self.language) in self.languages_to_read:
            self.notes[note] += 1
            self.lines.setdefault(note, line)

    def take_note(self, term: _Term, text: str) -> None:
        """Apply a note of the kind `self.note` to a term. The last status counts, unless one forbids the term."""
        value = _plain(text)
        if self.note == PART_OF_SPEECH:
            term.upos = KINDS.get(value)
            if value not in KINDS:
                self.count_note(f"terms have the unknown part of speech {shown(text)}", term.line)
        elif term.rank is not None and (value := _status(value)) not in NO_STATUS:
            term.rank = next((rank for rank, names in enumerate(RANKS) if value.startswith(names)), UNKNOWN)
            if value.startswith(NEVER):
                term.rank = None
                self.count_note(f"terms are left out by their status {shown(text)}", term.line)
            elif term.rank == UNKNOWN:
                self.count_note(f"terms have the unknown status {shown(text)}: others come first", term.line)


def is_xml(path: Path | str) -> bool:
    """Return whether a file begins as XML rather than as a table row.

    Raises:
        DataError: the file cannot be read.
    """
    with opened(path) as (file, _):
        begin = XML.match(first := file.peek(BLOCK))
    return begin is not None and first[begin.end() :][:1] != b"\t"


def read_tbx(path: Path | str, languages: Sequence[str]) -> StoredTerms:
    """Return the checked rows of a TBX file. Raises DataError as `iter_tbx`, and for invalid rows."""
    count, other_translations = ReadCount(path, "source terms"), list[str]()

    def entries() -> Iterator[TermEntry]:
        for entry in iter_tbx(count, languages):
            count.read += 1
            yield check_entry(entry)

    def repeated(first: TermEntry, entry: TermEntry) -> None:
        count.read -= 1
        count.left_out[REPEATED if first.target == entry.target else OTHERWISE] += 1
        if first.target != entry.target and len(other_translations) < MOST_NAMED:
            other_translations.append(" ".join(entry.source))

    terms = StoredTerms(entries(), repeated)
    if other_translations:
        number = count.left_out[OTHERWISE]
        named = ", ".join(other_translations) + (", …" if number > len(other_translations) else "")
        logger.warning(
            f"{path}: {number:,} terms have another translation in an earlier entry, which is used ({named}); to "
            "choose another one, write these terms in a TSV"
        )
    count.done()
    return terms


def iter_tbx(count: ReadCount, languages: Sequence[str]) -> Iterator[TermEntry]:
    """Yield the unchecked rows of a TBX file. The caller counts each as read or left out.

    Args:
        languages: of source and target, as `en` or `pt_BR`. One warning at the end counts dropped terms and fallbacks.

    Raises:
        DataError: invalid XML, another root element, entities, or a language without terms.
    """
    path, parser = count.file, expat.ParserCreate()
    source, target = (_tag(language) for language in languages)
    reading = _Reading(path, (_primary(source), _primary(target)))

    def start(name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if not reading.is_in_root and name.lower() not in ROOTS:
            raise DataError(
                f"{place(path, parser.CurrentLineNumber)}: expected TBX, with the root element <martif> or <tbx>, "
                f"found <{name}>; export the terms as TBX, or write a TSV with rows `source<TAB>target`"
            )
        reading.is_in_root = True
        if name in ENTRIES:
            reading.entry = {}
        elif name in LANGUAGES:
            reading.language = _tag(attributes.get("xml:lang", attributes.get("lang", "")))
            reading.languages.add(_primary(reading.language))
        elif name in TERMS:
            reading.term = _Term(line=parser.CurrentLineNumber)
        elif name == "term":
            reading.text, reading.note = [], ""
        elif reading.term is not None and (kind := _note(name, attributes)):
            reading.text, reading.note = [], kind

    def end(name: str) -> None:
        name = name.rpartition(":")[2]
        if name in ENTRIES:
            reading.entries += _rows(count, reading, source, target)
        elif name in TERMS and reading.term is not None:
            if is_blank(reading.term.text):
                reading.count_note("terms are empty", reading.term.line)
            reading.entry.setdefault(reading.language, []).append(reading.term)
            reading.term = None
        elif reading.text is not None and (name in ("term", "termNote") or _plain(name) == reading.note):
            text = " ".join("".join(reading.text).split())
            reading.text = None
            if reading.term is not None and name == "term":
                reading.term.text = text
            elif reading.term is not None:
                reading.take_note(reading.term, text)

    def characters(text: str) -> None:
        if reading.text is not None:
            reading.text.append(text)
            if sum(map(len, reading.text)) > LONGEST:
                raise DataError(
                    f"{place(path, parser.CurrentLineNumber)}: expected a term of at most {LONGEST:,} characters, "
                    "found a longer one; is it the right file?"
                )

    def entity(*_: object) -> None:
        raise DataError(
            f"{place(path, parser.CurrentLineNumber)}: entities defined in the file (<!ENTITY …>) are not supported; "
            "replace them with their text, and remove the definitions"
        )

    def skipped(name: str, is_parameter: bool) -> None:  # without a DTD, expat raises an error
        if not is_parameter:
            raise DataError(
                f"{place(path, parser.CurrentLineNumber)}: expected text, found the undefined entity &{name};; write "
                "the character itself"
            )

    parser.SkippedEntityHandler = skipped
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    parser.buffer_text = True
    try:
        with opened(path) as (file, _):
            while block := file.read(BLOCK):
                parser.Parse(block, False)
                yield from reading.entries
                reading.entries.clear()
            parser.Parse(b"", True)
            yield from reading.entries
    except expat.ExpatError as error:
        raise DataError(
            f"{place(path, error.lineno)}: expected TBX, which is XML, found: {expat.errors.messages[error.code]}; "
            "export the file again, or give a TSV"
        ) from None
    missing = [language for language in map(_primary, (source, target)) if language not in reading.languages]
    if missing:
        available = ", ".join(sorted(reading.languages - {""})) or "none"
        raise DataError(f"{path}: expected terms in the language {missing[0]}, found {available}; give another file")
    if reading.notes:
        most = reading.notes.most_common(MOST_NOTES)
        notes = (f"{count_of_note:,} {note} (line {reading.lines[note]})" for note, count_of_note in most)
        rest_count = len(reading.notes) - MOST_NOTES
        logger.warning(
            f"{path}: {'; '.join(notes)}" + (f"; and {rest_count:,} other kinds of notes" if rest_count > 0 else "")
        )


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    """Return a name in the form for comparison: `properNoun`, `Proper-Noun` and `proper_noun` are equal."""
    return re.sub(r"[\W_]", "", name).casefold()


def _status(text: str) -> str:
    """Return a status without its suffix: `preferredtermadmnsts` -> `preferred`."""
    return text.removesuffix("admnsts").removesuffix("term")


def _note(element: str, attributes: dict[str, str]) -> str:
    """Return the kind of note that an element begins, by its attribute (style="dca") or name ("dct"), "" if unused."""
    kind = _plain(attributes.get("type", "") if element == "termNote" else element)
    return kind if kind == PART_OF_SPEECH or kind in STATUS else ""


def _tag(language: str) -> str:
    return language.replace("_", "-").lower()


def _primary(tag: str) -> str:
    return tag.partition("-")[0]


def _distance(tag: str, requested: str) -> tuple[int, int]:
    """Return how far a language tag is from the requested one: 0 the same, 1 less specific, 2 another region.

    All regions of a language match a request without a region: any `pt-…` serves for `pt`.
    """
    subtags, wanted = (
        frozenset(language.split("-")[1:]) for language in (tag, requested)
    )  # without the language: pt-pt
    if wanted <= subtags:
        return 0, len(subtags - wanted)
    return (1, len(wanted - subtags)) if subtags < wanted else (2, -len(subtags & wanted))


def _rows(count: ReadCount, reading: _Reading, source: str, target: str) -> Iterator[TermEntry]:
    """Yield the source terms of an entry in any region, each with the best target term, and count them."""
    sources, targets = list[_Term](), dict[str, list[_Term]]()
    for tag, terms in reading.entry.items():
        used = [term for term in terms if term.rank is not None and not is_blank(term.text)]
        if _primary(tag) == _primary(source):
            count.entries += len(terms)
            count.left_out[UNUSED] += len(terms) - len(used)
            sources += used
        if _primary(tag) == _primary(target) and used:
            targets[tag] = used
    if not targets:
        count.left_out[WITHOUT_TARGET] += len(sources)
        return
    region = min(targets, key=lambda tag: _distance(tag, target))
    best = min(targets[region], key=lambda term: term.rank or 0)
    if sources and _distance(region, target)[0] == 2:
        reading.count_note(f"entries have no term in {target}: the one in {region} is used", best.line)
    for term in sources:
        where = place(reading.path, term.line)
        yield TermEntry(tuple(term.text.split()), best.text, best.upos, (), where, IN_NOTES)
