"""Files of terms: what they say, and what is wrong with them."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lexicons import BLANKS, ENDS, WITHOUT_WIDTH

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.terms.tbx_file import is_xml, read_tbx
from fairseq_llrnn.systems.terms.tsv_file import (
    EntriesByKey,
    StoredTerms,
    TermEntry,
    check_kind_places,
    read_terms,
)


def read(tmp_path: Path, text: str) -> list[TermEntry]:
    path = tmp_path / "terms.tsv"
    path.write_text(text, encoding="utf-8")
    return list(read_terms(path))


def test_columns_may_be_left_out_or_empty(tmp_path: Path) -> None:
    rows = ["dog\tpes", "", "fire  truck\thasičský vůz\tNOUN\t", "red\tčervený\t\tčervený| červená|rudé  kolo"]
    found = read(tmp_path, "\n".join(rows))
    assert [(one.source, one.target, one.upos, one.forms) for one in found] == [
        (("dog",), "pes", None, ()),
        (("fire", "truck"), "hasičský vůz", "NOUN", ()),
        (("red",), "červený", None, ("červený", "červená", "rudé kolo")),
    ]
    assert len(read(tmp_path, "dog\tpes\ndog\tpes\tNOUN\n")) == 1
    assert [one.upos for one in read(tmp_path, "dog\tpes\tnoun\n")] == ["NOUN"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog\n", "line 1: expected 2 to 4 columns"),
        ("a\tb\tc\td\te\n", "line 1: expected 2 to 4 columns"),
        ("dog\tpes\n\tkočka\n", "line 2: the source side is empty"),
        ("dog\t\n", "line 1: the target side is empty"),
        ("dog\t \tNOUN\n", "line 1: the target side is empty"),
        ("dog\tp\x00es\n", "line 1: expected printable characters, found a control character in 'p\\x00es'; remove it"),
        ("dog\tpes\t\tp\x1bsa\n", "line 1: expected printable characters, found a control character"),
        ("dog\t</s>\n", "'</s>' is a special symbol"),
        ("<unk> dog\tpes\n", "'<unk>' is a special symbol"),
        ("dog\tpes\t\tpes|<pad>\n", "'<pad>' is a special symbol"),
        (f"dog\t{'pes ' * 17}\n", "expected a phrase of at most 16 words, found 17"),
        ("dog\tpes\ndog\thafan\n", "line 2: 'dog' has the target 'hafan' here and 'pes' in"),
        ("dog\tpes\ndog\thafan\n", "can have one target only: remove one, or give both as forms"),
        ("saw\tscie\tN\n", "line 1: expected a part of speech, one of ADJ, ADP"),
        ("saw\tscie\tNOUN\nsaw\tscie\tVERB\n", "has the target 'scie' as VERB here and 'scie' as NOUN in"),
        (f"dog\tpes\t\t{'|'.join(f'p{i}' for i in range(65))}\n", "line 1: expected at most 64 forms, found 65"),
        ("\n\n", "expected rows of source phrase"),
    ],
)
def test_bad_rows_are_refused_with_their_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value) and "terms.tsv" in str(raised.value)


TBX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<tbx xmlns="urn:iso:std:iso:30042:ed-2"><text><body>
<conceptEntry id="1"><langSec xml:lang="en-GB"><termSec><term>fire  truck</term></termSec>
  <termSec><term>fire <!-- engine --> engine</term></termSec>
  <termSec><term>fire waggon</term><termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></termSec>
 </langSec><langSec xml:lang="cs"><termSec><term>stříkačka</term></termSec>
  <termSec><term>hasičský vůz</term><termNote type="partOfSpeech">noun</termNote>
   <termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></termSec></langSec></conceptEntry>
<conceptEntry id="2"><langSec xml:lang="en"><termSec><term>truck &amp; trailer</term></termSec></langSec>
 <langSec xml:lang="de"><termSec><term>Lastzug</term></termSec></langSec></conceptEntry>
</body></text></tbx>"""


