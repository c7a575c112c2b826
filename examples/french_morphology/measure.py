"""Measure a trained model, and return everything as one JSON object."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from agreement import read_pairs
from example_parts.mixtures import with_ngrams
from experiments import Model
from scoring import LanguageModel

import fairseq_llrnn
from fairseq_llrnn.comparison.mixtures import loss
from fairseq_llrnn.plugin.compat.loading import read_checkpoint
from fairseq_llrnn.prior.prior import Prior

SUBSETS = ("valid", "test1", "test2")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def versions() -> dict[str, str]:
    installed = {name: metadata.version(name) for name in ("torch", "fairseq-fixed", "numpy")}
    return {"fairseq-llrnn": fairseq_llrnn.__version__, "python": platform.python_version(), **installed}


def training(folder: Path) -> dict[str, Any]:
    """Return epochs, the best epoch, and seconds of the training."""
    last, best = (read_checkpoint(str(folder / f"checkpoint_{name}.pt")) for name in ("last", "best"))
    # A checkpoint at the end of an epoch already points to the beginning of the next one.
    epochs, best_epoch = (state["extra_state"]["train_iterator"]["epoch"] - 1 for state in (last, best))
    return {
        "epochs": epochs,
        "best_epoch": best_epoch,
        "train_seconds": round(last["extra_state"]["previous_training_time"]),
        "updates": last["optimizer_history"][-1]["num_updates"],
    }


def generated(model: Model, language_model: LanguageModel, out: Path) -> list[tuple[str, list[str]]]:
    """Return a sentence sampled from the model, each word with its features: the paper's Table 5."""
    if model.prior is None:
        return []
    side = Prior.load(model.prior.folder(out)).output
    index = language_model.dictionary.index
    return [(word, sorted(side.features.row(side.class_of[index(word)]))) for word in language_model.sample(model.seed)]


def sizes(model: Model, language_model: LanguageModel, out: Path) -> dict[str, int]:
    """Return trained values, words, output features (F) and signatures (S) of the output layer."""
    found = {"parameters": language_model.parameters(), "words": len(language_model.dictionary)}
    if model.prior is not None:
        prior = Prior.load(model.prior.folder(out))
        found |= {"features": prior.output.features.num_features, "signatures": prior.output.num_classes}
    return found


def asked(model: Model, out: Path) -> tuple[LanguageModel, dict[str, list[str]]]:
    """Return the trained model, and the lines to score."""
    torch.set_num_threads(1)
    prior = None if model.prior is None else model.prior.folder(out)
    language_model = LanguageModel(model.folder(out) / "checkpoint_best.pt", out / "data-bin", prior)
    return language_model, {
        subset: (out / "text" / f"{subset}.txt").read_text(encoding="utf-8").splitlines() for subset in SUBSETS
    }


def mixture(model: Model, ngrams: Mapping[int, Path], out: Path) -> dict[str, Any]:
    """Return losses (nats, ends included) of the model mixed with n-grams of these priors, and of the n-grams."""
    language_model, texts = asked(model, out)
    scores = {subset: torch.cat(language_model.scores(lines)).numpy() for subset, lines in texts.items()}
    words = {subset: [line.split() for line in lines] for subset, lines in texts.items()}
    found = with_ngrams(scores, words, ngrams)
    of_texts = {"loss": found.log_probs, "ngrams": found.ngrams}
    losses = {what: {subset: loss(one) for subset, one in texts.items()} for what, texts in of_texts.items()}
    return {"order": found.order, "weight": found.weight, **losses}


def measure(model: Model, out: Path) -> dict[str, Any]:
    """Return log-perplexities (nats), sizes and settings. Write the answers to the agreement pairs next to the
    checkpoint.
    """
    language_model, texts = asked(model, out)
    pairs = read_pairs(out / "pairs.jsonl")
    ratios = language_model.log_ratios([(pair.prefix, pair.right, pair.wrong) for pair in pairs])
    answers = {
        "pairs_sha256": sha256(out / "pairs.jsonl"),
        "log_ratios": [round(ratio, 5) for ratio in ratios],
    }
    temporary = model.folder(out) / "agreement.tmp"
    temporary.write_text(json.dumps(answers) + "\n", encoding="utf-8")
    os.replace(temporary, model.folder(out) / "agreement.json")
    return {
        "name": model.name,
        "what": model.what,
        "group": model.group,
        "mode": model.mode,
        "seed": model.seed,
        "loss": {subset: language_model.loss(lines)._asdict() for subset, lines in texts.items()},
        "sizes": sizes(model, language_model, out),
        "training": training(model.folder(out)),
        "generated": generated(model, language_model, out),
        "versions": versions(),
        "text_sha256": sha256(out / "text" / "all.txt"),
    }
