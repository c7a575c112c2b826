"""Evidence that knows what was said, through fairseq's commands: searches with and without candidates, which know it
unless --evidence-freely is given; training, in two steps, and scoring with --evidence-once."""

import argparse
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from evidence_world import UNKNOWN, EvidenceWorld
from shell import Result, Shell
from tiny_world import EVERY_SENTENCE

from fairseq_llrnn.plugin.tasks.evidence_options import check_evidence_options, counted_in_search

SOURCES = ["quark Karim Zoé quark sdrol 4711", "el tahc Ann tiov 12 Zoé", "enu emmop tneit neib", ""]
SEARCHES = [["--beam", 5], ["--beam", 3, "--diverse-beam-groups", 3], ["--sampling", "--beam", 4, "--nbest", 4]]


def written(found: Result) -> dict[int, list[str]]:
    """The best hypothesis of each sentence."""
    return {number: text.split() for number, text in found.best().items()}


@pytest.fixture(scope="module")
def once(shell: Shell, evidence: EvidenceWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained with it, too, which was stopped once."""
    place = tmp_path_factory.mktemp("once")
    for epochs in (1, 2):
        shell.run(
            "fairseq-train", *evidence.train_args("llrnn_transformer", "lexical", place, raw=True), "--evidence-once",
            "--max-epoch", epochs, "--disable-validation",
        )  # fmt: skip
    return place / "checkpoint_last.pt"


def test_searches_may_do_without_what_training_knew() -> None:
    """`llrnn generate` takes --evidence-once from the checkpoint."""
    shares = {"evidence_dropout": 0.0, "invented_evidence": 0.0}
    both = argparse.Namespace(max_slots=16, evidence_once=True, evidence_freely=True, **shares)
    check_evidence_options(both)
    table = SimpleNamespace(once=True)
    with counted_in_search(both, SimpleNamespace(offers=lambda: table)):
        assert not table.once
    assert table.once


@pytest.mark.parametrize("options", SEARCHES)
def test_no_unknown_word_is_said_more_often_than_its_source_has_it(
    shell: Shell, evidence: EvidenceWorld, once: Path, options: list[object]
) -> None:
    found = evidence.interactive(shell, once, SOURCES, "--prior", evidence.data / "lexical", *options, "--seed", 3)
    for number, best in written(found).items():
        said, has = Counter(best), Counter(SOURCES[number].split())
        if "--sampling" not in options:  # a draw may be the thousandth
            assert all(said[word] <= has[word] for word in UNKNOWN), (best, SOURCES[number])


def test_a_model_that_was_trained_without_it_says_no_less(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path]
) -> None:
    sources, right, too_many = evidence.text("test", "src"), [], []
    for option in (["--evidence-freely"], []):
        found = evidence.interactive(shell, evidence_models["lstm"], sources, "--beam", 3, *option)
        pairs = [(Counter(best), Counter(sources[number].split())) for number, best in written(found).items()]
        right.append(sum(min(said[word], has[word]) for said, has in pairs for word in UNKNOWN))
        too_many.append(sum(max(said[word] - has[word], 0) for said, has in pairs for word in UNKNOWN))
    assert right[1] >= right[0] and too_many[1] <= too_many[0] and too_many[1] == 0


def test_references_that_go_against_it_have_a_score(shell: Shell, evidence: EvidenceWorld, once: Path) -> None:
    found = shell.run(
        "fairseq-generate", *evidence.task_args("lexical", raw=True), "--path", once, "--gen-subset", "test",
        "--evidence-once", "--score-reference", "--num-workers", 0, *EVERY_SENTENCE,
    )  # fmt: skip
    scores = [score for some in found.hypotheses().values() for score, _ in some]
    assert len(scores) == len(evidence.text("test", "src")) and all(score > -50 for score in scores)


def test_explain_knows_what_was_said(shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path]) -> None:
    path, source = evidence_models["lstm"], "quark tahc"
    done = shell.run("llrnn", "explain", "--path", path, "--source", source, "--json", "quark quark")
    first, second, _ = json.loads(done.out)["words"]
    assert first["background"] > 500 * second["background"] > 0
    found = evidence.interactive(shell, path, [source], "--beam", 5, "--max-len-a", 0)
    done = shell.run("llrnn", "explain", "--path", path, "--source", source, "--json", found.best()[0])
    nats = sum(word["nats"] for word in json.loads(done.out)["words"])
    assert -nats == pytest.approx(found.nats()[0], abs=2e-3)