def read_xml(tmp_path: Path, text: str, target: str = "cs") -> list[tuple[str, str, str | None]]:
    path = tmp_path / "terms.tbx"
    path.write_text(text, encoding="utf-8")
    return [(" ".join(one.source), one.target, one.upos) for one in read_tbx(path, ("en", target))]


def test_tbx_gives_preferred_terms_of_two_languages(tmp_path: Path) -> None:
    assert read_xml(tmp_path, TBX) == [("fire truck", "hasičský vůz", "NOUN"), ("fire engine", "hasičský vůz", "NOUN")]
    assert read_xml(tmp_path, TBX, "de") == [("truck & trailer", "Lastzug", None)]
    old = TBX.replace("conceptEntry", "termEntry").replace("langSec", "langSet").replace("termSec", "tig")
    assert read_xml(tmp_path, old) == read_xml(tmp_path, TBX)


MIN = """<?xml version="1.0"?>
<TBX dialect="TBX-Min"><header><id>a</id><languages source="en" target="cs"/></header><body>
<entry id="1"><langGroup xml:lang="en"><termGroup><term>fire truck</term></termGroup></langGroup>
 <langGroup xml:lang="cs"><termGroup><term>stříkačka</term><termStatus>notRecommended</termStatus></termGroup>
  <termGroup><term>hasičský vůz</term><partOfSpeech>noun</partOfSpeech><termStatus>preferred</termStatus></termGroup>
 </langGroup></entry></body></TBX>"""


def test_tbx_min(tmp_path: Path) -> None:
    assert read_xml(tmp_path, MIN) == [("fire truck", "hasičský vůz", "NOUN")]


@pytest.mark.parametrize("text", ['<tmx version="1.4">\n<tbx/></tmx>', '<a:tmx xmlns:a="b"><tbx/></a:tmx>'])
def test_another_root_element_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_xml(tmp_path, text)
    assert str(raised.value) == (
        f"{tmp_path}/terms.tbx, line 1: expected TBX, with the root element <martif> or <tbx>, found <tmx>; export the "
        "terms as TBX, or write a TSV with rows `source<TAB>target`"
    )


def test_xml_is_known_by_its_beginning(tmp_path: Path) -> None:
    others = ("<b>\tx\n", "< 5\t< 6\n", "a\tb", "")
    for text, expected in (*((text, True) for text in (TBX, MIN)), *((text, False) for text in others)):
        for encoding in ("utf-8", "utf-8-sig", *(["utf-16"] if expected else [])):
            (tmp_path / "a").write_text(text, encoding=encoding)
            assert is_xml(tmp_path / "a") == expected, (text, encoding)
    utf16 = MIN.replace("?>", ' encoding="UTF-16"?>')
    (tmp_path / "a").write_text(utf16, encoding="utf-16")
    assert [entry.target for entry in read_tbx(tmp_path / "a", ("en", "cs"))] == ["hasičský vůz"]


def test_of_two_entries_of_a_term_the_first_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    twice = TBX.replace("truck &amp; trailer", "fire truck").replace('xml:lang="de"', 'xml:lang="cs"')
    assert ("fire truck", "hasičský vůz", "NOUN") in read_xml(tmp_path, twice)
    assert "1 terms have another translation in an earlier entry, which is used (fire truck)" in caplog.text


