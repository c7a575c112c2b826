"""The joint field of tags and words: its bound by enumeration, gradients, search, files, commands."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError
from llrnn_research.markov_field import tagger_training
from llrnn_research.markov_field.folder import JSON_FILE
from llrnn_research.markov_field.lbfgs import of_tags
from llrnn_research.markov_field.learning import Progress
from llrnn_research.markov_field.tagger import (
    END,
    SEPARATOR,
    TagForm,
    TagMoments,
    WordSignatures,
    best_tags,
    bound,
    rows_of,
    word_features,
)
from llrnn_research.markov_field.tagger_training import Tagger, TaggerOptions, learn

TAGS, WORDS, FEATURES = 2, 2, 3


def random_form(order: int, near: int, seed: int) -> tuple[TagForm, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    offsets = (0,) if near == 1 else (-1, 0, 1)
    class_weights = normal(WORDS).log_softmax(0)
    form = TagForm(order, offsets, TAGS, normal(WORDS, FEATURES).to_sparse(), class_weights)
    return form, {name: normal(*shape) for name, shape in form.shapes().items()}


def cyclic_score(
    form: TagForm, values: dict[str, torch.Tensor], tags: tuple[int, ...], words: tuple[int, ...]
) -> float:
    """The exponent of p(t, w), term by term."""
    total, many = 0.0, len(tags)
    features = form.features.to_dense()
    for i, tag in enumerate(tags):
        total += float(values["tags"][tag] + form.log_masses[words[i]])
        for distance in range(1, form.order + 1):
            total += float(values["pairs"][distance - 1, tag, tags[(i + distance) % many]])
        for m, offset in enumerate(form.offsets):
            total += float(values["words"][m, tag] @ features[words[(i + offset) % many]])
    return total


@settings(max_examples=12)
@given(order=st.integers(1, 2), near=st.sampled_from([1, 3]), seed=st.integers(0, 1000), length=st.integers(3, 4))
def test_the_bound_holds_for_any_dual_variables(order: int, near: int, seed: int, length: int) -> None:
    form, values = random_form(order, near, seed)
    scores = [
        cyclic_score(form, values, tags, words)
        for tags in itertools.product(range(TAGS), repeat=length)
        for words in itertools.product(range(WORDS), repeat=length)
    ]
    exact = float(torch.tensor(scores, dtype=torch.float64).logsumexp(0))
    assert length * float(form.log_partitions(values)) >= exact - 1e-9


def test_the_bound_of_a_text_is_its_score_less_the_bound_of_the_partition_function() -> None:
    form, values = random_form(2, 3, 5)
    tags, words = (0, 1, 1, 0, 1), (1, 0, 0, 1, 1)
    moments = TagMoments.count(form, np.array(tags), np.array(words))
    expected = cyclic_score(form, values, tags, words) / 5 - float(form.log_partitions(values))
    assert float(bound(form, moments, values)) == pytest.approx(expected)


@pytest.mark.parametrize(("order", "near"), [(1, 1), (2, 3)])
def test_gradients_are_finite_differences(order: int, near: int) -> None:
    form, values = random_form(order, near, 7)
    moments = TagMoments.count(form, np.array([0, 1, 1, 0]), np.array([1, 0, 1, 1]))
    names = list(values)
    leaves = tuple(values[name].requires_grad_() for name in names)
    assert torch.autograd.gradcheck(lambda *x: bound(form, moments, dict(zip(names, x, strict=True))), leaves)


@pytest.mark.parametrize("near", [1, 3])
def test_weights_of_stars_sum_to_one(near: int) -> None:
    weights = random_form(1, near, 3)[0].weights.tolist()
    assert sum(weights) == pytest.approx(1.0) and weights[near // 2] == max(weights)


@pytest.mark.parametrize(("order", "near"), [(1, 1), (2, 1), (1, 3)])
def test_curvature_is_about_the_second_derivative_where_all_is_independent(order: int, near: int) -> None:
    """At zero potentials, of a text in which tags and words are as frequent as each other and independent."""
    form = random_form(order, near, 9)[0]
    form = TagForm(order, form.offsets, TAGS, torch.eye(WORDS).double().to_sparse(), torch.tensor([0.5, 0.5]).log())
    tags, words = np.array([0, 0, 1, 1, 0, 1, 1, 0]), np.array([0, 1, 1, 0, 1, 0, 1, 0])
    moments = TagMoments.count(form, tags, words)
    found = of_tags(form, moments)
    shapes = form.shapes()
    assert {name: tuple(value.shape) for name, value in found.items()} == shapes
    zeros = {name: torch.zeros(shape, dtype=torch.float64) for name, shape in shapes.items()}
    for name in ("tags", "pairs", "words"):
        hessian = torch.autograd.functional.hessian(lambda x, n=name: form.log_partitions(zeros | {n: x}), zeros[name])
        many = zeros[name].numel()
        diagonal = hessian.view(many, many).diagonal().view(shapes[name])
        assert bool(((found[name] / diagonal > 0.3) & (found[name] / diagonal < 5.0)).all()), name


def test_training_reaches_the_maximum_that_an_unscaled_search_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    def unscaled(form: TagForm, moments: TagMoments) -> dict[str, torch.Tensor]:
        return {name: torch.ones(shape, dtype=torch.float64) for name, shape in form.shapes().items()}

    reached = []
    for scale in (of_tags, unscaled):
        monkeypatch.setattr(tagger_training, "of_tags", scale)
        seen: list[Progress] = []
        learn(SENTENCES, TaggerOptions((), 1, 1, rare=4, penalty=1e-3, iterations=400), seen.append)
        reached.append(seen)
    assert reached[0][-1].objective == pytest.approx(reached[1][-1].objective, abs=1e-4)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_best_tags_are_the_best_of_all(order: int) -> None:
    generator = np.random.default_rng(order)
    tags, pairs = generator.normal(size=4), generator.normal(size=(order, 4, 4))
    for length in (1, 2, 4):
        words = generator.normal(size=(length, 4))

        def score(found: tuple[int, ...], words: np.ndarray = words) -> float:
            whole = [SEPARATOR] * order + list(found) + [SEPARATOR] * order
            edges = sum(pairs[d - 1][a, b] for d in range(1, order + 1) for a, b in zip(whole, whole[d:], strict=False))
            return float(edges + sum(tags[tag] + words[i, tag] for i, tag in enumerate(found)))

        every = itertools.product(range(1, 4), repeat=length)
        assert best_tags(order, tags, pairs, words.copy()) == list(max(every, key=score))


def test_signatures_are_words_of_equal_features() -> None:
    counts = {"chat": 9, "chats": 1, "pâtes": 1, "rates": 1, "1998": 2, "1999": 2}
    made = WordSignatures.of(counts, ends=4, rare=3, floor=2)
    assert made.signature_of[END] == SEPARATOR
    assert made.signature_of["1998"] == made.signature_of["1999"]
    assert made.signature_of["chat"] != made.signature_of["chats"]
    assert float(made.log_masses.exp().sum()) == pytest.approx(1.0)
    assert float(made.log_masses[made.signature_of["1998"]].exp()) == pytest.approx(4 / 20)
    names = {name: i for i, name in enumerate(made.names)}
    rows = rows_of(["chat", "1999", "licorne"], names, frozenset(["chat"])).to_dense()
    dense = made.features.to_dense()
    torch.testing.assert_close(rows[0], dense[made.signature_of["chat"]])
    torch.testing.assert_close(rows[1], dense[made.signature_of["1999"]])
    assert word_features(END, True) == {"Separator": 1.0}


SENTENCES = [
    [("le", "DET"), ("chat", "NOUN"), ("dort", "VERB")],
    [("la", "DET"), ("mer", "NOUN"), ("monte", "VERB")],
    [("le", "DET"), ("vent", "NOUN"), ("souffle", "VERB")],
    [("Paris", "PROPN"), ("dort", "VERB")],
    [("Lyon", "PROPN"), ("monte", "VERB")],
] * 3


@pytest.mark.parametrize(("order", "near"), [(1, 1), (2, 1), (1, 3), (2, 3)])
def test_it_learns_tags_and_guesses_those_of_unknown_words(order: int, near: int) -> None:
    tagger = learn(SENTENCES, TaggerOptions((), order, near, rare=4, iterations=40))
    assert tagger.tag(["le", "chat", "monte"]) == ["DET", "NOUN", "VERB"]
    assert tagger.tag(["Nantes", "dort"]) == ["PROPN", "VERB"]
    assert tagger.tag([]) == []


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = []
    for sentence in SENTENCES:
        rows += [f"{i}\t{word}\t_\t{tag}\t_\t_\t0\t_\t_\t_" for i, (word, tag) in enumerate(sentence, 1)] + [""]
    path = tmp_path_factory.mktemp("treebank") / "train.conllu"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_train_and_tag(llrnn: Callable[..., tuple[int, str, str]], treebank: Path, tmp_path: Path) -> None:
    out = tmp_path / "tagger"
    code, _, said = llrnn(
        "mrf", "train", "--conllu", treebank, "--order", 1, "--near", 1, "--iterations", 9, "--out", out
    )
    assert code == 0, said
    code, shown, said = llrnn("mrf", "tag", "--model", out, stdin="le chat dort\n\nla mer\n")
    assert code == 0
    assert shown == "le\tDET\nchat\tNOUN\ndort\tVERB\n\n\nla\tDET\nmer\tNOUN\n\n"
    assert said == "note: 1 line without words, which have no tags\n"
    assert "expected a field of words, found one of 'tags'" in llrnn("mrf", "score", "--model", out, stdin="le\n")[2]
    again = llrnn("mrf", "train", "--conllu", treebank, "--order", 2, "--out", out)
    assert again[0] == 2 and f"--out {out}: expected a free name, found a field; give another, or remove" in again[2]
    description = json.loads((out / JSON_FILE).read_text(encoding="utf-8"))
    for change in ({"order": 9}, {"offsets": [7]}, {"tags": 3}, {"features": ["x"]}):
        (out / JSON_FILE).write_text(json.dumps(description | change), encoding="utf-8")
        with pytest.raises(DataError, match="train it again with `llrnn mrf train`"):
            Tagger.load(str(out))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--near", 2), "--near 2: expected 1 or 3 words"),
        (("--order", 4), "--order 4: expected 1, 2 or 3 for a tagger"),
        (("--rare", 0), "--rare 0: expected a number of at least 1"),
        (("--penalty", -1), "--penalty -1.0: expected a number from 0 to 1,000,000, e.g. 0.1"),
        (("--width", 9), "--width: it needs --text; use --text instead of --conllu"),
        (("--seed", 1), "--seed: it needs --text; use --text instead of --conllu"),
    ],
)
def test_options_of_a_tagger_that_make_no_sense(
    llrnn: Callable[..., tuple[int, str, str]], treebank: Path, tmp_path: Path, options: tuple[object, ...],
    message: str,
) -> None:  # fmt: skip
    code, _, said = llrnn("mrf", "train", "--conllu", treebank, "--out", tmp_path / "out", *options)
    assert (code, message in said) == (2, True)


def test_a_treebank_without_tags(llrnn: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    path = tmp_path / "bare.conllu"
    path.write_text("1\tle\t_\t_\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    code, _, said = llrnn("mrf", "train", "--conllu", path, "--out", tmp_path / "out")
    assert (code, "line 1: expected a tag (UPOS) of 'le', found none" in said) == (2, True)
