"""Scores of translations whose source offers strings: those of fairseq's commands on text; what counts as unknown."""

import math
import re
from pathlib import Path

import pytest
from evidence_world import NOT_OFFERED, EvidenceWorld
from shell import Shell
from tiny_world import EVERY_SENTENCE

from fairseq_llrnn.plugin.scoring.sentences import UNKNOWN, WORDS, Scorer, load_scorer

MODELS = {"lstm": "static", "lexical": "lexical"}


@pytest.fixture(params=MODELS)
def scorer(request: pytest.FixtureRequest, evidence_models: dict[str, Path]) -> Scorer:
    return load_scorer(str(evidence_models[request.param]), 200)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_as_fairseqs_commands_on_text(
    name: str, shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path]
) -> None:
    task = [*evidence.task_args(MODELS[name], raw=True), "--path", evidence_models[name], "--num-workers", 0]
    scored = shell.run(
        "fairseq-generate", *task, "--gen-subset", "test", "--score-reference", "--batch-size", 5, *EVERY_SENTENCE
    )
    expected = scored.nats()
    sources, targets = evidence.text("test", "src"), evidence.text("test", "tgt")
    scorer = load_scorer(str(evidence_models[name]), 200)
    found = scorer.score(sources, targets)
    assert found == pytest.approx([expected[i] for i in range(len(targets))], abs=2e-3)
    # and the criterion's loss, a mean in bits over all tokens
    validated = shell.run(
        "fairseq-validate", *task, "--valid-subset", "test", "--batch-size", 5, "--log-format", "json", *EVERY_SENTENCE
    )
    (logged,) = re.findall(r'"test_loss": "([0-9.]+)"', validated.out + validated.err)
    tokens = sum(len(line.split()) + 1 for line in targets)
    assert -sum(found) / tokens / math.log(2) == pytest.approx(float(logged), abs=2e-3)


def test_strings_of_slots_are_known_and_others_are_not(scorer: Scorer) -> None:
    pairs = [
        ("el tahc tiov Zoé 4711", "le chat voit Zoé 4711"),  # both offered
        ("el tahc tiov Zoé", "le chat voit 4711"),  # not offered by this source
        ("el tahc", f"{NOT_OFFERED} Zoé"),
        ("el tahc", "<unk> <unk>"),  # what a system wrote
        ("1,000 kph", "1 000 kilomètres heure"),
        ("&apos; tahc", "chat"),  # an unknown source word that is no evidence
    ]
    counts = []
    for source, target in pairs:
        scorer.notes.clear()
        (score,) = scorer.score([source], [target])
        assert math.isfinite(score)
        assert scorer.notes[WORDS] == len(f"{source} {target}".split())
        counts.append(scorer.notes[UNKNOWN])
    assert counts == [0, 1, 2, 0, 0, 1]
    scorer.notes.clear()
    together = scorer.score([source for source, _ in pairs], [target for _, target in pairs])
    assert scorer.notes[UNKNOWN] == sum(counts)
    assert together == pytest.approx([scorer.score([s], [t])[0] for s, t in pairs], rel=1e-5)


def test_a_string_that_no_slot_offers_is_scored_as_unk(scorer: Scorer) -> None:
    other, unk = scorer.score(["el tahc"] * 2, ["le Zoé voit", "le <unk> voit"])
    assert other == pytest.approx(unk, rel=1e-5)
    offered, unk = scorer.score(["el Zoé"] * 2, ["le Zoé voit", "le <unk> voit"])
    assert offered > unk + 1, "a slot's string is the better name of what nobody knows"
    # after it, both are read as <unk>: only its own probability differs
    longer = scorer.score(["el Zoé"] * 2, ["le Zoé voit la mer", "le <unk> voit la mer"])
    assert longer[0] - longer[1] == pytest.approx(offered - unk, abs=1e-4)
