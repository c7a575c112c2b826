"""All readers of tables clean cells in the same way: blanks, trailing tabs, byte order marks, header rows and
quotes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lexicons import read_tsv_lexicon, read_unimorph, read_values

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.rules import read_evidence_map
from fairseq_llrnn.lexicon.readers.values import read_weights
from fairseq_llrnn.lexicon.segments import read_segmentations


def _features(read: Callable[..., Any]) -> Callable[[Path], object]:
    def words(path: Path) -> object:
        lexicon = read(path, lowercase=False)
        return {word: dict(lexicon.features(word)) for word in lexicon}

    return words


def _terms(path: Path) -> object:
    from fairseq_llrnn.systems.terms.tsv_file import read_terms

    return [(entry.source, entry.target, entry.upos, entry.forms) for entry in read_terms(path, ("en", "fr_FR"))]


# by reader: how it reads, sound rows, header rows, and a header row with the columns in another order
TABLES: dict[str, tuple[Callable[[Path], object], tuple[str, str], tuple[str, ...], str]] = {
    "lexicon": (
        _features(read_tsv_lexicon), ("chats|chat|NOUN|Number=Plur", "la mer|mer|NOUN|_"),
        ("form|lemma|UPOS|FEATS", "Word|Lemma|pos tag|features"), "lemma|form|UPOS|FEATS",
    ),
    "table": (
        _features(read_tsv_lexicon), (
            "form|lemma|UPOS|FEATS|count|source|guessed|values",
            "chats|chat|NOUN|Number=Plur|3|conllu|no|_",
        ), (), "",
    ),
    "UniMorph": (
        _features(read_unimorph), ("chat|chats|N;PL", "voir|voit|V;IND;PRS"),
        ("lemma|form|features", "Lemma|Inflected form|MSD"), "form|lemma|features",
    ),
    "values": (
        _features(read_values), ("chat|Size:Log|2.5", "mer|Size:Log|9"),
        ("word|feature|value", "Words|Feature_Name|Score"), "feature|word|value",
    ),
    "weights": (
        lambda path: read_weights(path, {"chat": 0, "mer": 1}, 2).tolist(), ("chat|2.5", "mer|9"),
        ("word|weight", "token|count"), "count|word",
    ),
    "segmentations": (
        lambda path: read_segmentations(path, lowercase=False), ("chats|chat s", "mers|mer s"),
        ("word|segments", "Form|Morphemes"), "segments|word",
    ),
    "evidence map": (
        read_evidence_map, ("1,000|1 000", "kph|km / h"),
        ("source|target", "English|French"), "target|source",
    ),
    "terms": (
        _terms, ("house|maison|NOUN|maison|maisons".replace("n|m", "n~m"), "the sea|mer"),
        ("source|target|pos", "en|fr", "English term|French term", "Source (EN)|Target (FR)", "en-GB|fr-FR"), "fr|en",
    ),
}  # fmt: skip
if importlib.util.find_spec("fairseq_llrnn.systems.terms") is None:
    del TABLES["terms"]
CHANGES: dict[str, Callable[[str], str]] = {
    "blanks": lambda text: text.replace("\t", "  \t ").replace("\n", " \n"),
    "no-break spaces": lambda text: text.replace("\t", "\u00a0\t\u202f").replace("\n", "\u00a0\n"),
    "tabs at the end": lambda text: text.replace("\n", "\t\t\n"),
    "a tab at some ends": lambda text: text.replace("\n", "\t\n", 1),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: f"\ufeff{text}",
    "blank lines": lambda text: "\n \t\n" + text.replace("\n", "\n\n"),
}


def _text(*rows: str) -> str:
    return "".join(row.replace("|", "\t").replace("~", "|") + "\n" for row in rows)


def _read(reader: str, path: Path, text: str) -> object:
    path.write_text(text, encoding="utf-8", newline="")
    return TABLES[reader][0](path)


@pytest.mark.parametrize("reader", TABLES)
def test_what_is_around_cells_is_no_part_of_them(reader: str, tmp_path: Path) -> None:
    path, text = tmp_path / "table.tsv", _text(*TABLES[reader][1])
    expected = _read(reader, path, text)
    for name, change in CHANGES.items():
        assert _read(reader, path, change(text)) == expected, name


@pytest.mark.parametrize("reader", TABLES)
def test_a_header_is_left_out(reader: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, rows = tmp_path / "table.tsv", TABLES[reader][1]
    expected = _read(reader, path, _text(*rows))
    caplog.set_level("INFO")
    for header in TABLES[reader][2]:
        for written in (header, header.upper(), "|".join(f'"{cell}"' for cell in header.split("|"))):
            caplog.clear()
            assert _read(reader, path, _text(written, *rows)) == expected, written
            assert f"{path}: 2 of 3 rows read; left out: 1 as header" in caplog.messages
    if not TABLES[reader][3]:
        return
    said = r"table.tsv, line 1: expected the columns in another order, found '.*'; write column \d first"
    with pytest.raises(DataError, match=said):
        _read(reader, path, _text(TABLES[reader][3], *rows))


QUOTED = {
    "lexicon": '"1,5"|_|NUM|_',
    "UniMorph": 'chat|"chats"|N;PL',
    "values": '"1,5"|Size:Log|9',
    "weights": '"mer"|9',
    "segmentations": '"mers"|"mer s"',
    "evidence map": '1,5|"1.5"',
    "terms": '"house"|maison',
}


@pytest.mark.parametrize("reader", sorted(TABLES.keys() & QUOTED))
def test_quotes_are_said(reader: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Quotes may belong to the word: a quotation mark is one, and a text may put one around another."""
    path = _written(tmp_path / "table.tsv", _text(*TABLES[reader][1], QUOTED[reader]))
    if reader == "weights":
        read_weights(path, {"chat": 0, "mer": 1, '"mer"': 2}, 3)
    else:
        TABLES[reader][0](path)
    quoted = QUOTED[reader].count('"') // 2
    cell = next(cell for cell in QUOTED[reader].split("|") if '"' in cell)
    assert caplog.messages == [
        f"{path}: {quoted} cells in quotes, such as {cell} (line 3): the quotes are read as part of the cell; if a "
        "spreadsheet added them, save the table without quotes"
    ]


