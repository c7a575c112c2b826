"""Models with evidence, in this process: every variant's loss is the sum over words and slots and trains everything."""

from typing import Any

import pytest
import torch
from evidence_world import PREFIXES, SENTENCES, EvidenceWorld, batch, make
from model_checks import assert_sums_over_words_and_slots_and_trains, parallel
from tiny_world import randomised

from fairseq_llrnn.evidence.slots import packed, slots_of

VARIANTS: dict[str, tuple[str, list[str]]] = {
    "lstm": ("static", ["llrnn_lstm"]),
    "tied": ("static", ["llrnn_lstm", "--decoder-embed-dim", "16", "--tie-features"]),
    "without attention": ("lexical", ["llrnn_lstm", "--attention", "none", "--cell", "gru", "--reverse-source"]),
    "Cho": ("static", ["llrnn_lstm", "--context-every-step", "--encoder-bidirectional", "--label-smoothing", "0.1"]),
    "transformer": ("lexical", ["llrnn_transformer", "--adaptor-penalty", "0.01"]),
    "over features": ("static", ["llrnn_transformer", "--feature-input", "--tie-features"]),
}


def loss_of(setting: Any, sample: dict[str, Any]) -> torch.Tensor:
    return setting.criterion(setting.model, sample)[0]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_criterion_is_the_sum_over_words_and_slots_and_trains_everything(
    evidence: EvidenceWorld, name: str
) -> None:
    prior, (arch, *options) = VARIANTS[name]
    assert_sums_over_words_and_slots_and_trains(evidence, arch, prior, *options)


@pytest.mark.parametrize("arch, prior", [("llrnn_lstm", "lexical"), ("llrnn_transformer", "static")])
def test_without_any_slot_the_weights_of_slots_still_take_part(evidence: EvidenceWorld, arch: str, prior: str) -> None:
    """torch's DistributedDataParallel waits for every parameter's gradient: zero will do, none will not."""
    setting = make(evidence, arch, prior)
    loss_of(setting, batch(setting.task, ["el tahc", "enu emmop"], ["le chat", "une pomme"])).backward()
    gradient = setting.model.decoder.head.slot_rows.pointer.grad
    assert gradient is not None and not gradient.any()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in setting.model.parameters())


def test_under_torchs_distributed_data_parallel(evidence: EvidenceWorld) -> None:
    """One process of it, with a batch that has slots between two that have none."""
    from torch import distributed

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        setting = make(evidence, "llrnn_lstm", "lexical")
        wrapped = parallel(setting.model)
        without = batch(setting.task, ["el tahc", "enu emmop"], ["le chat", "une pomme"])
        for sample in (without, batch(setting.task, SENTENCES, PREFIXES), without):
            slots = slots_of(setting.task.offered.table, sample["net_input"]["src_tokens"])
            hidden, extra = wrapped(**sample["net_input"], slots=packed(slots))
            mask = sample["target"].ne(setting.task.target_dictionary.pad())
            setting.model.decoder.head.target_log_probs(extra["batch"], sample["target"])[mask].sum().backward()
    finally:
        distributed.destroy_process_group()


def test_sentences_without_slots_do_not_feel_those_of_others(evidence: EvidenceWorld) -> None:
    setting = make(evidence, "llrnn_lstm", "lexical")
    alone = [loss_of(setting, batch(setting.task, [s], [t])) for s, t in zip(SENTENCES, PREFIXES, strict=True)]
    together = loss_of(setting, batch(setting.task, SENTENCES, PREFIXES))
    torch.testing.assert_close(together, torch.stack(alone).sum(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("arch, prior", [("llrnn_lstm", "lexical"), ("llrnn_transformer", "static")])
def test_half_precision(evidence: EvidenceWorld, arch: str, prior: str) -> None:
    for dtype, close in ((torch.float16, 0.004), (torch.bfloat16, 0.03)):
        setting = randomised(evidence.train_args(arch, prior), scale=0.2)
        sample = batch(setting.task, SENTENCES, PREFIXES)
        whole = loss_of(setting, sample).item()
        setting.model.to(dtype)
        short = loss_of(setting, sample)
        assert short.dtype == torch.float32
        assert short.item() / sample["ntokens"] == pytest.approx(whole / sample["ntokens"], abs=close)
        short.backward()
        assert all(bool(p.grad.isfinite().all()) for p in setting.model.parameters())
        with torch.no_grad():
            log_probs = setting.model.get_normalized_probs(setting.model(**sample["net_input"]), log_probs=True)
        torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(log_probs.shape[:2]), rtol=1e-4, atol=1e-4)
