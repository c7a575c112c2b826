"""`llrnn rescore` with real models: scores, ranks, tuning, going on after a stop; one clear line for what is wrong."""

import errno
import json
import math
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sacrebleu
import torch
from evidence_world import EvidenceWorld
from shell import Shell
from small_corpus import Done, Llrnn, without_places
from tiny_world import EVERY_SENTENCE, World, read_checkpoint
from translation_world import SIZES, TRAINING, TranslationWorld

from fairseq_llrnn.cli.tables import percent
from fairseq_llrnn.files.leftovers import lock, temporary_name
from fairseq_llrnn.plugin.scoring.explainer import load_explainer
from fairseq_llrnn.plugin.scoring.sentences import Scorer, load_scorer
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.rescoring import rescoring

MOSES = """\
0 ||| le chat voit la mer ||| LM= -3 ||| -2
0 ||| le chat voit le mer ||| LM= -4 ||| -1.5
0 ||| mer la voit chat le ||| LM= -5 ||| -1
1 ||| un roi tient bien ||| LM= -3 ||| -1
1 ||| un roi tient zzz ||| LM= -4 ||| -2
"""
AS_FAIRSEQ = """\
S-1\t…
H-1\t-1\tun roi tient bien
D-1\t-1\tUn roi tient bien.
H-1\t-2\tun roi tient zzz
D-1\t-2\tUn roi tient zzz.
S-0\t…
H-0\t-2\tle chat voit la mer
D-0\t-2\tLe chat voit la mer.
H-0\t-1.5\tle chat voit le mer
D-0\t-1.5\tLe chat voit le mer.
H-0\t-1\tmer la voit chat le
D-0\t-1\tMer la voit chat le.
"""
AS_JSON = """\
{"id": 0, "hypotheses": [{"text": "le chat voit la mer", "score": -2}, {"text": "le chat voit le mer", "score": -1.5}, \
{"text": "mer la voit chat le", "score": -1}]}
{"id": 1, "hypotheses": [{"text": "un roi tient bien", "score": -1}, {"text": "un roi tient zzz", "score": -2}]}
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def run(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return run


@pytest.fixture(scope="session")
def forward(shell: Shell, translation: TranslationWorld) -> Path:
    """Our translation model."""
    place = translation.place / "rescoring-forward"
    shell.run("fairseq-train", *translation.train_args(save_dir=place), "--max-epoch", 12)
    return place / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def reverse(shell: Shell, translation: TranslationWorld) -> Path:
    """A softmax Transformer of fairseq, the other way round, that takes at most nine words."""
    place = translation.place / "rescoring-reverse"
    shell.run(
        "fairseq-train", translation.data, "--task", "translation", "--source-lang", "tgt", "--target-lang", "src",
        "--cpu", "--arch", "transformer", *SIZES["llrnn_transformer"], *TRAINING, "--criterion", "cross_entropy",
        "--lr", 0.003, "--max-epoch", 6, "--save-dir", place, "--no-epoch-checkpoints", "--max-target-positions", 10,
        "--max-source-positions", 10,
    )  # fmt: skip
    return place / "checkpoint_last.pt"


def noisy(lines: list[str], seed: int, size: int = 8) -> Iterator[list[tuple[float, str]]]:
    """For each line, hypotheses with some words wrong and totals that hardly know it; best total first."""
    rng = random.Random(seed)
    words = sorted({word for line in lines for word in line.split()})
    for line in lines:
        hypotheses = []
        for _ in range(size):
            text = line.split()
            errors = rng.randint(0, 3)
            for _ in range(errors):
                text[rng.randrange(len(text))] = rng.choice(words)
            hypotheses.append((round(rng.gauss(-errors, 3), 3), " ".join(text)))
        yield sorted(hypotheses, reverse=True)


def as_moses(lists: Iterator[list[tuple[float, str]]]) -> str:
    return "".join(f"{n} ||| {text} ||| {total}\n" for n, one in enumerate(lists) for total, text in one)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


# ---- one language model ---------------------------------------------------------------------------------------------


def test_totals_and_ranks(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path) -> None:
    nbest, out, reranked = write("nbest", MOSES), tmp_path / "best", tmp_path / "reranked"
    done = llrnn("rescore", "--path", checkpoint, "--nbest", nbest, "--out", out, "--nbest-out", reranked)
    assert (done.code, done.err) == (0, "")
    loaded = load_explainer(str(checkpoint))
    for number, one in enumerate((MOSES.splitlines()[:3], MOSES.splitlines()[3:])):
        expected = []
        for line in one:
            _, text, features, total = line.split(" ||| ")
            model = sum(e.log_prob for e in loaded.explain(text.split(), 1))
            expected.append((float(total) + model, text, features, model))
        expected.sort(reverse=True)
        assert lines_of(out)[number] == expected[0][1]
        written = [line.split(" ||| ") for line in lines_of(reranked) if line.startswith(f"{number} |||")]
        assert [(w[1], w[2].partition(" llrnn")[0]) for w in written] == [(e[1], e[2]) for e in expected]
        assert [float(w[3]) for w in written] == pytest.approx([e[0] for e in expected], abs=1e-4)
        assert [float(w[2].rpartition(" ")[2]) for w in written] == pytest.approx([e[3] for e in expected], abs=1e-4)
    assert lines_of(out)[0] != "mer la voit chat le"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "nbest", "reranked"]
    assert done.out.splitlines() == [
        "score        weight  unknown words",
        "list         1.0000",
        "model        1.0000           4.3%",
        "words        0.0000",
        "",
        "1 of 2 sentences with another best hypothesis than before",
    ]


@pytest.mark.parametrize("text", [AS_FAIRSEQ, AS_JSON])
def test_other_formats(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path, text: str) -> None:
    nbest, out, reranked = write("nbest", text), tmp_path / "best", tmp_path / "reranked"
    done = llrnn("rescore", "--path", checkpoint, "--nbest", nbest, "--out", out, "--nbest-out", reranked)
    assert (done.code, done.err) == (0, "")
    best = lines_of(out)
    assert len(best) == 2 and "mer la" not in best[0].lower()
    assert best[1] == ("Un roi tient bien." if text is AS_FAIRSEQ else "un roi tient bien")
    if text is AS_JSON:
        found = [json.loads(line) for line in lines_of(reranked)]
        assert [one["hypotheses"][0]["text"] for one in found] == best
    else:
        found = re.findall(r"^D-([01])\t\S+\t(.*)$", reranked.read_text(encoding="utf-8"), re.MULTILINE)
        assert [number for number, _ in found] == ["0"] * 3 + ["1"] * 2
        assert [found[0][1], found[3][1]] == best
    forced = llrnn("rescore", "--path", checkpoint, "--nbest", nbest, "--out", out, "--format", "moses")
    assert forced.error.startswith(f"{nbest}, line 1: expected `id ||| hypothesis ||| … ||| total`")


def test_shards_are_the_whole(
    llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a list in four chunks; the third shard has one that nothing else of its own comes before."""
    monkeypatch.setattr(rescoring, "CHUNK", 2)
    nbest = write("nbest", MOSES + MOSES.replace("\n1 |||", "\n3 |||").replace("0 |||", "2 |||"))
    options = ("--path", checkpoint, "--nbest", nbest)
    places = [tmp_path / name for name in ("whole", "whole.nbest", "merged", "merged.nbest")]
    whole = llrnn("rescore", *options, "--out", places[0], "--nbest-out", places[1])
    for number in (1, 2, 3):
        done = llrnn("rescore", *options, "--shard", f"{number}/3", "--out", tmp_path / f"part{number}")
        assert done.out.startswith(f"shard {number}/3: ") and done.code == 0, done.err
    parts = [tmp_path / f"part{number}" for number in (3, 1, 2)]
    parts[0] = parts[0].rename(f"{places[2]}.scores")  # where a run without shards keeps its own
    kept = parts[0].read_bytes()
    merged = llrnn("rescore", *options, "--merge", *parts, "--out", places[2], "--nbest-out", places[3])
    assert parts[0].read_bytes() == kept
    assert (merged.code, merged.out, merged.err) == (0, whole.out, whole.err)
    assert [place.read_bytes() for place in places[2:]] == [place.read_bytes() for place in places[:2]]
    missing = llrnn("rescore", *options, "--merge", *parts[:2], "--out", places[2])
    assert missing.error == "expected all 3 shards, found 2; missing: 2/3; run those, too, and give all files"
    options = ("--path", tmp_path / "absent.pt", "--nbest", nbest)
    assert llrnn("rescore", *options, "--merge", *parts, "--out", places[2]).error == (
        f"--path {tmp_path}/absent.pt: cannot be read: No such file or directory; give the checkpoint that the shards "
        "were given"
    )


