"""Rows of source words that fall back on their lemmas: the plain formula, and in training what other sentences say."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_llrnn.alignment.bitext import Bitext, BitextSide
from fairseq_llrnn.alignment.source_lemmas import LemmaForms, SourceLemmas
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground
from fairseq_llrnn.backgrounds.source_rows import FormShares, SourceRows
from fairseq_llrnn.testing import check_background

BOS, PAD, EOS, UNK = range(4)
# source words 4, 5 and 6 are forms of one lemma, 7 is one by itself; 8 is a form of it that no sentence has; 9 is alone
LEMMAS: list[list[str]] = [[], [], [], [], ["see"], ["see"], ["see"], ["boy"], ["boy"], []]
NUM_SOURCES, NUM_WORDS, KAPPA = len(LEMMAS), 9, 1.5
SPEAKS = np.arange(NUM_SOURCES) >= 3
IS_SOURCE, IS_WORD = np.arange(NUM_SOURCES) >= 4, np.arange(NUM_WORDS) >= 4
# each source word is linked to the target word in its place. What the sentence can have given is told by how often
# words come in it, so no sentence has a pair that is not linked in it and is in another (min(a, b), source.py)
PAIRS = [
    ([4, 5], [4, 4]), ([4, 4, 7], [4, 4, 5]), ([5], [6]), ([6], [4]), ([7, 6], [5, 6]), ([7], [7]), ([9], [8]),
    ([5, 6], [6, 6]),
]  # fmt: skip
SENTENCES = st.integers(0, len(PAIRS) - 1)
Pair = tuple[list[int], list[int]]


def counted(pairs: list[Pair], heads: list[int]) -> LexicalTable:
    links = Counter((heads[s], x) for source, target in pairs for s, x in zip(source, target, strict=True))
    sources, targets = (np.array(ids) for ids in zip(*links, strict=True))
    return LexicalTable.from_pairs(sources, targets, np.array(list(links.values()), dtype=float), NUM_SOURCES, 9)


def source_lemmas() -> SourceLemmas:
    bitext = Bitext(*(_sentences([pair[side] for pair in PAIRS]) for side in (0, 1)))
    asked = []

    def align(changed: Bitext) -> LexicalTable:
        asked.append(changed)
        return counted(PAIRS, [0, 1, 2, 3, 4, 4, 4, 7, 7, 9])

    found = replace(SourceLemmas.estimate(bitext, LEMMAS, IS_SOURCE, align), pseudo_links=KAPPA)
    assert found.head_of.tolist() == [0, 1, 2, 3, 4, 4, 4, 7, 7, 9]
    assert asked[0].source.tokens.tolist() == [int(found.head_of[s]) for source, _ in PAIRS for s in source]
    assert asked[0].target is bitext.target
    found.check(IS_SOURCE, IS_WORD)
    return found


def _sentences(ids: list[list[int]]) -> BitextSide:
    return BitextSide(np.array([s for row in ids for s in row]), np.cumsum([0, *map(len, ids)]))


def rows(lemmas: bool = True) -> SourceRows:
    forms = counted(PAIRS, list(range(NUM_SOURCES)))
    return SourceRows(forms, torch.arange(NUM_WORDS), source_lemmas() if lemmas else None, torch.float64)


def plain(s: int, pairs: list[Pair], lemmas: bool = True) -> Tensor:
    """t(u | s), counted one by one: (V,), zeros where nothing is known."""
    own, shared = (torch.zeros(NUM_WORDS, dtype=torch.float64) for _ in range(2))
    for source, target in pairs:
        for t, x in zip(source, target, strict=True):
            own[x] += t == s
            shared[x] += t == s or bool(LEMMAS[t] and LEMMAS[t] == LEMMAS[s])
    if lemmas and shared.sum() > 0:
        own = own + KAPPA * shared / shared.sum()
    return own / own.sum() if own.sum() > 0 else own


def said(found: tuple[Tensor, Tensor, Tensor, Tensor], shape: tuple[int, int]) -> Tensor:
    """(B, L, V)"""
    keys, shares, token, known = found
    assert (keys // NUM_WORDS == token // shape[1]).all()
    table = torch.zeros(shape[0] * shape[1], NUM_WORDS, dtype=torch.float64)
    table.index_put_((token, keys % NUM_WORDS), shares, accumulate=True)
    assert torch.equal(known.flatten(), table.sum(1) > 0.5)
    return table.view(*shape, -1)


def padded(ids: list[list[int]]) -> Tensor:
    return torch.tensor([[*row, EOS, *[PAD] * (4 - len(row))] for row in ids])


@pytest.mark.parametrize("lemmas", [True, False])
def test_values(lemmas: bool) -> None:
    source = torch.tensor([[4, 5, 6, EOS], [7, 8, 9, EOS], [UNK, 8, PAD, PAD]])
    expected = torch.stack([torch.stack([plain(s, PAIRS, lemmas) for s in row]) for row in source.tolist()])
    torch.testing.assert_close(said(rows(lemmas).token_rows(source, None), (3, 4)), expected, rtol=1e-6, atol=1e-9)
    assert (expected[1, 1].sum() > 0) == lemmas  # no sentence has 8, and its lemma is known


@settings(max_examples=30, deadline=None)
@given(st.lists(SENTENCES, min_size=1, max_size=3), st.booleans())
def test_training_says_what_the_other_sentences_would_say(batch: list[int], lemmas: bool) -> None:
    """Links of words and of lemmas counted again without the sentence, one sentence at a time."""
    source, target = (padded([PAIRS[i][side] for i in batch]) for side in (0, 1))
    found = said(rows(lemmas).token_rows(source, target), (len(batch), 5))
    for row, i in zip(found, batch, strict=True):
        others = [pair for n, pair in enumerate(PAIRS) if n != i]
        expected = torch.stack([plain(s, others, lemmas) for s in [*PAIRS[i][0], EOS]])
        torch.testing.assert_close(row[: len(expected)], expected, rtol=1e-6, atol=1e-9)


def test_the_mixed_table() -> None:
    lemmas = source_lemmas()
    mixed = lemmas.mixed(counted(PAIRS, list(range(NUM_SOURCES))))
    mixed.check(IS_WORD)
    mixed.check_links(IS_SOURCE)
    for s in range(NUM_SOURCES):
        row = torch.zeros(NUM_WORDS, dtype=torch.float64)
        for x, probability in mixed.row(s):
            row[x] = probability
        torch.testing.assert_close(row, plain(s, PAIRS), rtol=1e-6, atol=1e-9)


def background(forms: bool) -> LexicalBackground:
    weights = torch.randn(NUM_WORDS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights[[BOS, PAD]] = -float("inf")
    lemmas = [[f"{x // 2}"] if x > 3 else [] for x in range(NUM_WORDS)]
    its = LemmaForms.from_lemmas(lemmas, np.ones(NUM_WORDS), IS_WORD)
    heads = its.head_of if forms else np.arange(NUM_WORDS)
    tables = []
    for head_of in (np.arange(NUM_SOURCES), source_lemmas().head_of):
        pairs = [(source, heads[target].tolist()) for source, target in PAIRS]
        tables.append(counted(pairs, head_of.tolist()))
    return LexicalBackground(
        torch.tensor([0, 0, 1, 2, 3, 3, 4, 4, 3]), 5, weights - weights.logsumexp(0), tables[0],
        torch.from_numpy(IS_WORD), torch.from_numpy(SPEAKS), 0.4, False,
        FormShares(its, 0.5, torch.float64) if forms else None, SourceLemmas(source_lemmas().head_of, tables[1], KAPPA),
    ).double()  # fmt: skip


@pytest.mark.parametrize("forms", [True, False])
def test_it_is_lawful(forms: bool) -> None:
    check_background(background(forms), source=torch.tensor([[4, 8, EOS], [6, UNK, EOS]]))


def test_a_word_that_training_lacks_says_what_its_lemma_says() -> None:
    unbound = background(False)
    bound = unbound.bind(torch.tensor([[8], [UNK]]))
    b0, weights = unbound.word_log_weight.exp(), bound.view(bound.start(2)).log_weights.exp()
    torch.testing.assert_close(weights[0, 4:], 0.6 * b0[4:] + 0.4 * b0[4:].sum() * plain(8, PAIRS)[4:])
    torch.testing.assert_close(weights[1], b0)


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("head_of", [0, 1, 2, 3, 4, 4, 4, 7, 7, 99], "name a lemma that is no word"),
        ("head_of", [0, 1, 2, 3, 4, 4, 4, 7, 7], "name a lemma that is no word"),
        ("head_of", [0, 1, 2, 3, 7, 4, 4, 7, 7, 9], "name a lemma with another head"),
        ("head_of", [0, 1, 2, 3, 5, 5, 5, 7, 7, 9], "have translations of a word that is no lemma"),
        ("pseudo_links", 0.0, "count as 0.0 links"),
        ("pseudo_links", float("nan"), "count as nan links"),
    ],
)
def test_damaged_lemmas(field: str, value: object, what: str) -> None:
    good = source_lemmas()
    given: dict[str, Any] = {"head_of": good.head_of, "table": good.table, "pseudo_links": good.pseudo_links}
    given[field] = np.array(value) if isinstance(value, list) else value
    with pytest.raises(ValueError, match=what):
        SourceLemmas(**given).check(IS_SOURCE, IS_WORD)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("forms", [True, False])
def test_half_precision_does_not_touch_links_and_counts(dtype: torch.dtype, forms: bool) -> None:
    unbound = background(forms).float()
    source = torch.tensor([[4, 8, EOS]])
    text, state = torch.tensor([[4, 6]]), torch.zeros(1, 1, dtype=torch.long)
    before = unbound.bind(source, text).view(state).class_mass.dense()
    after = unbound.to(dtype).bind(source, text).view(state).class_mass.dense()
    assert after.dtype == torch.float64 and torch.equal(before, after)


def test_rounding_leaves_no_links() -> None:
    """Of a pair that one sentence alone has linked, whatever else its source word is linked to."""
    totals = torch.arange(2, 400)
    sources = torch.repeat_interleave(torch.arange(len(totals)), 2).numpy()
    weights = torch.stack([torch.ones(len(totals)), totals - 1.0], 1).flatten().double().numpy()
    table = LexicalTable.from_pairs(sources, np.tile([4, 5], len(totals)), weights, len(totals), 2)
    rows = SourceRows(table, torch.arange(NUM_WORDS), None, torch.float32)
    keys, shares, _, _ = rows.token_rows(torch.arange(len(totals)).unsqueeze(1), torch.full((len(totals), 1), 4))
    assert (shares[keys % NUM_WORDS == 4] == 0).all()
    torch.testing.assert_close(shares[keys % NUM_WORDS == 5], torch.ones(len(totals)))
