"""Lower and upper case by language; the oracle is a table after Unicode's SpecialCasing.txt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.lexicon.casing import case_key, is_lower, language_of, lower, upper

DOT, GRAVE, ACUTE, TILDE, OGONEK = "\u0307", "\u0300", "\u0301", "\u0303", "\u0328"

# language, capitals, lower case
TABLE = [
    ("tr", "İSTANBUL", "istanbul"),
    ("tr", "ISPARTA", "ısparta"),
    ("az", "I" + DOT + "zmir", "izmir"),
    ("tr", "Ağrı", "ağrı"),
    ("tr", "I\u0323" + DOT, "i\u0323"),  # a mark below may stand before the dot
    ("tr", "I" + GRAVE + DOT, "ı" + GRAVE + DOT),
    (None, "ISPARTA", "isparta"),
    (None, "İ", "i" + DOT),
    ("el", "ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
    (None, "ΣΑΣ ΣΑΣ", "σας σας"),
    ("lt", "I" + GRAVE, "i" + DOT + GRAVE),
    ("lt", "J" + OGONEK + ACUTE, "j" + DOT + OGONEK + ACUTE),
    ("lt", "Į" + TILDE, "į" + DOT + TILDE),
    ("lt", "ÌÍĨ", f"i{DOT}{GRAVE}i{DOT}{ACUTE}i{DOT}{TILDE}"),
    ("lt", "IJ ILGAS", "ij ilgas"),
    ("lt", "I" + OGONEK, "i" + OGONEK),  # no accent above
    ("de", "STRAẞE", "straße"),
]


@pytest.mark.parametrize(("language", "capitals", "small"), TABLE)
def test_lower_case_by_language(language: str | None, capitals: str, small: str) -> None:
    assert lower(capitals, language) == small


def test_upper_case_by_language() -> None:
    assert upper("ilgın ısı", "tr") == "İLGIN ISI"
    assert upper("ilgin", None) == "ILGIN"
    assert upper(f"i{DOT}{GRAVE}", "lt") == "I" + GRAVE


@given(st.text(), st.sampled_from([None, "tr", "lt", "el"]))
def test_lower_case_stays_lower_case(text: str, language: str | None) -> None:
    once = lower(text, language)
    assert lower(once, language) == once


@given(st.lists(st.text(min_size=1).map(lambda s: "".join(s.split()) or "a"), min_size=1))
def test_a_word_is_cased_alike_by_itself_and_in_its_sentence(words: list[str]) -> None:
    assert [lower(word) for word in words] == lower(" ".join(words)).split(" ")


@pytest.mark.parametrize("word", ["İstanbul", "ISPARTA", "ΟΔΟΣ", "Ağrı"])
def test_words_that_differ_in_case_have_one_key(word: str) -> None:
    assert {case_key(lower(word, language)) for language in (None, "tr", "lt")} == {case_key(word)}


def test_codes_of_languages() -> None:
    assert [language_of(code) for code in (None, "", "tr", "TR", "tur", "tr_TR", "az-Latn", "fr")] == [
        *(None, None, "tr", "tr", "tr", "tr", "az", "fr")
    ]


@pytest.mark.parametrize("code", ["turkish", "t", "tr!", "train.conllu"])
def test_what_is_no_code_is_said(code: str) -> None:
    with pytest.raises(OptionError, match=f"--lower {code}: expected the code of a language, such as tr"):
        language_of(code)


def test_a_text_in_lower_case() -> None:
    assert is_lower(["<s>", "<Lua>", "istanbul", "2"]), "what stands for something else is no word"
    assert not is_lower(["Lyon", "lyon"])
