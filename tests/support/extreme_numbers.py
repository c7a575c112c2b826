"""Extreme numbers for every numeric setting of every background: refused in one line, or probabilities sum to one.

Four kinds of places have numbers: options, the files that they name, files of priors, and parameters of checkpoints.
Those of options are listed in OPTIONS, which `numeric_settings` compares with the options' own fields; those of files
are found in the sound ones of FILES, those of priors and checkpoints in what small ones hold (hostile_priors.py).
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import math
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import torch
from fuzz_targets import Target, check_said
from hostile_priors import WrongProbabilitiesError, after_forbidden
from hostile_readers import FST, SYMBOLS, TEXT, readers, words

from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.backgrounds.language_model import NextWords
from fairseq_llrnn.errors import LLRNNError
from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.output.learned_temperature import learned_temperature
from fairseq_llrnn.prior import expression
from fairseq_llrnn.prior.building import build
from fairseq_llrnn.prior.model_files import LoadModel, ModelFiles
from fairseq_llrnn.prior.named_backgrounds import named_backgrounds
from fairseq_llrnn.prior.part import PriorView
from fairseq_llrnn.prior.parts.automaton_part import AutomatonOptions, NgramOptions
from fairseq_llrnn.prior.parts.cache import CacheOptions
from fairseq_llrnn.prior.parts.model import ModelOptions, ModelPart
from fairseq_llrnn.prior.parts.static import UnigramOptions
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import EvidenceOptions, OpenOptions, Recipe, TranslationOptions

TOLERANCE = 1e-5
NUMBERS = (
    *(0.0, -0.0, 5e-324, 1e-300, 1e-100, 1e-45, 1e-38, 1e-20, 1e-10, 1e-6, 1e-5, 3e-5, 1e-3, 0.01, 0.0101, 0.1, 0.5),
    *(0.999, 1 - 1e-6, 1 - 1e-9, 1 - 2**-53, 1.0, 1 + 2**-52, 2.0, 10.0, 99.9, 100.0, 1e3, 1e4, 1e5, 9.9e5, 1e6, 1e7),
    *(1e10, 1e20, 3e38, 1e39, 1e100, 1e300, 1.7e308, math.inf, -math.inf, math.nan, -1.0, -100.0, -1e4, -1e6, -1e30),
)


def number(rng: random.Random) -> float:
    """One of NUMBERS, or of any size."""
    if rng.random() < 0.6:
        return rng.choice(NUMBERS)
    return rng.choice((1, 1, 1, -1)) * 10 ** rng.uniform(*rng.choice(((-300, 300), (-10, 10), (-3, 3))))


# ---- what probabilities must be -------------------------------------------------------------------------------------


def check_sums(head: LogLinearHead) -> None:
    """Raise WrongProbabilitiesError where p of a batch, of a loss or in a search does not sum to one, or a gradient is
    not finite."""
    prior, generator = head.prior, torch.Generator().manual_seed(1)
    size = len(prior.symbols)
    columns: dict[str, Any] = {}
    previous = torch.randint(4, size, (2, 4), generator=generator)
    previous[:, 0] = 2
    hidden = torch.randn(2, 4, head.hidden_size, generator=generator)
    if prior.source_symbols:
        source = torch.randint(4, len(prior.source_symbols), (2, 3), generator=generator)
        columns = {"source": source, "source_states": torch.randn(2, 3, 4, generator=generator)}
    head.eval()
    with torch.no_grad():
        log_probs = head.log_probs(hidden, previous=previous, **columns)
        may_go_on = ~after_forbidden(log_probs, previous)  # a grammar has no word after one that it forbids
        _sum_to_one("of a batch", log_probs[may_go_on])
        state = head.start(2, **columns)
        best, tokens = head.top_k(hidden[:, 0], state, log_probs.size(-1))
        _sum_to_one("of a search", best)
        stepped = head.step(hidden[:, 1], head.advance(state, previous[:, 1])).word_log_probs()
        _sum_to_one("of a step", stepped[may_go_on[:, 1]])
    every = sorted(set(tokens[0].tolist()))  # the words of the first sentence, and the strings of its slots
    where = {name: value[:1] for name, value in columns.items()}
    losses = []
    for token in every:
        with torch.no_grad():
            condition = head.bind(previous[:1], where.get("source"))
            batch = head.batch(hidden[:1], condition, where.get("source_states"))
            losses.append(head.target_log_probs(batch, torch.full((1, 4), token)))
    _sum_to_one("of a loss", torch.stack(losses, dim=-1)[:, :1])
    head.train()
    targets = log_probs[..., 4:size].argmax(-1) + 4
    log_prob = head.target_log_probs(
        head.batch(hidden, head.bind(previous, columns.get("source")), columns.get("source_states")), targets
    )
    loss = -log_prob[log_prob.isfinite()].sum()
    parameters = [parameter for parameter in head.parameters() if parameter.requires_grad]
    if loss.requires_grad:
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        if not all(bool(gradient.isfinite().all()) for gradient in found if gradient is not None):
            raise WrongProbabilitiesError("a gradient that is not finite")


def _sum_to_one(where: str, log_probs: torch.Tensor) -> None:
    total = log_probs.double().exp().sum(-1)
    if not bool(((total - 1).abs() <= TOLERANCE).all()):  # NaN is not
        raise WrongProbabilitiesError(f"probabilities {where} sum to {total.flatten().tolist()}")


def heads(prior: Prior) -> Iterator[LogLinearHead]:
    """Every way to compute with it: exactly, with a temperature that is learned, with a tree."""
    sizes: dict[str, Any] = {"source_size": 4} if prior.source_symbols else {}
    ways: list[dict[str, Any]] = [{}, {"mass_change": learned_temperature}]
    if importlib.util.find_spec("llrnn_research") is not None:
        from llrnn_research.output_trees.output_tree import OutputTree, TreeOptions

        ways.append({"normaliser": OutputTree(TreeOptions("huffman"))})
    for more in ways:
        torch.manual_seed(1)
        try:
            yield LogLinearHead(prior, 4, **sizes, **more)
        except LLRNNError:
            if not more:
                raise


def summed_or_refused(make: Callable[[], Iterator[LogLinearHead]]) -> str:
    """ "accepted" or "refused". Raises WrongProbabilitiesError, and whatever is no LLRNNError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            for head in make():
                check_sums(head)
    except LLRNNError as error:
        check_said(str(error))
        return "refused"
    return "accepted"


