"""Which texts are prompts: growing prompts of one token a call, and texts that go on."""

import copy
import os
import re
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface import BackgroundProcessor, LogLinearForCausalLM
from fairseq_llrnn.prior import Recipe

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

P = BackgroundProcessor
tokenizer_of = cache(tiny_tokenizer)


@cache
def softmax() -> Any:
    torch.manual_seed(1)
    special = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 0.5}
    config = transformers.GPT2Config(vocab_size=len(tokenizer_of("byte_level")), **sizes, **special)
    return transformers.GPT2LMHeadModel(config).eval()


def step(prompt: torch.Tensor, processor: BackgroundProcessor, **search: Any) -> torch.Tensor:
    return softmax().generate(prompt, max_new_tokens=1, logits_processor=[processor], **search)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    "search",
    [{}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}, {"num_beams": 2, "do_sample": True}],
)
def test_prompts_that_grow_by_a_forbidden_token_are_prompts(rows: int, search: dict[str, Any]) -> None:
    tokenizer = tokenizer_of("byte_level")
    processor = P.from_regex("[0-9]+", tokenizer)
    text = torch.tensor([tokenizer("le chat dort, the cat sat on the mat")["input_ids"]] * rows)
    for length in range(2, text.size(1)):
        found = step(text[:, :length], processor, **search)
        assert all(tokenizer.decode(token).isdigit() for token in found[:, -1].tolist())


def test_a_text_that_is_complete_is_followed_by_a_prompt() -> None:
    tokenizer = tokenizer_of("byte_level")
    processor, prompt = P.from_regex("1", tokenizer), torch.tensor([[5, 6]])
    written = step(prompt, processor)
    assert tokenizer.decode(written[0, 2:]) == "1"
    assert step(written, processor)[0, -1] == 1, "the same text goes on, and ends"
    other = torch.cat([written, torch.tensor([[7]])], dim=1)
    assert tokenizer.decode(step(other, processor)[0, -1:]) == "1"


def test_a_text_goes_on_in_calls_of_one_token() -> None:
    tokenizer = tokenizer_of("byte_level")
    whole = softmax().generate(
        torch.tensor([[5, 6]]), max_new_tokens=12, logits_processor=[P.from_regex("[a-z]{9}", tokenizer, longest=12)]
    )
    processor, text = P.from_regex("[a-z]{9}", tokenizer, longest=12), torch.tensor([[5, 6]])
    while text[0, -1] != 1:
        text = step(text, processor)
    assert text.tolist() == whole.tolist()


@pytest.mark.parametrize("longest", [None, 12])
@pytest.mark.parametrize("is_ours", [False, True])
def test_a_text_goes_on_where_calls_are_limits(is_ours: bool, longest: int | None) -> None:
    """`processor.generate` and our own models limit a text to a call, but for calls of one token."""
    tokenizer, prompts = tokenizer_of("byte_level"), torch.tensor([[5, 6], [7, 8]])
    model = LogLinearForCausalLM.wrap(copy.deepcopy(softmax()), tokenizer, Recipe(background="uniform")).eval()

    def write(processor: BackgroundProcessor, text: torch.Tensor, most: int) -> torch.Tensor:
        options = {"attention_mask": torch.ones_like(text), "max_new_tokens": most}
        if is_ours:
            return model.generate(text, logits_processor=[processor], **options)
        return processor.generate(softmax(), text, **options)

    def texts_of(rows: torch.Tensor) -> list[list[int]]:
        return [row[: (*row, 1).index(1)] for row in rows[:, 2:].tolist()]

    for pattern in ("[a-z]{5}", "[0-9]*x", "[0-9]*"):
        processor, text = P.from_regex(pattern, tokenizer, longest=longest), prompts
        for _ in range(12):
            text = write(processor, text, 1)
        whole = P.from_regex(pattern, tokenizer, longest=longest)
        expected = softmax().generate(prompts, max_new_tokens=12, logits_processor=[whole])
        assert texts_of(text) == texts_of(expected)
        again = write(processor, prompts, 12)  # a call of more tokens begins a new text, which ends
        assert all(re.fullmatch(pattern, tokenizer.decode(row)) for row in texts_of(again))


def test_a_batch_of_which_some_prompts_go_on() -> None:
    tokenizer = tokenizer_of("byte_level")
    digit, letter = (tokenizer.convert_tokens_to_ids(sign) for sign in "7x")
    processor, scores = P.from_regex("[0-9]+", tokenizer), torch.zeros(2, len(tokenizer))
    processor(torch.tensor([[5], [6]]), scores)
    expected = f"the constraint allows, found token {letter}, which it forbids, at the end of row 1; for prompts that"
    with pytest.raises(DataError, match=expected):
        processor(torch.tensor([[5, digit], [6, letter]]), scores)
    processor(torch.tensor([[5], [6]]), scores)
    log_p = processor(torch.tensor([[5, digit], [6, 0]]), scores)
    assert log_p[0, digit].isfinite(), "a row that a stopping criterion ended is padded"
    fixed = P.from_regex("[0-9]+", tokenizer, unread=1)
    fixed(torch.tensor([[5]]), scores[:1])
    with pytest.raises(DataError, match=f"found token {letter}, which it forbids, at the end of row 0"):
        fixed(torch.tensor([[5, letter]]), scores[:1])
