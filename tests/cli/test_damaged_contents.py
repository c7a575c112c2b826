"""Damaged contents of a file are refused in one line, with file and line, and leave what is at --out as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairseq_llrnn.cli.main import main
from fairseq_llrnn.cli.prior import command
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.settings import keys

TREEBANK = "1\tle\tle\tDET\t_\t_\t0\t_\t_\t_\n2\tla\n"
ARPA = "\\data\\\nngram 1=3\nngram 2=2\n\n\\1-grams:\n-1.0\tle\t-0.3\n-1.0\tla\n"
DAMAGED = {  # keys of recipes, and backgrounds: contents, and what is said behind the name of the file
    "dictionary": ("le 3\nla\n", ", line 2: expected `symbol count`, found 'la'"),
    "text": (b"le la\nle \xff\n", ", line 2, byte 4: expected UTF-8"),
    "patterns": ("[patterns]\nodd = \n", ": is not TOML: .*at line 2,"),
    "source_dictionary": ("the 3\nhouse\n", ", line 2: expected `symbol count`, found 'house'"),
    "words.conllu": (TREEBANK, ", line 2: expected 10 columns separated by tabs, found 2 columns"),
    "words.lexicon": ("le\tle\tDET\t_\nla\tle\n", ", line 2: expected 4 columns, as in the rows before"),
    "words.unimorph": ("le\tle\tN;SG\nla\tla\n", ", line 2: expected at least 3 columns"),
    "words.values": ("le\tLength:n\t2\nla\tLength:n\ttwo\n", ", line 2: expected a number as value of 'Length:n'"),
    "words.morphemes": ("le\tl e\nla\tl o\n", ", line 2: expected segments that spell the word 'la', found 'l o'"),
    "evidence.mapping": ("the\tle\nhouse\n", ", line 2: expected "),
    "open_vocabulary.lexicon": ("le\t3\nla\ttwo\n", ", line 2: expected a count or frequency from 0 to "),
    "a table": ("le\t3\nla\n", ", line 2: expected `word<TAB>weight`"),
    "ngram": (ARPA, ", line 7: expected 3 1-grams, as in .*, found 2; the file is cut short"),
    "automaton": ("0 1 le\n1 0 la x\n", ", line 2: expected a number as weight"),
}
BESIDE = {
    "source_dictionary": ["evidence.kinds=numbers"], "evidence.mapping": ["source_dictionary=dict.txt"],
    "open_vocabulary.lexicon": ["open_vocabulary.kind=characters"],
}  # fmt: skip
ELSEWHERE = {  # where the same is tested
    "words.hunspell": "tests/lexicon/test_hunspell.py", "words.apertium": "tests/lexicon/test_readers_apertium.py",
    "translations.data": "tests/cli/lexical/test_prior_lexical_refused.py",
    "translations.source_lexicon": "as words.lexicon, by the same reader",
}  # fmt: skip


def test_every_key_is_here() -> None:
    assert {key.name for key in keys(Recipe) if key.is_path} == (DAMAGED.keys() & {k.name for k in keys(Recipe)}) | {
        *ELSEWHERE
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("name", "seconds"), [*((name, 0.0) for name in DAMAGED), ("dictionary", 1e9)])
def test_it_is_one_line_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, seconds: float
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "LONG", seconds)
    Path("dict.txt").write_text("le 3\nla 2\n", encoding="utf-8")
    assert main("prior --dict dict.txt --out prior".split()) == 0
    damaged, said = DAMAGED[name]
    Path("damaged").write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    before = contents(tmp_path)
    background = {"a table": "damaged", "ngram": "ngram:damaged", "automaton": "automaton:damaged"}.get(name)
    setting = f"{name}=damaged" if background is None else f"background={background}"
    capsys.readouterr()
    start = ["prior", "--set", setting, *BESIDE.get(name, []), "--out", "prior"]
    assert main([*start, *([] if name == "dictionary" else ["--dict", "dict.txt"])]) == 2
    lines = capsys.readouterr().err.splitlines()
    (line,) = (line for line in lines if not line.startswith("warning: "))
    assert re.match(f"llrnn: error: damaged{said}", line), line
    assert line.endswith("; nothing was written: prior is unchanged") == (seconds == 0.0)
    assert contents(tmp_path) == before
