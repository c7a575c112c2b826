"""Terms of a TBX file (TermBase eXchange, ISO 30042), in its older and newer dialects.

    entry      <termEntry> or <conceptEntry>     one concept
    language   <langSet> or <langSec>, xml:lang  its terms in one language
    term       <tig>, <ntig> or <termSec>        <term>, and notes: <termNote type="partOfSpeech">, administrativeStatus

Each source term of an entry becomes a row whose target is the entry's preferred target term, or else the first. Terms
that are deprecated or superseded are left out. Where several entries have the same source term, the first counts. A TBX
file is XML: expat reads it, element by element; nothing outside the file is fetched, and entities that a file defines
by itself are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.stored_terms import StoredTerms, TermEntry
from fairseq_llrnn.evidence.terms_file import check_entry
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import opened, place

ENTRIES = ("termEntry", "conceptEntry")
LANGUAGES = ("langSet", "langSec")
TERMS = ("tig", "ntig", "termSec")
logger = logging.getLogger(__name__)

UPOS = {
    "adjective": "ADJ", "adverb": "ADV", "noun": "NOUN", "properNoun": "PROPN", "verb": "VERB", "numeral": "NUM",
    "pronoun": "PRON", "preposition": "ADP", "interjection": "INTJ",
}  # fmt: skip
IN_NOTES = 'in <termNote type="partOfSpeech"> of the target\'s term'
LEFT_OUT = ("deprecated", "superseded")
UNUSED, WITHOUT_TARGET = "empty, deprecated or superseded", "of entries without a target term to use"
REPEATED, OTHERWISE = "repeated", "with another translation in an earlier entry"
MOST_NAMED = 5
BLOCK = 1 << 16  # bytes
LONGEST = 10_000  # characters of a term or a note


@dataclass
class _Term:
    text: str = ""
    upos: str | None = None
    status: str = ""
    line: int = 0


@dataclass
class _Reading:
    """What is known of the entry that is being read."""

    path: Path | str
    parser: Any
    found: list[TermEntry] = field(default_factory=list)
    languages: set[str] = field(default_factory=set)  # of the whole file
    entry: dict[str, list[_Term]] = field(default_factory=dict)  # terms by language
    language: str = ""
    term: _Term | None = None
    text: list[str] | None = None  # of <term> or <termNote>, while it is read
    note: str = ""


def read_tbx(path: Path | str, languages: Sequence[str]) -> StoredTerms:
    """The rows of a TBX file, checked; raises DataError as `iter_tbx`, and for what no row may have."""
    count, others = ReadCount(path, "source terms"), list[str]()

    def entries() -> Iterator[TermEntry]:
        for entry in iter_tbx(count, languages):
            count.read += 1
            yield check_entry(entry)

    def repeated(first: TermEntry, entry: TermEntry) -> None:
        count.read -= 1
        count.left_out[REPEATED if first.target == entry.target else OTHERWISE] += 1
        if first.target != entry.target and len(others) < MOST_NAMED:
            others.append(" ".join(entry.source))

    found = StoredTerms(entries(), repeated)
    if others:
        number = count.left_out[OTHERWISE]
        some = ", ".join(others) + (", …" if number > len(others) else "")
        logger.warning(
            f"{path}: {number:,} terms have another translation in an earlier entry, which counts ({some}); for "
            "another choice, give them in a TSV"
        )
    count.done()
    return found


def iter_tbx(count: ReadCount, languages: Sequence[str]) -> Iterator[TermEntry]:
    """The rows of a TBX file, as they stand; whoever uses them counts them as read, or leaves them out.

    Args:
        languages: of source and target, as `en`; regions in the file (`en-GB`) do not count.

    Raises:
        DataError: no XML, entities of its own, or neither language in it.
    """
    path, parser = count.file, expat.ParserCreate()
    reading = _Reading(path, parser)
    source, target = (_primary(language) for language in languages)

    def start(name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name in ENTRIES:
            reading.entry = {}
        elif name in LANGUAGES:
            reading.language = _primary(attributes.get("xml:lang", attributes.get("lang", "")))
            reading.languages.add(reading.language)
        elif name in TERMS:
            reading.term = _Term(line=parser.CurrentLineNumber)
        elif name in ("term", "termNote"):
            reading.text, reading.note = [], attributes.get("type", "")

    def end(name: str) -> None:
        name = name.rpartition(":")[2]
        if name in ENTRIES:
            reading.found += _rows(count, reading.entry, source, target)
        elif name in TERMS and reading.term is not None:
            reading.entry.setdefault(reading.language, []).append(reading.term)
            reading.term = None
        elif name in ("term", "termNote") and reading.text is not None:
            text = " ".join("".join(reading.text).split())
            reading.text = None
            if reading.term is None:
                return
            if name == "term":
                reading.term.text = text
            elif reading.note == "partOfSpeech":
                reading.term.upos = UPOS.get(text)
            elif reading.note == "administrativeStatus":
                reading.term.status = text

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
            f"{place(path, parser.CurrentLineNumber)}: expected TBX without entities of its own, found one; write it "
            "out, and remove <!ENTITY …>"
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    parser.buffer_text = True
    try:
        with opened(path) as (file, _):
            while block := file.read(BLOCK):
                parser.Parse(block, False)
                yield from reading.found
                reading.found.clear()
            parser.Parse(b"", True)
            yield from reading.found
    except expat.ExpatError as error:
        raise DataError(
            f"{place(path, error.lineno)}: expected TBX, which is XML, found: {expat.errors.messages[error.code]}; "
            "export the file again, or give a TSV"
        ) from None
    missing = [language for language in (source, target) if language not in reading.languages]
    if missing:
        there = ", ".join(sorted(reading.languages - {""})) or "none"
        raise DataError(f"{path}: expected terms in the language {missing[0]}, found {there}; give another file")


def _primary(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


def _rows(count: ReadCount, entry: dict[str, list[_Term]], source: str, target: str) -> Iterator[TermEntry]:
    sources, targets = ([term for term in entry.get(of, ()) if _is_used(term)] for of in (source, target))
    count.found += len(entry.get(source, ()))
    count.left_out[UNUSED] += len(entry.get(source, ())) - len(sources)
    if not targets:
        count.left_out[WITHOUT_TARGET] += len(sources)
    else:
        best = min(targets, key=lambda term: not term.status.startswith("preferred"))
        for term in sources:
            yield TermEntry(tuple(term.text.split()), best.text, best.upos, (), place(count.file, term.line), IN_NOTES)


def _is_used(term: _Term) -> bool:
    return bool(term.text) and not term.status.startswith(LEFT_OUT)
