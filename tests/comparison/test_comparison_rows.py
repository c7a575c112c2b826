"""Mixtures, differences and all forms of the table, from results of jobs."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairseq_llrnn.comparison import mixtures, tables
from fairseq_llrnn.comparison.rows import Row, joined, measured_of, mixtures_of, row_of, with_differences, with_doubts
from fairseq_llrnn.comparison.texts import Texts

TEXTS = Texts(["a b", "b"], ["a b", "b c"], ["b a", "c"])
BIT = -math.log(2)


def result(model: str, seed: int = 1, bits: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return a result in which each word and end of the test text has `bits`, the first word one more."""
    valid = [[bits * BIT] * 3, [bits * BIT] * 3]
    test = [[(bits + 1) * BIT, bits * BIT, bits * BIT], [bits * BIT] * 2]
    of_text = {"valid": {"tokens": valid, "sizes": [[1, 1], [1, 1]]}, "test": {"tokens": test, "sizes": [[1, 1], [1]]}}
    return {"model": model, "setting": "s", "seed": seed, "seconds": 2.0, **of_text, **more}


def test_weights_of_mixtures() -> None:
    first, second = np.log([0.9, 0.2]), np.log([0.1, 0.4])
    np.testing.assert_allclose(np.exp(mixtures.mixed(first, second, 0.25)), [0.3, 0.35])
    np.testing.assert_array_equal(mixtures.mixed(first, second, 1.0), first)
    np.testing.assert_array_equal(mixtures.mixed(np.array([-np.inf]), np.array([-1.0]), 0.0), [-1.0])
    # the derivative of the likelihood is zero at w: 0.8 / (0.1 + 0.8 w) = 0.2 / (0.4 − 0.2 w)
    assert mixtures.best_weight(first, second) == pytest.approx(0.94, abs=0.011)


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_many_models_are_the_best(seed: int) -> None:
    generator = np.random.default_rng(seed)
    log_probs = np.log(generator.dirichlet(np.ones(6), (4, 300)).max(2))
    log_probs[3] = log_probs[:3].min(0) - 1.0  # a model that is worse than all others everywhere
    weights = mixtures.best_weights(log_probs)
    together = mixtures.mixed_all(log_probs, weights)
    np.testing.assert_allclose(together, np.log(np.exp(log_probs).T @ weights))
    # Karush, Kuhn, Tucker: the mean of p_m / p is 1 for a model with weight, and less for one without
    slopes = np.exp(log_probs - together).mean(1)
    assert weights.sum() == pytest.approx(1.0) and weights[3] < 1e-6 and slopes[3] < 1.0
    np.testing.assert_allclose(slopes[weights > 0.01], 1.0, atol=1e-3)
    far = mixtures.mixed_all(np.array([[-1500.0], [-700.0]]), mixtures.best_weights(np.array([[-1.0], [-800.0]])))
    assert far[0] > -730.0  # a text that only the model without weight expects
    pair = log_probs[:2]
    best = mixtures.loss(mixtures.mixed(*pair, mixtures.best_weight(*pair)))
    assert mixtures.loss(mixtures.mixed_all(pair, mixtures.best_weights(pair))) < best + 1e-6


def test_figures_of_a_model() -> None:
    row = row_of(measured_of([result("suffixes"), result("suffixes", 2, 2.0)]), TEXTS)
    assert row.seeds == [1, 2]
    # "b a" has 4 characters with its end, "c" has 2; bits are 6 and 11
    assert row.test == pytest.approx((6 + 11) / 2 / 6)
    assert row.deviation == pytest.approx(5 / 6 / math.sqrt(2))
    assert row.seen == pytest.approx(2.0) and row.unseen == pytest.approx(1.5)  # "b" has one bit more, "c" is unseen
    assert row.sentences is not None and row.sentences.tolist() == pytest.approx([5.5, 3.0])
    assert math.isnan(row_of(measured_of([result("softmax")]), TEXTS).deviation)


def test_a_model_converges_if_all_its_seeds_do() -> None:
    stopped, unfinished = result("softmax", is_converged=True), result("softmax", 2, is_converged=False)
    for one in (stopped, result("ngrams-2")):
        assert row_of(measured_of([one]), TEXTS).is_converged
    row = row_of(measured_of([stopped, unfinished]), TEXTS)
    assert tables.cells(row)[0] == "softmax (not converged)" and "not converged: it" in tables.as_text([row])


def test_a_network_that_is_worse_than_2_grams_is_marked() -> None:
    results = [[result("ngrams-2", bits=2.0)], [result("ngrams-5", bits=9.0)], [result("softmax", bits=2.1)]]
    results += [[result("pieces", bits=1.9)], [result("suffixes", bits=1.0), result("suffixes", 2, 2.2)]]
    rows = with_doubts([row_of(measured_of(one), TEXTS) for one in results])
    assert [row.name for row in rows if row.is_poor] == ["softmax", "suffixes"]
    assert tables.cells(rows[2])[0] == "softmax (worse than 2-grams)"
    assert "worse than 2-grams: on\nthe validation text" in tables.as_text(rows)
    rows = with_doubts([*rows[1:]])  # without 2-grams
    assert not any(row.is_poor for row in rows) and "worse" not in tables.as_text(rows)


