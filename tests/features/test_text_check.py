"""Why words of a text are outside a dictionary, and what to type next."""

import logging

import pytest

from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.features.text_check import TextCheck
from fairseq_llrnn.lexicon.language_check import is_warning, unknown_remark

LOWER = "le chat la maison a vu une tour paris l' homme".split()
CASED = "Le le chat la maison a vu une tour Paris L' homme Der".split()


def advice(vocabulary: list[str], text: str) -> str | None:
    check = TextCheck(vocabulary)
    check.add((word, 1) for word in text.split())
    return check.advice("a.txt", "a b.txt")


@pytest.mark.parametrize(
    ("vocabulary", "text", "counts", "example", "fix"),
    [
        (LOWER, "le chat. la maison, a vu", "2 of 6", "chat.", "tokenize < 'a b.txt' > 'a b.txt'.tok; pip install"),
        (LOWER, "le chat « la maison »", "", "", ""),
        (LOWER, "le «chat» (maison", "2 of 3", "«chat»", "tokenise it (sacremoses"),
        (LOWER, "Le chat. la maison", "1 of 4", "chat.", "tokenise it"),  # as many words of either kind
        (LOWER, "le chat؟ la maison։ chat։", "3 of 5", "chat؟", "tokenise it"),
        ([*LOWER, "chat.", "maison,"], "le chat. la maison,", "2 of 4", "chat.", "tokenise it"),  # so is the dictionary
        (LOWER, "le chat ... la . ( 12. x. - l' homme", "", "", ""),
        (LOWER, "Le CHAT la maison", "2 of 4", "Le", "lower-case it (sed 's/.*/\\L&/' 'a b.txt' > 'a b.txt'.lower)"),
        (LOWER, "Le " + "chat " * 99, "1 of 100", "Le", "lower-case it"),
        (["ılık", "ile"], "Ilık İLE", "2 of 2", "Ilık", "lower-case it"),  # Turkish
        (["ılık", "ile"], "ilik ile", "", "", ""),  # other words
        (CASED, "le chat paris der l'", "3 of 5", "paris", "use the text with its own capitals"),
        (CASED, "LE CHAT LA MAISON", "4 of 4", "LE", "use the text with its own capitals"),
        (CASED, "La maison x y z", "", "", ""),  # a text with capitals has its own reasons
        (LOWER, "<s> le chat <unk> </s> <S>", "", "", ""),
        (LOWER, "x y z", "", "", ""),
        (LOWER, "", "", "", ""),
    ],
)  # fmt: skip
def test_one_reason_with_the_next_command(
    vocabulary: list[str], text: str, counts: str, example: str, fix: str
) -> None:
    found = advice(vocabulary, text)
    if not fix:
        assert found is None
        return
    assert found is not None and found.startswith("a.txt: ") and f"{counts} words" in found
    assert f"such as {example!r}: " in found and fix in found


@pytest.mark.parametrize(
    ("text", "explains"),
    [
        ("Le Chat x", True),
        ("Le Chat x y", False),  # a half is not most of them
        ("chat. maison, x", True),
        ("chat. Le x y z", False),
        ("Le chat x y z", False),
    ],
)
def test_a_reason_explains_most_unknown_words_or_not(text: str, explains: bool) -> None:
    """The warning of many unknown words is left out only if another one says why."""
    check = TextCheck(LOWER)
    check.add((word, 1) for word in text.split())
    assert check.explains_most() is explains
    remark = next(iter(unknown_remark("a.txt", check.unknown, 40, is_explained=explains)))
    assert is_warning(remark) is not explains


def test_a_form_comes_first() -> None:
    assert advice(["été", "chat"], "e\u0301te\u0301 chat. Chat") == (
        "a.txt: 1 words that the dictionary has in another Unicode form only, such as 'e\u0301te\u0301', in NFC: bring "
        "the file into that form (`uconv -x any-nfc`)"
    )


def test_texts_that_are_counted_and_read_are_checked(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    import numpy as np

    from fairseq_llrnn.features.dictionary import read_ids

    path = tmp_path_factory.mktemp("texts") / "a.txt"
    path.write_text("le chat. la maison, <unk>\n", encoding="utf-8")
    words = WordList((*SPECIALS, *LOWER), np.zeros(len(SPECIALS) + len(LOWER), dtype=np.int64))
    check = TextCheck(words.ordinary)
    words.count_text([path], 1, check)
    read_ids([path], words.symbols, 3, 1)
    assert (check.words, check.unknown, check.glued) == (5, 3, 2)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert len({*caplog.messages}) == 1 and caplog.messages[0].startswith(f"{path}: punctuation is glued to 2 of 5")
