"""Search over words and slots finds what a beam search by hand finds, over a distribution computed by hand."""

import itertools
import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest
import torch
from dynamic_prior import few_words
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld, batch, make
from search_by_hand import ByHand, Found, Options, score_of, search
from tiny_world import Setting, evaluated
from torch import Tensor
from translation_world import assert_steps_agree, stock_args

from fairseq_llrnn.plugin.search.columns import ColumnScorer
from fairseq_llrnn.plugin.search.generator import AligningColumnGenerator, ColumnGenerator, choose_generator
from fairseq_llrnn.prior.prior import Prior

OVER_CANDIDATES = partial(ColumnGenerator, over_candidates=True)
MODELS = [("llrnn_lstm", "lexical"), ("llrnn_transformer", "static")]
OPTIONS: list[dict[str, Any]] = [  # the first for the first model, the second for the second one, …
    {"beam_size": 1},
    {},
    {"beam_size": 7, "max_len_b": 4},
    {"temperature": 0.5},
    {"temperature": 1.7, "beam_size": 2},
    {"len_penalty": 0.3, "max_len_b": 5},
    {"normalize_scores": False, "min_len": 3},
    {"unk_penalty": -4.0},
]


def assert_exact(
    found: Sequence[Found], expected: Sequence[Found], models: Sequence[Any], options: Options,
    prefix: Sequence[str] = (),
) -> None:  # fmt: skip
    """The scores are those of the search by hand, and each is the score of its words (some words are aliases)."""
    if list(found) == [Found((), 0.0)]:  # of an empty source, nothing is searched for
        assert not models[0].words
        return
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=2e-4)
    for one in found:
        assert one.score == pytest.approx(score_of(models, one.words, options), abs=2e-4)
        assert list(one.words[: len(prefix)]) == list(prefix)


def generated(generator: Any, task: Any, sample: dict[str, Any], prefix: Tensor | None = None) -> list[list[Found]]:
    results = task.inference_step(generator, list(generator.model.models), sample, prefix_tokens=prefix)
    symbols = task.target_dictionary
    return [
        [
            Found(tuple(symbols[token] for token in one["tokens"].tolist()[:-1]), one["score"].item())
            for one in hypotheses
            if one["score"] > -math.inf
        ]
        for hypotheses in results
    ]


def generators(models: Sequence[Any], task: Any, options: Options) -> list[Any]:
    """Over candidates, where one model allows it, and over all columns."""
    kinds = [ColumnGenerator, AligningColumnGenerator, *([OVER_CANDIDATES] if len(models) == 1 else [])]
    return [kind(models, task.target_dictionary, **asdict(options)) for kind in kinds]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_beam_search_is_exact(evidence: EvidenceWorld, options: dict[str, Any]) -> None:
    arch, prior = MODELS[OPTIONS.index(options) % 2]
    setting, chosen = make(evidence, arch, prior), Options(**options)
    sample, by_hand = batch(setting.task, SENTENCES), [[ByHand(setting, source)] for source in SENTENCES]
    expected = [search(models, chosen) for models in by_hand]
    for generator in generators([setting.model], setting.task, chosen):
        for found, *rest in zip(generated(generator, setting.task, sample), expected, by_hand, strict=True):
            assert_exact(found, *rest, chosen)


def test_a_beam_wider_than_all_strings_finds_all_strings(evidence: EvidenceWorld) -> None:
    """The words `chat` and `12` of which one is a slot, and two slots more: every hypothesis of one or two words."""
    prior = few_words(Prior.load(evidence.data / "static"), ["chat", "12"])
    setting = make(evidence, "llrnn_lstm", "static", loaded=prior)
    chosen = Options(beam_size=30, max_len_b=2, normalize_scores=False)
    source, strings = SENTENCES[0], ["chat", "12", "Ann", "Zoé"]
    by_hand = ByHand(setting, source)
    assert {word for word, value in by_hand.log_probs((), 1.0).items() if value > -math.inf} == {*strings, "</s>"}
    all_of_them = [words for length in (1, 2) for words in itertools.product(strings, repeat=length)]
    expected = {words: score_of([by_hand], words, chosen) for words in all_of_them}
    for kind in (OVER_CANDIDATES, ColumnGenerator):  # fairseq's alignments need as many hypotheses as the beam
        generator = kind([setting.model], setting.task.target_dictionary, **asdict(chosen))
        found = generated(generator, setting.task, batch(setting.task, [source]))[0]
        assert {one.words: one.score for one in found} == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("arch, prior", MODELS)
