"""A source that widens all rows, over one with rows by sentence: the definition over words, in batches and searches.

The widening source has a column for each last word w, from the word's first occurrence on. With a table U of feature
weights by last words, the score of a signature is

    hᵀE_σ + (Φ c)_σ + (Φ U)_σ,w
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_priors import TARGETS, H, hidden_states, make_prior, random_head
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.class_source import ClassSource, Head, Place, SentenceClasses
from fairseq_llrnn.output.context_classes import ContextClasses
from fairseq_llrnn.output.context_source import NO_WORD, ContextClassSource
from fairseq_llrnn.output.records import RowPair
from fairseq_llrnn.output.sampled import Sampled

V, EOS = 12, 2
OF_SENTENCES = torch.tensor([[8, 9], [NO_WORD, NO_WORD], [4, NO_WORD]])  # words with their own classes
SOURCE = torch.arange(3).unsqueeze(1)  # a source sentence is its number
AFTER = torch.full((V,), NO_WORD)  # the word with its own class after each word
AFTER[[4, 5, 9]] = torch.tensor([8, 6, 3])


class LastWord(ContextClassSource):
    """The context is the last word. One word may have its own class."""

    changes, rows, width = True, V, 1

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def start(self, n: int) -> Tensor:
        return torch.full((n,), EOS)

    def words(self, contexts: Tensor) -> Tensor:
        return AFTER[contexts].unsqueeze(-1)

    def advance(self, contexts: Tensor, tokens: Tensor) -> Tensor:
        self.seen.extend(token for token in tokens.tolist() if token not in self.seen)
        self.seen[:] = dict.fromkeys(self.seen)
        return tokens


class Columns(ClassSource):
    name, kind = "columns", LastWord

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(head.output.rows.num_features, V))
        self.own_rows = nn.Parameter(torch.zeros(V, head.hidden_size))  # after each word
        self.bias = nn.Parameter(torch.zeros(V))
        self.seen = [EOS]

    @property
    def num_columns(self) -> int:  # type: ignore[override]
        return len(self.seen)

    def bind(self, background: BoundBackground, source: Tensor | None) -> BoundBackground:
        return ContextClasses(background, LastWord(self.seen))

    def columns(self, weight: Tensor) -> Tensor:
        assert weight.shape == (len(self.table), H)
        return self.table[:, self.seen]

    def widen(self, hidden: Tensor, place: Place) -> Tensor:
        is_last = place.contexts.unsqueeze(2) == torch.tensor(self.seen)
        return torch.cat([hidden, is_last.to(hidden.dtype)], dim=2)

    def rows_at(self, place: Place) -> RowPair:
        assert [len(pair) for pair in place.below] == [2], "the rows of the source below are known"
        rows = nn.functional.pad(self.own_rows, (0, place.rows.width - H))
        return rows[place.contexts].unsqueeze(2), self.bias[place.contexts].unsqueeze(2)

    def adaptor(self, hidden: Tensor) -> Tensor:
        return hidden[:, H:] @ self.table[:, self.seen].T


class OfSentences(SentenceClasses):
    """Classes of each sentence."""

    def __init__(self, sentences: Tensor) -> None:
        super().__init__(OF_SENTENCES[sentences])
        self.sentences = sentences


class Rows(ClassSource):
    """Rows of all contexts at once: the default `rows_at` selects from them."""

    name, kind = "rows", OfSentences

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(len(OF_SENTENCES), 2, head.hidden_size))
        self.bias = nn.Parameter(torch.zeros(len(OF_SENTENCES), 2))

    def bind(self, background: BoundBackground, source: Tensor | None) -> BoundBackground:
        assert source is not None
        return ContextClasses(background, OfSentences(source[:, 0]))

    def rows(self, head: Head, weight: Tensor, layer: ContextClasses | None, source_states: Tensor | None) -> RowPair:
        assert layer is not None and isinstance(layer.source, OfSentences) and weight.size(1) >= H
        return self.table[layer.source.sentences], self.bias[layer.source.sentences]


def make_head(**options: Any) -> LogLinearHead:
    return random_head(make_prior(), classes=[Columns, Rows], **options)


def by_definition(head: LogLinearHead, hidden: Tensor, previous: Tensor) -> Tensor:
    """log p of all words: hidden (3, T, H) -> (3, T, V)."""
    phi = head.output.rows.dense().double()[head.output.class_of]  # shape: (V, F)
    columns, rows = head.columns, head.rows
    assert columns is not None and rows is not None
    adaptor = hidden @ head.output.weight.T + head.output.bias + columns.table.T[previous]
    scores = adaptor @ phi.T
    result = []
    for sentence in range(len(previous)):
        for position, last in enumerate(previous[sentence].tolist()):
            h, of_words = hidden[sentence, position], list(scores[sentence, position])
            for j, word in enumerate(OF_SENTENCES[sentence].tolist()):
                if word != NO_WORD:
                    of_words[word] = h @ rows.table[sentence, j] + rows.bias[sentence, j]
            if AFTER[last] != NO_WORD:
                of_words[int(AFTER[last])] = h @ columns.own_rows[last] + columns.bias[last]
            result.append(torch.stack(of_words))
    together = torch.stack(result).view(*previous.shape, V)
    return (together + torch.from_numpy(head.prior.log_weights)).log_softmax(-1)


def test_a_batch_in_value_and_gradient() -> None:
    head, hidden = make_head(), hidden_states()
    previous = head.previous(TARGETS)
    expected = by_definition(head, hidden, previous)
    torch.testing.assert_close(head.log_probs(hidden, previous=previous, source=SOURCE), expected)
    loss = head.loss(hidden, TARGETS, source=SOURCE, reduction="sum")
    slow = -expected.gather(2, TARGETS.unsqueeze(2)).squeeze(2)[TARGETS.ne(head.pad)].sum()
    torch.testing.assert_close(loss, slow)
    leaves = [hidden, *head.parameters()]
    for found, wanted in zip(torch.autograd.grad(loss, leaves), torch.autograd.grad(slow, leaves), strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_norm_of_the_adaptor_contains_the_columns(p: float) -> None:
    head, hidden = make_head(), hidden_states()
    previous = head.previous(TARGETS)
    batch = head.batch(hidden, head.bind(previous, SOURCE))
    columns = head.columns
    assert columns is not None
    parts = hidden @ head.output.weight.T + head.output.bias, columns.table.T[previous]
    torch.testing.assert_close(head.adaptor_norm(batch, p), torch.cat(parts, dim=2).norm(p, dim=2))


def test_a_search_rebuilds_rows_when_a_word_brings_a_column() -> None:
    head, hidden = make_head(), hidden_states().detach()
    previous = head.previous(TARGETS)
    expected = by_definition(head, hidden, previous)
    state = head.start(3, source=SOURCE)
    for t in range(TARGETS.size(1)):
        step = head.step(hidden[:, t], state)
        torch.testing.assert_close(step.word_log_probs(), expected[:, t])
        torch.testing.assert_close(step.log_probs_of(torch.tensor([[8, 2]]).expand(3, 2)), expected[:, t, [8, 2]])
        values, tokens = step.top_k(4)
        torch.testing.assert_close(values, expected[:, t].topk(4).values)
        torch.testing.assert_close(expected[:, t].gather(1, tokens), values)
        widths = state.rows.width, (state := head.advance(state, TARGETS[:, t])).rows.width
        assert widths == (H + len({EOS, *TARGETS[:, :t].flatten().tolist()}),
                          H + len({EOS, *TARGETS[:, : t + 1].flatten().tolist()}))  # fmt: skip
    rows = state.rows
    assert head.advance(state, TARGETS[:, 0]).rows is rows, "no new word, no new rows"


def test_parts_of_a_batch_have_their_own_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence at a time: each brings its own words."""
    head, hidden = make_head(), hidden_states().detach()
    previous = head.previous(TARGETS)
    monkeypatch.setattr("fairseq_llrnn.output.records.CELLS", 1)
    with torch.no_grad():
        batch = head.batch(hidden, head.bind(previous, SOURCE))
        torch.testing.assert_close(head.word_log_probs(batch), by_definition(head, hidden, previous))
        widths = [part.rows.width for part in batch.parts()]
    assert len(batch.rest) == 2 and widths[0] < widths[2]


def test_sampled_rows_are_not_supported() -> None:
    with pytest.raises(OptionError, match="^--sampled-classes: not supported with columns; leave one of them out$"):
        make_head(normaliser=Sampled(3))
