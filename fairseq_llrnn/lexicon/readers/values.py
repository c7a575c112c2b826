"""Real-valued features of words as tab-separated rows: word, feature, value (`paris<TAB>Population:Log<TAB>6.3`)."""

from collections.abc import Iterator

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.read_count import ReadCount
from fairseq_llrnn.files.text_lines import place, refuse_blank
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.table import Asked, Row, as_features


def values_rows(path: str, asked: Asked) -> Iterator[tuple[Row, int]]:
    """A row for each value; blank lines are skipped.

    Raises DataError, with file and line, for a row of another shape, a value that is no finite number, a word and
    feature given twice, and a file without rows.
    """
    count, checked = ReadCount(path, "rows", asked.spelling.form), Lexicon()
    seen: dict[tuple[str, str], int] = {}
    for number, line in count.lines():
        cells = line.split("\t")
        if len(cells) != 3:
            raise DataError(
                f"{place(path, number)}: expected word, feature and value with tabs between, found {len(cells)} "
                "columns; fix the row"
            )
        refuse_blank(cells[0], place(path, number), "the word")
        word, feature = asked.spelling.cased(cells[0]), cells[1]
        if (word, feature) in seen:
            raise DataError(
                f"{place(path, number)}: {feature!r} of word {word!r} was already given in line {seen[word, feature]}; "
                "remove one of them"
            )
        seen[word, feature] = number
        try:
            value = {feature: float(cells[2])}
            checked.add(word, value)
        except ValueError:
            raise DataError(
                f"{place(path, number)}: expected a number as value of {feature!r}, found {cells[2]!r}; fix the row"
            ) from None
        except DataError as error:
            raise DataError(f"{place(path, number)}: {error}") from None
        count.read += 1
        yield Row(word, source="values", values=as_features(value)), 0
    if not seen:
        raise DataError(f"{path}: expected rows of word, feature and value, found none; is it the right file?")
