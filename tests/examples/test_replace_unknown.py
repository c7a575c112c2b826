"""replace_unknown.py: each <unk> becomes the source word with most attention, of all or of the unknown ones."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from example_modules import EXAMPLES, load
from shell import TRUSTING, Shell
from translation_world import SIZES, TRAINING, TranslationWorld

SOURCE = "deux zorglub voient grenz .\n.\n"
GENERATED = """\
INFO | some log
H-1\t-0.1\t.
A-1\t0.9,0.1 0.1,0.9
S-0\tdeux <unk> voient <unk> .
H-0\t-0.5\ttwo <unk> see <unk>
A-0\t.9,0,0,0,0,0 .6,.3,0,.1,0,0 0,0,1,0,0,0 0,.1,0,.2,.1,.9 0,0,0,0,0,1
H-0\t-0.7\t<unk>
A-0\t1,0,0,0,0,0 0,0,0,0,0,1
"""


@pytest.fixture
def script() -> ModuleType:
    (module,) = load(EXAMPLES / "translation", "replace_unknown")
    return module


class Run:
    """Runs the script on files of its own."""

    def __init__(self, script: ModuleType, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script, self.place, self.monkeypatch = script, place, monkeypatch
        self.out = place / "out"

    def __call__(self, generated: str, source: str, *more: object) -> int:
        arguments: list[object] = ["replace_unknown.py", "--out", self.out]
        for name, text in (("generated", generated), ("source", source)):
            (self.place / name).write_text(text, encoding="utf-8")
            arguments += [f"--{name}", self.place / name]
        self.monkeypatch.setattr(sys, "argv", [*map(str, arguments), *map(str, more)])
        return self.script.main()


@pytest.fixture
def run(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(script, tmp_path, monkeypatch)


def test_the_word_with_most_attention(run: Run) -> None:
    assert run(GENERATED, SOURCE) == 0
    assert run.out.read_text(encoding="utf-8") == "two deux see grenz\n.\n"  # the sentence's end is no word


def test_only_words_outside_the_dictionary(run: Run) -> None:
    dictionary = run.place / "dict.txt"
    dictionary.write_text("deux 5\nvoient 2\n. 9\n")
    assert run(GENERATED, SOURCE, "--unknown-to", dictionary) == 0
    assert run.out.read_text(encoding="utf-8") == "two zorglub see grenz\n.\n"
    dictionary.write_text("deux 5\nvoient 2\n. 9\nzorglub 1\ngrenz 1\n")  # then all words are candidates
    assert run(GENERATED, SOURCE, "--unknown-to", dictionary) == 0
    assert run.out.read_text(encoding="utf-8") == "two deux see grenz\n.\n"


@pytest.mark.slow
def test_what_fairseq_prints_of_a_softmax_transformer(
    run: Run, shell: Shell, translation: TranslationWorld, tmp_path: Path
) -> None:
    """Nearly untrained, and with all words of the target unknown, it says <unk> alone."""
    text, data = tmp_path / "rare", tmp_path / "data-bin"
    lines = translation.source("test")
    for side, written in (("src", lines), ("tgt", [" ".join(["new"] * len(line.split())) for line in lines])):
        text.with_suffix(f".{side}").write_text("\n".join(written) + "\n", encoding="utf-8")
    dictionary = translation.data / "dict.src.txt"
    shell.run(
        "fairseq-preprocess", "-s", "src", "-t", "tgt", "--trainpref", text, "--testpref", text, "--validpref", text,
        "--srcdict", dictionary, "--thresholdtgt", 10_000, "--destdir", data,
    )  # fmt: skip
    shell.run(
        "fairseq-train", data, "--task", "translation", "--cpu", "--arch", "transformer", *SIZES["llrnn_transformer"],
        *TRAINING, "--criterion", "cross_entropy", "--max-epoch", 8, "--save-dir", tmp_path / "trained",
        "--no-epoch-checkpoints",
    )  # fmt: skip
    done = shell.run(
        "fairseq-generate", data, "--user-dir", "fairseq_llrnn", "--path", tmp_path / "trained" / "checkpoint_last.pt",
        "--cpu", "--gen-subset", "test", "--beam", 2, "--print-alignment", "soft", "--max-tokens", 60,
        "--required-batch-size-multiple", 1, variables=TRUSTING,
    )  # fmt: skip
    assert "<unk>" in done.out
    assert run(done.out, "\n".join(lines) + "\n") == 0
    made = run.out.read_text(encoding="utf-8").splitlines()
    assert len(made) == len(lines)
    assert all(set(one.split()) <= set(line.split()) for one, line in zip(made, lines, strict=True))
