"""The demo as a user runs it, twice, on a corpus small enough for a test."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from example_modules import run_example

from toy_french import make_corpus, write_corpus


def test_the_readme_shows_probes_of_the_demo_corpus(root: Path) -> None:
    readme = (root / "examples" / "quickstart" / "README.md").read_text("utf-8")
    shown = [json.loads(line) for line in readme.splitlines() if line.startswith("    {")]
    assert len(shown) == 2
    probes = [asdict(probe) for probe in make_corpus().probes]
    assert all(probe in probes for probe in shown)


@pytest.mark.slow
def test_the_demo_runs_and_runs_again(tmp_path: Path) -> None:
    work = tmp_path / "demo"
    write_corpus(make_corpus(150, seed=1), work / "corpus")
    first = run_example("quickstart/run.sh", work, cwd=tmp_path)
    for expected in ("epoch 1: validation perplexity", "test perplexity", "agreement of unseen", "p(37 | le prix"):
        assert expected in first.out
    assert f"picture: {work / 'demo.png'}" in first.out
    assert (work / "demo.png").read_bytes().startswith(b"\x89PNG")
    sentence = (work / "sentence.txt").read_text("utf-8").strip()
    assert f"== why? each word of: {sentence}" in first.out
    assert "Gender:Fem" in first.out and "its features" in first.out
    assert "DEBUG" not in first.out + first.err and "INFO:" not in first.out + first.err

    (work / "softmax" / "train.log").unlink()
    (work / "corpus" / "vocabulary.txt").unlink()  # which the report reads first: it need not measure again
    again = run_example("quickstart/run.sh", work, cwd=tmp_path, code=2)
    assert again.out.count("trained already") == 3 and "epoch 1" not in again.out
    assert not (work / "softmax" / "train.log").exists()
    assert "demo_report: error: " in again.err and "vocabulary.txt" in again.err and "why?" not in again.out
