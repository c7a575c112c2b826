"""Values that are computed once, also in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """As in functools, without the lock that it has before Python 3.12: torch.compile does not read it."""

        def __init__(self, func: Callable[[Any], Any]) -> None:
            self.func, self.__doc__ = func, func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = self.func(instance)
            instance.__dict__[self.name] = value  # setattr would register a module
            return value
