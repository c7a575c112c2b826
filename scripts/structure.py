#!/usr/bin/env python3
"""Measure the structure of this package for a newcomer: sizes, calls in a batch and a search step, options.

    python scripts/structure.py [--json | --page | --hooks]

    code       lines without docstrings, comments and blank ones; files; functions of at most three lines
    paths      a batch to its loss, and a step of a search (beam 5), of an LSTM translator on the corpus of
               make_corpus.py: different files and functions of this package that are called, number of calls,
               number of calls in another file than the one before, and the functions in each folder. Once with a
               unigram as background, once with lexical translations and evidence
    imports    modules of this package that a fairseq command with this translator imports
    hooks      methods and attributes of base classes that a single class defines again, of package and research. A hook
               does nothing by itself: it raises NotImplementedError, or returns a constant or an argument. Classes of
               examples/ count as users. --hooks lists them
    options    of `llrnn prior`
    prior      calls of functions of this package in `build_prior` of eight words, the first one of a process

The table goes to stdout, or with --page into docs/design.md between the lines with the name of this script.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import io
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "fairseq_llrnn"
DESIGN = ROOT / "docs" / "design.md"
MARKS = "<!-- by scripts/structure.py --page -->", "<!-- end -->"
SHORT = 3  # lines of a function that hardly does anything
CODE = (PACKAGE, ROOT / "research" / "llrnn_research")
SIZES = (
    "--arch llrnn_lstm --encoder-embed-dim 16 --encoder-hidden-size 16 --decoder-embed-dim 16 --decoder-hidden-size 16"
)
SETTINGS = {  # what the table calls a prior -> options of `llrnn prior`
    "unigram": [],
    "with lexical translations and evidence": [
        "--lexical-translation", "{data}", "--set", "translations.aligner=ibm1", "--evidence", "numbers,names,copies",
    ],
}  # fmt: skip


# ---- what the sources say -----------------------------------------------------------------------------------------


@functools.cache
def code_lines(source: str) -> frozenset[int]:
    """Return the numbers of the lines with code, without docstrings, comments and blank lines."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            text = node.body[0]
            lines -= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return frozenset(lines)


def functions(source: str) -> Iterator[int]:
    """Return the lines of code in the body of each function."""
    lines = code_lines(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            yield len(lines.intersection(range(node.body[0].lineno, (node.end_lineno or 0) + 1)))


def sizes(folder: Path) -> dict[str, float]:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    lines = [len(code_lines(source)) for source in sources.values()]
    bodies = [body for source in sources.values() for body in functions(source)]
    short = sum(body <= SHORT for body in bodies)
    return {
        "files": len(lines), "code lines": sum(lines), "median lines of a file": statistics.median(lines),
        "functions": len(bodies), f"functions of at most {SHORT} lines": short,
    }  # fmt: skip


def outside_systems(folder: Path) -> list[Path]:
    """Return the sources outside systems and huggingface, which can be read separately."""
    apart = {"systems", "huggingface"}
    return [path for path in sorted(folder.rglob("*.py")) if path.relative_to(folder).parts[0] not in apart]


def name_of(base: ast.expr) -> str:
    """Return the name of a base class, without module and type arguments."""
    if isinstance(base, ast.Subscript):
        base = base.value
    return base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")


def assigned(statement: ast.stmt) -> list[str]:
    """Return the names that an assignment defines: `name`, or `self.name` without `self`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    flat = [each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
    named = (each.id if isinstance(each, ast.Name) else own_attribute(each) for each in flat)
    return [name for name in named if name]


def own_attribute(node: ast.AST | None) -> str:
    """Return `name` of `self.name` and `cls.name`, otherwise an empty string."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    return node.attr if is_own else ""  # type: ignore[union-attr]


def has_no_effect(function: ast.FunctionDef) -> bool:
    """Return whether a method raises NotImplementedError, or only returns a constant or an argument."""
    body = [line for line in function.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))]
    if len(body) > 1:
        return False
    if not body or isinstance(body[0], ast.Raise):
        return not body or "NotImplementedError" in ast.unparse(body[0])
    return isinstance(body[0], ast.Return) and not any(map(own_attribute, ast.walk(body[0])))


