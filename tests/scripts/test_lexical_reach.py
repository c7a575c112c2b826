"""scripts/lexical_reach.py: counts that are made by hand, and what it refuses."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from example_modules import SCRIPTS, load, run_on_texts

from fairseq_llrnn.alignment.source_lemmas import LemmaForms, SourceLemmas
from fairseq_llrnn.alignment.translation_table import LexicalTable, is_word
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence import add_evidence
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

WORDS = (*SPECIALS, "chat", "chats", "chien", "chiens", "vache", "vaches", "porc")
LEMMAS = [(), (), (), (), ("chat",), ("chat",), ("chien",), ("chien",), ("vache",), ("vache",), ()]
SOURCE = (*SPECIALS, "cat", "cats", "dog", "rare")
TEXTS = {
    "source": "cats\ndog\ndog rare\ncat zebra\n",
    "reference": "chats chat\nchats vaches\nchiens\nchiens inconnu\n",
    "train": "chat chien vache\n",
    "train-source": "cat dog rare\n",
}


@pytest.fixture
def script() -> ModuleType:
    _, module = load(SCRIPTS, "translated_texts", "lexical_reach")
    return module


@pytest.fixture
def prior(tmp_path: Path) -> Path:
    counts = np.array([0, 0, 10, 0, 7, 0, 2, 0, 1, 0, 0])
    made = build_prior(WORDS, Recipe(counts=counts, top_words=2))
    forms = LemmaForms.from_lemmas(LEMMAS, counts, is_word(WORDS))
    # cat: chat 5 of 5; dog: chien 2 of 100, porc the rest; the lemma of cat and cats: chat
    table = LexicalTable.from_pairs(np.array([4, 6, 6]), np.array([4, 6, 10]), np.array([5.0, 2, 98]), len(SOURCE), 3)
    of_lemmas = LexicalTable.from_pairs(np.array([4]), np.array([4]), np.array([5.0]), len(SOURCE), 3)
    lemmas = SourceLemmas(np.array([0, 1, 2, 3, 4, 4, 6, 7]), of_lemmas)
    made.with_part(LexicalPart(table, 0.5, False, "ibm1", forms, 0.5, lemmas), SOURCE).save(tmp_path / "prior")
    return tmp_path / "prior"


def run(script: ModuleType, prior: Path, monkeypatch: pytest.MonkeyPatch, **changed: str) -> int:
    return run_on_texts(script, prior, TEXTS | changed, monkeypatch)


def test_it_counts(
    script: ModuleType, prior: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(script, prior, monkeypatch) == 0
    rows = {line[:44].strip(): float(line[44:]) for line in capsys.readouterr().out.splitlines()}
    assert rows == {
        "words of the reference that training lacks": 6,
        "in the dictionary": 5,
        "… t of some source word at least 0.01": 2,  # chats of cats, by its lemma; chiens of dog
        "… t of some source word at least 0.1": 1,
        "… t of some source word at least 0.3": 1,
        "t of all source words 0": 3,
        "… the lemma is in no table": 1,  # vaches
        "… of a source word unknown": 1,  # the last chiens, beside a zebra
        "… no link": 1,  # chats beside dog
        "translations of a source token": 1.0,  # 1, 2, 2 and 0, 1 and 0, of 6
        "different ones of a sentence": 1.5,
    }


def test_slots(
    script: ModuleType, prior: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_evidence(Prior.load(prior), EvidenceRules(("translations",), {}, {}), SOURCE).save(prior)
    assert run(script, prior, monkeypatch, reference="chats\nchats vaches\nchiens\nchiens inconnu\n") == 0
    rows = {line[:44].strip(): float(line[44:]) for line in capsys.readouterr().out.splitlines()}
    assert rows["… a slot of the sentence"] == 2, "chats of cats, chiens of dog"
