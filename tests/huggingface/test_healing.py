"""Prompts that end inside a token: texts begin with the removed tokens' text, in all tokenisations."""

import itertools
import math
import os
import re
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

from fairseq_llrnn.errors import DataError

pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers
from limited_texts import END, all_texts, tokenizer_of
from tiny_tokenizers import KINDS, tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor
from fairseq_llrnn.huggingface.token_texts import token_texts

P = BackgroundProcessor
of_kind = cache(tiny_tokenizer)
PATTERN, LARK = "c(ab)*|b", 'start: "c" ("ab")* | "b"\n'


@cache
def softmax(size: int) -> Any:
    torch.manual_seed(1)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 1.0}
    special = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": END}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=size, **sizes, **special)).eval()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_most_tokens_that_begin_a_longer_one_are_removed(kind: str) -> None:
    tokenizer = of_kind(kind)
    known = {text for text in token_texts(tokenizer).later if text}
    prompts = ["le chat dor", "the cat s", "the cat ", "on", "mat 12", "é", "la mer, l"]
    for prompt in prompts:
        ids = tokenizer(prompt)["input_ids"]
        numbers = [0]
        for number in range(1, len(ids)):
            text = token_texts(tokenizer).text(ids[-number:], is_first=False)
            if text is None:
                break
            is_whole = text.decode(errors="replace").encode() == text
            if is_whole and any(longer.startswith(text) and longer != text for longer in known):
                numbers.append(number)
        inputs, _ = P.from_regex("[a-z]+", tokenizer).heal([prompt])
        assert inputs["input_ids"].tolist() == [ids[: len(ids) - numbers[-1]]], prompt


@pytest.mark.parametrize("longest", [4, 5])
def test_texts_and_probabilities_are_those_of_an_enumeration(longest: int) -> None:
    tokenizer = tokenizer_of("ab", "bc", "abc", "ca")
    texts = token_texts(tokenizer)
    wanted = {
        row
        for length in range(longest)
        for row in itertools.product(range(2, len(tokenizer)), repeat=length)
        if re.fullmatch("ab" + f"({PATTERN})", (texts.text(row) or b"").decode())
    }
    for processor in (P.from_regex(PATTERN, tokenizer), P.from_grammar(LARK, tokenizer)):
        inputs, healed = processor.heal(["cab"])
        assert tokenizer.decode(inputs["input_ids"][0]) == "c", "b and ab begin bc and abc"
        found = all_texts(healed.for_search(None, 0, longest), longest)
        assert {*found} == wanted and sum(map(math.exp, found.values())) == pytest.approx(1.0)


def test_weights_of_a_grammar_stay() -> None:
    tokenizer = tokenizer_of("bb")
    inputs, healed = P.from_grammar('S -> "ac" [0.75] | "c" [0.25]\n', tokenizer, separator="").heal(["ab"])
    scores, ids = torch.zeros(1, len(tokenizer)), tokenizer.convert_tokens_to_ids(["b", "a", "c"])
    assert healed(inputs["input_ids"], scores)[0, ids[0]] == 0.0
    log_p = healed(torch.cat([inputs["input_ids"], torch.tensor([ids[:1]])], dim=1), scores)
    assert log_p[0, ids[1:]].exp().tolist() == pytest.approx([0.75, 0.25])


def test_beams_have_the_probabilities_of_all_texts() -> None:
    tokenizer = tokenizer_of("ab", "bc", "abc", "ca")
    inputs, healed = P.from_regex(PATTERN, tokenizer).heal(["ccab", "cab"])
    model, search = softmax(len(tokenizer)), {"num_beams": 6, "num_return_sequences": 6, "length_penalty": 0.0}
    found = healed.generate(
        model, **inputs, max_new_tokens=5, return_dict_in_generate=True, output_scores=True, **search
    )
    for row, score in zip(found.sequences.tolist(), found.sequences_scores.tolist(), strict=True):
        begun, new = row[: inputs["input_ids"].size(1)], row[inputs["input_ids"].size(1) :]
        new = new[: new.index(END) + 1]
        assert re.fullmatch(f"ab({PATTERN})", tokenizer.decode(new[:-1]))
        step, total = healed.for_search(None, len(begun), len(begun) + 5), 0.0
        for at, token in enumerate(new):
            prefix = torch.tensor([begun + new[:at]] * 2)
            mask = (prefix != END).long()
            with torch.no_grad():
                logits = model(prefix, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0)).logits
            total += step(prefix, logits[:, -1])[0, token].item()
        assert total == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("search", [{}, {"do_sample": True}, {"num_beams": 3}])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_text_goes_on_inside_the_last_token(kind: str, search: dict[str, Any]) -> None:
    """Rows of several lengths of prompts and removed texts, with a regular expression and a schema."""
    tokenizer = of_kind(kind)
    prompts = ["le ch", "the cat sat on th", "la mer d"]
    schema = {"enum": ["a", "bc"]}
    makers = [(P.from_regex("[a-z]{2} [0-9]", tokenizer), "[a-z]{2} [0-9]")]
    if kind != "wordpiece":
        makers.append((P.from_json_schema(schema, tokenizer), '"a"|"bc"'))
    for processor, pattern in makers:
        torch.manual_seed(3)
        inputs, healed = processor.heal(prompts)
        model = softmax(len(tokenizer))
        found = healed.generate(model, **inputs, max_new_tokens=16, eos_token_id=healed.eos, **search)
        for prompt, row, mask in zip(prompts, found.tolist(), inputs["attention_mask"].tolist(), strict=True):
            tokens = row[len(mask) - sum(mask) :]
            text = token_texts(tokenizer).text([x for x in tokens if x not in tokenizer.all_special_ids]) or b""
            assert re.fullmatch(f"{re.escape(prompt)}({pattern})", text.decode().removeprefix(" ")), text


def test_a_token_of_the_removed_text_and_the_constraint() -> None:
    """The healed search finds the token that both share, which the other one cannot."""
    tokenizer = tokenizer_of("bc")
    favourite = tokenizer.convert_tokens_to_ids("bc")
    processor = P.from_regex("c", tokenizer)
    inputs, healed = processor.heal(["ab"])
    scores = torch.zeros(1, len(tokenizer))
    scores[0, favourite] = 5.0
    assert healed(inputs["input_ids"], scores).argmax() == favourite
    assert healed(inputs["input_ids"], scores)[0, favourite] > math.log(0.9)
    assert processor(torch.tensor([tokenizer("ab")["input_ids"]]), scores)[0, favourite] == -math.inf


def test_other_constraints_and_no_prompts() -> None:
    tokenizer = tokenizer_of("bc")
    regex = P.from_regex("c", tokenizer)
    others = [
        P.from_regex("c", tokenizer, canonical=True), P.from_terms(["c"], tokenizer), P.per_row([regex]),
        P.from_regex("c", tokenizer, after="b"), P.mixture([regex, P.from_regex("b", tokenizer)], [1, 2]),
    ]  # fmt: skip
    for other in others:
        with pytest.raises(DataError, match="^heal: expected a processor of from_regex, .* found another; make one"):
            other.heal(["ab"])
    wrong: list[Any] = ["ab", ["ab", ""], [], (), None, [1], ["ab", None], [["a"]], ["\ud800"], iter(["ab"])]
    for prompts in wrong:
        with pytest.raises(DataError, match="^heal: expected a list of prompts that are not empty, found"):
            regex.heal(prompts)
    both = regex * P.from_regex("[bc]", tokenizer)
    assert both.heal(["ab"])[0]["input_ids"].tolist() == regex.heal(["ab"])[0]["input_ids"].tolist()