def test_stdin_and_stdout(shell: Shell, checkpoint: Path) -> None:
    done = shell.run("llrnn", "rescore", "--path", checkpoint, "--nbest", "-", "--out", "-", stdin=MOSES)
    assert len(done.out.splitlines()) == 2 and done.out.endswith("un roi tient bien\n")
    assert done.err.splitlines()[0] == "score        weight  unknown words"


def test_sentences_that_are_missing(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path) -> None:
    source = write("source", "a\n" * 5)
    nbest = write("nbest", '{"id": 3, "hypotheses": []}\n{"id": 1, "hypotheses": [{"text": "le roi", "score": -1}]}\n')
    out, reranked = tmp_path / "best", tmp_path / "reranked"
    done = llrnn(
        "rescore", "--path", checkpoint, "--nbest", nbest, "--out", out, "--source", source, "--nbest-out", reranked
    )
    assert done.code == 0
    assert done.err.splitlines() == [
        f"note: {nbest}: 1 sentences out of order, sorted by their numbers",
        f"note: {nbest}: 4 sentences have no hypotheses; the best ones are empty lines there",
    ]
    assert lines_of(out) == ["", "le roi", "", "", ""]
    assert [json.loads(line)["id"] for line in lines_of(reranked)] == [1, 3]
    assert done.out.endswith("\n0 of 5 sentences with another best hypothesis than before\n")


