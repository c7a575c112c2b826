"""`llrnn dynamic-evaluation`: a slow version beside it, laws, what it prints, what it refuses."""

import argparse
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from shell import Shell
from small_corpus import Llrnn
from tiny_world import World, batch
from translation_world import train_stock_lm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.scoring.text_bits import TextScorer, load_text_scorer
from llrnn_research.dynamic_evaluation.commands.dynamic_evaluation import Trial, _print
from llrnn_research.dynamic_evaluation.evaluation import scored_groups, training_squares
from llrnn_research.dynamic_evaluation.updates import Updates, gradients

NAME = "dynamic-evaluation"
PRIORS = ("prior", "softmax")
EPSILON = 1e-3


@pytest.fixture(scope="module")
def models(shell: Shell, world: World, trained: Path) -> dict[str, Path]:
    """A checkpoint with each of PRIORS."""
    place = world.place / "dynamic-softmax"
    shell.run("fairseq-train", *world.train_args("softmax", save_dir=place), "--max-epoch", 1)
    return {"prior": trained / "checkpoint_last.pt", "softmax": place / "checkpoint_last.pt"}


def scorer_of(path: Path) -> TextScorer:
    """In float64."""
    scorer = load_text_scorer(str(path), 2048)
    scorer.model.double()
    return scorer


def weights_of(scorer: TextScorer) -> list[torch.Tensor]:
    return list(scorer.model.parameters())


def nats_of(
    scorer: TextScorer, lines: list[str], rate: float, decay: float, squares: list[torch.Tensor]
) -> list[float]:
    """Of each line, by steps after two lines each, which are taken back."""
    updates = Updates(weights_of(scorer), squares, EPSILON)
    groups = scored_groups(scorer, list(scorer.batches(lines, 2)), updates, rate, decay)
    nats = [-line.log_prob for group in groups for line in group]
    updates.reset()
    return nats


def slopes_by_hand(scorer: TextScorer, lines: list[str]) -> tuple[list[float], list[np.ndarray]]:
    """−log p of each line, by probabilities of all words, and the gradient of their mean by tokens."""
    sample = batch(scorer.dictionary, lines)
    output = scorer.model(**sample["net_input"])
    log_probs = scorer.model.get_normalized_probs(output, log_probs=True).gather(2, sample["target"].unsqueeze(2))
    nats = -log_probs.squeeze(2).masked_fill(sample["target"].eq(scorer.dictionary.pad()), 0.0)
    scorer.model.zero_grad()
    (nats.sum() / sample["ntokens"]).backward()
    slopes = [np.zeros(w.shape) if w.grad is None else w.grad.numpy().copy() for w in weights_of(scorer)]
    return nats.sum(1).tolist(), slopes


@pytest.mark.parametrize("prior", ["prior", "softmax"])
def test_a_text_is_scored_as_by_hand(prior: str, models: dict[str, Path], world: World) -> None:
    lines, training, rate, decay = world.text("test")[:7], world.text("test1"), 0.01, 0.5
    scorer = scorer_of(models[prior])
    weights = weights_of(scorer)
    start = [weight.detach().numpy().copy() for weight in weights]
    slopes = [slopes_by_hand(scorer, [line])[1] for line in training]
    squares = [sum(s[i] ** 2 for s in slopes) / len(slopes) for i in range(len(weights))]
    mean = sum(np.sqrt(s).sum() for s in squares) / sum(s.size for s in squares)
    assert decay * max(float(np.sqrt(s).max()) for s in squares) > mean > 0, "some weights go back all the way"
    expected = []
    for begin in range(0, len(lines), 2):
        nats, step = slopes_by_hand(scorer, lines[begin : begin + 2])
        expected += nats
        for weight, first, slope, square in zip(weights, start, step, squares, strict=True):
            theta, root = weight.detach().numpy(), np.sqrt(square)
            divided, share = (slope / (root + EPSILON), np.minimum(1.0, decay * root / mean))
            theta[...] = theta - rate * divided + share * (first - theta)

    scorer = scorer_of(models[prior])  # from the checkpoint again
    of_training = training_squares(scorer, weights_of(scorer), "test1", 100, 1)
    for ours, square in zip(of_training, squares, strict=True):
        np.testing.assert_allclose(ours.numpy(), square, rtol=0, atol=1e-10)
    result = nats_of(scorer, lines, rate, decay, of_training)
    assert result == pytest.approx(expected, abs=1e-10)
    static = nats_of(scorer, lines, 0.0, 0.0, of_training)
    assert result[:2] == pytest.approx(static[:2], abs=1e-10)
    assert all(abs(x - y) > 1e-4 for x, y in zip(result[2:], static[2:], strict=True)), "the steps count"


