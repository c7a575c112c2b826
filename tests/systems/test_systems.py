"""What a system offers is found by its files, and its folder can be deleted: all else is as before."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell, run_script
from tiny_world import World

from fairseq_llrnn import registry
from fairseq_llrnn.cli.main import all_commands

PACKAGE = registry.PACKAGE.name
SYSTEMS = sorted(path.name for path in (registry.PACKAGE / "systems").iterdir() if (path / "README.md").exists())
Without = Callable[..., Path]
# As if llrnn_research were not installed.
HIDDEN = """
import importlib.metadata
from fairseq_llrnn import registry
points = {point for found in importlib.metadata.distributions() for point in found.entry_points}
others = importlib.metadata.EntryPoints(point for point in points if not point.value.startswith("llrnn_research."))
registry.entry_points = lambda: others
"""
# What the systems called `gone` offered is gone, and known to be theirs.
GONE = """
import contextlib, io, sys
import fairseq_llrnn
from fairseq_llrnn import registry
from fairseq_llrnn.cli.main import main, overview
gone = sys.argv[1].split()
offered = " ".join((registry.OFFERED | registry.RESEARCH)[system] for system in gone).split()
fairseq_llrnn.register()
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.tasks import TASK_REGISTRY
known = {line.split()[0] for line in overview().splitlines() if line.startswith("  ") and line.strip()}
known |= {*TASK_REGISTRY, *MODEL_REGISTRY, *ARCH_MODEL_REGISTRY, *CRITERION_REGISTRY, *OPTIMIZER_REGISTRY}
from fairseq_llrnn.prior.part import KINDS
assert "prior" in known and not (known | set(KINDS)) & set(offered), (known | set(KINDS)) & set(offered)
for name in offered:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert main([name]) == 2
    assert any(f"it is of the system {system}, which " in said.getvalue() for system in gone), name
"""
# A model of few words from beginning to end, as in README's demo; and what is said of models and priors that are lost.
DEMO = """
import json, sys
from pathlib import Path
from fairseq_llrnn.cli.main import main

def llrnn(*arguments, code=0):
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse's, which says what is wrong with options
        status = stop.code
    assert status == code, arguments

place = Path(sys.argv[1])
llrnn("prior", "--dict", place / "data-bin" / "dict.txt", "--lexicon", place / "lexicon.tsv", "--out", place / "prior")
small = ["--decoder-embed-dim", 8, "--decoder-hidden-size", 8, "--max-update", 2, "--cpu", "--num-workers", 0]
llrnn("train", place / "data-bin", "--prior", place / "prior", *small, "--save-dir", place / "model")
checkpoint = place / "model" / "checkpoint_best.pt"
llrnn("explain", "--path", checkpoint, "le chat")
llrnn("eval-lm", place / "data-bin", "--path", checkpoint, "--gen-subset", "valid", "--cpu")
import torch
state = torch.load(checkpoint, weights_only=False)
state["cfg"]["model"]["_name"] = "llrnn_rctm"
torch.save(state, checkpoint)
llrnn("explain", "--path", checkpoint, "le chat", code=2)
llrnn("train", place / "data-bin", "--prior", place / "prior", *small, "--output-tree", "huffman", code=2)
llrnn("train", place / "data-bin", "--prior", place / "prior", *small, "--cell", "vcgru", code=2)
state["cfg"]["model"]["_name"] = "llrnn_lm"
state["cfg"]["model"]["source_characters"] = "cnn"
torch.save(state, checkpoint)
llrnn("explain", "--path", checkpoint, "le chat", code=2)
state["cfg"]["model"]["source_characters"] = "none"
for weights in ("experts.weight", "tree.parent"):
    state["model"][f"decoder.head.{weights}"] = torch.zeros(3)
    torch.save(state, checkpoint)
    llrnn("explain", "--path", checkpoint, "le chat", code=2)
    del state["model"][f"decoder.head.{weights}"]
