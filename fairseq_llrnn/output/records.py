"""Records that a network, the head, a criterion and a search exchange.

Sizes: B batch, T time, N positions (B·T of a batch; hypotheses of a search), V words, S signatures, J context classes,
H hidden width, H' = H plus the columns of class sources, K queried tokens. All records are frozen: a change returns
another record. Probabilities are natural logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_llrnn.backgrounds.background import BoundBackground, View
from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights, broadcast_groups, row_numbers
from fairseq_llrnn.backgrounds.states import States, select
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.numbers import SCORE_TEMPERATURES
from fairseq_llrnn.functional import outside_autocast
from fairseq_llrnn.output.normalisers import Distribution, Normalised, SlotScores

CELLS = 1 << 22  # positions × classes or words that are processed together
FEW = 256  # the largest k for which `top_k` searches by class, not among all words

RowPair = tuple[Tensor, Tensor]  # rows of the output layer, and their biases


@dataclass(frozen=True)
class Condition:
    """A batch before the network reads it: its bound backgrounds and its inputs."""

    backgrounds: Sequence[tuple[slice, BoundBackground]]  # of all sentences, or of the chunks of a large batch
    previous: Tensor  # (B, T) the tokens before each position, for the background
    input_ids: Tensor  # (B, T) the same, for the network


@dataclass(frozen=True)
class Rows:
    """Rows of the output layer, computed once for a batch or a search."""

    normalised: Normalised  # the signatures
    of_source: Mapping[str, Any]  # the result of `ClassSource.rows` of each source, by its name
    width: int  # H'
    rebuild: Callable[[], Rows]  # makes the rows again after a source has got more columns


@dataclass(frozen=True)
class Batch:
    """Positions that the network has read: of a batch, or one of each hypothesis of a search (B = N, T = 1).

    A large batch without gradients is split: the record holds its first sentences and functions for the rest, so that
    only the results of each position are kept (`chunked`).
    """

    hidden: Tensor  # (B, T, H')
    view: View  # of the background before each position, N rows
    class_weights: ClassWeights  # log B of all classes, S + J, in N rows, with learned changes
    rows: Rows
    slots: SlotScores | None  # (N, …) scores of classes without a row among the signatures
    open_scores: Tensor | None  # (B, T, O) scores of the classes of strings outside the dictionary
    temperature: float | Tensor = 1.0  # divides aᵀφ; a tensor is (N, 1)
    sentences: slice = field(default_factory=lambda: slice(None))  # of the whole batch
    rest: tuple[Callable[[], Batch], ...] = ()

    def parts(self) -> Iterator[Batch]:
        """Yield the parts of a large batch, each made on demand, or itself if it is whole."""
        yield self
        for make in self.rest:
            yield make()

    @property
    def log_mass(self) -> Tensor:
        """log B of all classes, broadcasting to (B, T, S + J). It is dense: use it only if you must."""
        if self.class_weights.entries is not None:
            return self.class_weights.dense().view(*self.hidden.shape[:2], -1)
        shared, batch = self.class_weights.shared, len(self.hidden)
        if 1 < len(shared) < batch:
            shared = broadcast_groups(shared, batch)
        return shared.view(batch if len(shared) > 1 else 1, max(1, len(shared) // batch), -1)

    @cached_property
    def distribution(self) -> Distribution:
        """p(σ | K)."""
        return self.rows.normalised.distribution(
            self.hidden.flatten(0, 1), self.slots, self.class_weights, self.temperature
        )

    def tempered(self, temperature: float) -> Batch:
        """Return the same batch with aᵀφ divided by a temperature.

        Raises:
            OptionError: a temperature outside SCORE_TEMPERATURES.
        """
        least, most = SCORE_TEMPERATURES
        if not least <= temperature <= most:
            raise OptionError(f"temperature {temperature}: expected a number from {least:g} to {most:g}")
        return self if temperature == 1.0 else replace(self, temperature=temperature)

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """Return the k most probable tokens, exactly: log p and tokens, (N, k) each, without a V-sized tensor
        up to FEW.
        """
        if k > FEW:
            log_probs, places = self.word_log_probs().topk(min(k, self.view.num_columns))
            tokens = self.view.columns.clamp_min(0)  # padding has no mass
            return log_probs, tokens.expand(self.view.num_rows, -1).gather(1, places)
        return self.distribution.best_words(self.view, k)

    def log_probs_of(self, tokens: Tensor) -> Tensor:
        """Return log p of tokens (N, K) of each position: (N, K)."""
        located = self.view.locate(tokens.flatten(), row_numbers(tokens).flatten())
        classes, share = (values.view_as(tokens) for values in located)
        log_probs = self.distribution.log_probs_of(classes)
        share = share.to(log_probs.dtype)
        return torch.where(torch.isneginf(share), share, log_probs + share)  # without mass, a class is −inf, too

    def word_log_probs(self) -> Tensor:
        """Return log p of all words, and of strings outside the dictionary of class sources: (N, V + J₁).

        Positions are processed in chunks, because a background may need several tensors of V.
        """
        view, log_probs = self.view, self.distribution.log_probs
        at_once = max(1, CELLS // view.num_columns)
        if torch.is_grad_enabled() or torch.compiler.is_compiling() or at_once >= view.num_rows:
            return view.expand(log_probs)
        answer = log_probs.new_empty(view.num_rows, view.num_columns)
        for rows in torch.arange(view.num_rows, device=log_probs.device).split(at_once):
            answer[rows] = view.select(rows).expand(log_probs[rows])
        return answer


@dataclass(frozen=True)
class State:
    """N hypotheses of a search: the states of the background and the rows of the head."""

    background: BoundBackground  # of the search's sentences
    states: States  # N, of the background
    rows: Rows
    length: int = 0  # of every hypothesis, in tokens
    longest: int | None = None  # the largest length, </s> included

    def select(self, index: Tensor) -> State:
        """Return the hypotheses index[0], index[1], …: reordered, repeated or removed. index: (M,) int64."""
        return replace(self, states=select(self.states, index))

    def limited(self, longest: int | None) -> State:
        """Return the same hypotheses, limited to `longest` tokens, `</s>` included."""
        return replace(self, longest=longest)

    @property
    def remaining(self) -> int | None:
        """The number of tokens that may follow."""
        return None if self.longest is None else self.longest - self.length


def chunk_slices(previous: Tensor, background: BoundBackground) -> list[slice]:
    """Return the slices of a batch (B, T) without gradients that are processed one at a time, at least one
    sentence each.
    """
    is_sparse = background.root is not None or background.is_context_independent
    width = background.num_classes if is_sparse else len(background.class_of)
    total, at_once = len(previous), max(1, CELLS // max(1, previous.size(1) * width))
    if at_once >= total:
        return [slice(None)]
    return [slice(start, min(start + at_once, total)) for start in range(0, total, at_once)]


Arguments = ParamSpec("Arguments")


def chunked(
    method: Callable[Concatenate[Any, Batch, Arguments], Tensor],
) -> Callable[Concatenate[Any, Batch, Arguments], Tensor]:
    """Make a method method(head, batch, …) -> (B, T) or (B, T, V + J₁) process the parts of a large batch one by one.

    It runs outside torch.autocast (functional.py). Tensors among the arguments are (B, T). Columns of strings that only
    other parts have are −inf.
    """

    @wraps(method)
    def answer(head: Any, batch: Batch, *arguments: Arguments.args, **options: Arguments.kwargs) -> Tensor:
        with outside_autocast(batch.hidden):
            if not batch.rest:
                return method(head, batch, *arguments, **options)
            answers = []
            for part in batch.parts():

                def select(value: Any, sentences: slice = part.sentences) -> Any:
                    return value[sentences] if isinstance(value, Tensor) else value

                named = {name: select(value) for name, value in options.items()}
                answers.append(method(head, part, *map(select, arguments), **named))
        if answers[0].dim() == 2:
            return torch.cat(answers)
        width = max(answer.size(2) for answer in answers)
        return torch.cat([functional.pad(part, (0, width - part.size(2)), value=NEGATIVE_INFINITY) for part in answers])

    return answer  # type: ignore[return-value]
