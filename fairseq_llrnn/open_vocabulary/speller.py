"""A network of characters that spells words outside the dictionary, given the state of the model and the open class.

Sizes: m strings or prefixes, P positions of their characters and ends, A symbols, O open classes, K kinds of spelling
that they share, H hidden width, E and D the widths of the speller's embeddings and of its LSTM.

h is the hidden state that predicts the word.

    s_0          =  tanh(W₀ h + c₀)                                    initial state of the LSTM
    s_i          =  LSTM(s_{i−1}, row of the previous character)
    z_i(k)       =  tanh(W₁ s_i + row of kind k)                       (E,)
    N(c | i, k)  ∝  b(c | i) exp(u_cᵀ z_i(k) + d_c)
    N(w | h, o)  =  Σ_k q_o(k) Π_i N(w_i | i, k)
    P(w | h, o)  =  (1 − g_o) P_o(w | w ∉ V) + g_o N(w | h, o)

So each character has a log-linear layer, whose background b is the n-grams of all classes together. P_o are the n-grams
of one class, with its numbers. A class is a mixture of a few kinds, because a step for each of fifty classes would cost
more than the rest of the model. Before training u and d are zero and g_o is a half, so the speller begins as n-grams.
Whatever the network learns, no string costs more than −log(1 − g_o) above them.

The probabilities of all strings outside the dictionary V sum to one. For P_o(w | w ∉ V) see
open_vocabulary/vocabulary.py. N(· | k) allows no end after the empty prefix or after a word of V, so all its strings
are outside V. It is a distribution over symbols after any prefix. It remains to show that strings end. z is inside (−1,
1)ᴱ, so all scores are inside ±B, with B = max_c ‖u_c‖₁ + |d_c|. n-grams have finitely many contexts, in each of which
the end has at least a probability β > 0. After a prefix longer than all words of V, N(end) ≥ β e^{−2B} =: ε. So at most
(1 − ε)ⁿ remains after n more characters, which tends to zero.

Sources: Luong & Manning 2016, §4.3 (a word is spelled from the state that predicts it); Mielke & Eisner 2019.

`draw_strings` samples strings, and `best_strings` finds probable ones by a beam search. As with n-grams alone
(open_vocabulary/spelling.py), samples have unknown characters as often as the model, and are truncated after
LONGEST_DRAWN characters. Strings of the beam search have known characters, at most LONGEST. None is a word of the
dictionary. `best_strings` keeps the BEAM most probable pairs of a prefix and a kind of each place. It can miss the most
probable string, if one of its prefixes is not among them, and it sums the kinds in the beam only. A prefix is
at least as probable as its continuations, so a search stops when BEAM strings are better than all prefixes. The places
of a batch are searched together, because a step of the network for many prefixes takes hardly longer than for few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from fairseq_llrnn.open_vocabulary.alphabet import BEGIN, END, FIRST, OTHER
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.open_vocabulary.spelled import WHOLE, Spelled, SpelledStrings, starts_of
from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.open_vocabulary.spelling import LONGEST, LONGEST_DRAWN, draw_columns

MOST_KINDS = 8  # K is at most this
AT_ONCE = 64  # places searched together
CELLS = 1 << 22  # positions × kinds × symbols in one chunk, without a gradient


class Speller(nn.Module):
    """P(w | h, o) of strings outside the dictionary (module docstring)."""

    def __init__(self, spelled: SpelledStrings, hidden_size: int, sizes: SpellerSizes) -> None:
        """spelled: the strings of a table. hidden_size: H."""
        super().__init__()
        self.spelled, self.hidden_size = spelled, hidden_size
        num_classes, num_symbols = len(spelled.vocabulary.names), spelled.alphabet.size
        self.num_symbols = num_symbols
        self.characters = nn.Embedding(num_symbols + 1, sizes.embed_dim)
        self.start = nn.Linear(hidden_size, 2 * sizes.hidden_size)
        self.lstm = nn.LSTM(sizes.embed_dim, sizes.hidden_size, batch_first=True)
        self.inner = nn.Linear(sizes.hidden_size, sizes.embed_dim)
        self.num_kinds = min(MOST_KINDS, num_classes)
        self.kinds = nn.Embedding(self.num_kinds, sizes.embed_dim)
        self.shares = nn.Parameter(torch.randn(num_classes, self.num_kinds))  # q before softmax
        self.output = nn.Linear(sizes.embed_dim, num_symbols)  # u and d
        self.gate = nn.Parameter(torch.zeros(num_classes))  # logit of g
        self.dropout = nn.Dropout(sizes.dropout)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def untouched(self) -> Tensor:
        """Return 0 with a gradient to every parameter, for batches with nothing to spell."""
        return torch.stack([parameter.sum() for parameter in self.parameters()]).sum() * 0.0

    def log_probs(self, hidden: Tensor, spelled: Spelled, log_ngrams: Tensor) -> Tensor:
        """Return log P(w | h, o) of strings, (m, O), at least float32.

        Args:
            hidden: the state that predicts each string, (m, H).
            log_ngrams: log P_o(w | w ∉ V), (m, O).
        """
        return self.mixed(self.log_neural(hidden, spelled), log_ngrams)

    def mixed(self, log_neural: Tensor, log_ngrams: Tensor) -> Tensor:
        """Return the log of the mixture of both, (m, O) each."""
        gate = self.gate.to(log_neural.dtype)
        counted = functional.logsigmoid(-gate) + log_ngrams.to(log_neural)
        return torch.logaddexp(counted, functional.logsigmoid(gate) + log_neural)

    def log_neural(self, hidden: Tensor, spelled: Spelled) -> Tensor:
        """Return log N(w | h, o), (m, O), at least float32."""
        by_kind = self.log_by_kind(hidden, spelled)
        return (by_kind.unsqueeze(1) + self.log_shares.to(by_kind)).logsumexp(-1)

    @property
    def log_shares(self) -> Tensor:
        """Return log q_o(k), (O, K)."""
        return functional.log_softmax(self.shares.to(_wide(self.shares)), dim=-1)

    def log_by_kind(self, hidden: Tensor, spelled: Spelled) -> Tensor:
        """Return log Π_i N(w_i | i, k), (m, K), at least float32."""
        at_once = max(1, CELLS // (self.num_kinds * self.num_symbols))
        if torch.is_grad_enabled() or len(spelled.read) <= at_once:
            return self._log_by_kind(hidden, spelled)
        ends, parts, first = starts_of(spelled.lengths), [], 0
        while first < len(hidden):
            room = int((ends <= ends[first] + at_once).sum()) - 1
            rows = slice(first, max(room, first + 1))
            parts.append(self._log_by_kind(hidden[rows], spelled.of(rows)))
            first = rows.stop
        return torch.cat(parts)

    def _log_by_kind(self, hidden: Tensor, spelled: Spelled) -> Tensor:
        device = self.gate.device
        read, write, lengths = spelled.read.to(device), spelled.write.to(device), spelled.lengths
        inside = (torch.arange(int(lengths.max())) < lengths.unsqueeze(1)).to(device)  # shape: (m, longest)
        padded = self.dropout(self.characters(read.new_zeros(inside.shape).masked_scatter(inside, read)))
        rows = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(rows, self.begin(hidden))[0], batch_first=True)
        inner = torch.tanh(self.inner(self.dropout(states[inside])).unsqueeze(1) + self.kinds.weight)  # (P, K, E)
        inner, weight, bias = self._widened(inner, spelled.log_base)
        scores = functional.linear(inner, weight) + bias.unsqueeze(1)  # shape: (P, K, A)
        chosen = (inner * weight[write].unsqueeze(1)).sum(2) + bias.gather(1, write.unsqueeze(1))  # shape: (P, K)
        steps = chosen - scores.logsumexp(-1)
        string = torch.arange(len(lengths)).repeat_interleave(lengths).to(device)
        total = steps.new_zeros(len(lengths), self.num_kinds).index_add(0, string, steps)
        return total + spelled.log_unknown.to(total).unsqueeze(1)

    # ---- step by step, for searches ---------------------------------------------------------------------------------

    def begin(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the LSTM's state before a string: hidden (m, H) -> (1, m, D), twice."""
        states = self.start(hidden.to(self.start.weight.dtype)).tanh().unsqueeze(0)
        first, second = states.chunk(2, dim=-1)
        return first.contiguous(), second.contiguous()

    def step(
        self, symbols: Tensor, state: tuple[Tensor, Tensor], of_kind: Tensor, log_base: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return log N(· | k) of the next symbol, and the state after the symbol that was read.

        Args:
            symbols: read, (m,).
            state: (1, m, D), twice.
            of_kind: (m,).
            log_base: (m, A).

        Returns:
            (m, A), at least float32, and the state.
        """
        states, state = self.lstm(self.characters(symbols).unsqueeze(1), state)
        inner = torch.tanh(self.inner(states[:, 0]) + self.kinds(of_kind))
        inner, weight, bias = self._widened(inner, log_base)
        return functional.log_softmax(inner @ weight.T + bias, dim=-1), state

    def _widened(self, inner: Tensor, log_base: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return z, u and d + log b, (P, A), in at least float32 for sums over symbols."""
        wide = _wide(inner)
        bias = self.output.bias.to(wide) + log_base.to(inner.device, wide)
        return inner.to(wide), self.output.weight.to(wide), bias

    # ---- strings of a table ------------------------------------------------------------------------------------------

    def log_strings(self, states: Tensor, ids: np.ndarray, log_ngrams: Tensor) -> Tensor:
        """Return log P(w | h, o) of the strings with these ids: states (m, H), log P_o(w | w ∉ V) (m, O) -> (m, O)."""
        return self.log_probs(states, self.spelled.of(ids), log_ngrams)

    def write(
        self, table: OpenTable, states: Tensor, classes: np.ndarray, random: np.random.Generator | None,
        strings: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Write the ids of spelled strings into `strings` (m,), and return where n-grams spell instead, (m,) bool.

        Args:
            states: (m, H). random: to draw strings. None: the best candidates of network and n-grams.
        """
        if random is None:
            for start in range(0, len(classes), AT_ONCE):
                rows = slice(start, start + AT_ONCE)
                best = self._best(table, self.spelled, states[rows], classes[rows])
                strings[rows] = [table.words.open(string) for string in best]
            return np.zeros(len(classes), dtype=bool)
        gate = self.gate.detach().double().sigmoid().cpu().numpy()[classes]
        chosen = np.flatnonzero(random.random(len(classes)) < gate)
        chosen_states = states[torch.from_numpy(chosen).to(states.device)]
        drawn = draw_strings(self, self.spelled, chosen_states, classes[chosen], random)
        strings[chosen] = [table.words.open(string) for string in drawn]
        left = np.ones(len(classes), dtype=bool)
        left[chosen] = False
        return left

    @torch.no_grad()
    def _best(self, table: OpenTable, spelled: SpelledStrings, hidden: Tensor, classes: np.ndarray) -> Iterator[str]:
        """Yield the most probable string at each place among the candidates of the network and the n-grams."""

        by_network = best_strings(self, spelled, hidden, classes)
        proposed = [
            [table.words.symbols[table.spelt(o)], *candidates]
            for o, candidates in zip(classes.tolist(), by_network, strict=True)
        ]
        place = np.arange(len(classes)).repeat([len(candidates) for candidates in proposed])
        strings = [string for candidates in proposed for string in candidates]
        log_ngrams = torch.from_numpy(table.log_probs_of(strings)).to(hidden.device)
        states = hidden[torch.from_numpy(place).to(hidden.device)]
        log_probs = self.log_probs(states, spelled.of_strings(strings), log_ngrams)
        odds = log_probs.double().cpu().numpy()[np.arange(len(strings)), classes[place]]
        for candidates, log_prob in zip(proposed, np.split(odds, np.flatnonzero(np.diff(place)) + 1), strict=True):
            yield candidates[int(log_prob.argmax())]


def _wide(values: Tensor) -> torch.dtype:
    return torch.promote_types(values.dtype, torch.float32)


BEAM = 16


class _Writers:
    """Prefixes of strings, each of one kind, and the state of the network after them."""

    def __init__(self, speller: Speller, spelled: SpelledStrings, hidden: Tensor, kinds: Tensor) -> None:
        """hidden: (m, H). kinds: (m,)."""
        self.speller, self.spelled, self.kinds = speller, spelled, kinds
        self.ngrams = spelled.model(WHOLE)
        self.state = speller.begin(hidden)
        self.tails = self.ngrams.beginnings(len(hidden))
        self.read = torch.full((len(hidden),), BEGIN, device=hidden.device)
        self.texts = [""] * len(hidden)
        self.log_ngrams = np.zeros(len(hidden))  # of the prefixes
        self.log_next = np.zeros((0, 0), dtype=np.float32)  # of each next symbol, by n-grams

    def next(self) -> np.ndarray:
        """Read the last symbol and return log N of each next symbol, (m, A) float64."""
        self.log_next = self.spelled.log_base(self.tails)
        mixed = self.log_next
        if self.spelled.lexicon is not None:
            mixed = mixed.copy()
            self.spelled.lexicon.blend(self.texts, self.log_ngrams).apply(mixed)
        log_base = torch.from_numpy(mixed)
        no_end = torch.tensor([not text or text in self.spelled.vocabulary_words for text in self.texts])
        log_base[no_end, END] = -torch.inf
        odds, self.state = self.speller.step(self.read, self.state, self.kinds, log_base.to(self.read.device))
        answer: np.ndarray = odds.double().cpu().numpy()
        return answer

    def write(self, rows: np.ndarray, symbols: np.ndarray, letters: Sequence[str]) -> None:
        """Extend some prefixes, (n,), each by a symbol, (n,), and its character, with OTHER for an unknown one."""
        index = torch.from_numpy(rows).to(self.read.device)
        self.state = self.state[0][:, index].contiguous(), self.state[1][:, index].contiguous()
        read = np.where(symbols == OTHER, self.ngrams.alphabet.size, symbols)
        self.log_ngrams = self.log_ngrams[rows] + self.log_next[rows, np.where(symbols == OTHER, BEGIN, symbols)]
        self.kinds, self.read = self.kinds[index], torch.from_numpy(read).to(self.read)
        self.tails = self.ngrams.tails_after(self.tails[rows], symbols)
        self.texts = [self.texts[row] + letter for row, letter in zip(rows.tolist(), letters, strict=True)]


@torch.no_grad()
def draw_strings(
    speller: Speller, spelled: SpelledStrings, hidden: Tensor, classes: np.ndarray, random: np.random.Generator
) -> list[str]:
    """Sample a string of each class (m,) from N(· | h, o), with h from hidden (m, H)."""
    kinds = draw_columns(speller.log_shares.exp().double().cpu().numpy()[classes], random)
    writers = _Writers(speller, spelled, hidden, torch.from_numpy(kinds).to(hidden.device))
    strings, row_of = [""] * len(classes), np.arange(len(classes))  # the string of each writer
    for _ in range(LONGEST_DRAWN):
        if len(row_of) == 0:
            break
        chosen = draw_columns(np.exp(writers.next()), random)
        continuing = np.flatnonzero(chosen != END)
        symbols = np.where(chosen[continuing] == BEGIN, OTHER, chosen[continuing])
        row_of = row_of[continuing]
        writers.write(continuing, symbols, [chr(point) for point in spelled.alphabet.points(symbols, random).tolist()])
        for row, text in zip(row_of.tolist(), writers.texts, strict=True):
            strings[row] = text
    return strings


@torch.no_grad()
def best_strings(
    speller: Speller, spelled: SpelledStrings, hidden: Tensor, classes: np.ndarray
) -> list[Sequence[str]]:
    """Return at most BEAM strings of N(· | h, o) at each place, the most probable ones that the beam search finds.

    Args:
        hidden: (m, H). classes: (m,).
    """
    kinds = torch.arange(speller.num_kinds, device=hidden.device)
    places = np.arange(len(hidden)).repeat(len(kinds))  # of each prefix, ascending
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
            place = places[start]
            ended[place] = dict(sorted(ended[place].items(), key=lambda item: (-item[1], item[0]))[:BEAM])
            least = min(ended[place].values()) if len(ended[place]) == BEAM else -np.inf
            cells.append(start * odds.shape[1] + _largest(odds[start:end].reshape(-1), BEAM, least))
        rows, symbols = np.unravel_index(np.concatenate(cells), odds.shape)
        log_probs, places = odds[rows, symbols], places[rows]
        writers.write(rows, symbols, spelled.alphabet.text(symbols.tolist()))
    return [list(of_place) for of_place in ended]


def _largest(values: np.ndarray, most: int, least: float) -> np.ndarray:
    """Return the indices of at most `most` values above `least`, the largest first."""
    above = np.flatnonzero(values > least)
    if len(above) > most:
        bound = np.partition(values[above], -most)[-most]
        above = above[values[above] >= bound]
    order: np.ndarray = above[np.argsort(-values[above], kind="stable")][:most]
    return order
