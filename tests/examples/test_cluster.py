"""Both kinds of launch: a training that torchrun begins and Slurm goes on with is the same as one without a stop."""

from pathlib import Path

import pytest
from example_modules import EXAMPLES
from same_training import JOINED, assert_same_training
from shell import Shell, rendezvous, run_script
from tiny_world import World, read_checkpoint

# What Slurm gives, of one machine under two names: every task in the background, told which it is.
SRUN = """#!/bin/sh
for task in 0 1; do SLURM_NODEID=$task "$@" & all="$all $!"; done
for one in $all; do wait $one || exit 1; done
"""
SCONTROL = '#!/bin/sh\n[ "$*" = "show hostnames machine[1-2]" ] && printf "127.0.0.1\\nlocalhost\\n"\n'


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """The variables of a job with two machines, and the commands that its script uses."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (commands / name).write_text(text, encoding="utf-8")
        (commands / name).chmod(0o755)
    job = {"SLURM_JOB_NODELIST": "machine[1-2]", "SLURM_JOB_NUM_NODES": "2"}
    job["SLURM_JOB_ID"] = rendezvous(2)["MASTER_PORT"]  # any number: the port is made of it
    return job | {"COMMANDS": str(commands)}


@pytest.mark.slow
def test_begun_with_torchrun_and_ended_under_slurm(
    shell: Shell, world: World, slurm: dict[str, str], tmp_path: Path
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"

    def arguments(place: Path) -> list[object]:
        return [*world.train_args(save_dir=place), "--dropout", 0.2, "--max-tokens", 70, "--max-epoch", 2]

    shell.run("fairseq-train", *arguments(whole), *JOINED, processes=2)
    port = rendezvous(2)["MASTER_PORT"]
    begun = ["sh", EXAMPLES / "cluster/node.sh", *arguments(parts), "--max-update", 5]
    run_script(*begun, variables={"PROCESSES": "2", "PORT": port})
    assert read_checkpoint(parts / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] == 5
    script = 'PATH="$COMMANDS:$PATH" exec bash "$@"'
    run_script(
        "sh", "-c", script, "sh", EXAMPLES / "cluster/slurm.sbatch", *arguments(parts),
        variables=slurm | {"PROCESSES": "1"},
    )  # fmt: skip
    assert_same_training(parts / "checkpoint_last.pt", whole / "checkpoint_last.pt")
