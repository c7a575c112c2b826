"""Models with experts in `llrnn explain`, `score` and `rescore`: figures by the definition, and the commands."""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from dynamic_prior import LINES
from evidence_world import EvidenceWorld
from expert_models import options
from shell import Shell
from thinned_grids import one_in
from tiny_world import EVERY_SENTENCE, Setting, World, evaluated
from translation_world import TranslationWorld

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.explain.explanation import Explanation
from fairseq_llrnn.plugin.compat.loading import Places, take_places
from fairseq_llrnn.plugin.models.frozen_lm import find_model_files
from fairseq_llrnn.plugin.scoring.explainer import LanguageModelExplainer, TranslationExplainer
from fairseq_llrnn.plugin.scoring.sentences import load_scorer
from fairseq_llrnn.systems.experts.user_code import files

ALL = 10**6


def turned(line: str) -> list[str]:
    """The source of a line of the tiny language."""
    return [word[::-1] for word in line.split()]


def explained(setting: Setting, line: str, source: list[str] | None) -> list[Explanation]:
    kind = LanguageModelExplainer if source is None else TranslationExplainer
    return kind(setting.model, setting.task).explain(line.split(), ALL, source)


def said_by(e: Explanation) -> list[dict[str, Any]]:
    """What an explanation has of each expert."""
    (detail,) = e.details
    assert detail.name == "experts"
    return list(detail.facts)


def assert_figures(setting: Setting, without: Setting, line: str, source: list[str] | None) -> None:
    """Terms sum to what the network adds; experts say what their class says; b knows nothing of them.

    `without` is the same model without experts.
    """
    (opened,), prior = setting.task.extensions, setting.task.prior
    table, static = prior.output.features, prior.output.num_classes
    of_base = explained(without, line, source)
    for place, (e, base) in enumerate(zip(explained(setting, line, source), of_base, strict=True)):
        assert math.fsum(math.exp(p) for _, p in e.predictions) == pytest.approx(1.0, abs=1e-5)
        assert dict(e.predictions)[e.token] == pytest.approx(e.log_prob, abs=1e-5)
        own = dict(e.own_features)
        terms = e.log_background + math.fsum(own.values()) + e.normaliser
        assert e.log_prob == pytest.approx(terms, abs=1e-4)
        assert e.log_background == pytest.approx(base.log_background, abs=1e-5)
        assert {n: b for n, b, _ in e.expected} == pytest.approx({n: b for n, b, _ in base.expected}, abs=1e-5)
        assert not base.details
        prefix = [p.token for p in of_base[:place]]
        for one, expert in zip(said_by(e), opened.panel.experts, strict=True):
            assert own.get(f"Expert:{one['name']}", 0.0) == pytest.approx(one["weight"] * one["value"], abs=1e-6)
            firing = expert.fires(source or [], prefix if expert.looks_at_prefix else [])
            features = {n: 1.0 for n in own if not n.startswith(("Expert:", "Evidence:Place"))}
            if e.slot is None:
                features = table.row(int(prior.output.class_of[prior.symbols.index(e.token)]))
            by_groups = firing.everywhere + sum(v * features.get(n, 0.0) for n, v in firing.groups.items())
            assert one["name"] == expert.name
            assert one["value"] == pytest.approx(firing.exceptions.get(e.token, by_groups), abs=1e-6)
        if e.slots:
            listed = dict(e.predictions)
            assert all(math.exp(listed[s.string]) == pytest.approx(math.exp(s.log_prob)) for s in e.slots)
            continue
        phi: dict[str, float] = {}
        for word, log_prob in e.predictions:
            row = table.row(int(prior.output.class_of[prior.symbols.index(word)]))
            assert int(prior.output.class_of[prior.symbols.index(word)]) < static
            for name, value in row.items():
                phi[name] = phi.get(name, 0.0) + math.exp(log_prob) * value
        for name, _, under_model in e.expected:
            assert under_model == pytest.approx(phi.get(name, 0.0), abs=1e-5)


def both(args: list[str], expert_file: Path, *names: str) -> tuple[Setting, Setting]:
    setting, without = evaluated([*args, *options(expert_file, *names)], scale=0.3), evaluated(args, scale=0.3)
    own = {k: v for k, v in setting.model.state_dict().items() if ".experts." not in k}
    without.model.load_state_dict(own)
    return setting, without


