"""Commands that scripts of bash get from the tests' server do what the real ones do."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from shell import Result, Shell, run_script
from tiny_world import USER_DIR, World

SCRIPT = """
set -u
echo $(llrnn user-dir)
llrnn show "$2" --json | head -c 20
cd "$(dirname "$2")" && llrnn show prior le | tail -n 1
MINE=7 python "$3" a "b c" <"$1"
python -c 'print(6 * 7)'
llrnn show nothing
echo "status $?"
"""
MINE = "import os, sys\nprint(sys.argv[1:], os.environ['MINE'], len(sys.stdin.readlines()))\nsys.exit(3)\n"


def run(world: World, place: Path, variables: Mapping[str, str]) -> Result:
    (place / "mine.py").write_text(MINE, encoding="utf-8")
    given = (world.place / "valid.txt", world.prior("prior"), place / "mine.py")
    return run_script("bash", "-c", SCRIPT, "script", *given, variables=variables)


def test_a_script_finds_what_it_finds_with_the_real_ones(
    world: World, quick_commands: dict[str, str], tmp_path: Path
) -> None:
    quick, real = (run(world, tmp_path, variables) for variables in (quick_commands, {}))
    assert quick == real
    assert quick.out.startswith(f"{USER_DIR}\n") and "['a', 'b c'] 7 21" in quick.out and "42" in quick.out
    assert quick.out.endswith("status 2\n") and quick.err.count("llrnn: error: ") == 1
    folder = Path(quick_commands["BASH_ENV"]).parent
    assert [path.name for path in folder.glob("called.*")] == ["called.python."]  # what was no file


def test_the_first_call_is_the_real_command(shell: Shell, tmp_path: Path) -> None:
    variables = shell.for_scripts(first_real=["llrnn"])
    script = "llrnn user-dir && llrnn user-dir && llrnn show none; llrnn show none; cat <$(which llrnn) >/dev/null"
    assert run_script("bash", "-c", script, variables=variables).out == f"{USER_DIR}\n" * 2
    called = sorted(path.name for path in Path(variables["BASH_ENV"]).parent.glob("called.*"))
    assert called == ["called.llrnn.show", "called.llrnn.user-dir"]


@pytest.mark.parametrize("code", ["raise SystemExit('why')", "1 / 0", "import os; os.kill(os.getpid(), 9)"])
def test_a_script_of_python_that_fails(quick_commands: dict[str, str], tmp_path: Path, code: str) -> None:
    (tmp_path / "fails.py").write_text(code, encoding="utf-8")
    done = run_script("bash", "-c", f"python {tmp_path}/fails.py", variables=quick_commands, code=None)
    real = run_script(sys.executable, tmp_path / "fails.py", code=None)
    assert done.code == (real.code if real.code >= 0 else 128 - real.code)
    assert done.err.splitlines()[-1:] == real.err.splitlines()[-1:] or real.code < 0
