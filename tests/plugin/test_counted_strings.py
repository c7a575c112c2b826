"""Copied strings are counted in searches and by `llrnn explain`, unless --evidence-freely is given."""

import argparse
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from evidence_world import UNKNOWN, EvidenceWorld
from shell import Result, Shell
from small_corpus import Llrnn

from fairseq_llrnn.plugin.tasks.evidence_options import counted_in_search

SOURCES = ["quark Karim Zoé quark sdrol 4711", "el tahc Ann tiov 12 Zoé", "enu emmop tneit neib", ""]
SEARCHES = [["--beam", 5], ["--beam", 3, "--diverse-beam-groups", 3], ["--sampling", "--beam", 4, "--nbest", 4]]


def written(found: Result) -> dict[int, list[str]]:
    """The best hypothesis of each sentence."""
    return {number: text.split() for number, text in found.best().items()}


def test_only_searches_count_strings() -> None:
    for is_free in (False, True):
        table = SimpleNamespace(once=False)
        prior = SimpleNamespace(offers=lambda found=table: found)
        with counted_in_search(argparse.Namespace(evidence_freely=is_free), prior):
            assert table.once != is_free
        assert not table.once


@pytest.mark.parametrize("options", SEARCHES)
def test_no_unknown_word_is_copied_more_often_than_its_source_has_it(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path], options: list[object]
) -> None:
    more = ["--prior", evidence.data / "lexical", *options, "--seed", 3]
    found = evidence.interactive(shell, evidence_models["lexical"], SOURCES, *more)
    for number, best in written(found).items():
        said, has = Counter(best), Counter(SOURCES[number].split())
        if "--sampling" not in options:  # a draw may be the thousandth
            assert all(said[word] <= has[word] for word in UNKNOWN), (best, SOURCES[number])


def test_counting_removes_repeated_strings_and_loses_none(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path]
) -> None:
    sources, right, too_many = evidence.text("test", "src"), [], []
    for option in (["--evidence-freely"], []):
        found = evidence.interactive(shell, evidence_models["lstm"], sources, "--beam", 3, *option)
        pairs = [(Counter(best), Counter(sources[number].split())) for number, best in written(found).items()]
        right.append(sum(min(said[word], has[word]) for said, has in pairs for word in UNKNOWN))
        too_many.append(sum(max(said[word] - has[word], 0) for said, has in pairs for word in UNKNOWN))
    assert right[1] >= right[0] and too_many[0] > 0 == too_many[1]


def test_explain_counts_copied_strings(
    shell: Shell, as_typed: Llrnn, evidence: EvidenceWorld, evidence_models: dict[str, Path]
) -> None:
    path, source = evidence_models["lstm"], "quark tahc"
    done = as_typed("explain", "--path", path, "--source", source, "--json", "quark quark")
    first, second, _ = json.loads(done.out)["words"]
    assert first["background"] > 500 * second["background"] > 0
    found = evidence.interactive(shell, path, [source], "--beam", 5, "--max-len-a", 0)
    done = as_typed("explain", "--path", path, "--source", source, "--json", found.best()[0])
    nats = sum(word["nats"] for word in json.loads(done.out)["words"])
    assert -nats == pytest.approx(found.nats()[0], abs=2e-3)
