"""`import fairseq_llrnn` changes nothing elsewhere; the public names come when they are used."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import fairseq_llrnn
from fairseq_llrnn.errors import OptionError

NOTHING_CHANGED = """
import builtins, importlib, logging, os, sys, warnings
sys.argv = ["fairseq-train", "--user-dir", "fairseq_llrnn", "--task", "llrnn_language_modeling"]

def state():
    return {
        "builtins": dict(vars(builtins)),
        "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook, tuple(sys.meta_path), tuple(sys.path_hooks)),
        "argv": list(sys.argv),
        "path": list(sys.path),
        "environment": dict(os.environ),
        "logging": (tuple(logging.root.handlers), logging.root.level, sorted(logging.root.manager.loggerDict)),
        "warnings": list(warnings.filters),
    }

before = state()
import fairseq_llrnn
assert state() == before
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"fairseq", "fairseq_cli", "torch", "numpy", "omegaconf"}, loaded
print(fairseq_llrnn.__version__, *dir(fairseq_llrnn))
from fairseq_llrnn import Prior
assert Prior.__module__ == "fairseq_llrnn.prior.prior"
assert fairseq_llrnn.Prior is Prior
assert "fairseq" not in sys.modules
assert (sys.excepthook, builtins.eval) == (before["hooks"][0], before["builtins"]["eval"])
"""


def test_it_imports_no_fairseq_and_replaces_nothing(root: Path) -> None:
    done = subprocess.run([sys.executable, "-c", NOTHING_CHANGED], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    version, *names = done.stdout.split()
    assert version == fairseq_llrnn.__version__
    assert {"LogLinearHead", "Prior", "register"} <= set(names)


def test_other_names_are_none_of_it() -> None:
    with pytest.raises(AttributeError, match="module 'fairseq_llrnn' has no attribute 'Piror'"):
        fairseq_llrnn.Piror  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Piror'"):
        from fairseq_llrnn import Piror  # noqa: F401


def test_register_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r"this needs fairseq.*not installed.*pip install .*'\.\[fairseq\]'"):
        fairseq_llrnn.register()


def test_its_folders_are_still_those_of_the_package() -> None:
    """__path__ answers fairseq's question, and is a list of one folder to everyone else."""
    folder = str(Path(fairseq_llrnn.__file__).parent)
    assert list(fairseq_llrnn.__path__) == [folder]
    assert folder in fairseq_llrnn.__path__
    assert f"{folder}/../fairseq_llrnn" in fairseq_llrnn.__path__
    assert str(Path(folder).parent) not in fairseq_llrnn.__path__
    assert 3 not in fairseq_llrnn.__path__
