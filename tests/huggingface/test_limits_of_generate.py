"""The limit of `generate` is that of a constraint: all texts end in time, as with an equal `longest`."""

import os
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.huggingface import BackgroundProcessor

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

P = BackgroundProcessor
SEARCHES: list[dict[str, Any]] = [
    {}, {"do_sample": True}, {"num_beams": 3}, {"num_beams": 2, "do_sample": True, "num_return_sequences": 2},
]  # fmt: skip
END, PAD = 1, 0
tokenizer_of = cache(lambda: tiny_tokenizer("byte_level"))
PATTERN = "(ab|[0-9]+,)*x{4}"


@cache
def softmax() -> Any:
    torch.manual_seed(1)
    special = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": PAD}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 1.0}
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=len(tokenizer_of()), **sizes, **special)
    ).eval()


def prompts() -> dict[str, torch.Tensor]:
    """Two rows, the first one with padding on the left."""
    ids = torch.tensor([[PAD, PAD, 5, 6], [7, 8, 9, 10]])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


def texts(rows: torch.Tensor, begin: int) -> list[str]:
    found = rows[:, begin:].tolist()
    assert all(END in row for row in found)
    return [tokenizer_of().decode(row[: row.index(END)]) for row in found]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", ["regex", "after", "rows", "product"])
def test_it_is_longest(kind: str, search: dict[str, Any]) -> None:
    """Same texts and scores as with `longest`, in one batch, with a processor that serves two calls."""
    tokenizer, regex = tokenizer_of(), P.from_regex(PATTERN, tokenizer_of())

    def make(longest: int | None) -> BackgroundProcessor:
        if kind == "regex":
            return P.from_regex(PATTERN, tokenizer, longest=longest)
        if kind == "after":
            return P.from_regex(PATTERN, tokenizer, after="e", longest=longest)
        if kind == "rows":
            of_second = P.from_regex("y+", tokenizer, longest=7)
            return P.per_row([P.from_regex(PATTERN, tokenizer, longest=longest), of_second])
        return P.product([regex, P.from_regex(".{6}.*", tokenizer)], longest=longest)

    free = make(None)
    options = {**prompts(), **search, "return_dict_in_generate": True, "output_scores": True}
    for longest in (9, 12):
        torch.manual_seed(2)
        expected = softmax().generate(logits_processor=[make(longest)], max_new_tokens=longest, **options)
        for limit in ({"max_new_tokens": longest}, {"max_length": longest + 4}):
            torch.manual_seed(2)
            found = free.generate(softmax(), **limit, **options)
            assert torch.equal(found.sequences, expected.sequences)
            for ours, theirs in zip(found.scores, expected.scores, strict=True):
                assert torch.equal(ours, theirs)
            texts(found.sequences, 4)


def test_where_the_limit_stands() -> None:
    """In the call, its generation config, or the model's, as transformers reads it."""
    processor, model = P.from_regex("[ab]*c", tokenizer_of()), softmax()
    config = transformers.GenerationConfig(max_new_tokens=5, eos_token_id=END, pad_token_id=PAD)
    (text,) = texts(processor.generate(model, torch.tensor([[5]]), generation_config=config, do_sample=True), 1)
    assert text[-1] == "c"
    embeddings = model.get_input_embeddings()(torch.tensor([[5, 6]]))
    texts(processor.generate(model, inputs_embeds=embeddings, max_new_tokens=4), 0)
    texts(processor.generate(model, max_new_tokens=4), 1)
    with pytest.raises(OptionError, match="^generate: expected max_new_tokens, .* found no limit; give it"):
        processor.generate(model, torch.tensor([[5]]))
    with pytest.raises(OptionError, match="^generate: expected max_new_tokens"):
        processor.generate(model, inputs_embeds=embeddings, max_length=9)
    model.generation_config.max_length = 3
    try:
        assert processor.generate(model, torch.tensor([[5]]), do_sample=True).size(1) <= 3
    finally:
        model.generation_config.max_length = None


def test_the_least_of_both_limits() -> None:
    processor = P.from_regex("a*b", tokenizer_of(), longest=6)
    token = torch.tensor(tokenizer_of().convert_tokens_to_ids(["a"]))
    favourite = [lambda ids, scores: scores.index_fill(1, token, 9.0)]
    for most, length in ((4, 4), (9, 6)):
        found = processor.generate(softmax(), torch.tensor([[5]]), max_new_tokens=most, logits_processor=favourite)
        assert texts(found, 1) == ["a" * (length - 2) + "b"] and found.size(1) == 1 + length


def test_what_is_read_of_a_prompt_counts() -> None:
    tokenizer = tokenizer_of()
    processor = P.from_regex("ab[0-9]{3}", tokenizer, unread=1)
    prompt = torch.tensor([[5, *tokenizer.convert_tokens_to_ids(["a", "b"])]])
    (text,) = texts(processor.generate(softmax(), prompt, max_new_tokens=4), 3)
    assert text.isdigit() and len(text) == 3
    with pytest.raises(DataError, match="^generate: expected max_new_tokens of at least [45], .* found 3; give more"):
        processor.generate(softmax(), prompt[:, :2], max_new_tokens=2)


def test_a_limit_that_is_too_small() -> None:
    processor = P.from_json_schema({"enum": ["abcde"]}, tokenizer_of())
    needed = processor.weights.within(1).least(processor.weights.within(1).start(1))
    (text,) = texts(processor.generate(softmax(), torch.tensor([[5]]), max_new_tokens=needed), 1)
    assert text == '"abcde"'
    expected = f"^generate: expected max_new_tokens of at least {needed}, .*found {needed - 1};"
    with pytest.raises(DataError, match=f"{expected} give more, or `longest` to the processor if several calls"):
        processor.generate(softmax(), torch.tensor([[5]]), max_new_tokens=needed - 1)


@pytest.mark.parametrize("search", SEARCHES)
def test_our_own_models_limit_the_constraints_of_a_search(search: dict[str, Any]) -> None:
    from fairseq_llrnn.huggingface import LogLinearForCausalLM
    from fairseq_llrnn.prior import Recipe

    model = LogLinearForCausalLM.wrap(softmax(), tokenizer_of(), Recipe(background="uniform"))
    processor = P.from_regex(PATTERN, tokenizer_of())
    options = {**prompts(), **search, "max_new_tokens": 9}
    torch.manual_seed(2)
    found = model.eval().generate(logits_processor=[processor], **options)
    torch.manual_seed(2)
    same = P.from_regex(PATTERN, tokenizer_of(), longest=9)
    assert torch.equal(found, model.generate(logits_processor=[same], **options))
    assert all(text.endswith("xxxx") for text in texts(found, 4))
    with pytest.raises(DataError, match="^generate: expected max_new_tokens of at least 5"):
        model.generate(**prompts(), max_new_tokens=4, logits_processor=[processor])
