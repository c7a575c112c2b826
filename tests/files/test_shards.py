"""Shards cover everything once; each mistake with their files is one message."""

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.shards import Part, Shard, in_order


@pytest.mark.parametrize("of", [1, 2, 7])
def test_every_piece_is_in_one_shard(of: int) -> None:
    shards = [Shard.parse(f"{number}/{of}") for number in range(1, of + 1)]
    assert [sum(shard.has(piece) for shard in shards) for piece in range(30)] == [1] * 30
    assert [str(shard) for shard in shards][-1] == f"{of}/{of}"


@pytest.mark.parametrize("text", ["3", "0/4", "5/4", "1/0", "a/b", "1/4 ", "-1/4", "1/99999"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected I/N, shard I of N, I from 1 to N \(such as 3/16\), found '"):
        Shard.parse(text)


def part(shard: str, path: str = "", text: str = "1a") -> Part:
    return Part(path or f"part{shard[0]}", Shard.parse(shard), {"text": text})


def test_parts_come_in_order() -> None:
    assert [p.path for p in in_order([part("3/3"), part("1/3"), part("2/3")])] == ["part1", "part2", "part3"]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (
            [part("1/3"), part("3/3")],
            "expected all 3 shards, found 2; missing: 2/3; run those, too, and give all files",
        ),
        (
            [part("1/2"), part("2/2"), part("1/2", "again")],
            "again: found shard 1/2 a second time, after part1; give each shard once",
        ),
        (
            [part("1/2"), part("2/3")],
            "part2: expected a shard of 2, as part1 is, found 2/3; merge the shards of one run",
        ),
        (
            [part("1/2"), part("2/2", text="2b")],
            "part2: expected the same inputs as of part1, found others (text); merge the shards of one run",
        ),
        (
            [part("1/12")],
            "expected all 12 shards, found 1; missing: 2/12, 3/12, 4/12, 5/12, 6/12, 7/12, 8/12, 9/12, 10/12, 11/12 "
            "and 1 more; run those, too, and give all files",
        ),
    ],
)
def test_parts_that_do_not_make_a_whole(parts: list[Part], says: str) -> None:
    with pytest.raises(DataError) as error:
        in_order(parts)
    assert str(error.value) == says
