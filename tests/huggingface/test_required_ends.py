"""Constraints that require a token which ends texts of the model: one error, or the texts without this token."""

import copy
import logging
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface import BackgroundProcessor, Limits, Tag, constructors, dictionary_of, words_of_tokens
from fairseq_llrnn.huggingface.parsers import ParserWeights
from fairseq_llrnn.prior import Recipe, build_prior

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")
pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")

P, T = BackgroundProcessor, tiny_tokenizer("byte_level")
END, PAD = 1, 0
B, C, QUOTE, COMMA = T.convert_tokens_to_ids(["b", "c", '"', ","])
SEARCHES: list[dict[str, Any]] = [{}, {"do_sample": True}, {"num_beams": 3}]
PROMPTS = torch.full((4, 1), 5)


@cache
def softmax() -> Any:
    torch.manual_seed(1)
    special = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": PAD}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 0.5}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(T), **sizes, **special)).eval()


def wrapped(recipe: Recipe | None = None, constraint: BackgroundProcessor | None = None) -> Any:
    from fairseq_llrnn.huggingface import LogLinearForCausalLM

    recipe = Recipe(background="uniform") if recipe is None else recipe
    return LogLinearForCausalLM.wrap(copy.deepcopy(softmax()), T, recipe, constraint).eval()


def options(*ends: int, longest: int = 14) -> dict[str, Any]:
    mask = torch.ones_like(PROMPTS)
    return {"max_new_tokens": longest, "eos_token_id": [END, *ends], "pad_token_id": PAD, "attention_mask": mask}


def message(*tokens: int) -> str:
    names = " or ".join(rf"{token} \('{T.decode([token])}'\)" for token in tokens)
    return (
        r"^generate: expected a constraint with texts without the other ends of the model \(eos_token_id\), found one "
        f"that requires token {names}; remove it from eos_token_id, or change the constraint$"
    )


def parsed(pattern: str) -> BackgroundProcessor:
    """Return the constraint of a regular expression that llguidance reads, as if it were large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constructors, "OWN_REGEX", Limits(states=1))
        found = P.from_regex(pattern, T)
    assert isinstance(found.weights, ParserWeights)
    return found


REQUIRED: dict[str, Callable[[], BackgroundProcessor]] = {
    "regex": lambda: P.from_regex("[xy]b", T),
    "large regex": lambda: parsed("[xy]{3}b"),
    "words": lambda: P.from_words(["b", "xbx"], T),
    "canonical": lambda: P.from_words(["b"], T, separators=(), canonical=True),
    "terms": lambda: P.from_terms(["x", ["b", "bx"]], T),
    "grammar": lambda: P.from_grammar('S -> "b" | "x" "b"', T),
    "weighted grammar": lambda: P.from_grammar('S -> "b" [0.5] | "x" "b" [0.5]', T),
    "Lark grammar": lambda: P.from_grammar('start: "b" | "x" "b"', T),
    "schema": lambda: P.from_json_schema({"enum": ["b", "xb"]}, T),
    "after": lambda: P.from_regex("x", T, after="b"),
    "after, inside": lambda: P.from_regex("b", T, after="x"),
    "tag": lambda: P.from_regex("y", T, after=Tag("x", "b")),
    "optional tag": lambda: P.from_json_schema({"enum": ["b"]}, T, after=Tag("x", "y", optional=True)),
    "row": lambda: P.per_row([None, P.from_regex("b", T), P.from_regex("x", T), None]),
    "product": lambda: P.from_regex("b+x*", T) * P.from_terms(["b"], T),
    "product with a schema": lambda: P.from_json_schema({"enum": ["x", "xb"]}, T) * P.from_regex('"xb"', T),
    "mixture": lambda: P.mixture([P.from_regex("b", T), P.from_terms(["b"], T)], [1, 2]),
}  # fmt: skip


@pytest.mark.parametrize("kind", REQUIRED)
def test_a_required_end(kind: str) -> None:
    """Before the first token, also if a call is a step, in our own models, and in a model's generation config."""
    processor = REQUIRED[kind]()
    with pytest.raises(DataError, match=message(B)):
        processor.generate(softmax(), PROMPTS, **options(B))
    with pytest.raises(DataError, match=message(B)):
        processor.for_search([B, END], 1, None)
    processor.for_search([C, END], 1, None)
    model = copy.copy(softmax())
    model.generation_config = transformers.GenerationConfig(**options(B), do_sample=True)
    with pytest.raises(DataError, match=message(B)):
        processor.generate(model, PROMPTS)


