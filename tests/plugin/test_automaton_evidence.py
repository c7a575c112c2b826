"""Evidence beside backgrounds that know the words before: loss, single steps and searches agree."""

from typing import Any

import positions
import pytest
import torch
from automaton_prior import with_bigrams, with_grammar
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld, batch, make
from tiny_world import Setting
from translation_world import assert_steps_agree

from fairseq_llrnn.plugin.search.generator import ColumnGenerator
from fairseq_llrnn.prior.prior import Prior

# the root gives every word after these; the grammar allows only a few, but for what the source offers
BIGRAMS = {"le": {"chat": 0.6, "roi": 0.1}, "la": {"mer": 0.5}}
PHRASES = [{"le": 1, "la": 1}, {"chat": 2, "mer": 2}, {"</s>": 0, "le": 1, "la": 1}]


def made(evidence: EvidenceWorld, kind: str) -> Setting:
    prior = Prior.load(evidence.data / "static")
    known = with_bigrams(prior, BIGRAMS) if kind == "bigrams" else with_grammar(prior, PHRASES)
    return make(evidence, "llrnn_lstm", "static", loaded=known)


@pytest.mark.parametrize("kind", ["bigrams", "grammar"])
def test_losses_steps_and_searches_agree(evidence: EvidenceWorld, kind: str) -> None:
    setting = made(evidence, kind)
    assert not setting.model.decoder.head.background.bind().is_context_independent
    lines = PREFIXES if kind == "bigrams" else ["le chat", "la mer le chat"] * len(SENTENCES)
    sample = batch(setting.task, SENTENCES, lines[: len(SENTENCES)])
    assert_steps_agree(setting, sample)
    with torch.no_grad():
        losses, _, _ = setting.criterion(setting.model, sample, reduce=False)
        output = setting.model(**sample["net_input"])
        whole = setting.model.get_normalized_probs(output, log_probs=True)  # shape: (B, T, V + J)
    target = sample["target"]
    mask = target.ne(setting.task.target_dictionary.pad())
    columns = positions.columns(output[1]["batch"], target).unsqueeze(2)
    torch.testing.assert_close(losses[mask], -whole.gather(2, columns).squeeze(2)[mask], rtol=1e-4, atol=1e-4)
    setting.model.train()
    setting.criterion(setting.model, sample)[0].backward()
    assert all(bool(p.grad.isfinite().all()) for p in setting.model.parameters() if p.grad is not None)
    setting.model.eval()

    def search(**options: Any) -> list[list[tuple[list[int], float]]]:
        made = ColumnGenerator([setting.model], setting.task.target_dictionary, **options)
        assert made.limited == (kind == "grammar")
        found = made.generate([setting.model], sample)
        return [[(h["tokens"].tolist(), h["score"].item()) for h in hypotheses] for hypotheses in found]

    for options in ({"beam_size": 3, "max_len_b": 7}, {"beam_size": 2, "max_len_b": 4, "min_len": 2}):
        ours, whole_vocabulary = (search(over_candidates=over, **options) for over in (True, False))
        for one, other in zip(ours, whole_vocabulary, strict=True):
            assert len(one) == len(other) >= 1
            assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-4)
            assert all(len(tokens) <= options["max_len_b"] + 1 for tokens, _ in one)
