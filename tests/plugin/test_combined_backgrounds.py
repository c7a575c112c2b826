"""Combined backgrounds from `llrnn prior` to beam search: grammar × n-grams, mixtures, translations, evidence."""

from pathlib import Path

import pytest
from shell import Shell
from tiny_grammar import grammar, hypotheses, in_the_language
from tiny_world import World

from fairseq_llrnn.prior import Prior

MOST_BITS = 7.0  # more bits a word than any of these models needs; infinite where a word became impossible

ONCE = ["--max-epoch", 1]
MODELS = [
    ("automaton:grammar.txt times ngram(2, folds=3)", []),
    ("0.7 ngram:3 plus 0.3 cache(20, learned) with weights learned", []),
    ("(ngram:2 plus uniform with weights per position) at temperature 1.5", []),
    ("unigram plus cache:10", ["--open-vocabulary", "characters"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("background", "options"), MODELS)
def test_language_models(shell: Shell, world: World, tmp_path: Path, background: str, options: list[str]) -> None:
    (tmp_path / "grammar.txt").write_text(grammar(), encoding="utf-8")
    shell.run(
        "llrnn", "prior", "--dict", world.data / "dict.txt", "--lexicon", world.place / "lexicon.tsv", "--top-words", 9,
        "--count-text", world.place / "train.txt", "--background", background, *options, "--out", tmp_path / "prior",
        cwd=tmp_path,
    )  # fmt: skip
    assert str(Prior.load(tmp_path / "prior").expression) == background
    given = ["--prior", tmp_path / "prior"]
    done = shell.run("fairseq-train", *world.train_args(save_dir=tmp_path), *given, *ONCE)
    (valid,) = done.json_lines("valid")
    assert valid["valid_loss"] < MOST_BITS
    model = ["--path", tmp_path / "checkpoint_last.pt", "--sample-break-mode", "eos"]
    done = shell.run(
        "fairseq-generate", *world.task_args(), *given, *model, "--gen-subset", "test", "--beam", 3, "--max-len-b", 20,
        "--prefix-size", 1,
    )  # fmt: skip
    found = hypotheses(done)
    assert len(found) == len(world.text("test"))
    if "automaton" in background:
        assert all(in_the_language(words) for _, words in found)
    if background == MODELS[0][0]:
        scored = shell.run("fairseq-eval-lm", *world.task_args(), *given, *model, "--gen-subset", "valid")
        assert "Perplexity" in scored.err + scored.out
