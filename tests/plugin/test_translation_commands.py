"""Translation through every command of fairseq: training, BLEU in validation, search, ensembles, resuming."""

import functools
import math
import re
import shutil
from pathlib import Path

import pytest
from shell import Result, Shell
from tiny_world import EVERY_SENTENCE, build
from translation_world import TranslationWorld, stock_args, train_stock_lm

from fairseq_llrnn.errors import OptionError

EVAL_BLEU = ["--eval-bleu", "--eval-bleu-args", '{"beam": 2, "max_len_b": 9}', "--eval-bleu-detok", "space"]
ONCE = ["--disable-validation", "--save-interval", 8]
VARIANTS = {
    "without attention": (
        "llrnn_lstm",
        "separate",
        ["--attention", "none", "--reverse-source", "--context-every-step", "--cell", "gru", "--bf16-products"],
    ),
    "lexical translations": ("llrnn_transformer", "lexical", ["--lr", "0.003", "--label-smoothing", "0.1"]),
}


@pytest.fixture(scope="module")
def trained(shell: Shell, translation: TranslationWorld) -> dict[str, Path]:
    """Checkpoints: two of ours, one of fairseq's own Transformer."""
    found = {}
    for arch in ("llrnn_lstm", "llrnn_transformer"):
        found[arch] = translation.place / arch
        shell.run("fairseq-train", *translation.train_args(arch, save_dir=found[arch]), "--max-epoch", 8, *ONCE)
    found["stock"] = translation.place / "stock"
    shell.run("fairseq-train", *stock_args(translation.data, found["stock"]), "--max-epoch", 2, "--disable-validation")
    return {name: place / "checkpoint_last.pt" for name, place in found.items()}


@functools.cache  # several tests ask for the same
def generate(shell: Shell, translation: TranslationWorld, path: object, *options: object) -> Result:
    return shell.run(
        "fairseq-generate", *translation.task_args(), "--path", path, "--gen-subset", "test", "--max-tokens", 400,
        "--max-len-b", 12, "--num-workers", 0, *EVERY_SENTENCE, *options,
    )  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_train_validate_and_translate(name: str, shell: Shell, translation: TranslationWorld, tmp_path: Path) -> None:
    arch, prior, options = VARIANTS[name]
    arguments = [*translation.train_args(arch, prior, tmp_path), *options]
    training = shell.run("fairseq-train", *arguments, "--max-epoch", 4, "--validate-interval", 4, *EVAL_BLEU)
    losses = [row["train_loss"] for row in training.json_lines("train")]
    assert losses == sorted(losses, reverse=True) and losses[0] - losses[-1] > 0.3
    valid = training.json_lines("valid")[-1]
    assert valid["valid_bleu"] >= 0 and {"valid_nats_NOUN", "valid_adaptor_norm"} <= valid.keys()
    checkpoint = tmp_path / "checkpoint_last.pt"
    common = [*translation.task_args(prior), "--path", checkpoint, "--num-workers", 0]
    again = shell.run("fairseq-validate", *common, "--max-tokens", 200, "--log-format", "json", *EVERY_SENTENCE)
    assert again.json_lines("valid")[-1]["valid_loss"] == pytest.approx(valid["valid_loss"], abs=2e-3)
    sources = translation.source("valid")[:3] + [""]
    typed = shell.run("fairseq-interactive", *common, "--max-len-b", 12, "--beam", 3, stdin="\n".join(sources) + "\n")
    assert sorted(typed.hypotheses()) == [0, 1, 2, 3]


