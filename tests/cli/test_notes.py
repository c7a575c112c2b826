"""Remarks beside the result of a command."""

import pytest

from fairseq_llrnn.cli.tables import say_notes
from fairseq_llrnn.lexicon.language_check import few_words_remark


def test_a_warning_of_none_is_said_and_a_note_of_none_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    """The number of a warning is that of words which are known."""
    few = few_words_remark("words.tsv", 0, 1000)
    say_notes({"rows without a lemma": 2, "words that the dictionary lacks": 0, **few})
    warning, note = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: 0 of the text's 1,000 words are known to words.tsv")
    assert note == "note: 2 rows without a lemma"
