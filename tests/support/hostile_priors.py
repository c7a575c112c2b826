"""Priors of every kind, damaged in ways that their hashes do not show, and used where they are accepted.

An attacker can write a hash that fits. So the arrays and the JSON are changed first (mutations.py), and the hashes then
made to fit; some damage is done to the bytes of a file, too.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_targets import Target, check_said
from hostile_readers import FST, SYMBOLS, TEXT, words
from mutations import mutate, mutate_arrays, mutate_json

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.cli.show.command import PriorView
from fairseq_llrnn.cli.show.shown_text import summary_text
from fairseq_llrnn.errors import LLRNNError
from fairseq_llrnn.features.dictionary import hash_symbols
from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.lexicon.languages.language_source import Finding
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import build, build_prior
from fairseq_llrnn.prior.model_files import LoadModel
from fairseq_llrnn.prior.parts.languages import LanguagesPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, OpenOptions, Recipe, TranslationOptions

LEXICON = {"le": ["POS:DET", "Gender:Masc"], "la": ["POS:DET", "Gender:Fem"], "chat": ["POS:NOUN"], "mer": ["POS:NOUN"]}


class WrongProbabilitiesError(Exception):
    """A damaged prior was accepted and gives probabilities that are none."""


def make_priors(folder: Path) -> dict[str, Path]:
    """A small prior of every kind, by name; all of one dictionary."""
    text, automaton, lexicon = folder / "text", folder / "a.txt", folder / "lexicon.tsv"
    lexicon.write_text("chat\tchat\tNOUN\t_\nchats\tchat\tNOUN\t_\n", encoding="utf-8")
    text.write_text(TEXT, encoding="utf-8")
    automaton.write_text(FST, encoding="utf-8")
    parallel = ParallelText.read(text, text, SYMBOLS, SYMBOLS)
    base = Recipe(text=text, top_words=3, suffixes=2, shapes=True, words=LexiconOptions(lexicon=LEXICON))
    translations = TranslationOptions(parallel, learned=True, aligner="ibm1")
    evidence = EvidenceOptions(("numbers", "names", "copies"), {"x": ["le", "chat"]}, unsupported={"numbers": 0.1})
    kinds = {
        "static": base,
        "separate": replace(base, input_features=("POS",), input_top_words=5),
        "softmax": Recipe.softmax(),
        "two unigrams": replace(
            base, background="unigram plus uniform", words=LexiconOptions(lexicon=LEXICON, guess="on")
        ),
        "ngram": replace(base, background="ngram:3"),
        "automaton": replace(base, background=f"automaton({automaton}, on_zero=skip)"),
        "cache": replace(base, background="cache:5"),
        "combined": replace(base, background="0.7 ngram:2 plus 0.3 cache:4 with weights per position"),
        "product": replace(base, background=f"ngram:2 times automaton({automaton}, on_zero=skip) at temperature 2"),
        "lexical": replace(base, translations=translations),
        "lexical between lemmas": replace(
            base,
            words=LexiconOptions(lexicon=lexicon),
            translations=replace(translations, units="lemma", form_power=0.5),
        ),
        "ngram and lexical": replace(base, background="ngram:2", translations=translations),
        "evidence": replace(base, evidence=evidence, source_dictionary=SYMBOLS),
        "evidence and lexical": replace(base, evidence=evidence, translations=translations),
        "open": replace(base, open_vocabulary=OpenOptions(floor=2, types=1)),
        "neural": replace(base, open_vocabulary=OpenOptions("neural", floor=2, types=1)),
    }
    places = {}
    for name, options in kinds.items():
        places[name] = folder / name
        build(words(), options).prior.save(places[name])
    pieces = ("<s>", "<pad>", "</s>", "<unk>", "▁le", "▁chat", "s", "▁mer")
    places["pieces"] = folder / "pieces"
    build_prior(pieces, Recipe(pieces="sentencepiece", shapes=True, top_words=2)).save(places["pieces"])
    (folder / "pieces.txt").write_text("▁le ▁chat s\n▁mer s ▁le\n", encoding="utf-8")
    of_pieces = ParallelText.read(folder / "pieces.txt", folder / "pieces.txt", pieces, pieces)
    options = Recipe(
        pieces="sentencepiece", shapes=True, top_words="all", evidence=evidence,
        translations=TranslationOptions(of_pieces, aligner="ibm1"),
    )  # fmt: skip
    places["evidence of pieces"] = folder / "evidence of pieces"
    build_prior(pieces, options).save(places["evidence of pieces"])
    found = Finding("simplemma", "fr", "2.0.0", "lemmas", "MIT; data: ODbL", 3, 5, 0.5)
    places["languages"] = folder / "languages"
    build(words(), base).prior.with_part(LanguagesPart((found,))).save(places["languages"])
    return places


def damage(prior: Path, place: Path, rng: random.Random) -> None:
    """A damaged copy of a prior, most often with hashes that fit."""
    shutil.copytree(prior, place)
    damage_in_place(place, rng)


def damage_in_place(place: Path, rng: random.Random) -> None:
    """Damage the prior of a folder."""
    if rng.random() < 0.1:
        path = rng.choice(sorted(path for path in place.rglob("*") if path.is_file()))
        path.write_bytes(mutate(path.read_bytes(), rng))
        return
    description = json.loads((place / "prior.json").read_text(encoding="utf-8"))
    if rng.random() < 0.1:
        name, entry = rng.choice((("dictionary.txt", "dictionary_sha256"), ("source.txt", "source_dictionary_sha256")))
        if (place / name).exists():
            symbols = damaged_words((place / name).read_text(encoding="utf-8").splitlines(), rng)
            (place / name).write_text("\n".join(symbols) + "\n", encoding="utf-8")
            description[entry] = hash_symbols(symbols)
    elif rng.random() < 0.4:
        description = mutate_json(description, rng)
    else:
        with np.load(place / "arrays.npz", allow_pickle=False) as stored:
            arrays = mutate_arrays({name: stored[name] for name in stored.files}, rng)
        packed = io.BytesIO()
        if rng.random() < 0.02:
            np.savez_compressed(packed, **arrays)
        else:
            np.savez(packed, **arrays)
        (place / "arrays.npz").write_bytes(packed.getvalue())
        description["arrays_sha256"] = hashlib.sha256(packed.getvalue()).hexdigest()
    (place / "prior.json").write_text(json.dumps(description), encoding="utf-8")


def damaged_words(symbols: list[str], rng: random.Random) -> list[str]:
    """Words that are changed, left out, doubled, added or exchanged; the special symbols more often than others."""
    symbols = list(symbols)
    for _ in range(rng.choice((1, 1, 1, 3))):
        place, other = (rng.randrange(rng.choice((4, len(symbols)))) for _ in range(2))
        change = rng.randrange(5)
        if change == 0:
            symbols[place] = rng.choice(("", "</S>", "x" * 10_000, "\u00a0", symbols[other]))
        elif change == 1 and len(symbols) > 5:
            del symbols[place]
        elif change == 2:
            symbols.insert(place, symbols[other])
        elif change == 3:
            symbols += [f"autre{number}" for number in range(rng.choice((1, 100)))]
        else:
            symbols[place], symbols[other] = symbols[other], symbols[place]
    return symbols


def use(place: Path, load_model: LoadModel | None = None) -> str:
    """Read a prior and compute with it, on random sentences.

    Args:
        load_model: as Prior.load.

    Returns: "accepted", or "refused" where its user would get a message.

    Raises: whatever is no LLRNNError; WrongProbabilitiesError.
    """
    try:
        prior = Prior.load(place, load_model)
        _compute(prior)
        summary_text({"prior": str(place), **PriorView(prior).summary()})  # of `llrnn show`
    except LLRNNError as error:
        check_said(str(error))
        return "refused"
    return "accepted"


def _compute(prior: Prior) -> None:
    torch.manual_seed(1)
    head = LogLinearHead(prior, hidden_size=4, embedding=FeatureInput(3))
    generator = torch.Generator().manual_seed(1)
    previous = torch.randint(4, len(prior.symbols), (2, 4), generator=generator)
    previous[:, 0] = 2
    hidden = torch.randn(2, 4, 4, generator=generator)
    asked: dict[str, Any] = {"previous": previous}
    if prior.source_symbols:
        asked["source"] = torch.randint(4, len(prior.source_symbols), (2, 3), generator=generator)
    with torch.no_grad():
        log_p = head.log_probs(hidden, **asked)
        if bool(torch.isnan(log_p).any()):
            raise WrongProbabilitiesError("NaN among the log-probabilities")
        total = log_p.double().exp().sum(-1)[~after_forbidden(log_p, previous)]
        if bool(((total - 1).abs() > 1e-3).any()):
            worst = total.reshape(-1)[(total - 1).abs().argmax()].item()
            raise WrongProbabilitiesError(f"probabilities of a position sum to {worst}")
    head.embed(previous)


def after_forbidden(log_probs: torch.Tensor, previous: torch.Tensor) -> torch.Tensor:
    """Whether a word before each position has no probability: (B, T, V), (B, T) -> (B, T)."""
    of_words = log_probs[:, :-1].gather(2, previous[:, 1:].unsqueeze(2)).squeeze(2)
    return torch.nn.functional.pad(of_words.isneginf().cumsum(1) > 0, (1, 0))


def prior_targets(priors: dict[str, Path]) -> dict[str, Target]:
    """By kind: damage a copy at a place, and use it."""

    def one(prior: Path) -> Target:
        def run(place: Path, rng: random.Random) -> str:
            damage(prior, place, rng)
            return use(place)

        return run

    return {f"prior: {name}": one(place) for name, place in priors.items()}
