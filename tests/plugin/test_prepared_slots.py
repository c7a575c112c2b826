"""Slots that the data set makes: `forward` converts no tensor, and computes what it does from the source alone."""

import pickle
import traceback
from typing import Any

import pytest
import torch
from evidence_world import EvidenceWorld
from fairseq.utils import apply_to_sample
from shell import Shell
from tiny_world import Setting, World, open_prior, randomised
from translation_world import TranslationWorld

from fairseq_llrnn.output import records
from fairseq_llrnn.plugin.data.evidence_data import WithSlots

CONVERSIONS = ("numpy", "cpu", "tolist", "item")


def batches(setting: Setting, split: str = "train", workers: int = 0, **options: Any) -> list[dict[str, Any]]:
    setting.task.load_dataset(split, combine=split == "train")
    data = setting.task.dataset(split)
    return list(
        setting.task.get_batch_iterator(data, max_tokens=200, num_workers=workers, **options).next_epoch_itr(
            shuffle=False
        )
    )


def check_converts_nothing(setting: Setting, sample: dict[str, Any]) -> None:
    """Raise AssertionError with the line that converts a tensor in a training batch."""

    def convert(*_: Any, **__: Any) -> None:
        place = traceback.extract_stack()[-2]
        pytest.fail(f"{place.filename}:{place.lineno} converts a tensor: {place.line}")

    with pytest.MonkeyPatch.context() as patch:
        for name in CONVERSIONS:
            patch.setattr(torch.Tensor, name, convert)
        setting.criterion(setting.model, sample)[0].backward()


@pytest.mark.parametrize("arch, prior", [("llrnn_lstm", "static"), ("llrnn_transformer", "lexical")])
def test_a_training_batch_with_evidence_converts_no_tensor(evidence: EvidenceWorld, arch: str, prior: str) -> None:
    setting = randomised(evidence.train_args(arch, prior), scale=0.2)
    sample = batches(setting)[0]
    assert (sample["slots"][0] >= 0).any()
    check_converts_nothing(setting, sample)
    with pytest.raises(pytest.fail.Exception, match=r"slots.py:\d+ converts a tensor: .*source.cpu"):
        check_converts_nothing(setting, {name: value for name, value in sample.items() if name != "slots"})


@pytest.mark.parametrize("translates", [False, True])
def test_a_training_batch_with_an_open_vocabulary_converts_no_tensor(
    shell: Shell, world: World, translation: TranslationWorld, translates: bool
) -> None:
    made: Any = translation if translates else world
    prior = open_prior(shell, world, made.data, "prepared")
    setting = randomised(made.train_args("llrnn_lstm", prior) if translates else made.train_args(prior), scale=0.2)
    size = len(setting.task.target_dictionary)
    sample = next(sample for sample in batches(setting) if bool((sample["target"] >= size).any()))
    check_converts_nothing(setting, sample)


SETTINGS = {  # the prior, and options of the model
    "evidence": ("static", ["llrnn_lstm"]),
    "lexical translations": ("lexical", ["llrnn_transformer", "--label-smoothing", "0.1"]),
}


def loss_and_gradients(setting: Setting, sample: dict[str, Any]) -> list[torch.Tensor]:
    setting.model.zero_grad()
    torch.manual_seed(3)
    loss = setting.criterion(setting.model, sample)[0]
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in setting.model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("cast", [torch.float32, torch.float16, torch.bfloat16])
def test_prepared_slots_give_the_same_loss_bit_for_bit(evidence: EvidenceWorld, name: str, cast: torch.dtype) -> None:
    """Also if fairseq casts the numbers of a batch, as with --fp16 and --bf16."""
    prior, (arch, *options) = SETTINGS[name]
    setting = randomised([*evidence.train_args(arch, prior), *options], scale=0.2)
    for split in ("train", "valid"):
        for sample in batches(setting, split)[:3]:
            done = apply_to_sample(lambda t: t.to(cast) if t.dtype == torch.float32 else t, sample)
            prepared = loss_and_gradients(setting, done)
            alone = loss_and_gradients(setting, {name: value for name, value in sample.items() if name != "slots"})
            assert all(map(torch.equal, prepared, alone)) and len(prepared) == len(alone) > 3


def test_workers_make_the_slots_that_this_process_makes(evidence: EvidenceWorld) -> None:
    """Strings outside the dictionaries have their ids before the workers start."""
    setting = randomised(evidence.train_args("llrnn_lstm", "static"))
    for alone, made in zip(batches(setting), batches(setting, workers=2), strict=True):
        assert torch.equal(alone["target"], made["target"])
        assert all(map(torch.equal, alone["slots"], made["slots"]))
    words = made["slots"][0]
    assert int(words.max()) < len(setting.task.prior.session.target.symbols)


def test_a_data_set_with_slots_is_any_other(evidence: EvidenceWorld) -> None:
    """It has the texts, an empty batch is empty, too long sentences are left out, and another process can have it."""
    setting = randomised(evidence.train_args("llrnn_lstm", "static"))
    setting.task.load_dataset("valid")
    data = setting.task.dataset("valid")
    assert isinstance(data, WithSlots) and data.collater([]) == {}
    assert torch.equal(data.src[0], data[0]["source"]) and torch.equal(data.tgt[0], data[0]["target"])
    indices = data.ordered_indices()
    fit, _ = data.filter_indices_by_size(indices, (6, 6))
    assert 0 < len(fit) < len(indices)
    copy = pickle.loads(pickle.dumps(data))
    samples = [data[i] for i in range(4)]
    assert all(map(torch.equal, copy.collater(samples)["slots"], data.collater(samples)["slots"]))


def test_chunks_of_a_large_batch_make_their_own(evidence: EvidenceWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = randomised(evidence.train_args("llrnn_lstm", "static"), scale=0.2)
    setting.model.eval()
    sample = batches(setting, "valid")[0]
    with torch.no_grad():
        whole = setting.criterion(setting.model, sample)[0]
        monkeypatch.setattr(records, "CELLS", 1)
        parts = setting.criterion(setting.model, sample)[0]
    torch.testing.assert_close(parts, whole)
