"""`llrnn rescore` that goes on after a stop, and models whose data went elsewhere."""

import signal
from pathlib import Path

import pytest
from nbest_lists import AS_FAIRSEQ, MOSES, Write, as_moses, lines_of, noisy
from small_corpus import Llrnn
from tiny_world import World
from translation_world import TranslationWorld

from fairseq_llrnn.plugin.scoring.sentences import Scorer
from fairseq_llrnn.systems.reranking import rescoring

# ---- stopped and started again --------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on(
    llrnn: Llrnn, write: Write, checkpoint: Path, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
            signal.raise_signal(signal.SIGTERM)
        return score(self, *arguments)

    monkeypatch.setattr(Scorer, "score", stopped)
    out.write_text("what was there\n", encoding="utf-8")
    done = llrnn(*arguments, out)
    assert (done.code, done.err) == (143, "llrnn: interrupted\n")
    assert lines_of(out) == ["what was there"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "best.scores", "nbest", "whole"]

    other = llrnn("rescore", "--path", checkpoint, "--nbest", write("other", MOSES), "--out", out).error
    assert other.startswith(f"{out}.scores: holds the scores of an interrupted run with other inputs (list);")
    calls = 10
    done = llrnn(*arguments, out)
    assert f"note: resumed after 4 sentences of 16, with the scores in {out}.scores\n" in done.err
    assert calls == 10 + 6
    assert out.read_bytes() == whole["whole"]
    assert (tmp_path / "reranked").read_bytes() == whole["reranked"]
    assert not (tmp_path / "best.scores").exists()


# ---- where data and prior are ---------------------------------------------------------------------------------------


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
        f"{out}.scores: holds the scores of an interrupted run with other inputs (dict.src.txt of --path);"
    )
    assert llrnn(*arguments).code == 0
