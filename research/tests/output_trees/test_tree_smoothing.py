"""Labels that are smoothed over a tree and a background that learns: the loss is that of the definition."""

from pathlib import Path

import pytest
from smoothing_oracle import E, H, check_smoothing, prior_of

from fairseq_llrnn.head import LogLinearHead
from llrnn_research.output_trees.output_tree import OutputTree, TreeOptions


@pytest.mark.parametrize(
    ("background", "evidence", "is_open"),
    [
        ("cache(2, weight=0.3, learned)", (), True),
        ("0.7 (ngram(2, folds=2)) plus 0.3 (cache(3, weight=0.6)) with weights per position", (), False),
        ("translations", ("numbers", "translations"), False),
    ],
)
def test_the_smoothed_loss_over_a_tree(
    background: str, evidence: tuple[str, ...], is_open: bool, tmp_path: Path
) -> None:
    prior = prior_of(tmp_path, background, evidence, is_open, 3)
    head = LogLinearHead(
        prior, H, normaliser=OutputTree(TreeOptions("random", arity=2)), source_size=E if evidence else None
    )
    check_smoothing(head, False, bool(evidence), 1)
