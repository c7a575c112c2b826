"""The models of a comparison: their trials, the folders of their jobs, and estimates."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairseq_llrnn.comparison.models import Job, chosen_models, recipe_of, training_options, trials_of
from fairseq_llrnn.comparison.pieces import CHARACTERS
from fairseq_llrnn.comparison.settings import NEURAL, RATES, TRIALS, Comparison, FineTuning
from fairseq_llrnn.comparison.texts import Texts

TEXTS = Texts(["a b", "b"], ["a b", "b c"], ["b a", "c"])
OUT = Path("out")


def test_all_neural_models_have_the_same_trials() -> None:
    settings = Comparison(OUT, tries=2, seeds=(7, 8))
    for model in NEURAL:
        jobs = trials_of(model, settings, 7)
        sizes = {"pieces": [500, 2000], "characters": [CHARACTERS]}.get(model, [None])
        assert [(job.trial, job.size, job.seed) for job in jobs] == [(t, size, 7) for size in sizes for t in TRIALS[:2]]
    assert [(job.trial, job.size) for job in trials_of("pieces", Comparison(OUT, quick=True), 1)] == [(TRIALS[0], 500)]
    assert trials_of("mixed", settings, 7) == [] and len({job.place for job in trials_of("ngrams", settings, 7)}) == 4


def test_a_pretrained_network_has_rates(tmp_path: Path) -> None:
    folder = tmp_path / "SmolLM2-135M"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(bytes(4_000))
    jobs = trials_of("pretrained", Comparison(OUT, pretrained=folder, tries=2), 1)
    assert [job.trial for job in jobs] == [FineTuning(rate) for rate in RATES[:2]]
    assert jobs[0].place == Path("models/pretrained-SmolLM2-135M/rate0.0003-seed1") and jobs[0].weights == 1_000
    assert jobs[0].bytes(TEXTS) == 5_004_000 and not jobs[0].has_words


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["ngrams", *NEURAL[:-1], "mixed"]),
        ({"pretrained": Path("a")}, ["ngrams", *NEURAL[:-1], "pretrained", "mixed"]),
        ({"models": ["ngrams"], "pretrained": Path("a")}, ["ngrams", "pretrained"]),
        ({"models": ["mixed", "suffixes", "ngrams"]}, ["ngrams", "suffixes", "mixed"]),
    ],
)
def test_chosen_models(settings: dict[str, Any], expected: list[str]) -> None:
    assert chosen_models(TEXTS, Comparison(OUT, **settings)) == expected


def test_a_network_of_characters_spells_unknown_words_of_networks() -> None:
    """A closed dictionary has no open vocabulary."""
    job, closed = Job("softmax", 1, TRIALS[0]), Job("softmax", 1, TRIALS[0], is_closed=True)
    assert job.place != closed.place and job.setting == closed.setting
    settings = Comparison(OUT, spelling_lexicon=["list.txt"])
    kinds = []
    for each in (job, closed, Job("ngrams-3", 1)):
        opened = recipe_of(each, Path("a"), TEXTS, settings).open_vocabulary
        assert opened is None or opened.lexicon == ["list.txt"]
        kinds.append(opened and opened.kind)
    assert kinds == ["neural", None, "characters"]


def test_estimates() -> None:
    softmax, ours, pieces = (Job(name, 1, TRIALS[0]) for name in ("softmax", "suffixes", "pieces"))
    pieces = replace(pieces, size=500)
    text = Texts([" ".join(f"word{n}" for n in range(number, number + 10)) for number in range(4_704)], [], [])
    half = replace(text, train=text.train[::2])
    assert 27_000_000 < softmax.bytes(text) - 5_000_000 < 28_000_000  # a checkpoint of 4,714 words had 27,231,347
    assert ours.seconds(half, 80) < softmax.seconds(half, 80) < softmax.seconds(text, 80)
    closed = replace(softmax, is_closed=True)
    assert closed.seconds(text, 80) < softmax.seconds(text, 80) < 1.5 * closed.seconds(text, 80)
    assert softmax.seconds(text, 2) < 0.4 * softmax.seconds(text, 80)
    longer = replace(text, train=[line.replace("word", "longer-word") for line in text.train])
    assert pieces.seconds(longer, 80) > 1.5 * pieces.seconds(text, 80)
    options = training_options(softmax, 9, 3000, 400_000)
    assert options[options.index("--max-tokens") + 1] == options[options.index("--tokens-per-sample") + 1] == "3000"


def test_small_texts_have_more_patience() -> None:
    def patience(longest: int, num_tokens: int) -> list[str]:
        options = training_options(Job("suffixes", 1, TRIALS[0]), 80, longest, num_tokens)
        return [options[options.index(name) + 1] for name in ("--patience", "--lr-patience")]

    assert patience(50, 20_480) == patience(50, 300_000) == ["5", "1"]  # 20 batches of 1,024 tokens, and more
    assert patience(50, 2_048) == ["50", "10"] and patience(50, 10_000) == ["11", "3"]
    assert patience(2_048, 20_480) == ["10", "2"]
