"""Every setting of a prior, changed from its default, changes log b or a feature somewhere, or is rejected."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.named_backgrounds import named_backgrounds
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, OpenOptions, Recipe, TranslationOptions
from fairseq_llrnn.settings import keys

FRENCH = [*SPECIALS, "12", "7", "chat", "chats", "dort", "la", "le", "mer", "verte"]
ENGLISH = [*SPECIALS, "12", "7", "cat", "cats", "sea", "sleeps", "the"]
TARGET = ["le chat dort", "la mer dort", "le chat 12", "la mer 7", "le chat dort", "le chat verte", "la zut mer"] * 2
SOURCE = ["the cat sleeps", "the sea sleeps", "the cat 12", "the sea 7", "the cat sleeps", "the cat", "the sea"] * 2
HISTORIES = ["", "le", "le chat", "la mer dort", "le 12", "chat </s> mer", "verte verte la"]

# what a setting is changed to, and what has to be there for it
CHANGES: dict[str, tuple[object, Mapping[str, Any]]] = {
    "shapes": (True, {}),
    "suffixes": (1, {}),
    "patterns": (UserPatterns({"Long": "....."}, "the test"), {}),
    "top_words": (1, {}),
    "identity_floor": (2, {"top_words": "auto"}),
    "features": (("POS",), {"words": LexiconOptions(lexicon={"le": ["POS:DET", "Gender:Masc"]})}),
    "input_features": (("Shape",), {"shapes": True, "suffixes": 1}),
    "input_top_words": (1, {}),
    "over": ("uniform", {"background": "cache:2"}),
    "background": ("uniform", {}),
    "counts": (np.arange(len(FRENCH)), {}),
    "labels": (True, {}),
    "text": ((), {}),
    "translations.weight": (0.2, {"translations": {}}),
    "translations.learned": (True, {"translations": {}}),
    "translations.top": (1, {"translations": {}}),
    "translations.form_power": (1.0, {"translations": {}}),
    "evidence.kinds": (("copies",), {"evidence": {}}),
    "evidence.weight": (0.5, {"evidence": {}}),
    "evidence.mapping": ({"cat": ("chats",)}, {"evidence": {}}),
    "evidence.unsupported": ({"numbers": 0.1}, {"evidence": {}}),
    "open_vocabulary.floor": (1, {"open_vocabulary": {}}),
}
ELSEWHERE = {  # settings that are not tried here, and why
    "open_vocabulary.types": "needs many rare words that are alike (tests/open_vocabulary)",
    "dictionary": "the words themselves",
    "workers": "processes; the prior does not depend on their number",
    "source_dictionary": "the words of the source; rejected without a part that knows them",
    "pieces": "another dictionary (tests/features)",
    "translations.data": "the bitext itself",
    "translations.units": "needs lemmas (tests/prior/test_prior_translations.py)",
    "translations.source_lexicon": "needs lemmas (tests/prior/test_prior_translations.py)",
    "translations.aligner": "eflomal draws random numbers",
    "open_vocabulary.kind": "a trained speller (tests/plugin/test_speller_commands.py)",
    "open_vocabulary.lexicon": "words that the text lacks (tests/cli/test_spelling_lexicon_option.py)",
}
WITHIN = [
    "unigram",
    "ngram(2, folds=2)",
    "0.5 ngram(2, folds=0) plus 0.5 translations",
    "ngram(2, folds=0) times cache:2",
]
OF_BACKGROUNDS = {
    "cache(2)": ["weight=0.5", "decay=0.5", "learned"],
    "ngram(2)": ["weight=0.5", "temperature=2", "folds=2", "folds=0", "prune=[0,3]", "text={text}"],
    "automaton({weighted}, on_zero=skip)": ["temperature=2"],
    "automaton({grammar})": ["on_zero=floor", "on_zero=skip", "unknown_symbols=drop"],
    "unigram": ["smoothing=additive", "smoothing=none", "smoothing=good-turing"],
    "unigram(smoothing=additive)": ["pseudo_count=3"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("settings")
    (place / "t.fr").write_text("\n".join(TARGET) + "\n", encoding="utf-8")
    (place / "t.en").write_text("\n".join(SOURCE) + "\n", encoding="utf-8")
    (place / "other.txt").write_text("mer verte la\nchats dort la mer\n" * 3, encoding="utf-8")
    (place / "w.txt").write_text("0 1 le 0.5\n0 1 la 0.9\n1 0.2\n1 2 chat 0.7\n2 0.1\n", encoding="utf-8")
    (place / "g.regex").write_text("(la | le) (chat | mer | 12) verte*\n", encoding="utf-8")
    return place


def recipe(folder: Path, values: Mapping[str, Any]) -> Recipe:
    """Return a recipe of settings by name; sections are mappings."""
    text = ParallelText.read(str(folder / "t.en"), str(folder / "t.fr"), ENGLISH, FRENCH)
    sections = {
        "translations": lambda more: TranslationOptions(text, **{"aligner": "ibm1", **more}),
        "evidence": lambda more: EvidenceOptions(**{"kinds": ("numbers",), **more}),
        "open_vocabulary": lambda more: OpenOptions(**more),
    }
    made = {name: sections[name](value) if name in sections else value for name, value in values.items()}
    if "evidence" in values:
        made.setdefault("source_dictionary", ENGLISH)
    return replace(Recipe(text=str(folder / "t.fr"), top_words=3, workers=1), **made)


def answers(prior: Prior) -> Iterator[Any]:
    """Return features by word, log b by context (also in training), and the contents of open words."""
    for signatures in (prior.output, prior.input):
        yield [sorted(signatures.features.row(int(signature)).items()) for signature in signatures.class_of]
    background = prior.background().double()
    yield sorted(name for name, _ in background.named_parameters())
    source = torch.tensor([[ENGLISH.index(word) for word in "the cat 12 sleeps".split()]] * len(HISTORIES))
    rows = [[2, *(FRENCH.index(word) for word in history.split())] for history in HISTORIES]
    longest = max(map(len, rows))
    previous = torch.tensor([row + [1] * (longest - len(row)) for row in rows])
    for bound in (background.bind(source), background.bind(source, previous)):
        states = bound.flat_states(previous)
        weights = bound.view(states).log_weights.detach().expand(len(states), -1)
        yield weights.masked_fill(weights.isneginf(), -1e9).numpy().round(6)
    if prior.open_words is not None:
        vocabulary = prior.open_words.vocabulary
        yield [vocabulary.word_shares.tolist(), str(vocabulary.__dict__)]


def differ(one: Prior, other: Prior) -> bool:
    pairs = zip(answers(one), answers(other), strict=True)
    return any(a.shape != b.shape or (a != b).any() if isinstance(a, np.ndarray) else a != b for a, b in pairs)


def test_every_setting_is_here() -> None:
    named = {key.name for key in keys(Recipe) if not key.name.startswith("words.")}
    assert CHANGES.keys() | ELSEWHERE.keys() == named and not CHANGES.keys() & ELSEWHERE.keys()
    for name, background in named_backgrounds().items():
        changed = {
            option.partition("=")[0]
            for call, all_ in OF_BACKGROUNDS.items()
            if call.startswith(name)
            for option in all_
        }
        if name in ("model", "", "language"):  # a path has no options, and a language has those of the unigram
            continue
        assert changed == {key.name for key in keys(background.options)}


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("name", CHANGES)
def test_a_setting_acts_or_is_rejected(folder: Path, name: str, within: str) -> None:
    value, needs = CHANGES[name]
    base: dict[str, Any] = {"background": within, **needs}
    if "translations" in base["background"]:
        base.setdefault("translations", {})
    section, dot, key = name.partition(".")
    changed = {**base, section: {**base[section], key: value}} if dot else {**base, name: value}
    before = build_prior(FRENCH, recipe(folder, base))
    try:
        after = build_prior(FRENCH, recipe(folder, changed))
    except OptionError:
        return
    assert differ(before, after)


@pytest.mark.parametrize(
    ("call", "option"), [(call, option) for call, options in OF_BACKGROUNDS.items() for option in options]
)
def test_an_option_of_a_background_acts(folder: Path, call: str, option: str) -> None:
    files = {"grammar": folder / "g.regex", "weighted": folder / "w.txt", "text": folder / "other.txt"}
    whole = call.format(**files)
    option = option.format(**files)
    changed = f"{whole[:-1]}, {option})" if whole.endswith(")") else f"{whole}({option})"
    texts = {"text": str(folder / "grammatical.txt")} if "{grammar})" in call else {}
    if texts:
        (folder / "grammatical.txt").write_text("la mer\nle chat verte\n", encoding="utf-8")
    before, after = (build_prior(FRENCH, recipe(folder, {"background": b, **texts})) for b in (whole, changed))
    of_training = {"on_zero=skip", "unknown_symbols=drop"}  # which sentences, or symbols, are rejected
    assert differ(before, after) or option in of_training
