"""The experiment from treebank to tables, on a tiny treebank: a log-linear model and fairseq's own softmax."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from example_modules import load
from example_parts.mixtures import ngram_log_probs
from french_treebank import FOLDER, write_treebank

from fairseq_llrnn.prior.prior import Prior

experiments, run, scoring, results, report, pairs, prepare, paradigms = load(
    FOLDER, *"experiments run scoring results report pairs prepare paradigms".split()
)
measure, plot, tables = load(FOLDER, "measure", "plot", "tables")  # which the scripts import only when they need them

NAMES = ["paper-m10", "softmax-stock"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Two trained and measured models, as run.sh would have made them, but after three epochs."""
    # By default fairseq leaves out the last batch of a text unless it holds a multiple of eight sentences.
    training = (*experiments.TRAINING, "--max-epoch", "3", "--required-batch-size-multiple", "1")
    folder = tmp_path_factory.mktemp("french")
    ud, out = write_treebank(folder / "ud"), folder / "out"
    prepare.write_texts(ud, out)
    prepare.write_data_bin(out)
    known, forms = pairs.Vocabulary(out), paradigms.read_paradigms(ud / "lexicon.tsv", [])
    mined = [
        pair
        for split, name in prepare.SPLITS.items()
        for pair in pairs.mine(name, prepare.treebank(ud, split), forms, known)
    ]
    prepare.write_lines(out / "pairs.jsonl", (json.dumps(pairs.asdict(pair)) for pair in mined))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "TRAINING", training)
        assert run.work(run.choose(NAMES), ud, out) == 0
        yield SimpleNamespace(ud=ud, out=out)


def facts(world: SimpleNamespace, name: str) -> dict:
    return json.loads((world.out / "models" / name / "result.json").read_text(encoding="utf-8"))


def checkpoint(world: SimpleNamespace, name: str) -> object:
    return scoring.LanguageModel(world.out / "models" / name / "checkpoint_best.pt", world.out / "data-bin")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_measured_loss_is_the_one_that_fairseq_logged(world: SimpleNamespace, name: str) -> None:
    log = (world.out / "models" / name / "train.log").read_text(encoding="utf-8")
    best = min(
        float(line.split("| loss ")[1].split()[0]) for line in log.splitlines() if "valid on 'valid' subset" in line
    )
    measured = facts(world, name)["loss"]["valid"]
    nats = torch.tensor(2.0).log().item() * best
    assert measured["with_ends"] == pytest.approx(nats, abs=0.02 if name == "paper-m10" else 1e-3)
    sentences = (world.out / "text" / "valid.txt").read_text(encoding="utf-8").splitlines()
    assert measured["tokens_with_ends"] == measured["tokens_without_ends"] + len(sentences)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_losses_and_ratios_are_those_of_one_sentence_at_a_time(world: SimpleNamespace, name: str) -> None:
    model = checkpoint(world, name)
    lines = ["les lettres de le roi sont perdues .", "la femme a perdu .", "la maison rouge ."]
    total = ends = 0.0
    for line in lines:
        _, log_probs = next(model.log_probs([model.encode(line)]))
        assert log_probs.exp().sum(1) == pytest.approx(1.0, abs=1e-4)
        total += sum(log_probs[i, model.dictionary.index(word)].item() for i, word in enumerate(line.split()))
        ends += log_probs[-1, model.dictionary.eos()].item()
    words = sum(len(line.split()) for line in lines)
    loss = model.loss(lines)
    assert loss.without_ends == pytest.approx(-total / words, abs=1e-3)
    assert loss.with_ends == pytest.approx(-(total + ends) / (words + len(lines)), abs=1e-3)

    questions = [
        ("la femme", "a", "est"),
        ("la", "femme", "maison"),
        ("la femme a", "perdu", "perdue"),
        ("le", "roi", "a"),
    ]
    for question, ratio in zip(questions, model.log_ratios(questions), strict=True):
        prefix, right, wrong = question
        _, log_probs = next(model.log_probs([model.encode(prefix)]))
        expected = log_probs[-1, model.dictionary.index(right)] - log_probs[-1, model.dictionary.index(wrong)]
        assert ratio == pytest.approx(expected.item(), abs=1e-3)


