"""--task llrnn_classification: from the formula to every command."""

import json
import pickle
import re
from pathlib import Path

import pytest
import torch
from built_once import own_copy
from labels_world import SIZES, TRAINING, LabelsWorld, make_labels_world, preprocess
from same_training import resumed_as_whole
from shell import Result, Shell, assert_says
from tiny_world import build, evaluated
from translation_world import TranslationWorld

from fairseq_llrnn.errors import LLRNNError, OptionError
from fairseq_llrnn.systems.classification.label_hits import LabelHits
from fairseq_llrnn.systems.classification.plugin.labelled_texts import LabelledTexts
from fairseq_llrnn.systems.classification.plugin.prediction import load_label_predictor

ARCHITECTURES = ("llrnn_bag", "llrnn_classifier")
BEST = ["--best-checkpoint-metric", "p_at_1", "--maximize-best-checkpoint-metric"]


@pytest.fixture(scope="module")
def labels(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> LabelsWorld:
    return LabelsWorld(own_copy(tmp_path_factory, "labels", lambda place: make_labels_world(place, shell)))


@pytest.fixture(scope="module")
def trained(shell: Shell, labels: LabelsWorld) -> dict[str, Path]:
    """A checkpoint of each architecture, the best one by P@1."""
    found = {}
    for arch in ARCHITECTURES:
        place = labels.place / arch
        args = [*labels.train_args(arch, save_dir=place), "--max-epoch", 8, *BEST]
        log = shell.run("fairseq-train", *args)
        rows = log.json_lines("valid")
        assert rows[0]["valid_loss"] > rows[-1]["valid_loss"] + 0.5
        assert rows[-1]["valid_best_p_at_1"] >= rows[-1]["valid_p_at_1"] > 80
        assert "2 of 62 labels are not in the dictionary of labels; 1 of 43 texts have no other" in log.out + log.err
        found[arch] = place / "checkpoint_best.pt"
    return found


def best_of(result: str) -> list[str]:
    """The best label of each line of `llrnn classify`."""
    return [line.split("\t")[0] for line in result.splitlines()]


@pytest.mark.parametrize(("arch", "options"), [("llrnn_bag", ()), ("llrnn_classifier", ("--sentence-avg",))])
def test_a_batch_whose_labels_training_lacks_counts_wrong_answers_alone(
    labels: LabelsWorld, arch: str, options: tuple[str, ...]
) -> None:
    setting = evaluated([*labels.train_args(arch), *options], double=True, scale=0.4)
    setting.task.load_dataset("valid")
    dataset = setting.task.dataset("valid")
    lone = [dataset[i] for i in range(len(dataset)) if not len(dataset[i]["gold"])]
    loss, size, log = setting.task.valid_step(dataset.collater(lone), setting.model, setting.criterion)
    assert (float(loss), size, log["ntokens"], log["sample_size"]) == (0.0, 0, 0, 0)
    assert len(lone) == log["hits_texts"] == log["hits_unseen"] == log["hits_labels"] == 1
    assert log["hits_first"] == log["hits_five"] == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_loss_is_that_of_the_formula_for_every_pair(labels: LabelsWorld, arch: str) -> None:
    setting = evaluated([*labels.train_args(arch), "--sentence-avg"], double=True, scale=0.4)
    setting.task.load_dataset("valid")
    dataset = setting.task.dataset("valid")
    sample = dataset.collater([dataset[i] for i in range(len(dataset))])
    loss, size, log = setting.criterion(setting.model, sample)
    head, total, pairs = setting.model.decoder.head, 0.0, 0
    phi = head.output.rows.dense()[head.output.class_of].double()  # shape: (V, F)
    class_weights = torch.from_numpy(setting.task.prior.log_weights.copy())
    for i, (text, gold) in enumerate(zip(labels.lines("valid", "text"), labels.lines("valid", "labels"), strict=True)):
        tokens = setting.task.source_dictionary.encode_line(text, add_if_not_exist=False).long().unsqueeze(0)
        assert torch.equal(tokens[0], dataset[i]["source"].long())
        vector = setting.model.encoder.network(tokens)[0]  # shape: (H,)
        scores = phi @ (head.output.weight @ vector + head.output.bias) + class_weights
        log_p = scores - scores.logsumexp(0)
        for label in gold.split():
            index = setting.task.target_dictionary.index(label)
            if index != setting.task.target_dictionary.unk():
                total, pairs = total - log_p[index], pairs + 1
    torch.testing.assert_close(loss, total, atol=1e-4, rtol=1e-6)
    assert size == pairs == log["nsentences"]
    slow, fast = (torch.autograd.grad(x, list(setting.model.parameters())) for x in (total, loss))
    for one, other in zip(slow, fast, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)  # a prior's masses are in float32


def test_an_untrained_model_is_the_background(labels: LabelsWorld) -> None:
    setting = build(labels.train_args())
    setting.model.eval()
    log_p, best = setting.model.best_labels(torch.tensor([[2], [9]]), None, 3)
    expected = sorted(setting.task.prior.log_weights, reverse=True)[:3]
    for row in log_p.tolist():
        assert row == pytest.approx(expected, abs=1e-5)
    assert bool((best >= 4).all())


def test_one_label_of_several_is_drawn_anew_in_each_epoch(labels: LabelsWorld) -> None:
    setting = build([*labels.train_args(), "--labels-per-text", "one"])
    setting.task.load_dataset("train", combine=True)
    drawn = setting.task.dataset("train")
    assert isinstance(drawn, LabelledTexts)
    several = [i for i in range(len(drawn)) if len(drawn[i]["gold"]) > 1]
    seen = []
    for epoch in (1, 2, 1):
        drawn.set_epoch(epoch)
        seen.append([drawn[i]["labels"].tolist() for i in several])
        assert all(len(row) == 1 and row[0] in drawn[i]["gold"] for i, row in zip(several, seen[-1], strict=True))
    assert seen[0] == seen[2] != seen[1]
    spawned = pickle.loads(pickle.dumps(drawn))  # what a worker gets on macOS
    assert [spawned[i]["labels"].tolist() for i in several] == seen[2]
    setting.task.load_dataset("valid")
    valid = setting.task.dataset("valid")
    assert all(len(valid[i]["labels"]) == len(valid[i]["gold"]) for i in range(len(valid))), "all of them"


@pytest.mark.slow
def test_a_resumed_training_is_one_never_stopped(shell: Shell, labels: LabelsWorld, tmp_path: Path) -> None:
    options = ("--labels-per-text", "one", "--dropout", "0.3", "--output-tree", "huffman")
    resumed_as_whole(shell, lambda at: labels.train_args(save_dir=at), tmp_path, *options)


def test_classify_agrees_with_validation(shell: Shell, labels: LabelsWorld, trained: dict[str, Path]) -> None:
    path = trained["llrnn_classifier"]
    text = "\n".join(labels.lines("valid", "text")) + "\n"
    gold = labels.place / "valid.labels"
    args = ("classify", "--path", path, "--labels", gold)
    answers = shell.run("llrnn", *args, "-k", 2, "--json", stdin=text)
    *rows, facts = [json.loads(line) for line in answers.out.splitlines()]
    hits = LabelHits()
    for row, right in zip(rows, labels.lines("valid", "labels"), strict=True):
        assert len(row["labels"]) == 2 and row["labels"][0][1] >= row["labels"][1][1] > 0
        hits.first += row["labels"][0][0] in right.split()
    assert (facts["texts"], facts["labels"], facts["labels_unseen_in_training"]) == (43, 62, 2)
    assert facts["p_at_1"] == pytest.approx(100 * hits.first / 43)
    valid = shell.run(
        "fairseq-validate", *labels.task_args(), "--path", path, "--batch-size", 7, "--log-format", "json",
        "--required-batch-size-multiple", 1,
    ).json_lines("valid")[-1]  # fmt: skip
    for name in ("p_at_1", "p_at_5", "r_at_5"):
        assert valid[f"valid_{name}"] == pytest.approx(facts[name], abs=0.01)
    plain = shell.run("llrnn", *args, stdin=text)
    assert best_of(plain.out) == [row["labels"][0][0] for row in rows]
    assert f"P@1 {facts['p_at_1']:.2f} %" in plain.err and "2 of 62 right labels are unknown" in plain.err
    assert "1 text without words" in plain.err
    assert facts["prior"].startswith("llrnn:") and f"note: prior {facts['prior']}\n" in plain.err


def test_all_labels_and_odd_texts(shell: Shell, trained: dict[str, Path]) -> None:
    args = ("classify", "--path", trained["llrnn_bag"], "-k", 10**6, "--json")
    text = f"salt </s> zzz\n\n{'rain ' * 2000}\n"
    usual, empty, long = [json.loads(line) for line in shell.run("llrnn", *args, stdin=text).out.splitlines()]
    assert sorted(label for label, _ in usual["labels"]) == ["food", "garden", "money", "music", "travel", "weather"]
    assert sum(p for _, p in usual["labels"]) == pytest.approx(1, abs=1e-5)
    assert usual["unknown_words"] == 2 and len(empty["labels"]) == 6
    assert long["labels"] == [] and long["problem"] == "more than 1023 words"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--source-prior", "PRIOR"], marks=pytest.mark.slow),
        ["--source-characters", "cnn", "--character-filters", "1:3,3:5"],
    ],
)
def test_texts_read_by_features_and_characters(
    shell: Shell, labels: LabelsWorld, options: list[str], tmp_path: Path
) -> None:
    prior = tmp_path / "source-prior"
    if "PRIOR" in options:
        shell.run("llrnn", "prior", "--dict", labels.data / "dict.text.txt", "--suffixes", 2, "--out", prior)
    given = [str(prior) if option == "PRIOR" else option for option in options]
    shell.run("fairseq-train", *labels.train_args(save_dir=tmp_path / "model"), *given, "--max-epoch", 2)
    path = tmp_path / "model" / "checkpoint_last.pt"
    answers = shell.run("llrnn", "classify", "--path", path, stdin="salt soups\nsalt breads\n").out.splitlines()
    assert len(answers) == 2
    if "cnn" in options:
        assert answers[0] != answers[1], "words that no dictionary has are read by their characters"