def test_words_that_columns_are_called_by_are_words(tmp_path: Path) -> None:
    """Only a first row that names all columns is a header."""
    path = tmp_path / "table.tsv"
    assert read_evidence_map(_written(path, "form\tforme\nsource\ttarget\nla\tla\n")) == {
        "form": ("forme",), "source": ("target",), "la": ("la",),
    }  # fmt: skip
    assert set(read_tsv_lexicon(_written(path, "form\tform\tNOUN\t_\nlemma\tlemma\tNOUN\t_\n"), lowercase=False)) == {
        "form", "lemma",
    }  # fmt: skip
    assert list(read_segmentations(_written(path, "word\n"), lowercase=False)) == ["word"]


@pytest.mark.parametrize(
    ("row", "column", "cell"),
    [
        ("chat|N;PL|chats", 2, "N;PL"),
        ("chat|ADJ|chats", 2, "ADJ"),
        ("V;IND;PRS|voir|voit", 1, "V;IND;PRS"),
        ("N;NOM(1;SG)|chat|chats", 1, "N;NOM(1;SG)"),
    ],
)
def test_unimorph_in_another_order_is_refused(row: str, column: int, cell: str, tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    with pytest.raises(DataError) as caught:
        _read("UniMorph", path, _text("n|n|N;SG", row))
    assert str(caught.value) == (
        f"{path}, line 2: expected the columns lemma, form, features, found features in column {column}: {cell!r}; "
        "reorder the columns"
    )


def test_unimorph_with_forms_before_lemmas_is_said(tmp_path: Path) -> None:
    path = _written(tmp_path / "table.tsv", "chats\tchat\tN;PL\nchat\tchat\tN;SG\n")
    assert read_unimorph(path, lowercase=False).notes == {
        f"lemmas in {path}, more than it has forms: are the columns lemma, form, features?": 2
    }
    assert not read_unimorph(_written(path, "chat\tchats\tN;PL\nchat\tchat\tN;SG\n"), lowercase=False).notes


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
