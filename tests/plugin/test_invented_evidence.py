"""Invented unknown words in training: alike on both sides, drawn from seed, epoch and number, only where sure."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from translation_world import TranslationWorld

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.evidence.slots import kept_offers, merged_target
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.plugin.data.invented_evidence import LEAST_PROBABILITY, POOL, certain_translations, invented_words
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence_part import add_evidence, evidence_table
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, Recipe, TranslationOptions

RULES = EvidenceRules(("numbers", "names", "copies"), {}, {})


class Pairs:
    """A data set as small as one can be."""

    def __init__(self, pairs: list[tuple[list[int], list[int]]]) -> None:
        self.pairs = [{"id": i, "source": torch.tensor(s), "target": torch.tensor(t)} for i, (s, t) in enumerate(pairs)]

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.pairs[index]


@pytest.fixture()
def prior(translation: TranslationWorld) -> Prior:
    loaded = Prior.load(translation.data / "lexical")
    return add_evidence(loaded, RULES, loaded.source_symbols)


def test_invented_words_are_new_evidence_of_all_kinds_that_can_be_invented() -> None:
    known = {"12", "paul"}
    words = invented_words(RULES, known, seed=1)
    assert len(set(words)) == 3 * POOL and not known & set(words)
    kinds = [RULES.find(word, known).kind for word in words]  # type: ignore[union-attr]
    assert kinds == ["numbers"] * POOL + ["names"] * POOL + ["copies"] * POOL
    assert words == invented_words(RULES, known, seed=1) != invented_words(RULES, known, seed=2)
    assert invented_words(EvidenceRules(("urls", "codes"), {}, {}), known, seed=1) == []


def certain(prior: Prior) -> np.ndarray:
    table = prior.find(LexicalPart).table
    return certain_translations(table, prior.source_symbols, prior.symbols, prior.log_weights)


def test_certain_translations_are_those_of_the_table(prior: Prior) -> None:
    best = certain(prior)
    assert (best >= 0).any()
    for source, target in enumerate(best.tolist()):
        row = prior.find(LexicalPart).table.row(source)
        if target >= 0:
            assert row[0][0] == target and row[0][1] >= LEAST_PROBABILITY


def test_both_sides_get_the_same_string_where_a_word_and_its_translation_stand_once(prior: Prior) -> None:
    from fairseq_llrnn.plugin.data.invented_evidence import MOST, InventedEvidence

    best = certain(prior)
    sources = np.flatnonzero(best >= 0)
    once = {int(best[s]): int(s) for s in sources}  # one source word for each translation
    a, b, c = list(once.values())[:3]
    x, y, z = int(best[a]), int(best[b]), int(best[c])
    eos = 2
    pairs = [([a, b, c, eos], [z, x, y, eos])] * 40 + [([a, a, eos], [x, eos]), ([a, eos], [x, x, eos]), ([eos], [eos])]
    data = InventedEvidence(Pairs(pairs), prior, 0.999, seed=3)  # type: ignore[arg-type]
    table, changed = evidence_table(prior), 0
    for i in range(len(pairs)):
        pair, (source, target) = data[i], pairs[i]
        new = {s: w for s, w in zip(source, pair["source"].tolist(), strict=True) if s != w}
        assert len(new) <= (MOST if i < 40 else 0)
        changed += len(new)
        for s, w in new.items():
            string = table.source.symbols[w]
            place = target.index(int(best[s]))
            assert table.target.symbols[pair["target"].tolist()[place]] == string
            assert table.offers(w)[0].unknown and table.target.symbols[table.offers(w)[0].word] == string
        kept = [t for t in pair["target"].tolist() if t < len(prior.symbols)]
        assert kept == [t for t in target if t not in [int(best[s]) for s in new]]
    assert changed >= 40


def test_the_draws_depend_on_seed_epoch_and_number(prior: Prior) -> None:
    from fairseq_llrnn.plugin.data.invented_evidence import InventedEvidence

    best = certain(prior)
    a = int(np.flatnonzero(best >= 0)[0])
    pairs = [([a, 2], [int(best[a]), 2])] * 50

    def drawn(seed: int, epoch: int) -> list[list[int]]:
        data = InventedEvidence(Pairs(pairs), prior, 0.5, seed)  # type: ignore[arg-type]
        data.set_epoch(epoch)
        return [data[i]["source"].tolist() for i in range(50)]

    assert drawn(1, 1) == drawn(1, 1)
    assert drawn(1, 1) != drawn(1, 2) and drawn(1, 1) != drawn(2, 1)
    assert 10 < sum(row[0] != a for row in drawn(1, 1)) < 40


# ---- over pieces ----------------------------------------------------------------------------------------------------

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(params=["sentencepiece", "bpe"])
def piece_prior(request: pytest.FixtureRequest, tmp_path: Path) -> Prior:
    """Eighty words of one piece, each its own translation; letters and digits spell all others."""
    style = CONVENTIONS[request.param]
    words = [f"{a}{b}o" for a in LETTERS[:10] for b in LETTERS[:8]]
    singles = [*LETTERS, *LETTERS.upper(), *"0123456789."]
    shuffled = [word for round_ in range(8) for word in random.Random(round_).sample(words, 80)]
    lines = [" ".join(map(style.whole, shuffled[i : i + 4])) for i in range(0, len(shuffled), 4)]
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    symbols = (*SPECIALS, *map(style.whole, words), *singles, *map(style.mark, singles))
    options = Recipe(
        pieces=request.param, top_words="all", text=path, evidence=EvidenceOptions(RULES.kinds),
        translations=TranslationOptions(ParallelText.read(path, path, symbols, symbols), aligner="ibm1"),
    )  # fmt: skip
    return build_prior(symbols, options)


def test_over_pieces_an_invented_word_is_several_of_them_and_one_slot(piece_prior: Prior) -> None:
    from fairseq_llrnn.plugin.data.invented_evidence import MOST, InventedEvidence

    table = evidence_table(piece_prior)
    sentence = list(range(4, 12))
    pairs = [([*sentence, 2], [*sentence[::-1], 2])] * 40
    data = InventedEvidence(Pairs(pairs), piece_prior, 0.999, seed=3)  # type: ignore[arg-type]
    changed = 0
    for i in range(40):
        source, target = data[i]["source"], data[i]["target"]
        strings = [token for token in target.tolist() if token >= len(piece_prior.symbols)]
        assert len(target) == 9 and len(strings) <= MOST
        [slots] = kept_offers(table, source.numpy()[None])
        assert {offer.word for offer, _ in slots} == set(strings) and all(offer.unknown for offer, _ in slots)
        assert all(token < len(piece_prior.symbols) for token in source.tolist()), "all pieces are known"
        assert [t for t in target.tolist() if t not in strings] == [t for t in [*sentence[::-1], 2] if t in source]
        assert merged_target(table, source, target).equal(target)
        changed += len(strings)
    assert changed >= 40


def test_over_pieces_parts_of_words_keep_their_places(piece_prior: Prior) -> None:
    """A piece that is only a part of a word has no invented word put into its place."""
    from fairseq_llrnn.plugin.data.invented_evidence import InventedEvidence

    style = CONVENTIONS[str(piece_prior.settings["pieces"])]
    more = piece_prior.symbols.index("s" if style.mark_begins else style.mark("s"))
    words = [w for word in range(4, 12) for w in ([word, more] if style.mark_begins else [more, word])]
    pairs = [([*words, 2], [*range(4, 12), 2])] * 10 + [([*range(4, 12), 2], [*words, 2])] * 10
    data = InventedEvidence(Pairs(pairs), piece_prior, 0.999, seed=3)  # type: ignore[arg-type]
    for i, (source, target) in enumerate(pairs):
        assert data[i]["source"].tolist() == source and data[i]["target"].tolist() == target
