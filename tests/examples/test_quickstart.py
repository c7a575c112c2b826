"""The demo as a user runs it, twice, on a corpus small enough for a test."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from fairseq_llrnn.core.toy_french import make_corpus, write_corpus


def run(root: Path, work: Path, cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", str(root / "examples" / "quickstart" / "run.sh"), str(work)]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, check=False
    )


def test_the_readme_shows_probes_of_the_demo_corpus(root: Path) -> None:
    readme = (root / "examples" / "quickstart" / "README.md").read_text("utf-8")
    shown = [json.loads(line) for line in readme.splitlines() if line.startswith("    {")]
    assert len(shown) == 2
    probes = [asdict(probe) for probe in make_corpus().probes]
    assert all(probe in probes for probe in shown)


@pytest.mark.timeout(900)  # nine commands, each of which imports torch and fairseq
def test_the_demo_runs_and_runs_again(root: Path, tmp_path: Path) -> None:
    work = tmp_path / "demo"
    write_corpus(make_corpus(150, seed=1), work / "corpus")
    first = run(root, work, tmp_path)
    assert first.returncode == 0, first.stdout[-2000:] + first.stderr[-2000:]
    for expected in ("epoch 1: validation perplexity", "test perplexity", "agreement of unseen", "p(37 | le prix"):
        assert expected in first.stdout
    assert f"picture: {work / 'demo.png'}" in first.stdout
    assert (work / "demo.png").read_bytes().startswith(b"\x89PNG")
    sentence = (work / "sentence.txt").read_text("utf-8").strip()
    assert f"== why? each word of: {sentence}" in first.stdout
    assert "Gender:Fem" in first.stdout and "its features" in first.stdout

    (work / "softmax" / "train.log").unlink()
    again = run(root, work, tmp_path)
    assert again.returncode == 0, again.stderr[-2000:]
    assert again.stdout.count("trained already") == 2 and "epoch 1" not in again.stdout
    assert not (work / "softmax" / "train.log").exists()
    table = first.stdout.partition("== 6/6")[2]
    assert again.stdout.partition("== 6/6")[2] == table


def test_a_failing_step_stops_the_demo_and_shows_why(root: Path, tmp_path: Path) -> None:
    work = tmp_path / "demo"
    write_corpus(make_corpus(150, seed=1), work / "corpus")
    (work / "corpus" / "valid.txt").unlink()
    result = run(root, work, tmp_path)
    assert result.returncode == 1
    assert "valid.txt" in result.stderr
    log = work / "preprocess.log"
    assert f"run.sh: error: fairseq-preprocess failed; all that it said is in {log}" in result.stderr
    assert "3/6" not in result.stdout
