"""The names of tasks, models and criteria are known to fairseq once the plugin is imported."""

from collections.abc import Callable

import pytest
from shell import Shell

RunPython = Callable[[str], str]
LISTED = """
import importlib
from pathlib import Path
import fairseq_llrnn
fairseq_llrnn.register()
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.tasks import TASK_REGISTRY

names = lambda: {*TASK_REGISTRY, *MODEL_REGISTRY, *ARCH_MODEL_REGISTRY, *CRITERION_REGISTRY, *OPTIMIZER_REGISTRY}
known = names()
root = Path(fairseq_llrnn.__file__).parents[1]
for path in sorted(root.glob("fairseq_llrnn/**/plugin/**/*.py")):  # others register no name (tests/test_imports.py)
    importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
print(names() - known)
"""


@pytest.fixture
def python(beside_fairseq: Shell) -> RunPython:
    """Run a program, and return the last line of its output."""
    return lambda program: beside_fairseq.run("python", "-c", program).out.strip().splitlines()[-1]


def test_every_module_that_registers_a_name_is_imported(python: RunPython) -> None:
    assert python(LISTED) == "set()"


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
