"""Priors with evidence: what they hold, on disk and off it, and refusal of what is unsound."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prior_of_words import assert_needs_its_source_words

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.evidence.evidence_table import MAX_SLOTS, unknown_word_features
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.part import Part
from fairseq_llrnn.prior.parts.evidence_part import (
    EvidencePart,
    add_evidence,
    check_unsupported,
    evidence_table,
    factors_of,
)
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
WORDS = "le la maison raison saison 12 1998 3/4/2012 B-52 Lyon Bob www.a.fr"
SYMBOLS = (*SPECIAL, *WORDS.split(), "madeupword0000")
COUNTS = np.array([0, 0, 5, 2, 9, 8, 3, 2, 2, 4, 1, 1, 1, 2, 1, 1, 0])
DICTIONARY = WordList(SYMBOLS, COUNTS)
SOURCE = (*SPECIAL, "the", "house", "12", "1998", "Lyon", "1,000")
PATTERNS = {"ends": ".*on", "odd": "q+"}
RULES = EvidenceRules(("numbers", "names", "copies"), {}, {})


def build(settings: Recipe | None = None, patterns: UserPatterns | None = None) -> Prior:
    settings = settings or Recipe(top_words=2)
    return plain_prior(DICTIONARY, COUNTS, Lexicon(), settings, patterns, unused_patterns=True)[0]


def features_of(word: str, prior: Prior) -> dict[str, float]:
    """What a prior knows of an unknown word."""
    part, known = prior.find(EvidencePart), prior.output.features.index
    shapes = bool(prior.settings.get("shapes"))
    return unknown_word_features(word, known, shapes, None if part is None else part.rules.user_patterns)


def evident(rules: EvidenceRules = RULES, prior: Prior | None = None) -> Prior:
    return add_evidence(prior or build(), rules, SOURCE)


def translated(prior: Prior) -> Prior:
    table = LexicalTable.from_pairs(np.array([5]), np.array([6]), np.array([1.0]), len(SOURCE), 10)
    return prior.with_part(LexicalPart(table, 0.5, False, "none"), SOURCE)


def test_a_session_has_one_number_of_slots() -> None:
    """That of whoever asks first; another session of the same prior may have another."""
    prior = evident()
    table = evidence_table(prior, 3)
    assert table.max_slots == 3 and evidence_table(prior) is evidence_table(prior, 3) is table
    with pytest.raises(ValueError, match="expected a session with 4 slots a sentence, found one with 3"):
        evidence_table(prior, 4)
    assert evidence_table(replace(prior)).max_slots == MAX_SLOTS


# ---- features -------------------------------------------------------------------------------------------------------


def test_slots_have_features_that_no_word_has() -> None:
    prior, plain = evident(), build()
    more = ("Evidence:Number", "Evidence:Name", "Evidence:Copy", "Evidence:Unknown")
    assert prior.output.features.names == (*plain.output.features.names, *more)
    assert prior.input is prior.output
    for name in ("offsets", "indices", "values"):
        assert np.array_equal(getattr(prior.output.features, name), getattr(plain.output.features, name))
    assert np.array_equal(prior.output.class_of, plain.output.class_of)
    assert prior.source_symbols == SOURCE


def test_what_the_network_reads_stays() -> None:
    plain = build(Recipe(top_words=2, input_top_words=3))
    assert evident(prior=plain).input is plain.input


def test_a_prior_in_which_every_word_has_an_identity() -> None:
    """Unknown strings have none."""
    names = evident(prior=build(Recipe(top_words="all"))).output.features.names
    assert names[-5:] == ("NOTTOP", "Evidence:Number", "Evidence:Name", "Evidence:Copy", "Evidence:Unknown")


def test_a_pattern_for_the_source_alone_is_a_feature() -> None:
    rules = EvidenceRules(("patterns",), {}, PATTERNS)
    prior = evident(rules, build(patterns=UserPatterns(PATTERNS, "p.toml")))
    assert prior.output.features.names[-3:] == ("Pattern:odd", "Evidence:Pattern", "Evidence:Unknown")
    assert features_of("qq", prior) == {"NOTTOP": 1.0, "Pattern:odd": 1.0}


def test_an_unknown_word() -> None:
    settings = Recipe(top_words=2, shapes=True, suffixes=3)
    prior = evident(replace(RULES, patterns=PATTERNS), build(settings, UserPatterns(PATTERNS, "p.toml")))
    assert features_of("Toison", prior) == {
        "NOTTOP": 1.0, "Suffix:on": 1.0, "Suffix:son": 1.0, "Suffix:ison": 1.0, "Shape:Capitalised": 1.0,
        "Pattern:ends": 1.0,
    }  # fmt: skip
    assert features_of("17", prior) == {"NOTTOP": 1.0, "Shape:Number": 1.0, "Shape:SmallNumber": pytest.approx(0.83)}
    assert features_of("qqu", prior) == {"NOTTOP": 1.0}
    plain = evident()
    assert features_of("Toison", plain) == features_of("17", plain) == {"NOTTOP": 1.0}


@given(st.text(max_size=8))
def test_unknown_words_have_features_of_the_prior_only(word: str) -> None:
    settings = Recipe(top_words=2, shapes=True, suffixes=3)
    prior = evident(prior=build(settings))
    assert features_of(word, prior).keys() <= set(prior.output.features.names)


def test_a_word_of_the_dictionary_has_the_features_of_an_unknown_one() -> None:
    """Those that its spelling shows."""
    settings = Recipe(top_words=0, shapes=True, suffixes=3)
    prior = evident(prior=build(settings))
    for i, word in enumerate(SYMBOLS[4:-1], start=4):
        row = prior.output.features.row(int(prior.output.class_of[i]))
        assert features_of(word, prior) == pytest.approx(row)


# ---- on disk --------------------------------------------------------------------------------------------------------


def test_a_prior_with_translations_is_what_it_was() -> None:
    """Checkpoints remember the fingerprint of their prior."""
    prior = translated(build())
    prior = replace(prior, log_weights=np.round(prior.log_weights))  # logarithms differ by machine
    assert prior.fingerprint == "f515710386a18d35a6cbb5d82b056ea4f4b64f149f6851f3f67f23dd567a6f65"


def test_the_fingerprint_knows_the_evidence() -> None:
    more = EvidenceRules(("numbers",), {}, {})
    priors = [build(), evident(), evident(more), evident(replace(RULES, weight=0.5)), translated(evident())]
    priors += [translated(build()), add_evidence(build(), RULES, (*SOURCE, "x"))]
    priors += [evident(replace(more, patterns=PATTERNS))]
    assert len({prior.fingerprint for prior in priors}) == len(priors)


def test_another_source_dictionary() -> None:
    evident().check_source_dictionary(SOURCE, "data/dict.en.txt")
    with pytest.raises(PriorError) as caught:
        evident().check_source_dictionary((*SOURCE[:4], "a", *SOURCE[5:]), "data/dict.en.txt")
    assert str(caught.value) == (
        "the prior's evidence was made for another source dictionary than data/dict.en.txt: sizes 10 and 10, first "
        "difference at index 4 ('the' in the prior, 'a' in the dictionary); build it again with `llrnn prior` "
        "--set source_dictionary=data/dict.en.txt"
    )
    with pytest.raises(PriorError, match="prior's lexical translations were made .* --lexical-translation data$"):
        translated(evident()).check_source_dictionary(SOURCE[:-1], "data/dict.en.txt")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    evident().save(tmp_path / "prior")
    return tmp_path / "prior"


def damage(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = directory / "prior.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    change(description)
    path.write_text(json.dumps(description), encoding="utf-8")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"kinds": None}, "the evidence is described by something else than kinds, weight, mapping, patterns"),
        ({"mapping": []}, "the evidence is described by something else than kinds, weight, mapping, patterns"),
        ({"weight": 0.0}, "the evidence has the weight 0.0, which is none"),
        ({"kinds": ["all"]}, r"the evidence is of the kinds \['all'\], expected some of .*mapped"),
        ({"kinds": ["dates"]}, "the evidence has no feature Evidence:Date"),
        ({"patterns": {"a": "("}}, "the prior's patterns: pattern 'a' is no regular expression"),
    ],
)
def test_an_untrusted_description(saved: Path, entry: Any, says: str) -> None:
    damage(saved, lambda d: d["parts"][0].update(entry))
    with pytest.raises(PriorError, match=f"{says}.*; build it again with `llrnn prior`"):
        Prior.load(saved)


def test_features_of_slots_that_are_missing(saved: Path) -> None:
    damage(saved, lambda d: d.update(output_features=[f"x{name}" for name in d["output_features"]]))
    with pytest.raises(PriorError, match="the evidence has no feature Evidence:Copy, Evidence:Name, .*, NOTTOP; build"):
        Prior.load(saved)


def test_translations_that_are_missing(tmp_path: Path) -> None:
    rules = EvidenceRules(("numbers", "translations"), {}, {})
    with pytest.raises(ValueError, match="the evidence offers translations, and the prior has none of whole words"):
        evident(rules)
    made = evident(rules, translated(build()))
    made.save(tmp_path / "prior")
    assert Prior.load(tmp_path / "prior").fingerprint == made.fingerprint
    damage(tmp_path / "prior", lambda d: d.update(parts=[part for part in d["parts"] if "kinds" in part]))
    with pytest.raises(PriorError, match="the evidence offers translations, and the prior has none of whole words"):
        Prior.load(tmp_path / "prior")


def test_an_unknown_word_that_shares_its_signature(tmp_path: Path) -> None:
    prior = evident()
    class_of = prior.output.class_of.copy()
    class_of[5] = class_of[prior.symbols.index("<unk>")]
    output = replace(prior.output, class_of=class_of)
    replace(prior, output=output, input=output).save(tmp_path / "prior")
    with pytest.raises(PriorError, match="the evidence needs <unk> alone in its signature; build it"):
        Prior.load(tmp_path / "prior")


def test_source_words_that_are_missing_or_others(saved: Path) -> None:
    assert_needs_its_source_words(saved)


@pytest.mark.parametrize("hash_of_source", ["0", None])
def test_source_words_of_another_hash(saved: Path, hash_of_source: str | None) -> None:
    damage(saved, lambda d: d.update(source_dictionary_sha256=hash_of_source))
    with pytest.raises(PriorError, match="source.txt: expected the words the prior was made for, found others"):
        Prior.load(saved)
    damage(saved, lambda d: d.pop("source_dictionary_sha256"))
    with pytest.raises(PriorError, match="some of its parts need source words, and it has none; build"):
        Prior.load(saved)


def test_source_words_without_unknown_ones(saved: Path) -> None:
    words = "<s>\nthe"
    (saved / "source.txt").write_text(words + "\n", encoding="utf-8")
    digest = hashlib.sha256(words.encode()).hexdigest()
    damage(saved, lambda d: d.update(source_dictionary_sha256=digest))
    with pytest.raises(PriorError, match="expected it to begin with <s> <pad> </s> <unk>, found .*; build it again"):
        Prior.load(saved)


def test_a_description_too_deep(saved: Path) -> None:
    (saved / "prior.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(PriorError, match="expected JSON, found damage"):
        Prior.load(saved)


# ---- words that need evidence ---------------------------------------------------------------------------------------


def needing(unsupported: dict[str, float]) -> EvidenceRules:
    return replace(RULES, unsupported=unsupported)


def test_words_without_evidence_weigh_less() -> None:
    rules = needing({"numbers": 0.5, "names": 0.0, "dates": 1.0})
    factors = dict(zip(SYMBOLS, factors_of(build(), rules).tolist(), strict=True))
    assert factors == dict.fromkeys(SYMBOLS, 1.0) | {"12": 0.5, "1998": 0.5, "Lyon": 0.0, "Bob": 0.0}
    assert check_unsupported(build(), rules) == {
        "target words are numbers, weighed 0.5 times as much without evidence": 2,
        "target words are names, impossible without evidence": 2,
        "target words are dates, weighed 1 times as much without evidence": 1,
    }
    lines = evident(rules).find(EvidencePart).lines(evident(rules))
    assert lines[2:4] == ["numbers, weighed 0.5 times as much without evidence", "names, impossible without evidence"]


def test_padding_entries_are_no_codes() -> None:
    notes = check_unsupported(build(), needing({"codes": 0.0}))
    assert notes == {"target words are codes, impossible without evidence": 1}


def test_no_word_is_left(tmp_path: Path) -> None:
    path = tmp_path / "weights.tsv"
    path.write_text("12\t3\nBob\t2\n</s>\t1\n", encoding="utf-8")
    prior = build(Recipe(top_words=2, background=str(path)))
    with pytest.raises(OptionError) as caught:
        check_unsupported(prior, needing({"numbers": 0.0, "names": 0.0}))
    assert str(caught.value) == (
        "evidence.unsupported numbers=0 names=0: expected some word that remains possible without evidence, found "
        "none; leave a kind out"
    )


@pytest.mark.parametrize("unsound", [{"copies": 0.5}, {"numbers": 1.5}, {"numbers": "0"}, ["numbers"], {"numbers": 1}])
def test_unsound_factors(saved: Path, unsound: Any) -> None:
    damage(saved, lambda d: d["parts"][0].update(unsupported=unsound))
    with pytest.raises(PriorError, match="weights of words without evidence are invalid|is described by something"):
        Prior.load(saved)


def test_a_prior_without_factors_has_the_description_of_earlier_versions() -> None:
    assert set(RULES.description()) == {"kinds", "weight", "mapping", "patterns"}
    rules = needing({"names": 0.25})
    assert EvidenceRules.described(rules.description()) == rules and rules.identity != RULES.identity


def source_words(prior: Prior) -> dict[str, int]:
    return prior.find(EvidencePart).source_words(prior.source_symbols)


def test_source_words_by_kind() -> None:
    padded = add_evidence(build(), EvidenceRules(("codes",), {}, {}), (*SOURCE, "B-52", "madeupword0000"))
    assert source_words(padded) == {"codes": 1}
    assert source_words(evident()) == {"numbers": 3, "names": 1, "copies": 0}
    mapped = EvidenceRules(("mapped", "numbers", "dates"), {"1,000": ("1", "000"), "2,000": ("2", "000")}, {})
    assert source_words(evident(mapped)) == {"mapped": 1, "numbers": 2, "dates": 0}


def test_a_part_answers_for_its_own_strings() -> None:
    """Whichever part was asked first: a number has one id, and is a string of the parts that say so."""

    class Months(Part):
        kind, needs_source, has_source_strings = "months", True, True

        def source_index(self, prior: Prior, word: str) -> int | None:
            return prior.session.source.open(word) if word in ("november", "17") else None

    words = ("17", "november", "house", "1998", "Zoé")
    for order in (words, words[::-1]):
        prior = evident(EvidenceRules(("numbers", "names"), {}, {})).with_part(Months())
        ids = {word: prior.source_index(word) for word in (*order, *order)}
        assert (ids["house"], ids["1998"]) == (5, 7) and len(set(ids.values())) == 5
        evidence, months = prior.parts
        for part, own in ((evidence, {"17", "Zoé"}), (months, {"17", "november"})):
            answers = {word: part.source_index(prior, word) for word in words if word not in SOURCE}
            assert answers == {word: ids[word] if word in own else None for word in answers}