@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
def test_scores_are_those_of_the_model(
    shell: Shell, translation: TranslationWorld, trained: dict[str, Path], arch: str
) -> None:
    """--score-reference and what the search says of its own hypotheses, forced through the model once more."""
    scored = generate(shell, translation, trained[arch], "--score-reference")
    reference = {i: score for i, [(score, _)] in scored.hypotheses().items()}
    validated = shell.run(
        "fairseq-validate", *translation.task_args(), "--path", trained[arch], "--valid-subset", "test",
        "--max-tokens", 200, "--log-format", "json", "--num-workers", 0, *EVERY_SENTENCE,
    ).json_lines("test")[-1]  # fmt: skip
    lengths = {i: len(line.split()) + 1 for i, line in enumerate(translation.world.text("test"))}
    total = sum(score * lengths[i] for i, score in reference.items()) / sum(lengths.values())
    assert -total == pytest.approx(validated["test_loss"], abs=2e-3)
    found = generate(shell, translation, trained[arch], "--beam", 4, "--nbest", 2, "--scoring", "sacrebleu")
    assert "BLEU" in found.out and all(len(hypotheses) == 2 for hypotheses in found.hypotheses().values())
    best = {i: hypotheses[0] for i, hypotheses in found.hypotheses().items()}
    assert sum(best[i][0] >= reference[i] - 1e-3 for i in reference) >= 0.7 * len(reference)


def test_an_empty_source_has_an_empty_translation(
    shell: Shell, translation: TranslationWorld, trained: dict[str, Path], tmp_path: Path
) -> None:
    """Typed and from data: the others are translated as without it, and every line keeps its number."""
    searching = ["--path", trained["llrnn_transformer"], "--beam", 2, "--nbest", 2, "--max-len-b", 9]
    lines = translation.source("test")[:3]
    mixed = [lines[0], "", lines[1], "   ", "", lines[2]]
    typed = shell.run(
        "fairseq-interactive", *translation.task_args(), *searching, "--buffer-size", 9, "--max-tokens", 99,
        stdin="\n".join(mixed) + "\n",
    )  # fmt: skip
    alone = shell.run("fairseq-interactive", *translation.task_args(), *searching, stdin="\n".join(lines) + "\n")
    warned = "the prior has no terms, so that the text after a tab is read as words of the sentence"
    assert warned not in alone.out  # where fairseq-interactive logs
    tab = shell.run("fairseq-interactive", *translation.task_args(), *searching, stdin=f"{lines[0]}\tle => la\n")
    assert warned in tab.out and list(tab.hypotheses()) == [0]
    found, expected = typed.hypotheses(), alone.hypotheses()
    assert list(found) == [0, 1, 2, 3, 4, 5]
    for number, line in enumerate(mixed):
        words = [text for _, text in found[number]]
        assert words == ([text for _, text in expected[lines.index(line)]] if line.strip() else [""])

    for side, text in (("src", mixed), ("tgt", ["", "", "le chat", "", "la mer", ""])):
        (tmp_path / f"test.{side}").write_text("\n".join(line.strip() for line in text) + "\n", encoding="utf-8")
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--testpref", tmp_path / "test", "--destdir", tmp_path / "data",
        "--srcdict", translation.data / "dict.src.txt", "--tgtdict", translation.data / "dict.tgt.txt",
    )  # fmt: skip
    arguments = translation.task_args()
    arguments[0] = str(tmp_path / "data")
    options = [*searching, "--gen-subset", "test", "--required-batch-size-multiple", 1]
    read = shell.run("fairseq-generate", *arguments, *options, "--print-alignment")
    texts = {number: [text for _, text in hypotheses] for number, hypotheses in read.hypotheses().items()}
    assert texts == {number: [text for _, text in hypotheses] for number, hypotheses in found.items()}
    forced = shell.run("fairseq-generate", *arguments, *options, "--prefix-size", 1).hypotheses()
    assert [forced[number][0][1].split()[:1] for number in (2, 4)] == [["le"], ["la"]], "what is forced is written"
    assert [forced[number][0][1] for number in (1, 3)] == ["", ""]
    shell.run("fairseq-generate", *arguments, *options, "--score-reference")


@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
def test_alignments_are_attention(
    shell: Shell, translation: TranslationWorld, trained: dict[str, Path], arch: str
) -> None:
    found = generate(shell, translation, trained[arch], "--print-alignment", "hard", "--beam", 2)
    alignments = re.findall(r"^A-(\d+)\t(.*)$", found.out, re.MULTILINE)
    sources = translation.source("test")
    assert len(alignments) == len(sources)
    for number, links in alignments:
        pairs_of = [tuple(map(int, link.split("-"))) for link in links.split()]
        assert all(0 <= s < len(sources[int(number)].split()) for s, _ in pairs_of)


