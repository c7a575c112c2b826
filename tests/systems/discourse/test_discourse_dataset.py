"""What an epoch of training has of each objective."""

import pickle
from collections import Counter

import pytest
from discourse_texts import Texts
from tiny_world import USER_DIR, build

from fairseq_llrnn.errors import OptionError

pytest.importorskip("fairseq")


def args(texts: Texts, most: int) -> list[object]:
    return [texts.data, "--user-dir", USER_DIR, "--task", "discourse", "--arch", "discourse_encoder", "--criterion",
            "discourse", "--cpu", "--sentence-dim", 4, "--batch-size", 16, "--epoch-examples", most]  # fmt: skip


def test_rare_objectives_take_as_many_batches_as_others(texts: Texts) -> None:
    """--epoch-examples 40: of NEXT a quarter, another part in each epoch, all of one objective in a batch."""
    from fairseq.data.data_utils import numpy_seed

    task = build(args(texts, 40)).task
    task.load_dataset("train", combine=True)
    dataset, epochs = task.dataset("train"), []
    for epoch in (1, 2, 1):
        with numpy_seed(epoch):
            batches = dataset.batch_by_size(dataset.ordered_indices(), max_sentences=16)
        assert all(len({dataset[i]["objective"] for i in batch}) == 1 for batch in batches)
        epochs.append([sorted(int(i) for i in batch) for batch in batches])
    counts = Counter(dataset[i]["objective"] for batch in epochs[0] for i in batch)
    assert counts == {"order": 40, "next": 10, "conjunction": 40}
    assert epochs[0] == epochs[2] != epochs[1]
    spawned = pickle.loads(pickle.dumps(dataset))  # what a worker gets on macOS
    assert [spawned[i]["objective"] for i in range(9)] == [dataset[i]["objective"] for i in range(9)]
    task.load_dataset("valid")
    assert len(task.dataset("valid").ordered_indices()) == len(task.dataset("valid")) > 200, "validation has all"


def test_a_number_that_cannot_be(texts: Texts) -> None:
    with pytest.raises(OptionError, match="--epoch-examples -1: expected a number of at least 0"):
        build(args(texts, -1))