def test_pieces_are_summed_to_words() -> None:
    trigrams = {"valid": [[BIT] * 3] * 2, "test": [[BIT], [BIT]]}
    of_pieces = result("pieces", setting="x-500pieces", num_pieces=437, ngrams={"3": trigrams})
    of_pieces["test"] = {"tokens": [[BIT, BIT, BIT, BIT], [BIT, BIT, BIT]], "sizes": [[2, 1], [2]]}
    row = row_of(measured_of([of_pieces]), TEXTS)
    assert row.title == "softmax of BPE pieces (437)"  # those made
    assert row.seen == pytest.approx(1.5) and row.unseen == pytest.approx(2.0)
    assert row.test == pytest.approx(7 / 6)


def test_the_best_of_each_family_is_mixed() -> None:
    bits = {"softmax": 4.0, "softmax-unigram": 4.5, "suffixes": 3.0, "ngrams-2": 2.0}
    models = [measured_of([result(name, bits=value)]) for name, value in bits.items()]
    rows = mixtures_of(models, TEXTS)
    assert [(row.name, row.title) for row in rows] == [
        ("mixed-softmax", "2-grams alone, as the mixture softmax + 2-grams"),
        ("mixed-ours", "2-grams alone, as the mixture ours, suffixes + 2-grams"),
    ]
    # a mixture without our network is not ours
    compared = with_differences([*(row_of(model, TEXTS) for model in models), *rows], TEXTS)
    assert [row.name for row in compared if row.is_reference] == ["suffixes"]
    assert rows[1].setting == "s, 2-grams, weight of the network 0.00"  # n-grams are better everywhere
    assert rows[1].test == pytest.approx(row_of(models[-1], TEXTS).test)
    assert mixtures_of(models[:-1], TEXTS) == []


def test_all_models_are_mixed_word_by_word() -> None:
    def of_test(model: str, *bits: float, **more: Any) -> dict[str, Any]:
        words = [bits[:3], bits[3:]]
        tokens = [[BIT * value for value in line] for line in words]
        return result(model, **more) | {
            split: {"tokens": tokens, "sizes": [[1, 1], [1]]} for split in ("valid", "test")
        }

    pieces = of_test("pieces", 4, 4, 1, 4, 1, setting="x-500pieces", num_pieces=9, ngrams={})
    pieces["test"] = pieces["valid"] = {"tokens": [[BIT] * 5, [2 * BIT, 3 * BIT]], "sizes": [[2, 2], [1]]}
    models = [of_test("ngrams-2", 1, 9, 9, 9, 9), of_test("suffixes", 9, 1, 1, 9, 1), of_test("softmax", 9, 9, 9, 1, 9)]
    measured = [measured_of([one]) for one in [*models, pieces]]
    others, whole = joined(measured, TEXTS)
    assert [others.title, whole.title] == ["all other models, mixed (against all models)", "all models, mixed"]
    bits = np.array([[1, 9, 9, 9, 9], [9, 9, 9, 1, 9], [2, 2, 1, 2, 3]])  # pieces summed to words

    def least(bits: np.ndarray) -> float:
        log_probs = bits * BIT
        return float(-mixtures.mixed_all(log_probs, mixtures.best_weights(log_probs)).sum() / math.log(2))

    assert others.test == pytest.approx(least(bits) / 6)
    assert whole.test == pytest.approx(least(np.array([*bits, [9, 1, 1, 9, 1]])) / 6) and whole.test < others.test
    assert "ours, suffixes" in whole.setting and "ours" not in others.setting
    rows = with_differences([*(row_of(model, TEXTS) for model in measured), others, whole], TEXTS)
    assert rows[-2].difference is not None
    assert rows[-2].difference.value == pytest.approx(others.test - whole.test)  # not minus the best of ours alone
    text = tables.paragraph(rows, TEXTS, "my text", 1, [])
    assert f"A mixture of all other models needs {others.test:.3f} bits, and with ours, {whole.test:.3f} bits" in text
    assert joined(measured[:2], TEXTS) == joined([measured[0], *measured[2:]], TEXTS) == []


def test_seeds_of_a_mixture_are_those_of_all_networks() -> None:
    """A seed may have failed, and results are found by their seeds."""
    bits = {("softmax", 1): 2.0, ("softmax", 3): 4.0, ("suffixes", 2): 9.0, ("suffixes", 3): 1.0}
    results = [[result(n, seed, bits[n, seed]) for n, seed in bits if n == name] for name in ("softmax", "suffixes")]
    measured = [measured_of([result("ngrams-2", bits=5.0)]), *map(measured_of, results)]
    others, whole = joined(measured, TEXTS)
    assert others.seeds == whole.seeds == [3]
    assert others.test == pytest.approx((4 * 5 + 1) / 6, rel=1e-3) and whole.test == pytest.approx(1.0, rel=1e-3)
    lonely = measured_of([result("suffixes", 2)])
    assert joined([*measured[:2], lonely], TEXTS) == []


