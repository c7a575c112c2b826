"""Names are known to fairseq before their modules are imported, and mean the same before and after."""

from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell

RunPython = Callable[[str], str]
PARSE = """
import sys
from fairseq import options
arguments = ["data", "--user-dir", "fairseq_llrnn", "--task", "llrnn_translation", "--criterion", "log_linear"]
"""
LISTED = """
import importlib, pkgutil
import fairseq_llrnn
fairseq_llrnn.register()
from fairseq_llrnn.plugin.announced import REGISTRIES, load_all

names = lambda: {how.__name__: set().union(*registries) for how, registries in REGISTRIES.items()}
known = names()
load_all()
for module in pkgutil.walk_packages(fairseq_llrnn.__path__, "fairseq_llrnn."):
    if ".plugin" in module.name:  # no other can register a name (tests/test_imports.py)
        importlib.import_module(module.name)
print({how: after - known[how] for how, after in names().items() if after != known[how]})
"""
OPTIMIZER = """
from dataclasses import dataclass
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq_llrnn.plugin.announced import registered

@dataclass
class SlowConfig(FairseqDataclass):
    slowness: int = 3

@registered(register_optimizer, "slow", dataclass=SlowConfig)
class Slow(FairseqOptimizer):
    pass
"""


@pytest.fixture
def python(beside_fairseq: Shell) -> RunPython:
    """Run a program, and return the last line of its output."""
    return lambda program: beside_fairseq.run("python", "-c", program).out.strip().splitlines()[-1]


def test_every_name_is_announced(python: RunPython) -> None:
    """Importing all modules adds no name; and each announced module registers what it should (load_all)."""
    assert python(LISTED) == "{}"


def test_only_what_is_chosen_is_imported(python: RunPython) -> None:
    program = f"""{PARSE}
parsed = options.parse_args_and_arch(options.get_training_parser(), [*arguments, "--arch", "llrnn_transformer_iwslt"])
print(*(name.split(".")[-1] for name in sys.modules if name.startswith("fairseq_llrnn.plugin.models.llrnn_")))"""
    assert python(program).split() == ["llrnn_transformer"]


def test_options_of_a_namespace_are_read_before_anything_is_imported(beside_fairseq: Shell, tmp_path: Path) -> None:
    """As fairseq reads those of an old checkpoint: it asks registries for dataclasses and never for a parser."""
    (tmp_path / "slow_optimizer.py").write_text(OPTIMIZER, encoding="utf-8")
    program = """
import sys
from argparse import Namespace
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.optim import register_optimizer
import fairseq_llrnn
from fairseq_llrnn.plugin.announced import announce
fairseq_llrnn.register()
announce(register_optimizer, "slow_optimizer", "slow")
assert "slow_optimizer" not in sys.modules
cfg = convert_namespace_to_omegaconf(Namespace(
    task="llrnn_translation", arch="llrnn_lstm", criterion="log_linear", optimizer="slow", data="d", tie_features=True,
))
print(cfg.task._name, cfg.task.data, cfg.model._name, cfg.model.tie_features)
print(cfg.criterion._name, cfg.optimizer._name, cfg.optimizer.slowness)"""
    done = beside_fairseq.run("python", "-c", program, variables={"PYTHONPATH": str(tmp_path)})
    assert done.out.strip().splitlines()[-2:] == ["llrnn_translation d llrnn_lstm True", "log_linear slow 3"]


def test_a_process_that_another_one_starts_gets_options_without_a_command_line(python: RunPython) -> None:
    """fairseq starts one for each GPU, and adds the defaults of dataclasses to options that were parsed elsewhere."""
    program = """
from fairseq.dataclass.initialize import add_defaults
from omegaconf import OmegaConf
import fairseq_llrnn
fairseq_llrnn.register()
names = {"task": "llrnn_translation", "model": "llrnn_lm", "criterion": "log_linear", "optimizer": "adam"}
cfg = OmegaConf.create({part: {"_name": name} for part, name in names.items()})
add_defaults(cfg)
print(cfg.task.max_slots, cfg.model.cell, cfg.criterion.adaptor_norm, cfg.optimizer.adam_eps)"""
    assert python(program) == "16 lstm 2.0 1e-08"
