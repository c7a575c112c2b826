"""n-grams as automata equal the back-off definition. Lost, shared, mixed and tempered weights are enumerated."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ngram_oracles import Gram, automaton_log_prob, log_prob, orders_of, table_of, thinned, total, word_list

from fairseq_llrnn.automata.automaton import ROOT, Automaton
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.ngrams.background import log_totals, mixed, normalised, tempered
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import NGrams, Sentences
from fairseq_llrnn.ngrams.to_automaton import ngrams_to_automaton

BIG = word_list("a b c d")
NAMES = ["a", "b", "c", "d", "<unk>"]
UNK = 3


def random_model(seed: int, words: WordList = BIG, order: int = 3) -> NGrams:
    """Return a model of a text with <unk>."""
    rng = np.random.default_rng(seed)
    text = [rng.integers(3, len(words), rng.integers(0, 7)).tolist() for _ in range(40)]
    return estimate(Sentences.of(text), words, order)


def strange_model(model: NGrams, rng: np.random.Generator) -> NGrams:
    """Return a model with removed n-grams and changed weights, which is no distribution."""
    rest = thinned(model, rng)
    log_probs = np.where(np.isneginf(rest.log_probs), -np.inf, -rng.exponential(2.0, len(rest)))
    return replace(rest, log_probs=log_probs, back_offs=np.where(rng.random(len(rest)) < 0.3, 0.0, rest.back_offs))


def texts(words: list[str], longest: int) -> list[Gram]:
    return [text for n in range(longest + 1) for text in itertools.product(words, repeat=n)]


def walk(automaton: Automaton, root: np.ndarray, words: WordList, text: Gram) -> tuple[int, float]:
    """Return the state after a text from the start, and the text's log weight."""
    state, sum_ = int(automaton.starts[0]), 0.0
    for word in text:
        weight, state = automaton_log_prob(automaton, root, state, words.symbols.index(word))
        sum_ += weight
    return state, sum_


def values(automaton: Automaton, root: np.ndarray, words: WordList, text: Gram, names: list[str]) -> dict[str, float]:
    """Return b(x) after a text."""
    state, _ = walk(automaton, root, words, text)
    return {x: math.exp(automaton_log_prob(automaton, root, state, words.symbols.index(x))[0]) for x in names}


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_equals_the_definition(seed: int, order: int) -> None:
    rng = np.random.default_rng(seed)
    model = strange_model(random_model(seed, order=order), rng)
    table = table_of(model)
    found = ngrams_to_automaton(model, BIG, "FILE")
    found.automaton.check(found.log_root)
    assert found.automaton.memory == order - 1
    assert not found.notes
    for text in texts(["a", "b", "<unk>"], 3):
        history = ("<s>", *text)[-(order - 1) :] if order > 1 else ()
        b = values(found.automaton, found.log_root, BIG, text, [*NAMES, "</s>"])
        assert b == pytest.approx({x: math.exp(log_prob(table, history, x)) for x in b}, rel=1e-9)


def test_a_sentence_begins_after_its_end() -> None:
    found = ngrams_to_automaton(random_model(1), BIG, "FILE")
    automaton, root = found.automaton, found.log_root
    _, first = walk(automaton, root, BIG, ("a", "b", "</s>"))
    _, second = walk(automaton, root, BIG, ("c", "</s>"))
    state, both = walk(automaton, root, BIG, ("a", "b", "</s>", "c", "</s>"))
    assert both == pytest.approx(first + second)
    assert state == automaton.starts[0]


def test_states_that_say_nothing_do_not_exist() -> None:
    """A history without continuing n-grams and with a back-off weight of 1 is replaced by its suffix."""
    model = estimate(Sentences.of([[4, 5], [4, 5], [6, 5]]), BIG, 3)
    found = ngrams_to_automaton(model, BIG, "FILE")
    spelled = {tuple(model.words[w] for w in gram) for gram in table_spelled(model, found.histories)}
    assert spelled == {("<s>",), ("a",), ("b",), ("c",), ("<s>", "a"), ("<s>", "c"), ("a", "b"), ("c", "b")}
    assert (found.automaton.fail[[0, *found.automaton.starts]] == ROOT).all()


def table_spelled(model: NGrams, entries: np.ndarray) -> list[list[int]]:
    orders = orders_of(model)
    return [model.spelled(np.array([e]), int(orders[e]))[0].tolist() for e in entries]


