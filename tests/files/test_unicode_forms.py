"""NFC and NFD: every reader converts words to the form of the text, or prints a note without the option."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lexicons import read_conllu, read_table, read_tsv_lexicon, read_unimorph, read_values

from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.cli.main import main
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.text_lines import FORMS, advice_on_form, form_of, in_form, in_other_form
from fairseq_llrnn.lexicon.merge_sources import read_word_forms
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers.values import read_weights
from fairseq_llrnn.lexicon.segments import read_segmentations
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build

DICTIONARY = "été 3\nle 2\nforêts 1\n"
FILES = {
    "conllu": "1\tété\tété\tNOUN\t_\t_\t_\t_\t_\t_\n2\tforêts\tforêt\tNOUN\t_\t_\t_\t_\t_\t_\n",
    "lexicon": "été\tété\tNOUN\t_\nforêts\tforêt\tNOUN\t_\n",
    "unimorph": "été\tété\tN\nforêt\tforêts\tN;PL\n",
    "values": "été\tA:b\t1\nforêts\tA:b\t2\n",
    "morphemes": "été\tét é\nforêts\tforêt s\nle\tle\n",
    "hunspell": "2\nété\nforêt/S\n",
}
READERS: dict[str, Callable[..., object]] = {
    "conllu": read_conllu, "lexicon": read_tsv_lexicon, "unimorph": read_unimorph, "values": read_values,
    "morphemes": read_segmentations,
}  # fmt: skip


def written(folder: Path, name: str, text: str, form: str) -> Path:
    path = folder / (f"{name}.dic" if name == "hunspell" else name)
    path.write_text(in_form(text, form), encoding="utf-8")
    path.with_suffix(".aff").write_text("SET UTF-8\nSFX S Y 1\nSFX S 0 s .\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", FORMS)
@pytest.mark.parametrize("name", READERS)
def test_readers_of_features(name: str, form: str, other: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, FILES[name], other)
    asked = {in_form(word, form) for word in ("été", "forêts")}
    assert asked <= set(READERS[name](path, lowercase=True, form=form))  # type: ignore[call-overload]
    plain = set(READERS[name](path, lowercase=True))  # type: ignore[call-overload]
    assert (asked <= plain) == (form == other)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["conllu", "lexicon", "unimorph", "hunspell"])
def test_readers_of_lemmas_and_forms(name: str, form: str, tmp_path: Path) -> None:
    path = written(tmp_path, name, FILES[name], "nfd" if form == "nfc" else "nfc")
    été, forêt, forêts = (in_form(word, form) for word in ("été", "forêt", "forêts"))
    rows = read_table(name, path, form=form, words=[forêts]).rows
    found = {(row.form, row.lemma) for row in rows}
    assert {(forêts, forêt)} <= found <= {(forêts, forêt), (forêt, forêt), (été, été)}
    if name == "lexicon":
        assert forêts in read_word_forms([str(path)], [forêts]).of(forêt)


@pytest.mark.parametrize(("form", "other"), [FORMS, FORMS[::-1]])
@pytest.mark.parametrize("option", ["conllu", "lexicon", "morphemes"])
def test_a_prior_says_so_and_normalises(
    option: str, form: str, other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dictionary, path = written(tmp_path, "dict", DICTIONARY, form), written(tmp_path, option, FILES[option], other)
    said = ["--set", f"words.{option}={path}"] if option == "morphemes" else [f"--{option}", str(path)]
    made = ["prior", "--dict", str(dictionary), *said, "--out", str(tmp_path / "out")]
    assert main(made) == 0
    said = capsys.readouterr().err
    what = f"words.{option}" if option == "morphemes" else "the lexicon"
    assert f"note: 2 dictionary words (66.7 % of the text) that {what} has {_note(form)}" in said
    assert main([*made, "--set", f"words.normalize={form}"]) == 0
    assert "Unicode form" not in capsys.readouterr().err


def _note(form: str) -> str:
    word = in_form("été", form)
    advice = f"the text has them in {form.upper()}; add --set words.normalize={form}"
    return f"in another Unicode form only, such as {word!r}: {advice}"


def test_the_other_form_than_that_of_the_text_is_noticed(tmp_path: Path) -> None:
    dictionary = written(tmp_path, "dict", DICTIONARY, "nfd")
    path = written(tmp_path, "lexicon", FILES["lexicon"], "nfd")
    notes = build(dictionary, Recipe(top_words=1, words=LexiconOptions(lexicon=path, normalize="nfc"))).notes
    assert any("the text is not in NFC everywhere; convert it to that form (`uconv -x any-nfc`)" in n for n in notes)


@pytest.mark.parametrize("more", [(), ("--background", "ngram:2"), ("--open-vocabulary", "characters")])
def test_a_text_in_another_form_than_its_dictionary_is_noticed(
    more: tuple[str, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dictionary = written(tmp_path, "dict", DICTIONARY, "nfc")
    text = written(tmp_path, "text", "le été été\nle forêts le\nle le\n" * 3, "nfd")
    made = ["prior", "--dict", str(dictionary), "--count-text", str(text), *more, "--out", str(tmp_path / "out")]
    main(made)
    assert f"{text}: 2 words that the dictionary has only in another Unicode form, such as" in caplog.text


@pytest.mark.parametrize("more", [(), ("--open-vocabulary", "characters")])
def test_a_text_all_of_whose_words_have_another_form(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words of Korean have no letter that is the same in both forms."""
    for form, other in (FORMS, FORMS[::-1]):
        dictionary = written(tmp_path, "dict", "한국어 3\n고양이 2\n", form)
        text = written(tmp_path, "text", "고양이 한국어\n", other)
        made = ["prior", "--dict", str(dictionary), "--count-text", str(text), *more, "--out", str(tmp_path / "out")]
        assert main(made) == 2
        assert capsys.readouterr().err == (
            f"llrnn: error: {text}: 2 words that the dictionary has only in another Unicode form, such as "
            f"{in_form('고양이', other)!r}, in {form.upper()}: convert the file to that form (`uconv -x any-{form}`)\n"
        )
    arpa = "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t</s>\n-1\t<unk>\n-1\t고양이\n\n\\end\\\n"
    background = f"ngram:{written(tmp_path, 'a.arpa', arpa, form)}"
    text = written(tmp_path, "text", "고양이 한국어\n", other)
    dictionary = written(tmp_path, "dict", "한국어 3\n고양이 2\n", other)
    main(["prior", "--dict", str(dictionary), "--background", background, "--out", str(tmp_path / "out")])
    assert "(only in another Unicode form: NFC and NFD look alike)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["conllu", "lexicon"])
