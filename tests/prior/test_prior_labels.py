"""Priors of labels: </s>, <unk> and padding entries of the dictionary have probability zero."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, OpenOptions, Recipe

LABELS = ("sports", "politics", "arts", "madeupword0000")
SYMBOLS = (*SPECIALS, *LABELS)
COUNTS = np.array([0, 0, 0, 0, 5, 3, 2, 0])


@pytest.mark.parametrize("options", [{}, {"background": "uniform"}, {"suffixes": 1, "top_words": 1}])
def test_only_labels_have_mass(options: dict[str, object], tmp_path: Path) -> None:
    given = {"top_words": "all", "counts": COUNTS, **options}
    prior = build_prior(SYMBOLS, Recipe(labels=True, **given))  # type: ignore[arg-type]
    expected = np.zeros(8)
    expected[4:7] = [1 / 3] * 3 if "background" in options else [0.5, 0.3, 0.2]
    np.testing.assert_allclose(np.exp(prior.log_weights), expected)
    prior.save(tmp_path / "prior")
    prior = Prior.load(tmp_path / "prior")
    assert prior.settings["labels"] is True
    head = LogLinearHead(prior, 4).double()
    torch.nn.init.normal_(head.output.weight)
    log_p = head.log_probs(torch.randn(2, 1, 4).double())
    assert log_p[..., [0, 1, 2, 3, 7]].isneginf().all()
    torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(2, 1).double())
    best, labels = head.top_k(torch.zeros(1, 4).double(), head.start(1), 3)
    assert sorted(labels[0].tolist()) == [4, 5, 6] and best.isfinite().all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"open_vocabulary": OpenOptions()}, "--open-vocabulary"),
        ({"evidence": EvidenceOptions(("numbers",))}, "--evidence"),
        ({"pieces": "bpe"}, "--pieces"),
        ({"background": "unigram plus cache:3"}, "since a label has none"),
    ],
)
def test_what_is_of_texts_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        build_prior(SYMBOLS, Recipe(labels=True, counts=COUNTS, **options))  # type: ignore[arg-type]
