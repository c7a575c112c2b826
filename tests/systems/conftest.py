"""What the tests of systems share."""

from pathlib import Path

import pytest
from expert_models import expert_file as expert_file
from llrnn_command import checkpoint as checkpoint
from llrnn_command import llrnn as llrnn
from small_corpus import Corpus
from trained_models import evidence_models as evidence_models
from trained_models import trained as trained
from trained_models import trained_with_expert as trained_with_expert


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.make(tmp_path)
