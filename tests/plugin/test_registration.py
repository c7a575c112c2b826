"""Wherever the package lies and whatever was imported first, the host finds the task, the model and the criterion.

test_checkpoint_safety.py starts a process of its own in a checkout, with `--user-dir fairseq_llrnn`.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from host_commands import ROOT, HostCommands, run_script, script
from tiny_world import World

CORE_WORK = """
import importlib, sys
from pathlib import Path

try:
    importlib.import_module("fairseq")
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("fairseq is here, the test proves nothing")
import fairseq_llrnn
package = Path(fairseq_llrnn.__path__[0])
for file in sorted((package / "core").rglob("*.py")):
    importlib.import_module(".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"))
assert not [name for name in sys.modules if name.split(".")[0] in ("fairseq", "fairseq_cli")]

import torch
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.networks.recurrent import RecurrentNetwork
from fairseq_llrnn.prior.prior import load_prior

prior = load_prior(sys.argv[1])
class_of = torch.from_numpy(prior.output.class_of)
embed = FeatureEmbedding(prior.input.features, torch.from_numpy(prior.input.class_of), 8)
network, output = RecurrentNetwork(8, 8, 1), LogLinearOutput(prior.output.features, class_of, 8)
background = prior.background()
previous, targets = torch.tensor([[2, 5, 6]]), torch.tensor([[5, 6, 2]])
hidden = network(embed(previous))[0].flatten(0, 1)
mass, share = background.log_mass_along(previous).flatten(0, 1), background.log_share_along(previous, targets)
loss = -output.target_log_prob(hidden, targets.flatten(), mass, share.flatten()).sum()
loss.backward()
print("loss", loss.item())
"""


def train(world: World, *user_dir: object) -> list[str]:
    arguments = world.train_args()
    where = arguments.index("--user-dir")
    return [*arguments[:where], *map(str, user_dir), *arguments[where + 2 :], "--max-update", "2"]


def test_user_dir_of_an_installed_package(world: World, tmp_path: Path) -> None:
    """A copy elsewhere; `llrnn user-dir` says where, and the host imports that one."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "fairseq_llrnn", site / "fairseq_llrnn", ignore=shutil.ignore_patterns("__pycache__"))
    with (site / "fairseq_llrnn/plugin/__init__.py").open("a", encoding="utf-8") as file:
        file.write('print("this copy")\n')
    said = run_script(script("llrnn"), "user-dir", cwd=tmp_path, variables={"PYTHONPATH": str(site)}).out.strip()
    assert said == str(site / "fairseq_llrnn")
    # without the path: the host alone has to find it
    result = run_script(script("fairseq-train"), *train(world, "--user-dir", said), cwd=tmp_path)
    assert "this copy" in result.out
    assert len(result.json_lines("train")) == 1


def test_imported_before(host: HostCommands, world: World) -> None:
    """The server of host commands imports the package, and that the host; --user-dir names it again, or is absent."""
    again = host.run("fairseq-train", *train(world, "--user-dir", ROOT / "fairseq_llrnn"))
    assert "has already been imported" in again.out
    without = host.run("fairseq-train", *train(world))
    assert len(again.json_lines("train")) == len(without.json_lines("train")) == 1


def test_core_works_where_fairseq_is_not_installed(world: World, tmp_path: Path) -> None:
    """All of this Python's packages but the host, and the checkout."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "fairseq" not in entry.name and entry.suffix != ".pth":
            os.symlink(entry, packages / entry.name)
    os.symlink(ROOT / "fairseq_llrnn", packages / "fairseq_llrnn")
    program = tmp_path / "program.py"
    program.write_text(CORE_WORK, encoding="utf-8")
    path = {"PYTHONPATH": str(packages)}
    result = run_script(sys.executable, "-S", program, world.prior("prior"), cwd=tmp_path, variables=path)
    assert result.out.startswith("loss ")
