"""Dictionaries of hunspell: forms by affix rules, compared with hunspell itself, and damaged files."""

import itertools
import random
import unicodedata
from pathlib import Path

import pytest
from example_modules import EXAMPLES, load
from lexicons import read_table

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.readers import hunspell_affixes
from fairseq_llrnn.lexicon.readers.hunspell import iter_hunspell
from fairseq_llrnn.lexicon.readers.hunspell_affixes import Affixes, Rule

try:
    import hunspell
except ImportError:
    hunspell = None
needs_hunspell = pytest.mark.skipif(hunspell is None, reason="hunspell is not installed: pip install '.[hunspell]'")


@pytest.fixture(autouse=True)
def warnings_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING")  # fairseq, once a test has imported it, logs more


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
        "kind/P bar/N", "kind unkind kinds unkinds bar nobar",
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
    "a word that goes": (
        "FULLSTRIP\nSFX A Y 3\nSFX A aller va aller\nSFX A aller 0 aller\nSFX A er ons er\n"
        "PFX B Y 1\nPFX B aller ira .\n",
        "aller/AB", "aller va allons ira",
    ),
    "a word that goes at once, or by and by": (
        "FULLSTRIP\nSFX A Y 2\nSFX A eau 0/B eau\nSFX A eau x .\nSFX B Y 1\nSFX B 0 aux .\n", "eau/A", "eau x aux",
    ),
    "a word that stays": ("SFX A Y 2\nSFX A aller va aller\nSFX A er ons er\n", "aller/A", "aller allons"),
    "half a circumfix and one more suffix": (
        "FLAG long\nCIRCUMFIX A1\nPFX B1 Y 1\nPFX B1 0 ber/A1 .\nSFX l0 Y 1\nSFX l0 0 nya .\nSFX Ba Y 1\n"
        "SFX Ba 0 an/B1l0A1 .\n", "sama/Ba", "sama bersamaan bersamaannya",
    ),
    "a prefix that is half of a circumfix": (
        "NEEDAFFIX N\nCIRCUMFIX C\nPFX G Y 2\nPFX G 0 ge/CN .\nPFX G 0 be .\nSFX T Y 2\nSFX T 0 t/C .\nSFX T 0 s .\n",
        "mach/GT", "mach machs bemach gemacht bemachs",
    ),
    "two prefixes": (
        "COMPLEXPREFIXES\nPFX A Y 1\nPFX A 0 b/C [^x]\nPFX C Y 1\nPFX C 0 a .\nSFX S Y 1\nSFX S o a/T ro\nSFX T Y 1\n"
        "SFX T 0 s .\n", "caro/AS xo/A", "caro bcaro abcaro cara bcara abcara xo",
    ),
    "a prefix that needs a suffix": (
        f"NEEDAFFIX N\n{SUFFIX}PFX P Y 1\nPFX P 0 un/N .\n", "lock/SP cat/P", "lock locks unlocks cat",
    ),
    "a suffix that needs a prefix": (
        "NEEDAFFIX N\nSFX S Y 1\nSFX S 0 s/N .\nPFX P Y 2\nPFX P 0 un .\nPFX P 0 re/N .\n", "lock/SP cat/S",
        "lock unlock unlocks cat",
    ),
    "a suffix that needs a suffix": (
        "PSEUDOROOT N\nSFX S Y 1\nSFX S 0 s/NT .\nSFX T Y 1\nSFX T 0 t .\n", "cat/S", "cat catst",
    ),
    "characters that do not count": ("SET UTF-8\nIGNORE ·´\nSFX S Y 1\nSFX S 0 ´s .\n", "c·at/S ·", "cat cats"),
    "words in compounds only": (
        f"ONLYINCOMPOUND o\nCOMPOUNDFLAG z\n{SUFFIX}SFX F Y 2\nSFX F 0 en/oS .\nSFX F 0 er .\n", "vater/Soz kind/Fz",
        "kind kinder",
    ),
    "flags of syllables": (
        "COMPOUNDSYLLABLE 6 aeiou\nSYLLABLENUM klmc\nSFX A Y 1\nSFX A 0 nak .\n", "kutya/Ak", "kutya kutyanak",
    ),
    "a form that is forbidden": (f"FORBIDDENWORD F\n{SUFFIX}", "cat/S cats/F hot/F hot", "cat"),
    "a homonym that is forbidden": (f"FORBIDDENWORD F\n{SUFFIX}", "cats cats/F cat/S", "cats cat cats"),
    "words of which hunspell warns": (f"WARN W\n{SUFFIX}", "cat/SW dog/S", "cat cats dog dogs"),
    "words of which hunspell warns, forbidden": (f"FORBIDWARN\nWARN W\n{SUFFIX}", "cat/SW dog/S", "dog dogs"),
    "a table whose lines have another name": (
        "SFX S Y 2\nSFT S 0 s [^s]\nSFX S 0 es s\nSFX T Y 1\nSFX T 0 t .\n", "cat/S bus/ST", "cat cats bus buses bust",
    ),
    "a blank of another kind": ("SET UTF-8\nSFX S Y 1\nSFX S 0 \u00a0! .\n", "cat/S", "cat cat\u00a0!"),
    "flags of UTF-8 in words without SET": (
        "FLAG UTF-8\nSFX A Y 1\nSFX A 0 s/Ö .\nSFX Ö Y 1\nSFX Ö 0 bar .\n", "foo/A", "foo foos foosbar",
    ),
    "numbers as they may be written": ("FLAG num\nSFX 007 Y 1\nSFX 7 0 s .\n", "cat/7, dog/1,07", "cat cats dog dogs"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_forms(tmp_path: Path, case: str) -> None:
    rules, words, expected = CASES[case]
    found = forms(tmp_path, rules, *words.split(" "))
    assert [form for its in found.values() for form in its] == expected.split(" ")


@needs_hunspell
@pytest.mark.parametrize("case", sorted({*CASES} - {"a slash"}))  # one at the beginning is a fault of hunspell 1.7.2
def test_hunspell_accepts_the_forms(tmp_path: Path, case: str) -> None:
    forms(tmp_path, CASES[case][0], *CASES[case][1].split(" "))
    checker = _checker(tmp_path)
    assert [form for form in CASES[case][2].split(" ") if not checker.spell(form)] == []


def _checker(place: Path) -> "hunspell.Hunspell | None":
    return hunspell and hunspell.Hunspell("a", hunspell_data_dir=str(place))


def random_dictionary(chance: random.Random, directives: str) -> tuple[str, list[str]]:
    """Return rules that name each other, and words, of the letters a and b.

    They avoid three faults of hunspell before 1.7.3: a prefix that is half of a circumfix stands alone, negated letters
    before a prefix may be none, and a prefix and a suffix that name each other need no flag of the word.
    """
    def some(flags: str, share: float) -> str:
        return "".join(flag for flag in flags if chance.random() < share)

    lines = ["SET UTF-8", *directives.split(), "NEEDAFFIX N", "CIRCUMFIX C"]
    for kind, is_suffix in (("SFX", "COMPLEXPREFIXES" not in lines), ("PFX", "COMPLEXPREFIXES" in lines)):
        for flag in "AB" if is_suffix else "PQ":
            lines.append(f"{kind} {flag} {'Y' if chance.random() < 0.8 else 'N'} 2")
            for _ in range(2):
                strip, add = chance.choice(["0", "0", "a", "b", "ab"]), chance.choice(["0", "a", "b", "ba", "bb"])
                further = some("ABQ" if is_suffix else "AB" if flag == "P" else "", 0.3) + some("N", 0.15)
                if chance.random() < 0.15:
                    further += "C" if is_suffix else "CN"
                condition = chance.choice([".", ".", "a", "b", "ab", "[ab]b", *["[^b]", "a."] * is_suffix])
                lines.append(f"{kind} {flag} {strip} {add}/{further} {condition}".replace("/ ", " "))
    words = ["".join(chance.choices("ab", k=chance.randint(1, 3))) for _ in range(chance.randint(1, 3))]
    return "\n".join([*lines, ""]), [f"{word}/{some('ABPQ', 0.5) + some('N', 0.1)}" for word in words]


@needs_hunspell
@pytest.mark.parametrize("directives", ["", "FULLSTRIP", "COMPLEXPREFIXES", "FULLSTRIP COMPLEXPREFIXES"])
def test_forms_are_those_of_hunspell(tmp_path: Path, directives: str) -> None:
    """Compare all strings of up to six letters, and find the lemmas of a text's words."""
    strings = ["".join(letters) for n in range(1, 7) for letters in itertools.product("ab", repeat=n)]
    for seed in range(60):
        rules, words = random_dictionary(random.Random(seed), directives)
        forms(tmp_path, rules, *words)
        found = [form for _, its in iter_hunspell(tmp_path / "a.dic") for form in its]
        checker = _checker(tmp_path)
        accepted = {string for string in strings if checker.spell(string)}
        assert {form for form in found if len(form) <= 6} == accepted, (rules, words)
        for form in set(found):
            asked = iter_hunspell(tmp_path / "a.dic", {form.upper()}, str.upper)
            assert form in {one for _, its in asked for one in its}, (form, rules, words)


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
    """Rules apply to whole characters. Forms and lemmas are spelled like the text."""
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
         "cat/KN❤\ufe0f", ""),
        ("COMPOUNDBEGIN B\nCOMPOUNDEND E\nCOMPOUNDRULE 1\nCOMPOUNDRULE C*D?\n", "a/B b/E c/BE d/D e/1",
         "4 words also form compounds (COMPOUNDBEGIN, COMPOUNDEND, COMPOUNDRULE), which are not listed; 1 words and 0 "
         "affix rules have flags that no line defines ('1')"),
        ("FLAG num\nCOMPOUNDRULE 1\nCOMPOUNDRULE (1001)*(7)\n", "a/1001 b/7 c",
         "2 words also form compounds (COMPOUNDRULE), which are not listed"),
        ("SFT S Y 1\nONLYROOT u\nONLYROOT v\nA COMPANY\nmade this\n", "a/u",
         "3 lines of FILE.aff have no directive of hunspell ('SFT', 'ONLYROOT') and no effect"),
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