def test_forms_of_the_table() -> None:
    bits = {"softmax": 2.0, "suffixes": 1.0}
    figures = [row_of(measured_of([result(name, bits=value)]), TEXTS) for name, value in bits.items()]
    failed = Row("pieces", "softmax of BPE pieces", failure="no library & no_pieces in C:\\a~b^c|<d>")
    rows = with_differences([*figures, failed], TEXTS)
    assert rows[1].is_reference and rows[0].difference is not None and rows[1].difference is None
    softmax, ours, last = (tables.cells(row) for row in rows)
    assert softmax[:7] == ["softmax", "1.5000", "1.8333", "", "1", "2.50", "2.00"]
    assert softmax[7] == "+0.8333" and ours[7:11] == ["ours", "", "", ""]
    assert last[0] == "softmax of BPE pieces: failed" and not any(last[1:])
    *markdown, blank, below = tables.as_markdown(rows).splitlines()
    assert len(markdown) == 5 and {line.count("|") for line in markdown} == {13} and not blank
    assert below == f"softmax of BPE pieces: failed, {failed.failure}" == tables.as_text(rows).splitlines()[-1]
    assert [line.split("\t")[0] for line in tables.as_tsv(rows).splitlines()][:2] == ["model", "softmax"]
    latex = tables.as_latex(rows)
    escaped = r"C:\textbackslash{}a\textasciitilde{}b\textasciicircum{}c\textbar{}\textless{}d\textgreater{}"
    assert latex.endswith(f"{{tabular}}\n\nsoftmax of BPE pieces: failed, no library \\& no\\_pieces in {escaped}\n")
    assert latex.count(r"\\") == 4
    better = row_of(measured_of([result("softmax", bits=0.5)]), TEXTS)
    negative = tables.as_latex(with_differences([better, figures[1]], TEXTS))
    assert negative.count("& $-$0.") >= 2 and "2-grams" in tables.as_latex([Row("a", "2-grams")])
    shown = tables.as_text(rows).splitlines()
    assert shown[1].index("1.5000") == shown[2].index("0.7500")
    text = tables.paragraph(rows, TEXTS, "my text", 3, [])
    assert "for each network. The validation text chooses" in text and "pieces" not in text and "standard" not in text
    assert "which ignores the variation between seeds)" in text
    assert text.startswith("We train language models on my text (3 words; sentences: 2 train, 2 valid, 2 test).")
    assert "Ours (ours, suffixes) needs 1.000 bits, the best other model on the test text (softmax) 1.833" in text


def test_without_ours_there_are_no_differences() -> None:
    rows = with_differences([row_of(measured_of([result("softmax")]), TEXTS)], TEXTS)
    assert rows[0].difference is None and not rows[0].is_reference
    assert tables.paragraph(rows, TEXTS, "my text", 1, []).endswith("The number of seeds is 1.\n")


def test_the_paragraph_has_only_what_was_done() -> None:
    def paragraph(*results: list[dict[str, Any]]) -> str:
        rows = with_differences([row_of(measured_of(one), TEXTS) for one in results], TEXTS)
        return tables.paragraph(rows, TEXTS, "my text", 2, ["language:hu", Path("a/hu_HU.dic")])

    ngrams = paragraph([result("ngrams-2")])
    assert "character n-grams and language:hu and hu_HU.dic spell unknown words." in ngrams
    assert not any(w in ngrams for w in ("tried", "stops", "seeds", "pieces"))
    assert "spell unknown words, and pieces" in paragraph([result("ngrams-2")], [result("characters")])
    pretrained = paragraph([result("pretrained-a")])
    assert "learning rates that were tried is 2." in pretrained and "own tokenizer" in pretrained
    assert not any(word in pretrained for word in ("dropout", "pieces", "character n-grams"))
    seeds = paragraph([result("suffixes"), result("suffixes", 2, 2.0)], [result("softmax", is_converged=False)])
    assert "spell unknown words, in networks together with a network of characters that sees the context." in seeds
    assert "The number of seeds is 1 to 2." in seeds and "until the last epoch: softmax." in seeds
    assert "needs 1.417 bits (standard deviation over 2 seeds: 0.589), the best other model on the test text" in seeds


def test_a_failed_seed_is_missing_in_the_number() -> None:
    rows = [row_of(measured_of([result("softmax", n) for n in seeds]), TEXTS) for seeds in ((1, 2, 3), (1, 3))]
    number = list(tables.COLUMNS).index("seeds")
    assert [tables.cells(row)[number] for row in rows] == ["3", "2"]
