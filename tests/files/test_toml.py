"""TOML of users is read within limits: input that fills the memory or the stack is rejected with one line."""

import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from prior_of_words import build

from fairseq_llrnn.cli.main import main
from fairseq_llrnn.errors import LLRNNError
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.files import toml
from fairseq_llrnn.files.toml import LONGEST, parsed_toml
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe_file import read_recipe

PARTS, WORD = "more than 8 parts in a key", "more than 1,000 characters in a number or key"
BRACKETS = "too many nested brackets"
MANY = "a." * 20_000 + "b"
HOSTILE = {
    "dots": (f'{MANY} = "x"', PARTS),
    "dots between quotes": ('"a" . ' * 20_000 + "b = 1", PARTS),
    "dots of literals": ("'a'." * 20_000 + "b = 1", PARTS),
    "a header": (f"[{MANY}]", PARTS),
    "headers of lists": (f"[[{MANY}]]", PARTS),
    "dots in a table in a line": (f"a = {{{MANY} = 1}}", PARTS),
    "behind a comment with a quote": (f'# "\n{MANY} = 1', PARTS),
    "behind four quotes": (f'a = [{{b = """x"""", {MANY} = "y"}}]', PARTS),
    "behind four apostrophes": (f"a = [{{b = '''x'''', {MANY} = 'y'}}]", PARTS),
    "behind an escaped quote": (f'a = "\\""\n{MANY} = "y"', PARTS),
    "behind a literal that ends in a backslash": (f"a = '\\'\n{MANY} = 'y'", PARTS),
    "brackets": ("a = " + "[" * 20_000, BRACKETS),
    "tables in one another": ("a = " + "{a=" * 20_000, BRACKETS),
    "digits": ("a = " + "1" * 5_000, WORD),
    "digits with signs between": ("a = -" + "1_" * 5_000 + "1", WORD),
    "digits of a list": ("a = [1, " + "1" * 5_000 + "]", WORD),
    "hexadecimal digits": ("a = 0x" + "f" * 5_000, WORD),  # Python reads them, and does not write the number
    "binary digits": ("a = 0b" + "1" * 50_000, WORD),
    "a long name": ("a" * 5_000 + " = 1", WORD),
    "strings without an end": ('a = """' + '\\"""' * 50_000, "Unterminated string"),
    "quotes": ('"' * 200_000, "Expected '='"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_would_fill_the_memory_or_end_in_a_trace_is_refused(name: str) -> None:
    text, said = HOSTILE[name]
    begun = time.process_time()
    with pytest.raises(ValueError, match=said):
        parsed_toml(text)
    assert time.process_time() - begun < 2


def test_the_line_is_said() -> None:
    with pytest.raises(ValueError, match=r"more than 8 parts in a key \(at line 3\)"):
        parsed_toml("a = '''\n'''\na.a.a.a.a.a.a.a.a = 1")


@pytest.mark.parametrize(
    "text",
    [
        "a.a.a.a.a.a.a.a = 1.5\n[b.b.b.b.b.b.b.b]",
        "a = '" + "." * 5_000 + "a.b.c.d.e.f.g.h.i.j.k'  # a.b.c.d.e.f.g.h.i.j.k",
        'a = "\\"a.b.c.d.e.f.g.h.i.j.k"\nb = """\na.b.c.d.e.f.g.h.i.j.k"""""\nc = 1979-05-27T07:32:00.999',
        "a = '''\n'a.b.c.d.e.f.g.h.i.j.k'''''\nb = [0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0]",
        "a = " + "9" * 1_000 + "\nb = '" + "x" * 5_000 + "'\n",
        "a = " + "[" * 100 + "]" * 100,
        "",
    ],
)
def test_ordinary_texts_are_read_as_python_reads_them(text: str) -> None:
    assert parsed_toml(text) == tomllib.loads(text)


READERS: dict[str, Callable[[Path], object]] = {"patterns": UserPatterns.load, "a recipe": read_recipe}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_of_a_file_says_it_in_one_line(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for name, (text, _) in HOSTILE.items():
        path.write_text(("[patterns]\n" if reader == "patterns" and text[0] != "[" else "") + text, encoding="utf-8")
        with pytest.raises(LLRNNError) as error:
            READERS[reader](path)
        said = str(error.value)
        assert said.startswith(f"{path}: ") and len(said) < 400 and "set_int_max" not in said, name
    path.write_text("#" * (LONGEST + 1), encoding="utf-8")
    with pytest.raises(LLRNNError, match=f"a.toml: expected at most {LONGEST:,} bytes, found more; is it the right"):
        READERS[reader](path)


@pytest.mark.parametrize("value", ["[" * 300 + "]" * 300, "0x" + "f" * 990, "{a=" * 200 + "1" + "}" * 200, "9" * 999])
def test_large_values_that_are_read_are_named_in_one_line(value: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for reader, table in (("patterns", "patterns"), ("a recipe", "words"), ("a recipe", "evidence")):
        path.write_text(f"[{table}]\nlanguage = {value}\nweight = {value}", encoding="utf-8")
        with pytest.raises(LLRNNError, match=r"a\.toml: ") as error:
            READERS[reader](path)
        assert len(str(error.value)) < 1000


def test_many_wrong_keys_are_refused_soon(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("".join(f"{i} = 1\n" for i in range(20_000)), encoding="utf-8")
    begun = time.process_time()
    with pytest.raises(LLRNNError, match="there is no key 0"):
        read_recipe(tmp_path / "a.toml")
    assert time.process_time() - begun < 10  # each key was looked for among all, 30 s


@pytest.mark.parametrize("name", ["dots", "brackets", "digits", "hexadecimal digits"])
def test_a_prior_with_such_a_recipe_is_saved_without_it(name: str, tmp_path: Path) -> None:
    build().save(tmp_path / "prior")
    (tmp_path / "prior" / "recipe.toml").write_text(HOSTILE[name][0], encoding="utf-8")
    Prior.load(tmp_path / "prior").save(tmp_path / "again")
    assert not (tmp_path / "again" / "recipe.toml").exists()
    Prior.load(tmp_path / "again")


@pytest.mark.parametrize("value", ["1" * 5_000, "[" * 20_000, "0x" + "f" * 5_000, "{" + MANY + "=1}"])
def test_values_of_set_that_are_none(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dict.txt").write_text("le 2\n", encoding="utf-8")
    given = ["--dict", str(tmp_path / "dict.txt"), "--out", str(tmp_path / "p"), "--set", f"identity_floor={value}"]
    assert main(["prior", *given]) == 2
    said = capsys.readouterr().err
    assert "--set identity_floor: expected a whole number, found " in said and said.count("\n") == 1


def test_a_possible_key_ends_before_a_point_without_a_part() -> None:
    """Python 3.11.2 read the point, since a possessive group did not go back."""
    found = {text: toml._KEY.match(text) for text in ("a. = 1", "a.b. = 1", "a .b . ]")}
    assert [match and match.group() for match in found.values()] == ["a", "a.b", "a .b"]