def test_words_that_the_dictionary_lacks_are_lost() -> None:
    """Every state sums to one minus their weight there. Normalisation keeps the proportions of the rest."""
    small = word_list("b d")
    model = random_model(2)
    table = table_of(model)
    found = ngrams_to_automaton(model, small, "FILE")
    found.automaton.check(found.log_root)
    assert found.notes["words of the n-grams are not in the dictionary; dropped with their n-grams"] == 2
    assert found.notes["n-grams dropped: they contain such a word, or continue after </s>"] > 0
    even = normalised(found.automaton, found.log_root)
    for text in texts(["b", "d", "<unk>"], 3):
        history = ("<s>", *text)[-2:]
        rest = ["b", "d", "<unk>", "</s>"]
        b = values(found.automaton, found.log_root, small, text, rest)
        lost = sum(math.exp(log_prob(table, history, x)) for x in "ac")
        assert math.fsum(b.values()) == pytest.approx(1.0 - lost)
        after = values(*even, small, text, rest)
        assert after == pytest.approx({x: p / (1.0 - lost) for x, p in b.items()})


def test_words_that_the_n_grams_lack_share_what_is_unknown() -> None:
    large = word_list("e a b c d f")
    model = random_model(3)
    table = table_of(model)
    found = ngrams_to_automaton(model, large, "FILE")
    found.automaton.check(found.log_root)
    assert dict(found.notes) == {"words of the dictionary that the n-grams lack share the probability of <unk>": 2}
    share = math.exp(table[("<unk>",)][0]) / 3
    assert np.exp(found.log_root[[3, 4, 9]]) == pytest.approx([share] * 3)
    assert np.exp(found.log_root).sum() == pytest.approx(1.0)
    for text in texts(["a", "e", "<unk>"], 2):
        # after one of them the history is <unk>, and nothing before it
        history = ("<s>", *text)[-2:]
        if "e" in history:
            history = ("<unk>", *history[len(history) - history[::-1].index("e") :])
        b = values(found.automaton, found.log_root, large, text, [*NAMES, "</s>", "e", "f"])
        known = {x: math.exp(log_prob(table, history, x)) for x in "abcd"}
        assert {x: b[x] for x in "abcd"} == pytest.approx(known)
        # the n-grams that end in <unk> are the dictionary's own <unk>; the others have the share that is left to them
        backed_off = math.exp(back_off(table, history)) * share
        assert b["e"] == b["f"] == pytest.approx(backed_off)
        if any((*history[k:], "<unk>") in table for k in range(2)):
            assert b["<unk>"] == pytest.approx(math.exp(log_prob(table, history, "<unk>")))
            assert math.fsum(b.values()) == pytest.approx(1.0 + 2 * backed_off)
        even = values(*normalised(found.automaton, found.log_root), large, text, [*NAMES, "</s>", "e", "f"])
        assert math.fsum(even.values()) == pytest.approx(1.0)


def back_off(table: dict[Gram, tuple[float, float]], history: Gram) -> float:
    return sum(table.get(history[k:], (0.0, 0.0))[1] for k in range(len(history)))


def test_an_n_gram_file_of_another_case_for_unk() -> None:
    model = random_model(4)
    other = NGrams(tuple("<UNK>" if w == "<unk>" else w for w in model.words), *arrays(model))
    ours, theirs = (ngrams_to_automaton(m, BIG, "FILE") for m in (model, other))
    assert theirs.log_root.tolist() == ours.log_root.tolist()


def arrays(model: NGrams) -> tuple[np.ndarray, ...]:
    return model.starts, model.histories, model.last, model.log_probs, model.back_offs


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("<unk>", "FILE: expected <unk> among the words of the n-grams, found none; estimate it with an open vo"),
        ("</s>", "FILE: expected </s> among the words of the n-grams, found none; estimate it from sentences, one a "),
    ],
)
def test_without_a_special_word(old: str, said: str) -> None:
    model = random_model(5)
    names = tuple("other" if word == old else word for word in model.words)
    with pytest.raises(DataError) as error:
        ngrams_to_automaton(NGrams(names, *arrays(model)), BIG, "FILE")
    assert str(error.value).startswith(said)