COMMENTS = (b"\xe9", b"# caf\xe9", b"#caf\xe9", b"TRY \xe9", b"NAME caf\xe9", b"\xc3\xa9 \xff", b"OLD \xe9")


@pytest.mark.parametrize("comment", COMMENTS)
def test_bytes_of_another_encoding_where_nothing_is_read(tmp_path: Path, comment: bytes) -> None:
    rules = (b"SET UTF-8", comment, b"NEEDAFFIX X # \xe9", b"SFX S Y 1 #\xe9", b"SFX S 0 s . # \xe9", b"SFX T Y 1",
             b"SFX T 0 \xc3\xa9/S . po:\xe9 #")  # fmt: skip
    (tmp_path / "a.aff").write_bytes(b"\n".join(rules))
    (tmp_path / "a.dic").write_bytes(b"3\n# caf\xe9\n\tcaf\xe9\ncat/ST\tpo:\xe9\ndog/S\n")
    assert dict(iter_hunspell(tmp_path / "a.dic")) == {"cat": ["cat", "cats", "caté", "catés"], "dog": ["dog", "dogs"]}
    for name, old, new, line in (
        ("a.aff", b"0 s .", b"0 \xe9 .", 5), ("a.aff", b"N X", b"N \xe9", 0), ("a.dic", b"\tpo:", b"\tst:", 4),
        ("a.dic", b"cat", b"c\xe9t", 4),
    ):  # fmt: skip
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole.replace(old, new))
        if whole.replace(old, new) != whole:
            with pytest.raises(DataError, match=f"{name}, line {line}, byte .*: expected utf-8, found the byte 0xe9"):
                list(iter_hunspell(tmp_path / "a.dic"))
        (tmp_path / name).write_bytes(whole)


