"""Constraints from untrusted input: limits, and one clear error each."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.huggingface import BackgroundProcessor, Limits

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

P = BackgroundProcessor
SMALL = Limits(states=300, seconds=20, megabytes=30)
tokenizer_of = cache(tiny_tokenizer)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda t: P.from_regex("(a{1,5000}){1,5000}", t, canonical=True),
            "from_regex: expected at most 1,000 megabytes, found about",
        ),
        (
            lambda t: P.from_regex("(a|b)*a(a|b){20}", t, canonical=True, limits=SMALL),
            r"at most 300 states, found 301; .*=Limits.states",
        ),
        (
            lambda t: P.from_regex(r"\w{1,900}", t, canonical=True, limits=Limits(megabytes=5)),
            "at most 5 megabytes, found about .* raise the limit",
        ),
        (
            lambda t: P.from_regex("a{1,200}", t, canonical=True, limits=Limits(seconds=1e-9)),
            "at most 1e-09 seconds of processor time, found more",
        ),
        (lambda t: P.from_regex("a" * 200_000, t, canonical=True, limits=SMALL), "at most 30 megabytes, found about"),
        (lambda t: P.from_terms("rouge", t), "from_terms: expected a list of terms, found the text 'rouge'; put"),
        (lambda t: P.from_words("oui", t), "from_words: expected a list of words, found the text 'oui'; put"),
        (lambda t: P.from_grammar("nope.lark", t), "nope.lark"),
        (lambda t: P.from_regex("(" * 3000, t), "from_regex: expected fewer groups inside each other"),
        (lambda t: P.from_regex("(a", t), "a regular expression in Python's syntax, found missing \\)"),
        (lambda t: P.from_regex("a*", t, canonical=True), "at most 100,000 strings with canonical=True"),
        (lambda t: P.from_grammar('S -> "a" S | "b"', t), "the grammar nests without a bound; give it"),
        (
            lambda t: P.from_grammar("%depth 40\nS -> S S | 'a' | 'b'", t, limits=SMALL),
            "expected at most .*, found .* raise",
        ),
        (lambda t: P.from_grammar('S -> "a', t), "from_grammar, line 1: expected words in quotes"),
        (lambda t: P.from_grammar("start: x", t), "from_grammar: expected a Lark grammar that llguidance reads"),
        (lambda t: P.from_words([], t), "from_words: expected words, found none"),
        (lambda t: P.from_words(["a", ""], t), "from_words: expected words, found an empty one"),
        (lambda t: P.from_words(["a", "\ud800"], t), r"from_words: expected words, found '\\ud800'; give"),
        (lambda t: P.from_words(["a", 1], t), "from_words: expected words, found 1; give"),
        (lambda t: P.from_words(["a"], t, separators=[1]), r"from_words: separators: expected a list .*, found \[1\]"),
        (lambda t: P.from_words(["a"], t, separators=", "), "separators: expected a list of strings, found ', '; give"),
        (lambda t: P.from_grammar("S -> '\ud800'", t), r"from_grammar: expected words in UTF-8, found '\\ud800'"),
        (lambda t: P.from_terms([["a", "\ud800"]], t), r"from_terms: expected forms in UTF-8, found '\\ud800'"),
        (lambda t: P.from_terms([1], t), "from_terms: expected forms in UTF-8, found 1; change it"),
        (lambda t: P.from_terms([], t), "from_terms: expected terms with a form each, found none"),
        (lambda t: P.from_terms([["a"], [" "]], t), "from_terms: expected terms with a form each, found none"),
        (
            lambda t: P.from_regex("a{9}", t, longest=2),
            "`longest` of at least .*, within which a string can be completed, found 2",
        ),
        (
            lambda t: P.product([P.from_regex("a", t), P.from_regex("b", t)]),
            "product: expected a string that the token",
        ),
        (lambda t: P.product([]), "product: expected at least one processor, found none"),
        (
            lambda t: P.from_regex("a", t) * P.from_regex("a", tokenizer_of("unigram")),
            "processors for one tokenizer, found",
        ),
    ],
)  # fmt: skip
def test_one_error_each(build: Callable[[Any], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(tokenizer_of("byte_level"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: P.from_regex("Yes", t), "found none; use characters that it has.*some tokenizers have lower case"),
        (lambda t: P.from_regex("Yes", t, canonical=True), "as the tokenizer writes them, found 'Yes', which .* 'yes'"),
        (lambda t: P.from_terms(["日本"], t), "found unknown characters in '日本'"),
    ],
)
def test_texts_that_a_tokenizer_cannot_write(build: Callable[[Any], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(tokenizer_of("wordpiece"))


def test_options() -> None:
    tokenizer = tokenizer_of("byte_level")
    with pytest.raises(OptionError, match="mixture: expected a weight above 0 for each of 1 processors, found"):
        P.mixture([P.from_regex("a", tokenizer)], [-1.0])
    with pytest.raises(OptionError, match="Limits.states=0.: expected a number above 0"):
        Limits(states=0)
    for longest in ("3", 2.5, 0):
        with pytest.raises(OptionError, match=f"longest {longest}: expected a.* number of at least 1"):
            P.from_regex("a", tokenizer, longest=longest)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unsupported operand"):
        P.from_regex("a", tokenizer) * 2  # type: ignore[operator]
    with pytest.raises(OptionError, match="canonical=True does not go with a Lark grammar"):
        P.from_grammar("start: /a/", tokenizer, canonical=True)
    with pytest.raises(DataError, match="expected a fast tokenizer .PreTrainedTokenizerFast., found str"):
        P.from_regex("a", "gpt2")
    with pytest.raises(DataError, match="expected scores of at least"):
        P.from_regex("a", tokenizer)(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, 9))


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llguidance", None)
    with pytest.raises(OptionError, match=r"expected the library .*, found none; in a checkout.*pip install '.\[hf\]'"):
        P.from_grammar("start: /a/", tokenizer_of("byte_level"))


@pytest.mark.parametrize("kind", ["byte_level", "sentencepiece_bpe"])
def test_lark_grammars_under_beams(kind: str) -> None:
    """A grammar without a bound on its depth: each step allows what the grammar does."""
    tokenizer = tokenizer_of(kind)
    processor = P.from_grammar('start: "(" start ")" | "c"\n', tokenizer)
    generator = torch.Generator().manual_seed(1)
    written = torch.zeros(4, 1, dtype=torch.long)
    for _ in range(12):
        log_p = processor(written, torch.randn(4, len(tokenizer), generator=generator))
        parents = torch.randint(0, 4, (4,), generator=generator)
        following = torch.multinomial(log_p.exp(), 1, generator=generator)
        written = torch.cat([written, following], dim=1)[parents]
    assert processor.states.full_reads == 1
    for row in written.tolist():
        text = tokenizer.decode(row[1:], skip_special_tokens=True)
        inner = text.lstrip("(")
        opened = len(text) - len(inner)
        assert inner in [*("c" + ")" * many for many in range(opened + 1)), ""], text
        assert 1 not in row or inner == "c" + ")" * opened


@pytest.mark.parametrize("kind", ["regex", "json_schema", "grammar", "words", "terms", "ngram"])
def test_arguments_in_another_order(kind: str) -> None:
    message = rf"from_{kind}: expected a fast tokenizer \(PreTrainedTokenizerFast\), found str"
    with pytest.raises(DataError, match=message):
        getattr(P, f"from_{kind}")(tokenizer_of("byte_level"), "[a-z]")


@pytest.mark.parametrize(
    "size, message", [(400, "found two with other tokens"), (330, "expected processors for one tokenizer, found")]
)
def test_processors_of_two_tokenizers(size: int, message: str) -> None:
    one, other = tiny_tokenizer("byte_level"), tiny_tokenizer("byte_level", size, ["la mer est calme"] * 4)
    if size == 400:
        other.add_tokens([f"<{at}>" for at in range(len(one) - len(other))])
    with pytest.raises(DataError, match=message):
        P.from_regex("a", one) * P.from_regex("b", other)
