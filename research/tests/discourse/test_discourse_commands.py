"""The task `discourse` in fairseq's commands: stopped and resumed, begun elsewhere, with features and characters."""

import pickle
import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from discourse_texts import Texts, train_args
from same_training import resumed_as_whole
from shell import Shell, assert_says
from tiny_world import USER_DIR, build, read_checkpoint

from fairseq_llrnn.errors import LLRNNError, OptionError
from llrnn_research.discourse import OBJECTIVES
from llrnn_research.discourse.data import load_split

pytest.importorskip("fairseq")


def test_accuracy_and_chance_are_those_of_the_split(shell: Shell, texts: Texts, trained: Path) -> None:
    """Counted here from the scores of the model."""
    from llrnn_research.discourse.plugin.encoding import load_encoder

    done = shell.run(
        "fairseq-validate", texts.data, "--user-dir", USER_DIR, "--task", "discourse", "--path",
        trained / "checkpoint_best.pt", "--valid-subset", "test", "--batch-size", 7, "--cpu", "--log-format", "json",
    )  # fmt: skip
    (row,) = done.json_lines("test") or done.json_lines("valid")
    model = load_encoder(str(trained / "checkpoint_best.pt"), None, None, 100).model
    split = load_split(texts.data, "test")
    for name in OBJECTIVES:
        right = 0
        for example in split.examples[name]:
            sentences = [torch.tensor(split.sentence(number)).long() for number in example[:-1]]
            vectors = [model.encode(sentence.unsqueeze(0)) for sentence in sentences]
            right += int(model.classifiers(name, torch.stack(vectors, 1)).argmax() == example[-1])
        many = len(split.examples[name])
        prefix = next(key for key in row if key.endswith(f"{name}_accuracy")).removesuffix(f"{name}_accuracy")
        assert row[f"{prefix}{name}_accuracy"] == pytest.approx(right / many, abs=1e-3)
        chance = np.bincount(split.examples[name][:, -1]).max() / many
        assert row[f"{prefix}{name}_chance"] == pytest.approx(chance, abs=1e-3)


def test_next_is_subsampled_beside_others_and_drawn_anew(texts: Texts) -> None:
    from fairseq.data.data_utils import numpy_seed

    def epoch(objectives: str, number: int, training: bool = True) -> list[list[int]]:
        setting = build([*map(str, train_args(texts, None)), "--objectives", objectives])
        setting.task.load_dataset("train", combine=training)
        dataset = setting.task.dataset("train")
        with numpy_seed(number):
            batches = dataset.batch_by_size(dataset.ordered_indices(), max_sentences=16)
        for batch in batches:
            samples = [dataset[i] for i in batch]
            assert len({sample["objective"] for sample in samples}) == 1
            assert len(batch) <= (4 if samples[0]["objective"] == "next" else 16)
        drawn = sorted(int(i) for batch in batches for i in batch)
        return [[i for i in drawn if dataset[i]["objective"] == name] for name in OBJECTIVES]

    everything = epoch("order,next,conjunction", 1, training=False)
    one, other = (epoch("order,next,conjunction", number) for number in (1, 2))
    assert [len(examples) for examples in one] == [len(everything[0]), 15, len(everything[2])]
    assert len(everything[1]) == 60 and one[1] != other[1] and one[0] == everything[0]
    assert len(epoch("next", 1)[1]) == 60


@pytest.mark.slow
def test_a_resumed_training_is_one_never_stopped(shell: Shell, texts: Texts, tmp_path: Path) -> None:
    resumed_as_whole(shell, partial(train_args, texts), tmp_path, "--batch-size", 64, "--source-characters", "cnn")


def test_an_encoder_begins_with_what_other_objectives_taught_it(
    shell: Shell, texts: Texts, trained: Path, tmp_path: Path
) -> None:
    """A new objective, and some of those of the checkpoint; what is begun goes on; its objectives cannot change."""
    from llrnn_research.discourse.plugin.encoding import load_encoder

    first = trained / "checkpoint_best.pt"
    still = ("--lr", 1e-9, "--max-update", 1, "--finetune-from-model")
    shell.run("fairseq-train", *train_args(texts, tmp_path / "next", "--objectives", "next", *still, first))
    alone = tmp_path / "next" / "checkpoint_last.pt"
    shell.run("fairseq-train", *train_args(texts, tmp_path / "order", "--objectives", "next,order", *still, alone))
    found = [read_checkpoint(path)["model"] for path in (first, alone, tmp_path / "order" / "checkpoint_last.pt")]
    names = ({name.rpartition(".")[2] for name in model if name.startswith("classifiers.")} for model in found)
    assert [sorted(of_model) for of_model in names] == [sorted(OBJECTIVES), ["next"], ["next", "order"]]
    for name in found[1]:
        assert all(torch.allclose(found[0][name], model[name], atol=1e-6) for model in found[1:]), name
    assert load_encoder(str(alone), None, None, 100).size == 24
    again = train_args(texts, tmp_path / "next", "--max-epoch", 1, "--finetune-from-model", first)
    shell.run("fairseq-train", *again, "--objectives", "next")
    assert read_checkpoint(alone)["optimizer_history"][-1]["num_updates"] > 1
    refused = shell.run("fairseq-train", *again, code=None)
    assert refused.code and "please ensure that the architectures match" in refused.err


