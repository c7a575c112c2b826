"""`llrnn rescore` that goes on after a stop, and models whose data went elsewhere."""

import shutil
import signal
from pathlib import Path

import pytest
import torch
from nbest_lists import AS_FAIRSEQ, MOSES, Write, as_moses, lines_of, noisy
from small_corpus import Llrnn, without_places
from tiny_world import World, read_checkpoint
from translation_world import TranslationWorld

from fairseq_llrnn.plugin.scoring.sentences import Scorer
from fairseq_llrnn.rescoring import rescoring

# ---- stopped and started again --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stopped_run_goes_on(
    number: signal.Signals, status: int, llrnn: Llrnn, write: Write, checkpoint: Path, world: World, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(rescoring, "CHUNK", 10)
    nbest = write("nbest", as_moses(noisy(world.text("test"), 3)))
    out = tmp_path / "best"
    arguments = ("rescore", "--path", checkpoint, "--nbest", nbest, "--nbest-out", tmp_path / "reranked", "--out")
    assert llrnn(*arguments, tmp_path / "whole").code == 0
    whole = {name: (tmp_path / name).read_bytes() for name in ("whole", "reranked")}
    (tmp_path / "reranked").unlink()

    calls = 0
    score = Scorer.score

    def stopped(self: Scorer, *arguments: list[str]) -> list[float]:
        nonlocal calls
        calls += 1
        if calls == 3:
            signal.raise_signal(number)
        return score(self, *arguments)

    monkeypatch.setattr(Scorer, "score", stopped)
    out.write_text("what was there\n", encoding="utf-8")
    done = llrnn(*arguments, out)
    assert (done.code, done.err) == (status, "llrnn: interrupted\n")
    assert lines_of(out) == ["what was there"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "best.scores", "nbest", "whole"]

    other = llrnn("rescore", "--path", checkpoint, "--nbest", write("other", MOSES), "--out", out).error
    assert other.startswith(f"{out}.scores: holds the scores of a run that was stopped and had other inputs (list);")
    calls = 10
    done = llrnn(*arguments, out)
    assert f"note: goes on after 4 sentences of 16, whose scores {out}.scores holds\n" in done.err
    assert calls == 10 + 6
    assert out.read_bytes() == whole["whole"]
    assert (tmp_path / "reranked").read_bytes() == whole["reranked"]
    assert not (tmp_path / "best.scores").exists()


# ---- where data and prior are ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_data_and_prior_that_went_elsewhere(
    llrnn: Llrnn, write: Write, forward: Path, reverse: Path, checkpoint: Path, translation: TranslationWorld,
    world: World, tmp_path: Path,
) -> None:  # fmt: skip
    moved = []
    for number, path in enumerate((forward, reverse, checkpoint)):
        state = read_checkpoint(path)
        state["cfg"]["task"]["data"] = "gone/data-bin"
        if path != reverse:
            state["cfg"]["task"]["prior"] = "gone/prior"
        moved.append(tmp_path / f"moved{number}.pt")
        torch.save(state, moved[-1])
    source, nbest = write("source", "\n".join(["rem al tiov tahc el", "neib tneit ior nu"])), write("nbest", MOSES)
    out = tmp_path / "best"
    given = ("rescore", "--source", source, "--nbest", nbest, "--out", out, "--nbest-out", tmp_path / "reranked")
    here = llrnn(*given, "--path", forward, "--reverse-path", reverse, "--lm-path", checkpoint)
    assert (here.code, here.err) == (0, f"note: {nbest}: 5 of 5 lines read\n")
    expected = (tmp_path / "reranked").read_bytes()
    models = [*given, "--path", moved[0], "--reverse-path", moved[1], "--lm-path", moved[2]]
    for prefix, path, name, data, prior in (
        ("", moved[0], "dict.src.txt", translation.data, translation.data / "prior"),
        ("reverse-", moved[1], "dict.tgt.txt", translation.data, None),
        ("lm-", moved[2], "dict.txt", world.data, world.prior("prior")),
    ):
        assert without_places(llrnn(*models).error) == (
            f"{path} was trained with the data folder 'gone/data-bin', but there is no such folder seen from here; "
            f"give the folder with --{prefix}data DATA-BIN"
        )
        assert llrnn(*models, f"--{prefix}data", tmp_path).error == (
            f"--{prefix}data {tmp_path}: expected the folder of fairseq-preprocess, found no {name} in it; give "
            "another one"
        )
        models += [f"--{prefix}data", data]
        if prior is None:
            assert llrnn(*models, f"--{prefix}prior", tmp_path).error == (
                f"--{prefix}prior {tmp_path}: expected a model that was trained with a prior, found {path}, which was "
                f"not; leave --{prefix}prior out"
            )
        else:
            bare = tmp_path / f"{prefix}bare"
            bare.mkdir()
            for file in data.glob("dict.*"):
                shutil.copy(file, bare)
            assert without_places(llrnn(*models[:-1], bare).error) == (
                f"{path} was trained with the prior 'gone/prior', but there is none seen from here; give its folder "
                f"with --{prefix}prior DIR"
            )
            models += [f"--{prefix}prior", prior]
    done = llrnn(*models)
    assert (done.code, done.err, done.out) == (0, here.err, here.out)
    assert (tmp_path / "reranked").read_bytes() == expected


def test_scores_of_other_dictionaries_are_not_gone_on_from(
    llrnn: Llrnn, write: Write, reverse: Path, translation: TranslationWorld, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    nbest, out = write("nbest", AS_FAIRSEQ), tmp_path / "best"
    arguments = ("rescore", "--path", reverse, "--nbest", nbest, "--out", out)

    def stopped(self: Scorer, *arguments: list[str]) -> list[float]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Scorer, "score", stopped)
        assert llrnn(*arguments).code == 130
    data = tmp_path / "data"
    data.mkdir()
    for name in ("dict.src.txt", "dict.tgt.txt"):
        lines = (translation.data / name).read_text(encoding="utf-8").splitlines(keepends=True)
        lines = [lines[1], lines[0], *lines[2:]] if "src" in name else lines
        (data / name).write_text("".join(lines), encoding="utf-8")
    assert llrnn(*arguments, "--data", data).error.startswith(
        f"{out}.scores: holds the scores of a run that was stopped and had other inputs (dict.src.txt of --path);"
    )
    assert llrnn(*arguments).code == 0
