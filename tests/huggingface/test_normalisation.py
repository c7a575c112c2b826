"""Logits that are not finite are one error, and not the end of a text."""

import copy
import math
import os
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

from fairseq_llrnn.errors import DataError

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor, CausalScorer, LogLinearForCausalLM
from fairseq_llrnn.prior import Recipe

P = BackgroundProcessor
TOKENIZER = tiny_tokenizer("byte_level")
KINDS = ["few", "many", "terms", "after", "product", "mixture", "rows", "free", "schema"]
SEARCHES: list[dict[str, Any]] = [{}, {"do_sample": True}, {"num_beams": 2}]


def processor(kind: str) -> BackgroundProcessor:
    few = P.from_regex("[ab]+", TOKENIZER)
    if kind == "schema":
        pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
        return P.from_json_schema({"enum": ["a", "b"]}, TOKENIZER)
    made = {
        "few": lambda: few, "many": lambda: P.from_regex(".+", TOKENIZER),
        "terms": lambda: P.from_terms(["a"], TOKENIZER), "rows": lambda: P.per_row([few, None]),
        "after": lambda: P.from_regex("a", TOKENIZER, after="b"),
        "product": lambda: few * P.from_terms(["a"], TOKENIZER),
        "mixture": lambda: P.mixture([few, P.from_regex("[bc]+", TOKENIZER)], [1, 2]),
        "free": lambda: P.per_row([None, few]),
    }  # fmt: skip
    return made[kind]()


