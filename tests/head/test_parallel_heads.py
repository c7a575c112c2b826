"""A head in two processes, by torch's DDP and by FSDP2 with the head as a unit, trains what one process trains."""

import json
import os
import subprocess
import sys
from pathlib import Path

import parallel_heads
import pytest
from hostile_priors import make_priors


@pytest.mark.slow  # it once waited for ten minutes next to other tests
@pytest.mark.parametrize("how, kind", [("ddp", "Parameter"), ("fsdp", "DTensor")])
def test_two_processes_train_what_one_trains(how: str, kind: str, tmp_path: Path) -> None:
    """Over a mixture whose weights the network chooses, with one table for input and output."""
    prior = make_priors(tmp_path)["combined"]
    variables = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, parallel_heads.__file__, str(prior), how, str(tmp_path / "store")]
    running = [
        subprocess.Popen([*command, str(rank)], env=variables, stdout=subprocess.PIPE, text=True) for rank in range(2)
    ]
    for process in running:
        found = json.loads(process.communicate()[0])
        assert process.returncode == 0 and found["kinds"] == [kind]
        assert found["apart"] < 1e-12