def hooks_of(kind: ast.ClassDef) -> Iterator[str]:
    """Yield the names of a class's hooks."""
    is_record = any("dataclass" in ast.unparse(decorator) for decorator in kind.decorator_list)
    for line in kind.body:
        if isinstance(line, ast.FunctionDef):
            found = [line.name] if has_no_effect(line) else []
        else:
            is_value = getattr(line, "value", None) is not None and not is_record  # otherwise a declaration of a type
            found = assigned(line) if is_value or "ClassVar" in ast.unparse(line) else []
        yield from (name for name in found if not name.startswith("_"))


def definitions(kind: ast.ClassDef) -> set[str]:
    """Return the names of the methods and attributes that a class defines."""
    methods = [line for line in kind.body if isinstance(line, ast.FunctionDef)]
    inside = [node for method in methods for node in ast.walk(method) if isinstance(node, ast.Assign | ast.AnnAssign)]
    of_self = {own_attribute(target) for node in inside for target in getattr(node, "targets", [node])}
    own = {name for line in kind.body for name in assigned(line)}
    return {method.name for method in methods} | own | of_self


def hooks_with_one_user() -> list[str]:
    """Return the hooks that one class defines again, as `Class.hook: user`."""
    classes: list[tuple[ast.ClassDef, bool]] = []  # and whether it is in an example
    for folder in (*CODE, ROOT / "examples"):
        for path in sorted(folder.rglob("*.py")):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            classes += [(node, folder not in CODE) for node in nodes if isinstance(node, ast.ClassDef)]

    def below(name: str) -> list[ast.ClassDef]:
        direct = [kind for kind, _ in classes if kind.name != name and name in map(name_of, kind.bases)]
        return [each for kind in direct for each in (kind, *below(kind.name))]

    found = []
    for kind, is_example in classes:
        if is_example or "Protocol" in map(name_of, kind.bases):
            continue
        users = {each.name: definitions(each) for each in below(kind.name)}
        for hook in hooks_of(kind):
            if len(names := [name for name, defined in users.items() if hook in defined]) == 1:
                found.append(f"{kind.name}.{hook}: {names[0]}")
    return sorted(found)


# ---- what a batch and a search step pass through --------------------------------------------------------------------


@dataclass
class Walk:
    """The called functions of this package, in order."""

    called: list[tuple[str, str]]  # file, qualified name

    def facts(self) -> dict[str, int]:
        files = [file for file, _ in self.called]
        folders = sorted(Path(file).relative_to(PACKAGE).parts[0] for file, _ in set(self.called))
        return {
            "files": len(set(files)), "functions": len(set(self.called)), "calls": len(files),
            "switches of file": sum(a != b for a, b in zip(files, files[1:], strict=False)),
            **{f"in {folder}": number for folder, number in Counter(folders).most_common()},
        }  # fmt: skip