@pytest.mark.parametrize(
    ("names", "prior"), one_in(5, [["Mirror"], ["Said"], ["Said", "Mirror"]], ["prior", "lexical"])
)
def test_translations(translation: TranslationWorld, expert_file: Path, names: list[str], prior: str) -> None:
    setting, without = both(translation.train_args("llrnn_lstm", prior), expert_file, *names)
    for line in LINES:
        assert_figures(setting, without, line, turned(line))


def test_translations_with_evidence(evidence: EvidenceWorld, expert_file: Path) -> None:
    """Slots that experts make exceptions of, too: Ann and Zoé are said twice."""
    setting, without = both(evidence.train_args(prior="lexical"), expert_file, "Mirror", "Said")
    for source, line in (
        ("el tahc Ann tiov 12 Zoé", "le chat Ann voit Ann 12 Zoé Zoé"),
        ("enu emmop tneit neib", "une pomme tient bien"),
    ):
        assert_figures(setting, without, line, source.split())


def test_language_models(world: World, expert_file: Path) -> None:
    setting, without = both(world.train_args(), expert_file, "Said")
    for line in LINES:
        assert_figures(setting, without, line, None)


# ---- the commands ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def experts(expert_file: Path) -> str:
    return options(expert_file, "Mirror", "Said")[1]


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_explain(shell: Shell, trained_with_expert: Path, experts: str) -> None:
    args = ("explain", "--path", trained_with_expert, "--expert", experts, "--source", "el tahc tiov", "le chat voit")
    (sentence,) = objects(shell.run("llrnn", *args, "--json").out)
    for word in sentence["words"]:
        terms = sum(word["features"].values()) + word["normaliser"]
        assert math.log(word["p"]) == pytest.approx(math.log(word["background"]) + terms, abs=1e-4)
        assert [one["name"] for one in word["experts"]] == ["Mirror", "Said"]
    assert [word["experts"][0]["value"] for word in sentence["words"]] == [1.0, 2.0, 3.0, -1.0]
    table = shell.run("llrnn", *args).out
    weight = sentence["words"][1]["experts"][0]["weight"]
    assert f"experts       Mirror {weight:+.2f} × 2" in table
    shell.run("llrnn", *args[:-1])  # its own translation


def test_score_and_rescore(
    shell: Shell,
    world: World,
    translation: TranslationWorld,
    expert_file: Path,
    trained_with_expert: Path,
    experts: str,
    tmp_path: Path,
) -> None:
    said = options(expert_file, "Said")
    shell.run("fairseq-train", *world.train_args(save_dir=tmp_path / "lm"), *said, "--max-epoch", 1)
    model = tmp_path / "lm" / "checkpoint_last.pt"
    text = "".join(line + "\n" for line in world.text("valid"))
    (facts,) = objects(shell.run("llrnn", "score", "--path", model, *said, "--json", stdin=text).out)
    data = (*world.task_args(), "--path", model, "--gen-subset", "valid", "--sample-break-mode", "eos")
    done = shell.run("fairseq-eval-lm", *data, *said, *EVERY_SENTENCE)
    assert f"Loss (base 2): {facts['bits'] / (facts['words'] + facts['sentences']):.4f}" in done.out

    nbest, best = tmp_path / "nbest", tmp_path / "best"
    nbest.write_text("".join(f"0 ||| {line} ||| 0\n" for line in LINES), encoding="utf-8")
    source = tmp_path / "source"
    source.write_text(" ".join(turned(LINES[0])) + "\n", encoding="utf-8")
    args = ("rescore", "--path", trained_with_expert, "--source", source, "--nbest", nbest, "--out", best)
    lm = ("--lm-path", model, "--lm-expert", said[1])
    shell.run("llrnn", *args, "--expert", experts, *lm, "--nbest-out", tmp_path / "ranked")
    ranked = (line.split(" ||| ") for line in (tmp_path / "ranked").read_text(encoding="utf-8").splitlines())
    scores = {text: float(re.findall(r"llrnn_model= (\S+)", features)[0]) for _, text, features, _ in ranked}
    scorer = load_scorer(str(trained_with_expert), 1000, Places(code={"expert": experts}))
    own = scorer.score([" ".join(turned(LINES[0]))] * len(LINES), LINES)
    assert scores == pytest.approx(dict(zip(LINES, own, strict=True)), abs=1e-4)

    without = shell.run("llrnn", *args, "--expert", experts, "--lm-path", model, code=None)
    assert without.code == 2
    assert "error: --lm-expert: " in without.err
    assert "was trained with 1 experts, found 0; give the same ones in the same order" in without.err


