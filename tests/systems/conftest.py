"""What the tests of systems share."""

from pathlib import Path

import pytest
from llrnn_command import checkpoint as checkpoint
from llrnn_command import llrnn as llrnn
from small_corpus import Corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.make(tmp_path)
