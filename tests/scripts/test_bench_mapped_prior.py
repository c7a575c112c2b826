"""The benchmark of mapped priors at toy size: both ways load, and the last line is the promised JSON object."""

import json
import sys
from pathlib import Path

import pytest
from example_modules import SCRIPTS, load
from small_priors import make_prior


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux only")
def test_two_processes_share_what_is_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (module,) = load(SCRIPTS, "bench_mapped_prior")
    make_prior().save(tmp_path / "prior")
    monkeypatch.setattr(sys, "argv", ["bench", str(tmp_path / "prior"), "--head"])
    assert module.main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(found) == ["mapped_rss", "mapped_pss", "read_rss", "read_pss"]
