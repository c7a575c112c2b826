"""What a user can get wrong around translation: one line on stderr, or one warning with a count, and no stack trace."""

import shutil
from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from shell import Result, Shell, assert_says
from tiny_world import EVERY_SENTENCE
from translation_world import TranslationWorld, stock_args, train_stock_lm

SKIP = "--skip-invalid-size-inputs-valid-test"
SKIPPED = "samples have invalid sizes and will be skipped"


@pytest.fixture(scope="module")
def short(shell: Shell, evidence: EvidenceWorld) -> Path:
    """A Transformer for sentences of up to eight words."""
    place = evidence.place / "short"
    arguments = evidence.train_args("llrnn_transformer", save_dir=place)
    limits = ["--max-source-positions", 9, "--max-target-positions", 9, SKIP]
    shell.run("fairseq-train", *arguments, *limits, "--max-update", 5, "--disable-validation")
    return place / "checkpoint_last.pt"


def too_long(evidence: EvidenceWorld, split: str) -> list[int]:
    both = zip(evidence.text(split, "src"), evidence.text(split, "tgt"), strict=True)
    return [i for i, pair in enumerate(both) if any(len(line.split()) > 8 for line in pair)]


def generate(shell: Shell, evidence: EvidenceWorld, path: object, *options: object) -> Result:
    return evidence.generate(shell, path, "--max-len-b", 8, "--beam", 2, *options, code=None)


def test_sentences_that_are_too_long_for_a_model(shell: Shell, evidence: EvidenceWorld, short: Path) -> None:
    long = too_long(evidence, "test")
    assert 0 < len(long) < 19
    result = generate(shell, evidence, short)
    assert_says(
        result, f"sentence {min(long) + 1} of the test data: expected at most 9 tokens of source and 9 of target",
        f"({len(long)} too long in all)", SKIP,
    )  # fmt: skip
    skipped = generate(shell, evidence, short, SKIP)
    assert skipped.code == 0 and skipped.out.count("WARNING") == 1 and f"{len(long)} {SKIPPED}" in skipped.out
    assert sorted(skipped.hypotheses()) == [i for i in range(19) if i not in long]


def test_lines_that_are_too_long_for_a_model(shell: Shell, evidence: EvidenceWorld, short: Path) -> None:
    """Typed ones: nothing is left of a buffer of one, and the session goes on."""
    arguments = [*evidence.task_args(), "--path", short, "--max-len-b", 8, "--beam", 2]
    lines = "el tahc Zoé\n" + "el " * 9 + "\n\nquark\n"
    result = shell.run("fairseq-interactive", *arguments, stdin=lines, code=None)
    assert sorted(result.hypotheses()) == [0, 2, 3]
    assert_says(result, "sentence 2 of the input: expected at most 9 tokens of source", "found 10 tokens of source (1 ")
    for options in ([], ["--buffer-size", 4, "--batch-size", 2]):
        skipped = shell.run("fairseq-interactive", *arguments, SKIP, *options, stdin=lines)
        assert sorted(skipped.hypotheses()) == [0, 2, 3] and skipped.out.count(SKIPPED) == 1


def test_data_that_are_too_long_altogether(shell: Shell, evidence: EvidenceWorld, short: Path) -> None:
    arguments = [*evidence.train_args(), "--max-source-positions", 2]
    result = shell.run("fairseq-train", *arguments, code=None)
    lines = len(evidence.text("train", "src"))
    assert_says(result, "the train data: expected at most 2 tokens of source", f"none of {lines} sentences", "raise")
    result = shell.run("fairseq-train", *evidence.train_args(), "--max-tokens", 3, code=None)
    assert_says(result, "the train data: expected at most 3 tokens of source", "(limit of the model and --max-tokens)")
    result = generate(shell, evidence, short, SKIP, "--max-source-positions", 2)
    assert_says(result, "the test data: expected at most 2 tokens of source", "none of 19 sentences")
    result = generate(shell, evidence, short, SKIP, "--max-tokens", 3)
    assert_says(result, "--max-tokens is smaller than the longest sentence", "max_tokens=3", "raise it")


def test_nothing_is_forced_where_the_target_is_empty(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path], tmp_path: Path
) -> None:
    """Where fairseq's own search dies."""
    for language in ("src", "tgt"):
        lines = evidence.text("test", language)
        if language == "tgt":
            lines[3] = lines[7] = ""
        (tmp_path / f"test.src-tgt.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (tmp_path / f"dict.{language}.txt").write_bytes((evidence.raw / f"dict.{language}.txt").read_bytes())
    arguments = [str(tmp_path), *evidence.task_args(raw=True)[1:]]
    for options in ([], ["--print-alignment"]):
        result = shell.run(
            "fairseq-generate", *arguments, "--path", evidence_models["lstm"], "--gen-subset", "test", "--max-tokens",
            4000, "--max-len-b", 8, "--beam", 2, "--prefix-size", 2, "--num-workers", 0, *EVERY_SENTENCE, *options,
        )  # fmt: skip
        assert result.out.count("WARNING") == 1
        assert "--prefix-size: 2 targets of a batch are empty; their hypotheses have no prefix" in result.out
        words = result.best()
        assert len(words) == 19 and all(words.values())
        for number, line in enumerate(evidence.text("test", "tgt")):
            assert number in (3, 7) or words[number].split()[:2] == line.split()[:2]


def test_checkpoints_that_do_not_translate(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path], tmp_path: Path
) -> None:
    """fairseq's language model, alone and in an ensemble; ours is refused in test_translation_commands."""
    text = evidence.place / "train.tgt"
    shell.run(
        "fairseq-preprocess", "--only-source", "--trainpref", text, "--validpref", text, "--destdir", tmp_path / "bin"
    )
    model = train_stock_lm(shell, tmp_path / "bin", tmp_path, "--disable-validation")
    for path in (model, f"{evidence_models['lstm']}:{model}"):
        result = generate(shell, evidence, path)
        needed = "TransformerLanguageModel: --task llrnn_translation needs a translation model"
        assert_says(result, needed, "is it the right checkpoint")


def test_a_mixed_ensemble_with_other_dictionaries(
    shell: Shell, evidence: EvidenceWorld, evidence_models: dict[str, Path], translation: TranslationWorld
) -> None:
    place = translation.place / "other"
    shell.run("fairseq-train", *stock_args(translation.data, place), "--disable-validation", "--max-update", 1)
    for path in (f"{evidence_models['lstm']}:{place / 'checkpoint_last.pt'}", place / "checkpoint_last.pt"):
        result = generate(shell, evidence, path)
        assert_says(result, str(path), "expected weights that fit the data's dictionaries", "size mismatch")


@pytest.mark.parametrize("language", ["src", "tgt"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("<s> 0 #fairseq:overwrite", "line 1: symbol '<s>' was already given by fairseq itself, which"),
        ("le", "line 1: expected `symbol count`, found 'le'"),
    ],
)
def test_a_dictionary_that_fairseq_would_read_wrongly(
    language: str, line: str, message: str, shell: Shell, evidence: EvidenceWorld, tmp_path: Path
) -> None:
    data = shutil.copytree(evidence.data, tmp_path / "bin")
    file = data / f"dict.{language}.txt"
    file.write_text(f"{line}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    arguments = [str(data) if one == str(evidence.data) else one for one in evidence.train_args()]
    assert_says(shell.run("fairseq-train", *arguments, code=None), f"dict.{language}.txt, {message}")
