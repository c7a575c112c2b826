"""`llrnn completion`: scripts that shells accept, and what bash completes by them."""

import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from small_corpus import Llrnn

from fairseq_llrnn.cli.completion import SHELLS
from fairseq_llrnn.cli.main import COMMANDS, Parser, load

COMPLETE = """
eval "$(cat)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"$(complete -p llrnn | sed 's/.*-F \\([^ ]*\\) .*/\\1/')"
printf '%s\\n' "${COMPREPLY[@]}"
"""


needs_shtab = pytest.mark.skipif(find_spec("shtab") is None, reason="shtab is absent: pip install '.[completion]'")


@needs_shtab
@pytest.mark.parametrize("shell", SHELLS)
def test_every_sub_command_and_option_is_in_the_script(shell: str, llrnn: Llrnn) -> None:
    script = llrnn("completion", shell).out
    for name in COMMANDS:
        assert all(word in script for word in name.split())
        for action in Parser(load(name))._actions:
            assert all(option.lstrip("-") in script for option in action.option_strings)
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, "")


@needs_shtab
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["sc"], ["score"]),
        (["prior", "--count"], ["--count-text"]),
        (["text", "--words", "su"], ["surface"]),
        (["prior", "--conllu", "READ"], ["README.md"]),
        (["show", "doc"], ["docs"]),
        (["phra"], ["phrases"]),
        (["phrases", "extract", "--max"], ["--max-length"]),
    ],
)
def test_what_bash_completes(typed: list[str], expected: list[str], llrnn: Llrnn, root: object) -> None:
    command = ["bash", "--norc", "-c", COMPLETE, "bash", "llrnn", *typed]
    done = subprocess.run(command, input=llrnn("completion", "bash").out, text=True, capture_output=True, cwd=str(root))
    assert done.stdout.split() == expected, done.stderr


def test_without_its_library(llrnn: Llrnn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert llrnn("completion", "bash").error == (
        "llrnn completion: expected the library shtab, found none; in a checkout of fairseq_llrnn: pip install "
        "'.[completion]'"
    )
