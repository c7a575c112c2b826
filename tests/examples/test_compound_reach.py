"""compound_reach.py: which compounds of a reference translations of adjacent source words could form."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from example_modules import EXAMPLES, load

(script,) = load(EXAMPLES / "translation", "compound_reach")

WORDS = Counter("spiel haus spielhaus arbeit anzug arbeitsanzug schule tasche schultasche tag zeit arbeitszeit".split())
TRAIN = [  # Wortspiel is split, because its parts are more frequent
    *[("word", "wort"), ("play", "spiel"), ("house", "haus")] * 3,
    *[("word play", "wortspiel"), ("blue", "blau"), ("home", "hause")],
]
TEXT = [("a play house", "ein spielhaus"), ("play house", "spielhause"), ("blue", "blau")]


def test_a_compound_is_two_known_words_and_an_element() -> None:
    assert set(script.splits("arbeitsanzug", WORDS, ["", "s", "-e"])) == {("s", ("arbeit", "anzug"))}
    assert set(script.splits("schultasche", WORDS, ["", "s", "-e"])) == {("-e", ("schule", "tasche"))}
    assert not set(script.splits("zeitvertreib", WORDS, ["", "s", "-e"]))


def test_frequent_elements_are_learned() -> None:
    parts = ["haus", *(f"{a}{b}wort" for a in "abcdefghijk" for b in "abcdefghijk")]
    compounds = [f"{part}haus" for part in parts[1:]] + ["abwortthaus"]  # 121 without an element, one with t
    assert script.learned_elements(Counter(parts + compounds)) == [""]
    assert script.learned_elements(Counter(parts + compounds[-2:])) == ["", "t"]


def test_a_word_is_split_if_its_parts_are_more_frequent() -> None:
    split = script.by_counts(Counter(spiel=4, haus=4, spielhaus=3, arbeit=1, arbeitshaus=3), ["", "s"])
    assert split("spielhaus") == ("spiel", "haus")
    assert split("arbeitshaus") is None  # the mean is 2


def test_the_package_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("compound_split.char_split")
    package.split_compound = lambda word: [(1.0 if word == "spielhaus" else -1.0, "Spiel", "Haus")]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "compound_split", ModuleType("compound_split"))
    monkeypatch.setitem(sys.modules, "compound_split.char_split", package)
    split = script.by_package(Counter(spiel=1, haus=1, arbeit=1), ["", "s"])
    assert split("spielhaus") == ("spiel", "haus")
    assert split("arbeitshaus") is None


def test_words_match_by_stem() -> None:
    for part, translation, is_same in (
        ("tasche", "taschen", True),
        ("anzug", "anzuge", True),
        ("haus", "hauses", True),
        ("haus", "hausboot", False),
        ("rad", "rades", False),
        ("rad", "rad", True),
    ):
        assert script.is_same_stem(part, translation) == is_same


def test_parts_of_adjacent_source_words_are_in_reach() -> None:
    translations = {"play": ["spiel", "tag"], "house": ["haus"], "work": ["arbeit"], "suits": ["anzuge"]}
    pairs = [
        (["a", "play", "house"], ["ein", "haustag", "hausspiel", "haus"]),  # ein is unseen and no compound
        (["work", "a", "house"], ["arbeitshaus"]),  # two words apart
        (["work", "suits"], ["arbeitanzug"]),  # in reach of stems
    ]
    elements = ["", "s"]

    def counts(k: int, match: Callable[[str, str], bool]) -> list[float]:
        row = script.reach(pairs, WORDS, elements, translations, k, match)
        return [row[name] for name in ("unseen", "compounds", "adjacent", "anywhere")]

    assert counts(2, str.__eq__) == [5, 4, 2, 3]
    assert counts(1, str.__eq__) == [5, 4, 1, 2]
    assert counts(2, script.is_same_stem) == [5, 4, 3, 4]
    row = script.reach(pairs[:1], WORDS, ["", "s", "-e"], translations, 1, str.__eq__)
    strings = "spielspiel spielsspiel spielshaus hausspiel haussspiel haushaus hausshaus"  # spielhaus is known
    assert row["strings"] == len(strings.split())
    # ein haustag <unk> haus: 3 of 4 words, 1 of 3 pairs, none of 2 and of 1 (1/2 and 1/4 instead)
    assert row["bleu"] == pytest.approx(100 * (3 / 4 * 1 / 3 * 0.5 / 2 * 0.25 / 1) ** 0.25)


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    found = []
    sides = ("train-source", TRAIN, 0), ("train", TRAIN, 1), ("source", TEXT, 0), ("reference", TEXT, 1)
    for name, pairs, side in sides:
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
        found += [f"--{name}", str(tmp_path / name)]
    return found


@pytest.mark.parametrize(("more", "in_reach"), [([], "1"), (["--stems"], "2")])
def test_the_command_prints_a_table(
    more: list[str],
    in_reach: str,
    options: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["compound_reach.py", *options, "--aligner", "ibm1", *more])
    assert script.main() == 0
    elements, _, *rows = capsys.readouterr().out.splitlines()
    assert elements == "linking elements: none"
    assert [row.split()[:5] for row in rows] == [[k, "3", "2", in_reach, in_reach] for k in ("3", "5", "10")]


@pytest.mark.parametrize("name", ["train", "reference"])
def test_texts_have_sentences_and_the_same_length(
    name: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compound_reach.py", *options])
    (tmp_path / name).write_text("")
    assert script.main() == 2
    assert capsys.readouterr().err.startswith("compound_reach.py: error: ")
    source = {"train": "train-source", "reference": "source"}[name]
    (tmp_path / source).write_text("")
    assert script.main() == 2
    assert f"{source}: expected sentences, found none; give another text" in capsys.readouterr().err


def test_a_missing_package(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compound_reach.py", *options, "--splitter", "compound-split"])
    monkeypatch.setattr(script.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        script.main()
    assert "pip install compound-split" in capsys.readouterr().err
