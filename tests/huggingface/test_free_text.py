"""`after`: free text, a string in any tokenisation, then a constraint; p' by enumeration, in beams and samples."""

import json
import os
import re
from functools import cache, partial
from itertools import product
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch

from fairseq_llrnn.errors import DataError, OptionError

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")
pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")

import transformers
from limited_texts import END, all_texts, tokenizer_of
from tiny_tokenizers import KINDS, tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor, Limits, Tag, constructors
from fairseq_llrnn.huggingface.free_text import byte_steps, token_steps
from fairseq_llrnn.huggingface.token_texts import token_texts

P = BackgroundProcessor
tiny = cache(tiny_tokenizer)
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]}


@pytest.mark.parametrize("string", ["a", "aa", "ab", "aab", "abab", "abaab", "aabaaa"])
def test_the_automaton_of_a_string_is_a_search_for_it(string: str) -> None:
    steps = byte_steps(string.encode())
    texts = ["".join(letters) for size in range(8) for letters in product("abc", repeat=size)]
    after = token_steps(steps, [text.encode() for text in texts])[0]
    for text, matched in zip(texts, after.tolist(), strict=True):
        if string in text:
            assert matched == len(string) + (not text.endswith(string) or string in text[:-1])
        else:
            assert matched == max(n for n in range(len(string)) if text.endswith(string[:n]))


@pytest.mark.parametrize("string", ["b", "ab", "cc", "bab"])
@pytest.mark.parametrize("build", ["regex", "lark", "product", "mixture"])
def test_probabilities_sum_to_one_and_texts_are_those_of_an_enumeration(string: str, build: str) -> None:
    """Tokens a, b, c, ab, bc, abc: the string is split in all ways, and tokens go on after it."""
    tokenizer, longest = tokenizer_of("ab", "bc", "abc"), 6
    options: dict[str, Any] = {"after": string}
    makers = {
        "regex": lambda: P.from_regex("ca*", tokenizer, longest=longest, **options),
        "lark": lambda: P.from_grammar("start: /ca*/", tokenizer, longest=longest, **options),
        "product": lambda: P.product(
            [P.from_regex("[ac]*", tokenizer, **options), P.from_regex("c[ab]*", tokenizer, **options)], longest=longest
        ),
        "mixture": lambda: P.mixture(
            [P.from_regex("c", tokenizer, **options), P.from_regex("ca+", tokenizer, **options)], [1, 2],
            longest=longest,
        ),
    }  # fmt: skip
    found = all_texts(makers[build](), longest)
    assert sum(np.exp(list(found.values()))) == pytest.approx(1.0)
    texts = {tokenizer.decode(list(row)) for row in found}  # special tokens are free text, too
    for text in texts:
        begin, between, rest = text.partition(string)
        assert between and re.fullmatch("ca*", rest), text
    for size in range(4):  # each text of so many letters fits in
        for free in map("".join, product("abc", repeat=size)):
            if size + len(string) + 2 <= longest and (free + string).find(string) == size:
                assert f"{free}{string}c" in texts


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "wordpiece"])
@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"do_sample": True}, {"do_sample": True, "num_beams": 3}])
def test_texts_of_searches_end_in_time(kind: str, search: dict[str, Any]) -> None:
    torch.manual_seed(2)
    tokenizer = tiny(kind)
    special = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 0.5}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **sizes, **special)
    softmax = transformers.GPT2LMHeadModel(config).eval()
    processors = [
        P.from_regex("yes|no|12+", tokenizer, after=after, longest=12) for after in ("at", Tag("at", "on"))
    ]
    if kind != "unigram":  # which lacks bytes
        processors.append(P.from_json_schema(SCHEMA, tokenizer, after="at", longest=30))
    for processor in processors:
        rows = P.per_row([processor, None, processor])
        found = softmax.generate(torch.tensor([[5], [9], [7]]), max_new_tokens=30, logits_processor=[rows], **search)
        for row in (found[0, 1:], found[2, 1:]):
            tokens = row.tolist()
            assert 1 in tokens[: processor.longest]
            text = tokenizer.decode(tokens[: tokens.index(1)], clean_up_tokenization_spaces=False)
            free, string, rest = text.partition("at")
            assert string
            if processor is processors[0]:
                assert re.fullmatch("yes|no|12+", rest)
            elif processor is processors[1]:
                assert re.match("(yes|no|12+)on", rest)
            else:
                assert set(json.loads(rest)) >= {"a", "b"}