def tbx(terms: str, style: str = "dca") -> str:
    """`livre forbidden | maison preferred noun @fr-CA` as French terms of one entry, with status and part of speech."""
    named = ("administrativeStatus", "partOfSpeech")
    languages: dict[str, str] = {}
    for term in terms.split("|"):
        words, _, language = term.strip().partition(" @")
        text, *notes = words.split(" ")
        elements = [
            f"<min:{kind}>{note}</min:{kind}>" if style == "dct" else f'<termNote type="{kind}">{note}</termNote>'
            for kind, note in zip(named, notes, strict=False)
            if note
        ]
        languages.setdefault(language or "fr", "")
        languages[language or "fr"] += f"<termSec><term>{text}</term>{''.join(elements)}</termSec>"
    sections = (f'<langSec xml:lang="{tag}">{inner}</langSec>' for tag, inner in languages.items())
    return (
        f'<?xml version="1.0"?>\n<tbx style="{style}" xmlns:min="http://www.tbxinfo.net/ns/min"><text><body><conceptEntry>'
        f'<langSec xml:lang="en"><termSec><term>house</term></termSec></langSec>{"".join(sections)}'
        "</conceptEntry></body></text></tbx>"
    )


NEVER = [
    "deprecatedTerm-admn-sts", "supersededTerm-admn-sts", "deprecatedTerm", "forbidden", "Forbidden", "FORBIDDEN TERM",
    "deprecated", "superseded", "obsolete", "Obsolete_Term", "notRecommended", "not-recommended", "NOT_RECOMMENDED",
    "non-preferred", "unapproved", "do-not-use", "prohibited", "rejected",
]  # fmt: skip
BEST = ["preferredTerm-admn-sts", "preferredTerm", "preferred", "Preferred_Term", "approved", "APPROVED", "recommended"]
GOOD = ["legalTerm-admn-sts", "regulatedTerm-admn-sts", "standardizedTerm-admn-sts", "standardised"]
ADMITTED = ["admittedTerm-admn-sts", "admitted", "allowed", "", "unspecified"]


@pytest.mark.parametrize(
    ("style", "kind", "status"),
    [*(("dca", "administrativeStatus", status) for status in NEVER), *((style, kind, "forbidden") for style in
     ("dca", "dct") for kind in ("administrativeStatus", "AdministrativeStatus", "normativeAuthorization"))],
)  # fmt: skip
def test_a_term_that_its_status_forbids_is_never_required(
    style: str, kind: str, status: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = tbx(f"livre {status.replace(' ', '&#32;')} | maison", style).replace("administrativeStatus", kind)
    assert read_xml(tmp_path, text, "fr") == [("house", "maison", None)]
    caplog.set_level("INFO")
    assert f"terms.tbx: 1 terms are left out by their status '{status}' (line 2)" in caplog.text
    alone = tbx(f"livre {status.replace(' ', '&#32;')}", style).replace("administrativeStatus", kind)
    assert read_xml(tmp_path, alone, "fr") == []
    assert "0 of 1 source terms read; left out: 1 of entries without a target term to use" in caplog.text


@pytest.mark.parametrize(
    ("better", "worse"),
    [*((one, GOOD[0]) for one in BEST), *((BEST[0], one) for one in GOOD), *((one, ADMITTED[0]) for one in GOOD),
     *((GOOD[0], one) for one in ADMITTED), *((one, "odd") for one in ADMITTED)],
)  # fmt: skip
def test_the_term_with_the_best_status_counts(better: str, worse: str, tmp_path: Path) -> None:
    assert read_xml(tmp_path, tbx(f"livre {worse} | maison {better}"), "fr") == [("house", "maison", None)]


def test_unknown_statuses_and_parts_of_speech_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = tbx("livre odd Substantif | maison | \u200b | demeure odd other")
    assert read_xml(tmp_path, text, "fr") == [("house", "maison", None)]
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/terms.tbx: 2 terms have the unknown status 'odd': others come first (line 2); 1 terms have "
        "the unknown part of speech 'Substantif' (line 2); 1 terms are empty (line 2)"
    ]


@pytest.mark.parametrize("style", ["dca", "dct"])
@pytest.mark.parametrize(
    ("said", "upos"),
    [("noun", "NOUN"), ("Noun", "NOUN"), ("NOUN", "NOUN"), ("properNoun", "PROPN"), ("proper-noun", "PROPN"),
     ("Proper_Noun", "PROPN"), ("PROPN", "PROPN"), ("Adj", "ADJ"), ("VERB", "VERB"), ("other", None)],
)  # fmt: skip
def test_parts_of_speech_in_any_case(style: str, said: str, upos: str | None, tmp_path: Path) -> None:
    assert read_xml(tmp_path, tbx(f"maison preferred {said}", style), "fr") == [("house", "maison", upos)]


