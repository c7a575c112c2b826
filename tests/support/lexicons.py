"""What single readers know of words, as features; by the names of the options that name their files."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Table
from fairseq_llrnn.lexicon.readers import SOURCES

# words that are blanks, or characters that show nothing
BLANKS = ["\u00a0", "\u3000", "\u2009", "\x85", "\u2028", "\u00a0 \u00a0"]
WITHOUT_WIDTH = ["\u200b", "\u2060", "\ufeff", "\u00ad", "\u200d\u200d", "\u3164", "\u2800", "\ufe0f", "\u200b\u00a0"]
# what str.splitlines, or Python's text files, take for an end of a line
ENDS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


def read_table(
    name: str, path: Path | str, lowercase: bool = True, language: str | None = None, form: str | None = None,
    words: Iterable[str] | None = None,
) -> Table:  # fmt: skip
    """All rows of a reader."""
    asked = ReadRequest(Spelling(lowercase, language, form), None if words is None else list(words))
    table = Table(SOURCES[name].read(str(path), asked))
    table.notes.update(asked.notes)
    return table


def read_lexicon(name: str, path: Path | str, **options: object) -> Lexicon:
    """The features of words."""
    table = read_table(name, path, **options)  # type: ignore[arg-type]
    lexicon = table.lexicon()
    lexicon.notes.update(table.notes)
    return lexicon


read_conllu = partial(read_lexicon, "conllu")
read_tsv_lexicon = partial(read_lexicon, "lexicon")
read_unimorph = partial(read_lexicon, "unimorph")
read_values = partial(read_lexicon, "values")


def read_apertium(words: Iterable[str], *, analyser: Path | str, **options: object) -> Lexicon:
    return read_lexicon("apertium", analyser, words=words, **options)
