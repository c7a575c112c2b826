"""Strings that a network spells: drawn as probable as they are, or the best ones that a beam search finds.

Sizes: m strings or beginnings at once, A symbols, K kinds of spelling, H hidden width.

As with n-grams alone (spelling.py), strings are of known characters, LONGEST at most, and no words of the dictionary:
what is drawn otherwise is drawn again. `best_strings` keeps the BEAM most probable beginnings of each place, of all
kinds together; a beginning is at least as probable as what goes on from it, so the search of a place stops when BEAM
strings are better than all. The places of a batch go on side by side, since one step of the network for many
beginnings takes hardly longer than for few.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END, FIRST
from fairseq_llrnn.open_vocabulary.spelling import ATTEMPTS, LONGEST, draw_columns
from fairseq_llrnn.systems.speller.network import NeuralSpeller
from fairseq_llrnn.systems.speller.spelled import WHOLE, SpelledStrings

BEAM = 16


class _Writers:
    """Beginnings of strings, each of one kind, and the network behind them."""

    def __init__(self, speller: NeuralSpeller, spelled: SpelledStrings, hidden: Tensor, kinds: Tensor) -> None:
        """hidden: (m, H). kinds: (m,)."""
        self.speller, self.spelled, self.kinds = speller, spelled, kinds
        self.ngrams = spelled.model(WHOLE)
        self.state = speller.begin(hidden)
        self.tails = self.ngrams.beginnings(len(hidden))
        self.read = torch.full((len(hidden),), BEGIN, device=hidden.device)
        self.texts = [""] * len(hidden)

    def next(self) -> np.ndarray:
        """log N of each next symbol: (m, A) float64; the network has then read the last one."""
        log_base = torch.from_numpy(self.spelled.log_base(self.tails))
        no_end = torch.tensor([not text or text in self.spelled.vocabulary_words for text in self.texts])
        log_base[no_end, END] = -torch.inf
        odds, self.state = self.speller.step(self.read, self.state, self.kinds, log_base.to(self.read.device))
        answer: np.ndarray = odds.double().cpu().numpy()
        return answer

    def write(self, rows: np.ndarray, symbols: np.ndarray) -> None:
        """Go on from some beginnings, (n,), each with a known character, (n,)."""
        index = torch.from_numpy(rows).to(self.read.device)
        self.state = self.state[0][:, index].contiguous(), self.state[1][:, index].contiguous()
        self.kinds, self.read = self.kinds[index], torch.from_numpy(symbols).to(self.read)
        self.tails = self.ngrams.tails_after(self.tails[rows], symbols)
        letters = self.ngrams.alphabet.text(symbols.tolist())
        self.texts = [self.texts[row] + letter for row, letter in zip(rows.tolist(), letters, strict=True)]


@torch.no_grad()
def draw_strings(
    speller: NeuralSpeller, spelled: SpelledStrings, hidden: Tensor, classes: np.ndarray, random: np.random.Generator
) -> list[str | None]:
    """A string of each class (m,) as N(· | h, o) has them, h from hidden (m, H); None where none was short enough."""
    shares = speller.log_shares.exp().double().cpu().numpy()[classes]
    strings: list[str | None] = [None] * len(classes)
    for _ in range(ATTEMPTS):
        missing = np.array([i for i, string in enumerate(strings) if string is None], dtype=np.int64)
        if len(missing) == 0:
            break
        kinds = draw_columns(shares[missing], random)
        some = hidden[torch.from_numpy(missing).to(hidden.device)]
        writers = _Writers(speller, spelled, some, torch.from_numpy(kinds).to(hidden.device))
        while len(missing):
            chosen = draw_columns(np.exp(writers.next()), random)
            for row in np.flatnonzero(chosen == END).tolist():
                text = writers.texts[row]
                strings[missing[row]] = None if text in spelled.words.word_index else text
            on = np.flatnonzero((chosen >= FIRST) & (np.array([len(text) for text in writers.texts]) < LONGEST))
            writers.write(on, chosen[on])
            missing = missing[on]
    return strings


@torch.no_grad()
def best_strings(
    speller: NeuralSpeller, spelled: SpelledStrings, hidden: Tensor, classes: np.ndarray
) -> list[Sequence[str]]:
    """Likely strings of N(· | h, o) at each place, at most BEAM: hidden (m, H), classes (m,)."""
    kinds = torch.arange(speller.num_kinds, device=hidden.device)
    places = np.arange(len(hidden)).repeat(len(kinds))  # of each beginning, ascending
    writers = _Writers(speller, spelled, hidden.repeat_interleave(len(kinds), 0), kinds.repeat(len(hidden)))
    log_probs = speller.log_shares.double().cpu().numpy()[classes].reshape(-1)
    ended: list[dict[str, float]] = [{} for _ in range(len(hidden))]
    while len(log_probs):
        odds = log_probs[:, None] + writers.next()
        for row in np.flatnonzero(odds[:, END] > -np.inf).tolist():
            text, of_place = writers.texts[row], ended[places[row]]
            if text not in spelled.words.word_index:
                of_place[text] = float(np.logaddexp(of_place.get(text, -np.inf), odds[row, END]))
        odds[:, :FIRST] = -np.inf
        odds[np.array([len(text) for text in writers.texts]) >= LONGEST] = -np.inf
        cells = []
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(places)], strict=True):
            here = places[start]
            ended[here] = dict(sorted(ended[here].items(), key=lambda item: (-item[1], item[0]))[:BEAM])
            least = min(ended[here].values()) if len(ended[here]) == BEAM else -np.inf
            cells.append(start * odds.shape[1] + _largest(odds[start:end].reshape(-1), BEAM, least))
        rows, symbols = np.unravel_index(np.concatenate(cells), odds.shape)
        log_probs, places = odds[rows, symbols], places[rows]
        writers.write(rows, symbols)
    return [list(of_place) for of_place in ended]


def _largest(values: np.ndarray, most: int, least: float) -> np.ndarray:
    """The places of the largest values above `least`, at most so many, the largest first."""
    above = np.flatnonzero(values > least)
    if len(above) > most:
        bound = np.partition(values[above], -most)[-most]
        above = above[values[above] >= bound]
    order: np.ndarray = above[np.argsort(-values[above], kind="stable")][:most]
    return order
