"""What a prior keeps for terms over pieces: the words of the target's training text, and how often each occurs."""

from pathlib import Path

import numpy as np
import pytest
from piece_terms import PIECES, prior_of

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence_part import TARGET_COUNTS, EvidencePart, add_evidence
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, Recipe, TranslationOptions
from fairseq_llrnn.systems.terms.form_analyses import forms_of_features
from fairseq_llrnn.systems.terms.phrases import source_words, target_shares, word_features


@pytest.fixture(params=list(PIECES))
def prior(request: pytest.FixtureRequest, tmp_path: Path) -> Prior:
    return prior_of(request.param, tmp_path)


def test_a_prior_keeps_the_words_of_the_training_text(prior: Prior, tmp_path: Path) -> None:
    part = prior.find(EvidencePart)
    assert part is not None and part.target_words == {"a": 3, "b": 1, "aba": 1, "ab": 2, "Ann": 1}
    assert target_shares(prior)["ab"] == 2 / 8 and set(source_words(prior)) == {"a", "b", "aba", "ab", "Ann"}
    prior.save(tmp_path / "prior")
    read = Prior.load(tmp_path / "prior")
    assert read.find(EvidencePart) == part and read.fingerprint == prior.fingerprint


def test_a_damaged_prior_is_refused(prior: Prior, tmp_path: Path) -> None:
    part = prior.find(EvidencePart)
    assert part is not None
    without = EvidencePart(part.rules, part.source_vocabulary)
    prior.without(EvidencePart).with_part(without, prior.source_symbols).save(tmp_path / "without")
    with pytest.raises(PriorError, match="differ in whether their words are in pieces"):
        Prior.load(tmp_path / "without")


def test_terms_over_pieces_need_the_training_text() -> None:
    symbols = (*SPECIALS, *PIECES["bpe"])
    with pytest.raises(OptionError) as raised:
        build_prior(
            symbols,
            Recipe(pieces="bpe", evidence=EvidenceOptions(("terms",)), source_dictionary=symbols),
        )
    assert str(raised.value) == (
        "--evidence terms with --pieces bpe needs --count-text, since only the target's training text contains whole "
        "words; add it"
    )


def test_whole_pieces_have_the_features_of_their_words(prior: Prior) -> None:
    """A piece that only begins words (`▁An`), or ends them (`n`), is none, and no form of their lemmas."""
    words = target_shares(prior)
    found = word_features(prior, words)
    style = CONVENTIONS[str(prior.settings["pieces"])]
    whole = {style.bare(p) for p in PIECES[style.name] if style.is_marked(p) == style.mark_begins}
    assert word_features(prior, words, ["POS"]) == {
        word: {name: value for name, value in row.items() if name.startswith("POS:")} for word, row in found.items()
    }
    assert set(found) == whole & set(words) == {"a", "b", "ab"} < whole
    assert np.isfinite(list(target_shares(prior).values())).all()


@pytest.mark.parametrize("pieces", ["sentencepiece", "bpe"])
def test_a_part_of_a_word_is_no_form_of_its_lemma(pieces: str, tmp_path: Path) -> None:
    pytest.importorskip("simplemma")
    texts = {
        "sentencepiece": ("▁mais on", "▁mais on", "▁chat s ▁chat"),
        "bpe": ("mais@@ on", "mais@@ on", "chat@@ s chat"),
    }
    symbols = (*SPECIALS, *dict.fromkeys(" ".join(texts[pieces]).split()))
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in texts[pieces]), encoding="utf-8")
    translations = TranslationOptions(ParallelText.read(path, path, symbols, symbols), aligner="ibm1")
    options = Recipe(
        pieces=pieces, text=[path], words=LexiconOptions(language="fr", lemma_floor=1),
        evidence=EvidenceOptions(("terms",)), translations=translations,
    )  # fmt: skip
    prior = build_prior(symbols, options)
    known = word_features(prior, target_shares(prior))
    forms = forms_of_features(known)
    assert not forms.of("maison") and list(forms.of("chat")) == ["chat"]


def test_counts_that_do_not_fit_are_refused(prior: Prior, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = EvidencePart.arrays
    for name, change in {"fewer": lambda counts: counts[1:], "negative": lambda counts: -counts}.items():
        with monkeypatch.context() as patch:
            patch.setattr(
                EvidencePart, "arrays",
                lambda part, change=change: whole(part) | {TARGET_COUNTS: change(whole(part)[TARGET_COUNTS])},
            )  # fmt: skip
            prior.save(tmp_path / name)
        with pytest.raises(PriorError, match="the evidence's target words and their counts do not match"):
            Prior.load(tmp_path / name)


def test_pieces_need_their_words(prior: Prior) -> None:
    part = prior.find(EvidencePart)
    assert part is not None
    for known, target in ((None, part.target_words), (part.source_vocabulary, None)):
        with pytest.raises(ValueError, match="over pieces, evidence needs the words of the source, and terms those of"):
            add_evidence(prior.without(EvidencePart), part.rules, prior.source_symbols, known, target)