def test_a_special_token_and_its_spelling() -> None:
    tokenizer = tiny_tokenizer("byte_level")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<go>"]})
    go, scores = tokenizer.convert_tokens_to_ids("<go>"), torch.zeros(1, len(tokenizer))
    spelled = [tokenizer.convert_tokens_to_ids(sign) for sign in "<go>"]
    yes = tokenizer("yes")["input_ids"][0]
    for written in ([go], spelled, [5, go], [go - 1, *spelled]):
        processor = P.from_regex("yes", tokenizer, after="<go>", unread=0)
        log_p = processor(torch.tensor([written]), scores)[0]
        assert log_p[yes].isfinite() and log_p[5].isinf()
        before = processor(torch.tensor([[5, *written[:-1]]]), scores)[0]
        assert before[go].isfinite() == (written[-1] == go or before[spelled[-1]].isfinite())
        assert before[1].isinf(), "the text does not end before the string"


TAGS = [
    Tag("b", "c"), Tag("b", "c", optional=True), Tag("ab", "bc", optional=True), Tag("c", "a", within=2),
    Tag("b", optional=True), Tag("ab", within=3),
]  # fmt: skip


def follows(tokens: tuple[int, ...], tag: Tag, pattern: str, texts: Any) -> bool:
    """Whether a text is free text with tags, byte by byte."""
    text, inside, has_tag = "", False, False
    for at, token in enumerate(tokens):
        if at == tag.within and not (has_tag or inside):
            return False
        if inside and texts.later[token] is None:
            return False
        for place, letter in enumerate(texts.spelled[token].decode(), 1):
            text += letter
            is_whole = inside and tag.end is not None and re.fullmatch(f"({pattern}){tag.end}", text)
            if is_whole or (not inside and text.endswith(tag.begin)):
                if place < len(texts.spelled[token]):
                    return False
                inside, has_tag, text = not inside, has_tag or inside, ""
    return bool(re.fullmatch(pattern, text)) if inside and tag.end is None else not inside and (has_tag or tag.optional)


@pytest.mark.parametrize("tag", TAGS, ids=str)
@pytest.mark.parametrize("build", ["regex", "lark", "grammar", "words", "product", "mixture", "canonical"])
def test_texts_with_tags_are_those_of_an_enumeration(build: str, tag: Tag) -> None:
    tokenizer, longest = tokenizer_of("ab", "bc", "abc"), 6
    regex = partial(P.from_regex, tokenizer=tokenizer, after=tag)
    makers = {
        "regex": ("a|ca*", lambda: P.from_regex("a|ca*", tokenizer, after=tag, longest=longest)),
        "lark": ("a|ca", lambda: P.from_grammar('start: "a" | "ca"', tokenizer, after=tag, longest=longest)),
        "grammar": ("a|ca", lambda: P.from_grammar("S -> 'a' | 'ca'", tokenizer, after=tag, longest=longest)),
        "words": ("a|ca", lambda: P.from_words(["a", "ca"], tokenizer, separators=(), after=tag, longest=longest)),
        "product": ("ca?", lambda: P.product([regex("c[ab]*"), regex("[bc]a?")], longest=longest)),
        "mixture": ("c|ca", lambda: P.mixture([regex("c"), regex("ca")], [1, 2], longest=longest)),
        "canonical": ("ab|a", lambda: P.from_regex("ab|a", tokenizer, canonical=True, after=tag, longest=longest)),
    }
    pattern, make = makers[build]
    found = all_texts(make(), longest)
    assert sum(np.exp(list(found.values()))) == pytest.approx(1.0)
    texts, numbers = token_texts(tokenizer), range(1, len(tokenizer))
    expected = {
        tokens for size in range(longest) for tokens in product(numbers, repeat=size)
        if follows(tokens, tag, pattern, texts)
    }  # fmt: skip
    if build == "canonical":
        assert {*found} < expected
        expected = {*found}
    assert {*found} == expected


@pytest.mark.parametrize("is_special", [False, True])
@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}])
def test_searches_with_tags_end_in_time(is_special: bool, search: dict[str, Any]) -> None:
    """Strings or special tokens; a constraint for each row; a short limit in which the tag must begin at once."""
    tokenizer = tiny_tokenizer("byte_level")
    if is_special:
        tokenizer.add_special_tokens({"additional_special_tokens": ["<x>", "</x>"]})
    special = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 128, "initializer_range": 0.5}
    torch.manual_seed(2)
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **sizes, **special)
    softmax = transformers.GPT2LMHeadModel(config).eval()
    needed, free = Tag("<x>", "</x>"), Tag("<x>", "</x>", optional=True)
    schema = P.from_json_schema(SCHEMA, tokenizer, after=needed)
    rows = P.per_row([schema, None, P.from_regex("yes|no", tokenizer, after=free), P.from_regex("no", tokenizer)])
    for limit in (60, 34):
        prompts = torch.tensor([[5], [9], [7], [5]])
        found = rows.generate(softmax, prompts, max_new_tokens=limit, **search)
        each = len(found) // 4
        for number, tokens in enumerate(found[:, 1:].tolist()):
            if number // each == 1:
                continue
            text = tokenizer.decode(tokens[: tokens.index(1)])
            parts = re.findall("<x>(.*?)</x>", text, re.DOTALL)
            if number // each == 0:
                assert parts and all({*json.loads(part)} >= {"a", "b"} for part in parts)
            elif number // each == 2:
                assert {*parts} <= {"yes", "no"}
            else:
                assert text == "no"