# ---- another model --------------------------------------------------------------------------------------------------


def load_model(files: ModelFiles, symbols: Sequence[str], allowed: np.ndarray) -> NextWords:
    """One whose probabilities differ much, whatever the files are."""
    logits = torch.linspace(-9.0, 9.0, len(symbols)).masked_fill(~torch.from_numpy(allowed), -math.inf)

    def next_words(previous: torch.Tensor, last: bool) -> torch.Tensor:
        turned = logits * (1 - 2 * (previous % 2)).unsqueeze(-1)
        turned = turned.masked_fill(~torch.from_numpy(allowed), -math.inf).log_softmax(-1)
        return turned[:, -1:] if last else turned

    return next_words


def open_model(checkpoint: str, prior: PriorView, options: ModelOptions) -> tuple[ModelPart, Mapping[str, int]]:
    """As of `llrnn prior`."""
    files = ModelFiles.of(Path(checkpoint), Path(checkpoint), None, options.weight, options.temperature)
    return ModelPart(files, load_model), {}


# ---- numbers of options ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Base:
    """What the options of a case begin with."""

    options: Recipe
    translations: TranslationOptions
    automaton: Path

    @classmethod
    def at(cls, folder: Path) -> Base:
        text, automaton = folder / "text", folder / "a.txt"
        lemmas = folder / "lemmas.tsv"
        text.write_text(TEXT, encoding="utf-8")
        automaton.write_text(FST, encoding="utf-8")
        lemmas.write_text("chat\tchat\tNOUN\t_\nchats\tchat\tNOUN\t_\n", encoding="utf-8")
        known = LexiconOptions(lexicon=lemmas)
        options = Recipe(text=text, top_words=3, suffixes=2, words=known)
        translations = TranslationOptions(ParallelText.read(text, text, SYMBOLS, SYMBOLS), aligner="ibm1")
        return cls(options, translations, automaton)

    def of(self, background: str) -> Recipe:
        """Those of a background; {a} is an automaton's file."""
        return replace(self.options, background=background.format(a=self.automaton))

    def translated(self, background: str = "unigram", **numbers: Any) -> Recipe:
        return replace(self.of(background), translations=replace(self.translations, **numbers))

    def known(self, **settings: Any) -> Recipe:
        return replace(self.options, words=replace(self.options.words, **settings))

    def evident(self, **numbers: Any) -> Recipe:
        evidence = EvidenceOptions(("numbers", "names", "copies"), **numbers)
        return replace(self.options, evidence=evidence, source_dictionary=SYMBOLS)


