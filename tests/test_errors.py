"""Messages: one line, whatever they quote."""

import pytest

from fairseq_llrnn.errors import LONGEST_MESSAGE, DataError, OptionError, PriorError, as_one_line, check_unused_options

LONG = "x" * 10_000


@pytest.mark.parametrize("kind", [DataError, OptionError, PriorError])
@pytest.mark.parametrize("value", [LONG, "x y " * 2_500, 'it\'s a "x" ' * 1_000, "\\" * 10_000, "a/ b" * 3_000])
def test_quoted_values_are_cut(kind: type[Exception], value: str) -> None:
    said = str(kind(f"FILE, line 3: expected a word, found {value!r}; fix it"))
    assert len(said) <= 140 and said.startswith("FILE, line 3: expected a word, found ") and said.endswith("…'; fix it")


@pytest.mark.parametrize("value", [LONG, "x y " * 2_500, "a'b c" * 2_000, "a/b/" * 3_000, "\n" * 9_000, "' " * 5_000])
def test_values_without_quotation_marks(value: str) -> None:
    said = str(DataError(f"--option {value}: expected a word; give one"))
    assert len(said) <= LONGEST_MESSAGE
    assert said.startswith("--option ") and said.endswith(": expected a word; give one")
    assert said.isprintable() and as_one_line(said) == said


@pytest.mark.parametrize("name", ["dict.txt", "my words.txt"])
def test_what_is_as_long_as_usual_stays(name: str) -> None:
    path = f"/{'folder/' * 30}{name}"
    said = f"{path}, line 3: expected the file {path!r}, found users' 'own' data in the model's place; it's wrong"
    assert str(DataError(said)) == said


def test_what_a_terminal_would_obey_is_written_as_escapes() -> None:
    assert str(DataError("a\nb\x1b[2J\ud800\u202e")) == "a\\nb\\x1b[2J\\ud800\\u202e"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": None, "b": [], "some_width": 3, "z": 1}, "--some-width 3: expected c"),
        ({"flag": True}, "--flag: expected c"),
        ({"zero": 0}, "--zero 0: expected c"),
    ],
)
def test_the_first_option_that_does_nothing_is_named(given: dict[str, object], said: str) -> None:
    with pytest.raises(OptionError) as error:
        check_unused_options(given, "expected c")
    assert str(error.value) == said


def test_options_that_are_not_given_are_not_refused() -> None:
    check_unused_options({"a": None, "b": []}, "expected c")
