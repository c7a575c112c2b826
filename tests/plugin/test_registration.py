"""Wherever the package lies and whatever was imported first, fairseq finds the task, the model and the criterion.

test_checkpoint_safety.py starts a process of its own in a checkout, with `--user-dir fairseq_llrnn`.
"""

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import ROOT, Shell, run_script, script
from tiny_world import World

import fairseq_llrnn
from fairseq_llrnn.errors import OptionError

WITHOUT_FAIRSEQ = "sys.modules['fairseq'] = None"  # as Python has it for what cannot be imported
ABSENT = (
    "this needs fairseq, which is not installed; in a checkout of fairseq_llrnn: pip install "
    "--no-build-isolation '.[fairseq]'"
)
CORE_WORK = """
import importlib, sys
from pathlib import Path

sys.path.remove(sys.argv[2])
try:
    importlib.import_module("fairseq")
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("fairseq is here, the test proves nothing")
import fairseq_llrnn
package = Path(fairseq_llrnn.__path__[0])
ours = [name for name in package.iterdir() if name.is_dir() and name.name not in ("plugin", "tasks", "cli", "systems")]
for file in sorted(file for folder in ours for file in folder.rglob("*.py")):
    importlib.import_module(".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"))
assert not [name for name in sys.modules if name.split(".")[0] in ("fairseq", "fairseq_cli")]

import torch
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.normalisers import ExactRows
from fairseq_llrnn.output.normalisers import LogLinearOutput
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.prior.prior import Prior

prior = Prior.load(sys.argv[1])
class_of = torch.from_numpy(prior.output.class_of)
embed = FeatureEmbedding(prior.input.features, torch.from_numpy(prior.input.class_of), 8)
network, output = RecurrentNetwork(8, 8, 1), LogLinearOutput(prior.output.features, class_of, 8)
background = prior.background().bind()
previous, targets = torch.tensor([[2, 5, 6]]), torch.tensor([[5, 6, 2]])
hidden = network(embed(previous))[0].flatten(0, 1)
states, masses = background.teacher_forced(previous)
share = background.log_share(states, targets.flatten())
loss = -ExactRows(output).log_prob(hidden, class_of[targets.flatten()], masses, share).sum()
loss.backward()
print("loss", loss.item())
"""


def train(world: World, *user_dir: object) -> list[str]:
    arguments = world.train_args()
    where = arguments.index("--user-dir")
    return [*arguments[:where], *map(str, user_dir), *arguments[where + 2 :], "--max-update", "2"]


def test_fairseq_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match="this needs fairseq, which is not installed; "):
        fairseq_llrnn.register()


@pytest.fixture(scope="module")
def without_fairseq() -> Iterator[Shell]:
    """Runs programs in processes that have imported neither fairseq nor this package, but what both import."""
    commands = Shell("torch._dynamo", "hydra", "pydantic", "sacrebleu")
    yield commands
    commands.close()


def test_user_dir_of_an_installed_package(beside_fairseq: Shell, world: World, tmp_path: Path) -> None:
    """A copy elsewhere; `llrnn user-dir` says where, and fairseq imports that one."""
    site = tmp_path / "site"
    copy_package(site)
    said = run_script(script("llrnn"), "user-dir", cwd=tmp_path, variables={"PYTHONPATH": str(site)}).out.strip()
    assert said == str(site / "fairseq_llrnn")
    # without the path: fairseq alone has to find it
    result = beside_fairseq.run("fairseq-train", *train(world, "--user-dir", said), cwd=tmp_path)
    assert "this copy" in result.out
    assert len(result.json_lines("train")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("imported_before", [False, True])
def test_user_dir_by_name_beside_an_installed_fairseq(
    imported_before: bool, without_fairseq: Shell, world: World, tmp_path: Path
) -> None:
    """`--user-dir fairseq_llrnn` in a folder that has none: fairseq looks beside itself, and says `fairseq/..`."""
    site = tmp_path / "site"
    copy_package(site)
    installed = Path(sysconfig.get_paths()["purelib"])
    for name in ("fairseq", "fairseq_cli"):
        shutil.copytree(installed / name, site / name, ignore=shutil.ignore_patterns("examples"))
    program = program_of("import fairseq_llrnn" if imported_before else "")
    arguments = train(world, "--user-dir", "fairseq_llrnn")
    path = {"PYTHONPATH": str(site)}
    result = without_fairseq.run("python", "-c", program, *arguments, cwd=tmp_path, variables=path)
    assert "this copy" in result.out
    assert len(result.json_lines("train")) == 1


@pytest.mark.parametrize(
    ("user_dir", "imported_before"), [(str(ROOT / "fairseq_llrnn"), False), ("fairseq_llrnn", True)]
)
def test_user_dir_in_a_checkout(user_dir: str, imported_before: bool, beside_fairseq: Shell, world: World) -> None:
    """Also where the package was imported before: fairseq then asks only whether it has that folder."""
    program = program_of("import fairseq_llrnn" if imported_before else "")
    result = beside_fairseq.run("python", "-c", program, *train(world, "--user-dir", user_dir))
    assert ("has already been imported" in result.out + result.err) == imported_before
    assert len(result.json_lines("train")) == 1


def test_register_does_the_same_for_users_of_python(beside_fairseq: Shell, world: World) -> None:
    """As often as one likes."""
    before = "import fairseq_llrnn; fairseq_llrnn.register(); fairseq_llrnn.register()"
    result = beside_fairseq.run("python", "-c", program_of(before), *train(world))
    assert "done training" in result.out + result.err  # who imports fairseq first decides where it logs


def test_commands_say_what_to_install_where_fairseq_is_absent(beside_fairseq: Shell) -> None:
    program = program_of(WITHOUT_FAIRSEQ, "fairseq_llrnn.cli.main")
    for arguments in (["explain", "--path", "x.pt", "le chat"], ["score", "--path", str(ROOT / "README.md")]):
        result = beside_fairseq.run("python", "-c", program, *arguments, code=2)
        assert result.err == f"llrnn: error: {ABSENT}\n"


def copy_package(site: Path) -> None:
    """A copy of the package in the folder `site`, whose plugin says so."""
    shutil.copytree(ROOT / "fairseq_llrnn", site / "fairseq_llrnn")  # with what Python has compiled
    with (site / "fairseq_llrnn/plugin/__init__.py").open("a", encoding="utf-8") as file:
        file.write('print("this copy")\n')


def program_of(before: str, module: str = "fairseq_cli.train") -> str:
    """Runs a command's module after the lines `before`."""
    return f"import sys\n{before}\nimport runpy\nrunpy.run_module({module!r}, run_name='__main__', alter_sys=True)"


@pytest.mark.slow
def test_core_works_where_fairseq_is_not_installed(without_fairseq: Shell, world: World, tmp_path: Path) -> None:
    """All of this Python's packages but fairseq, and the checkout."""
    packages, installed = tmp_path / "packages", Path(sysconfig.get_paths()["purelib"])
    packages.mkdir()
    for entry in installed.iterdir():
        if "fairseq" not in entry.name and entry.suffix != ".pth":
            os.symlink(entry, packages / entry.name)
    os.symlink(ROOT / "fairseq_llrnn", packages / "fairseq_llrnn")
    arguments, path = (CORE_WORK, world.prior("prior"), installed), {"PYTHONPATH": str(packages)}
    result = without_fairseq.run("python", "-c", *arguments, cwd=tmp_path, variables=path)
    assert result.out.startswith("loss ")
