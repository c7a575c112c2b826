"""One small background of every kind, over the same twelve words: what combinations are tested on."""

from collections.abc import Callable

import numpy as np
import torch
from automata import WORDS, from_states, ngram_like, random_automaton
from oracles import HashBackground
from torch import Tensor, nn

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.automata.automaton import NOTHING, Automaton
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.backgrounds.background import Background, StaticBackground
from fairseq_llrnn.backgrounds.cache_background import Cache
from fairseq_llrnn.backgrounds.language_model import ModelBackground
from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground

CLASS_OF = torch.tensor([0, 0, 1, 2, 3, 4, 3, 5, 3, 4, 3, 6])
NUM_CLASSES = 8  # the last one is empty
SOURCE = torch.tensor([[4, 5, 6, 2], [7, 2, 1, 1], [8, 5, 2, 1], [2, 1, 1, 1], [4, 4, 3, 2]])


def root(seed: int = 0) -> Tensor:
    """log b₀; the words 0 and 1 are forbidden."""
    weights = torch.randn(WORDS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    weights[:2] = float("-inf")
    return weights - weights.logsumexp(0)


class TinyModel(nn.Module):
    """A recurrent model in float64 over the words."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.network = nn.Embedding(WORDS, 5), nn.GRU(5, 6, batch_first=True)
        self.output = nn.Linear(6, WORDS)
        self.double()

    def forward(self, previous: Tensor, last: bool) -> Tensor:
        self.to(previous.device)
        hidden, _ = self.network(self.embedding(previous))
        logits: Tensor = self.output(hidden[:, -1:] if last else hidden)
        return logits.log_softmax(-1)


def _automaton(automaton: Automaton, seed: int) -> Background:
    return AutomatonBackground(CLASS_OF, NUM_CLASSES, root(seed), automaton)


def grammar(seed: int = 0) -> Background:
    """Every state lists all words that it allows."""
    states = random_automaton(seed, num_states=6)[0]
    rows = [states.row(q) for q in range(states.num_states)]
    return _automaton(from_states(rows, WORDS, fail=[NOTHING] * len(rows)), seed)


def lexical(seed: int = 0) -> Background:
    random = np.random.default_rng(seed)
    pairs = np.repeat(np.arange(4, 8), 7), np.tile(np.arange(4, 11), 4)
    table = LexicalTable.from_pairs(*pairs, random.random(28), 9, 3)
    words, counted = torch.arange(WORDS) >= 4, torch.arange(9) >= 3
    made = LexicalBackground(CLASS_OF, NUM_CLASSES, root(seed), table, words, counted, 0.3, learned=True)
    return made.double()


ATOMS: dict[str, Callable[[], Background]] = {
    "uniform": lambda: StaticBackground(CLASS_OF, NUM_CLASSES, torch.zeros(WORDS, dtype=torch.float64)),
    "static": lambda: StaticBackground(CLASS_OF, NUM_CLASSES, root()),
    "grammar": grammar,
    "automaton": lambda: _automaton(random_automaton(3)[0], 0),
    "ngram": lambda: _automaton(ngram_like(5, WORDS)[0], 0),
    "folds": lambda: _automaton(random_automaton(2, blocks=3)[0], 0),
    "lexical": lexical,
    "cache": lambda: Cache(CLASS_OF, NUM_CLASSES, root(), 3, 0.3, 0.8, learned=True),
    "model": lambda: ModelBackground(CLASS_OF, NUM_CLASSES, root(), 2, TinyModel(), 0.7),
    "slow": lambda: HashBackground(CLASS_OF, NUM_CLASSES),
}
