"""Prompts that end inside a token: the last tokens are removed, and their text begins the constraint.

The prompt `https:` has the token `:`, but a model has learned the token `://`. So a text after `:` is improbable. A
*healed* search begins before the last tokens. Its text is theirs, with all tokenisations, and then one of the
constraint. A token may hold the end of the one and the beginning of the other. p' is normalised as in any search.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.byte_automata import USUAL_LIMITS, Meter, utf8_size
from fairseq_llrnn.huggingface.combinations import ProcessorParts
from fairseq_llrnn.huggingface.parsers import ParserWeights
from fairseq_llrnn.huggingface.token_texts import TokenTexts
from fairseq_llrnn.huggingface.token_weights import TokenAutomaton, TokenWeights


class HealsPrompts(ProcessorParts):
    """Healed searches as a method of a BackgroundProcessor (a mixin)."""

    def heal(self, prompts: Sequence[str]) -> tuple[dict[str, Tensor], Self]:
        """Return prompts without their last tokens, for `generate`, and a processor whose texts begin with these.

        The most tokens are removed whose text begins a longer token, but for the first token. The text of the
        constraint follows the prompt as it is, so that a space before its first word is part of it.

        Args:
            prompts: B texts.

        Returns:
            input_ids and attention_mask, (B, T), with padding on the left, and a processor for these B rows. Its texts
            begin with what is removed, and `longest` and `max_new_tokens` count its tokens.

        Raises:
            DataError: no prompts, or the constraint is not made of regular expressions, grammars, schemas or words.
        """
        if not isinstance(prompts, list | tuple) or not prompts or not all(map(utf8_size, prompts)):
            raise DataError(f"heal: expected a list of prompts that are not empty, found {prompts!r:.60}; give one")
        if self.texts is None:
            raise _not_healed()
        texts = self.texts.inner
        known = sorted({text for text in texts.later if text})
        rows, processors = [], []
        for prompt in prompts:
            tokens = texts.tokenizer(prompt)["input_ids"]
            number, removed = _last_tokens(tokens, texts, known)
            rows.append(tokens[: len(tokens) - number])
            weights = _after(self.weights, removed, texts)
            read = partial(_read_after, removed, self.read)
            processors.append(self._from_weights(weights, self.eos, None, self.longest, texts=texts, read=read))
        width = max(map(len, rows))
        ids = torch.tensor([[self.eos] * (width - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        return {"input_ids": ids, "attention_mask": mask}, self.per_row(processors)


def _last_tokens(tokens: list[int], texts: TokenTexts, known: list[bytes]) -> tuple[int, str]:
    """Return how many tokens to remove from the end, and their text.

    Args:
        known: the texts of all tokens, sorted.
    """
    number, removed, text, longest = 0, "", b"", max(map(len, known))
    for place in range(len(tokens) - 1, 0, -1):
        part = texts.later[tokens[place]]
        text = (part or b"") + text
        if part is None or len(text) >= longest:
            break
        following = bisect_right(known, text)
        if following < len(known) and known[following].startswith(text):
            try:
                number, removed = len(tokens) - place, text.decode()
            except UnicodeDecodeError:  # a part of a character
                continue
    return number, removed


def _after(weights: TokenWeights[Any], begin: str, texts: TokenTexts) -> TokenWeights[Any]:
    """The weights of texts that begin with a string."""
    if isinstance(weights, ParserWeights):
        return weights.after(begin)
    if not isinstance(weights, TokenAutomaton) or not weights.bytes:
        raise _not_healed()
    return TokenAutomaton.of_set(weights.bytes[0].after(begin.encode()), texts, Meter("heal", USUAL_LIMITS))


def _read_after(begin: str, read: Callable[[str], Any] | None, text: str) -> Any:
    """Read a text that begins with a string."""
    text = text.removeprefix(begin)
    return text if read is None else read(text)


def _not_healed() -> DataError:
    return DataError(
        "heal: expected a processor of from_regex, from_json_schema, from_grammar or from_words, without canonical and "
        "`after`, or a product of these without schemas and Lark grammars, found another; make one"
    )
