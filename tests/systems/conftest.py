"""What the tests of systems share."""

from contextlib import suppress
from pathlib import Path

import pytest
from llrnn_command import checkpoint as checkpoint
from llrnn_command import llrnn as llrnn
from small_corpus import Corpus

with suppress(ImportError):  # without fairseq
    import fairseq_llrnn.plugin  # noqa: F401  registers all systems before a test imports the plugin of one


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.make(tmp_path)
