"""`fairseq_llrnn.load`: a trained model as an object."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_corpus import Llrnn
from tiny_world import World

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, OptionError


@pytest.fixture(scope="module")
def model(trained: Path) -> Any:
    return fairseq_llrnn.load(trained / "checkpoint_best.pt")


def test_scores_are_those_of_the_command(as_typed: Llrnn, world: World, trained: Path, model: Any) -> None:
    lines = [*world.text("valid")[:3], "", "xyzzy"]
    text = "".join(f"{line}\n" for line in lines)
    command = ("score", "--path", trained / "checkpoint_best.pt")
    facts = json.loads(as_typed(*command, "--json", stdin=text).out)
    assert model.score(lines) == pytest.approx(facts["bits_per_word"])
    assert model.score(lines, per="character") == pytest.approx(facts["bits_per_character"])
    assert model.score(lines, unit="nats", per="text") == pytest.approx(facts["bits"] * math.log(2))
    assert model.score(lines, per="sentence") == pytest.approx(facts["bits"] / len(lines))
    rows = model.surprisals(lines)
    assert rows.to_tsv() == as_typed(*command, "--per-word", stdin=text).out
    assert [row.word for row in rows if row.is_unknown] == ["xyzzy"]
    count = facts["words"] + facts["sentences"]
    assert model.score(lines, per="token") == pytest.approx(facts["bits"] / count) == facts["bits_per_token"]


def test_minimal_pairs_compare_whole_sentences(model: Any, world: World) -> None:
    good, bad = world.text("valid")[:4], ["xyzzy"] * 4
    found = model.minimal_pairs(good, bad)
    for pair, *lines in zip(found.pairs, good, bad, strict=True):
        assert pair[:2] == pytest.approx([-model.score([line], unit="nats", per="text") for line in lines])
        assert pair.is_correct is (pair.good > pair.bad)
    assert found.accuracy == sum(pair.is_correct for pair in found.pairs) / 4
    assert model.minimal_pairs(good, good).accuracy == 0.0


def test_explanations_and_samples(model: Any, world: World) -> None:
    line = world.text("valid")[0]
    explained = model.explain(line, top=2)
    assert [-each.log_prob for each in explained] == pytest.approx(
        [row.surprisal for row in model.surprisals([line], unit="nats")]
    )
    drawn = model.sample(3, seed=5)
    assert len(drawn) == 3 and drawn == model.sample(3, seed=5) != model.sample(3, seed=6)
    assert all(len(sentence.split()) <= 2 for sentence in model.sample(4, max_length=2))


def test_next_words_are_those_of_explain(model: Any, evidence_models: dict[str, Path]) -> None:
    found = model.next_words("le chat", 4)
    expected = model.explain("le chat", top=4)[-1].predictions
    assert [word.word for word in found] == [word for word, _ in expected]
    assert [word.probability for word in found] == pytest.approx([math.exp(log_p) for _, log_p in expected], rel=1e-4)
    assert sum(word.probability for word in model.next_words("", 10_000)) == pytest.approx(1.0, abs=1e-4)
    translator: Any = fairseq_llrnn.load(evidence_models["transformer"])
    first = translator.next_words("", 2, source="el nu")
    (row, *_) = translator.surprisals([first[0].word], source=["el nu"], unit="nats")
    assert len(first) == 2 and first[0].probability == pytest.approx(math.exp(-row.surprisal), rel=1e-4)
    with pytest.raises(OptionError, match="source: a translation model needs the source sentence of each line"):
        translator.next_words("")


def test_samples_follow_the_model(model: Any) -> None:
    """The first words of 400 samples: the share of the most probable one is its probability."""
    (word, log_prob), *_ = model.explain("", top=1)[0].predictions
    first = [sentence.split()[:1] for sentence in model.sample(400, max_length=1)]
    p = math.exp(log_prob)
    count = sum(words == ([word] if word != "</s>" else []) for words in first)
    assert abs(count - 400 * p) < 4 * math.sqrt(400 * p * (1 - p)) + 1


def test_a_translation_model(evidence_models: dict[str, Path]) -> None:
    model = fairseq_llrnn.load(evidence_models["transformer"])
    source, line = ["a b"], ["c d"]
    rows = model.surprisals(line, source=source, unit="nats")
    assert [row.word for row in rows] == ["c", "d", "</s>"] and rows[0].is_seen is None
    assert [row.is_unknown for row in rows] == [row.word not in model.task.target_dictionary.indices for row in rows]
    (whole,) = model._scorer.score(source, line)
    assert -sum(row.surprisal for row in rows) == pytest.approx(whole, abs=1e-4)
    assert len(model.sample(2, source="a b", max_length=5)) == 2
    with pytest.raises(OptionError, match="source: a translation model needs the source sentence of each line"):
        model.score(line)
    with pytest.raises(DataError, match="source: expected 1 sentences, one for each line, found 2"):
        model.score(line, source=["a", "b"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.score("le chat"), "expected a list of sentences, found a text; pass"),
        (lambda model: model.score([]), "expected a sentence, found none"),
        (lambda model: model.score(["le"], per="line"), "per='line': expected one of word, token"),
        (lambda model: model.surprisals(["le"], unit="bit"), "unit='bit': expected one of bits, nats; did"),
        (lambda model: model.score(["le"], source=["x"]), "source: a language model reads no source; leave it out"),
        (lambda model: model.minimal_pairs(["le"], []), "as many good sentences as bad ones, found 1 and 0; give two"),
        (lambda model: model.sample(0), "n 0: expected"),
        (lambda model: fairseq_llrnn.load("/none"), "/none: expected a checkpoint, found no such file"),
    ],
)
def test_messages(model: Any, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises((DataError, OptionError)) as error:
        call(model)
    assert message in str(error.value)
