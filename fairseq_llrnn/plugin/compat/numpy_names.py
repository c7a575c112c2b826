"""Give fairseq 0.12 the names that numpy has removed: np.float (numpy 1.24) and np.compat (numpy 2).

fairseq needs np.compat for all texts (token_block_dataset.py). numpy 1 has no wheels for Python 3.13. Only
these modules of fairseq get the names. numpy itself is unchanged.
"""

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy
from fairseq.data import language_pair_dataset, token_block_dataset
from fairseq.modules import dynamic_crf_layer

REMOVED = {"compat": SimpleNamespace(long=int), "float": float}


class _Numpy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return REMOVED[name] if name in REMOVED else getattr(numpy, name)


def provide_removed_names() -> None:
    """Replace numpy in the modules of fairseq that use removed names."""
    for module in (language_pair_dataset, token_block_dataset, dynamic_crf_layer):
        module.np = _Numpy("numpy")
