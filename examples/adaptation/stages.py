"""The stages of the experiment. Each runs the commands of systems.py, logs them, and skips finished ones."""

import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from corpora import GENERAL, Corpora, Sentence, Sizes, share, shuffled
from example_parts.processes import run
from scores import token_log_probs
from systems import (
    FOR_LITTLE_TEXT,
    ORDER,
    PERCENTS,
    TRAINED,
    Place,
    System,
    general_training,
    prior,
    softmax_prior,
    training,
)

import fairseq_llrnn
from fairseq_llrnn.comparison.mixtures import loss
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.text_lines import is_blank
from fairseq_llrnn.ngrams.arpa import write_arpa
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import read_sentences

USER_DIR = str(Path(fairseq_llrnn.__file__).parent)
SEED = "adaptation"
FACTS, LOG_PROBS = "result.json", "log-probs.npz"


def write_json(path: Path, facts: Any) -> None:
    write_lines(path, [json.dumps(facts, ensure_ascii=False, indent=1)])


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


# ---- texts ----------------------------------------------------------------------------------------------------------


def prepare(place: Place, corpora: Corpora) -> None:
    """Write texts, their analyses, one dictionary, fairseq's data, the softmaxes' prior, and the general n-gram."""
    log = place.out / "prepare.log"
    folders = write_texts(place, corpora)
    dictionary = place.data("dictionary") / "dict.txt"
    if not dictionary.exists():
        threshold = ("--thresholdsrc", str(corpora.sizes.least_count), "--dict-only")
        _preprocess(place.data("dictionary"), ["--trainpref", str(place.text("all.train")), *threshold], log)
    for name, (train, valid, test) in folders.items():
        if not place.data(name).exists():
            files = {"--trainpref": train, "--validpref": valid, "--testpref": test}
            given = [word for option, text in files.items() if text for word in (option, str(place.text(text)))]
            _preprocess(place.data(name), ["--srcdict", str(dictionary), *given], log)
    if not place.prior("softmax").exists():
        run("llrnn", ["prior", *softmax_prior(place)], log)
    if not place.arpa.exists():
        words = load_dictionary(dictionary)
        write_arpa(place.arpa, estimate(read_sentences([place.text("general.train")], words), words, ORDER))
    write_json(place.out / "texts.json", describe(place, corpora))


def write_texts(place: Place, corpora: Corpora) -> dict[str, tuple[str, str, str | None]]:
    """Write the texts, and return the names of the training, validation and test text of each data folder."""
    folders: dict[str, tuple[str, str, str | None]] = {}
    everything: list[str] = []
    for name, splits in corpora.texts.items():
        train = shuffled(splits["train"], f"{SEED} {name} train")
        dev = shuffled(splits["dev"], f"{SEED} {name} dev")[: corpora.sizes.dev]
        write_lines(place.text(f"{name}.dev"), _lines(dev))
        everything += _lines(train)
        if name == GENERAL:
            _write_part(place, name, train)
            folders[name] = (f"{name}.train", f"{name}.dev", None)
            continue
        write_lines(place.text(f"{name}.test"), _lines(splits["test"]))
        for percent in PERCENTS:
            _write_part(place, f"{name}.{percent}", share(train, percent))
            folders[f"{name}.{percent}"] = (f"{name}.{percent}.train", f"{name}.dev", f"{name}.test")
    write_lines(place.text("all.train"), everything)
    return folders


def _write_part(place: Place, name: str, sentences: list[Sentence]) -> None:
    write_lines(place.text(f"{name}.train"), _lines(sentences))
    # treebanks have words that show nothing, such as a soft hyphen, which no lexicon takes
    analyses = dict.fromkeys("\t".join(word) for sentence in sentences for word in sentence if not is_blank(word.form))
    write_lines(place.lexicon(name), list(analyses))


def _lines(sentences: list[Sentence]) -> list[str]:
    return [" ".join(word.form.replace(" ", "_") for word in sentence) for sentence in sentences]


def _preprocess(folder: Path, arguments: list[str], log: Path) -> None:
    made = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(made, ignore_errors=True)
    run("fairseq-preprocess", ["--only-source", "--workers", "1", *arguments, "--destdir", str(made)], log)
    os.replace(made, folder)


