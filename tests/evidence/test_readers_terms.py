"""Files of terms: what they say, and what is wrong with them."""

import re
from pathlib import Path

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evidence.misplaced_kinds import refuse_misplaced_kinds
from fairseq_llrnn.evidence.stored_terms import TermEntry
from fairseq_llrnn.evidence.terms_file import read_terms
from fairseq_llrnn.evidence.terms_tbx import read_tbx


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


def test_a_repeated_row_counts_once(tmp_path: Path) -> None:
    assert len(read(tmp_path, "dog\tpes\ndog\tpes\tNOUN\n")) == 1


def test_a_part_of_speech_may_be_written_in_any_case(tmp_path: Path) -> None:
    assert [one.upos for one in read(tmp_path, "dog\tpes\tnoun\n")] == ["NOUN"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog\n", "line 1: expected 2 to 4 columns"),
        ("a\tb\tc\td\te\n", "line 1: expected 2 to 4 columns"),
        ("dog\tpes\n\tkočka\n", "line 2: the source side is empty"),
        ("dog\t\n", "line 1: the target side is empty"),
        ("source\ttarget\n", "line 1: expected a term, found names of columns: 'source\\ttarget'; remove the row"),
        ("Source Term\tTarget_Lemma\tPOS\tForms\n", "line 1: expected a term, found names of columns"),
        ("\n src \tTRG\n", "line 2: expected a term, found names of columns"),
        ("dog\t \tNOUN\n", "line 1: the target side is empty"),
        ("dog\tp\x00es\n", "line 1: expected printable characters, found a control character in 'p\\x00es'; remove it"),
        ("dog\tpes\t\tp\x1bsa\n", "line 1: expected printable characters, found a control character"),
        ("dog\t</s>\n", "'</s>' is a special symbol"),
        ("<unk> dog\tpes\n", "'<unk>' is a special symbol"),
        ("dog\tpes\t\tpes|<pad>\n", "'<pad>' is a special symbol"),
        (f"dog\t{'pes ' * 17}\n", "expected a phrase of at most 16 words, found 17"),
        ("dog\tpes\ndog\thafan\n", "line 2: 'dog' became 'pes' in"),
        ("\n\n", "expected rows of source phrase"),
    ],
)
def test_bad_rows_are_refused_with_their_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read(tmp_path, text)
    assert message in str(raised.value) and "terms.tsv" in str(raised.value)


def test_contradictory_terms_say_how_to_give_alternatives(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be required to become both: remove one, or give both as forms"):
        read(tmp_path, "fire truck\tvůz\nfire truck\tauto\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("saw\tscie\tN\n", "line 1: expected a part of speech, one of ADJ, ADP"),
        ("saw\tscie\tNOUN\nsaw\tscie\tVERB\n", "line 2: 'saw' became 'scie' as NOUN in"),
        (f"dog\tpes\t\t{'|'.join(f'p{i}' for i in range(65))}\n", "line 1: expected at most 64 forms, found 65"),
    ],
)
def test_parts_of_speech_and_forms_are_checked(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


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
    assert read_xml(tmp_path, TBX) == [
        ("fire truck", "hasičský vůz", "NOUN"), ("fire engine", "hasičský vůz", "NOUN"),
    ]  # fmt: skip
    assert read_xml(tmp_path, TBX, "de") == [("truck & trailer", "Lastzug", None)]
    old = TBX.replace("conceptEntry", "termEntry").replace("langSec", "langSet").replace("termSec", "tig")
    assert read_xml(tmp_path, old) == read_xml(tmp_path, TBX)


def test_of_two_entries_of_a_term_the_first_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    twice = TBX.replace("truck &amp; trailer", "fire truck").replace('xml:lang="de"', 'xml:lang="cs"')
    assert ("fire truck", "hasičský vůz", "NOUN") in read_xml(tmp_path, twice)
    assert "1 terms have another translation in an earlier entry, which counts (fire truck)" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TBX.replace("</text>", ""), "line 12: expected TBX, which is XML, found: mismatched tag"),
        ("dog\tpes\n", "line 1: expected TBX, which is XML, found"),
        (
            TBX.replace(' SYSTEM "TBXcoreStructV02.dtd"', ' [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]'),
            "line 2: expected TBX without entities of its own, found one",
        ),
        (TBX.replace("stříkačka", "s" * 10_001), "expected a term of at most 10,000 characters"),
        (TBX.replace("stříkačka", "a " * 17).replace("preferred", ""), "expected a phrase of at most 16 words"),
        (TBX.replace('"cs"', '"sk"'), "expected terms in the language cs, found de, en, sk"),
    ],
)
def test_bad_tbx_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_xml(tmp_path, text)
    assert message in str(raised.value) and "terms.tbx" in str(raised.value)


def test_a_part_of_speech_in_a_term_of_tbx_belongs_in_its_note(tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    path.write_text(TBX.replace("hasičský vůz", "hasičský vůz (noun)"), encoding="utf-8")
    entry = read_tbx(path, ("en", "cs"))[0]
    message = (
        "terms.tbx, line 4: expected words as the target, found 'hasičský vůz (noun)', with a part of speech; write "
        "that in <termNote type=\"partOfSpeech\"> of the target's term"
    )
    with pytest.raises(DataError, match=re.escape(message)):
        refuse_misplaced_kinds(entry, (), ())
