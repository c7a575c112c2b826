"""Search over words and slots by hand: strings instead of ids, hypotheses one by one.

b(C; x) exp(aᵀφ(x) / temperature) is computed string by string, and fairseq's beam search over what it says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from tiny_world import Setting
from torch import Tensor

from fairseq_llrnn.evidence.slots import LOG_UNK_KEEPS
from fairseq_llrnn.features.spelling_features import shape_features, suffixes
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart


@dataclass
class Slot:
    """What a string is evidence of."""

    kind: str
    unknown: bool
    first: bool
    places: list[int]


class ByHand:
    """log p(next string | source, prefix) of one sentence."""

    def __init__(self, setting: Setting, source: str) -> None:
        self.model, self.prior = setting.model, setting.task.prior
        self.words = source.split()
        known = {symbol: i for i, symbol in enumerate(self.prior.source_symbols)}
        self.ids = torch.tensor([[*(known.get(word, known["<unk>"]) for word in self.words), known["</s>"]]])
        self.of_target = {symbol: i for i, symbol in enumerate(self.prior.symbols)}
        self.slots: dict[str, Slot] = {}
        for place, word in enumerate(self.words):
            evidence = self.prior.find(EvidencePart).rules.find(word, known)
            for i, string in enumerate(evidence.words if evidence else ()):
                slot = self.slots.setdefault(string, Slot(evidence.kind, word not in known, i == 0, []))
                slot.places.append(place)
        self.strings = [*self.prior.symbols, *(string for string in self.slots if string not in self.of_target)]
        with torch.no_grad():
            self.encoder_out = self.model.encoder(self.ids, torch.tensor([self.ids.size(1)]))
            self.log_b = self._background()  # shape: (strings,)
            self.phi, self.pointed = self._features()  # shape: (strings, F) and (strings, H)

    def _background(self) -> Tensor:
        base = self.model.decoder.head.background.base.bind(self.ids)
        words = base.view(base.start(1)).log_weights[0].double().exp()
        b = torch.cat([words, words.new_zeros(len(self.strings) - len(words))])
        if any(slot.unknown and string not in self.of_target for string, slot in self.slots.items()):
            b[self.of_target["<unk>"]] *= math.exp(LOG_UNK_KEEPS)
        for string in self.slots:
            b[self.strings.index(string)] += self.prior.find(EvidencePart).rules.weight / len(self.slots)
        return b.log()

    def _features(self) -> tuple[Tensor, Tensor]:
        names = self.prior.output.features.names
        phi = torch.zeros(len(self.strings), len(names), dtype=torch.float64)
        dense = torch.from_numpy(self.prior.output.features.dense()).double()
        phi[: len(self.prior.symbols)] = dense[self.prior.output.class_of]
        pointed = torch.zeros(len(self.strings), self.model.decoder.head.output.weight.size(1), dtype=torch.float64)
        for string, slot in self.slots.items():
            row = self.strings.index(string)
            if slot.unknown or string not in self.of_target:
                own = {"NOTTOP": 1.0, **{f"Suffix:{s}": 1.0 for s in suffixes(string)}, **shape_features(string)}
                phi[row] = torch.tensor([own.get(name, 0.0) for name in names])
            kind = {"mapped": "Mapped", "numbers": "Number", "names": "Name", "copies": "Copy"}[slot.kind]
            phi[row, names.index(f"Evidence:{kind}")] = 1.0
            if slot.unknown:
                phi[row, names.index("Evidence:Unknown")] = 1.0
            if not slot.first:
                phi[row, names.index("Evidence:Next")] = 1.0
            state = self.encoder_out["encoder_out"][0][slot.places, 0].mean(0)
            pointed[row] = (self.model.decoder.head.slot_rows.pointer @ state).double()
        return phi, pointed

    def read(self, string: str) -> int:
        """What the network reads when the string was written."""
        unread = string in self.slots and self.slots[string].unknown
        return self.of_target["<unk>"] if unread else self.of_target.get(string, self.of_target["<unk>"])

    @torch.no_grad()
    def log_probs(self, prefix: tuple[str, ...], temperature: float) -> dict[str, float]:
        """The next string after a prefix."""
        previous = torch.tensor([[self.of_target["</s>"], *map(self.read, prefix)]])
        decoder = self.model.decoder
        hidden = decoder(previous, self.encoder_out)[0][0, -1].double()
        adaptor = decoder.head.output.weight.double() @ hidden + decoder.head.output.bias.double()
        scores = self.phi @ adaptor + self.pointed @ hidden
        values = (scores / temperature + self.log_b).log_softmax(0)
        return dict(zip(self.strings, values.tolist(), strict=True))


@dataclass(frozen=True)
class Found:
    """A hypothesis, without its </s>."""

    words: tuple[str, ...]
    score: float


@dataclass(frozen=True)
class Options:
    """fairseq's, with small sizes."""

    beam_size: int = 4
    max_len_b: int = 5
    min_len: int = 1
    len_penalty: float = 1.0
    temperature: float = 1.0
    unk_penalty: float = 0.0
    normalize_scores: bool = True


@cache
def remembered(model: Any, prefix: tuple[str, ...], temperature: float) -> dict[str, float]:
    return model.log_probs(prefix, temperature)


def next_strings(models: Sequence[Any], prefix: Sequence[str], options: Options) -> dict[str, float]:
    """What every next string adds to a score: `models` are by hand, and their probabilities are averaged."""
    answers = [remembered(model, tuple(prefix), options.temperature) for model in models]
    strings = sorted({string for answer in answers for string in answer})
    each = torch.tensor([[answer.get(s, -math.inf) for s in strings] for answer in answers], dtype=torch.float64)
    values = dict(zip(strings, (each.logsumexp(0) - math.log(len(models))).tolist(), strict=True))
    values["<unk>"] -= options.unk_penalty
    return values


def normalised(score: float, steps: int, options: Options) -> float:
    return score / steps**options.len_penalty if options.normalize_scores else score


def score_of(models: Sequence[Any], words: Sequence[str], options: Options) -> float:
    """The score of a whole hypothesis; a string that is no slot's is <unk>."""
    total = 0.0
    for i, word in enumerate([*words, "</s>"]):
        values = next_strings(models, words[:i], options)
        total += values.get(word, values["<unk>"])
    return normalised(total, len(words) + 1, options)


def search(models: Sequence[Any], options: Options, prefix: Sequence[str] = ()) -> list[Found]:
    """fairseq's beam search over strings."""
    active, done = [Found((), 0.0)], []
    for step in range(options.max_len_b + 1):
        candidates = []
        for hypothesis in active:
            values = next_strings(models, hypothesis.words, options)
            if step < min(len(prefix), options.max_len_b):
                values = {prefix[step]: values.get(prefix[step], values["<unk>"])}
            elif step == options.max_len_b:
                values = {"</s>": values["</s>"]}
            elif step < options.min_len:
                del values["</s>"]
            candidates += [Found((*hypothesis.words, s), hypothesis.score + v) for s, v in values.items()]
        candidates = [candidate for candidate in candidates if candidate.score > -math.inf]
        candidates = sorted(candidates, key=lambda one: -one.score)[: 2 * options.beam_size]
        for candidate in candidates[: options.beam_size]:
            if candidate.words[-1] == "</s>" and len(done) < options.beam_size:
                done.append(Found(candidate.words[:-1], normalised(candidate.score, step + 1, options)))
        if len(done) == options.beam_size:
            break
        active = [one for one in candidates if one.words[-1] != "</s>"][: options.beam_size]
    return sorted(done, key=lambda one: -one.score)
