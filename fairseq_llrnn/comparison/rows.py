"""The rows of the table, from the results of jobs: the chosen setting of each model, mixtures, and differences.

Sizes: N tokens of a text with their ends, n sentences, S seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairseq_llrnn.comparison.bootstrap import Difference, paired_bootstrap
from fairseq_llrnn.comparison.mixtures import best_weight, best_weights, loss, mixed, mixed_all
from fairseq_llrnn.comparison.models import title
from fairseq_llrnn.comparison.settings import MIXED, NEURAL, OURS, WITH_OURS
from fairseq_llrnn.comparison.texts import SCORED, Texts, characters

OTHERS = ("joined-others", "all other models, mixed (against all models)")
ALL = ("joined", "all models, mixed")
LEAST_SHOWN = 0.005  # weight of a model in a mixture of all
OF_WORDS = ("softmax", *OURS, "pretrained")  # networks that should be better than 2-grams of words


@dataclass(frozen=True)
class Scores:
    """log p in nats of a text by one model with one seed."""

    tokens: np.ndarray  # (N,) with the ends of sentences
    sentence_of: np.ndarray  # (N,) the sentence of each token
    word_of: np.ndarray  # (N,) the word of each token, over the whole text; an end is a word

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Scores:
        """Return the scores in the result of a job (jobs.py)."""
        sizes = [[*line, 1] for line in found["sizes"]]
        whole = np.array([size for line in sizes for size in line])
        return cls(
            np.array([value for line in found["tokens"] for value in line]),
            np.repeat(np.arange(len(sizes)), [sum(line) for line in sizes]),
            np.repeat(np.arange(len(whole)), whole),
        )

    def bits_of_sentences(self) -> np.ndarray:
        """Return the bits of each sentence, (n,)."""
        return -np.bincount(self.sentence_of, self.tokens) / math.log(2)

    def bits_of_words(self) -> np.ndarray:
        """Return the bits of each word, and of each end of a sentence."""
        return -self.by_word().tokens / math.log(2)

    def by_word(self) -> Scores:
        """Return the scores with words as tokens."""
        words = np.bincount(self.word_of, self.tokens)
        sentence_of = np.zeros(len(words), dtype=np.int64)
        sentence_of[self.word_of] = self.sentence_of
        return Scores(words, sentence_of, np.arange(len(words)))


@dataclass(frozen=True)
class Row:
    """One model in the table. Figures are means over seeds. A failed model has a reason instead."""

    name: str
    title: str
    setting: str = ""
    place: str = ""  # the folder of the first seed, below that of the comparison
    failure: str | None = None
    seeds: Sequence[int] = ()
    valid: float = math.nan  # bits per character
    valids: Sequence[float] = ()  # `valid` of each seed
    test: float = math.nan
    tests: Sequence[float] = ()  # `test` of each seed
    deviation: float = math.nan  # standard deviation of `tests`
    seen: float = math.nan  # bits per word of the test text, of words in the training text
    unseen: float = math.nan
    perplexity: float = math.nan  # of the test text over a closed dictionary, which contains its words
    weight: float = math.nan  # of the network in a mixture, the mean over seeds
    is_converged: bool = True  # whether each training stopped before its last epoch
    is_poor: bool = False  # whether a seed needs more bits on the validation text than the 2-grams
    seconds: float = math.nan  # of a processor, for the training and scoring of a seed
    sentences: np.ndarray | None = None  # (n,) bits of the test sentences
    difference: Difference | None = None  # from ours, in bits per character
    is_reference: bool = False


@dataclass(frozen=True)
class Measured:
    """A model with its chosen setting."""

    name: str
    setting: str
    title: str
    seeds: Sequence[int]
    scores: Sequence[Mapping[str, Scores]]  # of each seed, by text
    seconds: float
    is_converged: bool
    weight: float  # as in Row
    ngrams: Mapping[str, Mapping[str, np.ndarray]]  # of n-grams over the model's pieces, by order and text


def measured_of(results: Sequence[Mapping[str, Any]]) -> Measured:
    """Return a model from its results, one for each seed."""
    first = results[0]
    pieces = first.get("ngrams", {})
    ngrams = {order: {split: np.concatenate(found[split]) for split in SCORED} for order, found in pieces.items()}
    size = f" ({first['num_pieces']})" if pieces else ""
    seconds = [result["seconds"] for result in results if result["seconds"] is not None]
    return Measured(
        first["model"], first["setting"], title(first["model"]) + size, [result["seed"] for result in results],
        [{split: Scores.read(result[split]) for split in SCORED} for result in results],
        float(np.mean(seconds)) if seconds else math.nan, all(result.get("is_converged", True) for result in results),
        math.nan, ngrams,
    )  # fmt: skip


def perplexity_of(results: Sequence[Mapping[str, Any]]) -> float:
    """Return the perplexity of the test text, ends included: the mean over the results of seeds."""
    tokens = [[value for line in result["test"]["tokens"] for value in line] for result in results]
    return float(np.mean([math.exp(-np.mean(values)) for values in tokens]))


def bits_per_character(result: Mapping[str, Any], split: str, texts: Texts) -> float:
    """Return the bits per character of a text, from the result of a job."""
    total = math.fsum(value for line in result[split]["tokens"] for value in line)
    return -total / math.log(2) / sum(characters(texts.lines(split)))


def row_of(model: Measured, texts: Texts) -> Row:
    """Return the figures of a model."""
    per_character = {
        split: [float(scores[split].bits_of_sentences().sum()) / size for scores in model.scores]
        for split, size in ((split, sum(characters(texts.lines(split)))) for split in SCORED)
    }
    seen = [kind for line in texts.test for kind in [*(word in texts.words for word in line.split()), None]]
    words = np.mean([scores["test"].bits_of_words() for scores in model.scores], axis=0)
    tests = per_character["test"]
    return Row(
        model.name, model.title, model.setting, seeds=model.seeds, seconds=model.seconds,
        is_converged=model.is_converged, weight=model.weight,
        valid=float(np.mean(per_character["valid"])), valids=per_character["valid"],
        test=float(np.mean(tests)), tests=tests,
        deviation=float(np.std(tests, ddof=1)) if len(tests) > 1 else math.nan,
        seen=_mean_of(words, seen, True), unseen=_mean_of(words, seen, False),
        sentences=np.mean([scores["test"].bits_of_sentences() for scores in model.scores], axis=0),
    )  # fmt: skip


def _mean_of(bits: np.ndarray, seen: Sequence[bool | None], kind: bool) -> float:
    chosen = bits[[value is kind for value in seen]]
    return float(chosen.mean()) if len(chosen) else math.nan


def mixtures_of(models: Sequence[Measured], texts: Texts) -> list[Row]:
    """Return the best model of each kind (MIXED), mixed with n-grams: on the validation text, after mixing."""
    words = {m.name.removeprefix("ngrams-"): m.scores[0] for m in models if m.name.startswith("ngrams-")}
    of_words = {order: {split: scores[split].tokens for split in SCORED} for order, scores in words.items()}
    rows = list[Row]()
    if not of_words:  # all of them failed
        return rows
    for name, family in MIXED.items():
        tried = [row_of(_mixed(m, m.ngrams or of_words, name), texts) for m in models if m.name in family]
        rows += [min(tried, key=lambda row: row.valid)] if tried else []
    return rows


def _mixed(model: Measured, ngrams: Mapping[str, Mapping[str, np.ndarray]], name: str) -> Measured:
    """Return a model mixed with the n-grams of one order, with a weight for each seed, both of the least valid loss."""
    by_order = []
    for order, of_order in ngrams.items():
        scores, weights, losses = [], [], []
        for seed in model.scores:
            weight = best_weight(seed["valid"].tokens, of_order["valid"])
            tokens = {split: mixed(seed[split].tokens, of_order[split], weight) for split in SCORED}
            scores.append({split: replace(seed[split], tokens=tokens[split]) for split in SCORED})
            weights.append(weight)
            losses.append(loss(tokens["valid"]))
        by_order.append((float(np.mean(losses)), order, scores, weights))
    _, order, scores, weights = min(by_order, key=lambda entry: entry[:2])
    shown = ",".join(f"{weight:.2f}" for weight in weights)
    setting, mean = f"{model.setting}, {order}-grams, weight of the network {shown}", float(np.mean(weights))
    title = f"{model.title} + {order}-grams"
    if mean in (0.0, 1.0):
        units = f" of {model.name}" if model.ngrams else ""
        alone = f"{order}-grams{units}" if mean == 0.0 else model.title
        title = f"{alone} alone, as the mixture {title}"
    return replace(model, name=name, title=title, setting=setting, scores=scores, weight=mean)


def joined(models: Sequence[Measured], texts: Texts) -> list[Row]:
    """Return the mixture of all models but ours, and that of all models, with weights of the least valid loss.

    They are mixed word by word, for the seeds that all networks have. A pretrained network is left out: its tokens do
    not show where a word ends.
    """
    parts = [m for m in models if m.name in NEURAL or m.name.startswith("ngrams-")]
    others = [m for m in parts if m.name not in OURS]
    networks = [m for m in parts if m.name in NEURAL]
    if len(others) == len(parts) or all(m.name in OURS for m in networks):
        return []
    seeds = [seed for seed in networks[0].seeds if all(seed in m.seeds for m in networks)]
    return [row_of(_joined(*one, seeds), texts) for one in ((*OTHERS, others), (*ALL, parts)) if seeds]


def _joined(name: str, title: str, models: Sequence[Measured], seeds: Sequence[int]) -> Measured:
    scores, settings = [], list[str]()
    for seed in seeds:
        parts = {split: dict(_by_word(models, split, seed)) for split in SCORED}
        tokens = {split: np.stack([part.tokens for part in parts[split].values()]) for split in SCORED}
        weights = best_weights(tokens["valid"])
        first = {split: next(iter(parts[split].values())) for split in SCORED}
        scores.append({split: replace(first[split], tokens=mixed_all(tokens[split], weights)) for split in SCORED})
        shown = [f"{w:.2f} {part}" for part, w in zip(parts["valid"], weights, strict=True) if w >= LEAST_SHOWN]
        settings.append(", ".join(shown))
    return Measured(name, settings[0], title, seeds, scores, math.nan, True, math.nan, {})


def _by_word(models: Sequence[Measured], split: str, seed: int) -> Iterator[tuple[str, Scores]]:
    """Yield the models and their own n-grams. N-grams of words have no seeds."""
    for model in models:
        scores = model.scores[model.seeds.index(seed) if model.name in NEURAL else 0][split]
        yield model.title, scores.by_word()
        for order, tokens in model.ngrams.items():
            yield f"{order}-grams of {model.title}", replace(scores, tokens=tokens[split]).by_word()


def with_doubts(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, in which networks that are worse than the 2-grams are marked."""
    limit = next((row.valid for row in rows if row.name == "ngrams-2"), math.inf)
    poor = [max(row.valids, default=0.0) > limit and row.name.startswith(OF_WORDS) for row in rows]
    return [replace(row, is_poor=is_poor) for row, is_poor in zip(rows, poor, strict=True)]


def with_differences(rows: Sequence[Row], texts: Texts) -> list[Row]:
    """Return the rows with their differences from the best of ours on the validation text, if there is one.

    A mixture in which our network has no weight is not ours. The mixture of all other models is compared with that of
    all models.
    """
    ours = [row for row in rows if row.failure is None and row.name in WITH_OURS and row.weight != 0.0]
    if not ours:
        return [*rows]
    reference = min(ours, key=lambda row: row.valid)
    whole = next((row for row in rows if row.name == ALL[0]), reference)
    sizes = np.array(characters(texts.test))
    done = []
    for row in rows:
        if row is reference:
            done.append(replace(row, is_reference=True))
        elif row.sentences is None or reference.sentences is None:
            done.append(row)
        else:
            compared = whole.sentences if row.name == OTHERS[0] else reference.sentences
            assert compared is not None
            done.append(replace(row, difference=paired_bootstrap(row.sentences, compared, sizes)))
    return done
