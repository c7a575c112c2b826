"""`llrnn prior --background ngram:…` and `automaton:…`, and what `llrnn show` says of them."""

import json
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from small_corpus import Build, Corpus, Llrnn

from fairseq_llrnn.prior.parts.automaton_part import FLOOR, AutomatonPart
from fairseq_llrnn.prior.prior import Prior

TEXT = """\
le chat dort
la petite table
le petit chat dort
le chien dort
la table
la chatte dort
"""
# an article, perhaps adjectives, a noun; the weights are probabilities
GRAMMAR = """\
weights probabilities
0 1 le 0.5
0 2 la 0.5
1 1 petit 0.25
1 3 chat 0.5
1 3 chien 0.25
2 3 table
3 4 dort 0.5
3 0.5
4
"""
ARPA = """\
\\data\\
ngram 1=6
ngram 2=2

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.5
-0.6\t</s>
-0.5\tle\t-0.3
-0.6\tchat
-0.9\teuro

\\2-grams:
-0.2\t<s> le
-0.1\tle chat

\\end\\
"""


@pytest.fixture
def build(corpus: Corpus, llrnn: Llrnn) -> Build:
    corpus.write("train.txt", TEXT)
    corpus.write("grammar.txt", GRAMMAR)
    corpus.write("small.arpa", ARPA)

    return partial(llrnn, "prior", "--dict", corpus.dictionary, "--top-words", 3, "--out", corpus.out)


def probabilities(prior: Prior, *words: str) -> dict[str, float]:
    """What may follow these words, and how probable it is under the background alone."""
    background = prior.background().bind()
    state = background.start(1)
    for word in words:
        state = background.advance(state, torch.tensor([prior.symbols.index(word)]))
    p = background.view(state).log_weights[0].double().softmax(0)
    return {symbol: float(p[i]) for i, symbol in enumerate(prior.symbols) if p[i] > 0}


def test_n_grams_of_the_training_text(built: Callable[..., Prior], corpus: Corpus) -> None:
    prior = built("--background", "ngram(3, folds=2)", "--count-text", corpus.place / "train.txt")
    assert prior.find(AutomatonPart).folds == 2
    after = probabilities(prior, "le")
    assert sum(after.values()) == pytest.approx(1, abs=1e-5)
    assert after["chat"] > after["table"] > 0 and "<pad>" not in after
    assert np.exp(prior.log_weights).sum() == pytest.approx(1)
    assert prior.settings["background"] == "ngram(3, folds=2)"
    plain = built("--background", "ngram(3, folds=0)", "--count-text", corpus.place / "train.txt")
    assert plain.find(AutomatonPart).folds == 0
    assert probabilities(plain, "le") == pytest.approx(after, abs=1e-6), "folds change nothing but training"
    assert plain.fingerprint != prior.fingerprint


def test_n_grams_over_the_unigram_of_another_text(built: Callable[..., Prior], corpus: Corpus) -> None:
    counts = ("--count-text", corpus.write("other.txt", "la table\nla table\nune table\n"))
    text = corpus.place / "train.txt"
    unigram, prior = built(*counts), built(*counts, "--background", f"ngram(2, text={text}, folds=2)")
    np.testing.assert_allclose(prior.log_weights, unigram.log_weights, atol=1e-6)
    after = probabilities(prior, "le")
    assert after["chat"] > after["table"] and sum(after.values()) == pytest.approx(1, abs=1e-5)
    assert any(line.startswith("--background train.txt ") for line in prior.settings["sources"])


def test_n_grams_of_a_file(build: Build, built: Callable[..., Prior], corpus: Corpus) -> None:
    path = corpus.place / "small.arpa"
    prior = built("--background", f"ngram:{path}")
    after = probabilities(prior, "le")
    assert 0.7 < after["chat"] < 0.8 and sum(after.values()) == pytest.approx(1, abs=1e-5)
    assert any(line.startswith("--background small.arpa ") for line in prior.settings["sources"])
    done = build("--background", f"ngram:{path}")
    assert "note: 1 " in done.err and "euro" not in done.out


def test_a_grammar(built: Callable[..., Prior], corpus: Corpus) -> None:
    prior = built("--background", f"automaton:{corpus.place / 'grammar.txt'}")
    assert probabilities(prior) == pytest.approx({"le": 0.5, "la": 0.5})
    assert probabilities(prior, "le", "petit") == pytest.approx({"petit": 0.25, "chat": 0.5, "chien": 0.25})
    assert probabilities(prior, "la", "table") == pytest.approx({"dort": 0.5, "</s>": 0.5})
    flat = built("--background", f"automaton({corpus.place / 'grammar.txt'}, temperature=2)")
    roots = [math.sqrt(p) for p in (0.25, 0.5, 0.25)]
    assert probabilities(flat, "le") == pytest.approx(
        dict(zip(("petit", "chat", "chien"), (r / sum(roots) for r in roots), strict=True)), abs=1e-5
    )


