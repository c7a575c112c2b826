"""Translations between lemmas: equal to the plain formula, lawful, and in training what other sentences would say."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_llrnn.alignment.source_lemmas import LemmaForms
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground
from fairseq_llrnn.backgrounds.source_rows import FormShares, shared_table
from fairseq_llrnn.testing import check_background

BOS, PAD, EOS, UNK = range(4)
# words 4–6 are forms of one lemma, 7 and 8 of another; 6 may be of either; 9 is one by itself; no sentence has 5 and 8
LEMMAS = [[], [], [], [], ["a"], ["a"], ["a", "b"], ["b"], ["b"], []]
NUM_WORDS, NUM_SOURCES = len(LEMMAS), 8
CLASS_OF = torch.tensor([0, 0, 1, 2, 3, 3, 4, 4, 3, 5])
NUM_CLASSES = 6
WORDS = np.arange(NUM_WORDS) >= 4
SPEAKS = torch.arange(NUM_SOURCES) >= 3
# source and target, each source word linked to the target word in its place; where a word meets another target word
# than its own, no sentence links the two: links that are left out are those of all words that meet (lexical.py)
PAIRS = [
    ([4, 5], [4, 7]), ([4, 6], [4, 9]), ([5, 4], [7, 6]), ([6], [9]), ([4], [4]), ([5], [9]), ([6], [7]),
    ([4, 7], [4, 4]),
]  # fmt: skip
SENTENCES = st.integers(0, len(PAIRS) - 1)


def log_weights() -> Tensor:
    weights = torch.randn(NUM_WORDS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights[[BOS, PAD]] = -float("inf")
    return weights - weights.logsumexp(0)


def word_counts(pairs: list[tuple[list[int], list[int]]]) -> np.ndarray:
    return np.bincount([x for _, target in pairs for x in target], minlength=NUM_WORDS)


FORMS = LemmaForms.from_lemmas(LEMMAS, word_counts(PAIRS), WORDS)


def background(power: float) -> LexicalBackground:
    links = Counter((s, int(FORMS.head_of[x])) for source, target in PAIRS for s, x in zip(source, target, strict=True))
    sources, heads = (np.array(ids) for ids in zip(*links, strict=True))
    table = LexicalTable.from_pairs(sources, heads, np.array(list(links.values()), dtype=float), NUM_SOURCES, 9)
    shares = FormShares(FORMS, power, torch.float64)
    known = torch.from_numpy(WORDS)
    return LexicalBackground(CLASS_OF, NUM_CLASSES, log_weights(), table, known, SPEAKS, 0.4, False, shares).double()


def plain(source: list[int], pairs: list[tuple[list[int], list[int]]], power: float) -> Tensor:
    """b(C; x) as `pairs` say it, counted one by one: (V,). Heads are those of all pairs."""
    b0, counts = log_weights().exp(), word_counts(pairs)
    lemma_of = [None if not its else "a" if word in (4, 5, 6) else "b" for word, its in enumerate(LEMMAS)]
    mean = torch.zeros_like(b0)
    for s in source:
        linked = [x for src, target in pairs for t, x in zip(src, target, strict=True) if t == s]
        says = torch.zeros_like(b0)
        for x in linked:
            forms = [w for w in range(4, NUM_WORDS) if lemma_of[x] in LEMMAS[w]] if LEMMAS[x] else [x]
            shown = [counts[w] if lemma_of[w] == lemma_of[x] else 0 for w in forms]
            shares = [(n + 0.5) ** power for n in shown]
            for w, share in zip(forms, shares, strict=True):
                says[w] += b0[4:].sum() * share / sum(shares) / len(linked)
        says[[EOS, UNK]] = b0[[EOS, UNK]]
        mean += (says if linked else b0) / len(source)
    return 0.6 * b0 + 0.4 * mean


def test_heads_and_forms() -> None:
    assert FORMS.head_of.tolist() == [0, 1, 2, 3, 4, 4, 4, 7, 7, 9]
    rows = [FORMS.forms[a:b].tolist() for a, b in zip(FORMS.offsets[:-1], FORMS.offsets[1:], strict=True)]
    assert rows == [[], [], [], [], [4, 5, 6], [], [], [6, 7, 8], [], [9]]
    assert FORMS.counts.tolist() == [5, 0, 1, 0, 3, 0, 3]  # the tokens of 6 count for the lemma that is more frequent
    FORMS.check(WORDS)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_values(power: float) -> None:
    bound = background(power).bind(torch.tensor([[4, 5, EOS], [6, EOS, PAD]]))
    expected = torch.stack([plain([4, 5], PAIRS, power), plain([6], PAIRS, power)])
    torch.testing.assert_close(bound.view(bound.start(2)).log_weights.exp(), expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(expected.sum(1), torch.ones(2, dtype=torch.float64))


@settings(max_examples=20, deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=3), st.sampled_from([0.0, 0.5, 1.0]))
def test_training_says_what_the_other_sentences_would_say(batch: list[int], power: float) -> None:
    """Links and counts of forms estimated again without the sentence, one sentence at a time."""
    source, target = (
        torch.tensor([[*PAIRS[i][side], *[EOS] * (3 - len(PAIRS[i][side]))] for i in batch]) for side in (0, 1)
    )
    bound = background(power).bind(source, target)
    expected = torch.stack([plain(PAIRS[i][0], [pair for n, pair in enumerate(PAIRS) if n != i], power) for i in batch])
    torch.testing.assert_close(bound.view(bound.start(len(batch))).log_weights.exp(), expected, rtol=1e-6, atol=1e-9)


def test_a_form_that_is_shown_once_is_in_training_like_one_that_is_never_shown() -> None:
    once = LemmaForms.from_lemmas(LEMMAS, np.array([0, 0, 0, 0, 5, 0, 1, 0, 0, 0]), WORDS)
    shares = FormShares(once, 0.5, torch.float64)
    keys, weights = torch.tensor([4]), torch.ones(1, dtype=torch.float64)
    said, spread, _ = shares.spread(keys, weights, torch.tensor([[6, EOS]]))
    by_word = dict(zip(said.tolist(), spread.tolist(), strict=True))
    assert by_word[6] == by_word[5] < by_word[4]
    said, spread, _ = shares.spread(keys, weights, None)
    by_word = dict(zip(said.tolist(), spread.tolist(), strict=True))
    assert by_word[5] < by_word[6] < by_word[4]


@pytest.mark.parametrize("power", [0.0, 0.7])
def test_it_is_lawful(power: float) -> None:
    check_background(background(power), source=torch.tensor([[4, 5, EOS], [6, 3, EOS]]))


def test_the_table_of_words_for_people() -> None:
    unbound = background(0.5)
    links = Counter((s, int(FORMS.head_of[x])) for source, target in PAIRS for s, x in zip(source, target, strict=True))
    sources, heads = (np.array(ids) for ids in zip(*links, strict=True))
    table = LexicalTable.from_pairs(sources, heads, np.array(list(links.values()), dtype=float), NUM_SOURCES, 9)
    words = shared_table(table, FORMS, 0.5)
    words.check(WORDS)
    bound = unbound.bind(torch.tensor([[4]]))
    says = (bound.view(bound.start(1)).log_weights.exp()[0] - 0.6 * log_weights().exp()) / 0.4
    expected = torch.zeros(NUM_WORDS, dtype=torch.float64)
    for word, probability in words.row(4):
        expected[word] = probability
    torch.testing.assert_close(says[4:] / log_weights().exp()[4:].sum(), expected[4:], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("head_of", [0, 1, 2, 3, 4, 4, 4, 7, 7, 99], "name a lemma that is no word"),
        ("head_of", [0, 1, 2, 3, 9, 4, 4, 7, 7, 9], "lack a word among those of its own lemma"),
        ("forms", [4, 5, 6, 6, 7, 99, 9], "point outside"),
        ("forms", [4, 5, 5, 6, 7, 8, 9], "contain a form twice"),
        ("forms", [4, 5, 3, 6, 7, 8, 9], "that the background forbids"),
        ("counts", [3, 0, 2, 0, 2, 0, -1], "have invalid counts"),
        ("offsets", [0, 0, 0, 0, 0, 3, 3, 3, 6, 6, 8], "point outside"),
    ],
)
def test_damaged_forms(field: str, value: list[int], what: str) -> None:
    arrays = {name: getattr(FORMS, name).copy() for name in ("head_of", "offsets", "forms", "counts")}
    arrays[field] = np.array(value, dtype=arrays[field].dtype)
    with pytest.raises(ValueError, match=what):
        LemmaForms(**arrays).check(WORDS)
