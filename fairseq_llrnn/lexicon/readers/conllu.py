"""CoNLL-U treebanks, streamed sentence by sentence, through the `conllu` library.

Words are the syntactic ones (rows with a whole-number ID), since they have the features. Multi-word surface rows
(`8-9 des`) give the form of words that are written together: `surface_words`. Empty nodes (`8.1`) are left out. Counts
are numbers of rows.

CoNLL-U Plus names its columns in a comment, `# global.columns = ID FORM UPOS LEMMA`, for the rows after it. Its columns
are read by these names. Missing columns are empty, and additional ones are ignored.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple, NoReturn

from conllu.exceptions import ParseException
from conllu.parser import parse_id_value, parse_int_value

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, cells_of, check_not_blank, is_blank, place, shown, warn_of_blanks
from fairseq_llrnn.lexicon.casing import language_of, lower
from fairseq_llrnn.lexicon.features import as_upos, feats_features, pos_feature
from fairseq_llrnn.lexicon.lexicon_table import ReadRequest, Row, as_features

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
PLUS = re.compile(r"#\s*global\.columns\s*=(.*)", re.IGNORECASE)
SURFACE_ROWS = "for words written together"
EMPTY_NODES = "for empty nodes"
PARTS = "written together with others"  # words that a surface row replaces


class Token(NamedTuple):
    """A syntactic word of a treebank. `_` is None if nothing is annotated."""

    form: str
    lemma: str
    upos: str | None
    feats: tuple[str, ...]  # feature names, Gender:Fem
    head: int | None  # the governor's ID, counted from 1; 0 is the root
    deprel: str | None
    line: int  # of the file, counted from 1

    @property
    def features(self) -> tuple[str, ...]:
        """Part of speech and FEATS as feature names."""
        return self.feats if self.upos is None else (pos_feature(self.upos), *self.feats)


class Span(NamedTuple):
    """A multi-word surface row: syntactic words that are written together."""

    first: int  # IDs
    last: int
    form: str
    line: int


class Sentence(NamedTuple):
    """The syntactic words of a sentence, and the spans that are written together, in the order of the rows."""

    words: list[Token]
    spans: list[Span]


# IDs, heads and FEATS repeat often; caching them makes reading a third faster
@lru_cache(maxsize=4096)
def _parse_id(text: str) -> int | tuple[int, str, int] | None:
    try:
        return parse_id_value(text)
    except ParseException as error:
        raise ValueError(
            f"column 1 (ID): expected a number (1), a range (1-2) or an empty node (1.1), found {shown(text)}"
        ) from error


@lru_cache(maxsize=4096)
def _parse_head(text: str) -> int | None:
    try:
        return parse_int_value(text)
    except ParseException as error:
        raise ValueError(f"column 7 (HEAD): expected a number or _, found {shown(text)}") from error


def iter_conllu_words(path: Path | str, lowercase: bool, language: str | None = None) -> Iterator[list[Token]]:
    """Yield the syntactic words of each sentence. Arguments and errors as in `iter_conllu_sentences`."""
    count = ReadCount(path)
    for sentence in iter_conllu_sentences(count, lowercase, language):
        count.left_out[SURFACE_ROWS] += len(sentence.spans)
        count.read += len(sentence.words)
        yield sentence.words


def iter_conllu_sentences(count: ReadCount, lowercase: bool, language: str | None = None) -> Iterator[Sentence]:
    """Yield the sentences of a treebank.

    Args:
        count: of the treebank. The caller counts words and spans as read.
        lowercase: lower-case forms, by the rules of `language` (casing.py).

    Raises:
        DataError: with file and line, rows that are not CoNLL-U, or a file without any sentence.
    """
    path = count.file
    sentence, spans = list[Token](), list[Span]()
    sentences, blank = 0, list[int]()
    columns: Sequence[str] = COLUMNS
    for number, line in chain(count.lines(_is_row, rest=True), [(0, "")]):  # the last sentence ends with the file
        if not line.strip(" \t"):
            if sentence:
                sentences += 1
                yield Sentence(_checked_heads(sentence, path), spans)
            elif spans:
                _raise_misplaced(spans[0], path)
            sentence, spans = [], []
        elif line.startswith("#"):
            if plus := PLUS.fullmatch(line):
                columns = _columns(plus[1].split(), place(path, number))
        else:
            row = _parse_row(line, columns, number, path, len(sentence) + 1)
            if row is None:
                count.left_out[EMPTY_NODES] += 1
                continue
            row = row._replace(form=lower(row.form, language)) if lowercase else row
            if is_blank(row.form):  # such as a single soft hyphen, which occurs in real texts
                blank.append(number)
            if isinstance(row, Token):
                sentence.append(row)
            else:
                spans.append(row)
    count.done()
    warn_of_blanks(path, "words", blank)
    if not sentences:
        raise DataError(f"{path}: expected CoNLL-U sentences, found none; is the file empty, or the path wrong?")


def _is_row(line: str) -> bool:
    return bool(line.strip(" \t")) and not line.startswith("#")


def surface_words(sentence: Sentence, path: Path | str) -> list[str]:
    """Return the words as written, `des` and not `de les`.

    Raises:
        DataError: a row of several words that is not right before the first of them.
    """
    surface, spans, done = list[str](), iter(sentence.spans), 0
    span = next(spans, None)
    for number, word in enumerate(sentence.words, start=1):
        if span is not None and span.line < word.line:
            if not (number == span.first > done and span.last <= len(sentence.words)):
                _raise_misplaced(span, path)
            surface.append(span.form)
            done, span = span.last, next(spans, None)
        if number > done:
            surface.append(word.form)
    if span is not None:
        _raise_misplaced(span, path)
    return surface


def _raise_misplaced(span: Span, path: Path | str) -> NoReturn:
    raise DataError(
        f"{place(path, span.line)}: expected the row of the words {span.first}-{span.last} right before the first of "
        f"them, within the sentence, and apart from others, found {shown(span.form)} elsewhere; correct the IDs, or "
        "write the syntactic words"
    )


def in_one_word(form: str) -> str:
    """Return a form with blanks (10 000) as one word for texts: 10_000."""
    return form if form.isalnum() else "_".join(form.split())


def _columns(names: Sequence[str], location: str) -> tuple[str, ...]:
    """Return the column names of CoNLL-U Plus. Raises DataError if ID or FORM is missing or a name is repeated."""
    columns = tuple(name.upper() for name in names)
    if not {"ID", "FORM"} <= set(columns) or len(set(columns)) < len(columns):
        raise DataError(
            f"{location}: expected columns with different names, ID and FORM among them, found "
            f"{shown(' '.join(names))}; correct the comment, or remove it from a treebank in CoNLL-U"
        )
    return columns


def _parse_row(
    line: str, columns: Sequence[str], number: int, path: Path | str, expected_id: int
) -> Token | Span | None:
    """Return the token or span of a row, or None for an empty node."""
    expected = f"{len(columns)} columns separated by tabs"
    cells = cells_of(line, path, number, {len(columns)}, expected, "is it a treebank in CoNLL-U?")
    if columns is not COLUMNS:
        cell_of = dict(zip(columns, cells, strict=True))
        cells = [cell_of.get(name, "_") for name in COLUMNS]
    form, lemma, upos, deprel = cells[1], cells[2], cells[3], cells[7]
    try:  # the library's own FEATS parser accepts `Fem` without value, and drops text after a second `=`
        token_id, feats, head = _parse_id(cells[0]), feats_features(cells[5]), _parse_head(cells[6])
    except ValueError as error:
        raise DataError(f"{place(path, number)}: {error}") from error
    if isinstance(token_id, tuple) and token_id[1] == ".":
        return None
    if not form.strip():
        check_not_blank(form, place(path, number), "column 2 (FORM)")
    if isinstance(token_id, tuple):
        return Span(token_id[0], token_id[2], form, number)
    if token_id != expected_id:
        raise DataError(
            f"{place(path, number)}: expected the ID {expected_id}, found {shown(cells[0])}; word IDs run 1, 2, 3, … "
            "in a sentence, and an empty line ends it"
        )
    return Token(
        form=form,
        lemma=lemma,
        upos=None if upos in ("_", "") else as_upos(upos),
        feats=feats,
        head=head,
        deprel=None if deprel in ("_", "") else deprel,
        line=number,
    )


def _checked_heads(sentence: list[Token], path: Path | str) -> list[Token]:
    for token in sentence:
        if token.head is not None and not 0 <= token.head <= len(sentence):
            raise DataError(
                f"{place(path, token.line)}: HEAD is {token.head}, but the sentence has {len(sentence)} "
                f"words; expected 0 to {len(sentence)}, or _"
            )
    return sentence


def conllu_rows(path: str, request: ReadRequest) -> Iterator[tuple[Row, int]]:
    """Yield each syntactic word of a treebank. Raises DataError as `iter_conllu_sentences` does."""
    count, spelling = ReadCount(path, "rows", request.spelling.form), request.spelling
    held_out, found = request.held_out.sentences, request.held_out.found[f"--conllu {path}"]
    for sentence in iter_conllu_sentences(count, spelling.lowercase, spelling.rules):
        count.left_out[SURFACE_ROWS] += len(sentence.spans)
        if held_out:
            found |= held_out.intersection(_texts(sentence, path))
        for token in sentence.words:
            count.read += 1
            lemma = "" if token.lemma in ("", "_") else spelling.cased(token.lemma)
            yield Row(in_one_word(token.form), lemma, as_features(token.features), "conllu"), 1


def _texts(sentence: Sentence, path: str) -> Iterator[str]:
    """Yield the sentence as `llrnn text` writes it: in syntactic words, and in surface words if they are in order."""
    yield " ".join(in_one_word(token.form) for token in sentence.words)
    if sentence.spans:
        with suppress(DataError):
            yield " ".join(map(in_one_word, surface_words(sentence, path)))


def conllu_lines(paths: Sequence[str], kind: str, casing: str | None, form: str | None) -> Iterator[list[str]]:
    """Yield the words of each sentence of treebanks, without blanks inside words.

    Args:
        kind: `syntactic`, the annotated words, or `surface`, the written ones.
        casing: None: keep the case. A language code, or "" for no language: lower-case.
        form: as in `ReadCount`.
    """
    for path in paths:
        count = ReadCount(path, "rows", form)
        for sentence in iter_conllu_sentences(count, casing is not None, language_of(casing)):
            words = surface_words(sentence, path) if kind == "surface" else [token.form for token in sentence.words]
            count.read += len(words)
            others = len(sentence.words) + len(sentence.spans) - len(words)
            count.left_out[PARTS if kind == "surface" else SURFACE_ROWS] += others
            yield [in_one_word(word) for word in words]


def treebank(folder: Path, split: str) -> Path:
    """Return the one file of `folder` with `split`, plain or packed, also under UD's long names (fr_gsd-ud-dev.conllu).

    Raises:
        DataError: there is none, or there are several.
    """
    files = [path for ending in (".conllu", ".conllu.gz") for path in sorted(folder.glob(f"*{split}{ending}"))]
    if len(files) != 1:
        listed = ", ".join(path.name for path in files) or "none"
        raise DataError(
            f"{folder}: expected one file named like {split}.conllu or {split}.conllu.gz, found {listed}; give the "
            "folder of one treebank"
        )
    return files[0]
