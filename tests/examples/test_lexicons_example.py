"""examples/open_vocabulary/lexicons.sh: parts of treebanks, and the comparisons that it starts."""

import os
import subprocess
from pathlib import Path

from example_modules import EXAMPLES

FILES = ("German-GSD/de_gsd", "Finnish-TDT/fi_tdt", "Estonian-EDT/et_edt", "Greek-GDT/el_gdt")


def sentences(path: Path) -> list[int]:
    """Return the numbers of the sentences of a file."""
    parts = path.read_text().strip("\n").split("\n\n")
    return [int(part.splitlines()[0].removeprefix("# ")) for part in parts]


def test_parts_and_comparisons(tmp_path: Path) -> None:
    for name in FILES:
        for split in ("train", "dev", "test"):
            path = tmp_path / f"ud/UD_{name}-ud-{split}.conllu"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"# {number}\n1\ta\n2\tb\n\n" for number in range(1, 13)))
    (tmp_path / "llrnn").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    (tmp_path / "llrnn").chmod(0o755)
    command = ["bash", EXAMPLES / "open_vocabulary/lexicons.sh", "ud", "lexicons", "out", "--seeds", "1", "2"]
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(command, check=True, cwd=tmp_path, env={"PATH": path})

    def part(name: str, split: str) -> list[int]:
        return sentences(tmp_path / f"out/UD_{name}-ud-{split}.conllu")

    assert part(FILES[0], "train") == [*range(1, 13)]
    assert part(FILES[1], "dev") == [1, 3, 5, 7, 9, 11] and part(FILES[1], "test") == [2, 4, 6, 8, 10, 12]
    assert part(FILES[2], "dev") == [1, 7] and part(FILES[2], "test") == [4, 10]
    assert part(FILES[2], "train") == part(FILES[3], "test") == [1, 3, 5, 7, 9, 11]
    calls = (tmp_path / "calls").read_text().splitlines()
    german = "compare out/UD_German-GSD --quick --models ngrams"
    assert calls[:2] == [
        f"{german} lexicon mixed --seeds 1 2 --out out/german",
        f"{german} softmax softmax-unigram lexicon mixed --seeds 1 2 --spelling-lexicon language:de "
        "lexicons/de_DE.dic --out out/german-lexicon",
    ]
    assert len(calls) == 10