def test_ensembles_with_ours_and_with_fairseqs(
    shell: Shell, translation: TranslationWorld, trained: dict[str, Path]
) -> None:
    """Probabilities are averaged, word by word, whatever their model."""
    score = "--score-reference"
    alone = {name: generate(shell, translation, path, score).positional() for name, path in trained.items()}
    for names in (("llrnn_lstm", "llrnn_transformer"), ("stock", "llrnn_lstm")):
        path = ":".join(str(trained[name]) for name in names)
        together = generate(shell, translation, path, "--score-reference").positional()
        for i, scores in together.items():
            means = [math.log2((2**a + 2**b) / 2) for a, b in zip(*(alone[name][i] for name in names), strict=True)]
            assert scores == pytest.approx(means, abs=1e-3)
        assert len(generate(shell, translation, path, "--beam", 3).hypotheses()) == len(together)


def test_the_prior_must_be_of_the_target(shell: Shell, translation: TranslationWorld) -> None:
    arguments = translation.train_args()
    arguments[arguments.index("--prior") + 1] = str(translation.world.prior("prior"))
    fits = translation.world.prior("prior") / "dictionary.txt"
    ours = (translation.data / "prior" / "dictionary.txt").read_text(encoding="utf-8")
    assert fits.read_text(encoding="utf-8") == ours, "the tiny worlds share their words"
    swapped = [*arguments, "--source-lang", "tgt", "--target-lang", "src"]
    result = shell.run("fairseq-train", *swapped, code=None)
    assert result.code != 0 and "the prior was made for another dictionary" in result.err + result.out
    assert "build it again with `llrnn prior` --dict" in result.err
    of_stock = [w if w != "llrnn_translation" else "translation" for w in arguments]
    stock = shell.run("fairseq-train", *of_stock, code=None)
    assert stock.code != 0


REFUSED = {
    "fairseq's smoothing": (["--criterion", "label_smoothed_cross_entropy"], "log_linear --label-smoothing"),
    "padding on the left": (["--left-pad-target"], "--left-pad-target: not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_training_refuses(translation: TranslationWorld, name: str) -> None:
    options, message = REFUSED[name]
    with pytest.raises(OptionError, match=message):
        build([*translation.train_args(), *options])


@pytest.mark.parametrize("arch", ["llrnn_lm", "llrnn_lstm", "llrnn_transformer"])
def test_a_model_of_another_task(translation: TranslationWorld, arch: str) -> None:
    ours, its, found = translation.task_args(), "llrnn_language_modeling", "llrnn_translation"
    if arch != "llrnn_lm":
        ours, its, found = translation.world.task_args(), "llrnn_translation", "llrnn_language_modeling"
    with pytest.raises(OptionError, match=f"a model {arch} needs --task {its} --prior DIR, found the task {found}; "):
        build([*ours, "--arch", arch, "--criterion", "log_linear", "--optimizer", "adam", "--max-tokens", 99])


def test_fusion_with_a_language_model_of_fairseq(
    shell: Shell, translation: TranslationWorld, trained: dict[str, Path]
) -> None:
    """--lm-path adds scores of all words: the search goes over all words."""
    model = train_stock_lm(shell, translation.world.data, translation.place / "fusion", "--max-update", 2)
    # where fairseq looks for the dictionary of that model, and where nobody else may find it
    dictionary = shutil.copy(translation.world.data / "dict.txt", translation.data / "dict.txt")
    options = ["--lm-path", model, "--lm-weight", 0.3, "--beam", 24]
    found = generate(shell, translation, trained["llrnn_lstm"], *options).hypotheses()
    whole = generate(shell, translation, trained["llrnn_lstm"], *options, "--no-repeat-ngram-size", 50).hypotheses()
    dictionary.unlink()
    assert {i: h[0][0] for i, h in found.items()} == pytest.approx({i: h[0][0] for i, h in whole.items()}, abs=2e-3)


def test_lexical_translations_belong_to_a_source_dictionary(shell: Shell, translation: TranslationWorld) -> None:
    result = shell.run("fairseq-train", *translation.train_args(prior="lexical"), "--source-lang", "tgt", code=None)
    assert "lexical translations were made for another source dictionary" in result.err
    assert "--lexical-translation" in result.err and "Traceback" not in result.err
