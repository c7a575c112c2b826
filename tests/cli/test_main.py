"""`llrnn`: help, exit codes, and errors as one line."""

import argparse
import contextlib
import importlib
import io
import logging
import os
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fairseq_llrnn
from fairseq_llrnn.cli import main as llrnn
from fairseq_llrnn.cli.places import expanded
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.atomic_write import temporary_folder, whole_file, whole_folder

Streams = pytest.CaptureFixture[str]
Install = Callable[[Callable[[argparse.Namespace], int]], None]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a sub-command `probe WORD` in place that runs the given function."""

    def install(run: Callable[[argparse.Namespace], int]) -> None:
        module = types.ModuleType("fairseq_llrnn.cli.probe")
        module.__dict__.update(NAME="probe", HELP="look", EXAMPLES=("llrnn probe elle",), run=run)
        module.__dict__.update(add_arguments=lambda parser: parser.add_argument("word"))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(llrnn, "COMMANDS", (*llrnn.COMMANDS, "probe"))

    return install


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_alone_it_shows_every_sub_command_with_an_example(argv: list[str], capsys: Streams) -> None:
    assert llrnn.main(argv) == 0
    shown = capsys.readouterr().out
    for name in llrnn.all_commands():
        assert re.search(rf"^  {name} +{re.escape(llrnn.load(name).HELP)}$", shown, re.MULTILINE)
        assert f"\n    {llrnn.load(name).EXAMPLES[0]}\n" in shown
    columns = {len(found[0]) for name in llrnn.all_commands() if (found := re.search(rf"^  {name} +", shown, re.M))}
    assert len(columns) == 1, "they stand below each other"


@pytest.mark.parametrize("name", llrnn.all_commands())
def test_every_sub_command_keeps_the_contract(name: str, capsys: Streams) -> None:
    assert name == llrnn.load(name).NAME
    with pytest.raises(SystemExit) as stop:
        llrnn.main([*name.split(), "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: llrnn {name}")
    for example in llrnn.load(name).EXAMPLES:
        assert f"\n  {example}\n" in shown, "in one line, to be pasted"


def test_version(capsys: Streams) -> None:
    assert llrnn.main(["--version"]) == 0
    assert capsys.readouterr().out == f"llrnn {fairseq_llrnn.__version__}\n"


def test_home_is_expanded_where_shells_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/one")
    given = ["train", "~/data", "--out=~/x", "--out", "~/y", "--out=~", "--set", "a=~/z", "--background=ngram:~/a", "~"]
    assert expanded(given) == [
        "train", "~/data", "--out=/home/one/x", "--out", "/home/one/y", "--out=/home/one", "--set", "a=~/z",
        "--background=ngram:~/a", "~",
    ]  # fmt: skip


def test_unknown_sub_command_suggests_the_nearest(capsys: Streams) -> None:
    assert llrnn.main(["piror"]) == 2
    assert capsys.readouterr().err.startswith(
        "llrnn: error: no sub-command 'piror'; did you mean 'prior'? ('llrnn --help'"
    )


def test_a_users_error_is_one_line_without_a_stack_trace(command: Install, capsys: Streams) -> None:
    def run(args: argparse.Namespace) -> int:
        raise DataError(f"{args.word}: expected ten columns, found nine")

    command(run)
    assert llrnn.main(["probe", "elle"]) == 2
    streams = capsys.readouterr()
    assert streams.err == "llrnn: error: elle: expected ten columns, found nine\n"
    assert streams.out == ""


def test_a_warning_that_is_logged_is_one_line(
    command: Install, capsys: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(args: argparse.Namespace) -> int:
        logging.getLogger("fairseq_llrnn.systems").warning("the folder moved:\nanother is used")
        logging.getLogger("fairseq_llrnn.systems").info("nothing")
        return 0

    command(run)
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest's
    assert llrnn.main(["probe", "elle"]) == 0
    assert capsys.readouterr().err == "warning: the folder moved: another is used\n"
    assert logging.root.handlers == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["explain", "--pth", "p", "le"], "required: --path; there is no --pth; did you mean --path?"),
        (["explain", "--zzz", "le"], "required: --path; there is no --zzz; llrnn explain --help lists all"),
        (["explain", "--top", "-3"], "required: --path"),
        (["prior", "--dict", "d", "--oout", "p"], "unrecognized arguments: --oout p; did you mean --out?"),
        (["prior", "--keep-case"], "--keep-case; use --set words.keep_case=VALUE; llrnn"),
        (["prior", "--dict", "d", "--background", "ngram:3", "plus", "cache:5", "--out", "p"],
         "unrecognized arguments: plus cache:5; a value with blanks needs quotes around it; llrnn prior --help lists"),
    ],
)
def test_a_misspelled_option_is_named_where_another_is_missing(given: list[str], message: str, capsys: Streams) -> None:
    with pytest.raises(SystemExit) as stop:
        llrnn.main(given)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def parsed(*given: str) -> argparse.Namespace:
    parser = llrnn.Parser(llrnn.load("user-dir"))
    parser.add_argument("--one")
    parser.add_argument("--number", type=int, default=3)
    parser.add_argument("--some", nargs="+")
    parser.add_argument("--two", nargs=2)
    parser.add_argument("--each", action="append")
    parser.add_argument("words", nargs="*")
    return parser.parse_intermixed_args([*given])


def test_values_of_an_option_that_is_said_again_are_joined() -> None:
    found = parsed("--some", "a", "b", "--each", "c", "word", "--some", "d", "--each", "e", "--one", "f", "--one", "f")
    assert found == argparse.Namespace(
        one="f", number=3, some=["a", "b", "d"], two=None, each=["c", "e"], words=["word"]
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--one", "a", "--one", "b"], "note: --one: found a and b; the last value is used\n"),
        (["--number", "3", "--number", "4"], "note: --number: found 3 and 4; the last value is used\n"),
        (["--two", "a", "b", "--two", "a", "c"], "note: --two: found ['a', 'b'] and ['a', 'c']; the last value"),
    ],
)
def test_of_an_option_of_one_value_the_last_counts_and_is_said(given: list[str], said: str, capsys: Streams) -> None:
    assert given[-1] in str(parsed(*given))
    assert capsys.readouterr().err.startswith(said)


def test_interrupted(command: Install, capsys: Streams) -> None:
    def run(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    command(run)
    assert llrnn.main(["probe", "elle"]) == 130
    assert capsys.readouterr().err == "llrnn: interrupted\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("write", [whole_file, whole_folder, temporary_folder])
def test_a_signal_leaves_nothing(
    number: signal.Signals, status: int, write: Callable[[Path], Any], command: Install, capsys: Streams, tmp_path: Path
) -> None:
    def run(args: argparse.Namespace) -> int:
        with write(tmp_path / "result"):
            assert list(tmp_path.iterdir())
            signal.raise_signal(number)
        raise AssertionError("it went on")

    command(run)
    before = signal.getsignal(number)
    assert llrnn.main(["probe", "elle"]) == status
    assert capsys.readouterr().err == "llrnn: interrupted\n"
    assert not list(tmp_path.iterdir()) and signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_heard_while_an_object_is_destroyed(
    number: signal.Signals, status: int, command: Install, capsys: Streams
) -> None:
    """Python forgets what is raised there. A training that waits for its data loader to end went on for hours."""

    class Loader:
        def __del__(self) -> None:
            signal.raise_signal(number)
            time.sleep(1)

    def run(args: argparse.Namespace) -> int:
        Loader()
        time.sleep(5)
        raise AssertionError("it went on")

    command(run)
    before = (sys.unraisablehook, signal.getsignal(signal.SIGALRM))
    assert llrnn.main(["probe", "elle"]) == status
    assert capsys.readouterr().err == "llrnn: interrupted\n"
    assert (sys.unraisablehook, signal.getsignal(signal.SIGALRM)) == before


def test_a_signal_is_heard_where_it_becomes_another_error(command: Install, capsys: Streams) -> None:
    """Pydantic's compiled code does that."""

    def run(args: argparse.Namespace) -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise ValueError("no schema") from None
        raise AssertionError("it went on")

    command(run)
    assert llrnn.main(["probe", "elle"]) == 143
    assert capsys.readouterr().err == "llrnn: interrupted\n"