@contextlib.contextmanager
def traced() -> Iterator[Walk]:
    """Record every call of a function of this package inside the block."""
    path, inside = Walk([]), str(PACKAGE)

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside) and not code.co_name.startswith("<"):
            path.called.append((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        yield path
    finally:
        sys.setprofile(None)


def quiet(command: Callable[[], object]) -> None:
    """Run a command without its output. Raises SystemExit if its status is not 0."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = command()
    if status:
        raise SystemExit(f"structure.py: a command ended with status {status}:\n{said.getvalue()}")


def make_world(place: Path) -> Path:
    """Write the invented bitext, binarised, and return the data folder."""
    from fairseq import options
    from fairseq_cli.preprocess import main as preprocess

    corpus = [sys.executable, str(ROOT / "scripts" / "make_corpus.py"), "--sentences", "400", "--bilingual"]
    subprocess.run([*corpus, "--out", str(place)], check=True, capture_output=True)
    arguments = ["--source-lang", "en", "--target-lang", "fr", "--destdir", str(place / "data-bin"), "--workers", "1"]
    for name, split in (("train", "train"), ("valid", "valid")):
        arguments += [f"--{name}pref", str(place / split)]
    quiet(lambda: preprocess(options.get_preprocessing_parser().parse_args(arguments)))
    return place / "data-bin"


def make_prior(data: Path, name: str, extra: list[str]) -> Path:
    from fairseq_llrnn.cli.main import main as llrnn

    made = ["prior", "--dict", str(data / "dict.fr.txt"), "--lexicon", str(data.parent / "lexicon.tsv"), "--out"]
    quiet(lambda: llrnn([*made, str(data / name), *(part.format(data=data) for part in extra)]))
    return data / name


def walk(data: Path, prior: Path) -> dict[str, dict[str, int]]:
    """Return facts about a batch to its loss, and about one step of a search."""
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    arguments = [str(data), "--source-lang", "en", "--target-lang", "fr", "--user-dir", str(PACKAGE), *SIZES.split()]
    arguments += ["--task", "llrnn_translation", "--prior", str(prior), "--criterion", "log_linear", "--cpu"]
    parsed = options.parse_args_and_arch(options.get_training_parser(), input_args=arguments)
    cfg = convert_namespace_to_omegaconf(parsed)
    task = tasks.setup_task(cfg.task)
    model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
    task.load_dataset("train")
    data_set = task.dataset("train")
    sample = data_set.collater([data_set[i] for i in range(8)])
    model.train()
    criterion(model, sample)  # what is made once has been made
    with traced() as batch:
        criterion(model, sample)
    model.eval()
    generator = task.build_generator([model], argparse.Namespace(beam=5, min_len=6, max_len_a=0, max_len_b=6))
    marks: list[int] = []
    with traced() as search:
        search_step = generator.model.forward_decoder

        def marked(*given: Any, **named: Any) -> Any:
            marks.append(len(search.called))
            return search_step(*given, **named)

        generator.model.forward_decoder = marked
        task.inference_step(generator, [model], sample)
    middle = len(marks) // 2
    return {"batch": batch.facts(), "search step": Walk(search.called[marks[middle] : marks[middle + 1]]).facts()}


def calls_of_a_prior() -> int:
    """Return the number of calls in `build_prior` of eight words. Call it in a process that has built no prior."""
    from fairseq_llrnn.prior import Recipe
    from fairseq_llrnn.prior.building import build_prior

    with tempfile.TemporaryDirectory() as scratch:
        (dictionary := Path(scratch) / "dict.txt").write_text("".join(f"w{i} {9 - i}\n" for i in range(8)))
        with traced() as building:
            build_prior(dictionary, Recipe())
    return len(building.called)


def options_of_prior() -> int:
    from fairseq_llrnn.cli.main import Parser, load

    return sum(bool(action.option_strings) for action in Parser(load("prior"))._actions)


def measure() -> dict[str, dict[str, Any]]:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    core = sum(len(code_lines(path.read_text(encoding="utf-8"))) for path in outside_systems(PACKAGE))
    of_core = {"code lines outside systems and huggingface": core}
    found: dict[str, dict[str, Any]] = {"package": sizes(PACKAGE) | of_core}
    found["research"] = sizes(CODE[1])
    found["tests"] = sizes(ROOT / "tests")
    found["hooks"] = {"with one user": len(hooks_with_one_user())}
    command = [sys.executable, __file__, "--prior"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found["prior of eight words"] = {"calls": json.loads(output.splitlines()[-1])}
    with tempfile.TemporaryDirectory() as temporary:
        data = make_world(Path(temporary))
        for name, extra in SETTINGS.items():
            prior = make_prior(data, name.split()[0], extra)
            if not extra:
                command = [sys.executable, __file__, "--imports", str(data), str(prior)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found["imports"] = {"modules of a plain translator": json.loads(output.splitlines()[-1])}
            for what, facts in walk(data, prior).items():
                found[f"{what}, {name}"] = facts
    found["options"] = {"of `llrnn prior`": options_of_prior()}
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    lines = ["| | |", "|---|---|"]
    for what, facts in found.items():
        lines.append(f"| {what} | " + ", ".join(f"{name}: {value:,}" for name, value in facts.items()) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--imports", nargs=2, metavar=("DATA", "PRIOR"), type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--prior", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--hooks", action="store_true", help="list the hooks with one user")
    parser.add_argument("--page", action="store_true", help="write the table into docs/design.md")
    args = parser.parse_args()
    if args.imports:
        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        walk(*args.imports)
        print(len([name for name in sys.modules if name.split(".")[0] == PACKAGE.name]))
        return 0
    if args.hooks:
        print(*hooks_with_one_user(), sep="\n")
        return 0
    if args.prior:
        print(calls_of_a_prior())
        return 0
    found = measure()
    if args.page:
        page = DESIGN.read_text(encoding="utf-8")
        before, rest = page.split(MARKS[0])
        DESIGN.write_text(f"{before}{MARKS[0]}\n{table(found)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")
    else:
        print(json.dumps(found, indent=1) if args.json else table(found))
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
