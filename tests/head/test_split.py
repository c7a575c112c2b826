"""Without a gradient, a large batch is looked at in parts: the same answers, and nothing as wide as all positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_priors import SYMBOLS, random_head
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairseq_llrnn import LogLinearHead
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

H, B, T = 6, 5, 4
LINES = ["le chat", "la maison le chien", "la vache", "le chat la maison", "12", "la fenêtre le chat", "le chien"]
BACKGROUNDS = {
    "unigram": {"background": "unigram"},
    "trigram": {"background": "ngram:3"},
    "mixture": {"background": "0.7 ngram:2 plus 0.3 cache:3 with weights per position"},
    "product": {"background": "ngram:2 times cache:3"},
}


@pytest.fixture(params=BACKGROUNDS)
def head(request: pytest.FixtureRequest, tmp_path: Path) -> LogLinearHead:
    (tmp_path / "text").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    prior = build_prior(SYMBOLS, Recipe(text=str(tmp_path / "text"), top_words=3, **BACKGROUNDS[request.param]))
    return random_head(prior, H)


def hidden_states(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def test_parts_say_what_the_whole_says(head: LogLinearHead, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = head.encode(LINES[:B])
    previous, hidden = head.previous(targets), hidden_states(*targets.shape, H)

    def answers() -> list[Tensor]:
        batch = head.batch(hidden, head.bind(previous))
        assert bool(batch.rest) == split
        return [
            head.target_log_probs(batch, targets), head.smoothing_gain(batch, targets=targets),
            head.adaptor_norm(batch, 1.0), head.word_log_probs(batch), head.sources_of(batch, targets=targets),
            head.possible(targets),
            head.loss(hidden, targets, reduction="none", label_smoothing=0.1, adaptor_penalty=0.2),
        ]  # fmt: skip

    split = False
    with torch.no_grad():
        whole = answers()
    split = True
    for cells in (1, targets.size(1) * len(SYMBOLS) * 2):  # one sentence at a time; two, and one that is left
        monkeypatch.setattr("fairseq_llrnn.output.records.CELLS", cells)
        with torch.no_grad():
            for one, other in zip(whole, answers(), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    split = False
    answers()  # where a gradient is asked for, a batch is never split
    with torch.no_grad():
        assert not head.train().batch(hidden, head.bind(previous)).rest, "nor in training"


def test_a_search_that_looks_at_all_words_does_so_in_parts(
    head: LogLinearHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = torch.tensor([4, 5, 6, 7, 8])
    with torch.no_grad():
        state = head.advance(head.start(B), words)
        step = head.step(hidden_states(B, H), state)
        whole = step.word_log_probs()
        monkeypatch.setattr("fairseq_llrnn.output.records.CELLS", 2 * len(SYMBOLS))
        torch.testing.assert_close(whole, step.word_log_probs(), rtol=1e-12, atol=1e-12)


class Largest(TorchDispatchMode):
    """Notes how many elements the largest tensor has that any operator makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(made) if isinstance(leaf, Tensor)]
        held = [leaf.untyped_storage().nbytes() // leaf.element_size() for leaf in tensors]  # a view holds no more
        self.elements = max([self.elements, *held])
        return made


def test_scoring_with_trigrams_makes_no_tensor_of_all_positions_and_classes(tmp_path: Path) -> None:
    """At a scale at which fairseq-eval-lm took 17 GB: 12,800 positions at once, here with 1,504 signatures."""
    odds = 1.0 / torch.arange(1, 1501)
    drawn = torch.multinomial(odds, 12_000, replacement=True, generator=torch.Generator().manual_seed(3))
    lines = [" ".join(f"w{i}" for i in row) for row in drawn.view(-1, 15).tolist()]
    (tmp_path / "text").write_text("\n".join(lines) + "\n", encoding="utf-8")
    symbols = [*SYMBOLS[:4], *(f"w{i}" for i in range(1500))]
    prior = build_prior(symbols, Recipe(text=str(tmp_path / "text"), background="ngram:3", top_words=1500))
    head = random_head(prior, 8)
    targets = head.encode(lines)
    previous, hidden = head.previous(targets), hidden_states(*targets.shape, 8)
    positions, classes = targets.numel(), prior.output.num_classes
    assert (positions, classes) == (12_800, 1_504)
    with torch.no_grad(), Largest() as largest:
        head.loss(hidden, targets, previous=previous)
    assert largest.elements <= 1.5 * (1 << 22), "positions × classes are 19 million"
