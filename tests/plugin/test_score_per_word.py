"""`llrnn score --per-word`: a table of the surprisals of words, of text models and their pieces."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from small_corpus import Llrnn
from tiny_world import World

import fairseq_llrnn
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture(scope="module")
def score(trained: Path) -> tuple[str | Path, ...]:
    return ("score", "--path", trained / "checkpoint_best.pt")


def table(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_a_row_for_each_word_and_each_end(
    as_typed: Llrnn, world: World, score: tuple[str | Path, ...], tmp_path: Path
) -> None:
    """The rows of a sentence sum to its score; a word is seen if the training data have it."""
    text = f"{world.text('train')[0]} xyzzy\n\n"
    done = as_typed(*score, "--per-word", "--json", stdin=text)
    head, *rows = table(done.out)
    assert head == ["sentence", "position", "word", "surprisal", "is_seen", "is_unknown"]
    words = text.split()
    places = [("1", str(place + 1), word) for place, word in enumerate([*words, "</s>"])]
    assert [tuple(row[:3]) for row in rows] == [*places, ("2", "1", "</s>")]
    assert [row[4] for row in rows] == ["True"] * (len(words) - 1) + ["False", "True", "True"]
    assert [row[2] for row in rows if row[5] == "True"] == ["xyzzy"]
    bits = json.loads(done.err.splitlines()[-1])["bits"]
    assert math.fsum(float(row[3]) for row in rows) == pytest.approx(bits, abs=1e-4)
    nats = table(as_typed(*score, "--per-word", "--unit", "nats", stdin=text).out)
    assert float(nats[1][3]) == pytest.approx(float(rows[0][3]) * math.log(2), abs=1e-5)
    (tmp_path / "other.txt").write_text("xyzzy\n")
    other = table(as_typed(*score, "--per-word", "--train-text", tmp_path / "other.txt", stdin=text).out)
    assert [row[4] for row in other[1:-1]] == ["False"] * (len(words) - 1) + ["True", "True"]


def test_pieces_are_summed_to_words(as_typed: Llrnn, score: tuple[str | Path, ...]) -> None:
    separate = table(as_typed(*score, "--per-word", stdin="a@@ b c\n").out)
    joined = table(as_typed(*score, "--per-word", "--pieces", "bpe", stdin="a@@ b c\n").out)
    assert [row[2] for row in joined[1:]] == ["ab", "c", "</s>"]
    assert float(joined[1][3]) == pytest.approx(float(separate[1][3]) + float(separate[2][3]), abs=1e-5)
    sums, of_words = (
        json.loads(as_typed(*score, "--json", *more, stdin="a@@ b c\n").out) for more in ([], ["--pieces", "bpe"])
    )
    assert [sums[name] for name in ("words", "characters")] == [3, 8]
    assert [of_words[name] for name in ("words", "characters")] == [2, 5]
    assert of_words["bits_per_token"] == sums["bits_per_token"] == pytest.approx(of_words["bits"] / 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--per-word", "--per-sentence"], "--per-word and --per-sentence exclude each other; remove one"),
        (["--unit", "nats"], "--unit needs --per-word; add --per-word, or remove the option"),
        (["--train-text", "t"], "--train-text needs --per-word; add --per-word, or remove the option"),
        (["--per-word", "--train-text", "no.txt"], "no.txt"),
    ],
)
def test_options_that_do_not_go_together(
    as_typed: Llrnn, score: tuple[str | Path, ...], options: list[str], message: str
) -> None:
    assert message in as_typed(*score, *options, stdin="a\n", code=2).err


def test_without_the_training_text_nothing_is_claimed(
    as_typed: Llrnn, world: World, score: tuple[str | Path, ...], tmp_path: Path
) -> None:
    for name in ("dict.txt",):
        (tmp_path / name).write_bytes((world.data / name).read_bytes())
    done = as_typed(*score, "--per-word", "--data", tmp_path, "--prior", world.data / "prior", stdin="a\n")
    assert {row[4] for row in table(done.out)[1:]} == {""}
    assert "note: no training text found, so that is_seen is empty; pass the text with --train-text FILE" in done.err


def test_a_word_of_probability_0_has_infinite_surprisal(
    as_typed: Llrnn, score: tuple[str | Path, ...], world: World, trained: Path
) -> None:
    """A padding symbol of the dictionary, which nothing predicts; no mean may skip it."""
    padding = next(word for word in Prior.load(world.data / "prior").symbols if word.startswith("madeupword"))
    text = f"le {padding} chat\n"
    rows = table(as_typed(*score, "--per-word", stdin=text).out)[1:]
    assert [row[3] == "inf" for row in rows] == [False, True, False, False]
    printed = as_typed(*score, "--per-sentence", "--json", stdin=f"{text}le chat\n")
    assert [row[1:3] for row in table(printed.out)[1:2]] == [["-inf", "inf"]]
    facts = json.loads(printed.err.splitlines()[-1], parse_constant=lambda name: pytest.fail(name))
    assert facts["unscored_lines"] == 1 and facts["sentences"] == 1
    model: Any = fairseq_llrnn.load(trained / "checkpoint_best.pt")
    found = [row.surprisal for row in model.surprisals([text])]
    assert [f"{surprisal:.6f}" for surprisal in found] == [row[3] for row in rows]
    assert not model.minimal_pairs([text], ["le chat"]).pairs[0].is_correct
    assert all(word.word != padding for word in model.next_words("le", 10_000))
