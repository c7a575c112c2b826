"""examples/markov_field at toy size: the whole run, and again; the baseline tagger; the table of the curves."""

import gzip
import math
import random
from pathlib import Path

import pytest
from example_modules import OF_RESEARCH, load, run_example

pytest.importorskip("llrnn_research.markov_field.learning", reason="the system was deleted")
hidden_markov, log_bilinear, tagging, time_to_optimum = load(
    OF_RESEARCH / "markov_field", "hidden_markov", "log_bilinear", "tagging", "time_to_optimum"
)

SENTENCES = [
    [("le", "DET"), ("chat", "NOUN"), ("dort", "VERB")],
    [("la", "DET"), ("mer", "NOUN"), ("monte", "VERB")],
    [("Paris", "PROPN"), ("dort", "VERB")],
    [("Lyon", "PROPN"), ("monte", "VERB")],
    [("le", "DET"), ("bateau", "NOUN"), ("part", "VERB")],
]


def write_data(folder: Path) -> None:
    rng = random.Random(1)
    (folder / "eltec-eng").mkdir()
    (folder / "ud-french-gsd-1.4").mkdir()
    words = "The old house by the sea was quiet and she had a red day married pounds john has grey".split()
    for split in ("train", "valid", "test"):
        lines = [" ".join(rng.choices(words, k=8)) for _ in range(60)]
        with gzip.open(folder / "eltec-eng" / f"{split}.txt.gz", "wt", encoding="utf-8") as stream:
            stream.write("\n\n".join(lines) + "\n")
    for split in ("train", "dev"):
        rows = []
        for sentence in SENTENCES * 4:
            rows += [f"{i}\t{word}\t_\t{tag}\t_\t_\t0\t_\t_\t_" for i, (word, tag) in enumerate(sentence, 1)] + [""]
        with gzip.open(folder / "ud-french-gsd-1.4" / f"{split}.conllu.gz", "wt", encoding="utf-8") as stream:
            stream.write("\n".join(rows) + "\n")


@pytest.mark.slow
def test_the_whole_run_and_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time, all is there; other settings are refused."""
    write_data(tmp_path)
    out = tmp_path / "out"
    small = {"TOKENS": "300", "WORDS": "20 12", "ITERATIONS": "3", "CURVE": "0.2", "MANY": "16"}
    first = run_example(OF_RESEARCH / "markov_field/run.sh", out, tmp_path, variables=small).out
    scores = ("uw-20.score", "uw-20-order-1.score", "explicit-12.score", "lbl-12.score", "left-to-right-20.md")
    for name in (*scores, "neighbours", "tags.md"):
        assert f"\n{name}\n" in first
    assert "| 0.5 FIELD plus 0.5 ngram(2, folds=0) | " in first and "| uw, nested | " in first
    assert first.count("\n| D = 30, 2 words before | ") == 2
    assert "| HMM, unknown words by suffix (TnT) | 100.00 | 0.00 (of 0) |" in first
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != "test-600.txt"}
    assert run_example(OF_RESEARCH / "markov_field/run.sh", out, tmp_path, variables=small).out == first
    assert times == {path: path.stat().st_mtime_ns for path in times}
    fewer = small | {"TOKENS": "200"}
    other = run_example(OF_RESEARCH / "markov_field/run.sh", out, tmp_path, variables=fewer, code=2).err
    assert "run.sh: error: " in other and "expected TOKENS=200 WORDS=" in other and "results of TOKENS=300" in other
    given = [f"--field={out / 'uw-20'}", f"--texts={out}", f"--out={out / 'left-to-right-20'}", "--epochs=3"]
    assert log_bilinear.main(given) == 0
    for wrong in ("--epochs=4", "--lr=0.2", f"--field={out / 'explicit-12'}"):
        assert log_bilinear.main([*given, wrong]) == 2
        option, said = wrong.partition("=")[0], capsys.readouterr().err
        assert f"expected {option}" in said and f"found results of {option}" in said and "another --out" in said


@pytest.mark.parametrize("suffixes", [True, False])
def test_the_baseline_tags(suffixes: bool) -> None:
    tagger = hidden_markov.HiddenMarkovTagger(SENTENCES * 3, suffixes=suffixes)
    assert tagger.tag(["le", "chat", "monte"]) == ["DET", "NOUN", "VERB"]
    assert tagger.tag(["Nantes", "dort"]) == ["PROPN", "VERB"]  # by its capital, or by what follows
    assert tagger.tag([]) == []


def test_steps_of_tags_are_interpolated_and_sum_to_one() -> None:
    tagger = hidden_markov.HiddenMarkovTagger(SENTENCES)
    assert [math.fsum(row) for row in math.e**tagger.steps] == pytest.approx([1.0] * len(tagger.tags))
    assert bool((tagger.steps > -math.inf).all())


def test_accuracy_counts_unknown_words_apart() -> None:
    found = tagging.accuracy(lambda words: ["DET"] * len(words), SENTENCES, {"le", "la", "chat", "Paris"})
    words = [word for sentence in SENTENCES for word, _ in sentence]
    unknown = [word for word in words if word not in {"le", "la", "chat", "Paris"}]
    assert found == (pytest.approx(100 * 3 / len(words)), 0.0, len(unknown))


def test_the_curve_says_what_was_reached_when() -> None:
    curves = {"a": [(1, 0.5, -5.0, -5.5), (2, 1.5, -4.0, -4.5), (3, 2.5, -3.0, -3.5)], "b": [(1, 1.6, -6.0, -6.5)]}
    text = time_to_optimum.table(curves)
    assert "| a | -5.000, -5.500 | -4.000, -4.500 | -3.000, -3.500 (step 3, 2 s) |" in text
    assert "| b | — | -6.000, -6.500 | -6.000, -6.500 (step 1, 2 s) |" in text
