"""Words with counts, for the spelling of unknown words (`--spelling-lexicon`).

The number of columns of the first row gives the format of a file:

    1   a word                    2   a word and its count         ("frequencies"; a blank instead of a tab is allowed)
    3   lemma, form, tags         UniMorph (unimorph.py)
    4+  form, lemma, UPOS, FEATS  tables of `llrnn lexicon` and lexicons (tsv.py)

`language:CODE` is the list of word frequencies of an installed package (lexicon/languages).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_COUNT, is_weight
from fairseq_llrnn.files.reading import check_there
from fairseq_llrnn.files.text_lines import ReadCount, check_not_blank, clean_cells, iter_lines, place, shown
from fairseq_llrnn.lexicon.languages.findings import frequency_source
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest
from fairseq_llrnn.lexicon.readers.hunspell import rules_of
from fairseq_llrnn.lexicon.readers.tsv import lexicon_rows
from fairseq_llrnn.lexicon.readers.unimorph import unimorph_rows

LANGUAGE = "language:"
MOST_WORDS = 5_000_000
READERS = {3: unimorph_rows, 4: lexicon_rows}  # by number of columns
WORD_AND_COUNT = re.compile(r"(\S+) ([\d.]\S*)")  # of fairseq's dictionaries
NAMES = ("word", "form", "token", "wordform"), ("count", "frequency", "freq", "weight", "value")
PHRASES = "of several words"


def language_of_place(place_name: str, option: str) -> str | None:
    """Return the code of `language:CODE`, or None for a file.

    Raises:
        OptionError: the language is unknown, or no installed package has its frequencies.
        DataError: the file cannot be read.
    """
    if not place_name.startswith(LANGUAGE):
        check_there(option, place_name)
        if place_name.endswith(".dic"):
            rules_of(place_name, option)
        return None
    code = language_code(place_name.removeprefix(LANGUAGE), f"{option} {place_name}")
    frequency_source(code, f"{option} {place_name}")
    return code


def read_word_counts(place_name: str, spelling: Spelling, option: str) -> dict[str, float]:
    """Return the words of a file, or of `language:CODE`, in the text's spelling, with positive counts.

    A word without a count has the count 1. The counts of words that the text spells alike are added. A count of 0
    becomes the smallest positive one.

    Raises:
        OptionError: as `language_of_place`.
        DataError: the file is missing, malformed, has no word, or has more than MOST_WORDS.
    """
    code = language_of_place(place_name, option)
    counts: dict[str, float] = {}
    pairs: Iterator[tuple[str, float]]
    if code is not None:
        frequencies = frequency_source(code, option).all_frequencies(code)
        pairs = ((spelling.of_text(word), frequency) for word, frequency in frequencies.items())
    else:
        pairs = _pairs_of_file(place_name, spelling)
    for word, count in pairs:
        counts[word] = counts.get(word, 0.0) + count
        if len(counts) > MOST_WORDS:
            raise DataError(f"{place_name}: expected at most {MOST_WORDS:,} words, found more; take a shorter list")
    if not counts:
        raise DataError(f"{place_name}: expected a word in each line, found none; is the file empty, or running text?")
    least = min((count for count in counts.values() if count > 0.0), default=1.0)
    return {word: count or least for word, count in counts.items()}


def _pairs_of_file(path: str, spelling: Spelling) -> Iterator[tuple[str, float]]:
    columns = next((len(clean_cells(line)) for _, line in iter_lines(Path(path)) if line.strip()), 1)
    if columns < min(READERS):
        yield from _listed(path, spelling)
        return
    for row, count in READERS[min(columns, max(READERS))](path, ReadRequest(spelling)):
        if row.is_word:
            yield row.form, float(max(count, 1))


def _listed(path: str, spelling: Spelling) -> Iterator[tuple[str, float]]:
    """Yield the words of a list, with counts or without."""
    count = ReadCount(path, "words", spelling.form)
    for number, cells in count.rows({1, 2}, "a word, or `word<TAB>count`", header=NAMES):
        location = place(path, number)
        if len(cells) == 1 and (pair := WORD_AND_COUNT.fullmatch(cells[0])):
            cells = [pair[1], pair[2]]
        check_not_blank(cells[0], location, "the word")
        if any(map(str.isspace, cells[0])):
            count.left_out[PHRASES] += 1
            continue
        count.read += 1
        yield spelling.cased(cells[0]), _count(cells[1], location) if len(cells) > 1 else 1.0


def _count(text: str, location: str) -> float:
    """Return a count or frequency. Raises DataError for another text."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if number != 0.0 and not (is_weight(number) and number <= LARGEST_COUNT):
        raise DataError(
            f"{location}: expected a count or frequency from 0 to {LARGEST_COUNT:,}, found {shown(text)}; correct it"
        )
    return number