def test_a_training_sentence_without_probability(build: Build, built: Callable[..., Prior], corpus: Corpus) -> None:
    options = ("--count-text", corpus.place / "train.txt", "--background")
    grammar = corpus.place / "grammar.txt"
    assert build(*options, f"automaton:{grammar}").error == (
        f"{corpus.place / 'train.txt'}, line 2: the background gives 'petite' probability zero after 'la' (token 2; "
        "2 such sentences in all); fix the grammar or the text, or set on_zero=skip, as in automaton(FILE, "
        "on_zero=skip) (training leaves such sentences out), or on_zero=floor (forbidden words get a little weight)"
    )
    assert not corpus.out.exists()
    done = build(*options, f"automaton({grammar}, on_zero=skip)")
    assert "note: 2 sentences of --count-text to which the background gives probability zero, that training" in done.err
    skipping = Prior.load(corpus.out)
    assert skipping.find(AutomatonPart).on_zero == "skip"
    floor = built(*options, f"automaton({grammar}, on_zero=floor)")
    after = probabilities(floor, "la")
    assert set(after) > {"table", "petite", "</s>", "<unk>"} and after["petite"] < FLOOR
    assert probabilities(floor, "la", "petite")["chat"] > 10 * FLOOR, "behind it, all is as the unigram has it"


@pytest.mark.parametrize(
    "options, words",
    [
        (["--background", "ngram:"], "--background ngram:: expected a value after the name, found none; write"),
        (["--background", "ngram:3"], "--background ngram:3 needs --count-text, the text that the 3-grams are"),
        (["--background", "ngram(2, text=absent)"], "absent: cannot be read: No such file"),
        (["--background", "ngram(small.arpa, folds=3)"], "folds is an option of ngram(N), not of a file of n-grams"),
        (["--background", "ngram(2, fold=3)"], "ngram(2, fold=3): there is no key fold; did you mean folds?"),
        (["--background", "ngram(2, folds=1)"], "expected 2 `folds` at least, or 0 for n-grams of a text"),
        (["--background", "ngram(2, folds=101)"], ": folds: expected a number of at most 100, found 101; correct it"),
        (["--background", "ngram(2, weight=1.5)"], ": weight: expected a number of at most 1, found 1.5; correct it"),
        (["--background", "ngram(2, weight=nan)"], ": weight: expected a finite number, found nan; correct it"),
        (["--background", "ngram(2, weight=much)"], ": weight: expected a number, found 'much'; correct it"),
        (["--background", "ngram(2, prune=[1])"], "expected counts in `prune` that never fall, the first one 0 for"),
        (["--background", "ngram(2, prune=[0, 2, 1])"], "expected counts in `prune` that never fall, the first one 0"),
        (["--background", "automaton(grammar.txt, on_zero=ignore)"], ": on_zero: expected error, skip or floor, found"),
        (["--background", "unigram(smoothing=kneser)"], "smoothing: expected absolute, additive, good-turing or none,"),
        (["--background", "unigram(pseudo_count=1)"], "expected smoothing=additive, the only smoothing that adds"),
        (["--background", "uniform(smoothing=none)"], "uniform(smoothing=none): there is no key smoothing"),
        (["--background", "ngram:x.arpa"], "ngram:x.arpa: expected an existing file after the name, found none"),
        (["--background", "automaton(grammar.txt, temperature=0)"], "temperature: expected a number of at least 0.01,"),
        (["--background", "ngram:3 plus"], "--background ngram:3 plus>><<: expected a background, e.g. unigram"),
        (["--background", "cache:many"], "--background cache:many: expected a number of words after the name"),
        (["--background", "cache(5, weight=1)"], "cache(5, weight=1): weight: expected a number below 1, found 1;"),
        (["--background", "cache(5, decay=2)"], "cache(5, decay=2): decay: expected a number of at most 1, found 2;"),
        (["--background", "cache(5, decay=1, learned)"], "cache decay 1.0: expected a number above 0 and below 1"),
        (["--background", "unigram plus translations"], "`translations` needs --lexical-translation; add it"),
    ],
)
def test_errors(build: Build, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str) -> None:
    monkeypatch.chdir(corpus.place)
    assert words in build(*options).error


# ---- show -----------------------------------------------------------------------------------------------------------


def test_show_tells_of_a_grammar(built: Callable[..., Prior], llrnn: Llrnn, corpus: Corpus) -> None:
    built("--background", f"automaton({corpus.place / 'grammar.txt'}, on_zero=skip)")
    shown = json.loads(llrnn("show", corpus.out, "--json").out)
    assert shown["parts"][0]["made_from"] == "automaton"
    begins = {row["word"]: row["probability"] for row in shown["background"]["start"]}
    assert begins == pytest.approx({"le": 0.5, "la": 0.5})
    assert shown["background"]["shortest"] == 2
    example = shown["background"]["example"]
    assert example[0] in ("le", "la") and example[-1] in ("chat", "chien", "table", "dort") and len(example) <= 12
    text = llrnn("show", corpus.out).out
    assert "\nparts       automaton          an automaton; sentences it forbids are left out of training\n" in text
    assert "a sentence begins with l" in text and "the shortest has 2 words" in text
