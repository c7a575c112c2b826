"""Constraints of other packages in the search of bench_constraints.py: copy states, read tokens, mask, normalise."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from fairseq_llrnn.huggingface import BackgroundProcessor

LENGTH = 40  # steps of a search


@dataclass(frozen=True)
class Search:
    """What a search of N hypotheses did: before each step but the first, the parent and the token of each."""

    parents: list[list[int]]
    tokens: list[list[int]]

    def written(self) -> list[torch.Tensor]:
        """The tokens of all hypotheses before each step: (N, 1 + t), after a start symbol."""
        found = [torch.zeros(len(self.parents[0]), 1, dtype=torch.long)]
        for parents, tokens in zip(self.parents, self.tokens, strict=True):
            found.append(torch.cat([found[-1][parents], torch.tensor(tokens).unsqueeze(1)], dim=1))
        return found


class ForbiddenError(Exception):
    """A package does not allow a token."""


def draw(processor: BackgroundProcessor, hypotheses: int, count: int, others: Iterable[Contestant]) -> list[Search]:
    """Searches that write no end, and only what all others allow (xgrammar has no integer -0)."""
    generator, chance = torch.Generator().manual_seed(2), random.Random(2)
    found: list[Search] = []
    while len(found) < count:
        search, written = Search([], []), torch.zeros(hypotheses, 1, dtype=torch.long)
        for _ in range(LENGTH):
            scores = torch.randn(hypotheses, processor.weights.num_tokens, generator=generator)
            p = processor(written, scores).exp()
            p[:, processor.eos] = 0.0
            alive = p.sum(1).nonzero().flatten().tolist()
            if not alive:
                break
            parents = sorted(chance.choices(alive, k=hypotheses)) if hypotheses > 1 else alive
            tokens = torch.multinomial(p[parents], 1, generator=generator)
            search.parents.append(parents)
            search.tokens.append(tokens.flatten().tolist())
            written = torch.cat([written[parents], tokens], dim=1)
        if len(search.parents) > LENGTH // 4 and all(other.allows(search) for other in others):
            found.append(search)
    return found


class Contestant:
    """The states of a search in a package. All methods but `begin` are timed."""

    kinds: tuple[str, ...] = ("mask", "log p")

    def begin(self, search: Search) -> None:
        """Make the states of hypotheses that have written nothing."""
        raise NotImplementedError

    def go_on(self, parents: list[int], tokens: list[int]) -> None:
        """Copy the states of parents, and read a token each."""
        raise NotImplementedError

    def mask(self) -> None:
        """Compute the bits of the allowed tokens."""
        raise NotImplementedError

    def log_p(self, scores: torch.Tensor) -> torch.Tensor:
        """Compute the mask, apply it, and normalise."""
        raise NotImplementedError

    def allows(self, search: Search) -> bool:
        """Return whether the package allows all tokens of a search."""
        self.begin(search)
        try:
            for parents, tokens in zip(search.parents, search.tokens, strict=True):
                self.go_on(parents, tokens)
        except ForbiddenError:
            return False
        return True

    def seconds(self, search: Search, scores: torch.Tensor, kind: str) -> float:
        """Return the processor time of a step."""
        self.begin(search)
        scores, total = scores[: len(search.parents[0])], 0.0
        for step in range(len(search.parents) + 1):
            given = scores.clone()
            began = time.process_time()
            if step:
                self.go_on(search.parents[step - 1], search.tokens[step - 1])
            if kind == "mask":
                self.mask()
            else:
                self.log_p(given)
            total += time.process_time() - began
        return total / (len(search.parents) + 1)


def moved(states: list[Any], parents: list[int], copied: Callable[[Any], Any]) -> list[Any]:
    """The states of parents. Only a second child needs a copy."""
    seen: set[int] = set()
    found = []
    for parent in parents:
        found.append(copied(states[parent]) if parent in seen else states[parent])
        seen.add(parent)
    return found


class Ours(Contestant):
    kinds = ("log p",)

    def __init__(self, processor: BackgroundProcessor) -> None:
        self.processor = processor

    def begin(self, search: Search) -> None:
        self.steps = iter(search.written())
        self.written = next(self.steps)

    def go_on(self, parents: list[int], tokens: list[int]) -> None:
        self.written = next(self.steps)

    def log_p(self, scores: torch.Tensor) -> torch.Tensor:
        return self.processor(self.written, scores)


class LLGuidance(Contestant):
    def __init__(self, tokenizer: Any, grammar: str, first: list[int]) -> None:
        import llguidance
        import llguidance.hf
        import llguidance.torch as masks

        self.masks, self.of_tokens = masks, llguidance.hf.from_tokenizer(tokenizer)
        self.start = llguidance.LLMatcher(self.of_tokens, grammar, log_level=0)
        if self.start.is_error():
            raise SystemExit(self.start.get_error())
        self.start.consume_tokens(first)

    def begin(self, search: Search) -> None:
        self.matchers = [self.start.deep_copy() for _ in search.parents[0]]
        self.bitmask = self.masks.allocate_token_bitmask(len(self.matchers), self.of_tokens.vocab_size)

    def go_on(self, parents: list[int], tokens: list[int]) -> None:
        self.matchers = moved(self.matchers, parents, lambda matcher: matcher.deep_copy())
        for matcher, token in zip(self.matchers, tokens, strict=True):
            if not matcher.consume_token(token):
                raise ForbiddenError

    def mask(self) -> None:
        for row, matcher in enumerate(self.matchers):
            self.masks.fill_next_token_bitmask(matcher, self.bitmask, row)

    def log_p(self, scores: torch.Tensor) -> torch.Tensor:
        self.mask()
        self.masks.apply_token_bitmask_inplace(scores, self.bitmask)
        return scores.log_softmax(1)


class XGrammar(Contestant):
    def __init__(self, tokenizer: Any, kind: str, text: str, first: list[int]) -> None:
        import xgrammar

        self.xgrammar, self.info = xgrammar, xgrammar.TokenizerInfo.from_huggingface(tokenizer)
        compiled = getattr(xgrammar.GrammarCompiler(self.info, max_threads=1), f"compile_{kind}")(text)
        self.batch, self.start = xgrammar.BatchGrammarMatcher(max_threads=1), xgrammar.GrammarMatcher(compiled)
        for token in first:
            self.start.accept_token(token)

    def begin(self, search: Search) -> None:
        self.matchers = [self.start.fork() for _ in search.parents[0]]
        self.bitmask = self.xgrammar.allocate_token_bitmask(len(self.matchers), self.info.vocab_size)

    def go_on(self, parents: list[int], tokens: list[int]) -> None:
        self.matchers = moved(self.matchers, parents, lambda matcher: matcher.fork())
        if not all(self.batch.batch_accept_token(self.matchers, tokens)):
            raise ForbiddenError

    def mask(self) -> None:
        self.batch.batch_fill_next_token_bitmask(self.matchers, self.bitmask)

    def log_p(self, scores: torch.Tensor) -> torch.Tensor:
        self.mask()
        self.xgrammar.apply_token_bitmask_inplace(scores, self.bitmask)
        return scores.log_softmax(1)
