"""`llrnn explain`: the figures of fairseq-eval-lm, a readable table, and options that make no sense."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from shell import Shell, run_script, script
from small_corpus import Change, Done, Explain
from tiny_world import World, make_prior

from fairseq_llrnn.cli.explain.explained_text import LEGEND
from fairseq_llrnn.cli.tables import WIDTH, columns
from fairseq_llrnn.prior.prior import Prior

SENTENCE = "le chat vert voit la mer"


def objects(done: Done) -> list[dict[str, Any]]:
    """The JSON lines."""
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


# ---- the figures ----------------------------------------------------------------------------------------------------


def test_the_same_nats_as_fairseq_eval_lm(explain: Explain, shell: Shell, world: World, checkpoint: Path) -> None:
    evaluated = shell.run(
        "fairseq-eval-lm", *world.task_args(), "--path", checkpoint, "--gen-subset", "test1",
        "--sample-break-mode", "eos",
        "--max-tokens", 200,
    )  # fmt: skip
    base_2 = float((evaluated.out + evaluated.err).rpartition("Loss (base 2): ")[2].split(",")[0])
    lines = world.text("test1")
    sentences = objects(explain("--json", "-", stdin="\n".join(lines) + "\n"))
    assert [s["sentence"] for s in sentences] == lines
    tokens = sum(s["tokens"] for s in sentences)
    nats = sum(word["nats"] for s in sentences for word in s["words"])
    assert nats / tokens == pytest.approx(base_2 * math.log(2), abs=1e-3)


def test_the_parts_of_a_probability(explain: Explain, world: World) -> None:
    (sentence,) = objects(explain("--json", SENTENCE))
    assert [w["word"] for w in sentence["words"]] == [*SENTENCE.split(), "</s>"]
    prior = Prior.load(world.prior("prior"))
    for w in sentence["words"]:
        weight = prior.log_weights[prior.symbols.index(w["word"])]
        assert math.log(w["background"]) == pytest.approx(weight, abs=1e-4)
        assert math.log(w["p"]) == pytest.approx(
            math.log(w["background"]) + sum(w["features"].values()) + w["normaliser"], abs=1e-4
        )
        assert w["nats"] == pytest.approx(-math.log(w["p"]))
        signature = prior.output.class_of[prior.symbols.index(w["word"])]
        assert w["features"].keys() == prior.output.features.row(int(signature)).keys()
        assert len(w["predicted"]) == len(w["expected"]) == len(w["strongest"]) == len(w["strongest_words"]) == 5
        assert w["predicted"] == sorted(w["predicted"], key=lambda one: -one["p"])
        better = sum(one["p"] > w["p"] * 1.000001 for one in w["predicted"])
        assert w["rank"] == better + 1 if w["rank"] <= 5 else better == 5
    nats = sum(w["nats"] for w in sentence["words"])
    assert sentence["tokens"] == 7 and sentence["prior"].startswith("llrnn:")
    assert sentence["nats_per_word"] == pytest.approx(nats / 7)
    assert sentence["perplexity"] == pytest.approx(math.exp(nats / 7))


# ---- the table ------------------------------------------------------------------------------------------------------


def test_the_table(explain: Explain) -> None:
    done = explain("--top", 3, SENTENCE)
    assert (done.code, done.err) == (0, "") and done.out.endswith(f"\n\n{LEGEND}\n")
    lines = done.out.removesuffix(f"\n\n{LEGEND}\n").splitlines()
    assert lines[0].split() == ["word", "p", "nats", "rank", "background", "log", "p/b"]
    rows = [line.split() for line in lines[1:-2] if not line.startswith(" ")]
    assert [row[0] for row in rows] == [*SENTENCE.split(), "</s>"]
    (sentence,) = objects(explain("--json", "--top", 3, SENTENCE))
    for row, w in zip(rows, sentence["words"], strict=True):
        assert float(row[1]) == pytest.approx(w["p"], rel=0.006)
        assert float(row[2]) == pytest.approx(w["nats"], abs=6e-4)
        assert int(row[3].replace(",", "")) == w["rank"]
        assert float(row[5]) == pytest.approx(math.log(w["p"] / w["background"]), abs=6e-3)
    at = lines.index(next(line for line in lines if line.startswith("vert ")))
    labels = [line.split("  ")[1] for line in lines[at + 1 :] if line.startswith("  ") and line[2] != " "][:4]
    assert labels == ["predicted", "expected", "its features", "strongest"]
    assert " normaliser" in done.out
    assert "→" in done.out
    assert lines[-1] == (
        f"6 words and the end of sentence: {sentence['nats_per_word']:.4f} nats per word, "
        f"perplexity {sentence['perplexity']:,.2f}"
    )
    assert max(columns(line) for line in lines) <= WIDTH


def test_several_sentences_and_their_sum(explain: Explain) -> None:
    done = explain("le chat voit", "-", "la mer tient", stdin="un roi garde\nune rose perd")
    first_words = [line for line in done.out.splitlines() if line[:3] in ("le ", "un ", "une", "la ")]
    assert [line.split()[0] for line in first_words] == ["le", "un", "une", "la"]
    sentences = objects(explain("--json", "le chat voit", "un roi garde", "une rose perd", "la mer tient"))
    nats = sum(s["nats_per_word"] for s in sentences) / 4
    assert done.out.endswith(
        f"\nall 4 sentences: 12 words and 4 ends of sentence: {nats:.4f} nats per word, "
        f"perplexity {math.exp(nats):.2f}\n\n{LEGEND}\n"
    )


# ---- words ----------------------------------------------------------------------------------------------------------


def test_unknown_words_are_scored_as_unk_and_said(explain: Explain) -> None:
    done = explain("Le chaton voit le xylophone le xylophone")
    assert done.code == 0
    assert done.err.splitlines() == [
        "note: 'Le' is not in the dictionary and is scored as <unk>; did you mean 'le'?",
        "note: 'chaton' is not in the dictionary and is scored as <unk>; did you mean 'chat'?",
        "note: 'xylophone' is not in the dictionary and is scored as <unk>",
    ]
    assert "\nLe (<unk>) " in done.out
    (sentence,) = objects(explain("--json", "Le chat"))
    assert [(w["word"], w["token"]) for w in sentence["words"]] == [("Le", "<unk>"), ("chat", "chat"), ("</s>", "</s>")]


def test_what_is_no_sentence_is_said(explain: Explain, tmp_path: Path) -> None:
    (path := tmp_path / "my text").write_text("le chat\n", encoding="utf-8")
    file = f"note: {str(path)!r} is explained as a sentence; to explain the lines of this file, write - < {str(path)!r}"
    assert explain(path).err.splitlines()[0] == file
    folder = "a sentence, but it is also a folder; folders belong to --data and --prior"
    assert explain(tmp_path, "le chat").err.splitlines()[0] == f"note: {str(tmp_path)!r} is explained as {folder}"
    assert "folder" not in explain(".").err
    words = "note: 2 sentences of one word each; put quotes around each sentence\n"
    assert explain("le", "chat").err == words
    assert explain("le").err == explain("le chat", "la").err == ""


def test_escape_sequences_are_not_obeyed(explain: Explain) -> None:
    done = explain("le \x1b[31mchat")
    assert "\x1b" not in done.out + done.err
    assert "\\x1b[31mchat (<unk>)" in done.out


def test_a_word_that_the_background_forbids(explain: Explain, shell: Shell, world: World, changed: Change) -> None:
    weights = world.place / "without_mer.tsv"
    prior = Prior.load(world.prior("prior"))
    rows = [f"{w}\t1\n" for w, b in zip(prior.symbols, prior.log_weights, strict=True) if b > -math.inf and w != "mer"]
    weights.write_text("".join(rows), encoding="utf-8")
    out = world.place / "without_mer"
    make_prior(shell, world, world.data, out, "--background", weights)
    fingerprint = torch.tensor(list(bytes.fromhex(Prior.load(out).fingerprint)), dtype=torch.uint8)
    path = changed(lambda state: state["model"].update({"decoder.head.prior_fingerprint": fingerprint}))
    done = explain("--prior", out, SENTENCE, path=path)
    (row,) = (line.split() for line in done.out.splitlines() if line.startswith("mer "))
    possible = len(rows)
    assert row == ["mer", "0", "inf", str(possible + 1), "0", "forbidden"]
    assert done.out.endswith(f"inf nats per word, perplexity infinite\n\n{LEGEND}\n")
    (sentence,) = objects(explain("--json", "--prior", out, SENTENCE, path=path))
    mer = sentence["words"][5]
    assert (mer["p"], mer["nats"], mer["background"]) == (0.0, None, 0.0)
    assert (sentence["nats_per_word"], sentence["perplexity"]) == (None, None)


# ---- options that make no sense -------------------------------------------------------------------------------------


def test_an_empty_line_is_a_sentence_without_words(explain: Explain) -> None:
    """What comes out are as many sentences as went in."""
    sentences = objects(explain("--json", "-", stdin="le chat\n\n  \nla mer\n"))
    assert [s["sentence"] for s in sentences] == ["le chat", "", "", "la mer"]
    assert [[word["word"] for word in s["words"]] for s in sentences[1:3]] == [["</s>"]] * 2
    assert ": 4 words and 4 ends of sentence: " in explain("-", stdin="le chat\n\n\nla mer\n").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--top", 0, "le"], "--top 0: expected a number of at least 1"),
        (["--top", -2, "le"], "--top -2: expected a number of at least 1"),
        (["le chat", ""], "expected a sentence, found an empty one; write words separated by spaces"),
        (["le chat", "  \t"], "expected a sentence, found an empty one; write words separated by spaces"),
        ([], "expected a sentence, found none; write it in quotes, or `-` for sentences on stdin"),
        (["-"], "expected a sentence, found none on stdin; write one sentence per line"),
        (["--source", "el tahc", "le chat"],
         "--source needs a translation model, but {path} is a language model; remove --source"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(explain: Explain, checkpoint: Path, arguments: list[object], says: str) -> None:
    assert explain(*arguments).error == says.format(path=checkpoint)


def test_bytes_that_are_not_utf8(checkpoint: Path, quick_commands: dict[str, str]) -> None:
    """On stdin, where the sentence before is still explained; and as an argument."""
    bad = "$'le \\xe9t\\xe9'"
    done = run_script(
        "bash", "-c", f"printf 'le chat\\n%s\\n' {bad} | llrnn explain --path {checkpoint} -", code=2,
        variables=quick_commands,
    )  # fmt: skip
    assert "\nchat " in done.out
    assert done.err == (
        "llrnn: error: stdin, line 2, byte 4: expected UTF-8, found the byte 0xe9 (invalid continuation byte); convert "
        "the text to UTF-8\n"
    )
    command = f"llrnn explain --path {checkpoint} {bad}"
    done = run_script("bash", "-c", command, code=2, variables=quick_commands)
    assert (done.out, done.err) == (
        "",
        "llrnn: error: sentence 'le \\udce9t\\udce9': expected UTF-8, found other bytes; convert it to UTF-8\n",
    )


@pytest.mark.slow
def test_nothing_but_the_table_is_said(checkpoint: Path) -> None:
    """A real process: what fairseq logs when it is imported or loads a model stays out."""
    done = run_script(script("llrnn"), "explain", "--path", checkpoint, "le chat")
    assert done.err == ""
    assert done.out.startswith("word ")
