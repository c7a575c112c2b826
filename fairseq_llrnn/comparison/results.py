"""The files of a comparison: the table in all formats, the picture, a paragraph, and result.json with all facts."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from fairseq_llrnn.comparison import tables
from fairseq_llrnn.comparison.picture import as_svg
from fairseq_llrnn.comparison.rows import Row
from fairseq_llrnn.comparison.settings import Comparison
from fairseq_llrnn.comparison.texts import Texts
from fairseq_llrnn.files.atomic_write import whole_file
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.settings import plain_values
from fairseq_llrnn.version import __version__

PACKAGES = ("fairseq-fixed", "numpy", "sentencepiece", "torch", "transformers")


@dataclass(frozen=True)
class ComparisonTable:
    """The result of a comparison. `str` has the table as text."""

    rows: Sequence[Row]
    out: Path
    paragraph: str
    commands: Sequence[str]  # to go on with the best single model

    def __str__(self) -> str:
        return tables.as_text(self.rows)


def commands(rows: Sequence[Row], out: Path) -> list[str]:
    """Return commands to go on with the best single model."""
    best = tables.best_row(rows)
    if best is None:
        return []
    place = out / best.place
    model, export = place / "model" / "checkpoint_best.pt", list[str]()
    if best.name.startswith("ngrams"):
        options = f"--prior {place / 'data' / 'prior'} --open"
    elif best.name.startswith("pretrained"):
        options = f"--path {place / 'model'}"
    else:
        options, export = f"--path {model} --open", [f"llrnn export {model} MODEL"]
    return [f"llrnn score {options} TEXT", f"llrnn score {options} --per-word TEXT > surprisals.tsv", *export]


def write(table: ComparisonTable, texts: Texts, settings: Comparison, seconds: float) -> None:
    """Write the table in all formats, the picture and result.json."""
    files = {
        "table.md": tables.as_markdown(table.rows),
        "table.tsv": tables.as_tsv(table.rows),
        "table.tex": tables.as_latex(table.rows),
        "picture.svg": as_svg(table.rows),
        "paragraph.txt": table.paragraph,
        "result.json": json.dumps(_facts(table.rows, texts, settings, seconds), indent=1, default=str) + "\n",
    }
    for name, text in files.items():
        with whole_file(settings.out / name) as file:
            file.write(text)


def _facts(rows: Sequence[Row], texts: Texts, settings: Comparison, seconds: float) -> Mapping[str, Any]:
    versions = {"python": platform.python_version(), "fairseq_llrnn": __version__}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "settings": {name: value for name, value in vars(settings).items() if name != "name_of"} | {
            "words": plain_values(settings.sources)[0], "tries": settings.num_tries, "max_epoch": settings.epochs,
            "spelling_lexicon": as_paths(settings.spelling_lexicon),
        },
        "texts": {
            "fingerprint": texts.fingerprint, "words": texts.num_tokens, "sizes": texts.summary(),
            "notes": list(texts.notes),
        },
        "versions": versions,
        "commit": _commit(),
        "seconds": round(seconds, 1),
        "command": sys.argv,
        "rows": [row_facts(row) for row in rows],
    }  # fmt: skip


def row_facts(row: Row) -> dict[str, Any]:
    """Return the figures of a row for JSON. A missing one is None."""
    facts = {name: value for name, value in vars(row).items() if name not in ("sentences", "difference")}
    facts = {name: None if isinstance(value, float) and value != value else value for name, value in facts.items()}
    return facts | {"difference": None if row.difference is None else row.difference._asdict()}


def _commit() -> str | None:
    """Return the commit of this package's checkout, or None if it is installed otherwise."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
