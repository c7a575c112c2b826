"""Cross-fitted n-grams: equal folds in numpy and torch, and models without each fold, in one automaton."""

import math
from pathlib import Path

import numpy as np
import positions
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from ngram_oracles import automaton_log_prob, log_prob, table_of, word_list

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.ngrams import folds, kneser_ney
from fairseq_llrnn.ngrams.background import ngram_from_text
from fairseq_llrnn.ngrams.folds import folds_of, folds_per_position
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import Sentences

WORDS = word_list("a b c d")
EOS, PAD, FOLDS = 2, 1, 3


def random_text(seed: int, count: int = 60) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(3, len(WORDS), rng.integers(0, 6)).tolist() for _ in range(count)]


sentence_lists = st.lists(st.lists(st.integers(3, 2**31), max_size=6), min_size=1, max_size=5)


@given(st.lists(sentence_lists, min_size=1, max_size=4), st.integers(2, 100))
def test_numpy_and_torch_agree(rows: list[list[list[int]]], num_folds: int) -> None:
    """A row contains several sentences and padding at its end."""
    flat = [[token for sentence in row for token in (*sentence, EOS)] for row in rows]
    width = max(map(len, flat))
    text = torch.tensor([row + [PAD] * (width - len(row)) for row in flat])
    along = folds_per_position(text, EOS, PAD, num_folds)
    sentences = [sentence for row in rows for sentence in row]
    folds = iter(folds_of(Sentences.of(sentences), num_folds).tolist())
    for i, row in enumerate(rows):
        expected = [fold for sentence in row for fold in [next(folds)] * (len(sentence) + 1)]
        assert along[i, : len(expected)].tolist() == expected
        assert ((along[i] >= 0) & (along[i] < num_folds)).all()


def test_folds_are_what_they_were() -> None:
    """Folds must not change between machines and versions, since priors depend on them."""
    found = folds_of(Sentences.of([[4, 5, 6], [6, 5, 4], [4], [], [40_000, 7, 7], [7, 40_000, 7]]), 10)
    assert found.tolist() == [3, 8, 2, 0, 1, 2]


def test_folds_are_even_and_independent_of_the_rest() -> None:
    rng = np.random.default_rng(1)
    sentences = Sentences.of([rng.integers(4, 1000, rng.integers(1, 20)).tolist() for _ in range(20_000)])
    folds = folds_of(sentences, 10)
    assert np.bincount(folds, minlength=10) == pytest.approx([2000] * 10, rel=0.1)
    chosen = np.arange(len(sentences)) % 3 == 0
    assert folds_of(sentences.chosen(chosen), 10).tolist() == folds[chosen].tolist()


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize(("prune", "count"), [((), 60), ((0, 0, 1), 60), ((0, 1), 4)])  # the last leaves folds a state
def test_every_fold_is_a_model_without_its_sentences(order: int, prune: tuple[int, ...], count: int) -> None:
    text = random_text(order, count)
    sentences = Sentences.of(text)
    found = ngram_from_text(sentences, WORDS, order, folds=FOLDS, prune=prune)
    automaton, root = found.automaton, found.log_weights
    automaton.check(root)
    assert len(automaton.starts) == 1 + FOLDS
    assert not found.notes
    fold_of = folds_of(sentences, FOLDS)
    full = estimate(sentences, WORDS, order, prune)
    unigrams = full.log_probs[: len(WORDS)]
    assert root == pytest.approx(unigrams, abs=1e-12)
    for fold in range(-1, FOLDS):
        rest = sentences.chosen(fold_of != fold)
        table = table_of(full if fold < 0 else estimate(rest, WORDS, order, prune, unigrams))
        for ids in text[:20]:
            history, state = ("<s>",), int(automaton.starts[1 + fold])
            for token in (*ids, EOS):
                weight, state = step(automaton, root, state, token)
                word = WORDS.symbols[token]
                assert weight == pytest.approx(log_prob(table, history[-(order - 1) :], word), abs=1e-9)
                history = (*history, word)
            assert state == automaton.starts[0]


def step(automaton: Automaton, root: np.ndarray, state: int, token: int) -> tuple[float, int]:
    """Return the next state by definition, in the state's own block after the root."""
    weight, after = automaton_log_prob(automaton, root, state, token)
    here = state
    while here >= 0:
        if token in automaton.row(here):
            return weight, after
        here = int(automaton.fail[here])
    return weight, after if token == EOS else after + state // automaton.block_size * automaton.block_size