def test_within_needs_no_limit_of_the_whole_text() -> None:
    tokenizer = tokenizer_of("ab", "bc")
    processor, written = P.from_regex("a+", tokenizer, after=Tag("cab", within=4), unread=0), torch.zeros(1, 0).long()
    scores = torch.zeros(1, len(tokenizer))
    scores[0, tokenizer.convert_tokens_to_ids(["b", "a"])] = torch.tensor([9.0, 5.0])
    for _ in range(6):
        written = torch.cat([written, processor(written, scores).argmax(1, keepdim=True)], dim=1)
    assert tokenizer.convert_ids_to_tokens(written[0]) == ["b", "b", "c", "ab", "a", "a"]


def test_a_large_regular_expression_with_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """llguidance's terminals are greedy, so that the end is part of the terminal."""
    monkeypatch.setattr(constructors, "OWN_REGEX", Limits(seconds=1e-9))
    tokenizer = tokenizer_of("ab", "bc", "abc")
    found = all_texts(P.from_regex("[abc]+", tokenizer, after=Tag("a", "bc"), longest=6), 6)
    monkeypatch.undo()
    assert found.keys() == all_texts(P.from_regex("[abc]+", tokenizer, after=Tag("a", "bc"), longest=6), 6).keys()


def test_errors() -> None:
    tokenizer = tokenizer_of("ab")
    expected = "expected a string of 1 to 256 bytes in UTF-8, found"
    for begin in ("", "a" * 257, "é" * 129, "\ud800", b"a", 1, ["a"]):
        with pytest.raises(DataError, match=f"^from_regex: Tag: begin: {expected} .*; give one"):
            P.from_regex("a", tokenizer, after=begin)  # type: ignore[arg-type]
        with pytest.raises(DataError, match=f"^Tag: end: {expected} .*; give one"):
            Tag("a", begin)  # type: ignore[arg-type]
    for within in ("3", 2.5, 0, float("nan")):
        with pytest.raises(OptionError, match=f"^Tag: within {within}: expected a.* number of at least 1"):
            Tag("a", within=within)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="^Tag: optional: expected True or False, found 'no'; give one of them"):
        Tag("a", optional="no")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="^Tag: within: expected a tag that is not optional; leave one of both out"):
        Tag("a", optional=True, within=3)
    with pytest.raises(DataError, match="^Tag: within: expected at least the 2 tokens of 'ca', found 1; give more"):
        P.from_regex("a", tokenizer, after=Tag("ca", within=1))
    with pytest.raises(DataError, match="^from_terms: expected a tag without an end, found Tag"):
        P.from_terms(["a"], tokenizer, after=Tag("b", "c"))
    with pytest.raises(DataError, match="^from_grammar: expected a grammar without weights before the end of a Tag"):
        P.from_grammar("S -> 'a' [1] | 'b' [2]", tokenizer, after=Tag("b", "c"))
    with pytest.raises(DataError, match="after: expected a text that the tokenizer's tokens can write, found 'ax'"):
        P.from_regex("a", tokenizer, after="ax")
    with pytest.raises(DataError, match=r"product: expected the same `after` .*, found None and Tag\(begin='b'"):
        P.from_regex("a", tokenizer, after="b") * P.from_regex("a", tokenizer)
    with pytest.raises(DataError, match=r"mixture: expected the same `after` .* Tag\(begin='a'.* and Tag\(begin='b'"):
        P.mixture([P.from_regex("a", tokenizer, after=string) for string in "ab"], [1, 1])
    with pytest.raises(DataError, match="`longest` of at least 3, within which a string can be completed, found 2"):
        P.from_regex("a", tokenizer, after="c", longest=2)
    assert all_texts(P.from_regex("a", tokenizer, after="c", longest=3), 3).keys() == {
        tuple(tokenizer.convert_tokens_to_ids(["c", "a"]))
    }
    assert tokenizer.eos_token_id == END
