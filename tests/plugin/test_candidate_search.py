"""Our beam search over candidates finds what fairseq's finds over the whole vocabulary, to the last score."""

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import evidence_world
import pytest
import torch
from dynamic_prior import LINES, make
from evidence_world import EvidenceWorld
from fairseq.sequence_generator import SequenceGenerator
from tiny_world import Setting, World, batch, evaluated
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from translation_world import TranslationWorld, pairs

from fairseq_llrnn.plugin.search.generator import ColumnGenerator

OVER_CANDIDATES = partial(ColumnGenerator, over_candidates=True)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "greedy": {"beam_size": 1},
    "tempered": {"temperature": 0.6},
    "sum of scores": {"normalize_scores": False, "min_len": 3},
    "length penalty": {"len_penalty": 0.4, "max_len_b": 4},
    "no unknown words": {"unk_penalty": 100.0, "beam_size": 7},
    "many unknown words": {"unk_penalty": -3.0},
    "a beam wider than the vocabulary": {"beam_size": 200, "max_len_b": 3},
}


def search_both_ways(setting: Setting, sample: dict[str, Any], prefix: Any = None, **options: Any) -> list[Any]:
    options = {"beam_size": 4, "max_len_b": 9, **options}
    found = []
    for kind in (SequenceGenerator, OVER_CANDIDATES):
        generator = kind([setting.model], setting.task.target_dictionary, **options)
        found.append(generator.generate([setting.model], sample, prefix_tokens=prefix))
    return found


