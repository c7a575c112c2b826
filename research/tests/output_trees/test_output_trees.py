"""--output-tree through fairseq's commands: training, resuming, searches, scores, and what is refused."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import positions
import pytest
import torch
from automaton_prior import with_bigrams
from dynamic_prior import LINES
from evidence_world import EvidenceWorld
from evidence_world import batch as evidence_batch
from fairseq.logging import metrics
from same_training import resumed_as_whole
from shell import Shell
from tiny_world import (
    EVERY_SENTENCE,
    Setting,
    World,
    assert_prefixes_agree,
    batch,
    build,
    evaluated,
    randomised,
    read_checkpoint,
)
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.prior.prior import Prior
from llrnn_research.output_trees.builders import clustering_tree, huffman_tree
from llrnn_research.output_trees.learner import Reassignment, TreeLearner
from llrnn_research.output_trees.output_tree import TreeOptions, class_fingerprint
from llrnn_research.output_trees.tree import NONE, load_tree, save_tree
from llrnn_research.output_trees.tree_layer import TreeLayer

TREE = ("--output-tree", "huffman", "--tree-arity", "3")
AFTER = {"le": {"chat": 0.5, "roi": 0.3}, "la": {"mer": 0.6, "verte": 0.2}, "chat": {"voit": 0.7}}
SENTENCES = ["le chat voit la mer", "la mer verte voit bien", "le petit pont"]


@pytest.mark.parametrize(
    ("arch", "rows", "prior"), [("llrnn_lstm", "free", "lexical"), ("llrnn_transformer", "composed", "prior")]
)
def test_steps_of_a_search_are_the_whole(translation: TranslationWorld, arch: str, rows: str, prior: str) -> None:
    setting = evaluated([*translation.train_args(arch, prior), "--output-tree", "clusters", "--tree-rows", rows])
    assert_steps_agree(setting, pairs(setting.task, SENTENCES))


@pytest.mark.parametrize("arch", ["llrnn_lm", "llrnn_lbl"])
def test_language_models_with_n_grams_sum_to_one(world: World, arch: str) -> None:
    prior = with_bigrams(Prior.load(world.prior("prior")), AFTER)
    args = world.train_args()
    if arch == "llrnn_lbl":
        layers = args.index("--decoder-layers")
        args = [*args[:layers], *args[layers + 2 :], "--arch", arch]
    setting = randomised([*args, *TREE, "--learn-background-temperature"], prior, scale=0.3)
    assert_prefixes_agree(setting, LINES, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("prior", ["static", "lexical"])
def test_slots_of_evidence_are_children_of_the_root(evidence: EvidenceWorld, prior: str) -> None:
    setting = randomised([*evidence.train_args(prior=prior), *TREE], double=True)
    sample = evidence_batch(setting.task, evidence.text("test", "src")[:4], evidence.text("test", "tgt")[:4])
    model = setting.model.eval()
    with torch.no_grad():
        output = model(**sample["net_input"])
        whole = model.get_normalized_probs(output, log_probs=True)
        found = model.decoder.head.target_log_probs(output[1]["batch"], sample["target"])
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones_like(whole[..., 0]), rtol=1e-5, atol=1e-5)
    columns = positions.columns(output[1]["batch"], sample["target"])
    expected = whole.gather(2, columns.unsqueeze(2)).squeeze(2)
    real = sample["target"].ne(setting.task.target_dictionary.pad())
    torch.testing.assert_close(found[real], expected[real], rtol=1e-5, atol=1e-5)
    strings = model.decoder.head.sources_of(output[1]["batch"], sample["target"]) >= 0
    assert bool(strings.any()), "some targets are slots"


@pytest.mark.parametrize("beam", [1, 3])
def test_searches_find_the_model_s_scores(translation: TranslationWorld, beam: int) -> None:
    """The beam's candidates are those of a search that looks at all words."""
    from fairseq.dataclass.configs import GenerationConfig

    setting = randomised([*translation.train_args(), *TREE], scale=0.3)
    model, sample = setting.model.eval(), pairs(setting.task, SENTENCES)
    found = []
    for whole in (False, True):
        more = {"no_repeat_ngram_size": 50} if whole else {}
        generator = setting.task.build_generator([model], GenerationConfig(beam=beam, max_len_b=8, **more))
        found.append(setting.task.inference_step(generator, [model], sample))
    for fast, slow in zip(*found, strict=True):
        assert [h["tokens"].tolist() for h in fast] == [h["tokens"].tolist() for h in slow]
        for one, other in zip(fast, slow, strict=True):
            torch.testing.assert_close(one["positional_scores"], other["positional_scores"], rtol=1e-4, atol=1e-4)


