"""Packages of a language: names and codes, the interface, the tables of tags, and the features of words."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ud_values import unknown_values

from fairseq_llrnn.cli.tables import WIDTH, columns
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.lexicon.casing import case_key, is_lower, language_of, lower, upper
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages import english, language_source, slavic, turkish
from fairseq_llrnn.lexicon.languages.language_source import (
    SOURCES,
    FeatureSource,
    FrequencySource,
    LanguageSource,
    Spelling,
    sources_of,
)
from fairseq_llrnn.lexicon.languages.names import CODES, NAMES, language_code

LOWER = Spelling(lowercase=True)


def installed(name: str, code: str) -> LanguageSource:
    """Return a source, or skip the test if its packages are not installed."""
    source = SOURCES[name]
    if missing := source.missing(code):
        pytest.skip(f"not installed: pip install {' '.join(missing)}")
    return source


def features(name: str, code: str, *words: str, spelling: Spelling = LOWER) -> dict[str, set[str]]:
    source = installed(name, code)
    assert isinstance(source, FeatureSource)
    lexicon = Lexicon()
    for word, names in source.read(words, code, spelling):
        lexicon.add(word, names)
    assert set(lexicon) <= set(words)
    return {word: set(lexicon.features(word)) for word in lexicon}


# ---- names and codes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [("uk", "uk"), ("ukr", "uk"), ("Ukrainian", "uk"), ("uk_UA", "uk"), ("zh-Hans", "zh"), ("hrv", "sh")]
    + [("scottish  Gaelic", "gd"), ("fil", "tl"), ("grc", "grc"), ("ger", "de")],
)
def test_what_a_language_may_be_called(text: str, code: str) -> None:
    assert language_code(text) == code


def test_an_unknown_language_lists_the_known_ones() -> None:
    with pytest.raises(OptionError) as caught:
        language_code("Hungarain")
    said = str(caught.value)
    assert said.startswith(
        "--language Hungarain: expected a language with a package, found another (did you mean hu, Hungarian?)"
        "; for other languages give --conllu, or use `llrnn lexicon` with --unimorph or --apertium; codes and English "
        "names of those with a package: ar Arabic, "
    )
    assert said.endswith(", zh Chinese")
    with pytest.raises(OptionError, match="found another; for other languages"):
        language_code("qqq")
    with pytest.raises(OptionError, match=r"did you mean fr, French\?"):
        language_code("Frensh")
    for code in ("eu", "frr"):  # Basque is no misspelt German
        with pytest.raises(OptionError, match="found another; for other"):
            language_code(code)
    with pytest.raises(OptionError, match="found none; for other"):
        language_code(" ")


def test_languages_by_the_names_that_their_speakers_give_them() -> None:
    assert [language_code(name) for name in ("Türkçe", "deutsch", "Français", "українська")] == ["tr", "de", "fr", "uk"]
    assert [language_code(name) for name in ("Serbian", "Croatian", "Norwegian Bokmål")] == ["sh", "sh", "nb"]
    assert set(CODES.values()) == set(NAMES)


# ---- the contract ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_keeps_the_contract(source: LanguageSource) -> None:
    assert source.codes.keys() <= NAMES.keys()
    assert isinstance(source, FeatureSource | FrequencySource)
    for code in source.codes:
        assert source in sources_of(code)
        assert source.packages(code)
        for line in source.licence(code).split("; "):  # a part of a prior has so much room in `llrnn show`
            assert columns(f"licence {line}") <= WIDTH - 31


def test_every_language_has_a_source() -> None:
    assert all(sources_of(code) for code in NAMES)


@pytest.mark.parametrize("name", ["wordfreq", "simplemma"])
def test_the_codes_are_those_that_the_package_has(name: str) -> None:
    source = installed(name, "uk")
    if name == "wordfreq":
        import wordfreq

        known = set(wordfreq.available_languages())
    else:
        from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES as known
    assert set(source.codes.values()) == set(known)


def test_a_missing_package_names_the_line_for_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_source, "is_installed", lambda package: package != "pymorphy3-dicts-uk")
    assert SOURCES["pymorphy3"].missing("uk") == ["pymorphy3-dicts-uk"]
    assert SOURCES["pymorphy3"].missing("ru") == []
    with pytest.raises(OptionError) as caught:
        SOURCES["pymorphy3"].need("uk", "--language uk")
    assert str(caught.value) == (
        "--language uk: the package pymorphy3-dicts-uk is not installed; install it with pip "
        "install pymorphy3-dicts-uk (all of them: in a checkout of fairseq_llrnn: pip install '.[languages]')"
    )


# ---- tables ---------------------------------------------------------------------------------------------------------


def test_the_tables_say_what_universal_dependencies_has() -> None:
    tables = (
        slavic.PART_OF_SPEECH | slavic.FEATURES,
        {tag: (name,) for tag, name in slavic.INSTEAD.items()},
        turkish.PART_OF_SPEECH | turkish.FEATURES | turkish.PARTICIPLES,
        {kind: tuple(" ".join(forms).split()) for kind, forms in english.FORMS.items()},
    )
    assert [unknown for table in tables for unknown in unknown_values(table)] == []


@pytest.mark.parametrize("code", ["ru", "uk"])
def test_every_grammeme_of_the_dictionaries_has_its_place(code: str) -> None:
    installed("pymorphy3", code)
    from pymorphy3 import MorphAnalyzer

    tags = MorphAnalyzer(lang=code).dictionary.gramtab
    found = {grammeme for tag in tags for grammeme in str(tag).replace(" ", ",").split(",")}
    tables = (slavic.PART_OF_SPEECH, slavic.FEATURES, slavic.INSTEAD)
    assert found - set().union(*tables) - slavic.LEFT_OUT == set()
    assert not slavic.LEFT_OUT.intersection(*tables)


@pytest.mark.slow
def test_every_morpheme_of_turkish_has_its_place() -> None:
    installed("zeyrek", "tr")
    from zeyrek.morphotactics import morphemes

    named = (turkish.PART_OF_SPEECH, turkish.FEATURES, turkish.PARTICIPLES)
    others = (turkish.VERBAL_NOUNS, turkish.CONVERBS, turkish.LEFT_OUT)
    assert set(morphemes) - set().union(*named, *others) == set()


@pytest.mark.parametrize(
    ("grammemes", "names"),
    [
        ("NOUN inan plur nomn", "POS:NOUN Animacy:Inan Number:Plur Case:Nom"),
        ("NOUN Name masc anim nomn", "POS:PROPN NameType:Giv Gender:Masc Animacy:Anim Case:Nom"),
        ("VERB impf sing 3per pres", "POS:VERB Aspect:Imp Number:Sing Person:3 Tense:Pres VerbForm:Fin Mood:Ind"),
        ("VERB perf impr 2per", "POS:VERB Aspect:Perf Mood:Imp Person:2 VerbForm:Fin"),
        ("VERB impf infn", "POS:VERB Aspect:Imp VerbForm:Inf"),
        ("PRTF past pssv", "POS:VERB VerbForm:Part Tense:Past Voice:Pass"),
        ("ADJF Apro masc", "POS:DET Gender:Masc"),
        ("ADJF Anum femn", "POS:ADJ Gender:Fem NumType:Ord"),
        ("CONJ coord", "POS:CCONJ"),
        ("CONJ", "POS:CCONJ POS:SCONJ"),
        ("PREP rv_gent rv_ablt", "POS:ADP Case:Gen Case:Ins"),
        ("NOUN Infr Unheard-of", "POS:NOUN"),
    ],
)
def test_what_grammemes_say(grammemes: str, names: str) -> None:
    assert slavic.grammemes_features(grammemes.split()) == tuple(names.split())


@pytest.mark.parametrize(
    ("morphemes", "names"),
    [
        ("Noun A3pl P1pl Abl", "POS:NOUN Number:Plur Person:3 Number[psor]:Plur Person[psor]:1 Case:Abl"),
        ("Noun A3sg", "POS:NOUN Number:Sing Person:3 Case:Nom"),
        ("Verb Prog1 A1sg", "POS:VERB Aspect:Prog Tense:Pres Number:Sing Person:1 Polarity:Pos VerbForm:Fin"),
        ("Verb Neg Past A3sg", "POS:VERB Polarity:Neg Evident:Fh Tense:Past Number:Sing Person:3 VerbForm:Fin"),
        ("Verb Able Verb Fut A3pl", "POS:VERB Mood:Pot Tense:Fut Number:Plur Person:3 Polarity:Pos VerbForm:Fin"),
        ("Verb Pass Verb PresPart Adj", "POS:VERB Voice:Pass VerbForm:Part Polarity:Pos"),
        ("Verb When Adv", "POS:VERB VerbForm:Conv Polarity:Pos"),
        ("Adj Ness Noun A3sg Dat", "POS:NOUN Number:Sing Person:3 Case:Dat"),
        ("Conj", "POS:CCONJ POS:SCONJ"),
        ("Odd", "POS:X"),
    ],
)
def test_what_morphemes_say(morphemes: str, names: str) -> None:
    assert turkish.morphemes_features(morphemes.split()) == tuple(names.split())
    if names.startswith("POS:NOUN") and "Ness" not in morphemes:
        assert turkish.morphemes_features(morphemes.split(), is_name=True)[0] == "POS:PROPN"


# ---- what each says of some words -----------------------------------------------------------------------------------


def test_lemmas() -> None:
    found = features("simplemma", "lv", "kaķiem", "kaķis", "kanādiem", "1998", ",")
    assert found["kaķiem"] == found["kaķis"] == {"Lemma:kaķis"} and found["kanādiem"] == {"Lemma:kanāda"}
    assert "," not in found and "1998" not in found
    assert features("simplemma", "lv", "Kanādiem", spelling=Spelling(False))["Kanādiem"] == {"Lemma:Kanāda"}


def test_ukrainian_and_russian() -> None:
    found = features("pymorphy3", "uk", "столи", "ісус", "неїснуючеслово", ",", "1998")
    assert found.keys() == {"столи", "ісус"}
    assert found["столи"] == {"POS:NOUN", "Animacy:Inan", "Number:Plur", "Case:Nom", "Case:Acc", "Case:Voc"}
    assert "POS:PROPN" in found["ісус"]
    assert {"POS:VERB", "POS:NOUN", "Tense:Past"} < features("pymorphy3", "ru", "стали")["стали"]


def test_turkish(caplog: pytest.LogCaptureFixture) -> None:
    found = features("zeyrek", "tr", "evlerimizden", "İstanbul'da", "xyzq")
    assert found.keys() == {"evlerimizden", "İstanbul'da"}
    assert {"POS:NOUN", "Case:Abl", "Number[psor]:Plur"} < found["evlerimizden"]
    assert {"POS:PROPN", "Case:Loc"} < found["İstanbul'da"]
    assert not caplog.records


def test_english_without_importing_the_package() -> None:
    found = features("lemminflect", "en", "walked", "walks", "children", "was", "better", "aachen", "xqzw")
    assert "lemminflect" not in sys.modules
    assert found["walked"] == {"POS:VERB", "Mood:Ind", "Tense:Past", "VerbForm:Fin", "VerbForm:Part"}
    assert {"Person:3", "POS:NOUN", "Number:Plur"} < found["walks"]
    assert found["children"] == {"POS:NOUN", "Number:Plur"}
    assert found["was"] == {"POS:AUX", "POS:VERB"}
    assert "Degree:Cmp" in found["better"] and "Number:Sing" in found["aachen"]
    assert "xqzw" not in found


def test_frequencies() -> None:
    source = installed("wordfreq", "hu")
    assert isinstance(source, FrequencySource)
    house, capital, year, comma, none = source.frequencies(["ház", "Ház", "1998", ",", "xqzwxqzw"], "hu")
    assert house == capital > year > 0 == comma == none
    assert 0 < source.least("hu") <= house
    for code in ("zh", "ja", "ko", "tl", "sh"):  # without the tokenizers that are packages of their own
        assert np.isfinite(source.frequencies(["人", "ng", "и"], code)).all()


# Lower and upper case by language; the oracle is a table after Unicode's SpecialCasing.txt
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