TAKEN = "1 entries have no term in pt-br: the one in pt-pt is used (line 2)"
BRAZIL = "autocarro @pt-PT | coletivo @pt | ônibus @pt_BR | micro deprecated @PT-br"


@pytest.mark.parametrize(
    ("terms", "asked", "expected", "note"),
    [
        *((BRAZIL, asked, "ônibus", "") for asked in ("pt_BR", "pt-BR", "PT_br")),
        (BRAZIL, "pt_PT", "autocarro", ""),
        (BRAZIL, "pt", "coletivo", ""),
        (BRAZIL, "pt_AO", "coletivo", ""),
        ("autocarro preferred @pt-PT | ônibus @pt-BR", "pt_BR", "ônibus", ""),
        ("autocarro @pt-PT | ônibus deprecated @pt-BR", "pt_BR", "autocarro", TAKEN),
        ("autocarro @pt-PT | ônibus @pt-BR", "pt", "autocarro", ""),
        ("autocarro @pt-PT", "pt_BR", "autocarro", TAKEN),
        ("jian @zh-Hans | fan @zh-Hant", "zh_Hant_TW", "fan", ""),
        ("jian @zh-Hans-CN | fan @zh-Hant-TW", "zh_TW", "fan", ""),
    ],
)  # fmt: skip
def test_of_several_regions_the_nearest_counts(
    terms: str, asked: str, expected: str, note: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_xml(tmp_path, tbx(terms), asked) == [("house", expected, None)]
    assert note in caplog.text and ("is used" in caplog.text) == bool(note)


@pytest.mark.parametrize("term", ["maison&nbsp;de cartes", "&eacute;t&eacute;", "&amp;&foo;"])
@pytest.mark.parametrize(
    ("head", "found"),
    [
        ('<?xml version="1.0"?>\n', "expected TBX, which is XML, found: undefined entity; export the"),
        ('<?xml version="1.0" standalone="yes"?>\n', "expected TBX, which is XML, found: undefined entity; export the"),
        ('<!DOCTYPE tbx SYSTEM "a.dtd">\n', r"expected text, found the undefined entity &\w+;; write the character"),
    ],
)
def test_undefined_entities_are_an_error(head: str, found: str, term: str, tmp_path: Path) -> None:
    text = tbx("maison").replace('<?xml version="1.0"?>\n', head)
    with pytest.raises(DataError, match=f"terms.tbx, line 2: {found}"):
        read_xml(tmp_path, text.replace("maison", term), "fr")


def test_entities_of_xml_are_read(tmp_path: Path) -> None:
    assert read_xml(tmp_path, tbx("&amp;&lt;&#233;"), "fr") == [("house", "&<é", None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TBX.replace("</text>", ""), "line 12: expected TBX, which is XML, found: mismatched tag"),
        ("dog\tpes\n", "line 1: expected TBX, which is XML, found"),
        (TBX.replace(' SYSTEM "TBXcoreStructV02.dtd"', ' [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]'),
         "line 2: entities defined in the file (<!ENTITY …>) are not supported"),
        (TBX.replace("stříkačka", "s" * 10_001), "expected a term of at most 10,000 characters"),
        (TBX.replace("stříkačka", "a " * 17).replace("preferred", ""), "expected a phrase of at most 16 words"),
        (TBX.replace('"cs"', '"sk"'), "expected terms in the language cs, found de, en, sk"),
    ],
)  # fmt: skip
def test_bad_tbx_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_xml(tmp_path, text)
    assert message in str(raised.value) and "terms.tbx" in str(raised.value)