saved = json.loads((place / "prior" / "prior.json").read_text())
saved["parts"] = [{"part": "markov_field"}]
(place / "prior" / "prior.json").write_text(json.dumps(saved))
llrnn("show", place / "prior", code=2)
"""
# tests and helpers of the core that name a system, or an option of it, and what for
NAMING = {
    "cli/test_help_examples.py": "makes what examples of views read",
    "plugin/test_split_batches.py": "one case with experts, left out without them",
    "files/test_cells_of_tables.py": "all readers of tables, without those of systems that are gone",
    "files/test_numbers.py": "numbers in all files, with those of rescoring",
    "files/test_read_counts.py": "lists readers of the whole package",
    "files/test_readers_line_ends.py": "all readers of lines, with those of rescoring",
    "files/test_special_files.py": "all kinds of files, with those of rescoring",
    "huggingface/test_background_processor.py": "one test beside terms, skipped without them",
    "huggingface/test_marian_network.py": "one test beside terms, skipped without them",
    "head/test_checks.py": "a message about a system that is absent",
    "plugin/test_other_models.py": "one case with an output tree, skipped without it",
    "plugin/test_transformer_lm.py": "one case with an output tree, skipped without it",
    "plugin/test_small_texts.py": "options of systems that the network for small texts has",
    "plugin/test_source_prior.py": "one more command, left out without characters",
    "scripts/test_options_page.py": "docs/options lists the options of systems, too",
    "support/every_kind.py": "command lines, without those of systems that are gone",
    "support/expert_models.py": "the text of a user's module; a fixture for experts beside the core",
    "support/extreme_numbers.py": "all settings, without those of systems that are gone",
    "support/hostile_readers.py": "all readers, without those of systems that are gone",
    "support/labels_world.py": "for help examples of classify, left out without it",
    "support/guide_pages.py": "pages of both packages",
    "support/read_counts.py": "functions of both packages that read files",
    "support/reranking_readers.py": "readers of the system, for hostile_readers.py",
    "support/translation_world.py": "sizes of architectures, by name",
}
# quick tests of what models are made of
CORE = ("test_functional.py", "backgrounds/test_backgrounds.py", "head/test_head.py", "prior/test_parts.py")


@pytest.fixture
def without(root: Path, tmp_path: Path) -> Without:
    """A copy of the package without some systems."""

    def copy(*systems: str) -> Path:
        shutil.copytree(root / PACKAGE, tmp_path / "copy" / PACKAGE)  # with what Python has compiled
        for system in systems:
            shutil.rmtree(tmp_path / "copy" / PACKAGE / "systems" / system)
        return tmp_path / "copy"

    return copy


def test_commands_and_plugins_are_found_by_their_files(tmp_path: Path) -> None:
    for name in ("one/plugin.py", "one/commands/__init__.py", "one/commands/a_b.py", "two/plugin/__init__.py",
                 "two/plugin/task.py", "two/commands/c.py", "two/math.py", "three/README.md"):  # fmt: skip
        file = tmp_path / "systems" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("raise SystemExit('imported')\n", encoding="utf-8")
    start = "fairseq_llrnn.systems."

    def found(group: str) -> dict[str, str]:
        return {name: place for name, place in registry.names(group, tmp_path).items() if place.startswith(start)}

    assert found("commands") == {"a-b": f"{start}one.commands.a_b", "c": f"{start}two.commands.c"}
    assert found("plugins") == {"one": f"{start}one.plugin", "two": f"{start}two.plugin"}


def test_all_that_systems_offer_is_known_to_be_theirs() -> None:
    """Commands here; names of fairseq and of parts in GONE, which fails for one that is left."""
    assert sorted(registry.OFFERED) == SYSTEMS
    for offered, package in ((registry.OFFERED, f"{PACKAGE}.systems."), (registry.RESEARCH, "llrnn_research.")):
        commands = {name.split()[0] for name, module in all_commands().items() if module.startswith(package)}
        assert commands <= set(" ".join(offered.values()).split())


def test_tests_of_the_core_name_no_system(root: Path) -> None:
    """But those of NAMING, those of examples, and helpers that tests of systems alone import."""
    tests = {str(path.relative_to(root / "tests")): path.read_text(encoding="utf-8")
             for path in (root / "tests").rglob("*.py")}  # fmt: skip
    research = (root / "research" / "tests").rglob("*.py")
    tests |= {f"systems/{path.name}": path.read_text(encoding="utf-8") for path in research}
    folders = re.compile(rf"systems[./]({'|'.join(SYSTEMS)})\b|llrnn_research")
    offered = {name for names in (registry.OFFERED | registry.RESEARCH).values() for name in names.split()}
    names = {name for name in offered if name.startswith("--") or "llrnn_" in name}

    def is_for_systems(name: str) -> bool:
        used = re.compile(rf"^ *(from|import) {Path(name).stem}\b", re.MULTILINE)
        return all(other.startswith("systems/") for other, text in tests.items() if used.search(text))

    found = {
        name for name, text in tests.items()
        if not name.startswith(("systems/", "examples/"))
        and (folders.search(text) or names & set(re.findall(r"[\w-]+", text)))
        and not (name.startswith("support/") and is_for_systems(name))
    }  # fmt: skip
    assert found == NAMING.keys()


# all of them at once in the next test; tests/test_imports.py finds what imports a system
@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_without_a_system_all_else_is_as_before(name: str, without: Without, beside_fairseq: Shell) -> None:
    beside_fairseq.run("python", "-c", GONE, name, cwd=without(name))


def test_without_any_system_the_core_works(
    without: Without, beside_fairseq: Shell, world: World, root: Path, tmp_path: Path
) -> None:
    copy = without(*SYSTEMS)
    beside_fairseq.run("python", "-c", HIDDEN + GONE, " ".join([*SYSTEMS, *registry.RESEARCH]), cwd=copy)
    shutil.copytree(world.place, tmp_path / "world")
    said = beside_fairseq.run("python", "-c", HIDDEN + DEMO, tmp_path / "world", cwd=copy).err
    advice = "which is not installed; in a checkout: pip install ./research"
    assert f"found the model llrnn_rctm; it is of the system translators, {advice}" in said
    lost_trees = f"it is of the system output_trees, {advice}"
    assert f"unrecognized arguments: --output-tree huffman; {lost_trees}" in said
    assert f"the checkpoint was trained with `tree`: {lost_trees}" in said
    assert "the checkpoint was trained with `experts`: it is of the system experts, which was deleted: put" in said
    assert f"(choose from 'gru', 'lstm', 'rnn'); it is of the system variable_computation, {advice}" in said
    assert "found --source-characters cnn; it is of the system characters, which was deleted: put the folder" in said
    assert f"the prior has a part 'markov_field'; it is of the system markov_field, {advice}" in said
    for folder in ("tests", "scripts", "examples"):
        shutil.copytree(root / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "systems", "runs"))
    shutil.copy(root / "pyproject.toml", copy)
    run_script(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{part}" for part in CORE), cwd=copy
    )
