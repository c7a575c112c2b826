"""What the columns of a search's step stand for, and what the parts of a search share.

Sizes: N hypotheses, V words, J slots, C columns.

fairseq's searches work on a matrix of log-probabilities, and find `<pad>`, `</s>` and `<unk>` by their index. Its
columns need not be the V words, if those symbols keep their places. Here they are one of two things:

    candidates    all special symbols in the dictionary's order, then the most probable words of each hypothesis
    all           the V words, then J slots of each hypothesis' sentence where the prior has evidence

A step leaves a record of what its columns stand for (`StepColumns`), so that what was chosen becomes tokens again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.head.records import Step

Hypotheses = list[list[dict[str, Tensor]]]  # fairseq's, of each sentence


@dataclass(frozen=True)
class StepColumns:
    """What each column of a step stands for."""

    tokens: Tensor  # (N, C)
    step: Step  # of the model whose background says where tokens have their columns
    num_special: int | None = None  # how many special symbols come before candidates; None: all words have columns
    only_end: Tensor | None = None  # (N,) log p of `</s>` where nothing else is possible, else −inf; None: no limit

    def column_of(self, tokens: Tensor) -> Tensor:
        """The columns of tokens (N, T) among all words and slots; a string that no slot offers has that of <unk>."""
        return self.step.background.column_of(tokens, self.step.state.states)

    def forced(self, words: Tensor, log_probs: Tensor) -> tuple[StepColumns, Tensor]:
        """The record in which the words (N,) have columns, and these columns: (N,).

        Among candidates, a word gets the first column after the special symbols, and log_probs (N, C) changes there.
        """
        columns = self.column_of(words.unsqueeze(1)).squeeze(1)
        if self.num_special is not None:
            ordinary = columns >= self.num_special
            log_probs[ordinary, self.num_special] = self.step.log_probs_of(words.unsqueeze(1)).squeeze(1)[ordinary]
            columns = columns.clamp(max=self.num_special)
        return replace(self, tokens=self.tokens.scatter(1, columns.unsqueeze(1), words.unsqueeze(1))), columns


@dataclass
class SearchSession:
    """One search at a time, from its first step to its last: what fairseq's generator, model and search share."""

    longest: int | None = None  # the most tokens of a hypothesis, </s> included, where it may not end anywhere
    columns: StepColumns | None = None  # of the step under way
    finalized: Hypotheses = field(default_factory=list)  # what is complete, as fairseq collects it

    def begin(self, sentences: int, longest: int | None) -> None:
        """A new search."""
        self.longest, self.columns, self.finalized = longest, None, [[] for _ in range(sentences)]

    @property
    def under_way(self) -> StepColumns:
        """The columns of the step under way."""
        assert self.columns is not None
        return self.columns


def candidates(step: Step, num_candidates: int, num_special: int) -> tuple[Tensor, Tensor]:
    """log p and tokens of the special symbols and the best candidates of each hypothesis: (N, C) each.

    The special symbols are what the step's state has pinned. No tensor has an entry for every word.
    """
    log_probs, words = step.top_k(num_candidates)
    log_probs = log_probs.masked_fill(words < num_special, NEGATIVE_INFINITY)  # they have columns of their own
    special = torch.arange(num_special, device=words.device).expand(len(words), -1)
    return torch.cat([step.log_probs_of_pinned(), log_probs], dim=1), torch.cat([special, words], dim=1)


def only_end(log_probs: Tensor, eos: int) -> Tensor:
    """log p of `</s>` for hypotheses that can do nothing else, −inf for others: (N, C) -> (N,)."""
    others = (log_probs > NEGATIVE_INFINITY).sum(1) > 1
    return log_probs[:, eos].masked_fill(others, NEGATIVE_INFINITY)
