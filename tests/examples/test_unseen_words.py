"""unseen_words.py: bits of unseen words, compounds, and ranks of strings. lexicon_bound.py: what a list may save."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from example_modules import EXAMPLES, load
from shell import Shell
from tiny_world import World, open_prior

from fairseq_llrnn.features.feature_table import FeatureTable
from fairseq_llrnn.open_vocabulary.capitalised import Capitalised
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.compounds import Compounds
from fairseq_llrnn.open_vocabulary.listed_strings import ListedStrings
from fairseq_llrnn.open_vocabulary.number_strings import GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.spelling_lexicon import SpellingLexicon
from fairseq_llrnn.open_vocabulary.vocabulary import OpenVocabulary

script, ranks, bound = load(EXAMPLES / "open_vocabulary", "unseen_words", "string_ranks", "lexicon_bound")

KNOWN = ["a", "ab", "B", "ba"]
LISTED = ListedStrings.of({"ab": 3.0, "ba": 4.0, "b": 1.0, "aab": 2.0})
LOG_CLASSES = np.log(np.array([0.7, 0.3]))


def vocabulary(parts: tuple[object, ...]) -> OpenVocabulary:
    """Return two classes with a lexicon of these parts."""
    words = ["ab", "ba", "aab", "Bb", "bbb", "Bba"]
    characters = CharacterNGrams.train(words, np.array([0, 0, 1, 1, 0, 1]), 2, 3)
    lexicon = SpellingLexicon(parts, np.array([[0.3, 0.1], [0.2, 0.4], [0.1, 0.2]])[: len(parts)]) if parts else None
    strings = StringDistributions(characters, GeometricNumbers.train([]), np.zeros(2), lexicon)
    features = FeatureTable.from_rows([{}, {}], ("x",))
    return OpenVocabulary(("x", "y"), features, LOG_CLASSES, strings, strings.log_outside(KNOWN), np.zeros(4))


@pytest.mark.parametrize(
    "parts", [(), (LISTED, Compounds(LISTED), Capitalised(Compounds(LISTED)))], ids=["characters", "lexicon"]
)
def test_ranks_are_those_of_all_strings(parts: tuple[object, ...]) -> None:
    opened = vocabulary(parts)
    strings = ["".join(t) for n in range(1, 11) for t in itertools.product("abB", repeat=n)]
    strings = [string for string in strings if string not in KNOWN]
    log_probs = np.logaddexp.reduce(opened.strings.log_probs(strings) - opened.log_outside + LOG_CLASSES, axis=1)
    ordered = [strings[i] for i in np.argsort(-log_probs)]
    found, most = ranks.Ranks(opened, set(KNOWN)), 30
    for word in ["b", "aab", "Bb", "abab", "Bbba", "abbab", "Baaba", ordered[29], ordered[30], ordered[31]]:
        for size in {0, (len(word) + 1) // 2}:
            expected = 1 + [other for other in ordered if other.startswith(word[:size])].index(word)
            assert found.rank(word, size, LOG_CLASSES, most) == min(expected, most + 1), (word, size)
    assert (len(found.listed) > 0) == bool(parts)


def test_a_large_search_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "MOST_PREFIXES", 1)
    assert ranks.Ranks(vocabulary(()), set(KNOWN)).rank("abbabab", 0, LOG_CLASSES, 1_000_000) is None


def test_bound_of_a_list(tmp_path: Path) -> None:
    pytest.importorskip("hunspell")
    (tmp_path / "a.aff").write_text("SET UTF-8\n")
    (tmp_path / "a.dic").write_text("3\nab\nabab\nbaba\n")
    (tmp_path / "train.txt").write_text("ab ab ba bab aba b\n")
    (tmp_path / "test.txt").write_text("ab abab baba abba\n")
    (tmp_path / "list.txt").write_text("ab\t9\nabab\t3\nbaba\t1\nbbbb\t4\n")
    row = bound.bounds(tmp_path, str(tmp_path / "list.txt"), tmp_path / "a.dic")
    assert row["words with letters"] == 3 and row["in the list"] == row["accepted by hunspell"] == 2 / 3
    assert row["… by frequency"] == pytest.approx(-np.log2([3 / 8, 1 / 8]).mean())
    saved = row["… of those in the list"] - row["… by frequency"]  # all words are in small letters
    assert row["gain of frequencies"] == pytest.approx(2 / 3 * saved)
    # samples of the n-grams are as often words of hunspell as the n-grams expect
    model = bound.CharacterNGrams.train(["ab", "ba", "bab", "aba", "b"], np.zeros(5, dtype=np.int64), 1)
    outside = 1.0 - bound.probs(model, ["ab", "ba", "bab", "aba", "b"]).sum()
    share = bound.probs(model, ["abab", "baba"]).sum() / outside
    assert row["gain of membership"] == pytest.approx(-2 / 3 * np.log2(share), rel=0.1)


def test_compounds_need_a_second_stem(
    shell: Shell, world: World, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("hunspell")
    open_prior(shell, world, world.data, "open")
    shell.run("fairseq-train", *world.train_args("open", tmp_path / "model"), "--max-epoch", 1)
    (tmp_path / "a.aff").write_text("SET UTF-8\nCOMPOUNDFLAG C\nSFX S Y 1\nSFX S 0 s .\n")
    (tmp_path / "a.dic").write_text("2\nchat/SC\nmur/C\n")
    (tmp_path / "train.txt").write_text("le chat voit\n")
    (tmp_path / "test.txt").write_text("le chatmur voit 12\nun chats prend Chatmur\nle chatbot\n")
    options = [f"--{name}={tmp_path / name}.txt" for name in ("train", "test")]
    options += ["--hunspell", str(tmp_path / "a.dic"), "--models", str(tmp_path / "model" / "checkpoint_last.pt")]
    monkeypatch.setattr(sys, "argv", ["unseen_words.py", *options])
    assert script.main() == 0
    _, *rows = capsys.readouterr().out.splitlines()
    figures = {name.strip(): float(value) for name, value in (row.rsplit(maxsplit=1) for row in rows)}
    assert figures["words"] == 6 and figures["compounds"] == 2  # chatmur, un, chats, prend, Chatmur, chatbot
    assert figures["bits per compound"] > 5.0 and figures["… stopped after no letter"] == 0
    assert figures["… stopped after its first half"] == 0
    assert {0.0, 50.0, 100.0} >= {figures["ten best after no letter, %"], figures["ten best after its first half, %"]}
    monkeypatch.setattr(sys, "argv", ["unseen_words.py", *options[:-1], str(trained / "checkpoint_best.pt")])
    assert script.main() == 2
    expected = "expected a model with an open vocabulary, found another; choose its checkpoint"
    assert expected in capsys.readouterr().err