def test_another_language() -> None:
    with pytest.raises(DataError) as error:
        ngrams_to_automaton(random_model(6), word_list("ein zwei"), "FILE")
    assert str(error.value) == (
        "FILE: expected n-grams of words of the dictionary, found no word of it (but e.g. '<pad>'); give n-grams of "
        "the same language, tokenised and cased as the training text"
    )


# ---- other weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 0.7, 0.2, 0.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_mixed_with_shorter_histories(weight: float, seed: int) -> None:
    model = strange_model(random_model(seed), np.random.default_rng(seed))
    found = ngrams_to_automaton(model, BIG, "FILE")
    table, automaton, root = table_of(model), mixed(found.automaton, found.log_root, weight), found.log_root
    automaton.check(root)

    def expected(history: Gram, word: str) -> float:
        if not history:
            return math.exp(table[(word,)][0])
        below = expected(history[1:], word)
        if (*history, word) in table:
            return weight * math.exp(table[*history, word][0]) + (1 - weight) * below
        return (1 - weight + weight * math.exp(table.get(history, (0.0, 0.0))[1])) * below

    for text in texts(["a", "b", "<unk>"], 3):
        b = values(automaton, root, BIG, text, [*NAMES, "</s>"])
        assert b == pytest.approx({x: expected(("<s>", *text)[-2:], x) for x in b})


def test_mixed_bigrams_are_mixed_with_the_unigram() -> None:
    model = random_model(3, order=2)
    found = ngrams_to_automaton(model, BIG, "FILE")
    automaton, table = mixed(found.automaton, found.log_root, 0.3), table_of(model)
    for text in texts(["a", "b", "<unk>"], 2):
        b = values(automaton, found.log_root, BIG, text, [*NAMES, "</s>"])
        history = ("<s>", *text)[-1:]
        assert b == pytest.approx(
            {x: 0.3 * math.exp(log_prob(table, history, x)) + 0.7 * math.exp(table[(x,)][0]) for x in b}
        )


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_tempered(temperature: float) -> None:
    model = random_model(4)
    found, table = ngrams_to_automaton(model, BIG, "FILE"), table_of(model)
    automaton, share = tempered(found.automaton, found.log_root, temperature), 1 / temperature
    for text in texts(["a", "b", "<unk>"], 3):
        b = values(automaton, found.log_root, BIG, text, [*NAMES, "</s>"])
        for x, value in b.items():
            expected = share * log_prob(table, ("<s>", *text)[-2:], x) + (1 - share) * table[(x,)][0]
            assert math.log(value) == pytest.approx(expected)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.3, 1.0, 20.0]))
def test_normalised(seed: int, temperature: float) -> None:
    """Every state sums to one for all weights, and ratios inside a state are unchanged."""
    model = strange_model(random_model(seed), np.random.default_rng(seed))
    found = ngrams_to_automaton(model, word_list("b c e"), "FILE")
    before = tempered(found.automaton, found.log_root, temperature), found.log_root
    after = normalised(*before)
    after[0].check(after[1])
    names, words = ["b", "c", "e", "<unk>", "</s>"], word_list("b c e")
    for text in texts(["b", "e"], 3):
        old, new = (logs(*weights, words, text, names) for weights in (before, after))
        assert np.logaddexp.reduce(new) == pytest.approx(0.0, abs=1e-6)
        assert np.ptp(old - new) == pytest.approx(0.0, abs=1e-8 * np.abs(old).max())
    totals, root_total = log_totals(*after)
    assert np.abs(totals).max() < 1e-6
    assert root_total == pytest.approx(0.0, abs=1e-12)


def logs(automaton: Automaton, root: np.ndarray, words: WordList, text: Gram, names: list[str]) -> np.ndarray:
    state, _ = walk(automaton, root, words, text)
    return np.array([automaton_log_prob(automaton, root, state, words.symbols.index(x))[0] for x in names])


def test_estimated_models_are_normal_as_they_are(tmp_path: Path) -> None:
    model = random_model(7)
    found = ngrams_to_automaton(model, BIG, "FILE")
    totals, root_total = log_totals(found.automaton, found.log_root)
    assert np.abs(totals).max() < 1e-12
    assert abs(root_total) < 1e-12
    assert total(table_of(model), ("a",), [*NAMES, "</s>"]) == pytest.approx(1.0)
