"""Which cases of a system's tests need another system, whose folder was deleted (fairseq_llrnn/systems)."""

from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY

import fairseq_llrnn

fairseq_llrnn.register()


def available(cases: dict[str, Any]) -> list[str]:
    """The names of cases that can be run."""
    return [name for name, case in cases.items() if is_there(case)]


def is_there(case: Any) -> bool:
    """Whether all architectures that a case names are known. A case: a string, or a list or tuple of cases."""
    if isinstance(case, list | tuple):
        return all(map(is_there, case))
    return not (isinstance(case, str) and case.startswith("llrnn_")) or case in ARCH_MODEL_REGISTRY
