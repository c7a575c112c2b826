"""Forms of lemmas from dictionaries of hunspell: FILE.dic, words with the names of rules, and FILE.aff, the rules.

    kabina/ZQ                   a word, and the rules (flags) that apply to it
    SFX Z a ách [^ij]a          rule Z: remove `a` from a word with this ending and add `ách`; 0: nothing

A rule may name further flags, for one more suffix or a prefix (`ing/S`). Prefixes and suffixes combine if both have Y.
The word is the lemma of its forms, unless its line names another (`st:`). Every directive that affects the forms or
their spelling in a text is read (hunspell_affixes.py). Compounds are not listed: a warning counts the words that form
some. Format: hunspell(5).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, in_form, place, shown
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row
from fairseq_llrnn.lexicon.readers.hunspell_affixes import (
    UNDECODED,
    Affixes,
    iter_encoded,
    named_by,
    read_affixes,
    split_flags,
)

MORPHOLOGY = re.compile(r"(?:^|\s)[a-z]{2}:")
WITHOUT_WORD, FORBIDDEN, IN_COMPOUNDS = "without a word", "forbidden", "in compounds only"
WITHOUT_FORM, NOT_IN_TEXT = "without a form", "without a form in the text"
DESCRIPTIONS = "descriptions of words (AM)"
STEM = re.compile(r"(?:^|\s)st:(\S+)")
ALIAS = re.compile(r"(.+/\S+|[^\t]+(?=\t))\s+(\d+)\s*", re.ASCII)  # word and flags, and a number of AM
logger = logging.getLogger(__name__)


def rules_of(path: Path | str, option_name: str = "") -> Path:
    """Return FILE.aff of FILE.dic. Raises DataError for another name, or a missing file. option_name: for messages."""
    rules = Path(path).with_suffix(".aff") if Path(path).suffix == ".dic" else None
    if rules is None or not rules.exists():
        raise DataError(
            f"{option_name} {path}: expected a dictionary of hunspell, FILE.dic next to FILE.aff, "
            "found ".lstrip()
            + ("another name" if rules is None else f"no {rules.name}") + "; give both files"
        )
    return rules


def iter_hunspell(
    path: Path | str, words: Collection[str] | None = None, spelled: Callable[[str], str] = str, form: str | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield lemmas and their forms, in the order of FILE.dic. Its rules are in FILE.aff in the same folder.

    If the text spells a form differently, as ICONV or IGNORE permits, the text's spelling is yielded. A warning at the
    end counts words with too many forms, words of compounds, and lines and flags without effect.

    Args:
        words: of a text: only lemmas with a form among them are yielded. A warning reports that there is none.
        spelled: the text's spelling of a form. It must keep the length.
        form: Unicode form of both files (files/text_lines.py). Conditions and flags are single characters and need NFC.

    Raises:
        DataError: a file that is missing or malformed, with line.
    """
    affixes = read_affixes(rules_of(path), form)
    inners: set[str] = set()  # the words in the dictionary's spelling
    other_spellings: dict[str, list[str]] = {}  # such a word -> other spellings in the text
    for word in words or ():
        inner = affixes.read(word)
        inners.add(inner)
        if affixes.outer(inner) != word:
            other_spellings.setdefault(inner, []).append(word)

    def in_text(form: str) -> list[str]:
        spellings, outer = other_spellings.get(spelled(form), []), affixes.outer(form)
        return spellings if spellings and spelled(outer) not in (words or ()) else [outer, *spellings]

    prefixes = {(spelled(rule.add), spelled(rule.strip)) for rules in affixes.prefixes.values() for rule in rules}
    begins = None if words is None else _begins(inners, prefixes)
    homonyms: dict[str, bool] = {}  # word -> whether it is forbidden: the first entry decides
    if "forbidden" in affixes.special:
        for _, word, flags, _ in iter_entries(path, affixes):
            homonyms.setdefault(word, affixes.has(flags, "forbidden"))
    count = ReadCount(path, "words")
    for location, word, flags, morphology in iter_entries(path, affixes):
        count.entries += 1
        if not word:
            count.left_out[WITHOUT_WORD] += 1
            continue
        check_not_blank(word, location, "the word")
        affixes.words[flags] += 1
        if affixes.has(flags, "forbidden") or affixes.has(flags, "in compounds"):
            count.left_out[FORBIDDEN if affixes.has(flags, "forbidden") else IN_COMPOUNDS] += 1
            continue
        # the part of a lemma that suffixes keep must begin a word of the text, or no form is in it
        if begins is not None and not any(spelled(word)[: len(word) - n] in begins for n in affixes.strips(flags)):
            count.left_out[NOT_IN_TEXT] += 1
            continue
        forms = [form for form in affixes.forms(word, flags) if not homonyms.get(form)]
        if words is not None and not any(spelled(form) in inners for form in forms):
            count.left_out[NOT_IN_TEXT] += 1
        elif not forms:
            count.left_out[WITHOUT_FORM] += 1
        else:
            count.read += 1
            stem = STEM.search(morphology)
            yield stem[1] if stem else affixes.outer(word), [spelling for form in forms for spelling in in_text(form)]
    count.done()
    if not count.entries:
        raise DataError(f"{path}: expected words, found none; is the file empty?")
    notes = affixes.notes()
    if not count.read and words is not None:
        notes.append(f"none of the forms of its {count.entries:,} words is in the text; is it of the same language?")
    if notes:
        logger.warning(f"{path}: {'; '.join(notes)}")


