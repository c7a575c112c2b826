"""scripts/compound_reach.py: which compounds of a reference translations of adjacent source words could form."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from example_modules import SCRIPTS, load

(script,) = load(SCRIPTS, "compound_reach")

WORDS = Counter("spiel haus spielhaus arbeit anzug arbeitsanzug schule tasche schultasche tag zeit arbeitszeit".split())
TEXTS = {  # by option
    "train-source": "play house\nplay\nhouse\n",
    "train": "spiel haus\nspiel\nhaus\n",
    "source": "a play house\n",
    "reference": "ein spielhaus\n",
}


def test_a_compound_is_two_known_words_and_an_element() -> None:
    assert set(script.splits("arbeitsanzug", WORDS, ["", "s", "-e"])) == {("s", ("arbeit", "anzug"))}
    assert set(script.splits("schultasche", WORDS, ["", "s", "-e"])) == {("-e", ("schule", "tasche"))}
    assert not set(script.splits("zeitvertreib", WORDS, ["", "s", "-e"]))
    assert {"", "s", "-e"} <= set(script.learned_elements(WORDS))


def test_parts_of_adjacent_source_words_are_in_reach() -> None:
    translations = {"play": ["spiel", "tag"], "house": ["haus"], "work": ["arbeit"], "suits": ["anzuge"]}
    pairs = [
        (["a", "play", "house"], ["ein", "haustag", "hausspiel", "haus"]),  # ein is unseen and no compound
        (["work", "in", "a", "house"], ["arbeitshaus"]),  # not adjacent
        (["work", "suits"], ["arbeitanzug"]),  # in reach of stems
    ]
    row = script.reach(pairs, WORDS, ["", "s"], translations, 2)
    assert [row[name] for name in ("unseen", "compounds", "adjacent", "anywhere")] == [5, 4, 2, 3]
    assert 0 < row["bleu"] < 100
    assert script.reach(pairs, WORDS, ["", "s"], translations, 1)["adjacent"] == 1
    assert script.reach(pairs, WORDS, ["", "s"], translations, 2, script.stem)["adjacent"] == 3


def options_of(folder: Path) -> list[str]:
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return [option for name in TEXTS for option in (f"--{name}", str(folder / name))]


def test_the_command_prints_a_table_or_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of(tmp_path)
    monkeypatch.setattr(sys, "argv", ["compound_reach.py", *options])
    assert script.main() == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["linking", "K", "3", "5", "10"]
    monkeypatch.setattr(sys, "argv", ["compound_reach.py", *options, "--splitter", "compound-split"])
    monkeypatch.setattr(script.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        script.main()
    assert "pip install compound-split" in capsys.readouterr().err
    (tmp_path / "reference").write_text("ein spielhaus\nein haus\n")
    monkeypatch.setattr(sys, "argv", ["compound_reach.py", *options])
    assert script.main() == 2
    assert "reference" in capsys.readouterr().err