def test_forced_beginnings_with_slots(evidence: EvidenceWorld, arch: str, prior: str) -> None:
    setting = make(evidence, arch, prior)
    sample = batch(setting.task, SENTENCES, PREFIXES)
    dictionary = setting.task.target_dictionary
    beginnings = sample["target"].masked_fill(sample["target"] == dictionary.eos(), dictionary.pad())
    by_hand = [[ByHand(setting, source)] for source in SENTENCES]
    forced = [line.split() for line in PREFIXES]
    expected = [search(models, Options(), words) for models, words in zip(by_hand, forced, strict=True)]
    for generator in generators([setting.model], setting.task, Options()):
        results = generated(generator, setting.task, sample, beginnings)
        for found, one, models, words in zip(results, expected, by_hand, forced, strict=True):
            assert_exact(found, one, models, Options(), words)


def test_forced_whole_sentences_are_scored_as_references_are(evidence: EvidenceWorld) -> None:
    """Forced in a search, by --score-reference, by the criterion: one score, which is that of the sentence by hand."""
    setting = make(evidence, "llrnn_lstm", "static")
    sample = batch(setting.task, SENTENCES, PREFIXES)
    expected = [
        score_of([ByHand(setting, source)], line.split(), Options())
        for source, line in zip(SENTENCES, PREFIXES, strict=True)
    ]
    scorer = setting.task.build_generator([setting.model], Namespace(score_reference=True))
    assert isinstance(scorer, ColumnScorer)
    for generator in [*generators([setting.model], setting.task, Options()), scorer]:
        hypotheses = setting.task.inference_step(generator, [setting.model], sample, prefix_tokens=sample["target"])
        symbols = setting.task.target_dictionary
        words = [" ".join(symbols[token] for token in one[0]["tokens"].tolist()[:-1]) for one in hypotheses]
        assert words == PREFIXES
        assert [one[0]["score"].item() for one in hypotheses] == pytest.approx(expected, abs=1e-4)
    with torch.no_grad():
        loss, _, _ = setting.criterion(setting.model, sample, reduce=False)
    lengths = torch.tensor([len(line.split()) + 1 for line in PREFIXES])
    assert (-loss.sum(1) / lengths).tolist() == pytest.approx(expected, abs=1e-4)


def stock(evidence: EvidenceWorld) -> Setting:
    """fairseq's Transformer over the same dictionaries, built by its own task."""
    return evaluated(stock_args(evidence.data), scale=0.3, seed=3)


class StockByHand:
    """fairseq's softmax, read as strings; the unknown words of the source share what it says of <unk>."""

    def __init__(self, setting: Setting, source: str, ours: ByHand) -> None:
        self.unknown = [s for s, slot in ours.slots.items() if slot.unknown and s not in ours.of_target]
        self.model, self.dictionary = setting.model, setting.task.target_dictionary
        encoded = setting.task.source_dictionary.encode_line(source, add_if_not_exist=False)
        self.source = encoded.long().unsqueeze(0)

    @torch.no_grad()
    def log_probs(self, prefix: tuple[str, ...], temperature: float) -> dict[str, float]:
        previous = torch.tensor([[self.dictionary.eos(), *map(self.dictionary.index, prefix)]])
        scores = self.model(self.source, torch.tensor([self.source.size(1)]), previous)[0][0, -1]
        values = (scores / temperature).log_softmax(0).tolist()
        found = {s: -math.inf if s == "<pad>" else v for s, v in zip(self.dictionary.symbols, values, strict=True)}
        if self.unknown:
            found |= dict.fromkeys(self.unknown, found["<unk>"] - math.log(len(self.unknown)))
            found["<unk>"] = -math.inf
        return found