@pytest.mark.parametrize("limit", [None, 14])
def test_a_required_end_of_our_own_model(limit: int | None) -> None:
    processor = P.from_regex("[xy]b", T, longest=limit)
    with pytest.raises(DataError, match=message(B)):
        wrapped().generate(PROMPTS, logits_processor=[processor], **options(B))


def test_several_ends_are_required_together() -> None:
    """Those that are no text of the tokenizer are not named."""
    with pytest.raises(DataError, match=message(B, C)):
        P.from_regex("[bc]", T).generate(softmax(), PROMPTS, **options(PAD, B, C))
    with pytest.raises(DataError, match=r"requires token \d+ \(.*\) or \d+ \(.*\) or \d+ \(.*\) …; remove"):
        P.from_regex("[abcd]", T).for_search(T.convert_tokens_to_ids([*"abcd"]))


LEFT: dict[str, tuple[Callable[[], BackgroundProcessor], str]] = {
    "regex": (lambda: P.from_regex("[xy](b|c)|xb*", T), "[xy]c|x"),
    "large regex": (lambda: parsed("[xyb]{3}|cb"), "[xy]{3}"),
    "words": (lambda: P.from_words(["x", "b"], T), "x( x)*"),
    "grammar": (lambda: P.from_grammar('S -> "b" "c" | "x" "c" | "y" "b"', T), "x c"),
    "Lark grammar": (lambda: P.from_grammar('start: "b" | "x" start | "c"', T), "x*c"),
    "schema": (lambda: P.from_json_schema({"enum": ["b", "xc"]}, T), '"xc"'),
    "terms": (lambda: P.from_terms(["x", ["b", "c"]], T), "(?s)[^b]*"),
    "after": (lambda: P.from_regex("b|yy", T, after="x"), "(?s)[^b]*xyy"),
    "tag": (lambda: P.from_regex("b|yy", T, after=Tag("x", "c")), "(?s)[^b]*xyyc[^b]*"),
    "mixture": (lambda: P.mixture([P.from_regex("b", T), P.from_regex("bc|cc", T)], [1, 2]), "cc"),
}  # fmt: skip


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("kind", LEFT)
def test_the_texts_without_an_end(kind: str, search: dict[str, Any]) -> None:
    """No search begins a text that only another end completes."""
    make, pattern = LEFT[kind]
    torch.manual_seed(1)
    found = make().generate(softmax(), PROMPTS, **options(B), **search)
    for row in found[:, 1:].tolist():
        assert END in row and B not in row
        assert re.fullmatch(pattern, T.decode(row[: row.index(END)])), row


def test_scores_are_those_of_the_smaller_set() -> None:
    """Also with rows, and again in a second call."""
    pairs = [
        (P.from_regex("(x|y)(c|bc)", T), P.from_regex("(x|y)c", T)),
        (parsed("(x|y)(c|bc)"), P.from_regex("(x|y)c", T)),
        (P.per_row([P.from_regex("x|b", T), None] * 2), P.per_row([P.from_regex("x", T), None] * 2)),
    ]
    for large, small in pairs:
        search = {**options(B), "do_sample": True, "output_scores": True, "return_dict_in_generate": True}
        for seed in (1, 2):
            torch.manual_seed(seed)
            found = large.generate(softmax(), PROMPTS, **search)
            torch.manual_seed(seed)
            expected = small.generate(softmax(), PROMPTS, **search)
            assert torch.equal(found.sequences, expected.sequences)
            torch.testing.assert_close(found.scores, expected.scores)
        assert len(large.by_ends) == 1