def test_sizes_of_characters_that_nothing_reads_are_refused(labels: LabelsWorld) -> None:
    with pytest.raises(OptionError, match="--highway-layers 2: it needs --source-characters cnn; add it"):
        build([*labels.train_args(), "--highway-layers", "2"])


def test_several_labels_read_the_background_of_their_text(shell: Shell, labels: LabelsWorld, tmp_path: Path) -> None:
    prior = labels.data / "lexical"
    shell.run(
        "llrnn", "prior", "--labels", "--dict", labels.data / "dict.labels.txt", "--lexical-translation", labels.data,
        "--set", "translations.aligner=ibm1", "--out", prior,
    )  # fmt: skip
    setting = build(labels.train_args(prior="lexical"))
    setting.model.eval()
    tokens = setting.task.source_dictionary.encode_line("salt soup", add_if_not_exist=False).long().unsqueeze(0)
    log_p, best = setting.model.best_labels(tokens, None, 6)
    assert setting.task.target_dictionary[int(best[0, 0])] == "food", "without any training"
    assert float(log_p.detach().exp().sum()) == pytest.approx(1, abs=1e-5)


TREES = [
    ["--output-tree", "huffman", "--tree-arity", "3"],
    pytest.param(
        ["--output-tree", "clusters", "--tree-clusters", "2", "--tree-rows", "composed"], marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree[1])
def test_a_tree_over_the_labels(shell: Shell, labels: LabelsWorld, tree: list[str], tmp_path: Path) -> None:
    args = [*labels.train_args(save_dir=tmp_path), *tree, "--max-epoch", 6, "--validate-interval", 6]
    assert shell.run("fairseq-train", *args).json_lines("valid")[-1]["valid_p_at_1"] > 80
    predict = load_label_predictor(str(tmp_path / "checkpoint_last.pt"))
    lines = [line for line in labels.lines("test", "text") if line][:8]
    model, dictionary = predict.model, predict.task.source_dictionary
    for line, answer in zip(lines, predict.answers(lines, 6), strict=True):
        tokens = dictionary.encode_line(line, add_if_not_exist=False).long().unsqueeze(0)
        with torch.no_grad():
            hidden = model.encoder(tokens)["summary"][0].unsqueeze(1)
            every = model.decoder.head.log_probs(hidden, previous=torch.full((1, 1), dictionary.eos()))[0, 0].exp()
        best = every.topk(6)
        assert [label for label, _ in answer.labels] == [predict.task.target_dictionary[int(i)] for i in best.indices]
        assert [p for _, p in answer.labels] == pytest.approx(best.values.tolist(), abs=1e-5)
        assert float(every.sum()) == pytest.approx(1, abs=1e-5)


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        ("food\nweather\n", ["a line of labels for each text", "3 texts and 2 lines"]),
        ("food\n\nmoney\n", ["text 2 of the train data", "at least one label"]),
    ],
)
def test_other_numbers_of_texts_and_labels(
    shell: Shell, labels: LabelsWorld, tmp_path: Path, gold: str, words: list[str]
) -> None:
    (tmp_path / "train.text").write_text("salt\nrain\nbank\n", encoding="utf-8")
    (tmp_path / "train.labels").write_text(gold, encoding="utf-8")
    preprocess(shell, tmp_path, tmp_path / "data", "train", dictionaries=labels.data)
    assert_says(train(shell, labels, tmp_path / "data"), *words)