def test_the_commands(shell: Shell, world: World, tmp_path: Path) -> None:
    """Trained, resumed as if never stopped, evaluated, scored, explained: nothing but training is told of the tree."""
    file, prior = tmp_path / "by.tree", Prior.load(world.prior("prior"))
    vectors = np.random.default_rng(1).normal(size=(prior.output.num_classes, 3))
    save_tree(file, clustering_tree(vectors, 4), class_fingerprint(prior.symbols, prior.output.class_of))
    tree = ("--output-tree", file)
    valid = resumed_as_whole(shell, partial(world.train_args, "prior"), tmp_path, *tree).json_lines("valid")[-1]
    assert "valid_adaptor_norm" not in valid
    file.unlink()  # the checkpoint has the tree

    model = ("--path", tmp_path / "whole" / "checkpoint_last.pt")
    common = [*world.task_args(), *model, "--gen-subset", "valid"]
    done = shell.run("fairseq-eval-lm", *common, "--sample-break-mode", "eos", *EVERY_SENTENCE)
    (loss,) = re.findall(r"Loss \(base 2\): ([\d.]+)", done.out)
    assert float(loss) == pytest.approx(valid["valid_nats"] / math.log(2), abs=2e-3)
    text = "le chat voit la mer"
    shown = shell.run("llrnn", "explain", *model, text).out
    assert "choices" in shown and "Tree:1" in shown
    assert "bits per word" in shell.run("llrnn", "score", *model, stdin=text + "\n").out


@pytest.mark.parametrize(("rows", "depth"), [
    pytest.param("free", (), marks=pytest.mark.slow), pytest.param("composed", (), marks=pytest.mark.slow),
    ("free", ("--tree-depth", 0)),
])  # fmt: skip
def test_a_learned_tree(shell: Shell, world: World, tmp_path: Path, rows: str, depth: tuple[str | int, ...]) -> None:
    """It changes, resumes bit for bit, and all that comes after reads it from the checkpoint."""
    tree = ("--output-tree", "learned", "--tree-arity", 4, "--tree-reassign", 3, "--tree-rows", rows, *depth)
    done = resumed_as_whole(shell, partial(world.train_args, "prior"), tmp_path, *tree)
    moved = [line["train_tree_moved"] for line in done.json_lines("train")]
    assert all(0 < float(share) <= 1 for share in moved)
    weights = read_checkpoint(tmp_path / "whole" / "checkpoint_last.pt")["model"]
    prior = Prior.load(world.prior("prior"))
    class_weights = np.bincount(prior.output.class_of, np.exp(prior.log_weights), prior.output.num_classes)
    first = TreeOptions("learned", arity=4, depth=0 if depth else None)
    begun = TreeLearner.start(class_weights, *first.sizes(len(class_weights)))
    assert weights["decoder.head.tree.parent"].tolist() != begun.parent.tolist()
    assert weights["decoder.head.tree.learner.counts"].sum() > 0

    model = ("--path", tmp_path / "whole" / "checkpoint_last.pt")
    valid = done.json_lines("valid")[-1]
    done = shell.run(
        "fairseq-eval-lm", *world.task_args(), *model, "--gen-subset", "valid", "--sample-break-mode", "eos",
        *EVERY_SENTENCE,
    )  # fmt: skip
    (loss,) = re.findall(r"Loss \(base 2\): ([\d.]+)", done.out)
    assert float(loss) == pytest.approx(valid["valid_nats"] / math.log(2), abs=2e-3)
    other = [*world.train_args(save_dir=tmp_path / "parts"), *tree, "--tree-arity", 5, "--max-epoch", 3]
    refused = shell.run("fairseq-train", *other, code=None)
    assert "found one of another model (--tree-arity 4" in refused.err


LEARNED = ("--output-tree", "learned", "--tree-arity", "2", "--tree-depth", "0", "--tree-reassign", "1")


def trained_step(setting: Setting, optimizer: object, update: int, ignored: bool = False) -> TreeLayer:
    """One batch of training; where `ignored`, it stands for one that another process has."""
    sample = batch(setting.task.dictionary, LINES)
    with metrics.aggregate(new_root=True):
        setting.task.train_step(sample, setting.model, setting.criterion, optimizer, update, ignored)
    layer: TreeLayer = setting.model.decoder.head.normaliser
    return layer


def test_a_batch_in_the_place_of_one_that_is_lacking_is_not_counted(world: World) -> None:
    from fairseq.optim import build_optimizer

    setting = build([*world.train_args(), *LEARNED])
    optimizer = build_optimizer(setting.cfg.optimizer, list(setting.model.parameters()))
    assert not trained_step(setting, optimizer, 0, ignored=True).learner.counts.any()
    assert trained_step(setting, optimizer, 0).learner.counts.any()