def describe(place: Place, corpora: Corpora) -> dict[str, Any]:
    """Measure the sizes of the texts, and the fraction of their words that are <unk> to every model."""
    words = load_dictionary(place.data("dictionary") / "dict.txt")
    known = set(words.symbols)
    general = set(place.text("general.train").read_text(encoding="utf-8").split())
    found: dict[str, Any] = {"words": int((~words.specials).sum()), "texts": {}}
    parts = [f"{d}.{part}" for d in corpora.domains for part in (*(f"{p}.train" for p in PERCENTS), "dev", "test")]
    for name in ("general.train", "general.dev", *parts):
        lines = place.text(name).read_text(encoding="utf-8").splitlines()
        tokens = [token for line in lines for token in line.split()]
        found["texts"][name] = {
            "sentences": len(lines),
            "words": len(tokens),
            "unknown": sum(token not in known for token in tokens) / len(tokens),
            "not in the general text": sum(token in known and token not in general for token in tokens) / len(tokens),
        }
    return found


# ---- models ---------------------------------------------------------------------------------------------------------


def train_general(place: Place, sizes: Sizes, domains: list[str]) -> None:
    folder = place.model(GENERAL)
    if not (folder / "trained.json").exists():
        print("general model: training", flush=True)
        seconds = run("fairseq-train", general_training(place, sizes, USER_DIR), folder / "train.log")
        write_json(folder / "trained.json", {"seconds": seconds})
    for domain in domains:
        if not (folder / f"{domain}.{LOG_PROBS}").exists():
            _measure(place, place.general, domain, folder / f"{domain}.{LOG_PROBS}")


def trained(names: Sequence[str] | None) -> list[System]:
    """Return the systems of these names, or all that are trained. Raises OptionError."""
    known = {system.name: system for system in TRAINED}
    if unknown := sorted({*(names or ())} - {*known}):
        raise OptionError(f"--systems {unknown[0]}: expected some of {', '.join(known)}")
    return [known[name] for name in names or known]


def train_domain(place: Place, sizes: Sizes, domain: str, systems: Sequence[System]) -> None:
    """Train each system, with its recipes, on each part of the domain's text."""
    for percent in PERCENTS:
        for system in systems:
            for recipe in recipes(place, domain, percent, system):
                folder = place.model(f"{domain}.{percent}", f"{system.name}.{recipe}")
                if not (folder / FACTS).exists():
                    _train(place, sizes, domain, percent, system, recipe, folder)
            shutil.rmtree(place.prior(f"{domain}.{percent}.{system.name}"), ignore_errors=True)


def recipes(place: Place, domain: str, percent: int, system: System) -> list[str]:
    """Return all recipes of a system, or with the whole text the one that was best with less of it."""
    if percent < PERCENTS[-1] or len(PERCENTS) == 1:
        return list(system.recipes)
    folder = place.model(f"{domain}.{PERCENTS[-2]}")
    possible = [recipe for recipe in system.recipes if recipe not in FOR_LITTLE_TEXT]
    return [min(possible, key=lambda recipe: read_json(folder / f"{system.name}.{recipe}" / FACTS)["dev"])]


def _train(
    place: Place, sizes: Sizes, domain: str, percent: int, system: System, recipe: str, folder: Path
) -> None:
    log, checkpoint = folder / "train.log", folder / "checkpoint_best.pt"
    checkpoint.unlink(missing_ok=True)  # of a training that was stopped
    started = time.process_time()
    seconds = 0.0
    part = f"{domain}.{percent}"
    if system.background is not None and not place.prior(f"{part}.{system.name}").exists():
        seconds += run("llrnn", ["prior", *prior(system, domain, percent, place, sizes)], log)
    text = place.text(f"{part}.train").read_text(encoding="utf-8")
    arguments = training(system, recipe, domain, percent, place, sizes, USER_DIR, len(text.split()) + text.count("\n"))
    seconds += run("fairseq-train", arguments, log)
    dev, test = _measure(place, checkpoint, domain, folder / LOG_PROBS)
    checkpoint.unlink()
    seconds += time.process_time() - started
    write_json(folder / FACTS, {"dev": dev, "test": test, "seconds": seconds})
    print(f"{part:20} {system.name:12} {recipe:8} dev {dev:.3f}  test {test:.3f}  {seconds:5.0f} s", flush=True)


def _measure(place: Place, checkpoint: Path, domain: str, result: Path) -> tuple[float, float]:
    """Write log p of every token of the domain's dev and test text, and return the losses of both."""
    found = {split: token_log_probs(checkpoint, place.text(f"{domain}.{split}")) for split in ("dev", "test")}
    temporary = result.with_name(f".{result.name}")
    np.savez_compressed(temporary, **found)
    os.replace(temporary, result)
    return loss(found["dev"]), loss(found["test"])