def test_labels_that_the_dictionary_lacks(shell: Shell, labels: LabelsWorld, tmp_path: Path) -> None:
    (tmp_path / "train.text").write_text("salt\nrain\nbank\n", encoding="utf-8")
    (tmp_path / "train.labels").write_text("food\nstorms\nmoney coins\n", encoding="utf-8")
    preprocess(shell, tmp_path, tmp_path / "data", "train", dictionaries=labels.data)
    said = train(shell, labels, tmp_path / "data", code=0)
    expected = "2 of 4 labels are not in the dictionary of labels; 1 of 3 texts have no other: they are left out"
    assert expected in said.out + said.err
    assert said.json_lines("train")[-1]["train_bsz"] == 2
    (tmp_path / "train.labels").write_text("foods\nstorms\ncoins\n", encoding="utf-8")
    preprocess(shell, tmp_path, tmp_path / "none", "train", dictionaries=labels.data)
    assert_says(train(shell, labels, tmp_path / "none"), "expected labels of the dictionary, found none")


def train(shell: Shell, labels: LabelsWorld, data: Path, *more: object, code: int | None = None) -> Result:
    """Train on another data-bin, without validation."""
    args = labels.train_args()
    return shell.run("fairseq-train", data, *args[1:], "--disable-validation", "--max-epoch", 1, *more, code=code)