@pytest.mark.parametrize("prior", ["prior", pytest.param("softmax", marks=pytest.mark.slow)])
def test_a_later_sentence_changes_no_earlier_score(prior: str, models: dict[str, Path], world: World) -> None:
    scorer = scorer_of(models[prior])
    squares = training_squares(scorer, weights_of(scorer), "train", 20, 2)
    lines = world.text("test")
    others = [*lines[:6], "la mer", *lines[7:]]
    one, two = (nats_of(scorer, text, 0.01, 0.01, squares) for text in (lines, others))
    assert one[:6] == two[:6] and len(one) == len(lines)
    assert all(x != y for x, y in zip(one[8:], two[8:], strict=True))
    assert nats_of(scorer, lines, 0.0, 0.5, squares) == nats_of(scorer, lines, 0.0, 0.0, squares)


def test_no_training_sentence_that_the_model_can_read(models: dict[str, Path]) -> None:
    scorer = scorer_of(models["prior"])
    scorer.longest = 1
    with pytest.raises(DataError, match="--subset test: the model gives probability 0 to all"):
        training_squares(scorer, weights_of(scorer), "test", 5, 1)


def test_gradients_are_of_a_text_that_the_background_has_not_seen(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was estimated from the training text leaves its sentences out; the network drops nothing."""
    scorer = scorer_of(models["prior"])
    head, asked = scorer.model.decoder.head, []

    def bind(source: None, text: torch.Tensor | None) -> object:
        asked.extend([] if text is None else [len(text)])
        return head.background

    monkeypatch.setattr(head.background, "bind", bind)
    for subset, expected in (("train", [2] * 5), ("test1", [])):
        training_squares(scorer, weights_of(scorer), subset, 5, 2)
        assert (asked, any(module.training for module in scorer.model.modules())) == (expected, False)
        asked.clear()


def test_every_option_of_a_step_counts(models: dict[str, Path], llrnn: Llrnn, world: World) -> None:
    usual = [NAME, world.place / "test.txt", "--path", models["prior"], "--json", "--rate", 3e-3, "--decay", 0]
    found = json.loads(llrnn(*usual, "--sentences", 4).out)
    changes = {"--sentences": 1, "--max-tokens": 12, "--subset": "valid", "--groups": 2, "--epsilon": 0.5}
    for options in changes.items():
        other = json.loads(llrnn(*usual, "--sentences", 4, *options).out)
        assert other["static"]["nats"] == pytest.approx(found["static"]["nats"], rel=1e-6), options
        assert other["pairs"][0]["nats"] != pytest.approx(found["pairs"][0]["nats"], rel=1e-6), options


def test_a_damaged_data_folder_is_one_line(models: dict[str, Path], llrnn: Llrnn, world: World, tmp_path: Path) -> None:
    data = shutil.copytree(world.data, tmp_path / "data")
    index = (data / "train.idx").read_bytes()
    (data / "train.idx").write_bytes(index[: len(index) // 2])
    llrnn(NAME, world.place / "test.txt", "--path", models["prior"], "--data", data).refuses(
        "…--subset train: expected a file of fairseq-preprocess, found damage (…); make the data folder again"
    )


def test_steps_that_are_too_large_end_a_text(models: dict[str, Path], world: World) -> None:
    scorer = scorer_of(models["prior"])
    squares = training_squares(scorer, weights_of(scorer), "train", 20, 2)
    nats = nats_of(scorer, world.text("test"), 1e307, 0.0, squares)
    assert all(map(math.isfinite, nats[:2])) and len(nats) < 16
    assert math.fsum(nats) == math.inf


def test_losses_that_are_not_finite_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    trials = [Trial(0.0, 0.0, 1.0), Trial(1.0, 0.0, math.inf), Trial(0.5, 0.1, 1e4)]
    _print(argparse.Namespace(json=False), trials, 7, None)
    rows = capsys.readouterr().out.splitlines()[1:-1]
    assert [row.split() for row in rows] == [
        ["static", "1.0000", "2.72", "best"], ["1", "0", "diverged"], ["0.5", "0.1", "10000.0000", "inf"]
    ]  # fmt: skip
    assert Trial(1.0, 0.0, math.inf).facts() == {"rate": 1.0, "decay": 0.0, "nats": None, "perplexity": None}
    assert Trial(1.0, 0.0, 1e4).facts() == {"rate": 1.0, "decay": 0.0, "nats": 1e4, "perplexity": None}


@pytest.mark.parametrize("prior", ["prior", pytest.param("softmax", marks=pytest.mark.slow)])
def test_the_command(prior: str, models: dict[str, Path], shell: Shell, world: World) -> None:
    path, text = models[prior], world.place / "test.txt"
    before = path.read_bytes()
    pairs = ("--rate", 0, 3e-3, "--decay", 0, 1e-2)
    printed = shell.run("llrnn", NAME, text, "--path", path, *pairs)
    assert printed.err == ""
    heading, *rows, tokens, signature = printed.out.splitlines()
    assert heading.split() == ["rate", "decay", "nats", "perplexity"]

    scored = json.loads(shell.run("llrnn", "score", "--json", "--path", path, text).out)
    assert signature == f"prior  {scored['prior']}"
    assert tokens == f"tokens  {scored['words'] + scored['sentences']}, with the ends of sentences"
    static = scored["bits_per_token"] * math.log(2)

    facts = json.loads(shell.run("llrnn", NAME, "--json", "--path", path, *pairs, stdin=text.read_text()).out)
    assert (facts["sentences"], facts["prior"]) == (1, scored["prior"])
    assert facts["static"]["nats"] == pytest.approx(static, abs=1e-6)
    tried = facts["pairs"]
    assert [(p["rate"], p["decay"]) for p in tried] == [(0.0, 0.0), (0.0, 0.01), (0.003, 0.0), (0.003, 0.01)]
    assert [p["nats"] for p in tried[:2]] == pytest.approx([static] * 2, abs=1e-6)
    assert all(p["perplexity"] == pytest.approx(math.exp(p["nats"])) for p in tried)
    assert facts["best"]["nats"] == min(p["nats"] for p in [facts["static"], *tried])
    shown = [row.removesuffix("best").split() for row in rows]
    names = [["static"], *([f"{p['rate']:g}", f"{p['decay']:g}"] for p in tried)]
    losses = [[f"{p['nats']:.4f}", f"{p['perplexity']:.2f}"] for p in [facts["static"], *tried]]
    assert shown == [name + loss for name, loss in zip(names, losses, strict=True)]
    assert sum(row.endswith("best") for row in rows) == 1
    evaluated = shell.run("fairseq-eval-lm", *world.task_args(prior)[:-1], "--path", path, "--gen-subset", "test",
                          "--sample-break-mode", "eos", "--cpu")  # fmt: skip
    base_2 = float((evaluated.out + evaluated.err).rpartition("Loss (base 2): ")[2].split(",")[0])
    assert base_2 * math.log(2) == pytest.approx(static, abs=1e-4)  # it prints four digits
    assert path.read_bytes() == before


def test_a_text_that_says_the_same_again_is_learned(models: dict[str, Path], llrnn: Llrnn, tmp_path: Path) -> None:
    text = tmp_path / "again.txt"
    text.write_text("le chat voit la mer xyz\n" * 30, encoding="utf-8")
    done = llrnn(NAME, text, "--path", models["prior"], "--rate", 1e-2, "--decay", 0, "--json")
    facts = json.loads(done.out)
    assert facts["best"] == facts["pairs"][0] and facts["best"]["nats"] < facts["static"]["nats"] - 0.5
    assert done.err == "note: 30 unknown words scored as <unk>\n"
    text.write_text("LE chat voit LA mer\n", encoding="utf-8")
    warned = llrnn(NAME, text, "--path", models["prior"], "--rate", 0, "--decay", 0, "--groups", 1).err
    assert "2 of 5 words are in the dictionary only in another case, such as 'LE': lower-case it" in warned
    assert f"sed 's/.*/\\L&/' {text} > {text}.lower" in warned


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--rate", "-1"], "--rate -1: expected a number from 0 to 1000"),
        (["--rate", "0.1", "nan"], "--rate nan: expected a number from 0 to 1000"),
        (["--decay", "0", "1.5"], "--decay 1.5: expected a number from 0 to 1"),
        (["--decay", "nan"], "--decay nan: expected a number from 0 to 1"),
        (["--decay", "-0.1"], "--decay -0.1: expected a number from 0 to 1"),
        (["--epsilon", "0"], "--epsilon 0: expected a number above 0, at most 1"),
        (["--sentences", "0"], "--sentences 0: expected a number of at least 1"),
        (["--groups", "0"], "--groups 0: expected a number of at least 1"),
        (["--subset", "nowhere"], "…expected the data set 'nowhere'…found test, test1, train, valid; choose one…"),
    ],
)
def test_options_that_are_refused(
    options: list[str], error: str, models: dict[str, Path], llrnn: Llrnn, world: World
) -> None:
    llrnn(NAME, world.place / "test.txt", "--path", models["prior"], *options).refuses(error)


def test_models_and_texts_that_are_refused(
    models: dict[str, Path], llrnn: Llrnn, shell: Shell, world: World, evidence_models: dict[str, Path], tmp_path: Path
) -> None:
    text, path = world.place / "test.txt", models["prior"]
    llrnn(NAME, text, "--path", f"{path}:{path}").refuses(
        f"--path {path}:{path}: expected one checkpoint, found 2; dynamic evaluation adapts one model"
    )
    shutil.copy(path, tmp_path / "a:b.pt")
    places = ("--data", world.data, "--prior", world.prior("prior"), "--rate", 0.001)
    assert llrnn(NAME, text, "--path", tmp_path / "a:b.pt", *places).code == 0
    empty = tmp_path / "empty.txt"
    empty.touch()
    llrnn(NAME, empty, "--path", path).refuses(f"expected a text, found none in {empty}; write one sentence per line")
    done = llrnn(NAME, "--path", path, "--decay", 0, text)
    assert done.code == 2 and f"expected a number, found '{text}'; give the name of a text before" in done.err

    stock, translator = train_stock_lm(shell, world.data, tmp_path / "stock"), evidence_models["lstm"]
    llrnn(NAME, text, "--path", stock).refuses(
        f"--path {stock}: expected a model of --task llrnn_language_modeling, found one of another task; score the "
        "text by `llrnn score`"
    )
    llrnn(NAME, text, "--path", translator).refuses(
        f"…{translator}: expected a language model, found a translation model; score translations…"
    )


def test_gradients_of_weights_that_are_not_read_and_of_sparse_ones() -> None:
    table = torch.nn.Embedding(4, 2, sparse=True)
    unread = torch.ones(3, requires_grad=True)
    of_table, of_unread = gradients(table(torch.tensor([1, 1, 3])).sum(), [table.weight, unread])
    assert of_table.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    assert of_unread.tolist() == [0.0, 0.0, 0.0]
