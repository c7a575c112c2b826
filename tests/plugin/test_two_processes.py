"""Two processes train together what one trains alone with both their batches: every background, and all beside it."""

import itertools
import json
from pathlib import Path

import pytest
from every_kind import LEARNED, language_models, translations
from evidence_world import EvidenceWorld
from shell import Shell
from tiny_world import World, build
from translation_world import TranslationWorld

BACKENDS = ("legacy_ddp", "pytorch_ddp")
QUICK = ("unigram plus cache:9", "ngram(3, folds=2)", "evidence and translations")


@pytest.mark.parametrize("is_quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_kind(
    shell: Shell, world: World, translation: TranslationWorld, evidence: EvidenceWorld, trained: Path,
    expert_file: Path, tmp_path: Path, is_quick: bool,
) -> None:  # fmt: skip
    """Up to float error: a parameter that several terms use is summed in another order.

    After so few updates, ties say which places a learned tree gives, and float error breaks them: only all processes
    have to break them alike.
    """
    lines = language_models(shell, world, trained, tmp_path) | translations(translation, evidence, expert_file)
    lines = {name: line for name, line in lines.items() if (name in QUICK) == is_quick}
    file = tmp_path / "lines.json"
    file.write_text(json.dumps({name: [str(a) for a in line] for name, line in lines.items()}), encoding="utf-8")
    done = shell.run("two_processes", file, processes=2)
    found = [json.loads(line) for line in done.out.splitlines() if line.startswith('{"name"')]
    assert [(one["name"], one["backend"]) for one in found] == list(itertools.product(lines, BACKENDS))
    for one in found:
        assert one["between"] == 0, (one["name"], one["backend"])
        if one["name"] == LEARNED:
            continue
        assert one["apart"] <= 1e-5, (one["name"], one["backend"])
        assert one["said"] == pytest.approx(one["alone"], rel=1e-3), (one["name"], one["backend"])


def test_a_criterion_has_nothing_that_fairseq_would_have_to_move(world: World) -> None:
    """Of several GPUs, fairseq moves a criterion to its own only where it has parameters: buffers would stay behind."""
    criterion = build(world.train_args()).criterion
    assert not list(criterion.buffers()) and not list(criterion.parameters())
