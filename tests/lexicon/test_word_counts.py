"""Lists of words for the spelling of unknown words: their formats, limits and messages."""

import gzip
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError, LLRNNError
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.readers import word_counts
from fairseq_llrnn.lexicon.readers.word_counts import read_word_counts

KEPT = Spelling(False)


def read(folder: Path, text: str, spelling: Spelling = KEPT) -> dict[str, float]:
    (folder / "words.tsv").write_text(text, encoding="utf-8")
    return read_word_counts(str(folder / "words.tsv"), spelling, "--spelling-lexicon")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chat\nété\n", {"chat": 1.0, "été": 1.0}),
        ("chat\t3\nété\t0.5\nchat\t1\n", {"chat": 4.0, "été": 0.5}),
        ("word\tcount\nchat\t3\n", {"chat": 3.0}),
        ("chat 3\nété 0\n", {"chat": 3.0, "été": 3.0}),  # as in dict.txt
        ("chat 0\nété 0\n", {"chat": 1.0, "été": 1.0}),
        ("chat\nà peu près\n\n", {"chat": 1.0}),
        ("chat\tchats\tN;PL\nchat\tchat\tN;SG\n", {"chats": 1.0, "chat": 1.0}),
        ("chats\tchat\tNOUN\tNumber=Plur\t7\nmer\tmer\tNOUN\t_\t0\n", {"chats": 7.0, "mer": 1.0}),
        ("form\tlemma\tUPOS\tFEATS\nchats\tchat\tNOUN\tNumber=Plur\n", {"chats": 1.0}),
    ],
)
def test_formats(text: str, expected: dict[str, float], tmp_path: Path) -> None:
    assert read(tmp_path, text) == expected
    with gzip.open(tmp_path / "words.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    assert read_word_counts(str(tmp_path / "words.gz"), KEPT, "--spelling-lexicon") == expected


def test_words_have_the_case_and_form_of_the_text(tmp_path: Path) -> None:
    assert read(tmp_path, "Chat\t1\nchat\t2\n", Spelling(True)) == {"chat": 3.0}
    assert [*read(tmp_path, "e\u0301te\u0301\n", Spelling(False, None, "nfc"))] == ["été"]


def test_frequencies_of_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wordfreq")
    monkeypatch.setattr("wordfreq.get_frequency_dict", lambda code: {"Ház": 0.5, "ház": 0.25})
    assert read_word_counts("language:hu", KEPT, "--spelling-lexicon") == {"Ház": 0.5, "ház": 0.25}
    assert read_word_counts("language:Hungarian", Spelling(True), "--spelling-lexicon") == {"ház": 0.75}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "words.tsv: expected a word in each line, found none; is the file empty, or running text?"),
        ("le chat\nla table\n", "words.tsv: expected a word in each line, found none;"),
        ("chat\tmany\n", "line 1: expected a count or frequency from 0 to .*, found 'many'; correct it"),
        ("chat\t-1\n", "line 1: expected a count or frequency from 0 to"),
        ("chat\tnan\n", "line 1: expected a count or frequency"),
        ("chat\tinf\n", "line 1: expected a count or frequency"),
        ("chat\t1e90\n", "line 1: expected a count or frequency"),
        ("chat\nchats\tchat\tNOUN\n", "line 2: expected a word, or `word<TAB>count`, found 3 columns"),
        ("\u200b\n", "line 1: the word is blank"),
    ],
)
def test_malformed_lists_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_a_huge_list_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "MOST_WORDS", 2)
    with pytest.raises(DataError, match="words.tsv: expected at most 2 words, found more; take a shorter list"):
        read(tmp_path, "a\nb\nc\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no-such-file", "--spelling-lexicon no-such-file: .*No such file"),
        ("no-such-file.dic", "--spelling-lexicon no-such-file.dic: .*No such file"),
        ("language:xyzzy", "--spelling-lexicon language:xyzzy: expected a language with a package"),
        ("language:sw", "--spelling-lexicon language:sw: no package has word frequencies of Swahili"),
    ],
)
def test_missing_places_are_refused(name: str, message: str) -> None:
    with pytest.raises(LLRNNError, match=message):
        read_word_counts(name, KEPT, "--spelling-lexicon")


def test_a_dictionary_needs_its_rules(tmp_path: Path) -> None:
    (tmp_path / "x.dic").write_text("1\nab\n", encoding="utf-8")
    with pytest.raises(DataError, match="--spelling-lexicon .*expected a dictionary of hunspell.*found no x.aff"):
        word_counts.language_of_place(str(tmp_path / "x.dic"), "--spelling-lexicon")