def test_a_dictionary_says_so_and_normalises(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, path = written(tmp_path, "text", "été forêts\n", "nfc"), written(tmp_path, name, FILES[name], "nfd")
    made = ["dictionary", "--text", str(text), f"--{name}", str(path), "--out", "-"]
    assert main(made) == 0
    assert "words of the text are in the sources in another Unicode form only" in capsys.readouterr().err
    assert main([*made, "--normalize", "nfc"]) == 0
    assert "Unicode form" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["conllu", "unimorph", "hunspell", "values"])
def test_a_table_is_normalised_and_says_what_is_not(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = ["lexicon", f"--{name}", str(written(tmp_path, name, FILES[name], "nfd")), "--out", "-"]
    assert main(made) == 0
    out, err = capsys.readouterr()
    assert in_form("forêts", "nfd") in out and "rows have forms that are not in NFC; --normalize nfc converts" in err
    assert main([*made, "--normalize", "nfc"]) == 0
    out, err = capsys.readouterr()
    assert "forêts" in out and "NFC" not in err


def test_the_text_of_a_treebank_in_either_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "conllu", FILES["conllu"], "nfd")
    for form in FORMS:
        assert main(["text", "--conllu", str(path), "--normalize", form]) == 0
        assert capsys.readouterr().out == unicodedata.normalize(form.upper(), "été forêts\n")


def test_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="words.normalize: expected nfc or nfd, found 'nfk'"):
        build(written(tmp_path, "dict", DICTIONARY, "nfc"), Recipe(words=LexiconOptions(normalize="nfk")))


def test_which_form_words_have() -> None:
    assert form_of(["le", "été"]) == "nfc" and form_of([in_form("été", "nfd")]) == "nfd" and form_of(["le"]) is None
    mixed = f"é{in_form('é', 'nfd')}"
    assert in_other_form([mixed, "ete", "été"], ["éé", "été"]) == {mixed: "éé"}
    assert advice_on_form(mixed, None, "--normalize ").startswith("the text is not in NFC everywhere")


def composed_words() -> WordList:
    symbols = ("<s>", "<pad>", "</s>", "<unk>", "été", "le")
    return WordList(symbols, np.array([0, 0, 4, 1, 3, 3]))


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("b.tsv", "été\t1\n", lambda path: read_weights(path, {"été": 4, "le": 5}, 6)),
        ("a.regex", "le été", lambda path: read_automaton(path, composed_words())),
        ("a.txt", "0 1 été\n1\n", lambda path: read_automaton(path, composed_words())),
    ],
)
def test_a_word_that_is_refused_for_its_form_alone(
    name: str, text: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = written(tmp_path, name, text, "nfd")
    with pytest.raises(DataError, match=r"dictionary \(only in another Unicode form: NFC and NFD look alike\)"):
        read(path)
    read(written(tmp_path, name, text, "nfc"))


def test_ngrams_in_another_form_are_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dictionary = written(tmp_path, "dict", DICTIONARY, "nfc")
    arpa = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1\tété\n-1\t</s>\n-1\t<unk>\n-1\tle\n\n\\end\\\n"
    path = written(tmp_path, "a.arpa", arpa, "nfd")
    background = ["--background", f"ngram:{path}"]
    assert main(["prior", "--dict", str(dictionary), *background, "--out", str(tmp_path / "out")]) == 0
    assert f"note: {path}: 1 words that the dictionary has only in another Unicode form" in capsys.readouterr().err


def test_an_evidence_map_in_another_form_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dictionary = written(tmp_path, "dict", DICTIONARY, "nfc")
    path = written(tmp_path, "map.tsv", "summer\tété\nété\tle\n", "nfd")
    made = ["prior", "--dict", str(dictionary), "--set", f"source_dictionary={dictionary}", f"evidence.mapping={path}"]
    assert main([*made, "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.count("note: evidence.mapping: 1 words that the dictionary has only in") == 1
    assert main([*made, "--set", "words.normalize=nfc", "--out", str(tmp_path / "out")]) == 0
    assert "Unicode form" not in capsys.readouterr().err
