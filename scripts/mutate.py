"""Count the mutations that tests catch: small changes of the source, each of which some test should notice.

    python scripts/mutate.py [--seed 1 2 3] [--count 40] [--least 38]

It draws mutations of fairseq_llrnn/head, output and functional.py (mutate_source.py) and runs tests/head, tests/output
and tests/test_functional.py with each, in a fork of a process that has imported torch. Only files with a test that
executes the changed line run, up to the first failure. No file of the checkout changes.

It prints a line for each mutation, then a table, and exits with status 1 if fewer than --least are caught.
scripts/mutations_without_effect.tsv lists mutations that change no result, each with a reason. They are not drawn.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported

import hypothesis
import pytest
from mutate_source import Mutation, mutations_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fairseq_llrnn"
TESTS = ["tests/head", "tests/output", "tests/test_functional.py"]
IMPORTED = ("torch._dynamo", "torch.distributed.tensor", "scipy.sparse.linalg", "conllu", "regex", "pydantic")
WITHOUT_EFFECT = Path(__file__).with_name("mutations_without_effect.tsv")
LONGEST = 180  # seconds of processor time: a mutated loop may never end

Line = tuple[str, int]  # a file and a line


class Test(NamedTuple):
    """A test of the unchanged package: its processor time, and the lines that it executes."""

    seconds: float
    lines: set[Line]


class Reason(NamedTuple):
    """A row of mutations_without_effect.tsv. `before` and `after` are lines of source; * matches any text."""

    path: str
    function: str
    before: str
    after: str
    reason: str

    def matches(self, mutation: Mutation) -> bool:
        before, after = mutation.before_and_after()
        names = relative(mutation.path), mutation.function, before, after
        return all(value == pattern or fnmatchcase(value, pattern.replace("[", "[[]"))
                   for value, pattern in zip(names, self[:4], strict=True))  # fmt: skip


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def sources() -> list[Path]:
    return [*sorted(PACKAGE.glob("head/*.py")), *sorted(PACKAGE.glob("output/*.py")), PACKAGE / "functional.py"]


def read_reasons() -> list[Reason]:
    """Read the mutations without effect."""
    lines = WITHOUT_EFFECT.read_text(encoding="utf-8").splitlines()[1:]
    return [Reason(*line.split("\t")) for line in lines]


def draw(seed: int, count: int, reasons: Sequence[Reason]) -> list[Mutation]:
    """Draw different mutations: first a kind, then one of that kind. Those without effect are replaced by others."""
    by_kind: dict[str, list[Mutation]] = {}
    for mutation in (each for path in sources() for each in mutations_of(path)):
        by_kind.setdefault(mutation.kind, []).append(mutation)
    generator, drawn = random.Random(seed), list[Mutation]()
    for mutations in by_kind.values():
        generator.shuffle(mutations)
    while len(drawn) < count and any(by_kind.values()):
        mutations = by_kind[generator.choice(sorted(kind for kind, left in by_kind.items() if left))]
        mutation = mutations.pop()
        if mutation.is_python() and not any(reason.matches(mutation) for reason in reasons):
            drawn.append(mutation)
    return drawn


class _Loader(importlib.machinery.SourceFileLoader):
    """Load a module from changed source."""

    def __init__(self, mutation: Mutation) -> None:
        super().__init__(".".join(mutation.path.relative_to(ROOT).with_suffix("").parts), str(mutation.path))
        self.source = mutation.applied()

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Find the loader of one module."""

    def __init__(self, loader: _Loader) -> None:
        self.loader = loader

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.loader.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.loader.path, loader=self.loader)