@cache
def network() -> Any:
    torch.manual_seed(1)
    special = {"vocab_size": len(TOKENIZER), "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **special)).eval()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_logits_that_is_not_finite(kind: str, value: float) -> None:
    found = "−inf for all tokens" if value < 0 else "NaN or infinity"
    message = f"^BackgroundProcessor: expected finite scores, found {found}; look for weights and hidden states"
    logits = torch.zeros(2, len(TOKENIZER))
    logits[0] = value
    for dtype in (torch.float32, torch.float16):
        with pytest.raises(DataError, match=message):
            processor(kind)(torch.tensor([[5, 6], [7, 8]]), logits.to(dtype))


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_one_allowed_token_is_enough(kind: str, value: float) -> None:
    logits = torch.zeros(2, len(TOKENIZER))
    logits[0, TOKENIZER.convert_tokens_to_ids(["a", "b", '"'])] = value
    with pytest.raises(DataError, match="expected finite scores, found NaN or infinity"):
        processor(kind)(torch.tensor([[5, 6], [7, 8]]), logits)


def test_dead_ends_and_ended_texts_are_no_errors() -> None:
    """Another processor may forbid all that is left. What a network computes after an end does not matter."""
    ab, end = P.from_regex("ab", TOKENIZER), TOKENIZER.eos_token_id
    logits, a = torch.zeros(1, len(TOKENIZER)), TOKENIZER.convert_tokens_to_ids("a")
    logits[0, a] = -math.inf
    assert ab(torch.tensor([[5, 6]]), logits)[0, end] == -1e9
    read = P.from_regex("a", TOKENIZER, unread=1)
    tokens, logits = torch.tensor([[5, a, end], [6, a, end]]), torch.full((2, len(TOKENIZER)), math.nan)
    assert read(tokens, logits)[:, end].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", ["softmax", "plain", "grammar", "processor"])
def test_weights_that_are_not_finite_end_no_text(name: str, search: dict[str, Any]) -> None:
    model: Any = copy.deepcopy(network())
    regex = P.from_regex("[ab]+", TOKENIZER)
    if name != "softmax":
        constraint = regex if name == "grammar" else None
        model = LogLinearForCausalLM.wrap(model, TOKENIZER, Recipe(background="uniform"), constraint)
    with torch.no_grad():
        model.base_model.ln_f.bias[3] = math.nan
    search = {"max_new_tokens": 5, "pad_token_id": 0, **search}
    with pytest.raises(DataError, match="expected finite scores, found NaN or infinity"):
        if name == "softmax":
            regex.generate(model, torch.tensor([[1]]), **search)
        else:
            model.generate(torch.tensor([[1]]), logits_processor=[regex] if name == "processor" else [], **search)


def test_scores_of_a_text_are_no_impossible_ones() -> None:
    model = copy.deepcopy(network())
    with torch.no_grad():
        model.transformer.ln_f.bias[3] = math.nan
    with pytest.raises(DataError, match="^the model: expected finite scores, found NaN or infinity"):
        list(CausalScorer(model, TOKENIZER).lines(["the cat"]))


# ---- what a network computes after an end ----------------------------------------------------------------------------

END, PAD, OTHER = 1, 0, TOKENIZER.convert_tokens_to_ids("c")  # OTHER is another end of the model
PROMPTS = torch.full((3, 1), 5)
ENDING = {"max_new_tokens": 6, "eos_token_id": [END, OTHER], "pad_token_id": PAD}


def ends_early(ends: list[int]) -> Any:
    """Return a processor before ours: the second row of PROMPTS ends at once with the last one of the ends.

    Rows that have ended have NaN, as in a network with such a vector of padding.
    """

    def change(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        written, scores = tokens[:, 1:], scores.clone()
        scores[:, ends] = -math.inf
        if not written.size(1):
            scores.view(3, -1, scores.size(1))[1, :, ends[-1]] = 50.0
        scores[torch.isin(written, torch.tensor(ends)).any(1)] = math.nan
        return scores

    return change


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("end", [END, OTHER])
@pytest.mark.parametrize("others", ["regex", "none", "product"])
def test_a_free_row_that_has_ended_is_not_checked(others: str, end: int, search: dict[str, Any]) -> None:
    """With any end of the model, while the texts of other rows go on."""
    torch.manual_seed(1)
    regex = P.from_regex("[abx]{5}", TOKENIZER)
    rows = P.per_row([regex, None, None if others == "none" else regex])
    for _ in range(2):
        found = rows.generate(
            network(), PROMPTS, logits_processor=[ends_early([END, OTHER, end])], **ENDING, **search
        )[:, 1:].tolist()
        assert found[1][0] == end and {*found[1][1:]} <= {PAD, END}
        assert found[0].index(END) == 5


@pytest.mark.parametrize("search", SEARCHES)
def test_a_free_row_may_have_ended_with_a_special_token(search: dict[str, Any]) -> None:
    """`generate` of a model does not pass its ends."""
    special = next(token for token in TOKENIZER.all_special_ids if token not in (END, PAD))
    rows = P.per_row([P.from_regex("[abx]{5}", TOKENIZER), None, None])
    given = {**ENDING, "eos_token_id": [END, special], **search}
    found = network().generate(PROMPTS, logits_processor=[ends_early([END, special]), rows], **given)[:, 1:].tolist()
    assert found[1][0] == special and found[0].index(END) == 5
    read = P.per_row([None, None, P.from_regex("b", TOKENIZER)], unread=1)
    ids, scores = torch.tensor([[5, 8], [5, special], [5, 68]]), torch.zeros(3, len(TOKENIZER))
    assert read(ids, scores.index_fill(0, torch.tensor(1), math.nan))[1, END] == 0.0
    with pytest.raises(DataError, match="expected finite scores, found NaN or infinity"):
        read(ids, scores.index_fill(0, torch.tensor(0), math.nan))


def test_a_row_of_padding_after_an_unknown_end_is_not_checked() -> None:
    """`generate` of a model pads a text that one of its other ends ended. Its constraint does not allow padding."""
    rows = P.per_row([P.from_regex("[abx]{5}", TOKENIZER), P.from_regex("c[abx]{4}", TOKENIZER), None])
    ids = torch.tensor([[5, 8], [5, OTHER], [5, 8]])
    scores = torch.zeros(3, len(TOKENIZER))
    rows(ids[:, :1], scores)
    rows(torch.tensor([[5, 68], [5, OTHER], [5, 8]]), scores)
    scores[1] = math.nan
    log_p = rows(torch.tensor([[5, 68, 68], [5, OTHER, PAD], [5, 8, 9]]), scores)
    assert log_p[1].isfinite().nonzero().flatten().tolist() == [END]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("background", ["uniform", "regex"])
def test_our_own_models_do_not_check_rows_that_have_ended(background: str, search: dict[str, Any]) -> None:
    """The vector of padding is NaN. Another row goes on."""
    regex = P.from_regex("[abx]{5}|[b]", TOKENIZER) if background == "regex" else None
    model = LogLinearForCausalLM.wrap(copy.deepcopy(network()), TOKENIZER, Recipe(background="uniform"), regex)
    with torch.no_grad():
        model.model.wte.weight[PAD] = math.nan
    end, text = (OTHER, []) if regex is None else (END, TOKENIZER.convert_tokens_to_ids(["b"]))
    torch.manual_seed(1)

    def begins(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        written, scores = tokens[:, 1:], scores.clone()
        if written.size(1) <= len(text):
            scores.view(2, -1, scores.size(1))[0, :, [*text, end][written.size(1)]] += 50.0
            scores.view(2, -1, scores.size(1))[1, :, [END, OTHER]] = -math.inf
        return scores

    prompts = torch.full((2, 1), END)
    found = model.generate(prompts, logits_processor=[begins], **ENDING, **search)[:, 1:].tolist()
    assert found[0][: len(text) + 1] == [*text, end] and {*found[0][len(text) + 1 :]} <= {PAD, END}
    assert len([token for token in found[1] if token not in (PAD, END, OTHER)]) > len(text)
