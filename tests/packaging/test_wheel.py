"""The wheel: what is in it, and that it works where it is installed, with fairseq and without, outside the checkout."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from guide_pages import read_page, reader_folder
from new_environment import Environment
from shell import run_script
from tiny_world import World

import fairseq_llrnn

PARTS = ("fairseq_llrnn", "tests", "examples", "scripts", "docs", "pyproject.toml", "setup.py", "README.md", "LICENSE",
         "MANIFEST.in", "constraints.txt", "CHANGELOG.md")  # fmt: skip
IMPORT_ALL = """
import importlib.util, importlib, pkgutil, sys
import fairseq_llrnn
for absent in ("fairseq", "sacrebleu", "transformers", "matplotlib"):
    assert importlib.util.find_spec(absent) is None, absent
prefix = "fairseq_llrnn."
for module in pkgutil.walk_packages(fairseq_llrnn.__path__, prefix, onerror=lambda name: None):
    if module.name.split(".")[1] not in ("plugin", "tasks", "systems", "huggingface"):  # of extras
        importlib.import_module(module.name)
print(fairseq_llrnn.__file__)
"""

SAVE = """
from transformers import GPT2Config
from fairseq_llrnn.huggingface import LogLinearForCausalLM
from fairseq_llrnn.prior import Recipe, build_prior

prior = build_prior(["<s>", "<pad>", "</s>", "<unk>", "le", "chat"], Recipe(top_words="all"))
LogLinearForCausalLM.from_config(GPT2Config(n_embd=8, n_layer=1, n_head=1), prior).save_pretrained("model")
"""


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the checkout, where torch cannot be imported."""
    place = tmp_path_factory.mktemp("source")
    for part in PARTS:
        if (root / part).is_dir():
            shutil.copytree(root / part, place / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(root / part, place)
    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / "torch.py").write_text("raise ImportError('the build of the wheel imports torch')\n")
    out = tmp_path_factory.mktemp("wheel")
    run_script(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
        "--wheel-dir", out, place, cwd=place, variables={"PYTHONPATH": str(blocked)},
    )  # fmt: skip
    (found,) = out.iterdir()
    return found


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment without extras."""
    return Environment(tmp_path_factory.mktemp("plain"), wheel)


def test_it_holds_the_package_and_nothing_else(wheel: Path, root: Path) -> None:
    with ZipFile(wheel) as file:
        names = set(file.namelist())
    modules = {str(path.relative_to(root)) for path in (root / "fairseq_llrnn").rglob("*.py")}
    styles = {str(path.relative_to(root)) for path in (root / "fairseq_llrnn").rglob("*.css")}
    assert modules | styles | {"fairseq_llrnn/py.typed"} <= names
    others = {name for name in names if not name.startswith("fairseq_llrnn/")}
    assert {name.partition("/")[0] for name in others} == {f"fairseq_llrnn-{fairseq_llrnn.__version__}.dist-info"}


@pytest.mark.slow
def test_all_but_the_integration_layer_imports_without_extras(plain: Environment, tmp_path: Path) -> None:
    (tmp_path / "import_all.py").write_text(IMPORT_ALL)
    imported = plain.run("python import_all.py", cwd=tmp_path).out.strip()
    assert Path(imported).is_relative_to(plain.packages)
    assert plain.run("llrnn --version", cwd=tmp_path).out.split()[-1] == fairseq_llrnn.__version__
    assert "llrnn prior" in plain.run("llrnn --help", cwd=tmp_path).out


@pytest.mark.slow
def test_the_python_guide_without_fairseq(plain: Environment, root: Path, tmp_path: Path) -> None:
    """Its first two blocks, a prior and a training; tests/test_guides.py runs all, with what this environment lacks."""
    page = read_page(root / "docs" / "guides" / "python.md")
    place = tmp_path / "work"
    place.mkdir()
    reader_folder(place, tmp_path)
    (place / "guide.py").write_text("\n".join(block for _, block in page.blocks[:2]))
    assert "loss of the last batch: " in plain.run("python guide.py", cwd=place).out


@pytest.mark.slow
def test_the_python_of_the_readme_without_fairseq(plain: Environment, root: Path, tmp_path: Path) -> None:
    blocks = [text for language, text in read_page(root / "README.md").blocks if language == "python"]
    assert blocks
    for block in blocks:
        (tmp_path / "readme.py").write_text(block)
        plain.run("python readme.py", cwd=tmp_path)


@pytest.mark.slow
def test_a_model_of_transformers_without_fairseq(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "with-transformers", wheel, ["hf"])
    (tmp_path / "save.py").write_text(SAVE)
    environment.run("python save.py && echo 'le chat' | llrnn score --path model > table", cwd=tmp_path)
    assert "bits per word" in (tmp_path / "table").read_text()


@pytest.mark.slow
def test_fairseq_takes_it_as_its_user_folder(wheel: Path, world: World, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "with-fairseq", wheel, ["fairseq"])
    arguments = world.train_args()
    where = arguments.index("--user-dir")
    del arguments[where : where + 2]
    training = f'fairseq-train --user-dir "$folder" {" ".join(arguments)} --max-update 2'
    line = f'folder=$(llrnn user-dir); {training}; echo "$folder"'
    done = environment.run(line, cwd=tmp_path)
    assert [log["train_num_updates"] for log in done.json_lines("train")] == [2]
    assert Path(done.out.splitlines()[-1]).is_relative_to(environment.packages)
