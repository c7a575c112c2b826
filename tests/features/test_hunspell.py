"""Dictionaries of hunspell: forms by affix rules, compared with the rules applied one by one, and damaged files."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.readers import hunspell_affixes
from fairseq_llrnn.features.readers.hunspell import iter_hunspell
from fairseq_llrnn.features.readers.hunspell_affixes import Affixes, Rule


def forms(place: Path, rules: str, *words: str, encoding: str = "utf-8") -> dict[str, list[str]]:
    (place / "a.aff").write_text(rules, encoding=encoding)
    (place / "a.dic").write_text("\n".join(["99", *words, ""]), encoding=encoding)
    return dict(iter_hunspell(place / "a.dic"))


SUFFIX = "SFX S Y 2\nSFX S 0 s [^sy]\nSFX S y ies [^aeiou]y\n"
CASES = {
    "conditions": (SUFFIX, "cat/S dog/S city/S boy/S bus/S", "cat cats dog dogs city cities boy bus"),
    "a comment, no condition": ("SFX S N 1 # plural\nSFX S 0 s\n", "cat/S", "cat cats"),
    "all of the word goes": ("SFX S Y 1\nSFX S go went .\n", "go/S ago/S", "go ago awent"),
    "prefixes that cross": (f"{SUFFIX}PFX U Y 1\nPFX U 0 un .\n", "lock/SU", "lock locks unlock unlocks"),
    "prefixes that do not": (f"{SUFFIX}PFX U N 1\nPFX U 0 un .\n", "lock/SU", "lock locks unlock"),
    "two suffixes": (f"{SUFFIX}SFX G Y 1\nSFX G e ing/S e\n", "bake/G", "bake baking bakings"),
    "a prefix that a suffix brings": (
        "SFX A Y 1\nSFX A 0 ly/U .\nPFX U Y 1\nPFX U 0 un .\n", "kind/A", "kind kindly unkindly",
    ),
    "a word that is no form": (f"NEEDAFFIX X\n{SUFFIX}", "cat/XS dog/S", "cats dog dogs"),
    "an affix that is no form": (f"NEEDAFFIX X\n{SUFFIX}SFX G Y 1\nSFX G 0 er/SX .\n", "cat/G", "cat caters"),
    "a circumfix": (
        "CIRCUMFIX X\nPFX G Y 1\nPFX G 0 ge/X .\nSFX T Y 1\nSFX T en t/XG en\n", "machen/T", "machen gemacht",
    ),
    "a forbidden word": (f"FORBIDDENWORD !\n{SUFFIX}", "cat/S dog/S!", "cat cats"),
    "long flags": ("FLAG long\nSFX Sx Y 1\nSFX Sx 0 s .\n", "cat/AbSx sx/xS", "cat cats sx"),
    "numbers": ("FLAG num\nSFX 101 Y 1\nSFX 101 0 s .\n", "cat/7,101 dog/1,01", "cat cats dog"),
    "sets of flags": (f"AF 2\nAF X\nAF SX # both\n{SUFFIX}", "cat/2 dog/1 bus", "cat cats dog bus"),
    "a slash": (SUFFIX, "km\\/h/S", "km/h km/hs"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_forms(tmp_path: Path, case: str) -> None:
    rules, words, expected = CASES[case]
    assert [form for its in forms(tmp_path, rules, *words.split()).values() for form in its] == expected.split()


def test_what_stands_beside_a_word(tmp_path: Path) -> None:
    found = forms(tmp_path, SUFFIX, "cat/S\tpo:noun", "went po:verb st:go", "ad hoc", "# comment", "", "\tx")
    assert found == {"cat": ["cat", "cats"], "go": ["went"], "ad hoc": ["ad hoc"]}


@pytest.mark.parametrize("name", ["ISO8859-2", "UTF-8", "microsoft-cp1250"])
def test_encodings(tmp_path: Path, name: str) -> None:
    encoding = {"ISO8859-2": "iso-8859-2", "microsoft-cp1250": "cp1250"}.get(name, "utf-8-sig")
    found = forms(tmp_path, f"SET {name}\r\nSFX Z Y 1\r\nSFX Z a ách a\r\n", "židle", "řeka/Z", encoding=encoding)
    assert found == {"židle": ["židle"], "řeka": ["řeka", "řekách"]}


LETTERS = st.text("ab", max_size=2)
RULES = st.lists(
    st.tuples(st.sampled_from("PQ"), st.booleans(), LETTERS, LETTERS, st.sampled_from(["", "P", "Q", "PQ"])), max_size=4
)


@settings(max_examples=60, deadline=None)
@given(RULES, RULES, st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3, unique=True))
def test_forms_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, suffixes: list[tuple[str, bool, str, str, str]],
    prefixes: list[tuple[str, bool, str, str, str]], words: list[str],
) -> None:  # fmt: skip
    """Up to two suffixes, then a prefix; and a text's words find the lemmas whose forms they are."""
    crosses = {(kind, flag): True for kind in ("SFX", "PFX") for flag in "pPqQ"}
    lines = []
    for kind, rows in (("SFX", suffixes), ("PFX", prefixes)):
        for flag in "PQ":
            name = flag if kind == "SFX" else flag.lower()
            own = [row for row in rows if row[0] == flag]
            crosses[kind, name] = all(row[1] for row in own)
            lines.append(f"{kind} {name} {'Y' if crosses[kind, name] else 'N'} {len(own)}")
            lines += [f"{kind} {name} {strip or 0} {add or 0}/{more}{more.lower()} ." for _, _, strip, add, more in own]
    place = tmp_path_factory.mktemp("rules")
    found = forms(place, "\n".join(lines), *(f"{word}/PQpq" for word in words))

    def with_suffix(word: str, flags: str) -> list[tuple[str, str, bool]]:
        return [
            (word[: len(word) - len(strip)] + add, more, crosses["SFX", flag])
            for flag, _, strip, add, more in suffixes
            if flag in flags and word.endswith(strip) and len(word) > len(strip)
        ]

    for word in words:
        stems = [(word, "PQ", True)]
        for form, more, can in with_suffix(word, "PQ"):
            stems.append((form, "PQ", can))
            stems += [(second, "PQ", can and also) for second, _, also in with_suffix(form, more)]
        expected = {stem for stem, _, _ in stems}
        for (stem, flags, can), (flag, _, strip, add, _) in itertools.product(stems, prefixes):
            fits = flag in flags and stem.startswith(strip) and len(stem) > len(strip)
            if fits and can and (stem == word or crosses["PFX", flag.lower()]):
                expected.add(add + stem[len(strip) :])
        assert set(found[word]) == expected
        for form in expected:
            assert word in dict(iter_hunspell(place / "a.dic", {form.upper()}, str.upper))
    assert not list(iter_hunspell(place / "a.dic", {"x"}))


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "SFX S Y 40\n" + "".join(f"SFX S 0 {'x' * n}/S .\n" for n in range(1, 41))
    assert len(forms(tmp_path, rules, "cat/S")["cat"]) == 1 + 80
    monkeypatch.setattr(hunspell_affixes, "MOST_FORMS", 50)
    assert forms(tmp_path, rules, "cat/S")["cat"] == ["cat" + "x" * n for n in range(50)]
    monkeypatch.setattr(hunspell_affixes, "MOST_FORMS", 2000)
    monkeypatch.setattr(hunspell_affixes, "MOST_TRIES", 100)
    assert len(forms(tmp_path, rules, "cat/S")["cat"]) < 60
    monkeypatch.setattr(hunspell_affixes, "MOST_RULES", 30)
    with pytest.raises(DataError, match="line 32: expected at most 30 rules, found more; take a smaller dictionary"):
        forms(tmp_path, rules, "cat/S")


