"""A network that spells words: every string by the definition, all of them together one, values and gradients."""

import itertools
import math

import numpy as np
import pytest
import torch
from drawn_strings import check_drawn
from tiny_speller import ALPHABET, CLASSES, KNOWN, RARE, WORDS, H, spelled_of, speller, tiny
from torch import Tensor

from fairseq_llrnn.open_vocabulary import spelled
from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END, OTHER
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.classes import FOLDS, fold_of, read_class_words
from fairseq_llrnn.open_vocabulary.open_strings import OpenMixture, OpenWords
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.open_vocabulary.spelled import SpelledStrings
from fairseq_llrnn.open_vocabulary.speller import Speller, best_strings, draw_strings
from fairseq_llrnn.open_vocabulary.spelling import LONGEST


def by_definition(model: Speller, table: OpenTable, hidden: Tensor, string: str, alias: bool = False) -> Tensor:
    """log N of one string and all classes, and of what begins so and does not end there: (2, CLASSES)."""
    spelled = spelled_of(table)
    assert spelled is not None
    ngrams = spelled.model(fold_of(string) if alias else FOLDS)
    alphabet = ngrams.alphabet
    tails, before = ngrams.beginnings(1), BEGIN
    state = model.begin(hidden.unsqueeze(0))
    total = beginning = torch.zeros(CLASSES, dtype=torch.float64)  # of as many kinds
    for place in range(len(string) + 1):
        base = torch.from_numpy(ngrams.next_symbols(tails)[0]).clone()
        if place == 0 or (string[:place] in WORDS and not (alias and place == len(string))):
            base[END] = 0.0
        out, state = model.lstm(model.characters(torch.tensor([[before]])), state)
        z = torch.tanh(model.inner(out[0, 0]) + model.kinds.weight)  # shape: (K, E)
        weights = base * torch.exp(z @ model.output.weight.T + model.output.bias)
        odds = weights / weights.sum(1, keepdim=True)
        beginning = total + torch.log1p(-odds[:, END])
        if place == len(string):
            total = total + odds[:, END].log()
            break
        symbol = int(alphabet.rows([string]).symbols[place + 1])
        known = symbol != OTHER
        total = total + odds[:, symbol if known else BEGIN].log() - (0 if known else math.log(alphabet.num_unknown))
        tails, before = ngrams.tails_after(tails, np.array([symbol])), symbol if known else alphabet.size
    shares = model.shares.softmax(1)
    return torch.stack([shares @ total.exp(), shares @ beginning.exp()]).log()


STRINGS = ["aab", "c", "acb", "bb", "abbab", "caca", "aaaaaaaa"]


def asked(table: OpenTable, strings: list[str]) -> np.ndarray:
    return np.array([table.words.open(string) for string in strings])


