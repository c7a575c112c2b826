"""A virtual environment that has a wheel, and of this one's packages only those that the wheel's metadata asks for.

What is installed here is linked and not installed again: it takes a second, and nothing is downloaded. A package that
the metadata forgets is absent, as it would be for a user.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from shell import Result, run_script

LEFT_OUT = {"torchaudio"}  # fairseq asks for it; scripts/setup.sh says why it is not here


class Environment:
    """Made at `place`, with `wheel` and what it needs, alone or with some of its extras."""

    def __init__(self, place: Path, wheel: Path, extras: Iterable[str] = ()) -> None:
        venv.create(place, symlinks=True)
        self.programs = place / "bin"
        self.packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(place), "platbase": str(place)}))
        pip = (sys.executable, "-m", "pip", "--python", self.programs / "python", "--disable-pip-version-check")
        run_script(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, variables={"PYTHONPATH": ""})
        (installed,) = self.packages.glob("fairseq_llrnn-*.dist-info")
        for needed in _needs(PathDistribution(installed), set(extras)):
            self._link(needed)

    def _link(self, package: Distribution) -> None:
        assert package.files is not None
        for name in sorted({file.parts[0] for file in package.files} - {"..", "__pycache__"}):
            if not (self.packages / name).exists():
                os.symlink(package.locate_file(name), self.packages / name)
        for command in package.entry_points.select(group="console_scripts"):
            program = self.programs / command.name
            program.write_text(
                f"#!{self.programs / 'python'}\nimport sys\nfrom {command.module} import {command.attr}\n"
                f"sys.exit({command.attr}())\n"
            )
            program.chmod(0o755)

    def run(self, line: str, cwd: Path) -> Result:
        """Run bash in the activated environment, which knows neither the checkout nor this Python's packages."""
        path = f"{self.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        hidden = {"PYTHONPATH": "", "VIRTUAL_ENV": str(self.programs.parent), "PATH": path}
        return run_script("bash", "-euxo", "pipefail", "-c", line, cwd=cwd, variables=hidden)


def _needs(package: Distribution, extras: set[str], done: set[tuple[str, str]] | None = None) -> Iterator[Distribution]:
    """What a package with these extras needs, directly or not; checks that the versions here are in its ranges."""
    done = set() if done is None else done
    for requirement in map(Requirement, package.requires or ()):
        asked = requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in {"", *extras})
        key = (requirement.name, ",".join(sorted(requirement.extras)))
        if not asked or requirement.name in LEFT_OUT or key in done:
            continue
        done.add(key)
        found = distribution(requirement.name)
        assert requirement.specifier.contains(found.version, prereleases=True), f"{requirement}, here {found.version}"
        yield found
        yield from _needs(found, requirement.extras, done)