@pytest.mark.parametrize("other", ["ours", "stock"])
def test_ensembles(evidence: EvidenceWorld, other: str) -> None:
    """Probabilities are averaged, string by string; a model without slots gives those outside V what <unk> has."""
    first = make(evidence, "llrnn_lstm", "static")
    if other == "ours":
        second = make(evidence, "llrnn_transformer", "static", loaded=first.task.prior)
    else:
        second = stock(evidence)
    models = [first.model, second.model]
    assert choose_generator(models, Namespace()) is ColumnGenerator
    sample = batch(first.task, SENTENCES, PREFIXES)
    by_hand: list[list[Any]] = [[ByHand(first, source)] for source in SENTENCES]
    for pair, source in zip(by_hand, SENTENCES, strict=True):
        pair.append(ByHand(second, source) if other == "ours" else StockByHand(second, source, pair[0]))
    for many, options in ((0, Options(temperature=0.5)), (1, Options())):
        forced = [line.split()[:many] for line in PREFIXES]
        expected = [search(two, options, words) for two, words in zip(by_hand, forced, strict=True)]
        for order in (models, models[::-1]):
            generator = ColumnGenerator(order, first.task.target_dictionary, **asdict(options))
            results = generated(generator, first.task, sample, sample["target"][:, :many] if many else None)
            for found, one, two, words in zip(results, expected, by_hand, forced, strict=True):
                assert_exact(found, one, two, options, words)
    scorer = first.task.build_generator(models, Namespace(score_reference=True))
    scored = [found[0]["score"].item() for found in first.task.inference_step(scorer, models, sample)]
    for score, two, line in zip(scored, by_hand, PREFIXES, strict=True):
        assert score == pytest.approx(score_of(two, line.split(), Options()), abs=1e-4)


def test_steps_in_any_order_of_hypotheses_equal_the_whole_sequence(evidence: EvidenceWorld) -> None:
    """Incremental decoding over columns, reordered after every step, agrees with the full forward pass."""
    for arch, prior in MODELS:
        setting = make(evidence, arch, prior)
        assert_steps_agree(setting, batch(setting.task, SENTENCES, PREFIXES))


def test_constraints_may_be_slots(evidence: EvidenceWorld) -> None:
    """--constraints: what has to be in the translation, be it a word, a slot of an unknown word, or both in a row."""
    from fairseq.token_generation_constraints import pack_constraints

    setting = make(evidence, "llrnn_lstm", "static")
    wanted = [["Zoé 12", "chat"], ["4711"], [], ["heure", "kilomètres"], []]
    encode = setting.task.target_dictionary.encode_line
    packed = pack_constraints(
        [[encode(text, append_eos=False, add_if_not_exist=False) for text in texts] for texts in wanted]
    )
    for kind in ("unordered", "ordered"):
        generator = setting.task.build_generator(
            [setting.model], Namespace(beam=8, max_len_b=9, max_len_a=0, constraints=kind)
        )
        assert isinstance(generator, ColumnGenerator)
        results = setting.task.inference_step(
            generator, [setting.model], batch(setting.task, SENTENCES), constraints=packed
        )
        for hypotheses, texts in zip(results, wanted, strict=True):
            symbols = setting.task.target_dictionary
            line = " ".join(symbols[token] for token in hypotheses[0]["tokens"].tolist())
            assert all(f" {text} " in f" {line} " for text in texts), (line, texts)


def test_no_n_gram_twice(evidence: EvidenceWorld) -> None:
    """--no-repeat-ngram-size, slots included. (fairseq's own search does not obey it without a GPU.)"""
    setting = make(evidence, "llrnn_lstm", "static")
    sample = batch(setting.task, SENTENCES)
    repeats = []
    for size in (0, 2):
        generator = setting.task.build_generator(
            [setting.model], Namespace(beam=3, max_len_b=30, max_len_a=0, min_len=20, no_repeat_ngram_size=size)
        )
        found = setting.task.inference_step(generator, [setting.model], sample)
        lines = [one["tokens"].tolist() for hypotheses in found for one in hypotheses]
        pairs = [list(itertools.pairwise(line)) for line in lines]
        repeats.append(sum(len(some) - len(set(some)) for some in pairs))
    assert repeats[0] > 0 and repeats[1] == 0