@pytest.mark.parametrize("strings", [STRINGS, ["ab", "b", "aab", "abba"]])
def test_strings_and_aliases_equal_the_definition(strings: list[str]) -> None:
    table, model = tiny(), speller()
    hidden = torch.randn(len(strings), H, dtype=torch.float64, requires_grad=True)
    found = model.log_neural(hidden, spelled_of(table).of(asked(table, strings)))
    expected = torch.stack(
        [by_definition(model, table, h, w, w in WORDS)[0] for h, w in zip(hidden, strings, strict=True)]
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)  # log b is kept in float32
    leaves = [hidden, *(p for p in model.parameters() if p is not model.gate)]
    weights = torch.randn(found.shape, dtype=torch.float64)
    for ours, theirs in zip(
        torch.autograd.grad((found * weights).sum(), leaves),
        torch.autograd.grad((expected * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_one_by_one_is_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table, model = tiny(), speller()
    hidden = torch.randn(len(STRINGS), H, dtype=torch.float64)
    together = model.log_neural(hidden, spelled_of(table).of(asked(table, STRINGS)))
    alone = [model.log_neural(h[None], spelled_of(table).of_strings([w])) for h, w in zip(hidden, STRINGS, strict=True)]
    torch.testing.assert_close(together, torch.cat(alone))
    monkeypatch.setattr("fairseq_llrnn.open_vocabulary.speller.CELLS", 60)
    with torch.no_grad():
        torch.testing.assert_close(model.log_neural(hidden, spelled_of(table).of(asked(table, STRINGS))), together)


@pytest.mark.parametrize("num_characters", [2, 3, 5])
def test_all_strings_outside_the_dictionary_add_up_to_one(num_characters: int) -> None:
    """What ends within so many characters, and what has not ended by then, which is bounded, are one together."""
    table, model = tiny(num_characters), speller()
    hidden = torch.randn(H, dtype=torch.float64)
    letters = "abcde"[:num_characters]
    longest = {2: 6, 3: 4, 5: 2}[num_characters]
    strings = ["".join(t) for k in range(1, longest + 1) for t in itertools.product(letters, repeat=k)]
    outside = [string for string in strings if string not in WORDS]
    with torch.no_grad():
        log_neural = model.log_neural(hidden.expand(len(outside), -1), spelled_of(table).of_strings(outside))
        ended = log_neural.exp().sum(0)
        inside = model.log_neural(hidden.expand(5, -1), spelled_of(table).of_strings(sorted(WORDS)))
        assert inside.isneginf().all(), "no word of the dictionary is a string of an open class"
        whole = [string for string in strings if len(string) == longest]
        left = torch.stack([by_definition(model, table, hidden, w)[1] for w in whole]).exp()
        ends = torch.stack([by_definition(model, table, hidden, w)[0] for w in whole if w not in WORDS]).exp().sum(0)
        torch.testing.assert_close(ended + left.sum(0), torch.ones(CLASSES).double(), rtol=1e-5, atol=1e-6)
        # behind all words of the dictionary an end has at least ε
        bound = float((model.output.weight.abs().sum(1) + model.output.bias.abs()).max())
        least = min(float(np.exp(row[END])) for row in spelled_of(table)._rows[: len(spelled_of(table)._places)])
        assert (ends / (ends + left.sum(0)) >= least * math.exp(-2 * bound)).all()
        # with the n-grams of each class
        log_ngrams = torch.from_numpy(table.vocabulary.strings.log_probs(outside) - table.vocabulary.log_outside)
        mixed = model.mixed(log_neural, log_ngrams).exp().sum(0)
        gate = model.gate.sigmoid()
        torch.testing.assert_close(mixed, (1 - gate) * log_ngrams.exp().sum(0) + gate * ended)


def test_an_untrained_speller_is_n_grams() -> None:
    """Of all classes together in N, and nothing costs more than one bit above those of a class."""
    table, model = tiny(), speller(random=False)
    hidden = torch.randn(len(STRINGS), H, dtype=torch.float64)
    found = model.log_neural(hidden, spelled_of(table).of(asked(table, STRINGS)))
    torch.testing.assert_close(found, found[:1, :1].new_tensor(found[:, :1].tolist()).expand(-1, CLASSES))
    log_ngrams = torch.from_numpy(table.log_probs_of(STRINGS))
    mixed = model.log_probs(hidden, spelled_of(table).of(asked(table, STRINGS)), log_ngrams)
    assert (mixed >= log_ngrams - math.log(2) - 1e-9).all()
    torch.testing.assert_close(mixed, torch.logaddexp(found, log_ngrams) - math.log(2))


def test_aliases_are_asked_of_models_without_them() -> None:
    table = tiny()
    words = ("abba", "b")
    for word, found in zip(words, table.log_probs_of(words), strict=True):
        kept = [i for i, rare in enumerate(RARE) if fold_of(rare) != fold_of(word)]
        assert word not in [RARE[i] for i in kept]
        whole = table.vocabulary.strings.characters
        classes = table.vocabulary.class_words.classes[kept]
        model = CharacterNGrams.train([RARE[i] for i in kept], classes, CLASSES, 3, whole.alphabet)
        others = np.exp(model.log_probs(sorted(WORDS - {word}))).sum(0)
        expected = model.log_probs([word])[0] - np.log(1.0 - others)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_every_parameter_has_a_gradient_where_nothing_is_spelled() -> None:
    model = speller()
    nothing = model.untouched()
    assert float(nothing.detach()) == 0.0
    assert all((g == 0).all() for g in torch.autograd.grad(nothing, list(model.parameters())))


def test_steps_of_a_search_are_those_of_the_batch() -> None:
    table, model = tiny(), speller()
    spelled, hidden = spelled_of(table), torch.randn(H, dtype=torch.float64)
    ngrams, string = spelled.model(FOLDS), "aab"
    symbols = [BEGIN, *ngrams.alphabet.rows([string]).symbols[1:].tolist()]
    for kind in range(model.num_kinds):
        state, tails, total = model.begin(hidden[None]), ngrams.beginnings(1), 0.0
        for place in range(len(string) + 1):
            base = torch.from_numpy(spelled.log_base(tails)).clone()
            if place == 0 or string[:place] in WORDS:
                base[0, END] = -math.inf
            odds, state = model.step(torch.tensor([symbols[place]]), state, torch.tensor([kind]), base)
            total += float(odds.detach()[0, symbols[place + 1]])
            tails = ngrams.tails_after(tails, np.array([symbols[place + 1]]))
        expected = model.log_by_kind(hidden[None], spelled.of_strings([string]))[0, kind]
        assert total == pytest.approx(float(expected.detach()), rel=1e-6)


def kept(change: str = "", value: object = None) -> dict[str, np.ndarray]:
    arrays = tiny().vocabulary.class_words.arrays()
    if change:
        arrays[change] = np.array(value, dtype=arrays[change].dtype)
    return arrays


def test_the_words_of_classes_are_kept() -> None:
    rare = read_class_words(kept(), CLASSES, ALPHABET)
    assert rare.words == tuple(RARE)
    np.testing.assert_array_equal(rare.log_outside, tiny().vocabulary.class_words.log_outside)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rare_letters", [ord("a")] * 17 + [ord("z")], "point outside their tables"),
        ("rare_letters", [ord("a")] * 3, "do not add up to the whole"),
        ("rare_lengths", [3, 2, 4, 1, 2, 4, 0], "do not add up to the whole"),
        ("rare_classes", [0, 1, 0, 1, 2, 0, 3], "point outside their tables"),
        ("rare_classes", [0, 1], "do not add up to the whole"),
        ("rare_log_outside", [0.1] * (FOLDS * CLASSES), "the shares of the words of open classes are none"),
        ("rare_log_outside", [-0.1] * FOLDS, "the shares of the words of open classes are none"),
        ("rare_letters", [ord("a")] * 18, "some of them are there twice"),
    ],
)
def test_damaged_words_of_classes_are_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_class_words(kept(name, value), CLASSES, ALPHABET)


# Strings that a network spells are drawn as probable as they are, and the best ones are those of enumeration
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
    monkeypatch.setattr("fairseq_llrnn.open_vocabulary.speller.AT_ONCE", 3)
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
    monkeypatch.setattr("fairseq_llrnn.open_vocabulary.speller.LONGEST_DRAWN", 50)
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
