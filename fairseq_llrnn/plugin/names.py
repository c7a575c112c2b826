"""Names of tasks, models and architectures, in fairseq's registries and in the options of a checkpoint.

    announce("their.package.task")          in the plugin/__init__.py of a system, which imports little

The modules in MODULES register tasks, models, criteria and optimizers with fairseq's decorators.
`fairseq_llrnn.register` imports them after all plugins, when all options of extensions are known
(plugin/models/extensions.py).
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
    """Return the name of a part in a checkpoint's options, such as "model", or "None" if they lack one."""
    return name_in(cfg.get(part) if hasattr(cfg, "get") else None)


def name_in(options: Any) -> str:
    """Return the name in the options of a part, such as the model, or "None" if they have no name."""
    if OmegaConf.is_list(options) or isinstance(options, list):
        return str(None)
    get = getattr(options, "get", lambda name: getattr(options, name, None))
    return str(get("_name") or get("arch") or get("task"))


def find_task(name: str) -> type | None:
    """Return the class of a task, or None if there is none of that name."""
    return TASK_REGISTRY.get(name)


def name_of_task(task: object) -> str:
    """Return the value of --task for a task, or the name of its class if it is not registered."""
    return next((name for name, kind in TASK_REGISTRY.items() if kind is type(task)), type(task).__name__)


def find_model(name: str) -> type | None:
    """Return the class of a model or an architecture, or None if there is none of that name."""
    return MODEL_REGISTRY.get(name) or ARCH_MODEL_REGISTRY.get(name)
