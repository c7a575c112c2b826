"""What a step's columns stand for is an explicit record, and a search leaves nothing to the next one."""

from dataclasses import FrozenInstanceError
from typing import Any

import evidence_world
import pytest
import torch
from automaton_prior import with_grammar
from dynamic_prior import make
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld
from tiny_world import Setting, World, evaluated

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.output.records import Batch
from fairseq_llrnn.plugin.search.columns import StepColumns, candidates, only_end
from fairseq_llrnn.plugin.search.generator import ColumnGenerator
from fairseq_llrnn.prior.prior import Prior

SPECIAL = 4  # <s>, <pad>, </s>, <unk>


def first_step(setting: Setting, sources: Any = None) -> Batch:
    """Of three sentences, or as many as there are sources."""
    decoder, eos = setting.model.decoder, setting.task.target_dictionary.eos()
    encoder_out = None if sources is None else setting.model.encoder(sources["src_tokens"], sources["src_lengths"])
    tokens = torch.full((3 if sources is None else len(sources["src_tokens"]), 1), eos)
    with torch.no_grad():
        step: Batch = decoder(tokens, encoder_out=encoder_out, incremental_state={})[1]["step"]
    return step


def evidence_step(evidence: EvidenceWorld) -> tuple[Setting, Batch]:
    setting = evidence_world.make(evidence, "llrnn_lstm", "static")
    return setting, first_step(setting, evidence_world.batch(setting.task, SENTENCES)["net_input"])


def test_candidates_are_special_symbols_and_the_best_words(world: World) -> None:
    step = first_step(make(world))
    log_probs, tokens = candidates(step, 6 + SPECIAL, SPECIAL)
    everything = step.word_log_probs()
    assert tokens[:, :SPECIAL].tolist() == [[0, 1, 2, 3]] * 3
    real = log_probs.isfinite()
    torch.testing.assert_close(log_probs[real], everything.gather(1, tokens)[real])
    best = everything[:, SPECIAL:].topk(6).indices + SPECIAL
    for row, row_is_real, words in zip(tokens.tolist(), real.tolist(), best.tolist(), strict=True):
        found = [token for token, kept in zip(row, row_is_real, strict=True) if kept]
        assert len(found) == len({*found}) and {*words} <= {*found}


def test_a_forced_word_gets_the_first_column_of_candidates(evidence: EvidenceWorld) -> None:
    setting, step = evidence_step(evidence)
    dictionary = setting.task.target_dictionary
    log_probs, tokens = candidates(step, 6, SPECIAL)
    record, before = StepColumns(tokens, step, SPECIAL), tokens.clone()
    assert "Karim" not in SENTENCES[0].split() and "Karim" in SENTENCES[1].split()
    words = [dictionary.index(word) for word in ("Karim", "Karim", "</s>", "la", "<pad>")]
    forced, columns = record.forced(torch.tensor(words), log_probs)
    assert columns.tolist() == [dictionary.unk(), SPECIAL, 2, SPECIAL, 1]
    assert forced.tokens.gather(1, columns.unsqueeze(1)).squeeze(1).tolist() == words
    expected = step.log_probs_of(torch.tensor(words).unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(log_probs.gather(1, columns.unsqueeze(1)).squeeze(1), expected)
    assert torch.equal(record.tokens, before) and forced.step is step
    with pytest.raises(FrozenInstanceError):
        record.tokens = before  # type: ignore[misc]


def test_all_words_and_slots_have_their_own_columns(evidence: EvidenceWorld) -> None:
    setting, step = evidence_step(evidence)
    tokens = step.background.columns(step.states)
    log_probs, record = step.word_log_probs(), StepColumns(tokens, step)
    target = evidence_world.batch(setting.task, SENTENCES, PREFIXES)["target"][:, 0]
    before = log_probs.clone()
    forced, columns = record.forced(target, log_probs)
    assert torch.equal(forced.tokens.gather(1, columns.unsqueeze(1)).squeeze(1), target)
    assert torch.equal(log_probs, before), "they are there already"
    torch.testing.assert_close(
        before.gather(1, columns.unsqueeze(1)), step.log_probs_of(target.unsqueeze(1)), atol=1e-5, rtol=1e-5
    )


def test_only_the_end_is_given_back() -> None:
    none = -torch.inf
    log_probs = torch.tensor([[none, none, -0.5, none], [none, none, -0.5, -2.0], [none, none, none, none]])
    assert only_end(log_probs, eos=2).tolist() == [-0.5, none, none]


def test_a_search_knows_nothing_of_the_one_before(world: World) -> None:
    """Not its limit, its columns nor its hypotheses."""
    setting = evaluated(world.train_args(), with_grammar(Prior.load(world.prior("prior"))))
    dictionary = setting.task.dictionary

    def sample(rows: int) -> dict[str, Any]:
        return {"net_input": {"src_tokens": torch.full((rows, 1), dictionary.eos()), "src_lengths": torch.ones(rows)}}

    def found(generator: ColumnGenerator, rows: int) -> list[Any]:
        hypotheses = generator.generate([setting.model], sample(rows))
        return [[(h["tokens"].tolist(), h["score"].item()) for h in of_sentence] for of_sentence in hypotheses]

    for over_candidates in (True, False):
        once, twice = (
            ColumnGenerator([setting.model], dictionary, over_candidates=over_candidates, beam_size=3, max_len_b=6)
            for _ in range(2)
        )
        with pytest.raises(DataError, match="expected a complete string"):
            too_long = torch.tensor([[dictionary.index("la")] + [dictionary.index("verte")] * 5])
            twice.generate([setting.model], sample(1), prefix_tokens=too_long)
        found(twice, 3)
        assert found(twice, 2) == found(once, 2)