# ---- translation models ---------------------------------------------------------------------------------------------


def test_the_noisy_channel(
    llrnn: Llrnn, write: Write, forward: Path, reverse: Path, checkpoint: Path, translation: TranslationWorld,
    tmp_path: Path,
) -> None:  # fmt: skip
    sources, targets = translation.source("test")[:4], translation.world.text("test")[:4]
    lists = list(noisy(targets, 5, 3))
    source, nbest = write("source", "\n".join(sources)), write("nbest", as_moses(iter(lists)))
    out, reranked = tmp_path / "best", tmp_path / "reranked"
    done = llrnn(
        "rescore", "--path", forward, "--reverse-path", reverse, "--lm-path", checkpoint, "--source", source,
        "--nbest", nbest, "--out", out, "--nbest-out", reranked,
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert [line.split()[0] for line in done.out.splitlines()[1:6]] == ["list", "model", "reverse", "lm", "words"]
    scorers = [load_scorer(str(path), 100) for path in (forward, reverse, checkpoint)]
    for line in lines_of(reranked):
        number, text, features, total = line.split(" ||| ")
        src = sources[int(number)]
        expected = [
            scorer.score([one], [other])[0]
            for scorer, one, other in zip(scorers, (src, text, ""), (text, src, text), strict=True)
        ]
        found = re.fullmatch(r"llrnn_model= (\S+) llrnn_reverse= (\S+) llrnn_lm= (\S+)", features)
        assert found is not None
        assert [float(x) for x in found.groups()] == pytest.approx(expected, abs=1e-3)
        totals = [own + sum(expected) for own, words in lists[int(number)] if words == text]
        assert min(abs(float(total) - one) for one in totals) < 1e-2


def test_hypotheses_with_strings_of_the_source(
    llrnn: Llrnn, write: Write, shell: Shell, evidence: EvidenceWorld, evidence_model: Path, tmp_path: Path
) -> None:
    """Scores are those of fairseq's scorer on text; strings that no slot offers count as unknown."""
    sources, targets = evidence.text("test", "src"), evidence.text("test", "tgt")
    scored = shell.run(
        "fairseq-generate", *evidence.task_args("lexical", raw=True), "--path", evidence_model, "--gen-subset", "test",
        "--score-reference", "--num-workers", 0, "--batch-size", 5, *EVERY_SENTENCE,
    )  # fmt: skip
    expected = {
        int(number): sum(map(float, scores.split())) * math.log(2)
        for number, scores in re.findall(r"^P-(\d+)\t(.*)$", scored.out, re.MULTILINE)
    }
    lists = [[(-1.0, line.replace("é", "e")), (-1.0, line)] for line in targets]  # Zoe is in no source
    source, nbest = write("source", "\n".join(sources)), write("nbest", as_moses(iter(lists)))
    out, reranked = tmp_path / "best", tmp_path / "reranked"
    done = llrnn(
        "rescore", "--path", evidence_model, "--source", source, "--nbest", nbest, "--out", out, "--nbest-out", reranked
    )
    assert (done.code, done.err) == (0, "")
    found = [line.split(" ||| ") for line in lines_of(reranked)]
    for number, line in enumerate(targets):
        (score,) = {features for n, text, features, _ in found if (int(n), text) == (number, line)}
        assert float(score.removeprefix("llrnn_model= ")) == pytest.approx(expected[number], abs=2e-3)
        assert lines_of(out)[number] == line or "Zoé" not in line, "the string that the source offers is better"
    known = Prior.load(evidence.data / "lexical").symbols
    unknown = words = 0  # every unknown word of a source of this world is evidence
    for src, line in [(src, text) for src, one in zip(sources, lists, strict=True) for _, text in one]:
        unknown += sum(word not in known and word not in src.split() for word in line.split())
        words += len(f"{src} {line}".split())
    assert unknown > 0
    assert re.search(r"^model +1\.0000 +(\S+)$", done.out, re.MULTILINE)[1] == percent(unknown / words)


def test_tuned_weights(
    llrnn: Llrnn, write: Write, forward: Path, translation: TranslationWorld, tmp_path: Path
) -> None:
    files = {}
    for seed, split in enumerate(("valid", "test")):
        files[split] = (
            translation.place / f"{split}.src", write(split, as_moses(noisy(translation.world.text(split), seed))),
            translation.place / f"{split}.tgt",
        )  # fmt: skip
    out = tmp_path / "best"
    source, nbest, reference = files["test"]
    arguments = ["rescore", "--path", forward, "--source", source, "--nbest", nbest, "--reference", reference]
    done = llrnn(*arguments, "--tune", *files["valid"], "--out", out, "--metric", "chrf")
    assert (done.code, done.err) == (0, "")
    head, dev, test = done.out.splitlines()[5:8]
    assert head.split() == ["chrF2", "before", "after", "p", "signature"]
    assert dev.startswith("dev ") and test.startswith("test ")
    signature = "nrefs:1|{}case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"
    assert dev.split()[-1] == signature.format("")
    assert test.split()[-1] == signature.format("bs:1000|seed:12345|")
    before, after = map(float, dev.split()[1:3])
    assert after > before
    written = json.loads((tmp_path / "best.weights.json").read_text(encoding="utf-8"))
    assert written["weights"].keys() == {"list", "model", "words"}
    assert (round(written["before"], 2), round(written["after"], 2)) == (before, after)
    assert (written["metric"], written["sentences"], written["seed"]) == ("chrF2", 21, 1)
    assert sum(map(abs, written["weights"].values())) == pytest.approx(1)
    # sacrebleu's own figures of what was written
    chrf = sacrebleu.metrics.CHRF()
    own = [next(iter(one))[1] for one in noisy(translation.world.text("test"), 1)]
    assert float(test.split()[1]) == round(chrf.corpus_score(own, [lines_of(reference)]).score, 2)
    assert float(test.split()[2]) == round(chrf.corpus_score(lines_of(out), [lines_of(reference)]).score, 2)
    # the same weights again, and what they make of the dev set
    again = llrnn(
        *arguments, "--weights", tmp_path / "best.weights.json", "--out", tmp_path / "again", "--tokenize", "none"
    )
    assert again.code == 0
    assert lines_of(tmp_path / "again") == lines_of(out)
    of_tokens = again.out.splitlines()[6].split()
    assert of_tokens[0] == "test" and "|tok:none|" in of_tokens[-1]
    bleu = sacrebleu.metrics.BLEU(tokenize="none")
    assert float(of_tokens[2]) == round(bleu.corpus_score(lines_of(out), [lines_of(reference)]).score, 2)
    dev_source, dev_nbest, dev_reference = files["valid"]
    llrnn(
        "rescore", "--path", forward, "--source", dev_source, "--nbest", dev_nbest, "--weights",
        tmp_path / "best.weights.json", "--out", tmp_path / "dev",
    )  # fmt: skip
    assert chrf.corpus_score(lines_of(tmp_path / "dev"), [lines_of(dev_reference)]).score == written["after"]
    others = llrnn(*arguments, "--lm-path", forward, "--weights", tmp_path / "best.weights.json", "--out", out)
    assert others.error.startswith(f"{tmp_path}/best.weights.json: expected weights of list, model, lm, words, found")


def test_hypotheses_that_a_model_cannot_score(
    llrnn: Llrnn, write: Write, forward: Path, reverse: Path, tmp_path: Path
) -> None:
    long = "le chat " * 6 + "voit"
    first, second = f"S-0\tneib\nH-0\t-1\t{long}\nH-0\t-2\tbien\n", f"S-1\tel {'x ' * 12}\nH-1\t-1\tle\nH-1\t-2\tbien\n"
    nbest = write("nbest", first + second)
    out, reranked = tmp_path / "best", tmp_path / "reranked"
    done = llrnn(
        "rescore", "--path", forward, "--reverse-path", reverse, "--nbest", nbest, "--out", out, "--nbest-out", reranked
    )
    assert done.code == 0
    assert done.err == (
        f"note: reverse: 3 of 4 hypotheses of {nbest} are longer than the model allows, or their source is; they count "
        "as -10,000 nats\n"
    )
    assert lines_of(out)[0] == "bien"
    penalties = [line for line in lines_of(reranked) if f"llrnn_reverse={-10_000 / math.log(2):.6f}" in line]
    assert len(penalties) == 3


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
            raise KeyboardInterrupt
        return score(self, *arguments)

    monkeypatch.setattr(Scorer, "score", stopped)
    out.write_text("what was there\n", encoding="utf-8")
    done = llrnn(*arguments, out)
    assert (done.code, done.err) == (130, "llrnn: interrupted\n")
    assert lines_of(out) == ["what was there"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "best.scores", "nbest", "whole"]

    other = llrnn("rescore", "--path", checkpoint, "--nbest", write("other", MOSES), "--out", out).error
    assert other.startswith(f"{out}.scores: holds the scores of a run that was stopped and had other inputs (list);")
    calls = 10
    done = llrnn(*arguments, out)
    assert done.err == f"note: goes on after 4 sentences of 16, whose scores {out}.scores holds\n"
    assert calls == 10 + 6
    assert out.read_bytes() == whole["whole"]
    assert (tmp_path / "reranked").read_bytes() == whole["reranked"]
    assert not (tmp_path / "best.scores").exists()


# ---- where data and prior are ---------------------------------------------------------------------------------------


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
    assert (here.code, here.err) == (0, "")
    expected = (tmp_path / "reranked").read_bytes()
    models = [*given, "--path", moved[0], "--reverse-path", moved[1], "--lm-path", moved[2]]
    for prefix, path, name, data, prior in (
        ("", moved[0], "dict.src.txt", translation.data, translation.data / "prior"),
        ("reverse-", moved[1], "dict.tgt.txt", translation.data, None),
        ("lm-", moved[2], "dict.txt", world.data, world.prior("prior")),
    ):
        assert without_places(llrnn(*models).error) == (
            f"{path} was trained with the data folder 'gone/data-bin', but there is no {name} in it seen from here; "
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
    assert (done.code, done.err, done.out) == (0, "", here.out)
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


# ---- what makes no sense --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--max-tokens", 0], "--max-tokens 0: expected a number of at least 1"),
        (["--seed", -1], "--seed -1: expected a number of at least 0"),
        (["--metric", "chrf", "--tokenize", "none"], "--tokenize none: belongs to --metric bleu; chrf counts"),
        (["--tune", "a", "b", "c", "--weights", "w"], "--tune and --weights: expected one of them; "),
        (["--source", "-"], "expected at most one input from stdin (`-`), found several; give files"),
        (["--nbest-out", "o"], "--out and --nbest-out: expected two places, found o for both"),
        (["--source", "o"], "o: expected another file for the result, found one that is read and would be lost"),
        (["--out", "absent/o"], "absent/o: expected a place in a folder, but there is no such folder; make it first"),
        (["--out", "/dev"], "/dev: expected a file to write or replace, found a folder or device; give another"),
        (["--reverse-data", "d"], "--reverse-data: belongs to --reverse-path, which is missing; give both or none"),
        (["--lm-prior", "d"], "--lm-prior: belongs to --lm-path, which is missing; give both or none"),
        (
            ["--reverse-expert", "mine.py:Mine"],
            "--reverse-expert: belongs to --reverse-path, which is missing; give both or none",
        ),
        (["--shard", "1/2", "--merge", "a"], "--shard and --merge: expected one of them; --merge comes when all"),
        (["--shard", "1/2", "--weights", "w"], "--weights: a shard is only scored; say it with --merge, when all"),
        (["--shard", "1/2", "--out", "-"], "--shard: expected a file for the scores as --out, found stdout"),
        (["--merge", "a", "o"], "o: expected another file for the result, found one that is read and would be lost"),
        (["--nbest-out", "/dev/null"], "/dev/null: expected a file to write or replace, found a folder or device;"),
    ],
)
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
        f"--reverse-path {forward}: expected a model of the other direction, found one from src to tgt, as --path; "
        "give one that was trained with source and target exchanged"
    )
    assert said(MOSES, "--path", forward) == (
        f"--path {forward}: a translation model needs the source, which {tmp_path}/nbest lacks; give --source FILE"
    )
    assert said(AS_JSON, "--path", tmp_path / "absent.pt").startswith(f"{tmp_path}/absent.pt: expected a checkpoint")
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
        f"{dev}: expected a total of every hypothesis, as {tmp_path}/nbest has, found none; give lists of the same "
        "system"
    )


def test_a_disk_without_room(
    llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr("fairseq_llrnn.cli.rescore.command.os.replace", full)
    done: Done = llrnn("rescore", "--path", checkpoint, "--nbest", write("nbest", MOSES), "--out", tmp_path / "best")
    assert done.error == (
        f"{tmp_path}/best: No space left on device; give --out and --nbest-out in folders that can be written to, on a "
        "disk with room; started again, it goes on from the scores so far"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best.scores", "nbest"]


def test_two_runs_at_once(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path) -> None:
    """The second one stops with one message, and changes nothing; the leftovers of a killed one go."""
    arguments = ("rescore", "--path", checkpoint, "--nbest", write("nbest", MOSES), "--out", tmp_path / "best")
    (tmp_path / temporary_name("best.rescore")).mkdir()
    with (tmp_path / "best.scores").open("wb") as other:
        assert lock(other.fileno())
        assert llrnn(*arguments).error == (
            f"{tmp_path}/best.scores: another `llrnn rescore` is writing its scores there; wait until it has ended, or "
            "give another --out"
        )
        assert sorted(p.name for p in tmp_path.iterdir()) == ["best.scores", "nbest"]
    assert llrnn(*arguments).code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "nbest"]
