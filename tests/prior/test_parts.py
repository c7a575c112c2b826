"""The parts of a prior: registration, order, reading and writing."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from automata import from_states

from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.output.class_source import ClassSource
from fairseq_llrnn.prior import Part, Prior, SavedPart, part, register_part
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, add_evidence
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.registry import load_all

SYMBOLS = (*SPECIALS, "le", "chat", "12")
COUNTS = np.array([0, 0, 5, 1, 9, 8, 3])
SOURCE = (*SPECIALS, "the", "cat", "12")
GRAMMAR = from_states([{4: (0.0, 1)}, {5: (0.0, 0), END: (0.0, 0)}], len(SYMBOLS))


def plain() -> Prior:
    return plain_prior(WordList(SYMBOLS, COUNTS), COUNTS, Lexicon(), Recipe(top_words=2))[0]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> type[Part]:
    """Return a part with an array, a number and a file."""
    load_all("parts")  # none of ours is to be known only here
    monkeypatch.setattr(part, "KINDS", part.KINDS.copy())

    @register_part("note")
    @dataclass(frozen=True)
    class NotePart(Part):
        values: np.ndarray
        text: str = "hello"

        def arrays(self) -> dict[str, np.ndarray]:
            return {"values": self.values}

        def counts(self) -> dict[str, int]:
            return {"notes": len(self.values)}

        def write(self, folder: Path) -> None:
            folder.mkdir()
            (folder / "note.txt").write_text(self.text, encoding="utf-8")

        @classmethod
        def read(cls, saved: SavedPart) -> "NotePart":
            text = (saved.folder / "note.txt").read_text(encoding="utf-8")
            return cls(saved.array("values", np.float64), text)

    return NotePart


def test_parts_of_a_kind_have_names_of_their_own(noted: type[Part], tmp_path: Path) -> None:
    prior = plain().with_part(noted(np.ones(2))).with_part(noted(np.zeros(3), "bye"))  # type: ignore[call-arg]
    assert prior.names == ["note", "note.2"]
    assert (prior.counts()["notes"], prior.counts()["notes of note.2"]) == (2, 3)
    prior.save(tmp_path / "prior")
    again = Prior.load(tmp_path / "prior")
    assert [found.text for found in again.parts] == ["hello", "bye"]  # type: ignore[attr-defined]
    assert again.fingerprint == prior.fingerprint != replace(prior, parts=prior.parts[::-1]).fingerprint
    plain().save(tmp_path / "prior")  # a prior takes the place of one with folders
    assert not (tmp_path / "prior" / "note").exists()


def test_a_part_that_is_missing_or_damaged(noted: type[Part], tmp_path: Path) -> None:
    plain().with_part(noted(np.ones(2))).save(tmp_path / "prior")  # type: ignore[call-arg]
    (tmp_path / "prior" / "note" / "note.txt").unlink()
    with pytest.raises(PriorError, match=r"No such file.*note\.txt.*; build it again"):
        Prior.load(tmp_path / "prior")
    del part.KINDS["note"]
    with pytest.raises(PriorError) as caught:
        Prior.load(tmp_path / "prior")
    said, known = str(caught.value), ", ".join(sorted(part.KINDS))  # systems bring kinds of their own
    assert {"automaton", "cache", "evidence"} <= set(known.split(", "))
    assert said == (
        f"the prior has a part 'note', expected one of {known}; install the package that has it under "
        "[fairseq_llrnn.parts], or import its module with @register_part('note') first"
    )


def test_a_part_needs_a_name_that_can_begin_those_of_arrays() -> None:
    with pytest.raises(ValueError, match="expected a name of lower case letters, digits and _ for a part"):
        register_part("My/part")


def test_backgrounds_by_themselves_come_before_all_that_wrap_one(tmp_path: Path) -> None:
    evident = add_evidence(plain(), EvidenceRules(("numbers",), {}, {}), SOURCE)
    prior = evident.with_part(AutomatonPart(GRAMMAR, "automaton"))
    assert prior.names == ["automaton", "evidence"] and prior.find(LexicalPart) is None
    background = prior.background()
    assert isinstance(background, EvidenceBackground) and isinstance(background.base, AutomatonBackground)
    assert isinstance(prior.background(has_source=False), AutomatonBackground)
    assert prior.without(EvidencePart).names == ["automaton"]
    prior.save(tmp_path / "prior")
    path = tmp_path / "prior" / "prior.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(description | {"parts": description["parts"][::-1]}), encoding="utf-8")
    with pytest.raises(PriorError, match="its parts are not in order: those with a background of their own come first"):
        Prior.load(tmp_path / "prior")


def test_what_grows_belongs_to_one_session() -> None:
    prior = plain()
    word = prior.session.target.index("Zoé")
    assert word == len(SYMBOLS) == prior.session.target.index("Zoé")
    assert "Zoé" not in replace(prior).session.target.open_index


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"class_source": lambda self, head: None}, "class_source needs class_name, found none"),
        ({"class_name": "dates"}, "class_name needs class_source, found none"),
    ],
)
def test_a_part_with_classes_has_their_name_and_their_source(members: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^part dates: {message}; class_name is the `name` of the ClassSource "):
        register_part("dates")(type("Dates", (Part,), members))


def test_a_class_source_has_the_name_that_its_part_gives(noted: type[Part]) -> None:
    class Rows(ClassSource):
        name = "rows_of_notes"

    members = {"class_name": "notes", "class_source": lambda self, head: Rows()}
    named = register_part("named")(type("Named", (noted,), members))
    prior = plain().with_part(named(np.arange(3)))  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="part named: expected .* class_name, 'notes', found 'rows_of_notes'; give"):
        LogLinearHead(prior, 4)
