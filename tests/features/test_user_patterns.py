"""The user's own regular expressions: what they match, and everything that can be wrong with the file."""

import time
from pathlib import Path

import pytest

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.spelling import SECONDS_AT_ONCE, UserPatterns

GOOD = r"""
# Patterns of our own.
[patterns]
ordinal = '\d+(er|re|e|es)'
"has digit" = "x"
url = "(https?://|www\\.).*"
"""


def load(tmp_path: Path, text: str) -> UserPatterns:
    path = tmp_path / "patterns.toml"
    path.write_text(text, encoding="utf-8")
    return UserPatterns.load(path)


def test_whole_words_match(tmp_path: Path) -> None:
    patterns = load(tmp_path, GOOD.replace('"has digit"', "digit"))
    assert patterns.names == ["ordinal", "digit", "url"]
    assert patterns.features("3e") == {"Pattern:ordinal": 1.0}
    assert patterns.features("www.exemple.fr") == {"Pattern:url": 1.0}
    assert patterns.features("le3e") == patterns.features("3eme") == patterns.features("") == {}


def test_several_patterns_can_match(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\na = 'x.*'\nb = '.*y'\n")
    assert patterns.features("xy") == {"Pattern:a": 1.0, "Pattern:b": 1.0}
    patterns.check_used(["xz", "zy"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[patterns]\na = 'x\nb = 'y'\n", r"patterns.toml: is not TOML: .*\(at line 2.*; expected a table "
         r"\[patterns\]"),
        ('[patterns]\na = "\\d"\n', "is not TOML: .*line 2.*single quotes keep backslashes as they are"),
        ("[patterns]\na = 'x'\na = 'y'\n", "is not TOML: .*line 3"),
        ("", r"with lines  name = 'regular expression', and nothing else; found nothing"),
        ("a = 'x'\n", r"expected a table \[patterns\].* found 'a'"),
        ("patterns = 'x'\n", r"expected a table \[patterns\].* found 'patterns'"),
        ("[patterns]\na = 'x'\n[more]\n", r"and nothing else; found 'patterns', 'more'"),
        ("[patterns]\n", r"there is no pattern in it; expected a table \[patterns\]"),
        ("[patterns]\na = 3\n", "pattern 'a' is 3; expected a regular expression in quotes"),
        ("[patterns]\na = ['x']\n", r"pattern 'a' is \['x'\]; expected a regular expression in quotes"),
        ("[patterns]\n[patterns.a]\nb = 'x'\n", "pattern 'a' is {'b': 'x'}; expected a regular expression"),
        (GOOD, "'has digit' cannot name a pattern; use a name without spaces"),
        ("[patterns]\n'' = 'x'\n", "'' cannot name a pattern"),
        ("[patterns]\na = 'x'\nbad = 'abc('\n", r"pattern 'bad' is no regular expression: missing \) at character 5 of "
         r"'abc\('"),
        ("[patterns]\na = '*a'\n", r"pattern 'a' is no regular expression: nothing to repeat at character 1 of '\*a'"),
        ("[patterns]\na = '" + "(" * 5000 + "x" + ")" * 5000 + "'\n", "pattern 'a' is too deep or too large to "
         "compile"),
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        load(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "patterns.toml"))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none.toml: cannot be read: No such file .*; expected a table \[patterns\]"):
        UserPatterns.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes("[patterns]\na = 'é'\n".encode("latin-1"))
    with pytest.raises(OptionError, match="latin.toml: expected UTF-8, found the byte 0xe9 at byte 17; convert"):
        UserPatterns.load(str(tmp_path / "latin.toml"))


def test_a_pattern_that_matches_nothing_is_named(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\na = 'x.*'\nb = 'Y'\nc = 'Z'\n")
    message = r"patterns.toml: pattern 'b' \('Y'\) matches no word of the vocabulary; .*; fix or remove it"
    with pytest.raises(OptionError, match=message):
        patterns.check_used(["x", "y", "z"])
    patterns.check_used(["Z", "Y", "x"])


# a match of `(?R)` took all memory, and no time limit stopped it
CALLS = r".*calls a group of itself.*; write out what"
# repeats are written out when they are compiled: 4 GB for the first ones
REPEATS = " .* has more than 100,000 characters when its repeats"
BROKEN = " .* has a blank or a comment in a repeat; write repeats as"
REFUSED = {
    CALLS: ["(?R)", "a(?R)?b", "(a|(?1))", "(?P<n>a(?&n)?)", "(?P<n>a)(?P>n)", "x(?-1)(y)", "(?+1)(y)", "(?0)"],
    REPEATS: [
        "a{1000000000}", "(?:(?:a?){10000}){10000}", "((((a|b)?){30}){50,}){60,90}", r"(?x) (?:a{900} # )\n\n){900}",
        "(?:a[)\\]]{400}b){500}", "a{99999999999999999999}", "a{300}){400}", "a{0000000000020000000}",
    ],
    BROKEN: ["(?x)a{ 2000000000 }", "(?V1x)a{2#\n000000000}", "(?x:a{2 000000000})"],
}  # fmt: skip


@pytest.mark.parametrize(("says", "expression"), [(says, one) for says, some in REFUSED.items() for one in some])
def test_what_would_not_end_or_fill_the_memory_is_refused(tmp_path: Path, says: str, expression: str) -> None:
    with pytest.raises(OptionError, match=f"patterns.toml: pattern 'a'{says}"):
        load(tmp_path, f"[patterns]\na = '''{expression}'''\n")


@pytest.mark.parametrize(
    "expression",
    [r"\(?R\)?", "[(?R)]+", r"(?x)[0-9a-f]{8} (?:-[0-9a-f]{4}){3} -[0-9a-f]{12}", "a{0,99999}", r"\p{Lu}.{5,}"],
)
def test_ordinary_expressions_are_not(tmp_path: Path, expression: str) -> None:
    assert load(tmp_path, f"[patterns]\na = '{expression}'\n").expressions == {"a": expression}


def test_an_exponential_pattern_is_stopped(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\nslow = '(?:a|aa)+x'\n")
    assert patterns.features("aaaax") == {"Pattern:slow": 1.0}
    word = "a" * 60 + "!"
    message = rf"pattern 'slow' \('\(\?:a\|aa\)\+x'\) takes too long, stopped at the word '{word}'; repeats inside"
    start = time.process_time()
    with pytest.raises(OptionError, match=message):
        patterns.features(word)
    assert time.process_time() - start < 3 * SECONDS_AT_ONCE


def test_many_slowish_words_are_stopped_too(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\nslow = '(?:a|aa)+x'\n")
    start = time.process_time()
    with pytest.raises(OptionError, match="takes too long"):
        for number in range(10_000):
            patterns.features("a" * 24 + f"{number}")  # some milliseconds each
    assert time.process_time() - start < 3 * SECONDS_AT_ONCE


def test_an_ordinary_pattern_does_not_run_out_of_time(tmp_path: Path) -> None:
    patterns = load(tmp_path, "[patterns]\nnumber = '[0-9]+([.,][0-9]+)*'\n")
    assert sum(len(patterns.features(str(number))) for number in range(200_000)) == 200_000