@pytest.mark.parametrize(("kind", "flag"), [("short", b"\xff"), ("short", b"\xf5"), ("long", b"\xf5\xe9")])
@pytest.mark.parametrize("aliases", [False, True])
def test_flags_of_bytes(tmp_path: Path, kind: str, flag: bytes, aliases: bool) -> None:
    """hunspell's flags are bytes: Debian's hu_HU_u8 is in UTF-8, and its flags are not."""
    head = b"SET UTF-8\n" + (b"FLAG long\n" if kind == "long" else b"") + (b"AF 1\nAF %b\n" % flag if aliases else b"")
    other = b"\xc3" if kind == "short" else b"\xc3\xa9"
    mark = b"1" if aliases else flag
    rules = b"SFX %b Y 1\nSFX %b 0 \xc3\xa9/%b .\nSFX %b Y 1\nSFX %b \xc3\xa9 x .\n" % (flag, flag, mark, other, other)
    (tmp_path / "a.aff").write_bytes(head + rules)
    (tmp_path / "a.dic").write_bytes(b"2\ncaf\xc3\xa9/%b\nt\xc3\xa9\n" % mark)
    expected = ["café", "caféé", "cafééé"]
    assert dict(iter_hunspell(tmp_path / "a.dic")) == {"café": expected, "té": ["té"]}
    if checker := _checker(tmp_path):
        assert all(map(checker.spell, expected))
    (tmp_path / "a.dic").write_bytes(b"2\ncaf\xe9/%b\n" % mark)
    with pytest.raises(DataError, match="a.dic, line 2: expected utf-8 before /, found other bytes; convert the line"):
        list(iter_hunspell(tmp_path / "a.dic"))


