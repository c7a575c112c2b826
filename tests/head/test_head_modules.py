"""Modules of a head: sources of classes, what they need, and normalisers."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch
from few_words import PRIOR as EVIDENCE
from few_words import SENTENCES, TARGET_WORDS
from small_priors import TARGETS, H, hidden_states, make_prior, random_head
from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background, BoundBackground
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.output.class_source import ClassSource, Head, SentenceClasses
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.normalisers import Exact, ExactRows, LogLinearOutput, Normaliser
from fairseq_llrnn.output.sampled import Sampled


def test_the_source_of_each_target() -> None:
    """A target is of the evidence if the sentence's slots give it mass."""
    head = random_head(replace(EVIDENCE), source_size=2)
    lines = [line.removesuffix(" </s>").removesuffix("</s>") for line in SENTENCES]
    source, targets = head.encode_source(lines), head.encode(["deux chien 12", "Zoé 12", "Ann", "12 7 99", "deux"])
    states = torch.randn(*source.shape, 2, dtype=torch.float64)
    batch = head.batch(torch.zeros(*targets.shape, H, dtype=torch.float64),
                       head.bind(head.previous(targets), source), states)  # fmt: skip
    bound = batch.view.bound
    assert isinstance(bound, ContextClasses)
    contexts = bound.source.start(len(targets))
    words, added = bound.source.words(contexts), bound.source.log_added(contexts)
    offered = [{w for w, m in zip(*row, strict=True) if m > -math.inf}
               for row in zip(words.tolist(), added.tolist(), strict=True)]  # fmt: skip
    expected = [[0 if token in offered[row] else -1 for token in tokens] for row, tokens in enumerate(targets.tolist())]
    assert head.sources_of(batch, targets).tolist() == expected
    assert expected[0][0] == 0 and expected[0][1] == -1 and expected[1][0] == 0 and targets[1, 0] >= len(TARGET_WORDS)


class Singled(SentenceClasses):
    """One class in each sentence."""


class OneClass(ClassSource):
    name, kind, needs_source_states = "one_class", Singled, True

    def __init__(self, head: Head) -> None:
        super().__init__()

    def bind(self, background: BoundBackground, source: Tensor | None) -> BoundBackground:
        return ContextClasses(background, Singled(torch.tensor([[8], [9], [10]])))


def test_what_class_sources_need() -> None:
    head, hidden = random_head(make_prior(), classes=[OneClass], source_size=2), hidden_states()
    said = "one_class needs source_states, the encoder's states (B, L, E), found None; pass them, and source_size to"
    with pytest.raises(DataError, match=re.escape(f"LogLinearHead: {said} the constructor")):
        head.loss(hidden, TARGETS)
    for size, found in ((2, 3), (None, 3)):
        head = random_head(make_prior(), source_size=size)
        said = f"LogLinearHead: source_states: expected width {size}, the head's source_size, found {found}; make the "
        with pytest.raises(DataError, match=f"^{re.escape(said)}head with source_size=3$"):
            head.loss(hidden, TARGETS, source_states=torch.zeros(3, 4, 3, dtype=torch.float64))
    assert random_head(make_prior(), classes=[OneClass]).needs_context
    assert not random_head(make_prior()).needs_context


class SingledAgain(Singled):
    """Classes with rows of their own."""


class Inherited(Singled):
    """Classes with the rows of `Singled`."""


class RowsOf(ClassSource):
    kind = Singled

    def __init__(self, head: Head) -> None:
        super().__init__()

    def rows(self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None) -> object:
        assert layer is not None
        return layer.source


class RowsOfSingled(RowsOf):
    name = "rows_of_singled"


class RowsOfAgain(RowsOf):
    name, kind = "rows_of_again", SingledAgain


