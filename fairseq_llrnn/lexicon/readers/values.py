"""Real-valued features of words as tab-separated rows: word, feature, value (`paris<TAB>Population:Log<TAB>6.3`)."""

from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.casing import lower
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import place, refuse_blank
from fairseq_llrnn.lexicon.features import Lexicon


def read_values(
    path: Path | str, *, lowercase: bool, language: str | None = None, form: str | None = None
) -> Lexicon:
    """Each word with its features and their values; blank lines are skipped.

    `lowercase` lower-cases words, by the rules of `language` (casing.py); `form`: of text_lines.py.

    Raises DataError, with file and line, for a row of another shape, a value that is no finite number, a word and
    feature given twice, and a file without rows.
    """
    lexicon, count = Lexicon(), ReadCount(path, "rows", form)
    seen: dict[tuple[str, str], int] = {}
    for number, line in count.lines():
        cells = line.split("\t")
        if len(cells) != 3:
            raise DataError(
                f"{place(path, number)}: expected word, feature and value with tabs between, found {len(cells)} "
                "columns; fix the row"
            )
        refuse_blank(cells[0], place(path, number), "the word")
        word, feature = lower(cells[0], language) if lowercase else cells[0], cells[1]
        if (word, feature) in seen:
            raise DataError(
                f"{place(path, number)}: {feature!r} of word {word!r} was already given in line {seen[word, feature]}; "
                "remove one of them"
            )
        seen[word, feature] = number
        try:
            lexicon.add(word, {feature: float(cells[2])})
        except ValueError:
            raise DataError(
                f"{place(path, number)}: expected a number as value of {feature!r}, found {cells[2]!r}; fix the row"
            ) from None
        except DataError as error:
            raise DataError(f"{place(path, number)}: {error}") from None
        count.read += 1
    if not seen:
        raise DataError(f"{path}: expected rows of word, feature and value, found none; is it the right file?")
    return lexicon
