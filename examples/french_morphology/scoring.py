"""Next-word log-probabilities of any fairseq language model: perplexity of texts, and minimal pairs.

Everything uses fairseq's own method (`get_normalized_probs`), so that stock softmax, adaptive softmax and log-linear
models are measured by the same code. All figures are in nats. B sentences, T positions, V words of the dictionary.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import checkpoint_utils
from torch import Tensor

from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading

# Padded positions per batch: V = 42,500 log-probabilities in float32 for 1024 positions are 174 MB.
POSITIONS = 1024


class Loss(NamedTuple):
    """Base-e log-perplexity per token, and the number of tokens."""

    with_ends: float  # as fairseq counts: every </s> is predicted too
    without_ends: float
    tokens_with_ends: int
    tokens_without_ends: int


class LanguageModel:
    """A loaded checkpoint.

    `data` is the folder of its dictionary, `prior` that of its prior (default: that of the training).
    """

    def __init__(self, checkpoint: Path, data: Path, prior: Path | None = None) -> None:
        places = {"data": str(data)} | ({} if prior is None else {"prior": str(prior)})
        with safe_loading():
            models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=places)
        self.model: Any = models[0].eval()
        self.dictionary: Any = task.source_dictionary

    def parameters(self) -> int:
        """The number of trained values. Tied weights count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def encode(self, sentence: str) -> Tensor:
        """Return the indices of the words, without </s>."""
        return torch.tensor([self.dictionary.index(word) for word in sentence.split()], dtype=torch.long)

    @torch.inference_mode()
    def log_probs(self, sentences: Sequence[Tensor]) -> Iterator[tuple[int, Tensor]]:
        """Yield (number of the sentence, log p(· | </s>, first t words) for t = 0 … its length), in any order."""
        order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
        batch: list[int] = []
        for number in order:
            if batch and (len(batch) + 1) * (len(sentences[number]) + 1) > POSITIONS:
                yield from self._batch(batch, sentences)
                batch = []
            batch.append(number)
        if batch:
            yield from self._batch(batch, sentences)

    def _batch(self, numbers: list[int], sentences: Sequence[Tensor]) -> Iterator[tuple[int, Tensor]]:
        lengths = torch.tensor([len(sentences[number]) + 1 for number in numbers])
        source = torch.full((len(numbers), int(lengths.max())), self.dictionary.pad(), dtype=torch.long)  # shape: B × T
        source[:, 0] = self.dictionary.eos()
        for row, number in enumerate(numbers):
            source[row, 1 : lengths[row]] = sentences[number]
        output = self.model(source, src_lengths=lengths)
        log_probs = self.model.get_normalized_probs(output, log_probs=True).float()  # shape: B × T × V
        for row, number in enumerate(numbers):
            yield number, log_probs[row, : lengths[row]]

    def scores(self, lines: Sequence[str]) -> list[Tensor]:
        """Return log p of every word and of the end of each line, one sentence per line: (T + 1,), float64."""
        sentences = [self.encode(line) for line in lines]
        found = [torch.empty(0)] * len(lines)
        for number, log_probs in self.log_probs(sentences):
            targets = torch.cat([sentences[number], sentences[number].new_tensor([self.dictionary.eos()])])
            found[number] = log_probs.gather(1, targets[:, None]).squeeze(1).double()
        return found

    def loss(self, lines: Sequence[str]) -> Loss:
        """Return the log-perplexity of a text, one sentence per line."""
        scores = self.scores(lines)
        words = math.fsum(score[:-1].sum().item() for score in scores)
        ends = math.fsum(score[-1].item() for score in scores)
        count = sum(len(score) for score in scores)
        return Loss(-(words + ends) / count, -words / (count - len(lines)), count, count - len(lines))

    def log_ratios(self, questions: Sequence[tuple[str, str, str]]) -> list[float]:
        """Return log p(right | prefix) − log p(wrong | prefix) for each (prefix, right, wrong)."""
        asked: dict[tuple[str, ...], list[int]] = {}
        for number, (prefix, _, _) in enumerate(questions):
            asked.setdefault(tuple(prefix.split()), []).append(number)
        # A prefix that begins another one need not be run by itself; in sorted order the next one is such
        # another.
        prefixes = sorted(asked)
        following: list[tuple[str, ...]] = [*prefixes[1:], ()]
        longest = [
            prefix
            for prefix, after in zip(prefixes, following, strict=True)
            if not after or after[: len(prefix)] != prefix
        ]
        answers = [math.nan] * len(questions)
        for run, log_probs in self.log_probs([self.encode(" ".join(prefix)) for prefix in longest]):
            for length in range(len(longest[run]) + 1):
                for number in asked.pop(longest[run][:length], ()):
                    _, right, wrong = questions[number]
                    row = log_probs[length]
                    answers[number] = float(row[self.dictionary.index(right)] - row[self.dictionary.index(wrong)])
        return answers

    @torch.inference_mode()
    def sample(self, seed: int, max_words: int = 40) -> list[str]:
        """Return a sentence sampled word by word from the model's distribution, without temperature or truncation."""
        generator = torch.Generator().manual_seed(seed)
        words = torch.tensor([], dtype=torch.long)
        for _ in range(max_words):
            _, log_probs = next(self.log_probs([words]))
            drawn = torch.multinomial(log_probs[-1].exp(), 1, generator=generator)
            if drawn.item() == self.dictionary.eos():
                break
            words = torch.cat([words, drawn])
        return [self.dictionary[int(index)] for index in words]
