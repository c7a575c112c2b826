"""Evidence of words in pieces: what a sentence offers, its slots and their weights, and what a prior keeps of it."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.backgrounds.background import StaticBackground
from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.evidence.counted_slots import quotas_of
from fairseq_llrnn.evidence.piece_table import PieceTable
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.evidence.slots import EvidenceMixture, slots_of
from fairseq_llrnn.evidence.translation_slots import EvidenceBackground
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.plugin.data.invented_evidence import in_pieces
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, Recipe, TranslationOptions

PIECES = {
    "sentencepiece": ("▁a", "▁b", "▁An", "▁", "▁4", "n", "a", "b", "4", "0", "q"),
    "bpe": ("a", "b", "An@@", "4@@", "4", "n", "a@@", "0", "0@@", "q", "q@@"),
}
KNOWN = frozenset({"a", "b", "an"})
MAPPING = {"b": ("4", "40")}


def text(convention: str) -> str:
    """A training text: what is known of the source."""
    return {"sentencepiece": "▁a ▁b ▁a n", "bpe": "a b a@@ n"}[convention]


def prior_of(convention: str, tmp_path: Path, **options: object) -> Prior:
    symbols = (*SPECIALS, *PIECES[convention])
    path = tmp_path / "text"
    path.write_text(text(convention) + "\n", encoding="utf-8")
    translations = TranslationOptions(ParallelText.read(path, path, symbols, symbols), aligner="ibm1")
    chosen = EvidenceOptions(("numbers", "names", "copies"), MAPPING)
    given = Recipe(pieces=convention, shapes=True, top_words="all", translations=translations, evidence=chosen)
    return build_prior(symbols, replace(given, **options))  # type: ignore[arg-type]


@cache
def tables() -> dict[str, PieceTable]:
    """By convention, for random sentences."""
    with TemporaryDirectory() as folder:
        return {convention: table_of(prior_of(convention, Path(folder))) for convention in PIECES}


@pytest.fixture(params=list(PIECES))
def prior(request: pytest.FixtureRequest, tmp_path: Path) -> Prior:
    return prior_of(request.param, tmp_path)


def table_of(prior: Prior) -> PieceTable:
    table = evidence_table(prior)
    assert isinstance(table, PieceTable)
    return table


def encode(table: PieceTable, line: str) -> np.ndarray:
    return np.array([table.source_index(piece) for piece in line.split()], dtype=np.int64)


def offered(table: PieceTable, line: str) -> list[tuple[list[int], list[str]]]:
    return [
        (places, [table.target.symbols[offer.word] for offer in offers])
        for _, places, offers in table.offered(encode(table, line)[None])
    ]


def test_words_are_found_in_their_pieces(tmp_path: Path) -> None:
    table = table_of(prior_of("sentencepiece", tmp_path))
    assert table.source_vocabulary == KNOWN
    line = "▁a ▁4 0 0 ▁An n a ▁b ▁4 <unk> ▁q q </s> <pad>"
    assert offered(table, line) == [([1, 2, 3], ["▁400"]), ([4, 5, 6], ["▁Anna"]), ([7], ["▁4", "▁40"]),
                                    ([10, 11], ["▁qq"])]  # fmt: skip
    assert offered(table, "▁漢 字 ▁a") == [([0, 1], ["▁漢字"])]  # pieces that the dictionary lacks
    assert table.offers(table.source_index("▁4"))[0].word == table.target.word_index["▁4"]
    bpe = table_of(prior_of("bpe", tmp_path))
    line = "a 4@@ 0@@ 0 An@@ n b 4@@ <unk> 4 q@@ q </s> <pad>"
    assert offered(bpe, line) == [([1, 2, 3], ["400"]), ([4, 5], ["Ann"]), ([6], ["4", "40"]), ([10, 11], ["qq"])]


@given(st.sampled_from(list(PIECES)), st.lists(st.integers(0, 10), min_size=1, max_size=8))
def test_it_is_what_the_rules_say_of_the_words(convention: str, numbers: list[int]) -> None:
    style = CONVENTIONS[convention]
    rules = EvidenceRules(("mapped", "numbers", "names", "copies"), MAPPING, {})
    pieces = [PIECES[convention][number] for number in numbers]
    table = tables()[convention]
    expected, place = [], 0
    for word in style.split_words(pieces):
        evidence = rules.find(style.join(word), KNOWN)
        if evidence is not None:
            places = list(range(place, place + len(word)))
            expected.append((places, [style.whole(string) for string in evidence.words]))
        place += len(word)
    assert offered(table, " ".join(pieces)) == expected
    source = encode(table, " ".join(pieces))
    assert np.flatnonzero(table.offers_at(source)).tolist() == [places[0] for places, _ in expected]
    assert table.strings(source) == len({string for _, strings in expected for string in strings})


def test_a_slot_has_its_words_places_and_counts_words(prior: Prior) -> None:
    table = table_of(prior)
    line = "▁4 0 ▁a ▁4 0" if table.convention.mark_begins else "4@@ 0 a 4@@ 0"
    source = torch.from_numpy(encode(table, line))[None]
    slots = slots_of(table, source)
    assert slots.place.tolist() == [0, 1, 3, 4] and slots.times.tolist() == [[2]] and slots.unknown.tolist() == [[True]]
    quotas = quotas_of(slots, True)
    assert quotas is not None and quotas.most.tolist() == [[2]]
    states = torch.arange(5.0).view(1, 5, 1)
    assert slots.mean_over_places(states).tolist() == [[[2.0]]]
    assert {prior.output.features.names[f] for f in slots.features.tolist()} >= {"Evidence:Number", "Evidence:Unknown"}


def test_a_slot_has_the_features_of_whole_words(prior: Prior) -> None:
    table = table_of(prior)
    line = "▁4 0 ▁4" if table.convention.mark_begins else "4@@ 0 4"
    names = prior.output.features.names
    rows = [
        {names[f] for f in table.rows[offers[0].row][0]} for _, _, offers in table.offered(encode(table, line)[None])
    ]
    place = table.convention.position(table.convention.whole("40"))
    assert rows[0] >= {place, "Shape:Number", "Evidence:Number", "Evidence:Unknown"}
    assert place in rows[1] and "Evidence:Unknown" not in rows[1]


def test_weights_are_those_of_the_formula(prior: Prior) -> None:
    """b(C; x) = b₁(x) + ε/J for each slot, whether a single piece spells it or none does."""
    table = table_of(prior)
    begins = table.convention.mark_begins
    source = torch.from_numpy(encode(table, "▁4 0 ▁4 ▁a </s>" if begins else "4@@ 0 4 a </s>"))[None]
    class_of = torch.from_numpy(prior.output.class_of.copy())
    base = StaticBackground(class_of, prior.output.num_classes, torch.from_numpy(prior.log_weights.copy()))
    bound = EvidenceBackground(base, table, 3, 3).bind(source)
    assert isinstance(bound, EvidenceMixture)
    state = bound.start(1)
    columns = zip(bound.view(state).columns[0].tolist(), bound.view(state).log_weights[0].exp().tolist(), strict=True)
    weights = dict([*columns][::-1])  # a slot that is a piece has that piece's column
    before = np.exp(prior.log_weights)
    long, short = (table.target.index(table.convention.whole(string)) for string in ("40", "4"))
    assert long >= len(prior.symbols) > short
    each = table.rules.weight / 2
    assert weights[long] == pytest.approx(each) and weights[short] == pytest.approx(before[short] + each)
    total = bound.view(state).class_mass.dense().logsumexp(1).exp().item()
    lost = before[3] * (1 - math.exp(-6.907755))  # of <unk>, beside a string that no dictionary has
    assert total == pytest.approx(before[np.isfinite(before)].sum() + 2 * each - lost, rel=1e-5)


def test_a_head_reads_targets_with_slots(prior: Prior) -> None:
    head = LogLinearHead(prior, 3, source_size=2).eval()
    begins = prior.settings["pieces"] == "sentencepiece"
    lines = ["▁4 0 ▁a", "▁a"] if begins else ["4@@ 0 a", "a"]
    source = head.encode_source(lines)
    targets = head.encode(lines, source)
    assert head.decode(targets) == (["▁40 ▁a", "▁a"] if begins else ["40 a", "a"])
    assert targets.shape == (2, 3) and head.encode(lines).shape == (2, 4)
    hidden, states = torch.randn(2, 3, 3), torch.randn(*source.shape, 2)
    assert head.loss(hidden, targets, source=source, source_states=states).isfinite()


# ---- the prior ------------------------------------------------------------------------------------------------------


def test_what_a_prior_refuses(prior: Prior, tmp_path: Path) -> None:
    part = prior.find(EvidencePart)
    bare = replace(prior.without(EvidencePart), settings={**prior.settings, "pieces": None})
    for name, made in {
        "words for words": bare.with_part(part, prior.source_symbols),
        "pieces without": prior.without(EvidencePart).with_part(EvidencePart(part.rules), prior.source_symbols),
    }.items():
        made.save(tmp_path / name)
        with pytest.raises(PriorError, match="differ in whether their words are in pieces"):
            Prior.load(tmp_path / name)


def test_known_words_without_a_text(tmp_path: Path) -> None:
    numbers = EvidenceOptions(("numbers",))
    symbols = (*SPECIALS, *PIECES["bpe"])
    made = prior_of("bpe", tmp_path, translations=None, evidence=numbers, source_dictionary=symbols)
    assert made.find(EvidencePart).source_vocabulary == frozenset()
    for kind in ("names", "copies"):
        with pytest.raises(OptionError, match=f"--evidence {kind} with --pieces .* needs --lexical-translation"):
            options = EvidenceOptions(("numbers", kind))
            prior_of("bpe", tmp_path, translations=None, evidence=options, source_dictionary=symbols)


def test_a_source_that_is_not_in_pieces(tmp_path: Path) -> None:
    words = (*SPECIALS, "two", "men")
    with pytest.raises(DataError) as error:
        numbers = EvidenceOptions(("numbers",))
        prior_of("sentencepiece", tmp_path, translations=None, evidence=numbers, source_dictionary=words)
    assert str(error.value).startswith(
        "--evidence: the source dictionary: expected pieces that begin with ▁ (--pieces sentencepiece), found none in"
    )


def test_pieces_that_look_like_numbers_can_weigh_less(prior: Prior, tmp_path: Path) -> None:
    convention = str(prior.settings["pieces"])
    less = EvidenceOptions(("numbers",), unsupported={"numbers": 0.0})
    background = prior_of(convention, tmp_path, evidence=less).background().bind()
    weights = background.view(background.start(1)).log_weights[0]
    numbers = [i for i, piece in enumerate(prior.symbols) if any(map(str.isdigit, piece))]
    assert weights[numbers].isneginf().all() and not weights.isneginf().all()


# ---- invented words -------------------------------------------------------------------------------------------------


def test_invented_words_in_the_longest_pieces() -> None:
    sentencepiece, bpe = CONVENTIONS["sentencepiece"], CONVENTIONS["bpe"]
    assert in_pieces("Anna", sentencepiece, PIECES["sentencepiece"]) == ["▁An", "n", "a"]
    assert in_pieces("qa", sentencepiece, PIECES["sentencepiece"]) == ["▁", "q", "a"]
    assert in_pieces("qx", sentencepiece, PIECES["sentencepiece"]) is None
    assert in_pieces("Ann", bpe, PIECES["bpe"]) == ["An@@", "n"] and in_pieces("nA", bpe, PIECES["bpe"]) is None
    assert in_pieces("400", bpe, PIECES["bpe"]) == ["4@@", "0@@", "0"] and in_pieces("4", bpe, PIECES["bpe"]) == ["4"]
