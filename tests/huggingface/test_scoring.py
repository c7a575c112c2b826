"""Scores of texts under models of transformers, against sums that are made token by token and by enumeration."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from fairseq_llrnn.errors import DataError, OptionError

pytest.importorskip("transformers")
from small_transformers import byte_level, network, sentencepiece, wordpiece, words_between_blanks

from fairseq_llrnn.huggingface.scoring import CausalScorer, aligned

TOKENIZERS: list[Callable[[], Any]] = [byte_level, sentencepiece, wordpiece, words_between_blanks]
LINES = ["ab a bab", "", "a", "b ab a b", "ab ab ab"]


def log_probs(model: Any, before: Sequence[int]) -> torch.Tensor:
    """Of the next token, (K,), without padding and without a batch."""
    with torch.inference_mode():
        return model(torch.tensor([list(before)])).logits[0, -1].log_softmax(0)


def log_p(model: Any, start: int, tokens: Sequence[int]) -> float:
    """Of a sequence of tokens, one by one."""
    return math.fsum(float(log_probs(model, [start, *tokens[:at]])[token]) for at, token in enumerate(tokens))


@pytest.mark.parametrize("make", TOKENIZERS)
def test_a_word_is_the_sum_of_its_tokens(make: Callable[[], Any]) -> None:
    """And a line is the sum of all its tokens and the end, in batches of any size."""
    tokenizer = make()
    model, end = network(len(tokenizer)), tokenizer.eos_token_id
    scorer = CausalScorer(model, tokenizer)
    for number, (line, score) in enumerate(zip(LINES, scorer.lines(LINES), strict=True), start=1):
        tokens = tokenizer(line, add_special_tokens=False).input_ids
        assert score.number == number and list(score.words) == line.split()
        assert score.log_prob == pytest.approx(log_p(model, end, [*tokens, end]), abs=1e-5)
        assert sum(score.num_tokens) == len(tokens)
        begin = 0
        for word, (_, value, size, _) in zip(line.split(), score.per_word(), strict=False):
            part = tokenizer.convert_ids_to_tokens(tokens[begin : begin + size])
            assert "".join(part).replace("Ġ", "").replace("▁", "").replace("##", "") in (word, "<unk>")
            both = (log_p(model, end, tokens[:to]) for to in (begin, begin + size))
            before, until = both
            assert value == pytest.approx(until - before, abs=1e-5)
            begin += size
    alone = CausalScorer(model, tokenizer, max_tokens=1)
    both = ([score.log_prob for score in each.lines(LINES)] for each in (alone, scorer))
    assert next(both) == pytest.approx(next(both), abs=1e-5)


def spellings(tokenizer: Any, line: str) -> Iterator[tuple[int, ...]]:
    """All sequences of tokens that decode to a line, in which no token spans two words: by trying all of them."""
    tokens = [t for t in range(len(tokenizer)) if t not in tokenizer.all_special_ids]
    plain = {t: tokenizer.convert_ids_to_tokens(t).lstrip("Ġ▁") for t in tokens}
    tokens = [t for t in tokens if all(part in line for part in plain[t].replace("##", "").split())]
    for length in range(1, len(line) + 2):
        for sequence in itertools.product(tokens, repeat=length):
            if tokenizer.decode(sequence, clean_up_tokenization_spaces=False) == line:
                yield sequence


@pytest.mark.parametrize("make", TOKENIZERS)
@pytest.mark.parametrize("line", ["ab", "a ab", "abb", "a"])
def test_all_tokenisations_against_enumeration(make: Callable[[], Any], line: str) -> None:
    """The surprisal of the last word, and of the end, is the ratio of two sums over whole sequences."""
    tokenizer = make()
    model, end = network(len(tokenizer), seed=3), tokenizer.eos_token_id
    if tokenizer.unk_token_id in tokenizer(line).input_ids:
        pytest.skip("words of a dictionary have one tokenisation")
    rows = CausalScorer(model, tokenizer, tokenisations="all").surprisals([line], unit="nats")

    def total(text: str, *after: int) -> float:
        """log p of a text in all its tokenisations."""
        return math.log(math.fsum(math.exp(log_p(model, end, [*t, *after])) for t in spellings(tokenizer, text)))

    beginnings = [" ".join(line.split()[:many]) for many in range(1, len(line.split()) + 1)]
    until = [0.0, *map(total, beginnings), total(line, end)]
    expected = [before - after for before, after in itertools.pairwise(until)]
    assert [row.surprisal for row in rows] == pytest.approx(expected, abs=1e-5)
    if make is byte_level and line == "abb":
        assert len([*spellings(tokenizer, line)]) == 2


@pytest.mark.parametrize("make", [byte_level, sentencepiece])
def test_corrected_words_sum_to_one(make: Callable[[], Any]) -> None:
    """After some words, p of all next words and the end sums to 1; without the correction to more."""
    tokenizer = make()
    model = network(len(tokenizer), seed=5)
    end = tokenizer.eos_token_id
    texts = [tokenizer.convert_ids_to_tokens(t) for t in range(len(tokenizer))]
    begins = [t for t, text in enumerate(texts) if text[0] in "Ġ▁" or t == end]
    context = tokenizer("ab a", add_special_tokens=False).input_ids

    def boundary(tokens: Sequence[int]) -> float:
        return float(log_probs(model, [end, *tokens])[begins].logsumexp(0))

    # words in up to n tokens, and what goes on after n tokens: by hand
    others = [t for t in range(len(tokenizer)) if t not in begins]
    total, more = math.exp(float(log_probs(model, [end, *context])[end])), 0.0
    for first in set(begins) - {end}:
        for length in range(3):
            for rest in itertools.product(others, repeat=length):
                p = log_p(model, end, [*context, first, *rest]) - log_p(model, end, context)
                total += math.exp(p + boundary([*context, first, *rest]))
                more += math.exp(p) * (1 - math.exp(boundary([*context, first, *rest]))) if length == 2 else 0.0
    norm = math.exp(boundary(context))
    assert (total + more) / norm == pytest.approx(1.0)

    plain, corrected = (
        CausalScorer(model, tokenizer, bow_correction=corrects).surprisals(["ab a ab"], unit="nats")
        for corrects in (False, True)
    )
    word = tokenizer("ab a ab", add_special_tokens=False).input_ids[len(context) :]
    by_hand = log_p(model, end, [*context, *word]) - log_p(model, end, context)
    assert -plain[2].surprisal == pytest.approx(by_hand, abs=1e-5)
    by_hand += boundary([*context, *word]) - boundary(context)
    assert -corrected[2].surprisal == pytest.approx(by_hand, abs=1e-5)
    sums = [sum(row.surprisal for row in rows) for rows in (plain, corrected)]
    assert sums[0] == pytest.approx(sums[1], abs=1e-5)


@pytest.mark.parametrize("tokenisations", ["canonical", "all"])
@pytest.mark.parametrize("corrects", [False, True])
@pytest.mark.parametrize("make", [byte_level, sentencepiece, words_between_blanks])
def test_rows_sum_to_the_sentence(make: Callable[[], Any], corrects: bool, tokenisations: str) -> None:
    tokenizer = make()
    model = network(len(tokenizer), seed=7)
    options: dict[str, Any] = {"bow_correction": corrects, "tokenisations": tokenisations}
    scorer = CausalScorer(model, tokenizer, **options)
    plain = CausalScorer(model, tokenizer, tokenisations=tokenisations)
    for line in LINES[:3]:
        total = sum(row.surprisal for row in scorer.surprisals([line], unit="nats"))
        assert total == pytest.approx(plain.score([line], unit="nats", per="text"), abs=1e-5)
    if make is words_between_blanks:
        assert [r.surprisal for r in scorer.surprisals(LINES)] == pytest.approx(
            [r.surprisal for r in plain.surprisals(LINES)], abs=1e-4
        )


def test_without_ends() -> None:
    tokenizer = byte_level()
    model = network(len(tokenizer))
    whole, without = (CausalScorer(model, tokenizer, has_ends=ends) for ends in (True, False))
    rows = without.surprisals(LINES)
    assert rows == [row for row in whole.surprisals(LINES) if row.word != "</s>"]
    assert without.score(LINES, per="text") == pytest.approx(sum(row.surprisal for row in rows))
    tokens = sum(len(tokenizer(line, add_special_tokens=False).input_ids) for line in LINES)
    assert without.score(LINES, per="token") == pytest.approx(without.score(LINES, per="text") / tokens)
    assert whole.score(LINES, per="token") == pytest.approx(whole.score(LINES, per="text") / (tokens + len(LINES)))


@pytest.mark.parametrize(
    ("line", "offsets", "expected"),
    [
        ("ab c", [(0, 2), (2, 4)], (["ab", "c"], [1, 2])),
        ("ab c", [(0, 1), (1, 2), (2, 3), (3, 4)], (["ab", "c"], [2, 4])),  # a token of a blank is of the next word
        ("ab c", [(0, 3), (3, 4)], (["ab", "c"], [1, 2])),  # blanks at the end of tokens
        ("ab c d", [(0, 4), (4, 6)], (["ab c", "d"], [1, 2])),  # a token of two words
        ("ab c d", [(0, 1), (1, 6)], (["ab c d"], [2])),
        ("é a", [(0, 1), (0, 1), (1, 3)], (["é", "a"], [2, 3])),  # two bytes of one letter
        ("a \u200b b", [(0, 1), (3, 5)], (["a", "\u200b", "b"], [1, 1, 2])),  # a normaliser removes a word
        ("a", [(0, 0), (0, 1)], (["a"], [2])),  # ▁ alone
        ("", [], ([], [])),
    ],
)
def test_tokens_are_given_to_words(
    line: str, offsets: list[tuple[int, int]], expected: tuple[list[str], list[int]]
) -> None:
    assert aligned(line.split(), offsets) == expected


def test_equal_sentences_are_a_tie_in_half_precision() -> None:
    tokenizer = byte_level()
    scorer = CausalScorer(network(len(tokenizer)).bfloat16(), tokenizer)
    found = scorer.minimal_pairs(["ab a", "a", "ab"], ["ab a", "ab ab ab ab", "ab"])
    assert [pair.is_correct for pair in found.pairs] == [False, True, False] and found.accuracy == pytest.approx(1 / 3)


def test_the_mode_of_a_model_comes_back() -> None:
    tokenizer = byte_level()
    model = network(len(tokenizer)).train()
    CausalScorer(model, tokenizer).score(["a b"])
    assert model.training


@pytest.mark.parametrize(
    ("options", "lines", "message"),
    [
        ({"tokenisations": "al"}, ["a"], "tokenisations='al': expected one of canonical, all; did you mean 'all'?"),
        ({"max_tokenisations": 0}, ["a"], "max_tokenisations 0: expected a number of at least 1"),
        (
            {"tokenisations": "all", "max_tokenisations": 50}, ["a", "ab " * 6],
            "line 2: expected at most 50 tokenisations, found 2,048; raise max_tokenisations, break the line",
        ),
        ({}, ["a b a b a b", "a " * 41], "line 2: expected at most 39 words, the limit of the model"),
        ({}, ["ab b " * 15], "line 1: expected at most 20 words, the limit of the model, found 30"),
    ],
)  # fmt: skip
def test_messages(options: dict[str, Any], lines: list[str], message: str) -> None:
    tokenizer = byte_level()
    with pytest.raises((DataError, OptionError)) as error:
        CausalScorer(network(len(tokenizer)), tokenizer, **options).score(lines)
    assert message in str(error.value)


def test_messages_about_tokenizers() -> None:
    tokenizer = wordpiece()
    scorer = CausalScorer(network(len(tokenizer)), tokenizer, bow_correction=True)
    with pytest.raises(DataError, match="line 1: bow_correction: expected that words begin after blanks alone"):
        scorer.score(["ab'a"])
    tokenizer.eos_token = None
    model = network(9)
    model.config.eos_token_id = None
    with pytest.raises(DataError, match="expected a tokenizer with an end of sentence, found none; set its eos_token"):
        CausalScorer(model, tokenizer)
    with pytest.raises(DataError, match="expected a fast tokenizer, found str"):
        CausalScorer(model, "gpt2")
