"""`llrnn encode`: vectors of sentences are those of the model, and what it refuses."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from discourse_texts import Texts, train_args
from shell import Shell

pytest.importorskip("fairseq")


class RunsCode:
    """What its pickle would run makes a folder."""

    def __init__(self, place: Path) -> None:
        self.place = str(place)

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.place,)


def encode(shell: Shell, out: Path, *arguments: object, **more: object) -> np.ndarray:
    shell.run("llrnn", "encode", "--out", out, *arguments, **more)  # type: ignore[arg-type]
    found = np.load(out, allow_pickle=False)
    assert found.dtype == np.float32
    return found


def test_vectors_are_those_of_the_model_in_any_batches(
    shell: Shell, texts: Texts, trained: Path, tmp_path: Path
) -> None:
    from llrnn_research.discourse.plugin.encoding import load_encoder

    path = trained / "checkpoint_best.pt"
    lines = [line for line in texts.file("test").read_text(encoding="utf-8").splitlines() if line]
    lines[3] += " unheard of" * 40  # longer than is read
    text = "\n".join(lines) + "\n"
    found = encode(shell, tmp_path / "one.npy", "--path", path, stdin=text)
    assert found.shape == (len(lines), 24)
    encoder = load_encoder(str(path), None, None, 100)
    for i in (0, 1, 3, len(lines) - 1):
        ids = [encoder.task.source_words.word_index.get(word, 3) for word in lines[i].lower().split()][:60]
        expected = encoder.model.encode(torch.tensor([ids]))[0].detach()
        np.testing.assert_allclose(found[i], expected, rtol=1e-5, atol=1e-6)
    file = tmp_path / "text"
    file.write_text(text, encoding="utf-8")
    twice = encode(shell, tmp_path / "two.npy", file, file, "--path", path, "--max-tokens", 30)
    np.testing.assert_allclose(twice, np.concatenate([found, found]), rtol=1e-4, atol=1e-6)


def test_nothing_gives_an_empty_matrix(shell: Shell, trained: Path, tmp_path: Path) -> None:
    assert encode(shell, tmp_path / "it.npy", "--path", trained / "checkpoint_best.pt").shape == (0, 24)


def test_a_moved_folder_is_found_again(shell: Shell, texts: Texts, trained: Path, tmp_path: Path) -> None:
    line = "step0 cat runs name1 .\n"
    shutil.copytree(trained, tmp_path / "joint")
    expected = encode(shell, tmp_path / "one.npy", "--path", trained / "checkpoint_best.pt", stdin=line)
    hidden = texts.place / "elsewhere"
    texts.data.rename(hidden)
    try:
        path = tmp_path / "joint" / "checkpoint_best.pt"
        done = shell.run("llrnn", "encode", "--path", path, "--out", tmp_path / "it.npy", stdin=line, code=2)
        assert "was trained with the data folder" in done.err and done.err.endswith("give the folder with --data DIR\n")
        given = encode(shell, tmp_path / "two.npy", "--path", path, "--data", hidden, stdin=line)
        shutil.copytree(hidden, tmp_path / "data")
        found = encode(shell, tmp_path / "three.npy", "--path", path, stdin=line)
    finally:
        hidden.rename(texts.data)
    assert np.array_equal(given, expected) and np.array_equal(found, expected)


def test_vectors_by_features_and_characters(shell: Shell, texts: Texts, prior: Path, tmp_path: Path) -> None:
    options = ["--source-prior", prior, "--source-characters", "cnn", "--encoder", "cbow", "--max-update", 2]
    shell.run("fairseq-train", *train_args(texts, tmp_path, *options, "--lr", 0.001))
    path = tmp_path / "checkpoint_last.pt"
    found = encode(shell, tmp_path / "one.npy", "--path", path, stdin="tac\ngod\ntac\n")
    assert np.allclose(found[0], found[2]) and not np.allclose(found[0], found[1])
    given = ("--path", path, "--source-prior", prior, "-")
    named = encode(shell, tmp_path / "two.npy", *given, stdin="\ufefftac\ngod\ntac\n")
    assert np.array_equal(found, named)


def test_what_encode_refuses(shell: Shell, texts: Texts, trained: Path, tmp_path: Path) -> None:
    path, out = trained / "checkpoint_best.pt", tmp_path / "it.npy"
    hostile = tmp_path / "hostile.pt"
    torch.save({"args": RunsCode(tmp_path / "ran"), "model": {}}, hostile)
    for arguments, stdin, message in (
        (["--path", path], "one\n\ntwo\n", "stdin, line 2: expected a sentence, found an empty line"),
        (["--path", tmp_path / "none.pt", tmp_path / "none"], "", "cannot be read: No such file or directory"),
        (["--path", path, "--max-tokens", 0], "", "--max-tokens 0: expected a number of at least 1"),
        (["--path", path, "--data", tmp_path], "", "found no discourse.json in it"),
        (["--path", tmp_path / "none.pt"], "", "expected a checkpoint, found no such file"),
        (["--path", path, "--source-prior", tmp_path], "", "expected a model that was trained with a source prior"),
        (["--path", hostile], "", "refused"),
    ):
        done = shell.run("llrnn", "encode", *arguments, "--out", out, stdin=stdin, code=2)
        assert message in done.err and "Traceback" not in done.err, done.err
        assert not out.exists()
    assert not (tmp_path / "ran").exists()
    text = tmp_path / "text.npy"
    text.write_text("one\n", encoding="utf-8")
    for arguments in (["--path", path, text], ["--path", text, path]):
        done = shell.run("llrnn", "encode", *arguments, "--out", text, code=2)
        assert f"--out {text}: expected another file, found one that is read, which would be lost" in done.err
        assert text.read_text(encoding="utf-8") == "one\n"


def test_a_model_of_another_kind(shell: Shell, evidence_models: dict[str, Path], tmp_path: Path) -> None:
    done = shell.run("llrnn", "encode", "--path", evidence_models["lstm"], "--out", tmp_path / "it.npy", code=2)
    assert "expected an encoder of sentences (--arch discourse_encoder), found 'llrnn_lstm'" in done.err
