"""The rules of the layout, read from the source: who may import whom (docs/design.md).

* fairseq is imported by plugin alone, and by the file plugin.py (or the folder plugin) of a system;
* plugin and cli are imported by nobody below them; only cli and `fairseq_llrnn.register` import plugin, and of systems
  their plugin and their commands; only a system's commands, show.py and explain.py import cli;
* a system is imported by nobody but itself, so that its folder can be deleted;
* imports between packages, and between files, form no circle (type annotations included);
* the docstring of a package that lists its files lists all of them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "fairseq_llrnn"
FAIRSEQ = ("fairseq", "fairseq_cli")


def module_name(file: Path, root: Path) -> str:
    """`root/fairseq_llrnn/prior/prior.py` -> `fairseq_llrnn.prior.prior`."""
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(file: Path, root: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute name) of all that a file imports, functions and importlib calls included.

    `from a.b import c` yields a.b.c as well as a.b, because c may be a module.
    """
    package = module_name(file, root).split(".")
    if file.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"), str(file))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, node.module] if node.module else base)
            yield node.lineno, origin
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield node.lineno, str(node.args[0].value)


def within(name: str, *modules: str) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)


def forbidden(importer: str, imported: str) -> str | None:
    """The rule that this import breaks, or None."""
    plugin, cli, systems = (f"{PACKAGE}.{part}" for part in ("plugin", "cli", "systems"))
    in_system = within(importer, systems) and importer != systems
    own = ".".join(importer.split(".")[:3]) if in_system else ""  # fairseq_llrnn.systems.NAME
    if within(imported, *FAIRSEQ) and not within(importer, plugin, f"{own}.plugin"):
        return "only plugin (and a system's plugin.py) imports fairseq"
    if imported.startswith(systems + ".") and not within(imported, own):
        return "nobody imports a system but itself"
    if within(imported, cli) and not within(importer, cli, f"{own}.commands", f"{own}.show", f"{own}.explain"):
        return "nobody imports cli but itself"
    registers = importer == PACKAGE and within(imported, plugin)  # register() and load()
    if within(imported, plugin) and not within(importer, plugin, cli, systems, PACKAGE + ".__main__") and not registers:
        return "only cli, systems and register() import plugin"
    return None


def circles(root: Path) -> list[str]:
    """Packages below fairseq_llrnn that import each other in a circle, each circle once."""
    edges: dict[str, set[str]] = {}
    for file in sorted((root / PACKAGE).rglob("*.py")):
        own = file.relative_to(root / PACKAGE).parts
        if len(own) < 2 or (own[0] == "systems" and len(own) > 2):  # nobody imports a system: it closes no circle
            continue
        for _, imported in imports(file, root):
            other = imported.split(".")[1:2] if imported.startswith(PACKAGE + ".") else []
            if other and other[0] != own[0] and (root / PACKAGE / other[0]).is_dir():
                edges.setdefault(own[0], set()).add(other[0])
    found: list[str] = []
    done: set[str] = set()

    def visit(package: str, path: list[str]) -> None:
        if package in path:
            found.append(" > ".join([*path[path.index(package) :], package]))
        elif package not in done:
            for other in sorted(edges.get(package, ())):
                visit(other, [*path, package])
            done.add(package)

    for package in sorted(edges):
        visit(package, [])
    return found


def broken_rules(root: Path) -> list[str]:
    found = []
    for file in sorted((root / PACKAGE).rglob("*.py")):
        for line, imported in imports(file, root):
            rule = forbidden(module_name(file, root), imported)
            if rule is not None:
                found.append(f"{file.relative_to(root)}:{line} imports {imported}: {rule}")
    return found


def test_the_package_keeps_the_rules(root: Path) -> None:
    assert list((root / PACKAGE).rglob("*.py"))
    assert broken_rules(root) == []
    assert circles(root) == []