class _Failure:
    """A plugin of pytest that notes the first failure."""

    def __init__(self) -> None:
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Search no smaller examples of a failure. conftest.py has loaded its own profile."""
        profile = hypothesis.settings(phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate))
        hypothesis.settings.register_profile("mutations", profile)
        hypothesis.settings.load_profile("mutations")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            error = getattr(getattr(report.longrepr, "reprcrash", None), "message", "").partition("\n")[0]
            self.failed = self.failed or f"{report.nodeid} ({error[:80]})"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or f"import of {report.nodeid}: {str(report.longrepr).splitlines()[-1]}"


class _Traced:
    """A plugin of pytest that measures each test and the lines of the package that it executes."""

    def __init__(self) -> None:
        self.files = {str(path) for path in sources()}
        self.tests: dict[str, Test] = {}
        self.lines: set[Line] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.lines, start = set(), time.process_time()
        sys.settrace(self._call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.tests[item.nodeid] = Test(time.process_time() - start, self.lines)

    def _call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename in self.files else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


def forked(function: Callable[[], Any], seconds: int) -> Any:
    """Return a function's result, computed in a fork without output, or None after so much processor time."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        try:
            answer = json.dumps(function())
        except BaseException as error:  # a crash of pytest itself
            answer = json.dumps(f"an error in pytest: {type(error).__name__}")
        with os.fdopen(write, "w", encoding="utf-8") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def run_tests(plugin: object, paths: Sequence[str]) -> int:
    """Run tests in this process. The same examples of hypothesis are drawn each time."""
    options = ["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    return int(pytest.main([*options, *paths], plugins=[plugin]))


def measure() -> dict[str, Test] | None:
    """Run the tests of the unchanged package. None: one of them fails."""

    def answer() -> dict[str, Any]:
        plugin = _Traced()
        status = run_tests(plugin, TESTS)
        tests = {name: (test.seconds, sorted(test.lines)) for name, test in plugin.tests.items()}
        return {"status": status, "tests": tests}

    found = forked(answer, 20 * LONGEST)
    if not isinstance(found, dict) or found["status"]:
        return None
    return {
        name: Test(seconds, {(file, number) for file, number in lines})
        for name, (seconds, lines) in found["tests"].items()
    }


def files_of(mutation: Mutation, tests: Mapping[str, Test]) -> list[str]:
    """Return the files with tests that execute the changed line, the quickest first; all files, if imports do."""
    seconds: dict[str, float] = {}
    covering: set[str] = set()
    for name, test in tests.items():
        file = name.partition("::")[0]
        seconds[file] = seconds.get(file, 0.0) + test.seconds
        if (str(mutation.path), mutation.line) in test.lines:
            covering.add(file)
    return sorted(covering or seconds, key=lambda file: seconds[file])


def killer(mutation: Mutation, tests: Mapping[str, Test]) -> str | None:
    """Return the test that fails with a mutation, or None if all pass."""

    def answer() -> str:
        sys.meta_path.insert(0, _Finder(_Loader(mutation)))
        for file in files_of(mutation, tests):
            plugin = _Failure()
            if status := run_tests(plugin, [file]):
                return plugin.failed or f"pytest's status {status}"
        return ""

    found = forked(answer, LONGEST)
    return f"no end within {LONGEST} s" if found is None else found or None


def show(mutation: Mutation, by: str | None) -> None:
    before, after = mutation.before_and_after()
    place = f"{relative(mutation.path)}:{mutation.line}"
    print(f"{place}: {before}  →  {after}: {'survived' if by is None else f'killed by {by}'}", flush=True)


def prepare(folder: str) -> None:
    """Import what the tests need except this package. All files that an import or a test writes are in `folder`."""
    assert PACKAGE.name not in sys.modules, "an imported module would stay as it is"
    sys.pycache_prefix = folder
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT)]
    for name in IMPORTED:
        importlib.import_module(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--count", type=int, default=40, help="mutations to draw of each seed")
    parser.add_argument("--least", type=int, default=38, help="mutations of each seed to catch")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        tests = measure()
        if tests is None:
            print(f"the tests fail without mutations: run pytest {' '.join(TESTS)}", file=sys.stderr)
            return 1
        print(f"{len(tests)} tests, {sum(test.seconds for test in tests.values()):.0f} s of processor time, traced")
        caught = [catch(seed, options.count, tests) for seed in options.seed]
    return int(min(caught) < options.least)


def catch(seed: int, count: int, tests: Mapping[str, Test]) -> int:
    """Print each mutation of a seed, and a table. Return the number of those that tests catch."""
    drawn, caught = Counter[str](), Counter[str]()
    for mutation in draw(seed, count, read_reasons()):
        by = killer(mutation, tests)
        show(mutation, by)
        drawn[mutation.kind] += 1
        caught[mutation.kind] += by is not None
    print(f"\nseed {seed:<5}  drawn  caught")
    for kind in sorted(drawn):
        print(f"{kind:10}  {drawn[kind]:5}  {caught[kind]:6}")
    print(f"{'all':10}  {drawn.total():5}  {caught.total():6}\n", flush=True)
    return caught.total()


if __name__ == "__main__":
    sys.exit(main())
