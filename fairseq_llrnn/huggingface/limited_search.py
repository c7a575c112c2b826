"""`max_new_tokens` or `max_length` of `generate` as the limit of a constraint.

transformers passes neither of them to a logits processor. Our own models limit the constraints of a search
(models.py). For other models, `BackgroundProcessor.generate` reads the settings of the call, and the first step shows
the length of the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.huggingface.parsed_texts import ParsesTexts
from fairseq_llrnn.huggingface.token_weights import TokenWeights

NAMED = 3  # ends in a message


class LimitedSearch(ParsesTexts):
    """Searches within a number of tokens, as methods of a BackgroundProcessor (a mixin)."""

    def generate(
        self, model: Any, *inputs: Any, logits_processor: Sequence[Any] | None = None, parse: bool = False,
        **options: Any,
    ) -> Any:  # fmt: skip
        """Call `model.generate` so that each text is complete within `max_new_tokens`, or `max_length` with the prompt.

        Each call begins a new text after its prompt. With max_new_tokens=1, a call is a step: its text may be
        incomplete, and a prompt that adds one allowed token to the last one continues its text. A text ends with the
        tokenizer's end, and not with others of the model.

        Args:
            model: any model of transformers that has `generate`.
            inputs, options: of its `generate`. The limit may be in the generation config of the call or the model.
            logits_processor: others, before this one.
            parse: return what `parse` returns for the new tokens.

        Returns what `model.generate` returns, or a list of values.

        Raises:
            OptionError: there is no limit. DataError: no text is short enough.
        """
        of_call = inputs[1] if len(inputs) > 1 else options.get("generation_config")
        settings = [options, *(vars(each) for each in (of_call, model.generation_config) if each is not None)]
        new, length, ends = (
            next((each[name] for each in settings if each.get(name) is not None), None)
            for name in ("max_new_tokens", "max_length", "eos_token_id")
        )
        if new is None and (length is None or options.get("inputs_embeds") is not None):
            raise OptionError(
                "generate: expected max_new_tokens, within which each text has to end, found no limit; give it"
            )
        search: list[Any] = []
        prompt = 0

        def step(input_ids: Tensor, scores: Tensor) -> Tensor:
            nonlocal prompt
            if not search:
                prompt = input_ids.size(1)
                most = prompt + new if new is not None else length
                search.append(self.for_search(ends, prompt, None if most == prompt + 1 else most))
            log_p: Tensor = search[0](input_ids, scores)
            return log_p

        found = model.generate(*inputs, logits_processor=[*(logits_processor or ()), step], **options)
        if not parse:
            return found
        sequences = found if isinstance(found, Tensor) else found.sequences
        return self.parse(sequences[:, prompt:])

    def for_search(self, ends: Any, prompt: int = 0, max_length: int | None = None) -> Self:
        """Return a processor for one search: its texts end within the limit, and with the tokenizer's end alone.

        Args:
            ends: the tokens that end a text of the model: a number, several, or None. Those other than the tokenizer's
                are forbidden, but for free rows, which they end.
            prompt: how many tokens the search begins with.
            max_length: the most tokens, the prompt included. None: the search is a step of a longer text.

        Raises:
            DataError: no text is short enough, or each text of the constraint has one of these ends.
        """
        processor = self._without_ends(ends)
        if max_length is None:
            return processor
        unread = None if self.finds_unread else self.states.unread
        left = max_length - (prompt if unread is None else unread)
        longest = left if self.longest is None else min(left, self.longest)
        advice = "give more, or `longest` to the processor if several calls write one text"
        weights = weights_within(
            processor.weights, longest, self.sentences, "generate: expected max_new_tokens", advice
        )
        search: Self = self._from_weights(weights, self.eos, unread, longest, self.sentences, self.texts)
        search.other_ends = processor.other_ends
        return search

    def _without_ends(self, ends: Any) -> Self:
        """Return the processor of the texts that have none of a model's ends but the tokenizer's.

        Raises:
            DataError: there is no such text, or none that is short enough.
        """
        tokens = torch.arange(self.weights.num_tokens)
        others = torch.isin(tokens, torch.as_tensor([] if ends is None else ends, dtype=torch.long).cpu())
        others &= tokens.ne(self.eos)
        key = tuple(others.nonzero().flatten().tolist())
        if not key:
            return self
        if key not in self.by_ends:
            try:
                weights = self.weights.without(others.numpy())
            except ValueError:
                written = [token for token in key if self.texts is None or self.texts.later[token]]
                raise requires_end(written or key, self._spelled) from None
            unread = None if self.finds_unread else self.states.unread
            found = self._from_weights(weights, self.eos, unread, self.longest, self.sentences, self.texts)
            self.by_ends[key], found.other_ends = found, others
        return self.by_ends[key]

    def _spelled(self, token: int) -> str:
        """Return how messages write a token."""
        return "" if self.texts is None else self.texts.spelled[token].decode(errors="replace")


def requires_end(tokens: Sequence[int], spelled: Callable[[int], str]) -> DataError:
    """Return the error of a constraint whose texts have ends of a model.

    Args:
        tokens: the ends. spelled: how messages write a token.
    """
    found = " or ".join(f"{token} ({spelled(token)!r})" for token in tokens[:NAMED]) + " …" * (len(tokens) > NAMED)
    return DataError(
        "generate: expected a constraint with texts without the other ends of the model (eos_token_id), found one that "
        f"requires token {found}; remove it from eos_token_id, or change the constraint"
    )


def weights_within(
    weights: TokenWeights[Any], longest: int, sentences: int | None,
    expected: str = "BackgroundProcessor: expected `longest`", advice: str = "give more",
) -> TokenWeights[Any]:  # fmt: skip
    """Return the weights of texts of at most `longest` tokens.

    Args:
        sentences: how many sources or constraints there are, if there are several.
        expected, advice: how a message begins and ends.

    Raises:
        DataError: there is no such text.
    """
    weights = weights.within(longest)
    if (needed := weights.least(weights.start(sentences or 1))) > longest:
        raise DataError(
            f"{expected} of at least {needed}, within which a string can be completed, found {longest}; "
            f"{advice}"
        )
    return weights
