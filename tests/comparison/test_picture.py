"""The picture of a comparison is SVG whose circles are at the figures of the rows."""

import math
from xml.etree import ElementTree

import pytest

from fairseq_llrnn.comparison.bootstrap import Difference
from fairseq_llrnn.comparison.picture import as_svg, ticks
from fairseq_llrnn.comparison.rows import Row

SVG = "{http://www.w3.org/2000/svg}"
ROWS = (
    Row("softmax", "softmax", test=2.4, seen=9.0, unseen=30.0, difference=Difference(0.2, 0.1, 0.35, 0.01)),
    Row("pieces", "pieces <&>", failure="no library"),
    Row("pretrained-a", 'A & "b"', test=2.3, seen=8.0, unseen=math.nan, difference=Difference(0.1, -0.1, 0.2, 0.4)),
    Row("suffixes", "ours, suffixes", test=2.2, seen=8.5, unseen=29.0, is_reference=True),
)


def test_circles_and_lines_are_at_the_figures() -> None:
    tree = ElementTree.fromstring(as_svg(ROWS))
    circles = [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in tree.iter(f"{SVG}circle")]
    first, seen, unseen = circles[:3], circles[3:6], circles[6:]
    assert len(unseen) == 2  # a missing figure has no circle
    assert [y for _, y in first] == [y for _, y in seen] == sorted(y for _, y in first)
    (a, b, c), (d, e, f) = [x for x, _ in first], [x for x, _ in seen]
    assert a - b == pytest.approx(b - c, abs=0.2) and a > b > c and d > f > e
    bars = [each.attrib["d"] for each in tree.iter(f"{SVG}path") if each.get("stroke-width")]
    ends = [(float(bar[1:].split()[0]), float(bar.rpartition("H")[2])) for bar in bars]
    scale = (a - c) / 0.2  # of one bit per character
    expected = [c + scale * bits for bits in (0.1, 0.35, -0.1, 0.2)]
    assert [x for pair in ends for x in pair] == pytest.approx(expected, abs=0.3)
    texts = [each.text for each in tree.iter(f"{SVG}text")]
    assert texts[:3] == ["softmax", 'A & "b"', "ours, suffixes"] and "bits per unseen word" in texts
    width = float(tree.attrib["width"])
    assert all(0 < float(each.attrib["x"]) < width for each in tree.iter(f"{SVG}text"))


@pytest.mark.parametrize(("low", "high"), [(2.25, 2.51), (0.001, 0.0011), (8.0, 8.0), (7, 31000)])
def test_ticks_enclose_the_numbers(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert marks[0] <= low + 1e-9 and marks[-1] >= high - 1e-9 and len(marks) <= 7
    assert ticks(2.25, 2.51) == pytest.approx([2.2, 2.3, 2.4, 2.5, 2.6])


def test_without_figures() -> None:
    for rows in ((), ROWS[1:2]):
        assert ElementTree.fromstring(as_svg(rows)).tag == f"{SVG}svg"
