"""`longest`: each text ends in time, no prefix is a dead end, and p' sums to one over the texts within the limit."""

import os
import random
from collections.abc import Callable
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch

from fairseq_llrnn.errors import DataError

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

from limited_texts import END, all_texts, tokenizer_of

from fairseq_llrnn.huggingface import BackgroundProcessor

Process = BackgroundProcessor
ARPA = """\\data\\
ngram 1=6

\\1-grams:
-0.9\t<unk>
-99\t<s>
-0.6\t</s>
-0.5\ta
-0.7\tb
-0.7\tc

\\end\\
"""
CASES: dict[str, tuple[int, Callable[..., BackgroundProcessor]]] = {  # with the shortest limit
    "regex": (4, lambda t, **o: Process.from_regex(" [a-c ]*[c]", t, **o)),
    "words": (2, lambda t, **o: Process.from_words(["a", "bc"], t, **o)),
    "schema-like": (3, lambda t, **o: Process.from_regex("(ab|c)(ab|c)*", t, canonical=False, **o)),
    "two terms": (4, lambda t, **o: Process.from_terms(["a", ["b", "bc"]], t, **o)),
    "n-gram": (1, lambda t, **o: Process.from_ngram("arpa", t, **o)),
    "n-gram over words": (1, lambda t, **o: Process.from_ngram("arpa", t, unit="words", **o)),
    "n-gram times regex": (
        3,
        lambda t, **o: Process.product([Process.from_ngram("arpa", t), Process.from_regex("[ab]+c*", t)], **o),
    ),
    "mixture": (
        2,
        lambda t, **o: Process.mixture([Process.from_regex("a(bb)*", t), Process.from_regex("(cc)+", t)], [1, 2], **o),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_probabilities_of_the_texts_within_the_limit_sum_to_one(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arpa").write_text(ARPA)
    tokenizer, (least, make) = tokenizer_of("Ġ", "ab"), CASES[case]
    for longest in (least, least + 1, 6):
        found = all_texts(make(tokenizer, longest=longest), longest)
        assert found and sum(np.exp(list(found.values()))) == pytest.approx(1.0)


def test_beams_and_samples_have_the_probabilities_within_the_limit() -> None:
    """The case of issue 64: the sum was 1.0 for ten steps, then 0.0025."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokenizer = tokenizer_of(*letters, "Ġ", ".")
    processor, written = Process.from_regex(" [a-z ]*[.]", tokenizer, longest=12), [END]
    generator = torch.Generator().manual_seed(1)
    for _ in range(12):
        log_p = processor(torch.tensor([written]), torch.randn(1, len(tokenizer), generator=generator).double())[0]
        assert log_p.exp().sum().item() == pytest.approx(1.0)
        log_p[[tokenizer.convert_tokens_to_ids("."), END]] -= 50  # as late as possible
        written.append(int(log_p.argmax()))
    assert written[-1] == END and len(written) == 13


INNER = ["aĠc", "bĠa", "aĠ", "cĠb", "Ġc", "ab", "ca", "Ġab", "bĠcĠa"]


@pytest.mark.parametrize("seed", range(12))
def test_terms_have_no_dead_ends_whatever_the_tokens(seed: int) -> None:
    """Tokens with an inner blank complete one term and undo another."""
    chance = random.Random(seed)
    tokenizer = tokenizer_of("Ġ", *chance.sample(INNER, 3))
    stock = ["a", "b", "c", "ab", "ac", "ca", "a c", "b a"]
    terms = [chance.sample(stock, chance.choice([1, 1, 2])) for _ in range(chance.choice([2, 2, 3]))]
    least = Process.from_terms(terms, tokenizer).weights.least(np.zeros((1, len(terms)), dtype=np.int64))
    with pytest.raises(DataError, match=f"`longest` of at least {least}, within which a string can be completed, f"):
        Process.from_terms(terms, tokenizer, longest=least - 1)
    for longest in range(least, min(least + 3, 8)):
        found = all_texts(Process.from_terms(terms, tokenizer, unread=0, longest=longest), longest)
        assert sum(np.exp(list(found.values()))) == pytest.approx(1.0)
        for row in found:
            words = f" {tokenizer.decode(row, clean_up_tokenization_spaces=False)} "
            assert all(any(f" {form} " in words for form in forms) for forms in terms), words


def test_terms_that_no_token_separates() -> None:
    tokenizer = tokenizer_of("ab")
    Process.from_terms(["a"], tokenizer, longest=2)
    with pytest.raises(DataError, match="from_terms: longest: expected a token that begins with a space or a sign"):
        Process.from_terms(["a", "b"], tokenizer, longest=9)


@pytest.mark.parametrize(
    ("terms", "least"), [(["c", "ac"], 5), (["a", "b", "c"], 6), (["a c", "b"], 4), (["c"], 2), (["a c", "b", "ac"], 7)]
)
def test_the_least_limit_of_terms(terms: list[str], least: int) -> None:
    tokenizer = tokenizer_of("\u0120", "a\u0120c")
    with pytest.raises(DataError, match=f"`longest` of at least {least}, within"):
        Process.from_terms(terms, tokenizer, longest=1)
    assert all_texts(Process.from_terms(terms, tokenizer, unread=0, longest=least), least)