SPELLINGS = {  # rules, words; forms without a text; a text, and the forms then
    "an apostrophe": ("ICONV 1\nICONV ’ '\n", "l'an/S", "l'an l'ans", "l’an", "l’an l'ans"),
    "both apostrophes": ("ICONV 1\nICONV ’ '\n", "l'an", "l'an", "l’an l'an", "l'an l’an"),
    "letters that are written together": (
        "ICONV 2\nICONV ij ĳ\nICONV IJ Ĳ\nOCONV 2\nOCONV ĳ ij\nOCONV Ĳ IJ\n", "ĳ/S", "ij ijs", "ĳ ijs", "ĳ ijs",
    ),
    "an output that is no input": ("OCONV 1\nOCONV ánó anó\n", "románó", "románó", "románó", "románó"),
    "edges of words": (
        "ICONV 4\nICONV _x a\nICONV x_ b\nICONV x c\nICONV _yy_ d\n", "acb d yyb", "acb d yyb", "xxx yy yyx",
        "xxx yy yyx",
    ),
    "the longest part": ("ICONV 2\nICONV a x\nICONV ab y\n", "yx xc", "yx xc", "aba ac", "aba ac"),
    "marks": ("IGNORE \u0301\u064b\n", "mu\u0301ka/S", "muka mukas", "muka\u0301", "muka\u0301 mukas"),
    "marks of two kinds": (
        "IGNORE \u0301\u064b\n", "muka", "muka", "muka mu\u0301ka muka\u064b", "muka mu\u0301ka muka\u064b",
    ),
    "from right to left": ("COMPLEXPREFIXES\nICONV 1\nICONV ’ '\n", "l'an/S", "l'an l'ans", "l’an", "l’an l'ans"),
}  # fmt: skip


@pytest.mark.parametrize("case", list(SPELLINGS))
def test_spellings_of_a_text(tmp_path: Path, case: str) -> None:
    rules, words, expected, text, restore_original_tokens = SPELLINGS[case]
    found = forms(tmp_path, f"SET UTF-8\n{rules}SFX S Y 1\nSFX S 0 s .\n", *words.split())
    assert [form for its in found.values() for form in its] == expected.split()
    asked = text.split()
    answer = [form for _, its in iter_hunspell(tmp_path / "a.dic", asked) for form in its]
    assert sorted(answer) == sorted(restore_original_tokens.split())
    if checker := _checker(tmp_path):
        assert [form for form in (*expected.split(), *asked) if not checker.spell(form)] == []


def test_syllables_that_rules_take_apart(tmp_path: Path) -> None:
    """Rules of Korean use letters (NFD), texts and forms use syllables, for all forms of the files."""
    apart, whole, other = "\u1112\u1161\u1103\u1161", "하다", "하\u1103\u1162"
    pairs = (("하", apart[:2]), ("다", apart[2:]))
    rules = [f"ICONV {syllable} {letters}" for syllable, letters in pairs]
    rules += ["OCONV 2", *(f"OCONV {letters} {syllable}" for syllable, letters in pairs)]
    rules += ["SFX S Y 1", f"SFX S {apart[3:]} \u1162 {apart[3:]}", ""]
    assert forms(tmp_path, "\n".join(["SET UTF-8", "ICONV 2", *rules]), f"{apart}/S") == {whole: [whole, other]}
    for form in (None, "nfc"):
        assert dict(iter_hunspell(tmp_path / "a.dic", [whole], form=form)) == {whole: [whole, other]}


