"""The script that measures what packages know of a text: its mixtures are those of the definition."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_llrnn.lexicon.languages.base import SOURCES

TEXTS = {
    "train": "Nous mangeons le pain .\nIl mange une pomme .\n",
    "valid": "Elle mange le fromage .\n",
    "test": "Nous mangeons .\n",
}


def run(root: Path, texts: Path, code: str) -> subprocess.CompletedProcess[str]:
    script = root / "scripts" / "language_packages.py"
    return subprocess.run([sys.executable, str(script), str(texts), code], capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_what_it_prints(tmp_path: Path, root: Path) -> None:
    if missing := [name for source in ("wordfreq", "simplemma") for name in SOURCES[source].missing("fr")]:
        pytest.skip(f"not installed: pip install {' '.join(missing)}")
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    done = run(root, tmp_path, "fr")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0].startswith("signatures with suffixes: ") and said[1] == "language: French (fr)"
    floors = [line for line in said if line.startswith("  and ")]
    assert [line.split(":")[0] for line in floors] == [
        "  and analyses, no lemmas",
        *(f"  and lemmas that {floor} words share" for floor in (16, 8, 4, 2)),
    ]
    assert "(4 words with a lemma)" in floors[-1]  # of manger and le; pain, pomme and others are alone
    valid, test = said[-2:]
    assert valid.startswith("  valid, 16.7% new: 1: ") and test.startswith("  test, 0.0% new: ")
    # five mixtures; of six tokens, fromage is new and Elle, with its capital, is in no list
    shares = [float(cell.rsplit(": ", 1)[1].split(" ")[0]) for cell in valid.split(")")[:-1]]
    assert len(shares) == 5 and all(math.isfinite(nats) for nats in shares)
