"""Names of tasks, models and architectures: those in fairseq's registries, and those in the options of a checkpoint.

    announce("their.package.task")          in a light plugin/__init__.py of a system

The modules of MODULES register tasks, models, criteria and optimizers by fairseq's decorators. `fairseq_llrnn.register`
imports them when all plugins are imported: then all options of extensions are known (plugin/models/extensions.py).
"""

from __future__ import annotations

from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from omegaconf import OmegaConf

MODULES: list[str] = []


def announce(*modules: str) -> None:
    """Let `fairseq_llrnn.register` import these modules."""
    MODULES.extend(modules)


def name_of(cfg: Any, part: str) -> str:
    """The name of the "model" or the "task" in a checkpoint's options; `None` where they lack one."""
    return name_in(cfg.get(part) if hasattr(cfg, "get") else None)


def name_in(options: Any) -> str:
    """Of the model or the task that has these options; `None` for what holds none by name."""
    if OmegaConf.is_list(options) or isinstance(options, list):
        return str(None)
    get = getattr(options, "get", lambda name: getattr(options, name, None))
    return str(get("_name") or get("arch") or get("task"))


def find_task(name: str) -> type | None:
    """The class of a task; None: there is none of that name."""
    return TASK_REGISTRY.get(name)


def name_of_task(task: object) -> str:
    """What --task calls it; the name of its class where it is not registered."""
    return next((name for name, kind in TASK_REGISTRY.items() if kind is type(task)), type(task).__name__)


def find_model(name: str) -> type | None:
    """Likewise of a model, or of an architecture."""
    return MODEL_REGISTRY.get(name) or ARCH_MODEL_REGISTRY.get(name)
