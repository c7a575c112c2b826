"""Names that fairseq's options may have: the module behind a name is imported when the name is used, not before.

    announce(register_task, "their.package.task", "their_task")          in a module that imports nothing heavy

    @registered(register_task, "their_task", dataclass=TheirConfig)      in their/package/task.py
    class TheirTask(PluginTask): …

fairseq's registries are dictionaries, whose keys are the choices of --task, --arch, … and whose values are classes,
dataclasses of their options, and functions of named architectures. Until a name is used, its value is an object that
imports the module at the first question, and answers as what the module has registered.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY, register_criterion
from fairseq.models import (
    ARCH_CONFIG_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_DATACLASS_REGISTRY,
    MODEL_REGISTRY,
    register_model,
    register_model_architecture,
)
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY, OPTIMIZER_REGISTRY, register_optimizer
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY, register_task
from omegaconf import OmegaConf

Registry = dict[str, Any]
Decorator = Callable[..., Any]  # of fairseq: it takes a name, and returns the decorator of a class
Registered = TypeVar("Registered")
# What a model without a dataclass of options is called is the name of an architecture, as --arch has it.
REGISTRIES: dict[Decorator, tuple[Registry, ...]] = {
    register_task: (TASK_REGISTRY, TASK_DATACLASS_REGISTRY),
    register_model: (MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, ARCH_MODEL_REGISTRY, ARCH_CONFIG_REGISTRY),
    register_model_architecture: (ARCH_MODEL_REGISTRY, ARCH_CONFIG_REGISTRY),
    register_criterion: (CRITERION_REGISTRY, CRITERION_DATACLASS_REGISTRY),
    register_optimizer: (OPTIMIZER_REGISTRY, OPTIMIZER_DATACLASS_REGISTRY),
}


class Announced:
    """The value of a name in one of fairseq's registries, before its module is imported."""

    def __init__(self, registry: Registry, name: str, module: str) -> None:
        self._place = registry, name, module

    def _loaded(self) -> Any:
        """What the module registers. Raises RuntimeError: nothing under that name."""
        registry, name, module = self._place
        importlib.import_module(module)
        value = registry.get(name)
        if value is None or value is self:
            raise RuntimeError(f"{module} was announced to register {name!r}, and does not")
        return value._loaded() if type(value) is Announced else value  # an architecture of a model that is announced

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded(), name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._loaded()(*args, **options)

    def __deepcopy__(self, memo: object) -> Any:  # a copy of a class is the class
        return self._loaded()

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # so that it passes for a class where fairseq asks whether it is one
        return type(self._loaded())


def announce(how: Decorator, module: str, *names: str) -> None:
    """Let fairseq know that a module registers these names by its decorator `how`; known names stay what they are."""
    for registry in REGISTRIES[how]:
        for name in names:
            registry.setdefault(name, Announced(registry, name, module))


def registered(how: Decorator, *args: str, **options: Any) -> Callable[[Registered], Registered]:
    """fairseq's decorator `how` with its arguments; what was announced under that name (the last argument) goes."""
    for registry in REGISTRIES[how]:
        if type(registry.get(args[-1])) is Announced:
            del registry[args[-1]]
    return how(*args, **options)


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
    """The class of a task, imported; None: there is none of that name."""
    return _class_of(name, TASK_REGISTRY)


def name_of_task(task: object) -> str:
    """What --task calls it; the name of its class where it is not registered."""
    return next((name for name, kind in TASK_REGISTRY.items() if kind is type(task)), type(task).__name__)


def find_model(name: str) -> type | None:
    """Likewise of a model, or of an architecture."""
    return _class_of(name, MODEL_REGISTRY, ARCH_MODEL_REGISTRY)


def _class_of(name: str, *registries: Registry) -> type | None:
    value = next((registry[name] for registry in registries if name in registry), None)
    if type(value) is Announced:
        value = value._loaded()
    return value if isinstance(value, type) else None


def load_all() -> None:
    """Import every module that was announced, as who lists all options needs it."""
    for registry in chain(*REGISTRIES.values()):
        for value in list(registry.values()):
            if type(value) is Announced:
                value._loaded()
