"""The bilingual corpus: same seed same bytes, English and French of one structure, gold facts that hold."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lexicons import read_tsv_lexicon

from toy_french.bilingual import Bitext, Pair, evidence, make_bitext, write_bitext

SPLITS = ("train", "valid", "test")
# of make_bitext(200, seed=3), on any machine; a wanted change of the language needs a new one
DIGEST = "a1d009dc9a0874be5777f16f75c36e1ae75e6dea187d4affb158fc614e2ea471"


@pytest.fixture(scope="module")
def bitext() -> Bitext:
    return make_bitext(pairs=2000, seed=7)


@pytest.fixture(scope="module")
def folder(bitext: Bitext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bitext") / "new" / "folder"
    write_bitext(bitext, path)
    return path


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def pairs_of(bitext: Bitext) -> Iterator[Pair]:
    return (pair for split in SPLITS for pair in bitext.splits[split])


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in lines(path)]


# -- the files as a whole ---------------------------------------------------------------------------


def test_same_seed_gives_the_same_bytes_everywhere(tmp_path: Path) -> None:
    def digest(seed: int) -> str:
        write_bitext(make_bitext(200, seed), tmp_path / str(seed))
        files = sorted((tmp_path / str(seed)).iterdir())
        return hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()

    assert digest(3) == digest(3) == DIGEST
    assert digest(4) != DIGEST
    assert not list(tmp_path.glob("*/*.tmp"))


def test_the_lexicon_reads_and_knows_every_word_but_unseen_evidence(bitext: Bitext, folder: Path) -> None:
    lexicon = read_tsv_lexicon(folder / "lexicon.tsv", lowercase=False)
    vocabulary = {line.split()[0] for line in lines(folder / "vocabulary.fr.txt")}
    assert {row[0] for row in rows(folder / "lexicon.tsv")} == vocabulary
    for pair in pairs_of(bitext):
        unseen = {fact.target for fact in pair.copies if not fact.seen}
        for place, word in enumerate(pair.french):
            assert (word in lexicon) != (place in unseen), word


# -- words to copy ----------------------------------------------------------------------------------


def test_the_rule_finds_exactly_the_words_to_copy(bitext: Bitext) -> None:
    for pair in pairs_of(bitext):
        assert [fact.source for fact in pair.copies] == [
            place for place, word in enumerate(pair.english) if evidence.is_evidence(word)
        ]
        targets = {fact.target for fact in pair.copies}
        assert len(targets) == len(pair.copies)
        months = {fact.target for fact in pair.copies if fact.kind == "month"}
        assert targets - months == {place for place, word in enumerate(pair.french) if evidence.is_evidence(word)}


def test_most_words_to_copy_are_unseen_on_both_sides(bitext: Bitext, folder: Path) -> None:
    english_words, french_words = (
        {word for line in lines(folder / f"train.{language}") for word in line.split()} for language in ("en", "fr")
    )
    for split in ("valid", "test"):
        facts = [fact for pair in bitext.splits[split] for fact in pair.copies]
        for fact in facts:
            assert (fact.english in english_words or fact.french in french_words) == fact.seen
        unseen = Counter(fact.kind for fact in facts if not fact.seen)
        assert len(facts) > 90 and 0.5 < unseen.total() / len(facts) < 0.85
        assert unseen["number"] > 20 and unseen["name"] > 10
        assert all(word not in english_words for word in ("36", "1986")) and "37" in english_words
    assert all(fact.seen for pair in bitext.splits["train"] for fact in pair.copies)


# -- agreement --------------------------------------------------------------------------------------


def test_every_agreement_agrees(bitext: Bitext, folder: Path) -> None:
    analyses: dict[str, list[dict[str, str]]] = {}
    for form, lemma, upos, feats in rows(folder / "lexicon.tsv"):
        shown = dict(pair.split("=") for pair in feats.split("|")) if feats != "_" else {}
        analyses.setdefault(form, []).append({"lemma": lemma, "upos": upos, **shown})

    adjectives = {
        form
        for form, of_form in analyses.items()
        if all(row["upos"] == "ADJ" and {"Gender", "Number"} & row.keys() for row in of_form)
    }

    def wanted(row: dict[str, str], gender: str, number: str) -> bool:
        return row.get("Gender", gender) == gender and row.get("Number", number) == number

    checked = 0
    for pair in pairs_of(bitext):
        for fact in pair.agreements:
            assert pair.french[fact.target] == fact.form and fact.gender in ("Fem", "Masc")
            of_lemma = [row for row in analyses[fact.form] if (row["lemma"], row["upos"]) == (fact.lemma, fact.upos)]
            assert any(wanted(row, fact.gender, fact.number) for row in of_lemma), (fact, pair.french)
            of_controller = analyses.get(pair.french[fact.controller], [])
            controller = [row for row in of_controller if row["upos"] in ("NOUN", "PRON", "PROPN")]
            assert not controller or any(wanted(row, fact.gender, fact.number) for row in controller)
            checked += 1
        agreeing = {fact.target for fact in pair.agreements}
        for place, form in enumerate(pair.french):  # no adjective is left out
            if form in adjectives:
                assert place in agreeing, (form, pair.french)
    assert checked > 1500