def test_training_reads_every_sentence_in_its_fold() -> None:
    text = [ids for ids in random_text(7) if ids]
    sentences = Sentences.of(text)
    found = ngram_from_text(sentences, WORDS, 3, folds=FOLDS)
    classes = torch.arange(len(WORDS))
    background = AutomatonBackground(classes, len(WORDS), torch.from_numpy(found.log_weights), found.automaton)
    fold_of = folds_of(sentences, FOLDS)
    full = estimate(sentences, WORDS, 3)
    for first in range(0, 20, 2):
        two = [*text[first], EOS, *text[first + 1], EOS]
        previous, targets = torch.tensor([[EOS, *two[:-1]]]), torch.tensor([two])
        bound = background.bind(text=previous)
        log_probs = positions.log_share(bound, previous, targets) + positions.log_mass(bound, previous).gather(
            2, targets.unsqueeze(2)
        ).squeeze(2)
        expected = []
        for i in (first, first + 1):
            rest = sentences.chosen(fold_of != fold_of[i])
            table = table_of(estimate(rest, WORDS, 3, unigrams=full.log_probs[: len(WORDS)]))
            spelled = ("<s>", *(WORDS.symbols[t] for t in text[i]), "</s>")
            expected += [log_prob(table, spelled[max(0, j - 2) : j], spelled[j]) for j in range(1, len(spelled))]
        assert log_probs[0].tolist() == pytest.approx(expected, abs=1e-9)


def test_weight_and_temperature_hold_in_every_fold() -> None:
    sentences = Sentences.of(random_text(8))
    found = ngram_from_text(sentences, WORDS, 3, folds=FOLDS, weight=0.6, temperature=2.0)
    found.automaton.check(found.log_weights)
    possible = np.flatnonzero(WORDS.predictable)
    for state in (*found.automaton.starts, *range(0, found.automaton.num_states, 7)):
        weights = [automaton_log_prob(found.automaton, found.log_weights, int(state), x)[0] for x in possible]
        assert math.fsum(map(math.exp, weights)) == pytest.approx(1.0)


@pytest.mark.parametrize(("order", "weight"), [(1, 1.0), (3, 0.0)])
def test_a_unigram_has_no_folds(order: int, weight: float) -> None:
    found = ngram_from_text(Sentences.of(random_text(9)), WORDS, order, folds=FOLDS, weight=weight)
    found.automaton.check(found.log_weights)
    assert found.automaton.starts.tolist() == [0]
    assert found.automaton.num_states == 1
    unigram = estimate(Sentences.of(random_text(9)), WORDS, order).log_probs[: len(WORDS)]
    assert found.log_weights == pytest.approx(unigram, abs=1e-12)


def test_too_little_text_for_folds() -> None:
    with pytest.raises(DataError) as error:
        ngram_from_text(Sentences.of([[4, 5], [4, 5], []]), WORDS, 2, folds=5)
    assert str(error.value) == (
        "ngram:2: expected text for 5 folds, found 3 sentences, all of them with words in one fold; give more text, or "
        "write ngram(2, folds=0) if the network is trained on another one"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": 9}, "--background ngram:9: expected an order from 1 to 8; longer n-grams can come from an ARPA"),
        ({"order": 0}, "--background ngram:0: expected an order from 1 to 8; longer n-grams can come from an ARPA"),
    ],
)
def test_orders_out_of_range(options: dict, said: str) -> None:
    with pytest.raises(OptionError) as error:
        ngram_from_text(Sentences.of([[4, 5]]), WORDS, **{"order": 2, **options})
    assert str(error.value).startswith(said)


def test_n_grams_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = Sentences.of(random_text(1))
    many = len(estimate(sentences, WORDS, 3))
    monkeypatch.setattr(folds, "memory_limit", lambda: folds.BYTES_PER_NGRAM * many * 7)
    ngram_from_text(sentences, WORDS, 3, folds=3)
    with pytest.raises(DataError) as error:
        ngram_from_text(sentences, WORDS, 3, folds=4)
    assert str(error.value).startswith(f"ngram:3: {many:,} n-grams and those of 4 folds need 0.0 GB, found a limit")
    assert "as in ngram(3, prune=[0, 1, 3]), set folds=0 if the network" in str(error.value)


def test_the_limit_of_memory_is_the_lowest_of_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = folds.memory_limit()
    container, unlimited = tmp_path / "memory.max", tmp_path / "max"
    container.write_text(f"{machine // 2}\n", encoding="ascii")
    unlimited.write_text("max\n", encoding="ascii")
    monkeypatch.setattr(folds, "CGROUP_LIMITS", (str(tmp_path / "absent"), str(unlimited), str(container)))
    assert folds.memory_limit() == machine // 2


def test_a_text_in_blocks_has_the_same_n_grams(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = Sentences.of(random_text(2))
    whole = estimate(sentences, WORDS, 4)
    monkeypatch.setattr(kneser_ney, "AT_ONCE", 7)
    blocks = estimate(sentences, WORDS, 4)
    for name in ("starts", "histories", "last", "log_probs", "back_offs"):
        assert np.array_equal(getattr(whole, name), getattr(blocks, name))