def test_entries_that_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    rules = f"NEEDAFFIX N\nFORBIDDENWORD F\nONLYINCOMPOUND O\nIGNORE !\n{SUFFIX}"
    forms(tmp_path, rules, *"cat/S bus/NS dog/F vater/O cow cow/F ox/FO ! ass ass/F hen/F hen".split())
    assert caplog.messages == [
        f"{tmp_path}/a.dic: 3 of 12 words read; left out: 5 forbidden, 1 in compounds only, 2 without a form, "
        "1 without a word"
    ]


DEBIAN = Path("/usr/share/hunspell")  # apt-get install hunspell-fr hunspell-de-de hunspell-id hunspell-hu …
FORMS_IN = {
    "fr": "suis es est sommes sont vais vas va vont irai ont eu", "de_DE": "gemacht", "id_ID": "bersamaan",
    "hu_HU": "kutyának", "hr_HR": "", "ca": "", "nl": "", "is_IS": "", "sv_SE": "",
}  # fmt: skip


# Hungarian takes two minutes
@needs_hunspell
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "hu_HU" else []) for name in FORMS_IN]
)
def test_dictionaries_of_debian(name: str) -> None:
    if not (DEBIAN / f"{name}.dic").exists():
        pytest.skip(f"there is no {DEBIAN}/{name}.dic")
    (script,) = load(EXAMPLES / "open_vocabulary", "hunspell_dictionaries")
    path = (DEBIAN / f"{name}.dic").resolve()
    _, sample = script.sample_forms(path, 100)
    assert len(sample) > 100 and script.rejected(path, sample) == []
    asked = set(FORMS_IN[name].split())
    assert asked <= {form for _, its in iter_hunspell(path, asked) for form in its}


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    rules = "SFX S Y 40\n" + "".join(f"SFX S 0 {'x' * n}/S .\n" for n in range(1, 41))
    assert len(forms(tmp_path, rules, "cat/S")["cat"]) == 1 + 80 and not caplog.messages
    monkeypatch.setattr(hunspell_affixes, "MOST_FORMS", 50)
    assert forms(tmp_path, rules, "cat/S")["cat"] == ["cat" + "x" * n for n in range(50)]
    assert caplog.messages.pop().endswith("a.dic: 1 words have many forms ('cat'): the first 50 are read")
    monkeypatch.setattr(hunspell_affixes, "MOST_FORMS", 2000)
    monkeypatch.setattr(hunspell_affixes, "MOST_TRIES", 100)
    assert len(forms(tmp_path, rules, "cat/S")["cat"]) < 60
    assert "are read" in caplog.messages.pop()
    monkeypatch.setattr(hunspell_affixes, "MOST_RULES", 30)
    with pytest.raises(DataError, match="line 32: expected at most 30 rules, found more; take a smaller dictionary"):
        forms(tmp_path, rules, "cat/S")