def test_a_limit_counts_the_texts_without_an_end() -> None:
    for processor in (P.from_regex("b|cxyxy", T), P.from_json_schema({"enum": [7, 123456]}, T)):
        ends = [B, *T.convert_tokens_to_ids(["7"])]
        shortest = processor.for_search([END, *ends], 0, 20).weights
        needed = shortest.least(shortest.start(1))
        assert needed > 3
        with pytest.raises(DataError, match=f"^generate: expected max_new_tokens of at least {needed}, .*found 3;"):
            processor.generate(softmax(), PROMPTS, **options(*ends, longest=3))
    with pytest.raises(DataError, match="expected `longest` of at least [4-6], .* found 3; give more"):
        P.per_row([P.from_regex("b|cxyxy", T, longest=3), None]).for_search([END, B])


def test_steps_of_one_text() -> None:
    processor, text = P.from_regex("xy?z?(b|c)", T), PROMPTS[:1]
    for _ in range(5):
        text = processor.generate(softmax(), text, **{**options(B, longest=1), "attention_mask": None})
    assert T.decode(text[0, 1 : text[0].tolist().index(END)]).endswith("c")
    (search,) = processor.by_ends.values()
    assert search.states.full_reads == 1, "each call continues the text"


@pytest.mark.parametrize("end", [QUOTE, COMMA])
def test_schemas_without_quotation_marks_or_commas(end: int) -> None:
    """Searches for completions try these first, and strings with patterns end with them."""
    schema = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^a.*z"}]}}
    found = P.from_json_schema(schema, T).generate(softmax(), PROMPTS, **options(end, longest=9), do_sample=True)
    for row in found[:, 1:].tolist():
        assert END in row and end not in row


def test_a_pattern_whose_last_letter_is_an_end_alone() -> None:
    """The token `at` writes it."""
    (end,) = T.convert_tokens_to_ids(["t"])
    processor = P.from_json_schema({"type": "string", "pattern": "at"}, T)
    for search in SEARCHES:
        for row in processor.generate(softmax(), PROMPTS, **options(end, longest=9), **search)[:, 1:].tolist():
            assert "at" in T.decode(row[: row.index(END)]) and end not in row


# ---- backgrounds of priors ------------------------------------------------------------------------------------------


def grammar_of(folder: Path, text: str) -> Recipe:
    (folder / "rules.grammar").write_text(text, encoding="utf-8")
    return Recipe(top_words="all", background=f"automaton:{folder / 'rules.grammar'}")


@pytest.mark.parametrize("search", SEARCHES)
def test_a_required_end_of_a_prior(tmp_path: Path, search: dict[str, Any]) -> None:
    recipe = grammar_of(tmp_path, 'S -> "x" "b" | "y" "b"')
    prior = build_prior(dictionary_of(T), recipe)
    processor = P(prior, words_of_tokens(T, prior))
    with pytest.raises(DataError, match="found one that requires token " + str(B)):
        processor.generate(softmax(), PROMPTS, **options(B), **search)
    with pytest.raises(DataError, match=message(B)):
        wrapped(recipe).generate(torch.full((2, 1), END), **{**options(B), "attention_mask": None}, **search)
    constraint = P.from_regex("[xy]b", T)
    with pytest.raises(DataError, match=message(B)):
        wrapped(constraint=constraint).generate(torch.full((2, 1), END), **{**options(B), "attention_mask": None})


def test_a_server_logs_a_required_end(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from fairseq_llrnn.huggingface import vllm_processor

    monkeypatch.setattr(vllm_processor.AutoTokenizer, "from_pretrained", lambda *_, **__: T)
    settings = SimpleNamespace(tokenizer="", tokenizer_revision=None, trust_remote_code=False)
    config = SimpleNamespace(model_config=settings, speculative_config=None)
    requests = vllm_processor.ConstraintProcessor(config, None)
    params = SimpleNamespace(extra_args={"constraint_regex": "xb"}, all_stop_token_ids={END, B}, max_tokens=9)
    with caplog.at_level(logging.WARNING):
        request = requests._new(params)
    assert request is not None and request.processor is None
    assert "A request ends without a text: generate: expected a constraint with texts without" in caplog.text
