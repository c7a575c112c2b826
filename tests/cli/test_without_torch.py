"""Commands that need no torch start without it: it costs a second and more."""

import subprocess
import sys
from pathlib import Path

from fairseq_llrnn.cli.main import all_commands

RUN = """
import shlex, sys
sys.modules["torch"] = None  # importing it is an error
from fairseq_llrnn.cli.main import main

for line in sys.stdin:
    try:
        status = main(shlex.split(line))
    except SystemExit as stop:  # of --help
        status = stop.code
    assert status == 0, line
"""

COMMANDS = """text --conllu train.conllu --out train.txt
dictionary --text train.txt --out dict.txt
prior --dict dict.txt --conllu train.conllu --suffixes 1 --count-text train.txt --out prior
show prior
show prior chat
prior --dict dict.txt --count-text train.txt --background 'ngram(2, folds=0)' --out ngrams
prior --dict dict.txt --count-text train.txt --open-vocabulary characters --set open_vocabulary.floor=9 --out open"""


def run(lines: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", RUN], input=lines, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help(tmp_path: Path) -> None:
    run("\n".join(["--help", "--version", *(f"{name} --help" for name in all_commands())]), tmp_path)


def test_from_a_treebank_to_a_prior_and_what_it_has(tmp_path: Path) -> None:
    rows = [f"{i}\t{word}\t{word}\t{tag}\t_\t_\t0\troot\t_\t_" for i, word, tag in
            ((1, "le", "DET"), (2, "chat", "NOUN"), (3, "dort", "VERB"))]  # fmt: skip
    (tmp_path / "train.conllu").write_text("\n".join([*rows, "", ""]), encoding="utf-8")
    run(COMMANDS, tmp_path)