def iter_entries(path: Path | str, affixes: Affixes) -> Iterator[tuple[str, str, frozenset[str], str]]:
    """Yield each entry of FILE.dic: its place, its word in the form that rules apply to, its flags and its
    morphology.
    """

    def relevant(line: str) -> str:  # comments may be in another encoding
        text, tab, remark = line.partition("\t")
        if not text or text.startswith("# "):
            return ""
        return text + tab + (remark if "st:" in remark else UNDECODED.sub("", remark))

    for number, line in iter_encoded(path, affixes.encoding, affixes.form, relevant, affixes.has_byte_flags):
        location = place(path, number)
        if number == 1:
            if not line.split() or not line.split()[0].isdecimal():
                raise DataError(
                    f"{location}: expected the number of words, found {shown(line)}; is it a dictionary of hunspell? "
                    "If so, write the number of its other lines into a new first line"
                )
            continue
        if not line.strip(" \t"):
            continue
        text, _, morphology_text = line.partition("\t")
        if affixes.morphology and (alias := ALIAS.fullmatch(line)):
            text, morphology_text = alias[1], named_by(alias[2], affixes.morphology, DESCRIPTIONS, location)
        elif morphology := MORPHOLOGY.search(text):
            text, morphology_text = text[: morphology.start()], text[morphology.start() :] + morphology_text
        word, flags = split_flags(text.strip(" "), affixes, location)
        yield location, affixes.inner(word), flags, morphology_text


def _begins(words: Collection[str], prefixes: Collection[tuple[str, str]]) -> frozenset[str]:
    """Return all beginnings of words, also with their prefixes replaced by the letters that these had removed."""
    beginnings = set(words)
    for add, strip in prefixes:
        beginnings.update(strip + word[len(add) :] for word in words if word.startswith(add))
    return frozenset(word[:end] for word in beginnings for end in range(len(word) + 1))


def hunspell_rows(path: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
    """Yield each form with its lemma. For a text, yield only lemmas with a form in it. Raises as `iter_hunspell`."""
    spelling, words, read_in = request.spelling, None, request.spelling.form and "nfc"
    if request.words is not None:
        words = frozenset(in_form(word, read_in) for word in request.words)
    for lemma, forms in iter_hunspell(path, words, spelling.cased, read_in):
        lemma = "" if lemma == "_" else spelling.of_text(lemma)
        for form in forms:
            yield Row(spelling.of_text(form), lemma, source="hunspell"), 0