@pytest.mark.parametrize("flat", [(), ("--fp16-no-flatten-grads",)])
def test_rows_of_new_nodes_are_zeros_in_both_precisions(
    world: World, flat: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq writes its float32 copy of the weights over those of the model."""
    from fairseq.optim.fp16_optimizer import FP16Optimizer

    monkeypatch.setattr("torch.cuda.current_device", lambda: None)  # by this name fairseq keeps flat copies
    setting = randomised([*world.train_args(), *LEARNED, "--fp16", *flat])
    optimizer = FP16Optimizer.build_optimizer(setting.cfg, list(setting.model.half().parameters()))
    layer = setting.model.decoder.head.normaliser
    origin = np.array([*range(layer.internal - 1), NONE])  # the last node comes anew, in its own place
    monkeypatch.setattr(layer.learner, "reassign", lambda: Reassignment(layer.tree, origin, 1))
    trained_step(setting, optimizer, 1)
    optimizer._sync_fp32_params_to_fp16()
    assert not layer.node_rows[-1].any() and not layer.node_bias[-1]
    assert layer.node_rows[:-1].all() and layer.node_bias[:-1].all()
    trained_step(setting, optimizer, 1)
    assert layer.new_rows is None, "once"


def test_an_update_of_several_batches_counts_once_in_an_epoch(world: World) -> None:
    """An epoch of 5 batches, two an update, has 3 updates."""
    from fairseq.optim import build_optimizer

    setting = build([*world.train_args(), *LEARNED, "--update-freq", "2"])
    setting.task.batches_per_epoch = 5
    optimizer = build_optimizer(setting.cfg.optimizer, list(setting.model.parameters()))
    layer = setting.model.decoder.head.normaliser
    with mock.patch.object(type(layer), "update_if_due", return_value=None) as after:
        trained_step(setting, optimizer, 0)
    after.assert_called_once_with(0, 3)


def test_a_tree_in_a_file(shell: Shell, world: World, tmp_path: Path) -> None:
    prior = Prior.load(world.prior("prior"))
    tree = huffman_tree(torch.rand(prior.output.num_classes).double().numpy(), 3)
    save_tree(tmp_path / "tree.npz", tree, class_fingerprint(prior.symbols, prior.output.class_of))
    args = [*world.train_args(save_dir=tmp_path / "model"), "--output-tree", tmp_path / "tree.npz", "--max-epoch", 1]
    shell.run("fairseq-train", *args)
    weights = read_checkpoint(tmp_path / "model" / "checkpoint_last.pt")["model"]
    assert weights["decoder.head.tree.parent"].tolist() == tree.parent.tolist()
    with pytest.raises(DataError, match="expected a tree over the classes of this prior"):
        build([*world.train_args("softmax"), "--output-tree", str(tmp_path / "tree.npz")])
    checkpoint = torch.load(tmp_path / "model" / "checkpoint_last.pt", weights_only=False)
    checkpoint["model"]["decoder.head.tree.parent"][0] = 5
    torch.save(checkpoint, tmp_path / "damaged.pt")
    refused = shell.run(
        "fairseq-eval-lm", *world.task_args(), "--path", tmp_path / "damaged.pt", "--gen-subset", "valid", code=None
    )
    assert refused.code != 0 and "Traceback" not in refused.err
    assert "the checkpoint: tree: parent of node 0: expected -1, for the root, found 5" in refused.err
    assert load_tree(tmp_path / "tree.npz", None).parent.tolist() == tree.parent.tolist()
    refused = shell.run("fairseq-train", *args[:-4], *TREE, "--max-epoch", 2, code=None)
    assert refused.code != 0
    assert "--output-tree: expected the tree with which the checkpoint was trained" in refused.err
    refused = shell.run("fairseq-train", *args[:-4], "--max-epoch", 2, code=None)
    assert "found one of another model (--output-tree " in refused.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--tree-arity", "3"], "--tree-arity 3: needs --output-tree; add it, or leave"),
        (["--output-tree", __file__, "--tree-arity", "3"],
         f"--tree-arity 3: expected --output-tree with a kind of tree, found the file {re.escape(__file__)}; leave"),
        ([*TREE, "--tree-reassign", "2"], "--tree-reassign 2: expected --output-tree learned, found huffman"),
        (["--output-tree", "learned", "--tree-reassign", "0"], "--tree-reassign 0: expected a number of times"),
        (["--output-tree", "learned", "--tree-reassign-epochs", "-1"], "--tree-reassign-epochs -1.0: expected a"),
    ],
)  # fmt: skip
def test_what_is_refused(world: World, more: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build([*world.train_args(), *more])


def test_a_learned_tree_needs_our_criterion(world: World) -> None:
    with pytest.raises(OptionError, match="--criterion cross_entropy: --output-tree learns"):
        build([*world.train_args(), "--output-tree", "learned", "--criterion", "cross_entropy"])
