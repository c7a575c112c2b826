"""A lexicon in the speller's background: probabilities of prefixes, by their definition."""

import itertools

import numpy as np
import pytest
import torch
from tiny_speller import CLASSES, WORDS, H, speller, tiny

from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END
from fairseq_llrnn.open_vocabulary.compounds import Compounds
from fairseq_llrnn.open_vocabulary.listed_strings import ListedStrings
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.open_vocabulary.spelled import SpelledStrings, starts_of
from fairseq_llrnn.open_vocabulary.speller import best_strings
from fairseq_llrnn.open_vocabulary.spelling_lexicon import SpellingLexicon

LISTED = ListedStrings.of({"abbb": 3.0, "aabb": 1.0, "bb": 1.0, "ab": 5.0})
SHARES = np.array([[0.4, 0.1, 0.0], [0.2, 0.1, 0.1]])


def with_lexicon() -> OpenTable:
    return tiny(lexicon=SpellingLexicon((LISTED, Compounds(LISTED)), SHARES))


@pytest.mark.parametrize("part", [LISTED, Compounds(LISTED)])
def test_next_characters_sum_to_the_probability_of_the_prefix(part: ListedStrings | Compounds) -> None:
    assert sum(part.next_probs("").values()) == pytest.approx(1.0)
    for prefix in map("".join, itertools.product("ab", repeat=4)):
        for n in range(5):
            after = part.next_probs(prefix[:n])
            assert after.get("", 0.0) == pytest.approx(part.string_probs([prefix[:n]])[0])
            if n < 4:
                expected = after.get(prefix[n], 0.0)
                assert sum(part.next_probs(prefix[: n + 1]).values()) == pytest.approx(expected, abs=1e-15)


def test_the_background_is_that_of_the_mixture() -> None:
    """b multiplies to Σ_k w_k P_k of the string, where no end is forbidden."""
    table = with_lexicon()
    spelled = SpelledStrings(table.vocabulary, table.words)
    plain = SpelledStrings(tiny().vocabulary, tiny().words)
    weights = SHARES.mean(1)
    strings = ["abbb", "abbbab", "bbb", "aabbabbbbb", "bbaab", "c", "abcb"]
    rows, of_ngrams = spelled.of_strings(strings), plain.of_strings(strings)
    ends = starts_of(rows.lengths).tolist()
    for string, start, end in zip(strings, ends, ends[1:], strict=False):
        base, ngrams = (found.log_base[start:end].double().clone() for found in (rows, of_ngrams))
        write = rows.write[start:end]
        parts = np.array([LISTED.string_probs([string])[0], Compounds(LISTED).string_probs([string])[0]])
        steps = [ngrams[i, symbol].exp() for i, symbol in enumerate(write.tolist())]
        expected = weights @ parts + (1.0 - weights.sum()) * float(torch.stack(steps).prod())
        found = float(torch.stack([base[i, symbol] for i, symbol in enumerate(write.tolist())]).sum().exp())
        assert found == pytest.approx(expected, rel=1e-4)
        allowed = (base[1:].exp().sum(1) - 1.0).abs() < 1e-5
        forbidden = base[1:, END].isneginf()
        assert (allowed | forbidden).all() and base[0, BEGIN] > -20


def test_a_search_sees_the_background_of_the_batch() -> None:
    """The best string by steps has the probability of the batch, and the lexicon's strings become probable."""
    table, model = with_lexicon(), speller(random=False)
    spelled = SpelledStrings(table.vocabulary, table.words)
    hidden = torch.zeros(CLASSES, H, dtype=torch.float64)
    found = best_strings(model, spelled, hidden, np.arange(CLASSES))
    assert "abbb" in found[0][:3] and not {*found[0]} & WORDS
    log_probs = model.log_neural(hidden[:1].expand(len(found[0]), -1), spelled.of_strings(found[0]))[:, 0]
    assert int(log_probs.argmax()) == 0
    by_ngrams = best_strings(model, SpelledStrings(tiny().vocabulary, tiny().words), hidden, np.arange(CLASSES))
    assert "abbb" not in by_ngrams[0][:3]


def test_all_strings_outside_the_dictionary_sum_to_one() -> None:
    table, model = with_lexicon(), speller()
    spelled = SpelledStrings(table.vocabulary, table.words)
    hidden = torch.randn(1, H, dtype=torch.float64)
    strings = ["".join(t) for n in range(1, 8) for t in itertools.product("abc", repeat=n)]
    strings = [string for string in strings if string not in WORDS]
    log_probs = model.log_neural(hidden.expand(len(strings), -1), spelled.of_strings(strings))
    total = log_probs.logsumexp(0).exp()
    assert (total <= 1.0 + 1e-6).all() and (total > 0.5).all()
