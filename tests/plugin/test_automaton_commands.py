"""Training, resuming, scoring and generating with n-grams and with a grammar, through the commands of fairseq."""

import json
import math
import re
from pathlib import Path

import pytest
from shell import Shell, assert_says
from small_corpus import Llrnn
from tiny_grammar import grammar, hypotheses, in_the_language
from tiny_world import EVERY_SENTENCE, World, make_prior

BREAKING = ["--sample-break-mode", "eos", "--tokens-per-sample", "64"]


BACKGROUNDS = {"n-grams": "ngram:3", "grammar": "automaton:GRAMMAR"}


def prior_of(shell: Shell, world: World, data: Path, place: Path, kind: str) -> Path:
    (place / "grammar.txt").write_text(grammar(), encoding="utf-8")
    background = BACKGROUNDS[kind].replace("GRAMMAR", str(place / "grammar.txt"))
    text = ("--count-text", world.place / "train.txt")
    return make_prior(shell, world, data, place / "prior", "--background", background, *text)


def explained_words(shell: Shell, checkpoint: list[object], words: list[str]) -> list[dict[str, float]]:
    done = shell.run("llrnn", "explain", *checkpoint, "--json", " ".join(words))
    found: list[dict[str, float]] = json.loads(done.out)["words"]
    return found


@pytest.mark.parametrize("kind", BACKGROUNDS)
def test_a_language_model_from_its_prior_to_its_explanation(
    shell: Shell, as_typed: Llrnn, world: World, tmp_path: Path, kind: str
) -> None:
    prior = ["--prior", prior_of(shell, world, world.data, tmp_path, kind)]
    training = [*world.train_args(save_dir=tmp_path / "whole"), *prior, "--dropout", "0.1", "--max-epoch", 2]
    done = shell.run("fairseq-train", *training)
    straight = done.json_lines("valid")
    assert straight[-1]["valid_nats"] < (2.1 if kind == "grammar" else 2.6) < math.log(50), "with the background's help"

    checkpoint = ["--path", tmp_path / "whole" / "checkpoint_last.pt"]
    common = [*world.task_args(), *prior, *checkpoint, "--num-workers", 0]
    scored = shell.run("fairseq-eval-lm", *common, "--gen-subset", "valid", "--max-tokens", 70, *BREAKING)
    match = re.search(r"Loss \(base 2\): ([\d.]+)", scored.out)
    assert match is not None and float(match[1]) == pytest.approx(straight[-1]["valid_nats"] / math.log(2), abs=2e-3)

    searching = [*common, "--gen-subset", "test", "--batch-size", 5, *BREAKING, *EVERY_SENTENCE]
    searches = {
        "beam": ["--beam", 3, "--nbest", 2, "--prefix-size", 2, "--max-len-b", 5],
        "sampling": ["--sampling", "--beam", 2, "--nbest", 2, "--prefix-size", 1, "--max-len-b", 12],
        "long": ["--beam", 4, "--prefix-size", 2, "--max-len-b", 50, "--min-len", 9],
    }
    for name, options in searches.items():
        found = hypotheses(shell.run("fairseq-generate", *searching, *options))
        assert len(found) >= 16 and all(math.isfinite(score) for score, _ in found)
        if kind == "grammar":
            assert all(in_the_language(words) for _, words in found), name
    typed = shell.run("fairseq-interactive", *common, "--beam", 3, "--max-len-b", 8, stdin="le chat\n\nla\n")
    found = hypotheses(typed)  # of a line without words, too
    assert [words[0] for _, words in found][::2] == ["le", "la"] and len(found) == 3
    if kind == "grammar":
        assert all(in_the_language(words) for _, words in found)
        short = shell.run("fairseq-interactive", *common, "--max-len-b", 3, stdin="le chat\n", code=None)
        assert_says(short, "expected a complete string of at most 3 words, with the 2 of its prefix, that")

    line = world.text("valid")[0]
    explained = as_typed("explain", *checkpoint, "--json", line)
    words = [word for sentence in map(json.loads, explained.out.splitlines()) for word in sentence["words"]]
    assert all(math.isfinite(word["nats"]) for word in words)
    if kind == "grammar":
        cut = as_typed("explain", *checkpoint, f"{line.split()[0]} {line}")
        assert re.search(r"^note: word [12], '\w+', is forbidden at this position and no word can", cut.err, re.M)
    bits = json.loads(as_typed("score", *checkpoint, "--json", stdin=line + "\n").out)
    assert bits["sentences"] == 1
    if kind == "grammar":
        good, bad = line.split(), f"{line.split()[0]} {line}".split()
        text = f"{line}\n{' '.join(bad)}\n\n{line}\n"
        table = as_typed("score", *checkpoint, "--per-sentence", stdin=text)
        rows = [row.split("\t") for row in table.out.splitlines()[1:]]
        assert [row[6].split() for row in rows] == [good, bad, [], good]
        assert rows[0][1:] == rows[3][1:] and math.isfinite(float(rows[0][1]))
        place = next(i for i, word in enumerate(explained_words(shell, checkpoint, bad), 1) if word["p"] == 0)
        assert rows[1][1:3] == ["-inf", "inf"] and rows[1][5] == f"word {place}: {bad[place - 1]}"
        assert rows[2][1:3] == ["-inf", "inf"] and rows[2][5] == "word 1: </s>"
        assert "note: 2 lines without a score are not in the sums\n" in table.err
        assert re.search(r"^sentences +2$", table.err, re.M)
        stopped = as_typed("score", *checkpoint, stdin=text, code=2).err
        assert "line 2: expected words that the model allows, found" in stopped and "--per-sentence" in stopped
