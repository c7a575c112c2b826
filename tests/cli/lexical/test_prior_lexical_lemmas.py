"""`llrnn prior --lexical-translation` with lemmas of the target and of the source."""

from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell
from small_bitext import Run, preprocess, translations
from small_corpus import Llrnn

from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

# ---- lemmas ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def lemmas(data: Path) -> list[object]:
    """Options of a prior whose dictionary has the form `maisons`, which the text lacks."""
    with (data / "dict.fr.txt").open("a", encoding="utf-8") as file:
        file.write("maisons 0\n")
    lexicon = data / "lexicon.tsv"
    lemma_of = {"maison": "maison", "maisons": "maison", "chat": "chat", "chats": "chat", "la": "le", "le": "le"}
    lexicon.write_text("".join(f"{form}\t{lemma}\tX\t_\n" for form, lemma in lemma_of.items()), encoding="utf-8")
    return ["--lexicon", lexicon, "--set", "translations.units=lemma"]


def test_lemmas_reach_forms_that_the_bitext_lacks(
    built: Callable[..., Prior], data: Path, lemmas: list[object], llrnn: Llrnn
) -> None:
    prior = built(*lemmas)
    part = prior.find(LexicalPart)
    assert part.form_power == 0.5
    assert translations(prior, "house")[0] == "maison"
    row = {prior.symbols[x]: p for x, p in part.word_table.row(prior.source_symbols.index("house"))}
    assert row["maisons"] == pytest.approx(row["maison"] * (0.5 / 5.5) ** 0.5, rel=1e-4)
    assert "maisons" in llrnn("show", data / "prior", "--source", "house").out
    shown = llrnn("show", data / "prior").out
    assert "counts of forms to the power 0.5" in shown and "forms of lemmas" in shown
    even = built(*lemmas, "--set", "translations.form_power=0")
    assert even.find(LexicalPart).form_power == 0.0
    assert prior.fingerprint != even.fingerprint


def test_lemmas_need_a_source(prior: Run, lemmas: list[object]) -> None:
    assert prior("--set", "translations.units=lemma").error == (
        "translations.units=lemma: expected a source of lemmas, found none; give --conllu or --lexicon, or "
        "--language with a package that lists lemmas"
    )
    assert prior("--set", "translations.form_power=0.25").error == (
        "--set translations.form_power: it needs translations.units=lemma; add that, or leave it out"
    )
    assert prior(*lemmas, "--set", "translations.form_power=1.5").error == (
        "--set translations.form_power: expected a number of at most 1, found 1.5; correct it"
    )


# ---- lemmas of the source -----------------------------------------------------------------------------------------


@pytest.fixture
def source_lemmas(data: Path) -> list[object]:
    """Options of a prior whose source dictionary has `houses`, which the text lacks."""
    with (data / "dict.en.txt").open("a", encoding="utf-8") as file:
        file.write("houses 0\n")
    lexicon = data / "english.tsv"
    lexicon.write_text("house\thouse\tX\t_\nhouses\thouse\tX\t_\ncat\tcat\tX\t_\n", encoding="utf-8")
    return ["--set", f"translations.source_lexicon={lexicon}"]


@pytest.mark.parametrize("units", ["word", "lemma"])
def test_source_words_that_the_bitext_lacks_are_known_by_their_lemma(
    built: Callable[..., Prior], data: Path, lemmas: list[object], source_lemmas: list[object], llrnn: Llrnn, units: str
) -> None:
    own = lemmas if units == "lemma" else []
    plain = built(*own)
    assert not plain.find(LexicalPart).unit_table.row(plain.source_symbols.index("houses"))
    prior = built(*own, *source_lemmas)
    part = prior.find(LexicalPart)
    rows = [dict(part.word_table.row(prior.source_symbols.index(word))) for word in ("house", "houses")]
    assert rows[0].keys() == rows[1].keys()
    assert prior.symbols[max(rows[1], key=rows[1].__getitem__)] == "maison"
    assert "maison" in llrnn("show", data / "prior", "--source", "houses").out
    shown = llrnn("show", data / "prior").out
    assert "source words back off to lemmas, weighed as 5 links" in shown and "translations of source lemmas" in shown
    assert prior.fingerprint != plain.fingerprint
    assert Prior.load(data / "prior").fingerprint == prior.fingerprint
    assert any(row.startswith("translations.source_lexicon english.tsv ") for row in prior.settings["sources"])


def test_a_source_with_capitals(shell: Shell, tmp_path: Path, llrnn: Llrnn) -> None:
    """Its lemmas have capitals, whatever the target has."""
    preprocess(shell, tmp_path / "data", ["Haus", "Häuser da"] * 3, ["maison", "maison là"] * 3)
    (tmp_path / "german.tsv").write_text("Haus\tHaus\tX\t_\nHäuser\tHaus\tX\t_\n", encoding="utf-8")
    done = llrnn(
        "prior", "--dict", tmp_path / "data" / "dict.fr.txt", "--lexical-translation", tmp_path / "data", "--set",
        "translations.aligner=ibm1", "--set", f"translations.source_lexicon={tmp_path / 'german.tsv'}", "--out",
        tmp_path / "prior",
    )  # fmt: skip
    assert done.code == 0
    prior = Prior.load(tmp_path / "prior")
    heads = prior.find(LexicalPart).source_lemmas.head_of
    first, second = (prior.source_symbols.index(word) for word in ("Haus", "Häuser"))
    assert heads[first] == heads[second]
