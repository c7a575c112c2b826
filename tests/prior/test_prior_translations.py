"""Lexical translations in a prior: background, round trip, and rejection of unsound files."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from prior_of_words import SYMBOLS, assert_needs_its_source_words, build, damage_json, replace_arrays
from translation_world import TranslationWorld

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, ParallelText
from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground
from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.lexical import LexicalPart, add_translations
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe, TranslationOptions

SOURCE_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "the", "house", "cat", "window", "12")


def sentences(*rows: list[int]) -> BitextSide:
    return BitextSide(np.concatenate(rows).astype(np.int64), np.cumsum([0, *(len(row) for row in rows)]))


def translating(prior: Prior | None = None, **options: object) -> Prior:
    """Return the prior of `the house, the cat, the window`; `le chat, la maison, la fenêtre`."""
    bitext = Bitext(
        sentences([4, 5, 2], [4, 6, 2], [4, 7, 2], [8, 3, 2]), sentences([5, 6, 2], [4, 8, 2], [5, 7, 2], [9, 3, 2])
    )
    text = ParallelText(bitext, SOURCE_SYMBOLS, ())
    return add_translations(prior or build(), TranslationOptions(text, aligner="ibm1", **options))[0]


def test_a_prior_without_translations_is_what_it_was() -> None:
    """Checkpoints store the fingerprint of their prior."""
    rounded = replace(build(), log_weights=np.round(build().log_weights))  # logarithms differ by machine
    assert rounded.fingerprint == "938a233dbc0acccbe3a124db14ff0f970cbaf48f88d56befdc8b069aac30c107"
    assert type(build().background()) is StaticBackground
    build().check_source_dictionary(("any", "words"), "dict.en.txt")


def test_translations_make_the_background() -> None:
    prior = translating(weight=0.25)
    background = prior.background()
    assert isinstance(background, LexicalBackground)
    house = background.bind(torch.tensor([[SOURCE_SYMBOLS.index("house"), 2]]))
    weights = house.view(house.start(1)).log_weights.exp()[0]
    assert weights.sum().item() == pytest.approx(1.0)
    base = np.exp(prior.log_weights)
    assert weights[[2, 3]].tolist() == pytest.approx(base[[2, 3]].tolist())
    words = base[4:].sum()
    maison = SYMBOLS.index("maison")
    says = dict(prior.find(LexicalPart).table.row(SOURCE_SYMBOLS.index("house")))[maison]
    assert weights[maison].item() == pytest.approx(0.75 * base[maison] + 0.25 * words * says)
    assert torch.isneginf(house.view(house.start(1)).log_weights[0, [0, 1, 10]]).all()
    assert list(background.parameters()) == []


def test_a_learned_weight_is_a_parameter() -> None:
    background = translating(weight=0.25, learned=True).background()
    assert [p.sigmoid().item() for p in background.parameters()] == pytest.approx([0.25])


def test_translations_between_lemmas_by_whole_numbers_round_trip(tmp_path: Path) -> None:
    options = TranslationOptions(
        ParallelText(Bitext(sentences([4, 5, 2]), sentences([5, 6, 2])), SOURCE_SYMBOLS, ()),
        weight=0, aligner="ibm1", units="lemma", form_power=1,
    )  # fmt: skip
    prior = add_translations(build(), options, lemmas=[()] * len(SYMBOLS))[0]
    prior.save(tmp_path / "prior")
    part = Prior.load(tmp_path / "prior").find(LexicalPart)
    assert part is not None and (part.weight, part.form_power) == (0.0, 1.0) and part.forms is not None


def test_the_fingerprint_knows_the_translations() -> None:
    priors = [build(), translating(), translating(top=1), translating(weight=0.25)]
    priors.append(translating(learned=True))
    assert len({prior.fingerprint for prior in priors}) == 5


def test_a_word_that_the_background_forbids_is_no_translation(tmp_path: Path) -> None:
    path = tmp_path / "weights.tsv"
    path.write_text("le\t3\nla\t3\n</s>\t1\n", encoding="utf-8")
    prior = translating(prior=build(Recipe(top_words=2, background=str(path))))
    assert set(prior.find(LexicalPart).table.targets) == {4, 5}
    weights = prior.background().bind(torch.tensor([[5, 8, 2]])).view(torch.tensor([[0]])).log_weights.exp()
    assert weights.sum().item() == pytest.approx(1.0) and weights[0, 6] == 0


def test_another_source_dictionary() -> None:
    prior = translating()
    prior.check_source_dictionary(SOURCE_SYMBOLS, "data/dict.en.txt")
    with pytest.raises(PriorError) as caught:
        prior.check_source_dictionary((*SOURCE_SYMBOLS[:5], "home", *SOURCE_SYMBOLS[6:]), "data/dict.en.txt")
    assert str(caught.value) == (
        "the prior's lexical translations were made for another source dictionary than data/dict.en.txt: sizes 9 and "
        "9, first difference at index 5 ('house' in the prior, 'home' in the dictionary); build it again with `llrnn "
        "prior` --lexical-translation data"
    )


@pytest.fixture
def translated(tmp_path: Path) -> Path:
    translating().save(tmp_path / "prior")
    return tmp_path / "prior"


TABLE = translating().find(LexicalPart).table


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"targets": np.full_like(TABLE.targets, 11)}, "point outside their tables"),
        ({"targets": np.full_like(TABLE.targets, -1)}, "point outside their tables"),
        ({"targets": TABLE.targets[1:]}, "point outside their tables"),
        ({"offsets": TABLE.offsets[::-1].copy()}, "point outside their tables"),
        ({"offsets": TABLE.offsets[:0]}, "point outside their tables"),
        ({"offsets": TABLE.offsets + 1}, "point outside their tables"),
        ({"offsets": np.append(TABLE.offsets, TABLE.offsets[-1])}, "and the source words differ in number"),
        ({"targets": np.full_like(TABLE.targets, 2)}, "contain a word that the background forbids, or no word"),
        ({"targets": np.full_like(TABLE.targets, 10)}, "contain a word that the background forbids, or no word"),
        ({"targets": np.full_like(TABLE.targets, 4)}, "contain a pair of words twice"),
        ({"probabilities": TABLE.probabilities * 2}, "are no probabilities"),
        ({"probabilities": -TABLE.probabilities}, "are no probabilities"),
        ({"probabilities": TABLE.probabilities * np.float32("nan")}, "are no probabilities"),
        ({"probabilities": np.full_like(TABLE.probabilities, np.inf)}, "are no probabilities"),
        ({"probabilities": TABLE.probabilities.astype(np.float64)}, "expected a row of float32, found float64"),
        ({"probabilities": None}, "expected 'probabilities' in the prior, found none"),
        ({"links": TABLE.links[1:]}, "have invalid numbers of links"),
        ({"links": -TABLE.links}, "have invalid numbers of links"),
        ({"links": TABLE.links * np.float32("nan")}, "have invalid numbers of links"),
    ],
)
def test_untrusted_translations(translated: Path, changes: dict[str, np.ndarray], says: str) -> None:
    replace_arrays(translated, **{f"lexical/{name}": array for name, array in changes.items()})
    with pytest.raises(PriorError, match=f"{says}.*; build it again"):
        Prior.load(translated)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"weight": 1.0}, "the lexical translations have the invalid weight 1.0"),
        ({"weight": -0.1}, "the lexical translations have the invalid weight -0.1"),
        ({"weight": float("nan")}, "the lexical translations have the invalid weight nan"),
        ({"weight": 0.0, "learned": True}, "the lexical translations have the invalid weight 0.0"),
        ({"weight": "0.5"}, "described by something else than weight, learned, aligner"),
        ({"learned": 1}, "described by something else than weight, learned, aligner"),
        ({"aligner": None}, "described by something else than weight, learned, aligner"),
        ({"source_pseudo_links": "5"}, "described by something else than source_pseudo_links"),
        ({"part": "lexical.2"}, "its parts have other names than expected"),
        (None, "expected a list of parts with their names"),
        ([], "expected a list of parts with their names"),
        ({}, "expected a list of parts with their names"),
    ],
)
def test_an_untrusted_description_of_translations(translated: Path, entry: object, says: str) -> None:
    [described] = json.loads((translated / "prior.json").read_text(encoding="utf-8"))["parts"]
    damage_json(translated, parts=[{**described, **entry} if isinstance(entry, dict) and entry else entry])
    with pytest.raises(PriorError, match=f"{says}.*; build it again"):
        Prior.load(translated)


def test_translations_of_special_symbols(translated: Path) -> None:
    offsets = TABLE.offsets.copy()
    offsets[3:5] = offsets[5]  # those of `the` become those of </s>
    replace_arrays(translated, **{"lexical/offsets": offsets})
    with pytest.raises(PriorError, match="the lexical translations contain a special symbol; build it again"):
        Prior.load(translated)


def test_source_words_that_are_missing_or_others(translated: Path) -> None:
    assert_needs_its_source_words(translated)


def test_a_source_dictionary_beside_translations_alone_is_theirs_or_refused() -> None:
    """It is redundant, but no mistake."""
    bitext = Bitext(sentences([4, 5, 2], [4, 6, 2]), sentences([5, 6, 2], [4, 8, 2]))
    translations = TranslationOptions(ParallelText(bitext, SOURCE_SYMBOLS, ()), aligner="ibm1")
    for background in ("unigram", "cache:5", "cache:5 times translations"):
        recipe = Recipe(top_words=2, background=background, translations=translations)
        prior = build_prior(SYMBOLS, replace(recipe, source_dictionary=SOURCE_SYMBOLS))
        assert prior.source_symbols == SOURCE_SYMBOLS
        assert prior.fingerprint == build_prior(SYMBOLS, recipe).fingerprint
        with pytest.raises(OptionError, match="source_dictionary: expected the words of the source side of --lexical"):
            build_prior(SYMBOLS, replace(recipe, source_dictionary=SOURCE_SYMBOLS[:-1]))


def test_a_folder_of_fairseq_is_read_without_it(
    translation: TranslationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fairseq", None)
    options = TranslationOptions(translation.data, aligner="ibm1")
    prior = build_prior(translation.data / "dict.tgt.txt", Recipe(translations=options, top_words=5))
    assert prior.find(LexicalPart).table.offsets[-1] > 0
