"""Named architectures of llrnn_lstm are known before their model is imported."""

from shell import Shell

PROGRAM = """
import fairseq_llrnn
fairseq_llrnn.register()
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from argparse import Namespace
from fairseq_llrnn.plugin.names import find_model
args = Namespace()
ARCH_CONFIG_REGISTRY["llrnn_rnnsearch"](args)
print(ARCH_MODEL_REGISTRY["llrnn_seq2seq"].__name__, find_model("llrnn_rnnsearch").__name__, args.cell)
"""


def test_the_model_behind_a_preset_is_found(beside_fairseq: Shell) -> None:
    done = beside_fairseq.run("python", "-c", PROGRAM)
    assert done.out.splitlines()[-1:] == ["LLRNNLSTMModel LLRNNLSTMModel gru"], done.err
