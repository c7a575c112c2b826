"""Dictionaries of hunspell: forms by affix rules, compared with the rules applied one by one, and damaged files."""

import itertools
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexicons import read_table

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.readers import hunspell_affixes
from fairseq_llrnn.lexicon.readers.hunspell import iter_hunspell
from fairseq_llrnn.lexicon.readers.hunspell_affixes import Affixes, Rule


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
    "a slash": (SUFFIX, "km\\/h/S /dev/S", "km/h km/hs /dev /devs"),
    "an empty ending with further flags": (
        "SFX A Y 4 # verbs\nSFX A 0 /C r # infinitive\nSFX A r u/E [ai]r # participle\nSFX A ar 0/E r\nSFX A r / r\n"
        "SFX C Y 1\nSFX C 0 ne .\nSFX E Y 1\nSFX E 0 s .\n",
        "mirar/A", "mirar mirau mir mira mirarne miraus mirs",
    ),
    "an empty ending with a set of flags": (
        "AF 2\nAF A\nAF C\nSFX A Y 1\nSFX A 0 /2 r\nSFX C Y 1\nSFX C 0 ne .\n", "mirar/1", "mirar mirarne",
    ),
    "an empty prefix that brings a suffix": (
        "PFX P Y 2\nPFX P 0 /S .\nPFX P 0 un/S .\nSFX S Y 1\nSFX S 0 s .\nPFX N N 1\nPFX N 0 no/S .\n",
        "kind/P bar/N", "kind kinds unkind unkinds bar nobar",
    ),
    "an empty beginning and an empty ending that cross": (
        "PFX P Y 1\nPFX P un 0/Q .\nSFX S Y 1\nSFX S 0 /TP .\nSFX T Y 1\nSFX T 0 t .\n", "unit/S", "unit unitt it itt",
    ),
    "a second header": (
        "PFX P Y 1\nPFX P 0 un .\nSFX A Y 1\nSFX A 0 s .\nSFX A N 1\nSFX A 0 es .\n", "mesa/A salY/AP",
        "mesa mesas mesaes salY salYs salYes unsalY unsalYs",
    ),
    "a rule that looks like a header": ("SFX A Y 2\nSFX A Y 1\nSFX A 0 s .\n", "salY/A", "salY sal1 salYs"),
    "flags with variation selectors": (
        "SET UTF-8\nFLAG UTF-8\nSFX ❤\ufe0f Y 1\nSFX ❤\ufe0f 0 s .\nSFX 🐈 Y 1\nSFX 🐈 0 x .\n",
        "foo/❤\ufe0f bar/🐈 baz/❤", "foo foos bar barx baz bazs",
    ),
    "such flags without FLAG": ("SET UTF-8\nSFX ☎\ufe0e Y 1\nSFX ☎\ufe0e 0 s .\n", "foo/☎\ufe0f", "foo foos"),
    "numbers as they may be written": ("FLAG num\nSFX 007 Y 1\nSFX 7 0 s .\n", "cat/7, dog/1,07", "cat cats dog dogs"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_forms(tmp_path: Path, case: str) -> None:
    rules, words, expected = CASES[case]
    assert [form for its in forms(tmp_path, rules, *words.split()).values() for form in its] == expected.split()


ACCENTS = {
    "a condition": ("SFX S Y 2\nSFX S 0 s [áé]\nSFX S 0 n [^áé]\n", "maté/S mate/S matá/S mał/S"),
    "what goes and comes": ("SFX S Y 2\nSFX S é és é\nSFX S 0 é e\n", "maté/S mate/S"),
    "any character": ("SFX S Y 1\nSFX S 0 s t..\n", "maté/S até/S"),
    "a flag": ("FLAG UTF-8\nSFX á Y 1\nSFX á 0 s .\nSFX a Y 1\nSFX a 0 x .\nNEEDAFFIX é\n", "maté/á mat/a té/aé"),
    "long flags": ("FLAG long\nSFX áé Y 1\nSFX áé 0 s .\n", "maté/áéxx"),
    "a prefix": ("PFX P Y 1\nPFX P e dé e\n", "elé/P élé/P"),
    "a stem": ("SFX S Y 1\nSFX S 0 é .\n", "mat/S st:Maté"),
}


@pytest.mark.parametrize("of_files", ["NFC", "NFD"])
@pytest.mark.parametrize("case", [*ACCENTS, *CASES])
def test_forms_do_not_depend_on_the_unicode_form(tmp_path: Path, case: str, of_files: str) -> None:
    """Rules are of whole characters; forms and lemmas alone are spelled as the text is."""
    rules, words = (CASES | ACCENTS)[case][:2]
    by_rules = forms(tmp_path, f"SET UTF-8\n{rules}", *words.replace(" st:", "\tst:").split(" "))
    assert any(map(len, by_rules.values()))
    every = [form for its in by_rules.values() for form in its]
    for path in tmp_path.iterdir():
        path.write_text(unicodedata.normalize(of_files, path.read_text("utf-8")), "utf-8")
    for form in ("nfc", "nfd"):
        def spelled(word: str, form: str = form) -> str:
            return unicodedata.normalize(form.upper(), word)

        expected = {(spelled(one), spelled(lemma)) for lemma, its in by_rules.items() for one in its}
        for asked in (None, [spelled(one) for one in every]):
            table = read_table("hunspell", tmp_path / "a.dic", lowercase=False, form=form, words=asked)
            assert {(row.form, row.lemma) for row in table.rows} == expected
        one = read_table("hunspell", tmp_path / "a.dic", form=form, words=[spelled(every[-1]).lower()])
        assert spelled(every[-1]).lower() in {row.form for row in one.rows}


def test_what_stands_beside_a_word(tmp_path: Path) -> None:
    found = forms(tmp_path, SUFFIX, "cat/S\tpo:noun", "went po:verb st:go", "ad hoc", "# comment", "", "\tx")
    assert found == {"cat": ["cat", "cats"], "go": ["went"], "ad hoc": ["ad hoc"]}


ALIASES = "AM 2\nAM po:noun\nAM st:go po:verb # 2\n"


@pytest.mark.parametrize("sets", [True, False], ids=["AF", "no AF"])
@pytest.mark.parametrize("line", ["went/1 2", "went/1\t2", "went/1  2 ", "went/1 \t2"])
def test_aliases_of_morphology(tmp_path: Path, sets: bool, line: str) -> None:
    flags = "AF 1\nAF S # 1\n" if sets else ""
    line = line if sets else line.replace("/1", "/S")
    assert forms(tmp_path, f"{flags}{ALIASES}{SUFFIX}", line) == {"go": ["went", "wents"]}
    with pytest.raises(DataError, match=r"a.dic, line 2: expected a number of the 2 descriptions of words \(AM\)"):
        forms(tmp_path, f"{flags}{ALIASES}{SUFFIX}", line.replace("2", "3"))
    found = forms(tmp_path, ALIASES, "went\t2", "bar 2", "x/A\tpo:noun")
    assert found == {"go": ["went"], "bar 2": ["bar 2"], "x": ["x"]}


@pytest.mark.parametrize(
    ("rules", "words", "said"),
    [
        (SUFFIX, "cat/S city/S", ""),
        ("SFX A Y 1\nSFX A 0 s .\n", "mesa/Aa", "1 words and 0 affix rules have flags that no line defines ('a')"),
        (SUFFIX, "cat dog/X", "1 words and 0 affix rules have flags that no line defines ('X')"),
        ("SFX S Y 1\nSFX S 0 s/Q .\n", "cat/S", "0 words and 1 affix rules have flags that no line defines ('Q')"),
        ("SFX S Y 1\nSFX S 0 s/T .\nSFX T Y 1\nSFX T s z/P .\nPFX P Y 1\nPFX P 0 un .\n", "cat/S", ""),
        ("SET UTF-8\nKEEPCASE K\nNOSUGGEST N\nCOMPOUNDRULE 1\nCOMPOUNDRULE C*D?\nNEEDAFFIX ❤\ufe0f\n",
         "cat/KNCD❤\ufe0f", ""),
    ],
)  # fmt: skip
def test_what_has_no_effect(
    tmp_path: Path, rules: str, words: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    forms(tmp_path, rules, *words.split())
    assert [record.getMessage() for record in caplog.records] == ([f"{tmp_path}/a.dic: {said}"] if said else [])


def test_a_dictionary_without_a_word_of_the_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    forms(tmp_path, SUFFIX, "cat/S", "city/S")
    assert not list(iter_hunspell(tmp_path / "a.dic", {"canto", "casa"}))
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/a.dic: none of the forms of its 2 words is in the text; is it of the same language?"
    ]


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
    """Up to two suffixes, then a prefix; or a prefix, and a suffix that it brings.

    And a text's words find the lemmas whose forms they are.
    """
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
        for (stem, flags, can), (flag, _, strip, add, more) in itertools.product(stems, prefixes):
            fits = flag in flags and stem.startswith(strip) and len(stem) > len(strip)
            if fits and can and (stem == word or crosses["PFX", flag.lower()]):
                form = add + stem[len(strip) :]
                expected.add(form)
                if stem == word and crosses["PFX", flag.lower()]:
                    expected.update(both for both, _, also in with_suffix(form, more) if also)
        assert set(found[word]) == expected
        for form in expected:
            assert word in dict(iter_hunspell(place / "a.dic", {form.upper()}, str.upper))
    assert not list(iter_hunspell(place / "a.dic", {"x"}))


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    rules = "SFX S Y 40\n" + "".join(f"SFX S 0 {'x' * n}/S .\n" for n in range(1, 41))
    assert len(forms(tmp_path, rules, "cat/S")["cat"]) == 1 + 80 and not caplog.messages
    monkeypatch.setattr(hunspell_affixes, "MOST_FORMS", 50)
    assert forms(tmp_path, rules, "cat/S")["cat"] == ["cat" + "x" * n for n in range(50)]
    assert caplog.messages.pop().endswith("a.dic: 1 words have too many forms ('cat'): those behind 50 are left out")
    monkeypatch.setattr(hunspell_affixes, "MOST_FORMS", 2000)
    monkeypatch.setattr(hunspell_affixes, "MOST_TRIES", 100)
    assert len(forms(tmp_path, rules, "cat/S")["cat"]) < 60
    assert "are left out" in caplog.messages.pop()
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
        *((f"SFX {name} Y 1\nSFX {name} 0 s .\n", "4\ncat\n", "a.aff, line 1: expected a flag of one character, as no "
           f"line FLAG says otherwise, found '{name}'") for name in ("Aa", "101", "12")),
        ("NEEDAFFIX Aa\n", "4\ncat\n", "a.aff, line 1: expected a flag of one character, as no line FLAG says"),
        ("SET UTF-8\nFLAG UTF-8\nPFX ❤❤ Y 1\n", "4\ncat\n",
         "a.aff, line 3: expected a flag of one character, as FLAG utf-8 says"),
        ("FLAG num\nSFX Aa Y 1\n", "4\ncat\n",
         "a.aff, line 2: expected a flag of a number, as FLAG num says, found 'Aa'"),
        ("FLAG num\nSFX 7 Y 0\n", "4\ncat/A\n", "a.dic, line 2: expected numbers of flags with commas between"),
        ("FLAG long\nSFX A Y 1\n", "4\ncat\n", "a.aff, line 2: expected a flag of two characters, as FLAG long says"),
        ("SFX S Y 1\nSFX S 0 s .\nSFX S 0 es .\n", "4\ncat\n", "a.aff, line 1: expected 1 lines `SFX S …` below, as it "
         "says, found 2; correct the number, or copy the file again"),
        ("SFX S Y 2\nSFX S 0 s .\n", "4\ncat\n",
         "a.aff, line 1: expected 2 lines `SFX S …` below, as it says, found 1"),
        ("AF 2\nAF S\n", "4\ncat\n", "a.aff, line 1: expected 2 lines `AF …` below, as it says, found 1"),
        ("AM 1\nAM S\nAM T\n", "4\ncat\n", "a.aff, line 1: expected 1 lines `AM …` below, as it says, found 2"),
        ("AF S\n", "4\ncat\n", "a.aff, line 1: expected `AF number`, found 'AF S'; correct the line"),
        ("SET UTF-8\n", "4\ncat\n\u00a0/S\n", "a.dic, line 3: the word is blank (U+00A0); expected a word"),
        ("SET UTF-8\n", "4\n\u200b\n", "a.dic, line 2: the word is blank (U+200B); expected a word"),
        ("AF 1\nAF S\n", "4\ncat/2\n", "a.dic, line 2: expected a number of the 1 sets of flags (AF), found '2'"),
        ("", "cat\n", "a.dic, line 1: expected the number of words, found 'cat'; is it a dictionary of hunspell?"),
        ("", "0\n", "a.dic: expected words, found none; is the file empty?"),
        ("SET UTF-8\n", "1\n\udcff\n", "a.dic, line 2, byte 1: expected utf-8, found the byte 0xff "
         "(invalid start byte); SET of FILE.aff says so; take .dic and .aff of the same dictionary"),
        ("", "1\n" + "x" * (1 << 20) + "\n", "a.dic, line 2: the line has more than 1,048,576 bytes; expected one"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, rules: str, words: str, what: str) -> None:
    (tmp_path / "a.aff").write_text(rules)
    (tmp_path / "a.dic").write_bytes(words.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        list(iter_hunspell(tmp_path / "a.dic"))
    assert what in str(caught.value)


def test_a_rule_takes_no_whole_word() -> None:
    rule = Rule("S", True, "cat", "dogs", (), frozenset(), 4)
    assert rule.of("cat", True) is None and rule.of("cat", False) is None and rule.of("acat", True) == "adogs"
    assert Affixes().forms("cat", frozenset("S")) == ["cat"]