@pytest.mark.parametrize("order", [(RowsOfSingled, RowsOfAgain), (RowsOfAgain, RowsOfSingled)])
def test_classes_of_a_subclass_have_the_rows_of_the_nearest_kind(order: tuple[type[RowsOf], ...]) -> None:
    head = random_head(make_prior(), classes=order)
    table = torch.tensor([[8], [9], [10]])
    below = head.background.bind()
    layers = ContextClasses(ContextClasses(below, Singled(table)), SingledAgain(table + 1))
    inherited = ContextClasses(below, Inherited(table))
    found = [head.source_of(layer).name for layer in (layers, layers.base, inherited)]  # type: ignore[arg-type]
    assert found == ["rows_of_again", "rows_of_singled", "rows_of_singled"]
    of_source = head._rows(layers, None).of_source
    assert type(of_source["rows_of_singled"]) is Singled and type(of_source["rows_of_again"]) is SingledAgain
    assert head._rows(inherited, None).of_source["rows_of_again"] is None


@pytest.mark.parametrize("unk", [None, 3])
def test_classes_of_a_background_need_rows(unk: int | None) -> None:
    head, hidden = random_head(make_prior()), hidden_states()
    below, words = head.background, torch.tensor([[8], [9], [10]])
    values = torch.zeros(3, 1, dtype=torch.float64)
    more = [] if unk is None else [values, values[:, 0], values.bool()]

    class InFront(Background):
        def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> BoundBackground:
            return ContextClasses(below.bind(source, text), Singled(words, unk, *more))

    head.background = InFront(below.class_of, below.num_classes)
    if unk is None:
        error: type[Exception] = DataError
        said = (
            "expected a source of rows for the classes of Singled, found none; pass one in `classes`, or return it "
            "from `class_source` of a part whose `class_name` is the source's name"
        )
    else:
        error = OptionError
        said = (
            "the classes of Singled contain strings, which need source_size and a part of the prior with "
            "has_source_strings = True (it opens the dictionaries); add them"
        )
    with pytest.raises(error, match=f"^{re.escape(f'LogLinearHead: {said}')}$"):
        head.loss(hidden, TARGETS)


# ---- normalisers ----------------------------------------------------------------------------------------------------


class OwnRows(Normaliser):
    name, option, rows_are_features = "own", "--own-rows", False

    def __init__(self, head: object) -> None:
        super().__init__()

    def compose_rows(self, output: LogLinearOutput, weight: Tensor, replaced: int | None) -> ExactRows:
        return ExactRows(output)


def test_normalisers_that_exclude_options() -> None:
    head = random_head(make_prior(), normaliser=OwnRows)
    batch = head.batch(hidden_states(), head.bind(head.previous(TARGETS)))
    said = "--adaptor-penalty: not supported with --own-rows, which has rows outside the adaptor; leave one of them out"
    with pytest.raises(OptionError, match=f"^{said}$"):
        head.adaptor_norm(batch)
    with pytest.raises(OptionError, match="^--sampled-classes: not supported with --own-rows; leave one of them out$"):
        head.set_normaliser(Sampled(3))
    assert head.normaliser is head.attached["normaliser"] is head.get_submodule("own")
    head.set_normaliser(Exact)
    assert "own" not in head._modules and head.normaliser is head.get_submodule("exact")
    head.set_normaliser(Sampled(3))
    head.set_normaliser(Sampled(4))
    assert head.normaliser is head.get_submodule("sampled") and "exact" not in head._modules
    head.train()
    said = "--sampled-classes: not supported with --label-smoothing, which needs all classes"
    with pytest.raises(OptionError, match=f"^{said}$"):
        head.loss(hidden_states(), TARGETS, label_smoothing=0.1)


def test_a_sampled_head_in_training_has_exact_distributions() -> None:
    head, exact = random_head(make_prior(), normaliser=Sampled(3)), random_head(make_prior())
    head.train()
    hidden = hidden_states()
    torch.testing.assert_close(head.log_probs(hidden), exact.log_probs(hidden))
    ours, theirs = (each.top_k(hidden[:, 0], each.start(3), 3, 0.5) for each in (head, exact))
    torch.testing.assert_close(ours, theirs)
