"""Train and score one model. The result is a file, so that a comparison that starts again skips it.

`result.json` has log p in nats of every token of the validation and test text, the number of tokens of each word, and
the seconds of a processor.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from fairseq_llrnn.comparison.models import PIECE_ORDERS, Job, ngrams, recipe_of, training_options
from fairseq_llrnn.comparison.pieces import Pieces
from fairseq_llrnn.comparison.processes import LOG
from fairseq_llrnn.comparison.settings import Comparison, FineTuning
from fairseq_llrnn.comparison.texts import SCORED, SPLITS, Texts
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.evaluation.texts import LineScore
from fairseq_llrnn.features.dictionary import EOS, UNK, load_dictionary
from fairseq_llrnn.files.atomic_write import whole_file, write_lines
from fairseq_llrnn.files.binary_text import write_binary_text
from fairseq_llrnn.lexicon.language_check import OTHER_LANGUAGE
from fairseq_llrnn.prior.building import build, build_prior

RESULT, LAST = "result.json", "checkpoint_last.pt"
EARLY_STOP = "early stop since valid performance"  # in the output of llrnn train
TRAIN_ERROR = re.compile(r"^llrnn train: error: (.+)$", re.MULTILINE)
DIGITS = 6  # of log p
STOPPED = 128  # a larger status is of a command that a signal stopped


class Networks(Protocol):
    """The module plugin/comparison.py, which needs fairseq."""

    def train(self, arguments: Sequence[str]) -> int: ...

    def scored_lines(self, checkpoint: str, lines: Sequence[str], is_open: bool) -> list[LineScore]: ...


def run_job(job: Job, texts: Texts, settings: Comparison, networks: Networks | None) -> None:
    """Build, train and score a model, and write its result. Raises LLRNNError, and KeyboardInterrupt for a stop."""
    began = time.process_time()
    place = settings.out / job.place
    place.mkdir(parents=True, exist_ok=True)
    is_resumed = (place / "model" / LAST).exists()
    result: dict[str, Any] = {"model": job.model, "setting": job.setting, "seed": job.seed}
    if isinstance(job.trial, FineTuning):
        result |= _fine_tuned(job.trial, job.seed, place / "model", texts, settings)
    else:
        result |= _built(job, place, texts, settings, networks)
    # a part of a resumed training was computed by another process
    result["seconds"] = None if is_resumed else round(time.process_time() - began, 1)
    result["max_epoch"] = settings.epochs
    with whole_file(place / RESULT) as file:
        json.dump(result, file)


def _built(job: Job, place: Path, texts: Texts, settings: Comparison, networks: Networks | None) -> dict[str, Any]:
    """Return the result of a model with a prior."""
    lines = _write_units(job, texts, place)
    data, prior = place / "data", place / "data" / "prior"
    built = build(str(data / "dict.txt"), recipe_of(job, place / "train.txt", texts, settings))
    built.prior.save(str(prior))
    if job.trial is None:
        scored = _prior_lines(prior, lines)
    else:
        assert networks is not None
        sizes = {split: [len(line.split()) + 1 for line in lines[split]] for split in SPLITS}
        longest, num_tokens = max(map(max, sizes.values())), sum(sizes["train"])
        save_dir = place / "model"
        arguments = [str(data), "--prior", str(prior), "--save-dir", str(save_dir)]
        status = networks.train([*arguments, *training_options(job, settings.epochs, longest, num_tokens)])
        if status > STOPPED:
            raise KeyboardInterrupt
        if status:
            errors = TRAIN_ERROR.findall((place / LOG).read_text(encoding="utf-8"))
            raise DataError(errors[-1] if errors else f"the training failed; see {place / LOG}")
        best = str(save_dir / "checkpoint_best.pt")
        is_open = job.size is None and not job.is_closed
        scored = {split: networks.scored_lines(best, lines[split], is_open) for split in SCORED}
    result: dict[str, Any] = {split: _log_probs(scored[split], job.size is not None) for split in SCORED}
    doubts = [remark for remark in built.notes if remark.endswith(OTHER_LANGUAGE)]
    result["warnings"] = [f"{built.notes[remark]:,} {remark}" for remark in doubts]
    if job.size is not None:
        result["num_pieces"] = Pieces(place / "pieces.model").size
        result["ngrams"] = {str(order): _piece_ngrams(place, lines, order) for order in PIECE_ORDERS}
    if job.trial is not None:
        result["is_converged"] = EARLY_STOP in (place / LOG).read_text(encoding="utf-8")
        if result["is_converged"]:  # else more epochs continue from it
            (place / "model" / LAST).unlink(missing_ok=True)
    return result


def _fine_tuned(trial: FineTuning, seed: int, out: Path, texts: Texts, settings: Comparison) -> dict[str, Any]:
    """Return the result of a pretrained network."""
    from fairseq_llrnn.huggingface import fine_tuning  # imports torch and transformers

    folder = settings.pretrained
    assert folder is not None
    facts = fine_tuning.fine_tune(folder, out, texts.train, texts.valid, trial.rate, seed, settings.epochs)
    scorer = fine_tuning.load_causal(out)
    fine_tuning.check_lines(scorer, texts.test, folder)
    result: dict[str, Any] = facts._asdict()
    for split in SCORED:
        lines = texts.lines(split)
        scored = [*scorer.lines(lines)]
        if any(len(score.words) != len(line.split()) for score, line in zip(scored, lines, strict=True)):
            raise DataError(f"{folder}: expected a tokenizer whose tokens end at blanks, found another; give another")
        result[split] = _log_probs(scored, is_pieces=False)
    return result


def is_finished(settings: Comparison, job: Job) -> bool:
    """Return whether a job has a result that more epochs cannot improve. Raises DataError as `read_result`."""
    result = read_result(settings.out, job)
    return result is not None and (result.get("is_converged", True) or result.get("max_epoch", 0) >= settings.epochs)


def read_result(out: Path, job: Job) -> dict[str, Any] | None:
    """Return the result of a job, or None if there is none. Raises DataError if the file is damaged."""
    path = out / job.place / RESULT
    if not path.exists():
        return None
    try:
        result = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise DataError(f"{path}: expected the result of a model, found something else; remove the file") from None
    return result


def _write_units(job: Job, texts: Texts, place: Path) -> dict[str, list[str]]:
    """Write the texts in the model's units, their dictionary and fairseq's data. Return the lines in these units."""
    data = place / "data"
    data.mkdir(exist_ok=True)
    lines = {split: list(texts.lines(split)) for split in SPLITS}
    write_lines(place / "train.txt", lines["train"])
    counts = Counter(word for line in lines["train"] for word in line.split())
    if job.size is not None:
        pieces = Pieces.train(place / "train.txt", place / "pieces.model", job.size, blank_last=True)
        counts = pieces.symbols(lines["train"])
        lines = {split: [pieces.write(line) for line in of_split] for split, of_split in lines.items()}
        write_lines(place / "train.txt", lines["train"])
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    if job.is_closed:
        others = {word for split in SCORED for line in lines[split] for word in line.split()}
        ranked += [(word, 0) for word in sorted(others - counts.keys())]
    write_lines(data / "dict.txt", (f"{symbol} {count}" for symbol, count in ranked))
    index = {symbol: number for number, symbol in enumerate(load_dictionary(data / "dict.txt").symbols)}
    for split in ("train", "valid"):
        ids = [[*(index.get(word, index[UNK]) for word in line.split()), index[EOS]] for line in lines[split]]
        write_binary_text(data / split, ids)
    write_lines(data / "valid", lines["valid"])  # which training prefers, for the spelling of unknown words
    return lines


def _prior_lines(prior: Path, lines: dict[str, list[str]]) -> dict[str, list[LineScore]]:
    """Return the held-out lines, scored by the background of a prior."""
    from fairseq_llrnn.evaluation.prior_scorer import PriorScorer  # imports torch
    from fairseq_llrnn.prior.prior import Prior

    scorer = PriorScorer(Prior.load(str(prior)))
    return {split: list(scorer.lines(lines[split], scorer.has_open_vocabulary)) for split in SCORED}


def _piece_ngrams(place: Path, lines: dict[str, list[str]], order: int) -> dict[str, list[list[float]]]:
    """Return log p in nats of each piece and end of the held-out texts, by Kneser-Ney n-grams over the pieces."""
    from fairseq_llrnn.prior.recipe import Recipe

    recipe = Recipe(text=str(place / "train.txt"), background=ngrams(order), top_words="all", workers=1)
    prior = place / f"ngrams-{order}"
    build_prior(str(place / "data" / "dict.txt"), recipe).save(str(prior))
    scored = _prior_lines(prior, lines)
    return {split: [_rounded(line.log_probs) for line in scored[split]] for split in SCORED}


def _log_probs(lines: Sequence[LineScore], is_pieces: bool) -> dict[str, list[list[Any]]]:
    """Return log p in nats of the tokens of each line, and the number of tokens of each word.

    Raises DataError for a line without probability.
    """
    tokens, sizes = [], []
    for line in lines:
        if not math.isfinite(line.log_prob) or (is_pieces and any(line.unknown)):
            raise DataError(f"line {line.number}: expected a probability of every string, found none of this sentence")
        tokens.append(_rounded([a + b for a, b in zip(line.log_probs, (*line.spelt, 0.0), strict=True)]))
        sizes.append(Pieces.sizes(line.words) if is_pieces else [1] * len(line.words))
    return {"tokens": tokens, "sizes": sizes}


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, DIGITS) for value in values]
