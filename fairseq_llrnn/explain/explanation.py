"""Explain the probability of a word: log p = log b + aᵀφ − log Z, term by term.

Sizes: T positions, V words, S signatures, J strings of the source sentence (0 if there are none), X other context
classes, O open classes, F features, H hidden width. The hidden states are wider than H if class sources add columns.
Probabilities are natural logarithms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import View
from fairseq_llrnn.evidence.slots import EvidenceMixture
from fairseq_llrnn.explain.source_terms import PLACE, OfferedSlot, SlotTerms, SourceEvidence, worth_naming
from fairseq_llrnn.features.feature_table import SPECIAL, TOP_FORM, FeatureTable
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.open_vocabulary.open_strings import OpenMixture
from fairseq_llrnn.output.class_source import ClassTerms
from fairseq_llrnn.output.context_classes import each_layer, layers_of
from fairseq_llrnn.output.context_source import ContextClassSource
from fairseq_llrnn.output.normalisers import ClassPath, Detail, LogLinearOutput, class_log_probs
from fairseq_llrnn.prior.prior import Prior

CLASS = "Class"  # the score of a class that has no features, in the list of a word's features: Class:SOURCE
POWER = "Background:Power"  # the term of a learned temperature, in the list of a word's features

Weighed = tuple[tuple[str, float], ...]  # (name, value), the most important first


@dataclass(frozen=True)
class Explanation:
    """One position of a sentence.

    With b normalised, log_prob = log_background + Σ own_features + normaliser. The <unk> of an open vocabulary is an
    exception: it is a sum over classes, and own_features has the mean of their features.
    """

    token: str  # the scored token: itself, or <unk> if neither the dictionary nor a class of the source has it
    log_prob: float  # log p(token | K); −inf if the background forbids it
    rank: int  # 1 + number of more probable words (V) and strings (J)
    log_background: float  # log b(K, token) / Σ_x b(K, x), the sum over V words and J strings
    predictions: Weighed  # the most probable words and strings, and log p
    expected: tuple[tuple[str, float, float], ...]  # shared features, E_b[φ_f], E_p[φ_f]; the largest change first
    own_features: Weighed  # all features of the token and a_f φ_f(token), the largest |a_f φ_f| first; a slot's place
    strongest: Weighed  # features that words share (POS:VERB) and a_f, the largest |a_f| first
    strongest_words: Weighed  # the same for indicator features of single words (TOPFORM:elle)
    normaliser: float  # −log Z, with Z = Σ_x b(K, x) exp(aᵀφ(x)) / Σ_x b(K, x); the same for every word
    slots: tuple[OfferedSlot, ...] | None = None  # `worth_naming`; None: the prior has no evidence
    slot: OfferedSlot | None = None  # the token's slot
    source: SourceEvidence | None = None  # for a translation
    details: tuple[Detail, ...] = ()


@torch.inference_mode()
def explain(
    prior: Prior,
    output: LogLinearOutput,
    positions: View,
    hidden: Tensor,
    tokens: Tensor,
    scores: Tensor,
    log_masses: Tensor,
    top: int,
    slot_rows: Tensor | None = None,
    opened: tuple[OpenMixture, Tensor] | None = None,
    powered: Tensor | None = None,
    paths: Sequence[ClassPath] | None = None,
    terms: Mapping[type[ContextClassSource], ClassTerms] | None = None,
) -> Iterator[Explanation]:
    """Explain a sentence position by position.

    Args:
        positions: the view of this sentence's T positions; context classes are slots of evidence, or of other sources.
        hidden: (T, H) states of the network before each token. tokens: (T,) ids of the words, open ones included.
        scores, log_masses: aᵀφ and log B of all classes in the model, (T, S + J + X); masses may be (1, …).
        top: number of predictions and strongest features to list (or fewer).
        slot_rows: of the slots, (J, H), if the background has any (SlotRows).
        opened: the open classes, if there are any, and their scores (T, O): <unk> then has the mean features of the
            classes.
        powered: the term of a learned temperature, (τ − 1) r, which is part of the scores, (T, S).
        paths: to the class of each token; `scores` are then log p(σ | K) minus the masses.
        terms: of classes with features, by the type of their source.
    """
    table, symbols, slots, terms = prior.output.features, prior.session.target.symbols, None, terms or {}
    evidence = next((layer for layer in each_layer(positions.bound) if isinstance(layer, EvidenceMixture)), None)
    if evidence is not None:
        if slot_rows is None:
            raise ValueError("a background with slots needs their rows")
        slots = SlotTerms(evidence, symbols, table, output, hidden, slot_rows)
        table = slots.table
    is_identity = np.array([feature_group(name) in (TOP_FORM, SPECIAL) for name in table.names])
    shared, identities = np.flatnonzero(~is_identity), np.flatnonzero(is_identity)
    log_masses = log_masses.expand(len(scores), -1)
    for t, token in enumerate(tokens.tolist()):
        view = positions.select(torch.tensor([t], device=tokens.device))
        log_mass = log_masses[t : t + 1]  # shape: (1, S + J + X)
        if bool(log_mass.isneginf().all()):
            return  # no token can follow a word that a grammar forbids
        log_class = class_log_probs(scores[t : t + 1], log_mass)
        log_probs = view.expand(log_class)[0]  # shape: (V + J,)
        of_token, log_share = view.locate(tokens[t : t + 1])
        own_class = int(of_token)
        tokens_of = view.columns[0]  # shape: (V + J,)
        column = int(view.column_of(tokens[t : t + 1].unsqueeze(0)))
        signature, moved, source_name, sources_of_terms = own_class, [], None, []
        for layer in reversed(layers_of(view)):  # the outermost first
            if (of_source := terms.get(type(layer.source))) is not None:
                sources_of_terms.append((of_source, int(layer.contexts)))
            if not isinstance(layer.bound, EvidenceMixture):  # whose classes have their own features
                left = layer.pick(layer.table.original)[0]  # shape: (X,)
                moved.append((layer.num_below, left))
                if layer.num_below <= signature < layer.num_below + len(left):
                    if of_source is None:
                        source_name = type(layer.source).__name__
                    signature = int(left[signature - layer.num_below])
        row = table.row(signature)
        if opened is not None and signature == opened[0].of_class:
            row = opened[0].mean_features(opened[1][t], table.names)
        adaptor = output.adaptor(hidden[t, : output.weight.size(1)]).tolist()  # F
        under_background = _expectations(table, log_mass, moved)
        under_model = _expectations(table, scores[t : t + 1] + log_mass, moved)
        change = np.abs(under_model - under_background)
        total_mass = log_mass.logsumexp(-1).item()
        features = [(name, adaptor[table.index[name]] * value) for name, value in row.items()]
        if source_name is not None:  # the class has its own score instead of features
            features = [(f"{CLASS}:{source_name}", scores[t, own_class].item())]
        offered, slot, details = None, None, []
        if slots is not None:
            offered = slots.offered(view.log_weights[0] - total_mass, log_probs)
            if 0 <= (index := signature - slots.num_below) < len(offered):
                slot = offered[index]
                features.append((PLACE, slots.places[t, index].item()))
            offered = worth_naming(offered, top)
        if powered is not None and powered[t, own_class]:
            features.append((POWER, powered[t, own_class].item()))
        normaliser = total_mass - (scores[t : t + 1] + log_mass).logsumexp(-1).item()
        if paths is not None:
            features += paths[t].terms
            normaliser = paths[t].normaliser
            if powered is not None and not log_mass[0, own_class].isneginf():  # its masses include the power
                power = paths[t].log_background - (log_mass[0, own_class].item() - total_mass)
                normaliser += power - powered[t, own_class].item()
        for of_source, context in sources_of_terms:
            added, detail = of_source(t, context, token, row)
            features += added
            details.append(detail)
        yield Explanation(
            token=symbols[tokens_of[column]],
            log_prob=log_probs[column].item(),
            rank=1 + int((log_probs > log_probs[column]).sum()),
            log_background=(log_mass[0, own_class] + log_share[0]).item() - total_mass,
            predictions=_predictions(symbols, tokens_of, log_probs, top),
            expected=tuple(
                (table.names[f], float(under_background[f]), float(under_model[f]))
                for f in shared[np.argsort(-change[shared], kind="stable")][:top]
            ),
            own_features=_strongest_first(features),
            strongest=_strongest_first((table.names[f], adaptor[f]) for f in shared)[:top],
            strongest_words=_strongest_first((table.names[f], adaptor[f]) for f in identities)[:top],
            normaliser=normaliser,
            slots=offered,
            slot=slot,
            details=tuple(details if paths is None else [*details, paths[t].detail]),
        )


def _expectations(table: FeatureTable, class_scores: Tensor, layers: Sequence[tuple[int, Tensor]]) -> np.ndarray:
    """Return E[φ] (F,) of the words, given the scores of their classes (1, S + J + X).

    Args:
        layers: for each layer without its own features, outermost first: the index of its first class, and the
            original classes (X,) of its words, which have their features.
    """
    shares = class_scores[0].double().softmax(-1).cpu()
    for first, left in layers:
        span = slice(first, first + len(left))
        moved, shares[span] = shares[span].clone(), 0.0
        shares = shares.index_add(0, left.cpu(), moved)
    shares = shares[: table.num_rows]
    probabilities = shares.numpy()
    entries = table.values * np.repeat(probabilities, np.diff(table.offsets))
    return np.bincount(table.indices, weights=entries, minlength=table.num_features)


def _strongest_first(weights: Iterable[tuple[str, float]]) -> Weighed:
    return tuple(sorted(weights, key=lambda item: -abs(item[1])))


def _predictions(symbols: Sequence[str], tokens: Tensor, log_probs: Tensor, top: int) -> Weighed:
    """Return the most probable of the possible words, and log p. tokens, log_probs: of the columns, (V + J,)."""
    values, columns = log_probs.topk(min(top, len(log_probs)))
    pairs = zip(tokens[columns].tolist(), values.tolist(), strict=True)
    return tuple((symbols[token], value) for token, value in pairs if value > float("-inf"))
