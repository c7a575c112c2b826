"""P@1, P@5 and R@5 by hand."""

import pytest

from fairseq_llrnn.systems.classification.label_hits import LabelHits


def test_by_hand() -> None:
    hits = LabelHits()
    hits.add(["a", "b", "c", "d", "e", "f"], {"a", "e", "f"})  # f is the sixth
    hits.add(["a", "b"], {"c"}, unseen=1)
    hits.add([], {"a"})
    assert (hits.texts, hits.labels, hits.unseen) == (3, 6, 1)
    assert hits.p_at_1 == pytest.approx(100 / 3)
    assert hits.p_at_5 == pytest.approx(100 * 2 / 15)
    assert hits.r_at_5 == pytest.approx(100 * 2 / 6)
    assert LabelHits().facts()["p_at_1"] == 0.0
