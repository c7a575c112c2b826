"""The interface of an expert: a class that returns, for every context, on which words it fires and how strongly.

An expert e gives every word a value v_e(K, x), and the model's score of a word is aᵀφ(x) + Σ_e a_e(K) v_e(K, x). At
every step the network weights it by the gate a_e(K) (Dymetman & Xiao 2016, §6). The paper's example is an expert that
has the answer n to a question. It fires on every word that is not a number, and on n:

    class KnowsTheAnswer(Expert):
        def open(self, prior):
            self.answers = read_table()

        def fires(self, source, prefix):
            n = self.answers.get(" ".join(source))
            return Firing(groups={"Kind:Number": -1.0}, exceptions={n: 0.0}) if n else Firing()

(A constant added to all values changes no probability: 0 on words and n, −1 on other numbers, equals 1 and 0.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairseq_llrnn.prior.prior import Prior


@dataclass(frozen=True)
class Firing:
    """The value of every word in one context.

    v(x) = exceptions[x] for a word among them, and for all others v(x) = everywhere + Σ_g groups[g] φ_g(x).

    Args:
        everywhere: for all words.
        groups: by the name of an output feature of the prior, e.g. `POS:NUM`, multiplied by the word's value of it.
        exceptions: by word. Words that are neither in the dictionary nor evidence of the source are ignored.
    """

    everywhere: float = 0.0
    groups: Mapping[str, float] = field(default_factory=dict)
    exceptions: Mapping[str, float] = field(default_factory=dict)


class Expert:
    """Base class of experts, created without arguments."""

    looks_at_prefix = False  # True: called at every position; else once for each source, with an empty prefix

    @property
    def name(self) -> str:
        """Return the name in messages."""
        return type(self).__name__

    def open(self, prior: Prior) -> None:
        """Prepare the expert, e.g. read a table. Called once, before anything else. `prior.symbols` are the words."""

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        """Return the values of the next word.

        Must depend only on its arguments, because answers are cached, and training, validation and search must agree.

        Args:
            source: the words of the source sentence; empty in a language model.
            prefix: the words of the target so far (since the last </s>); empty unless `looks_at_prefix`.
        """
        raise NotImplementedError
