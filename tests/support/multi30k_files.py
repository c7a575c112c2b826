"""Files of Multi30k's names and form that hold the toy language."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from toy_french.bilingual import make_bitext, write_bitext

SPLITS = {"train": "train", "val": "valid", "test2016": "test"}


def write_multi30k(folder: Path, scratch: Path, last_of_test: Sequence[tuple[str, str]] = ()) -> None:
    """last_of_test: pairs at the end of the test, behind four others; without, it is as long as the others."""
    write_bitext(make_bitext(200, 1), scratch)
    folder.mkdir()
    for split, name in SPLITS.items():
        for side, language in enumerate(("en", "fr")):
            lines = (scratch / f"{name}.{language}").read_text(encoding="utf-8").lower().splitlines()[:80]
            if split == "test2016" and last_of_test:
                lines = [*lines[:4], *(pair[side] for pair in last_of_test)]
            for kind in ("tok", "raw"):
                packed = gzip.compress("".join(f"{line}\n" for line in lines).encode())
                (folder / f"{split}.{kind}.{language}.gz").write_bytes(packed)
