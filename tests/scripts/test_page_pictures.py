"""Pictures of pages are those that scripts/page_pictures.py draws."""

import math
from pathlib import Path
from xml.etree import ElementTree

import pytest


@pytest.fixture
def pictures(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(root / "scripts")
    import page_pictures

    return page_pictures


def test_the_pictures_are_drawn(pictures, root: Path) -> None:
    for name, draw in pictures.PICTURES.items():
        path = root / "docs" / name
        assert path.read_text(encoding="utf-8") == draw(), f"{name}: run python scripts/page_pictures.py"
        ElementTree.fromstring(draw())


def test_the_steps_of_the_beam_sum_to_one(pictures) -> None:
    for hypotheses in pictures.searched():
        for before in {each.words[:-1] for each in hypotheses}:
            assert math.isclose(sum(each.prob for each in hypotheses if each.words[:-1] == before), 1.0, rel_tol=1e-6)
        assert [each.is_kept for each in hypotheses] == sorted((each.is_kept for each in hypotheses), reverse=True)
