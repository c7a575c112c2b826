"""Nearest neighbours of a word: the definition, by loops; words seen or not; what has no neighbours is said."""

import json
import math
from pathlib import Path

import pytest
import torch
from shell import Shell
from small_priors import SYMBOLS, make_prior
from tiny_world import World

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.systems.characters.input import CharacterInput
from fairseq_llrnn.systems.characters.neighbours import AFTER, BEFORE, FEATURES, nearest, neighbours
from fairseq_llrnn.systems.characters.network import CharacterOptions

OPTIONS = CharacterOptions(4, ((1, 3), (2, 5)))


def make_head(**options: object) -> LogLinearHead:
    torch.manual_seed(1)
    return LogLinearHead(make_prior(), 5, **options).eval()  # type: ignore[arg-type]


def cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    dot = sum(a * b for a, b in zip(one.tolist(), other.tolist(), strict=True))
    return dot / math.sqrt(sum(a * a for a in one.tolist()) * sum(b * b for b in other.tolist()))


def test_the_nearest_rows() -> None:
    torch.manual_seed(2)
    rows, vector, possible = torch.randn(9, 4), torch.randn(4), torch.tensor([True] * 7 + [False] * 2)
    expected = sorted(((i, cosine(rows[i], vector)) for i in range(7)), key=lambda pair: -pair[1])
    found = nearest(vector, rows, possible, 3)
    assert [i for i, _ in found] == [i for i, _ in expected[:3]]
    assert [c for _, c in found] == pytest.approx([c for _, c in expected[:3]], abs=1e-6)
    assert len(nearest(vector, rows, possible, 20)) == 7


@pytest.mark.parametrize("word", ["chat", "chatte"])
def test_by_characters_before_and_after_the_highway(word: str) -> None:
    head = make_head(embedding=CharacterInput(OPTIONS))
    assert head.embedding is not None
    found = neighbours(head, word, 3)
    assert [kind.kind for kind in found] == [BEFORE, AFTER]
    for which, kind in enumerate(found):
        vectors = {w: head.embedding.before_and_after([w])[which][0] for w in (*SYMBOLS[4:], word)}
        expected = {w: cosine(vectors[w], vectors[word]) for w in SYMBOLS[4:] if w != word}
        assert dict(kind.words) == pytest.approx({w: expected[w] for w, _ in kind.words}, abs=1e-5)
        assert min(c for _, c in kind.words) >= max(c for w, c in expected.items() if w not in dict(kind.words)) - 1e-6


def test_by_features_words_with_the_same_ones_are_the_same() -> None:
    [found] = neighbours(make_head(embedding=FeatureInput(6)), "vache", 2)
    assert found.kind == FEATURES
    assert {word for word, c in found.words if c == pytest.approx(1.0)} == {"fenêtre", "maison"}
    both = neighbours(make_head(embedding=CharacterInput(OPTIONS, FeatureInput(6))), "vache", 2)
    assert [kind.kind for kind in both] == [BEFORE, AFTER, FEATURES]
    unseen = neighbours(make_head(embedding=CharacterInput(OPTIONS, FeatureInput(6))), "vachette", 2)
    assert [kind.kind for kind in unseen] == [BEFORE, AFTER]


@pytest.mark.parametrize(
    ("embedding", "word", "said"),
    [
        (CharacterInput(OPTIONS), "", "--neighbours '': expected one word without blanks"),
        (CharacterInput(OPTIONS), "le chat", "expected one word without blanks"),
        (CharacterInput(OPTIONS), "<unk>", "--neighbours <unk>: expected a word, found a special symbol"),
        (FeatureInput(6), "chatte", "not in the dictionary, and this model reads features only"),
        (None, "chat", "expected a model that reads features or characters, found one with a separate table"),
    ],
)
def test_what_has_no_neighbours(embedding: object, word: str, said: str) -> None:
    with pytest.raises(OptionError, match="--neighbours") as error:
        neighbours(make_head(embedding=embedding), word, 2)
    assert said in str(error.value)


def test_of_words_seen_or_not(shell: Shell, world: World, model: Path) -> None:
    args = ["llrnn", "show", "--neighbours", "rose", "--neighbours", "rosette", "--path", model]
    done = shell.run(*args)
    lines = done.out.splitlines()
    assert lines[0] == "rose" and "rosette   (not in the dictionary)" in lines
    kinds = [line.split("  ")[1] for line in lines if line.startswith("  ") and line[2] != " "]
    assert kinds == ["before highway", "after highway"] * 2
    found = json.loads(shell.run(*args, "--json").out)
    assert [(word["word"], word["known"]) for word in found["words"]] == [("rose", True), ("rosette", False)]
    for word in found["words"]:
        assert list(word["neighbours"]) == ["before highway", "after highway"]
        for near in word["neighbours"].values():
            assert len(near) == 8 and all(-1 <= one["cosine"] <= 1 for one in near)
            assert word["word"] not in [one["word"] for one in near]
    named = shell.run(*args, "--prior", world.prior("open-characters"), "--data", world.data)
    assert named.out == done.out


def test_of_a_model_without_characters(shell: Shell, trained: Path) -> None:
    done = shell.run("llrnn", "show", "--path", trained / "checkpoint_last.pt", "--neighbours", "rose")
    assert done.out.splitlines()[1].split()[0] == "features"
    assert "note: this model reads words by their features" in done.err


def test_what_is_refused(shell: Shell, world: World, model: Path, evidence_models: dict[str, Path]) -> None:
    for args, said in (
        (["--neighbours", "rose"], "--neighbours: it needs --path FILE; add it"),
        (["--path", model], f"--path {model}: it needs --neighbours WORD; add that"),
        ([], "expected PRIOR, the folder of a prior, or --neighbours WORD"),
        (["--path", model, "--neighbours", ""], "--neighbours '': expected one word without blanks"),
        (["--path", world.place / "no.pt", "--neighbours", "rose"], "no.pt: expected a checkpoint, found no such file"),
        (["--source-prior", world.data], f"--source-prior {world.data}: it needs --neighbours WORD; add that"),
        ([world.data / "prior", "--path", model, "--neighbours", "rose"], "not possible together with PRIOR or"),
        (["--source", "pink", "--path", model, "--neighbours", "rose"], "not possible together with PRIOR or"),
        (["--path", model, "--neighbours", "rose", "--source-prior", "x"], "remove --source-prior"),
        (["--path", evidence_models["transformer"], "--neighbours", "rose"], "found one with a separate table"),
        (["--path", evidence_models["stock"], "--neighbours", "rose"], "expected a model of this package"),
    ):
        done = shell.run("llrnn", "show", *args, code=2)
        assert said in done.err and "Traceback" not in done.err and not done.out
