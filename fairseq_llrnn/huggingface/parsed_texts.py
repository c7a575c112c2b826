"""What the texts of a search stand for: objects of JSON, calls of tools, or strings."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.huggingface.combinations import ProcessorParts
from fairseq_llrnn.huggingface.free_text import FreeTextWeights


class ParsesTexts(ProcessorParts):
    """Reading of texts as a method of a BackgroundProcessor (a mixin)."""

    def parse(self, tokens: Tensor) -> list[Any]:
        """Return the value of each text of a search.

        The value under a JSON schema is what `json.loads` returns, or an object of the class that is the schema. Under
        another constraint it is the text. With `after` and a string, it is the value of the text after the string.
        With a Tag, it is the list of the values of all tags.

        Args:
            tokens: (N, T), what comes after the prompts, as `found[:, prompt:]` of `found = model.generate(…)`. Those
                that the tokenizer does not have are no text.

        Raises:
            DataError: a text is not complete, or its class does not accept it. Or the tokens have another shape.
        """
        parsers: list[Any] = [self] if self.of_rows is None else [*self.of_rows]
        is_tensor = isinstance(tokens, Tensor)
        if not is_tensor or tokens.dim() != 2 or tokens.is_floating_point() or len(tokens) % len(parsers):
            found = tuple(tokens.shape) if is_tensor else type(tokens).__name__
            raise DataError(
                f"parse: expected whole numbers of shape (N, T), N a multiple of {len(parsers)}, found {found}; give "
                "found[:, prompt:] of found = generate(…)"
            )
        size = self.weights.num_tokens
        rows = tokens.masked_fill((tokens < 0) | (tokens > size), size).tolist()
        each = len(rows) // len(parsers)
        values = zip(rows, (parser for parser in parsers for _ in range(each)), strict=True)
        return [self._text(row) if parser is None else parser._value(row) for row, parser in values]

    def _value(self, tokens: list[int]) -> Any:
        if not isinstance(self.weights, FreeTextWeights):
            return self._read(self._text(tokens))
        tag, whole = self.weights.tag, self._text(tokens)
        texts = [self._text(part, is_first=False) for part in self.weights.constrained(tokens)]
        is_single = tag.end is None and not tag.optional
        if (is_single and not texts) or not all(text.endswith(tag.end or "") for text in texts):
            raise DataError(f"parse: expected a text with all of {tag}, found {shown(whole)}; allow it more tokens")
        values = [self._read(text.removesuffix(tag.end or "")) for text in texts]
        return values[0] if is_single else values

    def _text(self, tokens: list[int], is_first: bool = True) -> str:
        """Return what tokens before the end write, special tokens among them."""
        if self.texts is None:
            raise DataError("parse: expected a processor of a tokenizer, found one of a prior; decode its texts")
        if self.eos in tokens:
            tokens = tokens[: tokens.index(self.eos)]
        tokens = [token for token in tokens if token < self.weights.num_tokens]
        first = self.texts.first[tokens[0]] if tokens and is_first else None
        pieces = [self.texts.spelled[token] for token in tokens]
        return b"".join(pieces if first is None else [first, *pieces[1:]]).decode(errors="replace")

    def _read(self, text: str) -> Any:
        if self.read is None:
            return text
        try:
            return self.read(text)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"parse: expected a text that the schema and its class accept, found {shown(text)}: "
                f"{' '.join(str(error).split())[:200]}; allow it more tokens if it is cut off"
            ) from None
