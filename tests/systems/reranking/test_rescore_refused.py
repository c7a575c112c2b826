"""What `llrnn rescore` refuses, in one clear line each."""

import errno
import os
from pathlib import Path

import pytest
from nbest_lists import AS_FAIRSEQ, AS_JSON, MOSES, Write
from small_corpus import Done, Llrnn

HERE = __file__


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--max-tokens", 0], "--max-tokens 0: expected a number of at least 1"),
        (["--seed", -1], "--seed -1: expected a number of at least 0"),
        (["--metric", "chrf", "--tokenize", "none"], "--tokenize none: belongs to --metric bleu; chrf counts"),
        (["--tokenize", "none"], "--tokenize none: belongs to --tune or --reference, which are missing; give"),
        (["--tokenize", "13a", "--weights", "w"], "--tokenize 13a: belongs to --tune or --reference, which are"),
        (["--seed", 0], "--seed 0: belongs to --tune, which is missing; give both or none"),
        (["--seed", 9, "--reference", "r", "--tokenize", "none"], "--seed 9: belongs to --tune, which is missing;"),
        (["--tune", "a", "b", "c", "--weights", "w"], "--tune and --weights: give one of them; "),
        (["--source", "-"], "only one input can come from stdin (`-`), found several; give files"),
        (["--nbest-out", "o"], "--out and --nbest-out: both are o; give two different files"),
        (["--source", HERE, "--out", HERE], f"--out {HERE}: expected another file, found one that is read, which"),
        (["--out", "absent/o"], "--out absent/o: expected a place in a folder, but there is no such folder; make it"),
        (["--out", "/dev"], "--out /dev: expected a file to write or replace, found a folder or device; give another"),
        (["--out", ""], "--out : expected a file to write or replace, found an empty name; give a file"),
        (["--out", "o\ud800"], r"--out o\ud800: expected the name of a file, found invalid characters;"),
        (["--reverse-data", "d"], "--reverse-data d: belongs to --reverse-path, which is missing; give both or none"),
        (["--lm-prior", "d"], "--lm-prior d: belongs to --lm-path, which is missing; give both or none"),
        (["--nbest-out", "/dev/null"], "--nbest-out /dev/null: expected a file to write or replace, found a folder or"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(llrnn: Llrnn, options: list[object], says: str) -> None:
    assert llrnn("rescore", "--path", "p", "--nbest", "-", "--out", "o", *options).error.startswith(says)


def test_models_in_each_others_places(
    llrnn: Llrnn, write: Write, forward: Path, checkpoint: Path, tmp_path: Path
) -> None:
    def said(text: str, *options: object) -> str:
        return llrnn("rescore", "--nbest", write("nbest", text), "--out", tmp_path / "best", *options).error

    assert said(AS_FAIRSEQ, "--path", checkpoint, "--lm-path", forward) == (
        f"--lm-path {forward}: expected a language model, found a translation model; give it as --path"
    )
    assert said(AS_FAIRSEQ, "--path", forward, "--reverse-path", checkpoint) == (
        f"--reverse-path {checkpoint}: expected a translation model, found a language model; give it as --lm-path"
    )
    assert said(AS_FAIRSEQ, "--path", forward, "--reverse-path", forward) == (
        f"--reverse-path {forward}: expected a model of the other direction, found one from src to tgt, like --path; "
        "give one that was trained with source and target exchanged"
    )
    assert said(MOSES, "--path", forward) == (
        f"--path {forward}: a translation model needs the source, which {tmp_path}/nbest lacks; give --source FILE"
    )
    error = said(AS_JSON, "--path", tmp_path / "absent.pt")
    assert error.startswith(f"--path {tmp_path}/absent.pt: expected a checkpoint")
    assert [p.name for p in tmp_path.iterdir()] == ["nbest"]


def test_lists_with_and_without_totals_do_not_go_together(
    llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path
) -> None:
    dev = write("dev", '{"id": 0, "hypotheses": [{"text": "le roi"}]}\n')
    text = write("text", "le roi\n")
    done = llrnn(
        "rescore", "--path", checkpoint, "--nbest", write("nbest", MOSES), "--tune", text, dev, text, "--out",
        tmp_path / "best",
    )  # fmt: skip
    assert done.error == (
        f"{dev}: its hypotheses lack totals, unlike those of {tmp_path}/nbest; give lists of the same system"
    )


def test_a_disk_without_room(
    llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr("fairseq_llrnn.systems.reranking.commands.rescore.os.replace", full)
    done: Done = llrnn("rescore", "--path", checkpoint, "--nbest", write("nbest", MOSES), "--out", tmp_path / "best")
    assert done.error == (
        f"{tmp_path}/best: No space left on device; give --out and --nbest-out in writable folders with enough disk "
        "space; the next run resumes from the scores so far"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best.scores", "nbest"]
