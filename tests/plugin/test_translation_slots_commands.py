"""Translations as slots through the real commands: training, a stop, search, scores, explanation."""

import json
import math
import re
from functools import partial
from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from same_training import resumed_as_whole
from shell import Shell
from small_corpus import Llrnn
from tiny_world import EVERY_SENTENCE, read_checkpoint


@pytest.fixture(scope="module")
def trained(shell: Shell, evidence: EvidenceWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prior whose rare translations are slots, and a model that was stopped once."""
    place = tmp_path_factory.mktemp("translations")
    shell.run(
        "llrnn", "prior", "--dict", evidence.data / "dict.tgt.txt", "--top-words", 10, "--suffixes", 2,
        "--evidence", "numbers,names,copies,translations", "--lexical-translation", evidence.data,
        "--set", "translations.learned=true", "--set", "translations.aligner=ibm1", "--out", place / "prior",
    )  # fmt: skip
    train = partial(evidence.train_args, "llrnn_transformer", "lexical", raw=True)
    resumed_as_whole(shell, train, place, "--prior", place / "prior")
    weights = read_checkpoint(place / "whole" / "checkpoint_last.pt")["model"]
    assert not any("translations" in key for key in weights), "what the prior holds is in no checkpoint"
    return place


def arguments(evidence: EvidenceWorld, place: Path) -> list[object]:
    return [*evidence.task_args(raw=True), "--prior", place / "prior", "--path", place / "whole" / "checkpoint_last.pt"]


def test_what_a_search_finds_has_the_score_that_it_said(
    shell: Shell, as_typed: Llrnn, evidence: EvidenceWorld, trained: Path
) -> None:
    """In a search, in batches of several sentences, and where it is given."""
    common = ("--max-tokens", 400, "--max-len-b", 14, "--num-workers", 0, *EVERY_SENTENCE)
    found = shell.run("fairseq-generate", *arguments(evidence, trained), "--gen-subset", "test", "--beam", 3, *common)
    hypotheses, totals = found.best(), found.nats()
    assert len(totals) == len(evidence.text("test", "src"))
    number = next(n for n, text in hypotheses.items() if text)
    source = evidence.text("test", "src")[number]
    explained = as_typed(
        "explain", "--path", trained / "whole" / "checkpoint_last.pt", "--json", "--source", source,
        hypotheses[number],
    )  # fmt: skip
    words = json.loads(explained.out)["words"]
    assert -sum(word["nats"] for word in words) == pytest.approx(totals[number], abs=2e-3)


def test_an_explanation_says_what_is_translated(shell: Shell, trained: Path) -> None:
    """Each translation is shown with its source word; of the many, no more than --top names."""
    explain = ("llrnn", "explain", "--path", trained / "whole" / "checkpoint_last.pt", "--top", 3)
    pair = ("--source", "el tahc Ann tiov 12", "le chat Ann voit 12")
    words = json.loads(shell.run(*explain, "--json", *pair).out)["words"]
    for word in words:
        kinds = [slot["kind"] for slot in word["slots"]]
        assert kinds.count("translations") == 3 and {"numbers", "names"} <= set(kinds)
        assert math.log(word["p"]) == pytest.approx(
            math.log(word["background"]) + sum(word["features"].values()) + word["normaliser"], abs=1e-3
        )
    cat = words[1]["slot"]
    assert cat["kind"] == "translations" and "tahc" in cat["words"]
    assert {"Evidence:Translation", "Evidence:Place"} <= words[1]["features"].keys()
    assert re.search(r"slot +translations: .*tahc", shell.run(*explain, *pair).out)
