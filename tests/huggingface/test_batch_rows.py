"""A constraint for each row of a batch: each row as if it were alone, in greedy search, beams and samples."""

import os
import re
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface import BackgroundProcessor

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")
pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")

P = BackgroundProcessor
tokenizer_of = cache(tiny_tokenizer)
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 23, 456]}}, "required": ["a"]}


@cache
def softmax() -> Any:
    """With more tokens than the tokenizer has."""
    torch.manual_seed(1)
    tokenizer = tokenizer_of("byte_level")
    special = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 0.5}
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=len(tokenizer) + 3, **sizes, **special)
    ).eval()


def constraints() -> list[Any]:
    tokenizer = tokenizer_of("byte_level")
    return [
        P.from_regex("yes|no|maybe", tokenizer, longest=4),
        None,
        P.from_json_schema(SCHEMA, tokenizer, longest=12),
        P.from_words(["cat", "mat"], tokenizer, longest=9),
        P.from_terms(["chat"], tokenizer, longest=10),
    ]


def prompts() -> torch.Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randint(3, len(tokenizer_of("byte_level")), (5, 3), generator=generator)


@pytest.mark.parametrize("beams", [1, 3])
def test_each_row_is_as_if_it_were_alone(beams: int) -> None:
    search = {"max_new_tokens": 12, "num_beams": beams, "return_dict_in_generate": True, "output_scores": True}
    search |= {"length_penalty": 0.0, "num_return_sequences": beams} if beams > 1 else {}
    whole = softmax().generate(prompts(), logits_processor=[P.per_row(constraints())], **search)
    for row, (prompt, processor) in enumerate(zip(prompts(), constraints(), strict=True)):
        alone = softmax().generate(prompt[None], logits_processor=[processor] if processor else [], **search)
        length, own = alone.sequences.size(1), slice(row * beams, (row + 1) * beams)
        assert whole.sequences[own, :length].tolist() == alone.sequences.tolist()
        assert (whole.sequences[own, length:] <= 1).all(), "ends or padding"
        if beams > 1:
            torch.testing.assert_close(whole.sequences_scores[own], alone.sequences_scores, rtol=1e-4, atol=1e-4)


def test_the_scores_of_each_row_sum_to_one_and_a_free_row_is_the_model() -> None:
    processor = P.per_row(constraints())
    scores = torch.randn(5, len(tokenizer_of("byte_level")) + 3)
    log_p = processor(prompts(), scores)
    torch.testing.assert_close(log_p.exp().sum(1), torch.ones(5))
    torch.testing.assert_close(log_p[1], scores[1].log_softmax(0))
    for row in (0, 2, 3, 4):
        torch.testing.assert_close(log_p[row], constraints()[row](prompts()[row : row + 1], scores[row : row + 1])[0])


@pytest.mark.parametrize("search", [{"num_beams": 4}, {}])
def test_the_limit_of_a_search_ends_no_free_row(search: dict[str, Any]) -> None:
    rows = P.per_row([P.from_regex("[a-z]+", tokenizer_of("byte_level")), None])
    found = rows.generate(softmax(), prompts()[:2], max_new_tokens=4, **search)
    assert found[1].tolist() == softmax().generate(prompts()[1:2], max_new_tokens=4, **search)[0].tolist()
    assert 1 in found[0, 3:].tolist() and 1 not in found[1, 3:].tolist()


@pytest.mark.parametrize("search", [{"num_beams": 4}, {}])
def test_samples_of_each_row_and_one_limit_for_all(search: dict[str, Any]) -> None:
    torch.manual_seed(3)
    tokenizer = tokenizer_of("byte_level")
    processor = P.per_row([P.from_regex("[a-z]+", tokenizer), P.from_regex("[0-9]+", tokenizer)], longest=6)
    for _ in range(3):
        found = softmax().generate(
            prompts()[:2], max_new_tokens=8, do_sample=True, logits_processor=[processor], **search
        )[:, 3:]
        assert all(1 in row[:6] for row in found.tolist())
        letters, digits = tokenizer.batch_decode(found, skip_special_tokens=True)
        assert re.fullmatch("[a-z]+", letters) and re.fullmatch("[0-9]+", digits)


def test_rows_times_another_processor() -> None:
    tokenizer = tokenizer_of("byte_level")
    rows = P.per_row([P.from_regex("[a-z]+", tokenizer), None])
    both = P.product([rows, P.from_regex("a+|12", tokenizer)], longest=5)
    found = softmax().generate(prompts()[:2], max_new_tokens=5, do_sample=True, logits_processor=[both])[:, 3:]
    letters, either = tokenizer.batch_decode(found, skip_special_tokens=True)
    assert re.fullmatch("a+", letters) and re.fullmatch("a+|12", either)


def test_wrong_batches() -> None:
    tokenizer = tokenizer_of("byte_level")
    yes = P.from_regex("yes", tokenizer)
    with pytest.raises(DataError, match="per_row: expected at least one processor, found none"):
        P.per_row([None, None])
    with pytest.raises(DataError, match="per_row: expected processors for one tokenizer, found"):
        P.per_row([yes, P.from_regex("yes", tokenizer_of("unigram"))])
    with pytest.raises(DataError, match="`longest` of at least .* found 1; give more"):
        P.per_row([yes, None], longest=1)
    with pytest.raises(DataError, match="per_row: expected processors without sources.* found one with 2; give the"):
        P.per_row([P.per_row([yes, None]), None])
    scores = torch.zeros(4, len(tokenizer))
    with pytest.raises(DataError, match="each of the 3 sources or constraints, found 4 hypotheses; give those of thi"):
        P.per_row([yes, None, yes])(prompts()[:4], scores)
    with pytest.raises(DataError, match="a batch of 2 sources or constraints, found 4 hypotheses with other prompts"):
        P.per_row([yes, None])(prompts()[:4], scores)
