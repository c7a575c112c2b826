"""Check commands in code blocks of pages and in runs: their scripts and options exist, also at the commit of a run."""

import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ledger import LEDGER, NOT_RECORDED, PUBLISHED

CODE = re.compile(r"^```(\w*)\n(.*?)^```$|((?:^ {4,}\S[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"--[a-z][\w-]*")
SCRIPT = re.compile(r"^ *(?:\w+=(?:\S|\"[^\"]*\")+ )*(?:python|bash) ((?:examples|scripts)/[\w/]+\.(?:py|sh))")


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command in the code blocks of a page that calls a script of this repository."""
    for block in scripts_in(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield from called_scripts(line)


def scripts_in(text: str) -> Iterator[str]:
    """Yield the code blocks of a page that name no other language than bash."""
    yield from (indented or code for language, code, indented in CODE.findall(text) if language in ("", "bash"))


def called_scripts(line: str) -> Iterator[list[str]]:
    for part in re.split(r"&&|[;|]", line.split(" #")[0]):
        if found := SCRIPT.match(part):
            yield [found[1], *shlex.split(part[found.end() :])]


def check_command(words: list[str], root: Path) -> str | None:
    """Return what is wrong with a command, or None. Words after `--` are options of another program."""
    script = root / words[0]
    if not script.is_file():
        return f"{words[0]}: expected a script of this repository, found no such file"
    if '"$@"' in (source := script.read_text("utf-8")):  # passes its arguments on
        return None
    source += "".join(path.read_text("utf-8") for path in script.parent.glob("*.py"))
    known = {*OPTION.findall(source), "--help"}
    own = words[: words.index("--")] if "--" in words else words
    unknown = {word.partition("=")[0] for word in own if OPTION.match(word)} - known
    return f"{words[0]}: expected options that its source has, found {', '.join(sorted(unknown))}" if unknown else None


def wrong_commands(root: Path, runs: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each command of a page or a run that names a missing script or option."""
    folders = [root / "docs", root / "examples", root / "fairseq_llrnn", root / "research"]
    pages = [root / "README.md", *(page for folder in folders for page in sorted(folder.rglob("*.md")))]
    found = {str(page.relative_to(root)): [*commands(page.read_text("utf-8"))] for page in pages}
    commands_at = sorted({(run["command"], run["commit"]) for run in runs})
    found[LEDGER] = [
        words
        for command, commit in commands_at
        for words in called_scripts(command)
        # a run with a commit has the script of that commit (`wrong_commits`), which may have moved since
        if commit in (NOT_RECORDED, PUBLISHED) or (root / words[0]).is_file()
    ]
    for name, calls in found.items():
        yield from (f"{name}: {wrong}" for words in calls if (wrong := check_command(words, root)))


def wrong_commits(root: Path, runs: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each commit of runs that the branch lacks, or that lacks the script of the command.

    A commit of another branch is missing in a clone. A copy without the whole history is not checked.
    """
    if git(root, "rev-parse", "--is-shallow-repository") != "false":
        return
    calls = {(run["commit"], words[0]) for run in runs for words in called_scripts(run["command"])}
    known = {
        commit: git(root, "merge-base", "--is-ancestor", commit, "HEAD") is not None
        for commit in {run["commit"] for run in runs} - {NOT_RECORDED, PUBLISHED}
    }
    for commit in sorted(commit for commit, is_known in known.items() if not is_known):
        yield f'{LEDGER}: expected a commit of this branch, found {commit}; write "{NOT_RECORDED}"'
    for commit, script in sorted(calls):
        if known.get(commit) and git(root, "cat-file", "-e", f"{commit}:{script}") is None:
            yield f'{LEDGER}: expected {script} in commit {commit}, found no such file; write "{NOT_RECORDED}"'


def git(root: Path, *arguments: str) -> str | None:
    """Return the output of a git command, or None if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout.strip()