Case = Callable[[Base, Any], Recipe]
AUTOMATON = "automaton({a}, on_zero=skip, unknown_symbols=drop)"
TEMPERED = AUTOMATON.replace(")", ", temperature=T)")
ALL = ("unigram", "ngram:2", "ngram:3", AUTOMATON, "cache:4", "0.5 ngram:2 plus 0.5 cache:3", "uniform")
MIXED = (
    *("ngram:2 plus uniform", f"ngram:2 plus {AUTOMATON}", "unigram plus uniform"),
    "cache:4 plus (ngram:3 times unigram)",
)
WEIGHTINGS = ("", " with weights learned", " with weights per position")


def _text(value: float) -> str:
    return repr(float(value))


def _in_recipe(name: str, base: Base, value: Any) -> Recipe:
    """With this number under that key."""
    return replace(base.options, **{name: value})


def _weighed(mixture: str, how: str = "") -> Case:
    first, second = mixture.split(" plus ", 1)
    return lambda base, value: base.of(f"{_text(value)} {first} plus 0.5 {second}{how}")


# Every number that a user can give: the owner of the setting and its name, and the priors that it changes.
OPTIONS: Mapping[tuple[type, str], tuple[Case, ...]] = {
    (expression.AtTemperature, "temperature"): (
        *(lambda b, v, e=e: b.of(f"({e}) at temperature {_text(v)}") for e in (*ALL, *MIXED)),
        lambda b, v: b.of(f"(ngram:2 at temperature {_text(v)}) at temperature 0.5"),
        lambda b, v: b.of(f"ngram:3 times {AUTOMATON} at temperature {_text(v)}"),
        lambda b, v: b.translated(f"(translations times ngram:2) at temperature {_text(v)}"),
    ),
    (expression.Plus, "weights"): tuple(_weighed(mixture, how) for mixture in MIXED for how in WEIGHTINGS),
    (UnigramOptions, "pseudo_count"): (
        lambda b, v: b.of(f"unigram(smoothing=additive, pseudo_count={_text(v)})"),
        lambda b, v: replace(b.of("ngram:2"), over=f"unigram(smoothing=additive, pseudo_count={_text(v)})"),
    ),
    (NgramOptions, "weight"): (
        lambda b, v: b.of(f"ngram(3, weight={_text(v)})"),
        lambda b, v: b.of(f"ngram(3, weight={_text(v)}) at temperature 0.01"),
    ),
    (NgramOptions, "prune"): (lambda b, v: b.of(f"ngram(3, prune=[{v}, {v}])"),),
    (NgramOptions, "folds"): (lambda b, v: b.of(f"ngram(2, folds={v})"),),
    (NgramOptions, "temperature"): (
        lambda b, v: b.of(f"ngram(3, temperature={_text(v)})"),
        lambda b, v: b.of(f"ngram(2, temperature={_text(v)}) times {AUTOMATON} at temperature 0.01"),
    ),
    (AutomatonOptions, "temperature"): (
        lambda b, v: b.of(f"{TEMPERED.replace('T', _text(v))}"),
        lambda b, v: b.of(f"ngram:2 times {TEMPERED.replace('T', _text(v))} at temperature 0.01"),
    ),
    (ModelOptions, "weight"): (
        lambda b, v: b.of(f"model({{a}}, weight={_text(v)})"),
        lambda b, v: b.of(f"model({{a}}, weight={_text(v)}) plus ngram:2"),
    ),
    (ModelOptions, "temperature"): (
        lambda b, v: b.of(f"model({{a}}, temperature={_text(v)})"),
        lambda b, v: b.of(f"model({{a}}, weight=0.5, temperature={_text(v)}) at temperature 0.01"),
    ),
    (CacheOptions, "weight"): (
        lambda b, v: b.of(f"cache(4, weight={_text(v)})"),
        lambda b, v: b.of(f"cache(4, weight={_text(v)}, decay=0.5, learned) plus ngram:2"),
    ),
    (CacheOptions, "decay"): (
        lambda b, v: b.of(f"cache(4, decay={_text(v)})"),
        lambda b, v: b.of(f"cache(4, decay={_text(v)}, learned) plus ngram:2"),
    ),
    (TranslationOptions, "weight"): (
        lambda b, v: b.translated(weight=v),
        lambda b, v: b.translated("ngram:2", weight=v),
        lambda b, v: b.translated(weight=v, learned=True),
        lambda b, v: b.translated("translations at temperature 0.01", weight=v),
    ),
    (TranslationOptions, "top"): (lambda b, v: b.translated(top=v),),
    (TranslationOptions, "form_power"): (lambda b, v: b.translated(form_power=v, units="lemma"),),
    (EvidenceOptions, "weight"): (
        lambda b, v: b.evident(weight=v),
        lambda b, v: replace(b.evident(weight=v), background="ngram:2 at temperature 0.01"),
    ),
    (EvidenceOptions, "unsupported"): (
        lambda b, v: b.evident(unsupported={"numbers": v}),
        lambda b, v: replace(b.evident(unsupported={"numbers": v}), background="ngram:2"),
    ),
    (OpenOptions, "floor"): (lambda b, v: replace(b.options, open_vocabulary=OpenOptions(floor=v, types=1)),),
    **{
        (Recipe, name): (partial(_in_recipe, name),)
        for name in ("workers", "suffixes", "top_words", "input_top_words")
    },
    (Recipe, "identity_floor"): (lambda b, v: replace(b.options, top_words="auto", identity_floor=v),),
    (LexiconOptions, "lemma_floor"): (lambda b, v: b.known(language="fr", lemma_floor=v),),
    (LexiconOptions, "morpheme_floor"): (
        lambda b, v: b.known(morphemes={"chat": ["chat"], "chats": ["chat", "s"]}, morpheme_floor=v),
    ),
    (OpenOptions, "types"): (lambda b, v: replace(b.options, open_vocabulary=OpenOptions(floor=2, types=v)),),
}


