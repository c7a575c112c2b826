"""The figures of `llrnn compare` come into the ledger and, with all decimals, into a page."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from example_modules import ROOT

from fairseq_llrnn.comparison.bootstrap import Difference
from fairseq_llrnn.comparison.results import row_facts
from fairseq_llrnn.comparison.rows import Row

LEDGER = "docs/results/runs.jsonl"
SEEDS: dict[str, Any] = {"seeds": [1, 2], "deviation": 0.0014, "seen": 8.0, "unseen": 30.0, "seconds": 3.0}


def row(name: str, title: str, valid: float, test: float, p: float | None = None) -> Row:
    difference = None if p is None else Difference(test - 2.2, 0.0, 0.0, p)
    tests = [test] if name.startswith("ngrams") else [test - 0.001, test + 0.001]
    return Row(name, title, valid=valid, test=test, tests=tests, difference=difference, is_reference=p is None, **SEEDS)


ROWS = [
    row("ngrams-2", "Kneser-Ney 2-grams", 2.5, 2.3, 0.002),
    row("ngrams-3", "Kneser-Ney 3-grams", 2.4, 2.31, 0.003),
    row("pieces", "softmax of BPE pieces (2000)", 2.6, 2.4, 0.00019998),
    Row("softmax", "softmax", failure="no memory"),
    row("suffixes", "ours, suffixes", 2.3, 2.2),
    row("lexicon", "ours, suffixes and lexicon", 2.35, 2.1, 0.5),
    row("joined-others", "all other models, mixed", 2.2, 2.15, 0.004),
    row("joined", "all models, mixed", 2.1, 2.05, 0.0005),
]


def run(root: Path, *arguments: str, script: str = "comparison_runs.py", code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, *arguments, "--root", root], capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return done.stdout or done.stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with an old line of this language and another line, and a folder of `llrnn compare`."""
    place = tmp_path / "root"
    (place / LEDGER).parent.mkdir(parents=True)
    old = {"metric": "BLEU", "better": "higher", "value": 1, "seeds": "none", "baseline": "none", "data": "a"}
    old |= {"command": "c", "commit": "0123456"}
    lines = [json.dumps(old | {"key": key}) for key in ("compare/old-welsh/softmax", "a/b")]
    (place / LEDGER).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "out").mkdir()
    command = ["/usr/bin/llrnn", "compare", "/data/UD_Welsh", "--out", "/runs/out", "--seeds", "1", "2"]
    result = {"rows": [*map(row_facts, ROWS)], "texts": {"words": 20123}, "command": command, "commit": "a" * 40}
    (tmp_path / "out" / "result.json").write_text(json.dumps(result))
    return place


def test_the_ledger_and_the_table(root: Path) -> None:
    table = run(root, f"{root.parent / 'out'}=Old Welsh")
    runs = [json.loads(line) for line in (root / LEDGER).read_text().splitlines()]
    other, ngrams, pieces, ours, others, joined = runs
    assert other["key"] == "a/b"
    families = ["ngrams", "pieces", "ours", "joined-others", "joined"]
    assert [each["key"].rpartition("/")[2] for each in runs[1:]] == families
    assert ngrams["value"] == 2.31 and ngrams["baseline"] == "compare/old-welsh/ours" and ngrams["p"] == 0.003
    assert pieces["p"] == 0.0002 and pieces["values"] == [2.399, 2.401] and pieces["seeds"] == [1, 2]
    assert ours["unseen"] == 30.0
    assert others["baseline"].endswith("/joined") and joined["baseline"].endswith("/joined-others")
    assert others["p"] == joined["p"] == 0.004  # of the mixture without ours against the one with it
    assert ours["baseline"] == "compare/old-welsh/ngrams" and ours["p"] == 0.003  # the strongest other model
    assert ours["command"] == "llrnn compare UD_Welsh --out out --seeds 1 2"
    assert ours["data"] == "Old Welsh, 20,123 words of training text"
    page = root / "docs" / "results" / "page.md"
    columns = ("Ours + n-grams", "Std", "p", "Seeds", "Characters", "Words", "BPE", "n-grams", "Ours", "Others", "All")
    page.write_text(f"# Page\n\n| Language | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}\n{table}\n")
    (root / "README.md").write_text("<!-- = a/b -->\n")
    run(root, "--write", script="check_results.py", code=1)  # the commits are not of this repository
    expressions = "; ".join(f"compare/old-welsh/{name}" for name in ("ngrams", "ours", "joined-others", "joined"))
    expected = f"| Old Welsh | | | | | | | | 2.3100 | 2.2000 | 2.1500 | **2.0500** <!-- = {expressions} --> |"
    found = page.read_text().rstrip().splitlines()[-1]
    assert " ".join(found.split()) == expected


def test_another_family_of_keys(root: Path) -> None:
    table = run(root, f"{root.parent / 'out'}=listed/Old (Welsh)")
    keys = [json.loads(line)["key"] for line in (root / LEDGER).read_text().splitlines()]
    assert keys[0] == "compare/old-welsh/softmax" and keys[-1] == "listed/old-welsh/joined"
    assert table.startswith("| Old (Welsh) | ") and "; listed/old-welsh/joined --> |" in table


def test_messages(root: Path) -> None:
    for place in ("nowhere=Welsh", str(root.parent / "out")):
        assert f"{place}: expected OUT=LANGUAGE with OUT of `llrnn compare`" in run(root, place, code=2)
