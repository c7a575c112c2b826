"""What the run.sh of the examples share: the place they work from, errors that say where to look, what logs say."""

import gzip
import subprocess
from pathlib import Path

from example_modules import EXAMPLES


def bash(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script that begins as a run.sh does; run in another folder than the repository."""
    begun = f"set -euo pipefail\n. '{EXAMPLES / 'stages.sh'}'\ncase=$1\n{script}"
    return subprocess.run(["bash", "-c", begun, "run.sh", folder], cwd=folder, text=True, capture_output=True)


def test_what_fails_ends_the_run_with_the_end_of_its_log(tmp_path: Path) -> None:
    done = bash('run "$case/a.log" ls "$case"; run "$case/b.log" ls "$case/none"; echo not reached', tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    *said, error = done.stderr.splitlines()
    assert f"{tmp_path}/none" in said[-1]
    assert error == f"run.sh: error: ls failed; all that it said is in {tmp_path}/b.log"


def test_results_of_other_settings_are_not_taken_for_these(tmp_path: Path) -> None:
    script = 'for it in "A=1 B=x" "A=1 B=x" "A=2 B=x"; do same_settings "$case" "$it"; done; echo not reached'
    done = bash(script, tmp_path)
    said = "expected A=2 B=x, found results of A=1 B=x; give another folder"
    assert done.returncode == 2 and not done.stdout and done.stderr == f"run.sh: error: {tmp_path}: {said}\n"
    (tmp_path / "settings").rename(tmp_path / "other")
    assert "expected an empty folder, or one of this example, found neither" in bash(script, tmp_path).stderr


def test_a_step_that_was_interrupted_is_done_again(tmp_path: Path) -> None:
    """What a killed one left does not look like its result; a second time it is skipped."""
    (tmp_path / "data.part").mkdir()
    (tmp_path / "data.part" / "dict.txt").write_text("half\n", encoding="utf-8")
    (tmp_path / "train").write_text("a b a\n", encoding="utf-8")
    packed = gzip.compress(b"one\ntwo\nthree\n" * 9)
    (tmp_path / "cut.gz").write_bytes(packed[:-9])
    cut = bash('first_lines 2 "$case/cut.gz" "$case/text"; echo not reached', tmp_path)
    assert cut.returncode and not cut.stdout and not (tmp_path / "text").exists()
    (tmp_path / "cut.gz").write_bytes(packed)
    script = """fairseq-preprocess() { echo "called: $*"; mkdir "$2"; cp "$case/train" "$2/train.bin"; }
    first_lines 2 "$case/cut.gz" "$case/text"; preprocess "$case/data" -s a; cat "$case/text" "$case/data.log" """
    for _ in range(2):
        assert bash(script, tmp_path).stdout == f"one\ntwo\ncalled: --destdir {tmp_path}/data.part -s a\n"
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["train.bin"]
    assert not list(tmp_path.glob("*.part"))
    (tmp_path / "data.log").write_text("earlier\n", encoding="utf-8")
    assert bash(script, tmp_path).stdout == "one\ntwo\nearlier\n"


def test_the_last_perplexity_of_a_log_and_none_of_a_training_that_had_ended_before(tmp_path: Path) -> None:
    line = "epoch {0} | valid on 'valid' subset | loss 2 | ppl {0}.5 | wps 7\n"
    (tmp_path / "train.log").write_text("".join(line.format(i) for i in (1, 2)), encoding="utf-8")
    (tmp_path / "again.log").write_text("done training in 0.0 seconds\n", encoding="utf-8")
    done = bash('perplexity mine "$case/train.log"; perplexity mine "$case/again.log"; echo on', tmp_path)
    assert done.stdout.splitlines() == ["mine: validation perplexity 2.5", "on"], done


def test_hypotheses_are_in_the_order_of_the_sources(tmp_path: Path) -> None:
    lines = "".join(f"S-{i}\tsource\nH-{i}\t-0.5\thypothesis {i}\n" for i in (10, 2, 0))
    (tmp_path / "out").write_text(lines, encoding="utf-8")
    assert bash('hypotheses "$case/out"', tmp_path).stdout == "hypothesis 0\nhypothesis 2\nhypothesis 10\n"
