"""n-gram backgrounds from files and texts: laws, messages for users, and KenLM's values."""

from pathlib import Path

import numpy as np
import pytest
import torch
from ngram_oracles import word_list

from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.ngrams.arpa import LN_10, write_arpa
from fairseq_llrnn.ngrams.background import NGramBackground, ngram_from_file, ngram_from_text
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.testing import check_background

WORDS = word_list("a b c d e f")


def random_sentences(seed: int, count: int = 80, words: WordList = WORDS) -> Sentences:
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, len(words) - 3)
    lengths = rng.integers(1, 12, count)
    return Sentences(rng.choice(np.arange(4, len(words)), lengths.sum(), p=share / share.sum()), lengths)


def module(found: NGramBackground, class_of: torch.Tensor) -> AutomatonBackground:
    weights = torch.from_numpy(found.log_weights)
    return AutomatonBackground(class_of, int(class_of.max()) + 1, weights, found.automaton)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize(("folds", "weight", "temperature"), [(0, 0.5, 2.0), (3, 1.0, 1.0)])
def test_laws(order: int, folds: int, weight: float, temperature: float) -> None:
    found = ngram_from_text(random_sentences(order), WORDS, order, folds, weight, temperature)
    class_of = torch.tensor([0, 0, 1, 2, 3, 4, 3, 4, 4, 5])
    check_background(module(found, class_of))


def test_a_file_is_what_was_estimated(tmp_path: Path) -> None:
    sentences = random_sentences(1)
    write_arpa(tmp_path / "model.arpa", estimate(sentences, WORDS, 3))
    read, made = ngram_from_file(tmp_path / "model.arpa", WORDS), ngram_from_text(sentences, WORDS, 3, folds=0)
    assert not read.notes
    assert read.automaton.num_states == made.automaton.num_states
    assert read.log_weights == pytest.approx(made.log_weights, abs=1e-6)
    for name in ("tokens", "nexts", "fail", "root_next"):
        assert np.array_equal(getattr(read.automaton, name), getattr(made.automaton, name))
    assert read.automaton.log_weights == pytest.approx(made.automaton.log_weights, abs=1e-6)


def test_what_a_user_is_told(tmp_path: Path) -> None:
    write_arpa(tmp_path / "model.arpa", estimate(random_sentences(2), WORDS, 2))
    other = word_list("b c d e f g h")
    found = ngram_from_file(tmp_path / "model.arpa", other)
    found.automaton.check(found.log_weights)
    assert dict(found.notes) == {
        "words of the n-grams are not in the dictionary; dropped with their n-grams": 1,
        "words of the dictionary that the n-grams lack share the probability of <unk>": 2,
        "n-grams dropped: they contain such a word, or continue after </s>": found.notes[
            "n-grams dropped: they contain such a word, or continue after </s>"
        ],
    }
    assert np.logaddexp.reduce(found.log_weights) == pytest.approx(0.0, abs=1e-12)


def test_an_order_that_no_automaton_holds(tmp_path: Path) -> None:
    counts = [f"ngram {n}={3 if n == 1 else 1}" for n in range(1, 71)]
    lines = ["\\data\\", *counts, "\\1-grams:", "-1 </s>", "-1 <unk>", f"-1 {WORDS.symbols[4]} -0.2"]
    for n in range(2, 71):
        lines += [f"\\{n}-grams:", f"-0.5 {' '.join([WORDS.symbols[4]] * n)}{' -0.1' if n < 70 else ''}"]
    (tmp_path / "long.arpa").write_text("\n".join([*lines, "\\end\\", ""]))
    with pytest.raises(DataError, match="long.arpa: expected n-grams of at most 64 words, found some of 70; estimate"):
        ngram_from_file(tmp_path / "long.arpa", WORDS)


# ---- KenLM -----------------------------------------------------------------------------------------------------------


def compare_with_kenlm(path: Path, words: WordList, sentences: Sentences) -> None:
    """Compare log10 p of each word of each sentence, to 1e-4."""
    kenlm = pytest.importorskip("kenlm", reason="KenLM is not installed: pip install '.[ngram]'")
    theirs = kenlm.Model(str(path))
    found = ngram_from_file(path, words)
    background = module(found, torch.arange(len(words)))
    tokens = np.split(sentences.tokens, sentences.lengths.cumsum()[:-1])
    for ids in tokens:
        text = torch.tensor([[*ids.tolist(), 2]])
        previous = torch.cat([text[:, -1:], text[:, :-1]], dim=1)
        states = background.bind().flat_states(previous).squeeze(1)
        ours = background.step(states, text[0])[0] / LN_10
        scores = [score for score, _, _ in theirs.full_scores(" ".join(words.symbols[i] for i in ids))]
        assert ours.tolist() == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("order", [2, 3, 5])
def test_equals_kenlm_on_a_made_up_text(tmp_path: Path, order: int) -> None:
    write_arpa(tmp_path / "model.arpa", estimate(random_sentences(3, 300), WORDS, order))
    compare_with_kenlm(tmp_path / "model.arpa", WORDS, random_sentences(4, 200))


@pytest.mark.real_data("ud-french-gsd-1.4")
def test_equals_kenlm_on_a_thousand_sentences(tmp_path: Path, shared_data: Path) -> None:
    """The sentences contain unknown words, which are <unk> in both."""
    folder = shared_data / "ud-french-gsd-1.4"
    text: list[list[str]] = [[]]
    for _, line in iter_lines(folder / "dev.conllu.gz"):
        if not line:
            text.append([])
        elif line.split("\t")[0].isdecimal():
            text[-1].append(line.split("\t")[1].replace(" ", "").lower())
    train, test = text[1000:-1], text[:1000]
    symbols = sorted({word for sentence in train for word in sentence})
    words = WordList((*SPECIALS, *symbols), np.array([0] * 4 + [1] * len(symbols)))
    index = {symbol: i for i, symbol in enumerate(words.symbols)}
    ids = [[[index.get(word, 3) for word in sentence] for sentence in part] for part in (train, test)]
    write_arpa(tmp_path / "model.arpa", estimate(Sentences.of(ids[0]), words, 3))
    compare_with_kenlm(tmp_path / "model.arpa", words, Sentences.of(ids[1]))
