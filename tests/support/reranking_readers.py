"""Readers of systems/reranking (hostile_readers.py)."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hostile_readers import FACTS, FAIRSEQ, JSON_LINES, LEXICON, MOSES, SCORES, TEXT, Reader

from fairseq_llrnn.systems.reranking.agreement import read_roles
from fairseq_llrnn.systems.reranking.nbest import open_nbest
from fairseq_llrnn.systems.reranking.rescoring import open_job
from fairseq_llrnn.systems.reranking.score_cache import ScoreFile
from fairseq_llrnn.systems.reranking.tallies import read_facts
from fairseq_llrnn.systems.reranking.texts import count_words, read_texts
from fairseq_llrnn.systems.reranking.tuning import read_weights_file, write_weights


def _weights_json() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.json")
        write_weights(path, ["lm", "words"], np.array([0.5, -1.0]), {"metric": "bleu"})
        return path.read_bytes()


def _model_weights(path: Path) -> object:
    return read_weights_file(path, ["lm", "words"])


def _nbest(path: Path) -> list[object]:
    return list(open_nbest(path))


def _system(path: Path) -> object:
    reference = path.with_name("reference")
    reference.write_text("le chat\nla mer\n", encoding="utf-8")
    return read_texts(str(reference), str(reference), {"system": str(path)})


def _scores(path: Path) -> list[object]:
    file = ScoreFile(path, {"list": "ab"})
    try:
        return list(file)
    finally:
        file.close()


def _source_of_list(path: Path) -> list[object]:
    with tempfile.TemporaryDirectory() as folder:
        (nbest := Path(folder, "list")).write_text(MOSES, encoding="utf-8")
        return list(open_job(str(nbest), str(path), str(path)))


def of_reranking(text: Callable[..., Reader]) -> list[Reader]:
    """All of them; text: makes one of a text file."""
    return [
        text("text of a report", "text", lambda path: count_words(str(path)), TEXT),
        text("roles", "lexicon.tsv", lambda path: read_roles(str(path)), LEXICON),
        text("facts", "facts.jsonl", lambda path: read_facts(str(path), [["12", "verte"], ["mer"]]), FACTS),
        text("report", "system", _system, "le chat\nla mer\n", FAIRSEQ),
        text("n-best list", "nbest", _nbest, MOSES, JSON_LINES, FAIRSEQ),
        text("source of a list", "source", _source_of_list, "un\ndeux\n"),
        Reader("weights of models", "w.json", (_weights_json(),), _model_weights, counts=False),
        text("scores", "scores", _scores, SCORES, counts=False),
    ]
