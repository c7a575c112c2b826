"""Named architectures of llrnn_lstm are known before their model is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import fairseq_llrnn
fairseq_llrnn.register()
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from argparse import Namespace
from fairseq_llrnn.plugin.announced import find_model
args = Namespace()
ARCH_CONFIG_REGISTRY["llrnn_rnnsearch"](args)
print(ARCH_MODEL_REGISTRY["llrnn_seq2seq"].__name__, find_model("llrnn_rnnsearch").__name__, args.cell)
"""


def test_the_model_behind_a_preset_is_found(root: Path) -> None:
    pytest.importorskip("fairseq")
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["LLRNNLSTMModel LLRNNLSTMModel gru"], done.stderr