def test_what_is_missing_or_too_much(
    shell: Shell, trained: Path, trained_with_expert: Path, experts: str, world: World, tmp_path: Path
) -> None:
    done = shell.run("llrnn", "explain", "--path", trained_with_expert, "--source", "el", "le", code=None)
    assert done.code == 2 and "error: --expert: " in done.err and "was trained with 2 experts, found 0" in done.err
    args = ("--path", "p", "--nbest", "-", "--out", "o", "--reverse-expert", experts)
    said = shell.run("llrnn", "rescore", *args, code=2).err
    assert f"--reverse-expert {experts}: belongs to --reverse-path, which is missing; give both or none" in said
    said = shell.run("llrnn", "show", world.data / "prior", "--expert", experts, code=2).err
    assert f"--expert {experts}: it needs --neighbours WORD; add that" in said
    with pytest.raises(OptionError, match="trained with 0 experts, found 2; leave it out"):
        load_scorer(str(trained / "checkpoint_last.pt"), 100, Places(code={"expert": experts}))
    with pytest.raises(OptionError, match="--expert .*: expected a model that was trained with a prior, .*; remove"):
        take_places("stock.pt", argparse.Namespace(data="data-bin"), Places(code={"expert": experts}), {})
    state = torch.load(trained / "checkpoint_last.pt", weights_only=False)
    state["model"]["decoder.head.experts.weight"] = torch.zeros(1, 8)
    torch.save(state, tmp_path / "lm.pt")
    with pytest.raises(DataError, match="a model that was trained with --expert cannot be a background"):
        find_model_files(str(tmp_path / "lm.pt"), Places(options="{} of --background model(…)"))
    state["model"]["decoder.head.experts.weight"] = torch.tensor(1.0)
    torch.save(state, tmp_path / "lm.pt")
    with pytest.raises(OptionError, match="--expert: expected this option, with which the checkpoint was trained"):
        load_scorer(str(tmp_path / "lm.pt"), 100)


def test_what_the_network_reads(
    shell: Shell, translation: TranslationWorld, trained_with_expert: Path, experts: str, tmp_path: Path
) -> None:
    word = (translation.data / "dict.tgt.txt").read_text(encoding="utf-8").split()[0]
    args = ["llrnn", "show", "--neighbours", word, "--path", trained_with_expert]
    said = shell.run(*args, code=2).err
    assert "was trained with 2 experts, found 0; give the same ones" in said and "--expert" in said
    found = shell.run(*args, "--expert", experts).out.splitlines()
    assert found[0] == word and len(found) > 1
    assert "no.py" in shell.run(*args, *options(tmp_path / "no.py", "Mirror", "Said"), code=2).err


def test_scores_on_disk_are_of_an_expert_not_of_its_file() -> None:
    """Another class, another order or another file of the same name is another expert."""
    given = ["x/same.py:Mine", "x/same.py:Other", "y/same.py:Mine", "x/same.py:Mine,y/same.py:Mine"]
    assert files(given[0]) == {"expert 1 (same.py:Mine)": Path("x/same.py")}
    assert len({tuple(files(names).items()) for names in given}) == len(given)
    assert files(None) == {}


def test_experts_of_one_name(translation: TranslationWorld, expert_file: Path) -> None:
    """No term of a word's score is lost in the JSON."""
    setting = evaluated([*translation.train_args(), *options(expert_file, "Mirror", "Mirror")], scale=0.3)
    for e in explained(setting, LINES[0], turned(LINES[0])):
        assert [one["name"] for one in said_by(e)] == ["Mirror", "Mirror#2"]
        terms = e.log_background + math.fsum(dict(e.own_features).values()) + e.normaliser
        assert e.log_prob == pytest.approx(terms, abs=1e-4)
