"""Regular expressions: the trees match what Python's `re` matches, also under llguidance."""

import os
import random
import re
import warnings
from functools import cache

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.automata.regular import Choice, Sequence
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface import BackgroundProcessor, Limits, constructors
from fairseq_llrnn.huggingface.regular_expressions import Characters, Expression, parse_regex, shortest_text
from fairseq_llrnn.huggingface.token_texts import token_texts

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

byte_level = cache(lambda: tiny_tokenizer("byte_level"))
ATOMS = [
    "a", "b", "A", "é", "ß", "K", "[ab]", "[^a]", "[a-c]", "[]a]", "[^]]", r"[\d-]", r"[a\]b]", r"\d", r"\w", r"\s",
    r"\W", r"\.", r"\n", r"\x41", r"\u00e9", r"\101", r"\0", ".", "(?i:aB)", "(?s:.)", r"(?a:\w)", "(?:a|b)",
    "(a|bc|)", "(?P<name>a)", "{", "}", "{,", "a{", r"\-", r"[\w-]", r"[a\-z]", "[+--]", "(?x: a b #c\n)", "(?#c)",
    r"[\b]", r"\N{LATIN SMALL LETTER A}", "-", "#", " ",
]  # fmt: skip
POSTFIX = ["", "", "", "", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "*?", "+?", "{0}", "{}", "{,}"]
BEGINNINGS = ["", "", "", "", "(?i)", "(?ai)", "(?x)", "(?s)", "^", r"\A", "a|", "^b|"]
LETTERS = [*"abcABé1٣ \n]-{},2.\0KksS#\b", "\u212a", "ſ", "ß"]


def ends(part: Expression, text: str, at: int = 0) -> set[int]:
    """Where a match from a place may end."""
    if isinstance(part, Characters):
        return {at + 1} if at < len(text) and any(low <= ord(text[at]) <= high for low, high in part.ranges) else set()
    if isinstance(part, Choice):
        return {end for each in part.parts for end in ends(each, text, at)}
    if isinstance(part, Sequence):
        found = {at}
        for each in part.parts:
            found = {end for begin in found for end in ends(each, text, begin)}
        return found
    here, found = {at}, ({at} if part.least == 0 else set())
    for times in range(1, part.least + len(text) + 2 if part.most is None else part.most + 1):
        here = {end for begin in here for end in ends(part.part, text, begin)}
        found |= here if times >= part.least else set()
    return found


def random_patterns(seed: int, number: int) -> list[tuple[str, list[str]]]:
    chance, found = random.Random(seed), []
    while len(found) < number:
        parts = [chance.choice(ATOMS) + chance.choice(POSTFIX) for _ in range(chance.randint(1, 3))]
        pattern = chance.choice(BEGINNINGS) + "".join(parts) + chance.choice(["", "", "$", r"\Z"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except re.error:
            continue
        found.append((pattern, ["".join(chance.choices(LETTERS, k=chance.randint(0, 4))) for _ in range(12)]))
    return found


@pytest.mark.filterwarnings("ignore:Possible")
def test_random_expressions_match_what_python_matches() -> None:
    for pattern, texts in random_patterns(1, 1500):
        tree = parse_regex(pattern, "x")
        shortest = shortest_text(tree, 99)
        assert shortest is not None and re.fullmatch(pattern, shortest), pattern
        for text in texts:
            is_match = bool(re.fullmatch(pattern, text))
            assert (len(text) in ends(tree, text)) == is_match, (pattern, text)
            assert not is_match or len(shortest) <= len(text), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("b{3}|c{2}", "cc"), (r"[^\W_]{2}", "aa"), ("[7-9]x?", "7"), ("[\x00-é]", "a"), ("[À-é]", "À"),
        ("a{9}", "a" * 9), ("a{10}", None), ("a{4}b{4}c{4}", None), ("(a{1000000}){1000000}", None),
        ("(a{1000000}){0,3}b", "b"), (r"[^\s\S]", None), (r"a|[^\s\S]", "a"), (r"([^\s\S])*", ""),
    ],
)  # fmt: skip
def test_shortest_texts(pattern: str, text: str | None) -> None:
    assert shortest_text(parse_regex(pattern, "x"), 9) == text


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a(?=b)", "lookaround"), ("(?<!a)b", "lookaround"), (r"(a)\1", "backreferences"),
        ("(?P<x>a)(?P=x)", "backreferences"), (r"a\b", "anchors"), ("a$b", "anchors"), ("(?:^a)", "anchors"),
        ("(?:a|b$)", "anchors"), (r"(a)?(?(1)b)", "lookaround, conditions"),
    ],
)  # fmt: skip
def test_what_is_not_supported(pattern: str, what: str) -> None:
    message = f"^from_regex: expected an expression without {what}.*, found {re.escape(repr(pattern))}; write it withou"
    with pytest.raises(DataError, match=message):
        BackgroundProcessor.from_regex(pattern, byte_level())


def accepts(weights: object, text: str) -> bool:
    texts = token_texts(byte_level())
    states = weights.start(1)  # type: ignore[attr-defined]
    for token in [texts.later.index(bytes([byte])) for byte in text.encode()]:
        states = weights.advance(states, np.array([token]))  # type: ignore[attr-defined]
    (row,) = weights.rows(states, torch.zeros(1))  # type: ignore[attr-defined]
    return bool(row.dense(len(texts.later), torch.zeros(1))[byte_level().eos_token_id].isfinite())


@pytest.mark.filterwarnings("ignore:Possible")
def test_llguidance_matches_what_python_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    monkeypatch.setattr(constructors, "OWN_REGEX", Limits(seconds=1e-9))
    for pattern, texts in random_patterns(2, 60):
        try:
            weights = BackgroundProcessor.from_regex(pattern, byte_level()).weights
        except DataError:  # no text, or an empty one alone, which llguidance does not read
            assert not any(text and re.fullmatch(pattern, text) for text in texts), pattern
            continue
        for text in texts:
            assert accepts(weights, text) == bool(re.fullmatch(pattern, text)), (pattern, text)


@pytest.mark.parametrize("pattern", [r"\w{1,900}", "(a|b)*a(a|b){20}", "(a{1,5000}){1,5000}"])
def test_large_expressions_end_in_time(pattern: str) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    tokenizer = byte_level()
    constraint, row = BackgroundProcessor.from_regex(pattern, tokenizer, unread=0, longest=30), []
    generator = torch.Generator().manual_seed(1)
    while not row or row[-1] != tokenizer.eos_token_id:
        scores = torch.randn(1, len(tokenizer), generator=generator)
        scores[0, tokenizer.eos_token_id] = -9.0
        row.append(int(constraint(torch.tensor([row], dtype=torch.long), scores).argmax()))
    text = tokenizer.decode(row[:-1], clean_up_tokenization_spaces=False)
    assert len(row) <= 30 and re.fullmatch(pattern.replace("5000", "500"), text)
