"""Two processes train together what one trains alone with both their batches: every background, and all beside it."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from expert_models import options as experts
from shell import Shell
from tiny_grammar import grammar
from tiny_world import World, build
from translation_world import TranslationWorld

SMALL = ["--max-tokens", "60", "--dropout", "0.1"]
CHARACTERS = ["--input-characters", "cnn", "--character-filters", "1:3,3:5", "--character-mode", "add"]
LEARNED = "learned tree"
BACKENDS = ("legacy_ddp", "pytorch_ddp")


def language_models(shell: Shell, world: World, trained: Path, place: Path) -> dict[str, Sequence[object]]:
    (place / "grammar.txt").write_text(grammar(), encoding="utf-8")
    backgrounds = {
        "unigram": [],
        "ngram(3, folds=2)": [],
        "automaton:grammar.txt": [],
        "cache(20, learned)": [],
        f"model:{trained}/checkpoint_last.pt": [],
        "0.7 ngram:2 plus 0.3 cache:20 with weights learned": [],
        "ngram:2 plus uniform with weights per position": [],
        "unigram plus cache:9": ["--open-vocabulary", "characters"],
    }
    lines: dict[str, Sequence[object]] = {}
    for number, (background, options) in enumerate(backgrounds.items()):
        prior = place / f"prior{number}"
        shell.run(
            "llrnn", "prior", "--dict", world.data / "dict.txt", "--lexicon", world.place / "lexicon.tsv",
            "--top-words", 9, "--count-text", world.place / "train.txt", "--background", background, *options,
            "--out", prior, cwd=place,
        )  # fmt: skip
        lines[background] = [*world.train_args(), *SMALL, "--prior", prior]
    lines["sampled"] = [*world.train_args(), *SMALL, "--sampled-classes", 10]
    lines["characters"] = [*world.train_args(), *SMALL, *CHARACTERS]
    tree = ["--output-tree", "learned", "--tree-arity", 3, "--tree-reassign", 1000000]  # changes after every update
    lines[LEARNED] = [*world.train_args(), *SMALL, *tree]
    lines["temperature"] = [*lines["ngram(3, folds=2)"], "--learn-background-temperature", "--adaptor-penalty", 0.01]
    return lines


def translations(
    translation: TranslationWorld, evidence: EvidenceWorld, expert_file: Path
) -> dict[str, Sequence[object]]:
    return {
        "lexical": [*translation.train_args("llrnn_transformer", "lexical"), *SMALL],
        "experts": [*translation.train_args(), *SMALL, *experts(expert_file, "Mirror", "Said")],
        "evidence": [*evidence.train_args("llrnn_lstm", "static"), *SMALL],
        "evidence and translations": [*evidence.train_args("llrnn_transformer", "lexical"), *SMALL],
    }


def test_every_kind(
    shell: Shell, world: World, translation: TranslationWorld, evidence: EvidenceWorld, trained: Path,
    expert_file: Path, tmp_path: Path,
) -> None:  # fmt: skip
    """Up to float error: a parameter that several terms use is summed in another order.

    After so few updates, ties say which places a learned tree gives, and float error breaks them: only all processes
    have to break them alike.
    """
    lines = language_models(shell, world, trained, tmp_path) | translations(translation, evidence, expert_file)
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