def owners() -> list[type]:
    """All dataclasses of settings that a prior is built from; not those of packages that other tests made."""
    options = [named.options for named in named_backgrounds().values()]
    of_backgrounds = [each for each in options if each.__module__.startswith("fairseq_llrnn.")]
    return [*get_args(expression.Expression), UnigramOptions, *of_backgrounds, *OF_PRIORS]


OF_PRIORS = [Recipe, LexiconOptions, TranslationOptions, EvidenceOptions, OpenOptions]


def numeric_settings() -> set[tuple[type, str]]:
    """All fields of options and expressions whose type holds a number."""
    return {
        (owner, field.name) for owner in owners() for field in fields(owner)
        if holds_number(get_type_hints(owner)[field.name], (float, int))
    }  # fmt: skip


def holds_number(hint: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a type is, or has as members, some of these."""
    return hint in kinds or any(holds_number(part, kinds) for part in get_args(hint))


def option_targets(folder: Path) -> dict[str, Target]:
    """By setting: a number for one of its cases."""
    base = Base.at(folder)

    def target(key: tuple[type, str]) -> Target:
        whole = holds_number(get_type_hints(key[0])[key[1]], (int,))

        def run(place: Path, rng: random.Random) -> str:
            case, value = rng.choice(OPTIONS[key]), number(rng)
            if whole:
                value = int(max(-10, min(10**9, value))) if value == value else 0

            def make() -> Iterator[LogLinearHead]:
                prior = build(words(), case(base, value), open_model).prior
                yield from heads(prior)
                prior.save(place)
                yield LogLinearHead(Prior.load(place, load_model), 4, source_size=4 if prior.source_symbols else None)

            return summed_or_refused(make)

        return run

    return {f"option: {owner.__name__}.{name}": target((owner, name)) for owner, name in OPTIONS}


# ---- numbers of files -----------------------------------------------------------------------------------------------

# By reader (hostile_readers.py): the options of a prior that is built from such a file.
FILES: Mapping[str, Callable[[Base, Path], Recipe]] = {
    "weights of words": lambda base, path: base.of(f"{path} plus uniform"),
    **{name: lambda base, path: base.of(f"automaton:{path} plus ngram:2") for name in ("automaton", "grammar")},
    "n-grams": lambda base, path: base.of(f"ngram:{path}"),
    "values": lambda base, path: base.known(values=path),
}
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])")


def file_targets(folder: Path) -> dict[str, Target]:
    """By reader: a number in the place of one that a sound file has, or of several ones."""
    base = Base.at(folder)

    def target(name: str, build_from: Callable[[Base, Path], Recipe]) -> Target:
        reader = next(reader for reader in readers() if reader.name == name)

        def run(place: Path, rng: random.Random) -> str:
            place.mkdir()
            text = rng.choice(reader.samples).decode()
            found = list(NUMBER.finditer(text))
            for match in sorted(rng.sample(found, rng.choice((1, 1, 2, len(found)))), key=lambda m: -m.start()):
                text = f"{text[: match.start()]}{number(rng)!r}{text[match.end() :]}"
            path = place / reader.file
            path.write_text(text, encoding="utf-8")
            return summed_or_refused(lambda: heads(build(words(), build_from(base, path)).prior))

        return run

    return {f"number in file: {name}": target(name, build_from) for name, build_from in FILES.items()}


# ---- numbers of priors and checkpoints ------------------------------------------------------------------------------


def number_leaves(description: Any) -> Iterator[tuple[Any, Any]]:
    """Where a JSON document has numbers: lists or dictionaries, and the place in each."""
    if isinstance(description, dict | list):
        for key, value in description.items() if isinstance(description, dict) else enumerate(description):
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield description, key
            yield from number_leaves(value)


def change_prior(place: Path, rng: random.Random) -> None:
    """Put a number in the place of one that a prior's parts, expression or arrays have; its hash fits."""
    description = json.loads((place / "prior.json").read_text(encoding="utf-8"))
    known = {name: description[name] for name in ("parts", "background") if name in description}
    leaves = list(number_leaves(known))
    if leaves and rng.random() < 0.5:
        holder, key = rng.choice(leaves)
        holder[key] = number(rng)
    else:
        with np.load(place / "arrays.npz", allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        array = arrays[rng.choice(sorted(name for name, array in arrays.items() if array.dtype.kind == "f"))]
        value = number(rng)
        with np.errstate(all="ignore"):
            if rng.random() < 0.5 or not array.size:
                array[:] = array * value
            else:
                array[rng.randrange(array.size)] = value
        packed = io.BytesIO()
        np.savez(packed, **arrays)
        (place / "arrays.npz").write_bytes(packed.getvalue())
        description["arrays_sha256"] = hashlib.sha256(packed.getvalue()).hexdigest()
    (place / "prior.json").write_text(json.dumps(description), encoding="utf-8")


def prior_number_targets(priors: Mapping[str, Path], load_model: LoadModel | None = None) -> dict[str, Target]:
    """By kind of prior: a number in a copy of it. load_model: as Prior.load."""

    def target(prior: Path) -> Target:
        def run(place: Path, rng: random.Random) -> str:
            shutil.copytree(prior, place)
            change_prior(place, rng)
            return summed_or_refused(lambda: heads(Prior.load(place, load_model)))

        return run

    return {f"number in prior: {name}": target(place) for name, place in priors.items()}


def checkpoint_number_targets(priors: Mapping[str, Path]) -> dict[str, Target]:
    """By kind of prior: a number in a parameter that a head over it has."""

    def target(prior: Path) -> Target:
        def run(place: Path, rng: random.Random) -> str:
            def make() -> Iterator[LogLinearHead]:
                for head in heads(Prior.load(prior)):
                    state, value = head.state_dict(), number(rng)
                    names = [name for name, _ in head.named_parameters()]
                    own = [name for name in names if not name.startswith(("output.", "slot_"))]
                    tensor = state[rng.choice(own if own and rng.random() < 0.7 else names)]
                    changed = tensor.view(-1) if rng.random() < 0.5 else tensor.view(-1)[:1]
                    changed.copy_(torch.tensor(value))
                    head.load_state_dict(state)
                    yield head

            return summed_or_refused(make)

        return run

    return {f"number in checkpoint: {name}": target(place) for name, place in priors.items()}