def file_circles(root: Path) -> list[str]:
    """Files that reach each other by imports: the names of each such group, without the package's."""
    files = {module_name(file, root): file for file in sorted((root / PACKAGE).rglob("*.py"))}
    edges: dict[str, set[str]] = {}
    for name, file in files.items():
        found = [(line, imported) for line, imported in imports(file, root) if imported in files]
        edges[name] = {
            imported
            for line, imported in found
            if imported != name and not any(at == line and other.startswith(f"{imported}.") for at, other in found)
        }  # `from a.b import c` is of a.b.c where that is a file
    reached: dict[str, set[str]] = {}
    for name in files:
        seen, waiting = set[str](), [name]
        while waiting:
            new = edges[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[name] = seen
    groups = {frozenset(other for other in seen if name in reached[other]) for name, seen in reached.items()}
    return sorted(" ".join(sorted(name.removeprefix(f"{PACKAGE}.") for name in group)) for group in groups if group)


def test_files_import_each_other_in_no_circle(root: Path) -> None:
    assert file_circles(root) == []


def missing_in_maps(root: Path) -> list[str]:
    """Where a package's docstring lists files, a line each: those that it lacks, and those that are not there."""
    found = []
    for init in sorted((root / PACKAGE).rglob("__init__.py")):
        text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        files = {file.name for file in init.parent.glob("*.py")} - {"__init__.py"}
        if len(re.findall(r"^\s*\w+\.py\b", text, re.MULTILINE)) > 1:
            named = set(re.findall(r"(?<!/)\b(\w+\.py)\b", text))
            found += [f"{init.relative_to(root)} lists {name}, which is not there" for name in sorted(named - files)]
            found += [f"{init.relative_to(root)} does not list {name}" for name in sorted(files - named)]
    return found


def test_lists_of_files_are_complete(root: Path) -> None:
    assert missing_in_maps(root) == []


def starting_fairseq(root: Path) -> list[str]:
    """Tests that `make test-newest` runs where fairseq is absent, and what they share, that import it or plugin."""
    listed = re.search(r"addprefix tests/,([\w,]+)", (root / "Makefile").read_text(encoding="utf-8"))
    assert listed
    shared = {file.stem: file for file in (root / "tests/support").glob("*.py")}
    waiting = [file for folder in listed[1].split(",") for file in sorted((root / "tests" / folder).glob("*.py"))]
    found = []
    for file in waiting:  # which grows by what its files import
        for line, imported in imports(file, root):
            if within(imported, *FAIRSEQ, f"{PACKAGE}.plugin"):
                found.append(f"{file.relative_to(root)}:{line} imports {imported}")
            if imported in shared and shared[imported] not in waiting:
                waiting.append(shared[imported])
    return found


def test_what_runs_without_fairseq_imports_none(root: Path) -> None:
    assert starting_fairseq(root) == []


@pytest.mark.parametrize(
    ("file", "source", "rule"),
    [
        ("output/a.py", "import fairseq.utils", "only plugin"),
        ("output/deep/a.py", "from ...cli import main", "nobody imports cli"),
        ("plugin/a.py", "from fairseq_llrnn.cli import main", "nobody imports cli"),
        ("head/a.py", "def f():\n    from fairseq_llrnn import plugin", "only cli, systems and register()"),
        ("output/a.py", "import importlib\nimportlib.import_module('fairseq')", "only plugin"),
        ("cli/a.py", "from fairseq.tasks import FairseqTask", "only plugin"),
        ("errors.py", "import fairseq_cli.train", "only plugin"),
        ("systems/one/math.py", "import fairseq", "only plugin"),
        ("systems/one/plugin.py", "from ..two import plugin", "nobody imports a system"),
        ("plugin/a.py", "from fairseq_llrnn.systems.one import plugin", "nobody imports a system"),
        ("plugin/a.py", "from fairseq_llrnn.systems import one", "nobody imports a system"),
        ("systems/one/math.py", "from fairseq_llrnn.cli import tables", "nobody imports cli"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, file: str, source: str, rule: str) -> None:
    target = tmp_path / PACKAGE / file
    target.parent.mkdir(parents=True)
    target.write_text(source + "\n", encoding="utf-8")
    found = broken_rules(tmp_path)
    assert found
    assert all(rule in line and line.startswith(f"{PACKAGE}/{file}:") for line in found)
