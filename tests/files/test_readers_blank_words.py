"""Blank or invisible words: every reader of words reports file and line."""

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lexicons import BLANKS, WITHOUT_WIDTH, read_conllu, read_tsv_lexicon, read_unimorph, read_values

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.rules import read_evidence_map
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.files.text_lines import ReadCount, is_blank
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_sentences
from fairseq_llrnn.lexicon.readers.hunspell import iter_hunspell
from fairseq_llrnn.lexicon.readers.values import read_weights
from fairseq_llrnn.lexicon.segments import read_segmentations


def hunspell(path: Path) -> object:
    path.with_suffix(".aff").write_text("SET UTF-8\nSFX S Y 1\nSFX S 0 s .\n", encoding="utf-8")
    return list(iter_hunspell(path))


ROW = "{}\t{}\t{}\tNOUN\t_\t_\t_\t_\t_\t_\n"
READERS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "treebank": (
        "a.conllu", ROW.format(1, "le", "le") + ROW.format(2, "@", "_"), lambda p: read_conllu(p, lowercase=True),
    ),
    "words written together": (
        "a.conllu", "# text\n1-2\t@" + "\t_" * 8 + "\n" + ROW.format(1, "le", "le") + ROW.format(2, "a", "a"),
        lambda p: list(iter_conllu_sentences(ReadCount(p), True)),
    ),
    "lexicon": ("a.tsv", "le\tle\tDET\t_\n@\tle\tDET\t_\n", lambda p: read_tsv_lexicon(p, lowercase=True)),
    "UniMorph": ("a.tsv", "a\tle\tN\na\t@\tN\n", lambda p: read_unimorph(p, lowercase=True)),
    "segments": ("a.tsv", "le\n@\n", lambda p: read_segmentations(p, lowercase=True)),
    "segments of a word": ("a.tsv", "le\tl e\n@\t@\n", lambda p: read_segmentations(p, lowercase=True)),
    "values": ("a.tsv", "le\tA:b\t1\n@\tA:b\t1\n", lambda p: read_values(p, lowercase=True)),
    "weights": ("a.tsv", "le\t1\n@\t1\n", lambda p: read_weights(p, {"le": 0}, 1)),
    "source of evidence": ("a.tsv", "a\tb\n@\tb\n", read_evidence_map),
    "target of evidence": ("a.tsv", "a\tb\nc\t@\n", read_evidence_map),
    "hunspell": ("a.dic", "2\n@/S\n", hunspell),
    "hunspell without flags": ("a.dic", "2\n@\n", hunspell),
    "dictionary": ("dict.txt", "le 5\n@ 3\n", load_dictionary),
}  # fmt: skip


@pytest.mark.parametrize("blank", [*BLANKS, *WITHOUT_WIDTH], ids=ascii)
@pytest.mark.parametrize("reader", READERS)
def test_a_word_that_shows_nothing(reader: str, blank: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    name, text, read = READERS[reader]
    (tmp_path / name).write_text(text.replace("@", blank), encoding="utf-8")
    if reader in ("treebank", "words written together", "dictionary") and blank.strip():  # running text may have it
        read(tmp_path / name)
        return
    with pytest.raises(DataError, match=rf"{name}, line 2: "):
        read(tmp_path / name)


@pytest.mark.parametrize("word", WITHOUT_WIDTH[:-1], ids=ascii)
def test_words_without_width_in_running_text_are_counted(
    word: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = "".join(ROW.format(i, form, "_") for i, form in enumerate(("le", word, f"a{word}", word), 1))
    (tmp_path / "a").write_text("1-2\ta" + "\t_" * 8 + f"\n{rows}", encoding="utf-8")
    assert word in read_conllu(tmp_path / "a", lowercase=True)
    assert f"{tmp_path}/a: 2 words have no visible character (lines 3, 5); clean the text" in caplog.messages
    (tmp_path / "dict.txt").write_text(f"le 5\n{word} 3\na{word} 1\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert load_dictionary(tmp_path / "dict.txt").counts.sum() == 9
    assert "dict.txt: 1 symbols have no visible character (lines 2)" in caplog.text


def test_what_shows_nothing() -> None:
    assert all(map(is_blank, ["", *BLANKS, *WITHOUT_WIDTH]))
    shown = ["a", "_", "-", "\u0301", "क\u200d", "می\u200cخواهم", "\ue000", "❤\ufe0f", "…", "\U0001f408"]
    assert not any(map(is_blank, shown))
    assert np.mean([is_blank(chr(code)) for code in range(0x10FFFF) if not 0xD800 <= code < 0xE000]) < 0.001
