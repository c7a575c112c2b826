"""The law of classes' features (fairseq_llrnn/testing), for evidence, open words, and rows without features."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from few_words import PRIOR as EVIDENCE
from few_words import SENTENCES
from small_priors import TARGETS, hidden_states, make_prior, open_prior, random_head
from torch import Tensor, nn

from fairseq_llrnn import extend
from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.evidence.slots import EvidenceSlots
from fairseq_llrnn.output.class_source import Head, Place
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart
from fairseq_llrnn.testing import check_class_features


def test_evidence() -> None:
    """Each slot has the features of its row in the table."""
    prior = replace(EVIDENCE)
    head = random_head(prior, source_size=2)
    lines = [line.removesuffix(" </s>") for line in SENTENCES[:4]]
    source, targets = head.encode_source(lines), head.encode(["deux chien", "Zoé", "chat", "12 7"])
    states = torch.randn(*source.shape, 2, dtype=torch.float64)
    hidden = torch.randn(*targets.shape, head.hidden_size, dtype=torch.float64)
    phi = check_class_features(head, hidden, targets, source, states)["slot_rows"]
    table, bound = prior.offers(), head.background.bind(source)
    assert table is not None and isinstance(bound, ContextClasses) and isinstance(bound.source, EvidenceSlots)
    rows = {(int(i), offer.word): table.rows[offer.row] for i, _, offers in table.offered(source.numpy())
            for offer in offers}  # fmt: skip
    words = bound.source.slots.words.tolist()
    of_sentences = phi.unflatten(0, targets.shape)
    for (sentence, word), (features, values) in rows.items():
        expected = torch.zeros(phi.size(2), dtype=phi.dtype)
        expected[list(features)] = torch.tensor(values, dtype=phi.dtype)
        for at_step in of_sentences[sentence, :, words[sentence].index(word)]:
            torch.testing.assert_close(at_step, expected)
    assert len(rows) > 6


def test_open_words() -> None:
    """Each open class has the mean features of its words."""
    head = random_head(open_prior())
    phi = check_class_features(head, hidden_states(), TARGETS)["open_words"]
    part = head.prior.find(OpenVocabularyPart)
    assert part is not None and phi.size(1) == len(part.vocabulary.names) > 1
    for o in range(phi.size(1)):
        expected = torch.zeros(phi.size(2), dtype=phi.dtype)
        for name, value in part.vocabulary.features.row(o).items():
            expected[head.prior.output.features.index[name]] = value
        torch.testing.assert_close(phi[:, o], expected.expand(len(phi), -1))


class AfterLe(extend.ContextClassSource):
    """One class, of `chat`, everywhere."""

    rows, width = 1, 1

    def start(self, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.int64)

    def words(self, contexts: Tensor) -> Tensor:
        return torch.full((len(contexts), 1), 8)


class Plain(extend.ClassSource):
    """A row of its own, and no feature."""

    name, kind = "plain", AfterLe

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.output = (head.output,)  # which is no module of its own
        self.row = nn.Parameter(torch.zeros(head.hidden_size))

    def bind(self, background: Background, source: Tensor | None) -> Background:
        return ContextClasses(background, AfterLe())

    def rows_at(self, place: Place) -> tuple[Tensor, Tensor]:
        shape = (*place.shape, 1)
        return self.row.expand(*shape, -1), self.row.new_zeros(shape)


class WithoutBias(Plain):
    """It has the first feature, and forgets its bias."""

    def rows_at(self, place: Place) -> tuple[Tensor, Tensor]:
        row, bias = super().rows_at(place)
        return row + self.output[0].weight[0], bias


class Twice(Plain):
    """Its score is no sum over features."""

    def rows_at(self, place: Place) -> tuple[Tensor, Tensor]:
        row, bias = super().rows_at(place)
        return row, bias + self.output[0].bias[0] ** 2


def test_a_class_without_features_is_as_in_a_softmax() -> None:
    """Its row is its own; over a softmax prior, words have an identity each, and nothing else."""
    head = random_head(make_prior(Recipe.softmax()), classes=[Plain])
    phi = check_class_features(head, hidden_states(), TARGETS)["plain"]
    assert phi.shape == (TARGETS.numel(), 1, head.prior.output.features.num_features) and not phi.any()


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (WithoutBias, "the gradient of a class's score is φhᵀ in W where it is φ in c: class 0 of plain"),
        (Twice, "the gradient of a class's score is|other weights W and c change a class's score by"),
    ],
)
def test_what_breaks_the_law_is_named(broken: type[Plain], law: str) -> None:
    head = random_head(make_prior(), classes=[broken])
    weight = head.output.weight.detach().clone()
    with pytest.raises(AssertionError, match=f"law broken: {law}"):
        check_class_features(head, hidden_states(), TARGETS)
    torch.testing.assert_close(head.output.weight.detach(), weight)
