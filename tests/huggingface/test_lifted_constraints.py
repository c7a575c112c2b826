"""Constraints over tokenizers of four kinds: each step against all tokenisations of all strings, in float64."""

import math
import os
from collections.abc import Callable
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from torch import Tensor

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

from tiny_tokenizers import KINDS, tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor

Weights = dict[str, float]  # of texts
tokenizer_of = cache(tiny_tokenizer)
END = 1


def pieces(tokenizer: Any) -> dict[int, str]:
    """The tokens that match text, as `decode` writes each one in the middle of a text; bytes as Latin-1."""
    found = {}
    for number in range(3, len(tokenizer)):
        token = tokenizer.convert_ids_to_tokens(number)
        if token.startswith("<0x"):
            found[number] = chr(int(token[3:5], 16))
        elif tokenizer.backend_tokenizer.decoder.__class__.__name__ == "ByteLevel":
            table = {character: byte for byte, character in _byte_characters().items()}
            found[number] = "".join(chr(table[character]) for character in token)
        else:
            text = tokenizer.backend_tokenizer.decoder.decode(["x", token]).removeprefix("x")
            found[number] = text.encode().decode("latin-1")
    return found


@cache
def _byte_characters() -> dict[int, str]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return dict(bytes_to_unicode())


def tokenisations(tokenizer: Any, text: str, kind: str) -> list[list[int]]:
    """All token sequences whose decoded text this is, by trying every token at every place."""
    bytes_of = pieces(tokenizer)
    wanted = text.encode().decode("latin-1")
    starts = wanted if kind == "byte_level" else f" {wanted}"  # the first space is not part of the text
    found = [*_cut(starts, bytes_of)]
    if kind != "byte_level":
        found += [*_cut(wanted, bytes_of)] if not wanted.startswith(" ") else []
    if kind == "wordpiece":  # a first token ##x is written as it is
        hashes = {n: tokenizer.convert_ids_to_tokens(n) for n in bytes_of}
        found = [row for row in found if not hashes[row[0]].startswith("##")]
    return found


def _cut(text: str, bytes_of: dict[int, str]) -> Any:
    if not text:
        yield []
    for number, piece in bytes_of.items():
        if piece and text.startswith(piece):
            for rest in _cut(text[len(piece) :], bytes_of):
                yield [number, *rest]


def renormalised(sequences: dict[tuple[int, ...], float], prefix: tuple[int, ...], scores: Tensor) -> Tensor:
    """p' after a prefix by hand: the weight of a token is that of the sequences that go on with it."""
    b = torch.zeros(len(scores), dtype=torch.float64)
    for sequence, weight in sequences.items():
        if sequence[: len(prefix)] == prefix:
            b[sequence[len(prefix)]] = max(float(b[sequence[len(prefix)]]), weight)
    weights = scores.softmax(0) * b
    return weights / weights.sum()


CASES: dict[str, tuple[Callable[..., BackgroundProcessor], list[str]]] = {
    "regex": (lambda t, **o: BackgroundProcessor.from_regex("yes|no|12 ?3", t, **o), ["yes", "no", "12 3", "123"]),
    "letters": (lambda t, **o: BackgroundProcessor.from_regex("(ca|c)f(é|e)", t, **o), ["café", "cafe", "cfé", "cfe"]),
    "words": (
        lambda t, **o: BackgroundProcessor.from_words(["the cat", "le"], t, separators=(), **o),
        ["the cat", "le"],
    ),
    "grammar": (
        lambda t, **o: BackgroundProcessor.from_grammar('S -> "the" N | N\nN -> "cat" | "mat"\n', t, **o),
        ["the cat", "the mat", "cat", "mat"],
    ),
    "characters": (
        lambda t, **o: BackgroundProcessor.from_grammar('%depth 3\nS -> "1" S | "2"\n', t, separator="", **o),
        ["2", "12", "112"],
    ),
}


def possible(kind: str, text: str) -> bool:
    """WordPiece separates digits and words by spaces, and has lower case without accents."""
    return kind != "wordpiece" or text.isascii()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("canonical", [False, True])
def test_each_step_is_the_renormalised_distribution(kind: str, case: str, canonical: bool) -> None:
    tokenizer = tokenizer_of(kind)
    build, texts = CASES[case]
    if canonical and kind in ("wordpiece", "unigram") and case == "letters":
        pytest.skip("texts that the tokenizer changes or lacks are an error, tested below")
    processor = build(tokenizer, canonical=canonical)
    sequences: dict[tuple[int, ...], float] = {}
    for text in texts:
        if canonical:
            rows = [tokenizer(text, add_special_tokens=False)["input_ids"]]
        else:
            rows = tokenisations(tokenizer, text, kind)
        for row in rows:
            assert tokenizer.decode(row, clean_up_tokenization_spaces=False) == text
        sequences |= {(*row, END): 1.0 for row in rows}
    assert sequences
    generator = torch.Generator().manual_seed(1)
    prefixes = sorted({sequence[:length] for sequence in sequences for length in range(len(sequence))})
    for prefix in prefixes:
        scores = torch.randn(len(tokenizer) + 5, generator=generator, dtype=torch.float64)  # more columns than tokens
        if prefix == ():
            processor.states._last = None
        fresh = build(tokenizer, canonical=canonical, unread=1) if prefix == () else fresh
        found = fresh(torch.tensor([[0, *prefix]]), scores.unsqueeze(0))[0].exp()
        torch.testing.assert_close(found, renormalised(sequences, prefix, scores), rtol=1e-12, atol=1e-14)