@pytest.mark.parametrize("characters", [False, True])
@pytest.mark.parametrize("encoder", ["cbow", "bigru"])
def test_features_and_characters(texts: Texts, prior: Path, encoder: str, characters: bool) -> None:
    options = ["--encoder", encoder, "--source-prior", prior, *(["--source-characters", "cnn"] if characters else [])]
    setting = build([*map(str, train_args(texts, None, *options))])
    words, model = setting.task.source_words, setting.model.eval()
    one, two = (torch.tensor([[words.index("cat"), words.open(string)]]) for string in ("zzz", "qqqed"))
    assert torch.allclose(model.encode(one), model.encode(two)) != characters
    setting.task.load_dataset("valid")
    dataset = setting.task.dataset("valid")
    for objective in range(3):
        first = int(dataset.begins[objective])
        loss, _, _ = setting.criterion(model.train(), dataset.collater([dataset[first], dataset[first + 1]]))
        loss.backward()
    assert all(p.grad is not None for p in model.parameters())


def test_weights_know_their_prior_and_their_words(
    shell: Shell, texts: Texts, prior: Path, trained: Path, tmp_path: Path
) -> None:
    arguments = train_args(texts, trained, "--source-prior", prior, "--max-epoch", 20)
    assert_says(shell.run("fairseq-train", *arguments, code=None), "was trained without --source-prior")
    other = tmp_path / "other"
    shell.run("llrnn", "discourse", "--train", texts.file("test"), "--valid", texts.file("valid"), "--language", "en",
              "--out", other)  # fmt: skip
    done = shell.run("fairseq-train", other, *train_args(texts, trained)[1:], "--max-epoch", 20, code=None)
    assert_says(done, "trained with another dict.txt")
    done = shell.run("fairseq-train", other, *train_args(texts, None, "--source-prior", prior)[1:], code=None)
    assert_says(done, "it was made for another dictionary than", "--dict")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--objectives", "order,nxt"), "--objectives order,nxt: expected some of order, next, conjunction"),
        (("--objectives", "order,order"), "each once"),
        (("--max-words", 0), "--max-words 0: expected a number of at least 1"),
        (("--sentence-dim", 7), "--sentence-dim 7: expected an even number for bigru"),
        (("--dropout", 1), "--dropout 1.0: expected a probability from 0 to below 1"),
        (("--encoder-embed-dim", 0), "--encoder-embed-dim 0: expected a number of at least 1"),
        (("--valid-subset", "tset"), "expected the data set 'tset'"),
        (("--train-subset", "trian"), "found test, train, valid"),
        (("--source-prior", "nowhere"), "nowhere"),
    ],
)
def test_bad_options(texts: Texts, options: tuple[object, ...], message: str) -> None:
    with pytest.raises(LLRNNError, match=re.escape(message)):
        setting = build([*map(str, train_args(texts, None, *options))])
        for subset in (setting.cfg.dataset.train_subset, setting.cfg.dataset.valid_subset):
            setting.task.load_dataset(subset)


def test_too_few_tokens_for_an_example(shell: Shell, texts: Texts) -> None:
    said = shell.run("fairseq-train", *train_args(texts, None, "--max-tokens", 9), code=None)
    assert_says(said, "(limit of the model and --max-tokens)")


def test_a_task_without_examples_and_a_folder_of_another_kind(shell: Shell, texts: Texts, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a b\nc d\n\n", encoding="utf-8")
    data = tmp_path / "data"
    shell.run("llrnn", "discourse", "--train", text, "--valid", texts.file("valid"), "--language", "en", "--out", data)
    arguments = train_args(texts, None, "--valid-subset", "train")[1:]
    for name, needed in {"next": "8 sentences", "conjunction": "that begin with a conjunction of the"}.items():
        done = shell.run("fairseq-train", data, *arguments, "--objectives", name, code=None)
        assert_says(done, f"expected examples of {name.upper()} in train, found none; leave {name} out", needed)
    (tmp_path / "train.npz").touch()
    done = shell.run("fairseq-train", tmp_path, *arguments, code=None)
    assert_says(done, "expected a data folder of `llrnn discourse`, found no discourse.json in it")


def test_model_criterion_and_task_belong_together(shell: Shell, texts: Texts, world: object) -> None:
    done = shell.run("fairseq-train", *train_args(texts, None), "--criterion", "cross_entropy", code=None)
    assert done.code != 0
    arguments = [*world.task_args(), "--arch", "discourse_encoder", "--criterion", "discourse"]  # type: ignore[attr-defined]
    done = shell.run("fairseq-train", *arguments, "--max-tokens", 100, "--no-save", code=None)
    assert_says(done, "--arch discourse_encoder: needs --task discourse, found another task")


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
