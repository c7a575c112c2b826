"""Open classes: which they are, what a prior keeps of them, and what a network makes of them, by the definition."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sparse_masses import sparse_masses
from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.open_vocabulary.alphabet import Alphabet
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.classes import kind_of, open_classes
from fairseq_llrnn.open_vocabulary.number_strings import GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.open_strings import OpenMixture, log_spelling
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary, read_open_vocabulary
from fairseq_llrnn.output.feature_weights import row_scores
from fairseq_llrnn.output.normalisers import ExactRows, LogLinearOutput, SlotScores
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart, add_open_vocabulary
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

# ---- classes --------------------------------------------------------------------------------------------------------


def test_kinds_of_spelling() -> None:
    words = "12,5 … ?! Zoé ÉTÉ chat 1er l' été"
    assert [kind_of(word) for word in words.split()] == [
        "number", "punctuation", "punctuation", "capitalised", "capitalised", "other", "other", "other", "other"
    ]  # fmt: skip


def test_classes_are_bundles_then_parts_of_speech_then_spellings() -> None:
    noun = [{"POS:NOUN": 1.0, "Gender:Fem": 1.0, "Suffix:es": 1.0}, {"POS:NOUN": 1.0, "Gender:Fem": 1.0, "NOTTOP": 1.0}]
    rest = [{"POS:NOUN": 1.0, "Gender:Masc": 1.0}, {"POS:NOUN": 1.0}, {"POS:VERB": 1.0}, {}, {}, {}]
    words = ["roses", "mer", "mur", "truc", "va", "12", "Zoé", "Léa"]
    classes = open_classes(words, [*noun, *rest], least_types=2)
    found = [classes.names[o] for o in classes.class_of]
    assert found == ["NOUN.Fem", "NOUN.Fem", "NOUN", "NOUN", "other", "number", "capitalised", "capitalised"]
    assert [name for name, is_one in zip(classes.names, classes.numbers, strict=True) if is_one] == ["number"]
    few = open_classes(["a"], [{}], least_types=50)
    assert set(few.names) == {"number", "other"}


def test_words_that_are_not_rare_make_no_classes() -> None:
    rows = [{"POS:NOUN": 1.0}, {"POS:NOUN": 1.0}, {"POS:NOUN": 1.0}, {"POS:VERB": 1.0}, {"POS:VERB": 1.0}]
    classes = open_classes(["mer", "mur", "chat", "va", "est"], rows, least_types=2, num_rare=2)
    assert [classes.names[o] for o in classes.class_of] == ["NOUN", "NOUN", "NOUN", "other", "other"]


def test_morphemes_and_lemmas_make_no_classes() -> None:
    rows = [{"POS:NOUN": 1.0, "Stem:mer": 1.0, "Lemma:mer": 1.0}, {"POS:NOUN": 1.0, "Stem:mur": 1.0, "Ending:s": 1.0}]
    classes = open_classes(["mer", "murs"], rows, least_types=1)
    assert [classes.names[o] for o in classes.class_of] == ["NOUN", "NOUN"]


def test_names_of_classes_differ() -> None:
    rows = [{"POS:X": 1.0, "A:b": 1.0}, {"POS:X": 1.0, "B:b": 1.0}]
    classes = open_classes(["aa", "bb"], rows, least_types=1)
    assert len(set(classes.names)) == len(classes.names)


# ---- building -------------------------------------------------------------------------------------------------------

NOUNS = "rose roses pomme pommes vache mer lune".split()
COUNTS = {"le": 40, "la": 30, "chat": 7, **dict.fromkeys(NOUNS, 1), "va": 2, "prend": 2, "1999": 1, "17": 1, "3,5": 1}
OUTSIDE = {"Zoé": 2, "chamois": 9}


def small_prior(known: str = "", outside: dict[str, int] = OUTSIDE) -> tuple[Prior, WordList, Lexicon]:
    symbols = (*SPECIALS, *COUNTS, *known.split())
    counts = np.array([0, 0, 20, sum(outside.values()), *COUNTS.values(), *(1 for _ in known.split())])
    words = WordList(symbols, counts)
    lexicon = Lexicon()
    for noun in [*NOUNS, "chamois"]:
        lexicon.add(noun, ["POS:NOUN", "Gender:Fem"])
    for verb in ("va", "prend"):
        lexicon.add(verb, ["POS:VERB"])
    lexicon.add("le", ["POS:DET"])
    prior, _ = plain_prior(words, counts, lexicon, Recipe(top_words=3, shapes=True))
    return prior, words, lexicon


def opened(least_types: int = 2, outside: dict[str, int] = OUTSIDE) -> Prior:
    prior, words, lexicon = small_prior(outside=outside)
    return add_open_vocabulary(prior, words, {**COUNTS, **outside}, lexicon, least_types=least_types)


def test_an_open_vocabulary_is_built_from_rare_words() -> None:
    before, _, _ = small_prior()
    prior = opened()
    vocabulary = prior.find(OpenVocabularyPart).vocabulary
    assert prior.counts()["open classes"] == len(vocabulary.names)
    assert set(vocabulary.names) == {"NOUN.Fem", "VERB", "number", "other"}
    assert math.isclose(np.exp(vocabulary.log_shares).sum(), 1.0)
    # what training reads as unknown: discount over count of rare words
    n = Counter({**COUNTS, **OUTSIDE}.values())
    discount = n[1] / (n[1] + 2 * n[2])
    place = {symbol: i for i, symbol in enumerate(prior.symbols)}
    for word, count in COUNTS.items():
        expected = discount / count if count <= 5 else 0.0
        assert vocabulary.word_shares[place[word]] == pytest.approx(expected)
        weight = math.exp(before.log_weights[place[word]]) * (1 - expected)
        assert math.exp(prior.log_weights[place[word]]) == pytest.approx(weight)
    assert np.exp(prior.log_weights).sum() == pytest.approx(1.0)
    assert prior.log_weights[3] > before.log_weights[3]
    # shares of the classes: unknown tokens of each, and a little for every class
    names, shares = vocabulary.names, np.exp(vocabulary.log_shares)
    tokens = {"NOUN.Fem": 7 * discount + 9, "VERB": 2 * discount, "number": 3 * discount, "other": 2.0}
    total = sum(tokens.values()) + 1
    for name, many in tokens.items():
        assert shares[names.index(name)] == pytest.approx((many + 1 / len(names)) / total)


def test_frequent_words_teach_spelling_alone() -> None:
    """*chats* is more probable if *chat* is frequent, but unknown words are no more often of its class."""
    without = opened(outside={**OUTSIDE, "chat": 0}).find(OpenVocabularyPart).vocabulary
    vocabulary = opened().find(OpenVocabularyPart).vocabulary
    np.testing.assert_allclose(vocabulary.log_shares, without.log_shares)
    np.testing.assert_array_equal(vocabulary.features.values, without.features.values)
    place = vocabulary.names.index("other")
    assert (vocabulary.strings.log_probs(["chats"]) > without.strings.log_probs(["chats"]))[0, place]


def test_symbols_of_fairseq_in_a_text_are_no_rare_words() -> None:
    """Texts such as the Penn Treebank have `<unk>` for rare words."""
    with_specials = opened(outside={**OUTSIDE, **{symbol: 30 * (i + 1) for i, symbol in enumerate(SPECIALS)}})
    ours, theirs = (prior.find(OpenVocabularyPart).vocabulary for prior in (opened(), with_specials))
    assert ours.names == theirs.names
    np.testing.assert_array_equal(ours.log_shares, theirs.log_shares)
    np.testing.assert_array_equal(ours.word_shares, theirs.word_shares)
    strings = ["<unk>", "</s>", "lunes", "7"]
    np.testing.assert_array_equal(ours.strings.log_probs(strings), theirs.strings.log_probs(strings))


def test_a_class_has_the_mean_features_of_its_words() -> None:
    vocabulary = opened().find(OpenVocabularyPart).vocabulary
    rows = {name: vocabulary.features.row(o) for o, name in enumerate(vocabulary.names)}
    unknown = {"NOTTOP": 1.0, "SPECIAL:<unk>": 1.0}
    assert rows["NOUN.Fem"] == {"POS:NOUN": 1.0, "Gender:Fem": 1.0, "Open:NOUN.Fem": 1.0, **unknown}
    number = rows["number"]
    assert number["Shape:Number"] == 1.0 and number["Shape:Year"] == pytest.approx(1 / 3)
    assert "TOPFORM" not in str(rows)


def test_a_text_without_rare_words_is_refused() -> None:
    prior, words, lexicon = small_prior()
    with pytest.raises(DataError, match="--open-vocabulary: expected words that occur at most 5 times.*floor"):
        add_open_vocabulary(prior, words, {"le": 40, "la": 30}, lexicon)


def test_a_prior_keeps_its_open_vocabulary(tmp_path: Path) -> None:
    prior = opened()
    prior.save(tmp_path / "prior")
    again = Prior.load(tmp_path / "prior")
    assert again.fingerprint == prior.fingerprint
    ours, theirs = (found.find(OpenVocabularyPart).vocabulary for found in (prior, again))
    assert ours.names == theirs.names
    strings = ["roses", "Zoé", "2017", "é𝄞", "va"]
    np.testing.assert_array_equal(ours.strings.log_probs(strings), theirs.strings.log_probs(strings))
    plain, _, _ = small_prior()
    assert prior.without(OpenVocabularyPart).fingerprint != prior.fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("log_shares", lambda x: x - 1.0, "shares of the open classes"),
        ("log_shares", lambda x: x + np.nan, "shares of the open classes"),
        ("log_outside", lambda x: x + 9.0, "shares of the open classes"),
        ("values", lambda x: x * np.float32(2e6), "the open classes' features contain values above 1,000,000"),
        ("values", lambda x: x * np.float32("nan"), "the open classes' features contain values that are not finite"),
        ("numbers", lambda x: x + np.nan, "does not add up to one"),
        ("indices", lambda x: x + 10_000, "features of the open classes"),
        ("characters", lambda x: x[::-1].copy(), "alphabet"),
        ("characters", lambda x: x - 10_000, "alphabet"),
        ("keys", lambda x: x * 99, "character n-grams"),
        ("keys", lambda x: x[:-1], "do not add up"),
        ("entry_keys", lambda x: x + 10_000, "character n-grams"),
        ("entry_counts", lambda x: x * 0, "character n-grams"),
        ("numbers", lambda x: x * 2.0, "does not add up to one"),
        ("geometric", lambda x: x + 1.0, "shares outside"),
        ("word_shares", lambda x: x[:-1], "expected a row of"),
        ("counts", lambda x: x.astype(np.float64), "expected a row of int64"),
    ],
)
def test_damaged_arrays_are_refused(name: str, change, message: str) -> None:  # type: ignore[no-untyped-def]
    prior = opened()
    vocabulary = prior.find(OpenVocabularyPart).vocabulary
    arrays = vocabulary.arrays()
    description, names = vocabulary.description(), prior.output.features.names
    read_open_vocabulary(arrays, description, names, len(prior.symbols))
    with pytest.raises(ValueError, match=message):
        read_open_vocabulary(arrays | {name: change(arrays[name])}, description, names, len(prior.symbols))


def test_damaged_descriptions_are_refused(tmp_path: Path) -> None:
    prior = opened()
    vocabulary = prior.find(OpenVocabularyPart).vocabulary
    for change in ({"kind": "runes"}, {"order": 10**9}, {"classes": []}, {"classes": [1]}):
        with pytest.raises(ValueError):
            read_open_vocabulary(
                vocabulary.arrays(), vocabulary.description() | change, prior.output.features.names, len(prior.symbols)
            )
    prior.save(tmp_path / "prior")
    path = tmp_path / "prior" / "prior.json"
    path.write_text(path.read_text().replace('"characters"', '"runes"'))
    with pytest.raises(PriorError, match="the kind of the open vocabulary is unknown, 'runes'"):
        Prior.load(tmp_path / "prior")


# ---- ids ------------------------------------------------------------------------------------------------------------


def test_ids_of_strings_say_what_the_classes_say() -> None:
    prior = opened()
    vocabulary, table = prior.find(OpenVocabularyPart).vocabulary, prior.open_words

    def log_probs(ids: np.ndarray) -> np.ndarray:
        return table.rows()[0][ids - table.words.num_words]

    strings = ["Zoé", "été", "Zoé"]
    ids = np.array([table.words.index(string) for string in strings])
    assert (ids >= len(prior.symbols)).all() and ids[0] == ids[2]
    expected = vocabulary.strings.log_probs(strings) - vocabulary.log_outside
    np.testing.assert_allclose(log_probs(ids), expected, rtol=1e-5)
    alias = table.aliases(np.array([prior.symbols.index("rose")]))
    probability = np.exp(vocabulary.strings.log_probs(["rose"]))[0]
    expected = np.log(probability / (np.exp(vocabulary.log_outside) + probability))
    np.testing.assert_allclose(log_probs(alias)[0], expected, rtol=1e-5)
    spelt = [table.words.symbols[table.spelt(o)] for o in range(len(vocabulary.names))]
    assert not set(spelt) & set(prior.symbols) and table.spelt(0) == table.spelt(0)


@pytest.mark.parametrize("change", [-9.0, -800.0])
def test_strings_are_no_more_probable_than_all_of_their_class(change: float) -> None:
    table = opened().open_words
    vocabulary = replace(table.vocabulary, log_outside=table.vocabulary.log_outside + change)
    damaged = OpenTable(vocabulary, table.words)
    damaged.words.index("Zoé")
    table.rows()
    with pytest.raises(PriorError, match="^log_outside of the prior: expected strings with a probability of at most 1"):
        damaged.rows()


# ---- what a network makes of them -----------------------------------------------------------------------------------

S, OPEN, J, HIDDEN, N, UNK = 5, 3, 2, 4, 6, 3


def tiny_model() -> tuple[LogLinearOutput, OpenMixture, OpenVocabulary, Alphabet]:
    """Four words, <unk> as class 3; three open classes over all strings of a, b and one other character."""
    torch.manual_seed(0)
    names = tuple("abcdef")
    dense = (torch.rand(S + OPEN, len(names)) < 0.5).numpy() * np.arange(1, S + OPEN + 1)[:, None] / 4
    table = FeatureTable.from_rows([{names[i]: float(v) for i, v in enumerate(row)} | {"f": 1.0} for row in dense])
    words = "aab ab abba b ba".split()
    alphabet = Alphabet(np.array([ord("a"), ord("b")]), num_characters=3)
    characters = CharacterNGrams.train(words, np.array([0, 1, 0, 1, 2]), OPEN, 3, alphabet)
    strings = StringDistributions(characters, GeometricNumbers.train([]), np.zeros(OPEN))
    known = ["a", "b", "ab", "ba"]
    features = table.select(np.arange(S, S + OPEN))
    shares = np.log(np.array([0.5, 0.3, 0.2]))
    vocabulary = OpenVocabulary(("x", "y", "z"), features, shares, strings, strings.log_outside(known), np.zeros(5))
    output = LogLinearOutput(table.select(np.arange(S)), torch.arange(S), HIDDEN).double()
    with torch.no_grad():
        output.bias.copy_(torch.randn(len(output.bias)))
        output.weight.copy_(torch.randn(output.weight.shape))
    mixture = OpenMixture(vocabulary, UNK).double()
    mixture.log_shares = torch.from_numpy(shares)
    return output, mixture, vocabulary, alphabet


def by_definition(
    output: LogLinearOutput, mixture: OpenMixture, hidden: Tensor, log_mass: Tensor, slots: Tensor | None
) -> tuple[Tensor, Tensor]:
    """log p of every class (N, S) but <unk>, whose place is −∞, and of every open class (N, O): one sum Z over all."""
    adaptor = hidden @ output.weight.T + output.bias
    static = adaptor @ output.rows.dense().to(adaptor.dtype).T + log_mass
    unk = torch.zeros(S, dtype=torch.bool)
    unk[UNK] = True
    static = static.masked_fill(unk, -math.inf)
    opened = adaptor @ mixture.rows.dense().to(adaptor.dtype).T + mixture.log_shares + log_mass[:, UNK : UNK + 1]
    terms = [static, opened] + ([] if slots is None else [slots])
    z = torch.cat(terms, dim=1).logsumexp(1, keepdim=True)
    return static - z, opened - z


@pytest.mark.parametrize("with_slots", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_value_and_gradient_equal_the_definition(with_slots: bool, sparse: bool) -> None:
    """One Z over classes, open classes and slots: the same for dictionary words, <unk>, and strings outside."""
    output, mixture, _, _ = tiny_model()
    torch.manual_seed(1)
    hidden = torch.randn(N, HIDDEN, dtype=torch.float64, requires_grad=True)
    class_weights: Tensor | ClassWeights = torch.randn(N, S, dtype=torch.float64)
    if sparse:
        class_weights = sparse_masses(
            torch.randn(1, S, dtype=torch.float64), torch.tensor([0, 1, 1, 4]), torch.tensor([UNK, 2, UNK, 0]),
            torch.randn(4, dtype=torch.float64), torch.tensor([False, True, False, False, True, False]),
            torch.randn(N, dtype=torch.float64),
        )  # fmt: skip
    dense = class_weights.dense() if isinstance(class_weights, ClassWeights) else class_weights
    of_slots = torch.randn(N, J, dtype=torch.float64) if with_slots else None
    slot_mass = torch.randn(N, J, dtype=torch.float64)
    targets = torch.tensor([UNK, UNK, 2, UNK, 0, 1])  # the last two of <unk> are strings
    log_strings = torch.log(torch.rand(N, OPEN, dtype=torch.float64))
    string = torch.tensor([False, True, False, True, False, False])

    scores = row_scores(hidden, *mixture.composed(output.weight, output.bias))
    beside, mass = (
        scores.logsumexp(1, keepdim=True),
        ClassWeights.of(class_weights, N).for_classes(torch.full((N,), UNK))[:, None],
    )
    torch.testing.assert_close(mass[:, 0], dense[:, UNK])
    if of_slots is not None:
        beside, mass = torch.cat([of_slots, beside], 1), torch.cat([slot_mass, mass], 1)
    places = targets.masked_fill(targets == UNK, S + beside.size(1) - 1)
    found = ExactRows(output, None, UNK).log_prob(hidden, places, class_weights, None, SlotScores(beside, mass, UNK))
    found = found + torch.where(string, log_spelling(scores, log_strings), 0.0)

    static, opened = by_definition(output, mixture, hidden, dense, None if of_slots is None else of_slots + slot_mass)
    expected = static.gather(1, targets.unsqueeze(1)).squeeze(1)
    unk = targets == UNK
    of_unk = torch.where(string.unsqueeze(1), opened + log_strings, opened)[unk].logsumexp(1)
    expected = expected.masked_scatter(unk, of_unk)
    torch.testing.assert_close(found, expected)
    possible = ~expected.isneginf()
    leaves = [hidden, output.weight, output.bias]
    for ours, theirs in zip(
        torch.autograd.grad(found[possible].sum(), leaves),
        torch.autograd.grad(expected[possible].sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


def test_search_scores_equal_the_definition() -> None:
    output, mixture, _, _ = tiny_model()
    hidden, log_mass = torch.randn(N, HIDDEN, dtype=torch.float64), torch.randn(N, S, dtype=torch.float64)
    scores = row_scores(hidden, *mixture.composed(output.weight, output.bias))
    slots = SlotScores(scores.logsumexp(1, keepdim=True), log_mass[:, UNK:], UNK)
    classes = ExactRows(output, None, UNK).distribution(hidden, slots, ClassWeights.of(log_mass, N)).log_probs
    static, opened = by_definition(output, mixture, hidden, log_mass, None)
    static[:, UNK] = opened.logsumexp(1)
    torch.testing.assert_close(classes, static)


def test_all_strings_together_have_probability_one() -> None:
    """Dictionary words a, b, ab, ba and </s>-like class 4 by their classes; every other string by the open classes."""
    output, mixture, vocabulary, _ = tiny_model()
    hidden, log_mass = torch.randn(1, HIDDEN, dtype=torch.float64), torch.zeros(1, S, dtype=torch.float64)
    scores = row_scores(hidden, *mixture.composed(output.weight, output.bias))
    slots = SlotScores(scores.logsumexp(1, keepdim=True), log_mass[:, UNK:], UNK)
    classes = ExactRows(output, None, UNK).distribution(hidden, slots, ClassWeights.of(log_mass, 1)).log_probs.exp()[0]
    # of the strings up to 11 characters, with `c` in the place of the one unknown character up to 7
    strings = ["".join(t) for k in range(1, 12) for t in itertools.product("ab", repeat=k)]
    strings += [s for k in range(1, 8) for s in map("".join, itertools.product("abc", repeat=k)) if "c" in s]
    outside = [s for s in strings if s not in ("a", "b", "ab", "ba")]
    log_strings = torch.from_numpy(vocabulary.strings.log_probs(outside) - vocabulary.log_outside)
    spelt = log_spelling(scores.expand(len(outside), -1), log_strings).exp().sum().detach()
    total = classes.sum() - classes[UNK] + classes[UNK] * spelt
    assert 0.9 < float(spelt) < 1.0 and 0.97 < float(total) <= 1.0
    # and what enumeration leaves out is what the string distributions have in longer strings
    inside = np.exp(vocabulary.strings.log_probs(strings)).sum(0)
    shares = torch.log_softmax(scores, -1).exp()[0].detach().numpy()
    missing = (shares * (1.0 - inside) / np.exp(vocabulary.log_outside)).sum()
    assert float(spelt) + missing == pytest.approx(1.0, abs=1e-9)
