"""Command lines of fairseq-train for a model of every kind: each background, and all that may stand beside one."""

from collections.abc import Sequence
from pathlib import Path

from evidence_world import EvidenceWorld
from expert_models import options as experts
from shell import Shell
from tiny_grammar import grammar
from tiny_world import TRAINING, World
from translation_world import TranslationWorld

from fairseq_llrnn.registry import lost

SMALL = ["--max-tokens", "60", "--dropout", "0.1"]
TRANSFORMER = [
    "--arch", "llrnn_transformer_lm", "--decoder-embed-dim", "16", "--decoder-ffn-embed-dim", "24",
    "--decoder-layers", "2", "--decoder-attention-heads", "4",
]  # fmt: skip
CHARACTERS = ["--input-characters", "cnn", "--character-filters", "1:3,3:5", "--character-mode", "add"]
LEARNED = "learned tree"


def language_models(shell: Shell, world: World, trained: Path, place: Path) -> dict[str, Sequence[object]]:
    (place / "grammar.txt").write_text(grammar(), encoding="utf-8")
    backgrounds = {
        "unigram": [],
        "ngram(3, folds=2)": [],
        "automaton:grammar.txt": [],
        "cache(20, learned)": [],
        f"model:{trained}/checkpoint_last.pt": [],
        "0.7 ngram:2 plus 0.3 cache:20 with weights learned": [],
        "ngram:2 plus uniform with weights per position": [],
        "unigram plus cache:9": ["--open-vocabulary", "characters"],
    }
    lines: dict[str, Sequence[object]] = {}
    for number, (background, options) in enumerate(backgrounds.items()):
        prior = place / f"prior{number}"
        shell.run(
            "llrnn", "prior", "--dict", world.data / "dict.txt", "--lexicon", world.place / "lexicon.tsv",
            "--top-words", 9, "--count-text", world.place / "train.txt", "--background", background, *options,
            "--out", prior, cwd=place,
        )  # fmt: skip
        lines[background] = [*world.train_args(), *SMALL, "--prior", prior]
    lines["sampled"] = [*world.train_args(), *SMALL, "--sampled-classes", 10]
    lines["transformer"] = [*world.task_args(), *TRANSFORMER, *TRAINING, *SMALL, "--no-save"]
    lines["characters"] = [*world.train_args(), *SMALL, *CHARACTERS]
    tree = ["--output-tree", "learned", "--tree-arity", 3, "--tree-reassign", 1000000]  # changes after every update
    lines[LEARNED] = [*world.train_args(), *SMALL, *tree]
    lines["temperature"] = [*lines["ngram(3, folds=2)"], "--learn-background-temperature", "--adaptor-penalty", 0.01]
    return those_that_are_there(lines)


def those_that_are_there(lines: dict[str, Sequence[object]]) -> dict[str, Sequence[object]]:
    """Those without an option of a system whose folder was deleted."""
    return {name: line for name, line in lines.items() if not any(lost(str(word)) for word in line)}


def translations(
    translation: TranslationWorld, evidence: EvidenceWorld, expert_file: Path
) -> dict[str, Sequence[object]]:
    lines: dict[str, Sequence[object]] = {
        "lexical": [*translation.train_args("llrnn_transformer", "lexical"), *SMALL],
        "experts": [*translation.train_args(), *SMALL, *experts(expert_file, "Mirror", "Said")],
        "evidence": [*evidence.train_args("llrnn_lstm", "static"), *SMALL],
        "evidence and translations": [*evidence.train_args("llrnn_transformer", "lexical"), *SMALL],
    }
    return those_that_are_there(lines)
