"""Forms of lemmas from dictionaries of hunspell: FILE.dic, words with the names of rules, and FILE.aff, the rules.

    kabina/ZQ                   a word, and the rules (flags) that apply to it
    SFX Z a ách [^ij]a          rule Z: of a word that ends so, take `a` away and add `ách`; 0: nothing

A rule may name further flags, for one more suffix or a prefix behind it (`ing/S`); prefixes and suffixes cross where
both say Y. The word is what its forms are forms of, unless it says another (`st:`). What hunspell knows beside it, such
as compounds and replacements for suggestions, is not read. Format: hunspell(5).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, in_form, place, refuse_blank, shown
from fairseq_llrnn.lexicon.readers.hunspell_affixes import iter_encoded, named_by, read_affixes, split_flags
from fairseq_llrnn.lexicon.table import Asked, Row

MORPHOLOGY = re.compile(r"(?:^|\s)[a-z]{2}:")
WITHOUT_WORD, FORBIDDEN, NOT_IN_TEXT = "without a word", "forbidden", "without a form in the text"
DESCRIPTIONS = "descriptions of words (AM)"
STEM = re.compile(r"(?:^|\s)st:(\S+)")
ALIAS = re.compile(r"(.+/\S+|[^\t]+(?=\t))\s+(\d+)\s*", re.ASCII)  # word and flags, and a number of AM
logger = logging.getLogger(__name__)


def rules_of(path: Path | str, called: str = "") -> Path:
    """FILE.aff of FILE.dic. Raises DataError: it is another name, or not there; `called`: the option that names it."""
    rules = Path(path).with_suffix(".aff") if Path(path).suffix == ".dic" else None  # there is a name to change
    if rules is None or not rules.exists():
        raise DataError(
            f"{called} {path}: expected a dictionary of hunspell, FILE.dic with FILE.aff beside it, found ".lstrip()
            + ("another name" if rules is None else f"no {rules.name}") + "; give both files"
        )
    return rules


def iter_hunspell(
    path: Path | str, words: Collection[str] | None = None, spelled: Callable[[str], str] = str, form: str | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Lemmas and their forms, in the order of FILE.dic; its rules stand beside it in FILE.aff.

    Args:
        words: of a text: only lemmas with a form among them are answered; a warning says that there is none. spelled:
            how the text spells a form; it may not change its length. form: of files/text_lines.py, in which both files
            are read; conditions and flags are of single characters, and want NFC.

    Words with too many forms, and flags that nothing defines, are counted in a warning at the end.

    Raises:
        DataError: a file that is missing, or is not in the format, with line.
    """
    affixes = read_affixes(rules_of(path), form)
    prefixes = {(spelled(rule.add), spelled(rule.strip)) for of_flag in affixes.prefixes.values() for rule in of_flag}
    begins = None if words is None else _begins(words, prefixes)
    count = ReadCount(path, "words")
    for number, line in iter_encoded(path, affixes.encoding, form):
        if number == 1:
            if not line.split() or not line.split()[0].isdecimal():
                raise DataError(
                    f"{place(path, 1)}: expected the number of words, found {shown(line)}; is it a dictionary of "
                    "hunspell?"
                )
            continue
        if not line.strip(" \t") or line.startswith(("\t", "# ")):
            continue
        count.entries += 1
        where = place(path, number)
        text, _, morphology_text = line.partition("\t")
        if affixes.morphology and (alias := ALIAS.fullmatch(line)):
            text, morphology_text = alias[1], named_by(alias[2], affixes.morphology, DESCRIPTIONS, where)
        elif morphology := MORPHOLOGY.search(text):
            text, morphology_text = text[: morphology.start()], text[morphology.start() :] + morphology_text
        word, flags = split_flags(text.strip(" "), affixes, where)
        if not word:
            count.left_out[WITHOUT_WORD] += 1
            continue
        refuse_blank(word, where, "the word")
        affixes.words[flags] += 1
        if affixes.has(flags, "forbidden"):
            count.left_out[FORBIDDEN] += 1
            continue
        # what suffixes leave of a lemma must be the beginning of a word, or none of its forms is one
        if begins is not None and not any(spelled(word)[: len(word) - n] in begins for n in affixes.strips(flags)):
            count.left_out[NOT_IN_TEXT] += 1
            continue
        forms = affixes.forms(word, flags)
        if words is None or any(spelled(form) in words for form in forms):
            count.read += 1
            stem = STEM.search(morphology_text)
            yield stem[1] if stem else word, forms
        else:
            count.left_out[NOT_IN_TEXT] += 1
    count.done()
    if not count.entries:
        raise DataError(f"{path}: expected words, found none; is the file empty?")
    notes = affixes.notes()
    if not count.read and words is not None:
        notes.append(f"none of the forms of its {count.entries:,} words is in the text; is it of the same language?")
    if notes:
        logger.warning(f"{path}: {'; '.join(notes)}")


def _begins(words: Collection[str], prefixes: Collection[tuple[str, str]]) -> frozenset[str]:
    """All beginnings of words, with and without the prefixes that they may have: what one adds, and strips."""
    beginnings = set(words)
    for add, strip in prefixes:
        beginnings.update(strip + word[len(add) :] for word in words if word.startswith(add))
    return frozenset(word[:end] for word in beginnings for end in range(len(word) + 1))


def hunspell_rows(path: str, asked: Asked) -> Iterator[tuple[Row, int]]:
    """Each form with its lemma; of a text, those of lemmas that have a form in it. Raises as `iter_hunspell`."""
    spelling, words, read_in = asked.spelling, None, asked.spelling.form and "nfc"
    if asked.words is not None:
        words = frozenset(in_form(word, read_in) for word in asked.words)
    for lemma, forms in iter_hunspell(path, words, spelling.cased, read_in):
        lemma = "" if lemma == "_" else spelling.of_text(lemma)
        for form in forms:
            yield Row(spelling.of_text(form), lemma, source="hunspell"), 0
