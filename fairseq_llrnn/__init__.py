"""Log-linear RNNs for fairseq (Dymetman & Xiao 2016)."""

import importlib.util
import sys
from pathlib import Path

__version__ = "0.1.0"

# Whoever imports this package beside fairseq, in whatever order, can use its task, models and criterion: fairseq's
# --user-dir does nothing more for a package that was imported before. Our own command registers only where it needs to.
if Path(sys.argv[0]).stem != "llrnn" and importlib.util.find_spec("fairseq") is not None:
    import fairseq_llrnn.plugin  # noqa: F401
