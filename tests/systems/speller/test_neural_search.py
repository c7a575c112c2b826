"""Strings that a network spells are drawn as probable as they are, and the best ones are those of enumeration."""

import itertools

import numpy as np
import pytest
import torch
from drawn_strings import check_drawn
from tiny_speller import CLASSES, KNOWN, WORDS, H, spelled_of, speller, tiny

from fairseq_llrnn.open_vocabulary.open_strings import OpenMixture, OpenWords
from fairseq_llrnn.open_vocabulary.spelling import LONGEST
from fairseq_llrnn.systems.speller import spelled
from fairseq_llrnn.systems.speller.network import best_strings, draw_strings
from fairseq_llrnn.systems.speller.spelled import SpelledStrings

SHORT = [s for k in range(1, 6) for s in map("".join, itertools.product("ab", repeat=k)) if s not in WORDS]


def opened(seed: int = 3, num_characters: int = 2) -> tuple[OpenWords, torch.Tensor]:
    table = tiny(num_characters=num_characters)
    model = speller(seed=seed)
    model.spelled = spelled_of(table)
    torch.manual_seed(seed)
    return OpenWords(OpenMixture(table.vocabulary, 3), table, len(KNOWN), 3, model), torch.randn(H).double()


@pytest.mark.parametrize("seed", range(4))
def test_the_best_strings_are_those_of_enumeration(seed: int) -> None:
    strings, hidden = opened(seed)
    table, model = strings.table, strings.speller
    for o in range(CLASSES):
        strings_of = spelled_of(table).of_strings(SHORT)
        log_neural = model.log_neural(hidden.expand(len(SHORT), -1), strings_of)
        found = best_strings(model, spelled_of(table), hidden[None], np.array([o]))[0]
        assert found[0] == SHORT[int(log_neural[:, o].argmax())]
        assert not set(found) & set(KNOWN) and len(found) == len(set(found))
        mixed = model.mixed(log_neural, torch.from_numpy(table.log_probs_of(SHORT)))[:, o]
        ids = strings.strings(hidden[None], np.array([o]), None)
        assert table.words.symbols[int(ids[0])] == SHORT[int(mixed.argmax())]
        np.testing.assert_array_equal(ids, strings.strings(hidden[None], np.array([o]), None))


def test_places_that_are_searched_side_by_side_are_those_searched_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    strings, _ = opened()
    states, classes = torch.randn(7, H).double(), np.array([0, 1, 0, CLASSES - 1, 1, 1, 0])
    together = best_strings(strings.speller, strings.speller.spelled, states, classes)
    for hidden, o, found in zip(states, classes, together, strict=True):
        assert best_strings(strings.speller, strings.speller.spelled, hidden[None], np.array([o])) == [found]
    ids = strings.strings(states, classes, None)
    monkeypatch.setattr("fairseq_llrnn.systems.speller.network.AT_ONCE", 3)
    np.testing.assert_array_equal(ids, strings.strings(states, classes, None))


def test_strings_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    table = tiny()
    ids = np.array([table.words.open(string) for string in SHORT[:6]])
    whole, few = (SpelledStrings(table.vocabulary, table.words) for _ in range(2))
    expected = whole.of(ids)
    monkeypatch.setattr(spelled, "KEPT_STRINGS", 2)
    for some in (ids[:3], ids[2:], ids):
        found = few.of(some)
    for name in ("lengths", "read", "write", "log_base", "log_unknown"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    few.of(ids[:1])
    assert len(few._strings) == 1


@pytest.mark.parametrize("characters", ["ab", "ab!"])  # ! is unknown
def test_strings_are_drawn_as_probable_as_they_are(characters: str) -> None:
    strings, hidden = opened(num_characters=len(characters))
    table, model, many = strings.table, strings.speller, 4000
    short = [s for k in range(1, 5) for s in map("".join, itertools.product(characters, repeat=k)) if s not in WORDS]
    for o in range(CLASSES):
        classes, states = np.full(many, o), hidden.expand(many, -1)
        log_neural = model.log_neural(hidden.expand(len(short), -1), spelled_of(table).of_strings(short))
        alone = draw_strings(model, spelled_of(table), states, classes, np.random.default_rng(1))
        ids = strings.strings(states, classes, np.random.default_rng(2))
        both = [table.words.symbols[i] for i in ids.tolist()]
        mixed = model.mixed(log_neural, torch.from_numpy(table.log_probs_of(short)))
        for drawn, log_probs in ((alone, log_neural), (both, mixed)):
            assert not set(drawn) & set(KNOWN)
            check_drawn(drawn, short, log_probs[:, o].exp().detach().numpy())


def test_what_is_too_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_llrnn.systems.speller.network.LONGEST_DRAWN", 50)
    strings, hidden = opened()
    with torch.no_grad():
        strings.speller.output.bias[0] = -50.0  # it hardly ever ends
        strings.speller.gate.fill_(20.0)
    ids = strings.strings(hidden.expand(5, -1), np.zeros(5, dtype=np.int64), np.random.default_rng(1))
    assert all(len(strings.table.words.symbols[i]) == 50 for i in ids.tolist())
    assert all(
        len(string) <= LONGEST
        for string in best_strings(strings.speller, strings.speller.spelled, hidden[None], np.array([0]))[0]
    )
