"""`llrnn rescore` with real models: scores, ranks, tuning."""

import json
import math
import re
from pathlib import Path

import pytest
import sacrebleu
from nbest_lists import MOSES, Write, as_moses, but_counts, lines_of, noisy
from shell import Shell
from small_corpus import Llrnn
from translation_world import TranslationWorld

from fairseq_llrnn.plugin.scoring.explainer import load_explainer
from fairseq_llrnn.plugin.scoring.sentences import load_scorer

# ---- one language model ---------------------------------------------------------------------------------------------


def test_totals_and_ranks(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path) -> None:
    moses = MOSES.replace("LM= -5 ||| -1\n", "LM= -5 ||| -1.3\n")
    nbest, out, reranked = write("nbest", moses), tmp_path / "best", tmp_path / "reranked"
    done = llrnn("rescore", "--path", checkpoint, "--nbest", nbest, "--out", out, "--nbest-out", reranked)
    assert (done.code, but_counts(done.err)) == (0, "")
    loaded = load_explainer(str(checkpoint))
    for number, one in enumerate((moses.splitlines()[:3], moses.splitlines()[3:])):
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
        f"prior of model  {loaded.task.prior.signature}",
        "",
        "1 of 2 sentences with another best hypothesis than before",
    ]


def test_weights_of_features(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path) -> None:
    items = [{"text": text, "features": {"cost": len(text), "lm": 0.5}} for text in ("le roi", "la mer la", "un roi")]
    nbest = write("nbest", "".join(json.dumps({"id": n, "hypotheses": items[n:]}) + "\n" for n in range(3)))
    source, reference, out = write("source", "a\n" * 3), write("reference", "le roi\nun roi\nun roi\n"), tmp_path / "o"
    given = ["rescore", "--path", checkpoint, "--source", source, "--nbest", nbest, "--out", out, "--features", "cost"]
    done = llrnn(*given, "cost", "--nbest-out", tmp_path / "n", "--tune", source, nbest, reference)
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines()[1:4]] == ["model", "list.cost", "words"]
    features = json.loads(lines_of(tmp_path / "n")[0])["hypotheses"][0]["features"]
    assert list(features) == ["cost", "lm", "llrnn_model"]
    weights = json.loads((tmp_path / "o.weights.json").read_text(encoding="utf-8"))["weights"]
    assert list(weights) == ["model", "list.cost", "words"]
    said = llrnn(*given[:-1], "costs").error
    assert said == f"--features costs: expected features of {nbest}, found cost, lm; did you mean 'cost'?"
    plain = write("plain", "H-0\t-1\ta\nH-1\t-1\ta\nH-2\t-1\ta\n")
    said = llrnn(*given, "--tune", source, plain, reference).error
    advice = "give another name, or a list with it"
    assert said == f"--features cost: expected features of {plain}, found none; {advice}"


def test_stdin_and_stdout(shell: Shell, checkpoint: Path, tmp_path: Path) -> None:
    shell.run("llrnn", "export", checkpoint, tmp_path / "model")
    done = shell.run("llrnn", "rescore", "--path", tmp_path / "model", "--nbest", "-", "--out", "-", stdin=MOSES)
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
    assert but_counts(done.err).splitlines() == [
        f"note: {nbest}: 1 sentences out of order, sorted by their numbers",
        f"note: {nbest}: 4 sentences have no hypotheses; the best ones are empty lines there",
    ]
    assert lines_of(out) == ["", "le roi", "", "", ""]
    assert [json.loads(line)["id"] for line in lines_of(reranked)] == [1, 3]
    assert done.out.endswith("\n0 of 5 sentences with another best hypothesis than before\n")


def test_marks_of_decoders_change_no_score(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path) -> None:
    out, reranked = tmp_path / "best", tmp_path / "reranked"
    marked = {
        "plain": MOSES.replace("zzz", "bien"),
        "untranslated": MOSES.replace("zzz", "bien|UNK|UNK|UNK"),
        "factors": re.sub(r"(?<=[ a-z])([a-z]+)(?= )", r"\1|\1|X", MOSES.replace("zzz", "bien")),
    }
    written, notes = {}, {}
    for name, text in marked.items():
        nbest = write(name, text)
        done = llrnn("rescore", "--path", checkpoint, "--nbest", nbest, "--out", out, "--nbest-out", reranked)
        assert done.code == 0
        written[name], notes[name] = (lines_of(out), lines_of(reranked)), but_counts(done.err)
    assert written["plain"] == written["untranslated"] == written["factors"]
    removed = "which are removed; <UNK> is read as <unk>"
    assert notes == {
        "plain": "",
        "untranslated": f"note: {tmp_path / 'untranslated'}: 1 hypotheses with marks of a decoder (such as |0-1|, "
        f"|UNK, </s>), {removed} (the first in line 4)\n",
        "factors": f"note: {tmp_path / 'factors'}: 5 hypotheses with factors (word|FACTOR): only the first one is "
        "read, which should be the word (the first in line 1)\n",
    }


def test_tags_in_a_source(llrnn: Llrnn, write: Write, checkpoint: Path, tmp_path: Path) -> None:
    source = write("source", 'a cat\nsees <n translation="la mer">the sea</n>\n')
    done = llrnn(
        "rescore", "--path", checkpoint, "--nbest", write("nbest", MOSES), "--source", source, "--out", tmp_path / "o"
    )
    assert f"note: {source}: 1 sentences with XML tags, read as words; remove them (the first in line 2)\n" in done.err


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
    assert (done.code, but_counts(done.err)) == (0, "")
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
    assert (done.code, but_counts(done.err)) == (0, "")
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
    assert f"\nprior of model  {written['priors']['model']}\n" in done.out
    assert re.fullmatch(r"llrnn:\d.*\|prior:[0-9a-f]{8}", written["priors"]["model"])
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
    assert but_counts(done.err) == (
        f"note: reverse: 3 of 4 hypotheses of {nbest} are longer than the model allows, or their source is; they count "
        "as -10,000 nats\n"
    )
    assert lines_of(out)[0] == "bien"
    penalties = [line for line in lines_of(reranked) if f"llrnn_reverse={-10_000 / math.log(2):.6f}" in line]
    assert len(penalties) == 3