@pytest.mark.parametrize(
    ("rules", "words", "what"),
    [
        ("SET HEX\n", "4\ncat\n", "a.aff, line 1: expected a character set such as UTF-8 or ISO8859-2, found 'HEX'"),
        ("SET ISO8859-99\n", "4\ncat\n", "a.aff, line 1: expected a character set"),
        ("FLAG short2\n", "4\ncat\n", "a.aff, line 1: expected FLAG long, num or UTF-8, found 'FLAG short2'"),
        ("SFX S\n", "4\ncat\n", "a.aff, line 1: expected `SFX flag Y|N number` or `SFX flag strip add condition`"),
        ("SFX S 0 s .\n", "4\ncat\n", "a.aff, line 1: expected the header of rule 'S', `SFX S Y|N number`"),
        ("SFX S Y 1\nSFX S 0 s [^s\n", "4\ncat\n", "a.aff, line 2: expected ] behind [ in the condition, found '[^s'"),
        ("AF 1\nAF S\n", "4\ncat/2\n", "a.dic, line 2: expected a number of the 1 sets of flags (AF), found '2'"),
        ("", "cat\n", "a.dic, line 1: expected the number of words, found 'cat'; is it a dictionary of hunspell?"),
        ("", "0\n", "a.dic: expected words, found none; is the file empty?"),
        ("SET UTF-8\n", "1\n\udcff\n", "a.dic, line 2: expected utf-8, as FILE.aff says (SET), found other bytes"),
        ("", "1\n" + "x" * (1 << 20) + "\n", "a.dic, line 2: expected a line of at most 1,048,576 bytes"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, rules: str, words: str, what: str) -> None:
    (tmp_path / "a.aff").write_text(rules)
    (tmp_path / "a.dic").write_bytes(words.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        list(iter_hunspell(tmp_path / "a.dic"))
    assert what in str(caught.value)


def test_a_rule_takes_no_whole_word() -> None:
    rule = Rule(True, "cat", "dogs", (), frozenset())
    assert rule.of("cat", True) is None and rule.of("cat", False) is None and rule.of("acat", True) == "adogs"
    assert Affixes().forms("cat", frozenset("S")) == ["cat"]