def test_a_part_of_speech_in_a_term_of_tbx_belongs_in_its_note(tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    path.write_text(TBX.replace("hasičský vůz", "hasičský vůz (noun)"), encoding="utf-8")
    entry = read_tbx(path, ("en", "cs"))[0]
    message = (
        "terms.tbx, line 4: the target 'hasičský vůz (noun)' ends in a part of speech; write the part of speech in "
        "<termNote type=\"partOfSpeech\"> of the target's term"
    )
    with pytest.raises(DataError, match=re.escape(message)):
        check_kind_places(entry, (), ())


@pytest.mark.parametrize("blank", [*BLANKS, *WITHOUT_WIDTH], ids=ascii)
@pytest.mark.parametrize("text", ["a\tb\n@\tb\n", "a\tb\nc\t@\n", "a\tb\nc\td\t\td|x @ x\n"])
def test_a_word_that_shows_nothing(tmp_path: Path, text: str, blank: str) -> None:
    if "|" in text and not blank.strip():  # a blank between the words of a phrase, as any
        assert len(read(tmp_path, text.replace("@", blank))) == 2
        return
    with pytest.raises(DataError, match=r"terms.tsv, line 2: "):
        read(tmp_path, text.replace("@", blank))


@pytest.mark.parametrize("blank", ["", *BLANKS, *WITHOUT_WIDTH], ids=ascii)
def test_terms_of_tbx_that_show_nothing_are_counted(
    blank: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = (
        '<termEntry><langSet xml:lang="en"><tig><term>a</term></tig></langSet><langSet xml:lang="fr">\n'
        "<tig><term>@</term></tig><tig><term>b</term></tig></langSet></termEntry>"
    )
    (tmp_path / "a.tbx").write_text(f"<martif>{entry}</martif>".replace("@", blank), encoding="utf-8")
    assert [entry.target for entry in read_tbx(tmp_path / "a.tbx", ("en", "fr"))] == ["b"]
    assert caplog.messages == [f"{tmp_path}/a.tbx: 1 terms are empty (line 2)"]


@pytest.mark.parametrize("end", ENDS, ids=ascii)
def test_a_line_ends_nowhere_else(tmp_path: Path, end: str) -> None:
    assert len(read(tmp_path, f"s0\ta b\ns1\ta{end}b\ns2\tb a\r\n")) == 3


# Terms on disk: as they were given, each source phrase once, found by keys, and in processes that were forked
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
ENTRIES = st.lists(
    st.builds(
        TermEntry, st.lists(WORDS, max_size=2).map(tuple), WORDS, st.sampled_from([None, "NOUN"]),
        st.lists(WORDS, max_size=2).map(tuple), WORDS, WORDS,
    ), max_size=12,
)  # fmt: skip


@given(ENTRIES)
def test_the_first_entry_of_each_phrase_is_kept(entries: list[TermEntry]) -> None:
    pairs: list[tuple[TermEntry, TermEntry]] = []
    stored = StoredTerms(entries, lambda first, later: pairs.append((first, later)))
    first: dict[tuple[str, ...], TermEntry] = {}
    for entry in entries:
        first.setdefault(entry.source, entry)
    assert list(stored) == [stored[row] for row in range(len(stored))] == list(first.values())
    assert len(pairs) == len(entries) - len(first) and all(first[later.source] == one for one, later in pairs)


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=2)))
def test_entries_are_found_by_their_keys(keys: list[list[str]]) -> None:
    by_key = EntriesByKey(map(set, keys))
    for key in "abcd":
        assert by_key.rows(key) == [row for row, some in enumerate(keys) if key in some]


def test_a_forked_process_reads_them_too() -> None:
    stored = StoredTerms((TermEntry((f"w{i}",), "x") for i in range(100)), lambda *_: None)
    child = os.fork()
    if child == 0:
        os._exit(sum(entry.source == (f"w{i}",) for i, entry in enumerate(stored)))
    assert all(stored[i].source == (f"w{i}",) for i in range(100))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 100
