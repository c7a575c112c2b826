"""The comparison of adaptations, stage by stage, on the embedded pair of texts; one share of the domain, one recipe."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_modules import EXAMPLES, load
from quick_composition import remember_compositions

from fairseq_llrnn.features.dictionary import load_dictionary

corpora, systems, stages, outcome, curves, adapt = load(
    EXAMPLES / "adaptation", *"corpora systems stages outcome curves adapt".split()
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder after all stages."""
    remember_compositions()  # its commands are forks of this process
    out = tmp_path_factory.mktemp("adaptation") / "out"
    first = tuple(replace(system, recipes=dict(list(system.recipes.items())[:1])) for system in systems.SYSTEMS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "TOY", replace(corpora.TOY, max_epoch=1))
        for module in (stages, outcome, curves):
            patch.setattr(module, "PERCENTS", (10,))
        for module in (outcome, curves):
            patch.setattr(module, "SYSTEMS", first)
        patch.setattr(stages, "TRAINED", tuple(system for system in first if system.recipes))
        for stage in adapt.STAGES:
            patch.setattr(sys, "argv", ["adapt.py", stage, "--out", str(out)])
            assert adapt.main() == 0
        yield out


@pytest.mark.slow
def test_every_system_is_in_the_table_and_the_picture(finished: Path) -> None:
    found, _ = outcome.read_outcomes(finished)
    cell = found["prices", 10]
    assert list(cell) == [system.name for system in systems.SYSTEMS]
    page = (finished / "adaptation.md").read_text(encoding="utf-8")
    for system in systems.SYSTEMS:
        assert f"| ({system.letter}) | {system.what} | " in page
        assert f"{cell[system.name].test:.3f}" in page
    assert f"**{min(result.test for result in cell.values()):.3f}**" in page
    assert (finished / "adaptation.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_losses_are_those_that_training_saw(finished: Path) -> None:
    """The dev loss of the best epoch, in bits, in the log of the n-gram's model."""
    log = (finished / "models" / "prices.10" / "n-gram.light" / "train.log").read_text(encoding="utf-8")
    validations = [line for line in log.splitlines() if "valid on 'valid' subset" in line]
    bits = [float(line.split("| loss ")[1].split()[0]) for line in validations]
    measured = outcome.read_outcomes(finished)[0]["prices", 10]["n-gram"].dev
    assert measured == pytest.approx(min(bits) * np.log(2), abs=2e-3)


@pytest.mark.slow
def test_a_mixture_is_no_worse_than_its_parts_on_dev(finished: Path) -> None:
    cell = outcome.read_outcomes(finished)[0]["prices", 10]
    assert cell["interpolated"].dev <= min(cell[name].dev for name in ("general", "softmax", "log-linear"))


@pytest.mark.slow
def test_samples_are_nested_and_one_vocabulary_serves_all(finished: Path) -> None:
    sentences = [[corpora.Word(str(i), "_", "_", "_")] for i in range(50)]
    drawn = corpora.shuffled(sentences, "seed")
    assert drawn != sentences and sorted(drawn) == sorted(sentences)
    assert corpora.share(drawn, 10) == drawn[:5] and len(corpora.share(drawn, 1)) == 1
    place = systems.Place(finished)
    dictionaries = {load_dictionary(place.data(name) / "dict.txt").symbols for name in ("general", "prices.10")}
    assert len(dictionaries) == 1