SWALLOWING = """
import signal, time
try:
    signal.raise_signal({number})
    time.sleep({seconds})
except BaseException:
    pass
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_heard_after_an_import_that_catches_everything(
    number: signal.Signals, status: int, command: Install, capsys: Streams, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / f"swallowing_{status}.py").write_text(SWALLOWING.format(number=int(number), seconds=0))
    monkeypatch.syspath_prepend(tmp_path)

    def run(args: argparse.Namespace) -> int:
        importlib.import_module(f"swallowing_{status}")
        time.sleep(5)
        raise AssertionError("it went on")

    command(run)
    assert llrnn.main(["probe", "elle"]) == status
    assert capsys.readouterr().err == "llrnn: interrupted\n"


AT_IMPORT = """
import atexit, importlib.abc, signal, sys
from fairseq_llrnn.cli import main

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
main.MOST_DELAY = float(sys.argv[2])
atexit.register(print, "tidied")
sys.exit(main.main(sys.argv[3:]))
"""


@pytest.mark.parametrize(("module", "most_delay"), [("numpy.core.getlimits", 0), ("numpy.ma", 1000)])
def test_a_signal_while_numpy_is_imported(module: str, most_delay: int, root: Path) -> None:
    """Where the exception was lost, or left half of numpy."""
    given = [module, str(most_delay), "prior", "--dict", "none", "--out", "none"]
    done = subprocess.run([sys.executable, "-c", AT_IMPORT, *given], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (130, "llrnn: interrupted\n", "tidied\n")


def test_a_signal_that_is_ignored_stays_so(command: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(args: argparse.Namespace) -> int:
        signal.raise_signal(signal.SIGHUP)
        return 0

    command(run)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as by nohup
    try:
        assert llrnn.main(["probe", "elle"]) == 0
        with ThreadPoolExecutor(1) as threads:  # where nobody can say what a signal does
            assert threads.submit(llrnn.main, ["probe", "elle"]).result() == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    llrnn_itself = [sys.executable, "-m", "fairseq_llrnn.cli.main"]
    done = subprocess.run([*llrnn_itself, "user-dir"], cwd=root, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_output_is_utf8_in_any_terminal(variables: dict[str, str], root: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("été\n", encoding="utf-8")
    (tmp_path / "lexicon").write_text("étés\tété\tNOUN\t_\n", encoding="utf-8")
    table = "lexicon --lexicon lexicon --out -"
    dictionary = "dictionary --text text --lexicon lexicon --out l\udce9"  # a name that is no UTF-8
    for given, said in (("--help", "SUB-COMMAND …"), (table, "étés\tété"), (dictionary, "written to l\udce9")):
        done = subprocess.run(
            [sys.executable, "-m", "fairseq_llrnn.cli.main", *given.split()], capture_output=True, cwd=tmp_path,
            env={**os.environ, **variables, "PYTHONPATH": str(root)},
        )  # fmt: skip
        assert done.returncode == 0 and said.encode("utf-8", "surrogateescape") in done.stdout, done.stderr


def test_user_dir_is_the_package_and_comes_without_torch(root: Path) -> None:
    script = (
        "import sys\n"
        "sys.argv = ['llrnn', 'user-dir']\n"
        "from fairseq_llrnn.cli.main import main\n"
        "status = main()\n"
        "assert not {'torch', 'fairseq', 'numpy'} & set(sys.modules), 'slow imports'\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.rstrip("\n")) == root / "fairseq_llrnn"


# ---- output that cannot be written -----------------------------------------------------------------------------------

FULL = "llrnn: error: the output cannot be written: No space left on device; free some space, or write it elsewhere\n"


@pytest.fixture(params=["buffered", "unbuffered"])
def on_full_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """`llrnn`, whose stdout is a full disk; written at once, or when there is enough to write."""
    raw = open("/dev/full", "wb", buffering=-1 if request.param == "buffered" else 0)  # noqa: SIM115
    stdout = io.TextIOWrapper(raw, encoding="utf-8", write_through=request.param == "unbuffered")

    def run(*argv: str) -> int:
        with monkeypatch.context() as patched:  # pytest's own stdout comes back when a test begins
            patched.setattr(sys, "stdout", stdout)
            return llrnn.main(argv)

    yield run
    stdout.close()


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_full_disk_as_stdout_is_one_line(
    lines: int, command: Install, on_full_disk: Callable[..., int], capfd: Streams
) -> None:
    def run(args: argparse.Namespace) -> int:
        for _ in range(lines):
            print("a line of the table")
        return 0

    command(run)
    assert on_full_disk("probe", "elle") == 1
    assert capfd.readouterr().err == FULL


def test_a_users_error_comes_before_a_full_disk(
    command: Install, on_full_disk: Callable[..., int], capfd: Streams
) -> None:
    def run(args: argparse.Namespace) -> int:
        with contextlib.suppress(OSError):
            print("begun")
        raise DataError("elle: expected a word")

    command(run)
    assert on_full_disk("probe", "elle") == 2
    assert capfd.readouterr().err == "llrnn: error: elle: expected a word\n"


CLOSED = "llrnn: error: the output cannot be written: stdout is closed; redirect it to a file, a pipe or /dev/null\n"


def test_another_file_that_cannot_be_read_is_one_line(command: Install, capsys: Streams) -> None:
    def run(args: argparse.Namespace) -> int:
        raise PermissionError(13, "Permission denied", "table.tsv")

    command(run)
    assert llrnn.main(["probe", "elle"]) == 1
    assert capsys.readouterr().err == "llrnn: error: table.tsv: Permission denied\n"


@pytest.mark.parametrize(("redirected", "said"), [("> /dev/full", FULL), (">&-", CLOSED)])
@pytest.mark.parametrize("command", ["user-dir", "prior --help"])
def test_as_a_shell_redirects_it(command: str, redirected: str, said: str, root: Path) -> None:
    done = subprocess.run(
        f"'{sys.executable}' -m fairseq_llrnn.cli.main {command} {redirected}", shell=True, cwd=root,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.endswith(said)


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_messages_for_a_closed_stderr_are_dropped(closed: str, root: Path, tmp_path: Path) -> None:
    """Neither on stdout nor in a file that takes the place of stderr."""
    (tmp_path / "lexicon.tsv").write_text("chat\tchat\tNOUN\t_\n", encoding="utf-8")
    given = f"'{sys.executable}' -m fairseq_llrnn.cli.main lexicon --lexicon lexicon.tsv --out"
    variables = {**os.environ, "PYTHONPATH": str(root)}
    tables = {}
    for place in ("-", "table.tsv"):
        done = subprocess.run(
            f"{given} {place} {closed}", shell=True, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=variables
        )
        assert done.returncode == 0
        tables[place] = done.stdout if place == "-" else (tmp_path / place).read_text(encoding="utf-8")
    assert tables["-"] == tables["table.tsv"] and tables["-"].count("\n") == 2


def test_output_that_a_closed_stdin_cannot_take(root: Path, tmp_path: Path) -> None:
    """A file must not be opened in the place of stdin, and be read as the text."""
    done = subprocess.run(
        f"'{sys.executable}' -m fairseq_llrnn.cli.main dictionary --text - --out - <&-", shell=True, cwd=root,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "") and "stdin is closed" in done.stderr