def assert_same_hypotheses(found: list[Any]) -> None:
    """Scores equal one by one; the words too, wherever a score is not shared by two hypotheses."""
    for expected, ours in zip(*found, strict=True):
        expected, ours = ([h for h in hypotheses if h["score"] > -math.inf] for hypotheses in (expected, ours))
        scores = [h["score"].item() for h in expected]
        assert [h["score"].item() for h in ours] == pytest.approx(scores, abs=1e-4)
        for a, b in zip(expected, ours, strict=True):
            if sum(abs(s - a["score"].item()) < 1e-4 for s in scores) == 1:
                assert b["tokens"].tolist() == a["tokens"].tolist()
                torch.testing.assert_close(b["positional_scores"], a["positional_scores"], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("background", ["static", "dynamic"])
@pytest.mark.parametrize("name", OPTIONS)
def test_language_models(world: World, name: str, background: str) -> None:
    setting = make(world, background=background)
    eos = setting.task.dictionary.eos()
    sample = {"net_input": {"src_tokens": torch.full((3, 1), eos), "src_lengths": torch.ones(3)}}
    found = search_both_ways(setting, sample, **OPTIONS[name])
    assert_same_hypotheses(found)


@pytest.mark.parametrize("background", ["static", "dynamic"])
def test_a_forced_beginning(world: World, background: str) -> None:
    """Prefixes of several lengths, one of them a whole sentence with its end, one with an unknown word."""
    setting = make(world, background=background)
    if background == "dynamic":
        background_table = setting.model.decoder.head.background.table
        background_table.masked_fill_(torch.isneginf(background_table), -5.0)
    sample = batch(setting.task.dictionary, [*LINES, "le zzz voit"])
    prefix = sample["target"].clone()
    prefix[0, 2:] = prefix[3, 4:] = setting.task.dictionary.pad()
    net_input = {"src_tokens": torch.full((len(prefix), 1), setting.task.dictionary.eos())}
    found = search_both_ways(setting, {"net_input": net_input | {"src_lengths": torch.ones(len(prefix))}}, prefix)
    assert_same_hypotheses(found)
    forced = [h[0]["tokens"][:2].tolist() for h in found[1]]
    assert forced == prefix[:, :2].tolist()


@pytest.mark.parametrize("arch, prior", [("llrnn_lstm", "lexical"), ("llrnn_transformer", "prior")])
@pytest.mark.parametrize("name", OPTIONS)
def test_translation(translation: TranslationWorld, arch: str, prior: str, name: str) -> None:
    setting = evaluated(translation.train_args(arch, prior), scale=0.3)
    found = search_both_ways(setting, pairs(setting.task, LINES), **OPTIONS[name])
    assert_same_hypotheses(found)
    for expected, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours[0]["attention"], expected[0]["attention"], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("forced", [False, True])
def test_an_empty_source_or_a_forced_beginning_in_translation(translation: TranslationWorld, forced: bool) -> None:
    setting = evaluated(translation.train_args(prior="lexical"), scale=0.3)
    sample = pairs(setting.task, LINES if forced else ["", *LINES])
    assert_same_hypotheses(search_both_ways(setting, sample, sample["target"][:, :2] if forced else None))


@pytest.mark.parametrize("prior", ["static", "lexical"])
def test_diverse_beams_know_sentences_by_their_rows(evidence: EvidenceWorld, prior: str) -> None:
    """Numbers of sentences, of which a later batch has large ones, and that of an empty source is missing."""
    from fairseq.dataclass.configs import GenerationConfig

    setting = evidence_world.make(evidence, "llrnn_lstm", prior)
    sample = evidence_world.batch(setting.task, evidence_world.SENTENCES)
    options = GenerationConfig(beam=6, diverse_beam_groups=3, max_len_b=9)
    found = []
    for ids in ([0, 1, 2, 3, 4], [12, 7, 90, 8, 3]):
        generator = setting.task.build_generator([setting.model], options)
        numbered = sample | {"id": torch.tensor(ids)}
        found.append(setting.task.inference_step(generator, [setting.model], numbered))
    assert_same_hypotheses(found)


def test_diverse_beams_of_a_language_model_know_sentences_by_their_rows(world: World) -> None:
    """The same in fairseq's own generator."""
    from fairseq.dataclass.configs import GenerationConfig

    setting = evaluated(world.train_args(), scale=0.3)
    start = {"src_tokens": torch.full((2, 1), 2), "src_lengths": torch.ones(2)}
    found = []
    for ids in ([0, 1], [5, 6]):
        options = GenerationConfig(beam=4, diverse_beam_groups=2, max_len_b=9)
        generator = setting.task.build_generator([setting.model], options)
        sample = {"net_input": start, "id": torch.tensor(ids)}
        found.append(setting.task.inference_step(generator, [setting.model], sample))
    assert_same_hypotheses(found)


# ---- what a step costs -----------------------------------------------------------------------------------------------


class TensorsOfAllWords(TorchDispatchMode):
    """Notes every tensor that torch makes, views included, with an entry per word for more than one hypothesis."""

    def __init__(self, words: int, slots: int = 0) -> None:
        super().__init__()
        self.words = range(words, words + slots + 1)
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            if isinstance(made, torch.Tensor) and made.numel() > self.words[-1] and {*made.shape} & {*self.words}:
                self.found.append(f"{func} {tuple(made.shape)}")
        return result


def tensors_of_all_words(
    setting: Setting, sample: dict[str, Any], kind: Callable[..., SequenceGenerator], slots: int = 0
) -> list[str]:
    """What the steps of a search make of them, after the first, in which the sentences' own tables are made."""
    watch = TensorsOfAllWords(len(setting.task.target_dictionary), slots)
    generator = kind([setting.model], setting.task.target_dictionary, beam_size=3, max_len_b=5)
    step, steps = generator.model.forward_decoder, 0

    def watched(*args: Any) -> Any:
        nonlocal steps
        steps += 1
        with watch if steps > 1 else contextlib.nullcontext():
            return step(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator.model, "forward_decoder", watched)
        assert all(hypotheses for hypotheses in generator.generate([setting.model], sample))
    assert steps > 2
    return watch.found


def language_model(world: World) -> tuple[Setting, dict[str, Any]]:
    return make(world), {"net_input": {"src_tokens": torch.full((2, 1), 2), "src_lengths": torch.ones(2)}}


def check_steps(setting: Setting, sample: dict[str, Any], slots: int = 0) -> None:
    """Ours never look at all words; fairseq's over the same model do, so that the watch is seen to watch."""
    over_words = ColumnGenerator if slots else SequenceGenerator
    assert tensors_of_all_words(setting, sample, over_words, slots)
    assert tensors_of_all_words(setting, sample, OVER_CANDIDATES, slots) == []


def test_no_step_looks_at_all_words(world: World) -> None:
    check_steps(*language_model(world))


@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
@pytest.mark.parametrize("prior", ["prior", "lexical"])
def test_no_step_of_a_translation_looks_at_all_words(translation: TranslationWorld, arch: str, prior: str) -> None:
    setting = evaluated(translation.train_args(arch, prior), scale=0.3)
    check_steps(setting, pairs(setting.task, LINES))


@pytest.mark.parametrize("prior", ["static", "lexical"])
def test_no_step_looks_at_all_words_and_slots(evidence: EvidenceWorld, prior: str) -> None:
    setting = evidence_world.make(evidence, "llrnn_lstm", prior)
    check_steps(setting, evidence_world.batch(setting.task, evidence_world.SENTENCES), slots=4)