@pytest.mark.slow
def test_a_finished_model_is_mixed_with_ngrams(
    world: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(world.out, out)
    before = facts(world, "softmax-stock")
    chosen = run.choose(["softmax-stock", "softmax-strong"])
    assert run.work(chosen, world.ud, out, run.mix) == 2
    printed = capsys.readouterr()
    assert "softmax-stock: with " in printed.out
    assert "softmax-strong: " in printed.err and "expected a finished model, found none; run.py train" in printed.err

    (out / "models" / "paper-m10" / "checkpoint_best.pt").unlink()
    assert run.work(run.choose(["paper-m10"]), world.ud, out, run.mix) == 2
    assert "paper-m10/checkpoint_best.pt: expected a finished model" in capsys.readouterr().err
    (out / "models" / "paper-m10" / "checkpoint_best.pt").touch()
    (out / "models" / "paper-m10" / "result.json").write_text("{", encoding="utf-8")
    assert run.work(run.choose(["paper-m10"]), world.ud, out, run.mix) == 2
    assert "paper-m10/result.json: expected JSON, found damage" in capsys.readouterr().err
    shutil.copy(world.out / "models" / "paper-m10" / "result.json", out / "models" / "paper-m10")

    after = json.loads((out / "models" / "softmax-stock" / "result.json").read_text(encoding="utf-8"))
    mixture = after.pop("mixture")
    assert after == before
    model, prior = checkpoint(world, "softmax-stock"), Prior.load(out / "priors" / f"ngrams-{mixture['order']}")
    for subset, found in mixture["loss"].items():
        lines = (out / "text" / f"{subset}.txt").read_text(encoding="utf-8").splitlines()
        (alone, ngrams), w = (
            (torch.cat(model.scores(lines)), ngram_log_probs(prior, [line.split() for line in lines])),
            mixture["weight"],
        )
        by_hand = [
            math.log(w * math.exp(p) + (1 - w) * math.exp(q))
            for p, q in zip(alone.tolist(), ngrams.tolist(), strict=True)
        ]
        assert found == pytest.approx(-sum(by_hand) / len(by_hand), rel=1e-9)
        assert before["loss"][subset]["with_ends"] == pytest.approx(-alone.mean().item(), rel=1e-9)
        assert mixture["ngrams"][subset] == pytest.approx(-ngrams.mean(), rel=1e-9)
    assert mixture["loss"]["valid"] <= before["loss"]["valid"]["with_ends"]
    row, last = tables.mixtures(results.read_results(out)).splitlines()[-2:]
    assert last.startswith(f"| {mixture['order']}-grams | - | {mixture['ngrams']['valid']:.3f} |")
    assert row.startswith(f"| softmax-stock | - | {before['loss']['valid']['with_ends']:.3f} |")
    assert row.endswith(
        f"| {mixture['order']} | {w:.2f} | " + " | ".join(f"{nats:.3f}" for nats in mixture["loss"].values()) + " |"
    )


@pytest.mark.slow
def test_the_report_of_what_is_there(world: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["report.py", "--out", str(world.out), "--docs", str(tmp_path / "docs")]
    monkeypatch.setattr("sys.argv", arguments)
    assert report.main() == 0
    text = (tmp_path / "docs" / "french.md").read_text(encoding="utf-8")
    assert "**Not finished:** paper-m2500" in text
    assert f"{facts(world, 'paper-m10')['loss']['test1']['with_ends']:.3f}" in text
    assert "463,069" in text
    found = json.loads((tmp_path / "docs" / "french.json").read_text(encoding="utf-8"))
    assert [model["name"] for model in found["models"]] == ["softmax-stock", "paper-m10"]
    assert (tmp_path / "docs" / "french-sweep.png").read_bytes().startswith(b"\x89PNG")