def test_what_does_not_fit(
    shell: Shell, labels: LabelsWorld, trained: dict[str, Path], translation: TranslationWorld, tmp_path: Path
) -> None:
    words = tmp_path / "words"
    shell.run("llrnn", "prior", "--dict", labels.data / "dict.labels.txt", "--out", words)
    said = shell.run("fairseq-train", *labels.train_args(), "--expert", "mine.py:Mine", code=None)
    assert said.code == 2 and "unrecognized arguments: --expert mine.py:Mine" in said.err
    has_labels = labels.train_args()
    for arguments, message in (
        ([*has_labels, "--prior", words], "expected a prior of labels.*llrnn prior --labels"),
        ([*has_labels, "--arch", "llrnn_lstm"], "llrnn_lstm needs --task llrnn_translation"),
        ([*has_labels, "--arch", "lstm"], "LSTMModel: --task llrnn_classification needs a classifier"),
        ([*translation.task_args(), "--arch", "llrnn_bag", *TRAINING], "llrnn_bag needs --task llrnn_classification"),
        ([*has_labels, "--encoder-embed-dim", 0], "--encoder-embed-dim 0"),
        ([*has_labels, "--dropout", 1.5], "--dropout 1.5"),
    ):
        with pytest.raises(LLRNNError, match=message):
            build(arguments)
    generate = [*labels.task_args(), "--path", trained["llrnn_bag"]]
    assert_says(shell.run("fairseq-generate", *generate, code=None), "llrnn classify")
    said = shell.run("fairseq-validate", *generate, "--valid-subset", "none", "--batch-size", 4, code=None)
    assert_says(said, "expected the data set 'none'")


def test_what_classify_refuses(shell: Shell, labels: LabelsWorld, trained: dict[str, Path], tmp_path: Path) -> None:
    path, gold = trained["llrnn_bag"], tmp_path / "gold"

    def said(*args: object, stdin: str = "salt\nrain\n") -> str:
        result = shell.run("llrnn", "classify", *args, stdin=stdin, code=2)
        assert "Traceback" not in result.err
        return result.err.strip().splitlines()[-1]

    assert "found none on stdin" in said("--path", path, stdin="")
    gold.write_text("food\n", encoding="utf-8")
    assert "found 1 lines, more texts" in said("--path", path, "--labels", gold)
    gold.write_text("food\nweather\nmoney\n", encoding="utf-8")
    assert "found 2 texts, more lines" in said("--path", path, "--labels", gold)
    gold.write_text("food\n\n", encoding="utf-8")
    assert "line 2: expected labels, found none" in said("--path", path, "--labels", gold)
    assert "no such file" in said("--path", tmp_path / "none.pt")


def test_the_short_commands(shell: Shell, labels: LabelsWorld, tmp_path: Path) -> None:
    done = shell.run(
        "llrnn", "train", labels.data, *SIZES["llrnn_bag"], "--cpu", "--num-workers", 0, "--max-epoch", 2,
        "--best-checkpoint-metric", "p_at_1", "--maximize-best-checkpoint-metric", "--save-dir", tmp_path,
    )  # fmt: skip
    assert "--task=llrnn_classification --arch llrnn_bag" in done.out.splitlines()[0]
    assert re.search(r"^epoch 2: train loss \S+, valid loss \S+, .*p_at_1 \S+ \(", done.out, re.MULTILINE)
    path = tmp_path / "checkpoint_best.pt"
    assert f"llrnn classify --data {labels.data} --path {path}" in done.out.splitlines()[-1]
    assert "p_at_1" in shell.run("llrnn", "validate", labels.data, "--path", path, "--cpu").out
    for command in ("eval-lm", "generate", "interactive"):
        refused = shell.run("llrnn", command, labels.data, "--path", path, code=2)
        expected = f"expected a model for llrnn {command}, found one of llrnn_classification; use llrnn classify"
        assert len(refused.err.splitlines()) == 1 and expected in refused.err
