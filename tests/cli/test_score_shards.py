"""`llrnn score` in shards: what does not go together is one message."""

import os
from pathlib import Path

import pytest
from small_corpus import Llrnn


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "expected --path with a checkpoint, or --merge with the parts of --shard, found neither"),
        (["--path", "p", "--shard", "1/2"], "--shard: it needs --out, found none; the whole text's score is printed"),
        (["--path", "p", "--out", "o"], "--out: it needs --shard, found none; the whole text's score is printed"),
        (
            ["--path", "p", "--shard", "1/2", "--out", "o", "--json"],
            "--json: a shard prints no scores; say it with --merge, when all parts are there",
        ),
        (["--path", "p", "--shard", "1/2", "--out", "absent/o"], "--out absent/o: expected a place in a folder, but"),
        (["--path", "p", "absent"], "absent: cannot be read: No such file or directory"),  # before the model is
        (
            ["--path", "p", "--shard", "1/2", "--out", "-"],
            "--out -: expected a file to write or replace, found stdout, which cannot take it; give a file",
        ),
        (["--path", "p", "--merge", "a"], "--path: the parts of --merge know it already; leave it out"),
        (["--merge", "absent"], "absent: cannot be read: No such file or directory; check the path and its rights"),
    ],
)
def test_options_that_make_no_sense(
    llrnn: Llrnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert llrnn("score", *options).error.startswith(says)


def test_a_part_in_the_place_of_its_text(llrnn: Llrnn, tmp_path: Path) -> None:
    text, link = tmp_path / "text", tmp_path / "link"
    text.write_text("a b\n", encoding="utf-8")
    link.symlink_to(text)
    said = llrnn("score", "--path", "p", text, "--shard", "1/2", "--out", link).error
    assert said == f"--out {link}: expected another file, found one that is read, which would be lost"
    with text.open("rb") as file:
        stdin = os.dup(0)
        os.dup2(file.fileno(), 0)
        said = llrnn("score", "--path", "p", "--shard", "1/2", "--out", text).error
        os.dup2(stdin, 0)
        os.close(stdin)
    assert said == f"--out {text}: expected another file, found the one on stdin, which would be lost"


def test_what_is_no_shard(llrnn: Llrnn) -> None:
    assert "argument --shard: expected I/N, shard I of N, I from 1 to N (such as 3/16), found '3'" in (
        llrnn("score", "--path", "p", "--shard", "3").err
    )