OTHER_FLAGS = {  # the words that hunspell 1.7.1 accepts
    "FORBIDDENWORD": (f"FORBIDDENWORD {{}}\n{SUFFIX}", "cat/S dog/S{ cow/S}", "cat cats cow cows"),
    "NEEDAFFIX": (f"NEEDAFFIX Xy\n{SUFFIX}", "cat/SX dog/Sy cow/S", "cats dog dogs cow cows"),
    "rules": (
        "SFX 101 Y 1\nSFX 101 0 s .\nSFX 102 Y 1\nSFX 102 0 es .\n", "cat/1 dog/101 cow/0",
        "cat cats cates dog dogs doges cow",
    ),
    "lines of a rule": ("SFX Sa Y 2\nSFX Sa 0 s .\nSFX Sb 0 es .\n", "cat/S dog/b", "cat cats cates dog"),
    "longer than long": (
        "FLAG long\nFORBIDDENWORD Xyz\nSFX Ss Y 1\nSFX Ss 0 s .\n", "cat/SsXy dog/Ss cow/Xz", "dog dogs cow",
    ),
    "shorter than long": (
        "FLAG long\nFORBIDDENWORD X\nSFX Ss Y 1\nSFX Ss 0 s .\n", "cat/SsX dog/SsXX cow/X", "cat cats dog dogs cow",
    ),
    "a number and more": (
        "FLAG num\nFORBIDDENWORD 12x\nSFX 1 Y 1\nSFX 1 0 s .\n", "cat/1 dog/1,12 cow/12x", "cat cats",
    ),
    "no number": ("FLAG num\nFORBIDDENWORD x\nSFX 1 Y 1\nSFX 1 0 s .\n", "cat/1 dog/1,x cow/x", "cat cats"),
    "UTF-8": (
        "FLAG UTF-8\nFORBIDDENWORD ßü\nSFX äö Y 1\nSFX äö 0 s .\n", "cat/äß dog/äü cow/ö", "dog dogs cow",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHER_FLAGS)
def test_a_flag_of_another_length_begins_with_the_flag(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    rules, words, expected = OTHER_FLAGS[case]
    found = forms(tmp_path, f"SET UTF-8\n{rules}", *words.split())
    assert [form for of_word in found.values() for form in of_word] == expected.split()
    [warning] = caplog.messages
    assert "of directives are not " in warning and "only their beginning counts, as in hunspell" in warning


def test_a_word_flag_that_is_no_number_has_no_effect(tmp_path: Path) -> None:
    assert forms(tmp_path, "FLAG num\nSFX 7 Y 1\nSFX 7 0 s .\n", "cat/A", "dog/7") == {
        "cat": ["cat"], "dog": ["dog", "dogs"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "words", "what"),
    [
        ("SET HEX\n", "4\ncat\n", "a.aff, line 1: expected a character set such as UTF-8 or ISO8859-2, found 'HEX'"),
        ("SET ISO8859-99\n", "4\ncat\n", "a.aff, line 1: expected a character set"),
        ("FLAG short2\n", "4\ncat\n", "a.aff, line 1: expected FLAG long, num or UTF-8, found 'FLAG short2'"),
        ("SFX S\n", "4\ncat\n", "a.aff, line 1: expected `SFX flag Y|N number` or `SFX flag strip add condition`"),
        ("SFX S 0 s .\n", "4\ncat\n", "a.aff, line 1: expected the header of rule 'S', `SFX S Y|N number`"),
        ("SFX S Y 1\nSFX S 0 s [^s\n", "4\ncat\n", "a.aff, line 2: expected ] after [ in the condition, found '[^s'"),
        ("SFX S Y 1\nSFX S 0 s .\nSFX S 0 es .\n", "4\ncat\n", "a.aff, line 1: expected 1 lines `SFX S …` below this "
         "header, found 2; correct the number, or copy the file again"),
        ("SFX S Y 2\nSFX S 0 s .\n", "4\ncat\n",
         "a.aff, line 1: expected 2 lines `SFX S …` below this header, found 1"),
        ("AF 2\nAF S\n", "4\ncat\n", "a.aff, line 1: expected 2 lines `AF …` below this header, found 1"),
        ("AM 1\nAM S\nAM T\n", "4\ncat\n", "a.aff, line 1: expected 1 lines `AM …` below this header, found 2"),
        ("ICONV 2\nICONV a b\n", "4\ncat\n", "a.aff, line 1: expected 2 lines `ICONV …` below this header, found 1"),
        ("OCONV 1\nOCONV a\n", "4\ncat\n",
         "a.aff, line 2: expected `OCONV characters characters`, found 'OCONV a'; correct the line"),
        ("ICONV 1\nICONV _ b\n", "4\ncat\n",
         "a.aff, line 2: expected `ICONV characters characters`, found 'ICONV _ b'"),
        ("IC 1\nNEEDAFFIX\n", "4\ncat\n",
         "a.aff, line 2: expected a flag after the directive, found none; add it, or remove the line"),
        ("AF S\n", "4\ncat\n", "a.aff, line 1: expected `AF number`, found 'AF S'; correct the line"),
        ("SET UTF-8\n", "4\ncat\n\u00a0/S\n", "a.dic, line 3: the word is blank (U+00A0); expected a word"),
        ("SET UTF-8\n", "4\n\u200b\n", "a.dic, line 2: the word is blank (U+200B); expected a word"),
        ("AF 1\nAF S\n", "4\ncat/2\n", "a.dic, line 2: expected a number of the 1 sets of flags (AF), found '2'"),
        ("", "cat\n", "a.dic, line 1: expected the number of words, found 'cat'; is it a dictionary of hunspell? "
         "If so, write the number of its other lines into a new first line"),
        ("", "0\n", "a.dic: expected words, found none; is the file empty?"),
        ("SET UTF-8\n", "1\n\udcff\n", "a.dic, line 2, byte 1: expected utf-8, found the byte 0xff "
         "(invalid start byte); as declared by SET in FILE.aff; take .dic and .aff of the same dictionary"),
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
