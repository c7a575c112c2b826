"""What a user writes: a class that says, for every context, on which words it fires and how strongly.

An expert e gives every word a value v_e(K, x), and the model's score of a word is aᵀφ(x) + Σ_e a_e(K) v_e(K, x): the
network decides at every step how much that counts, by the gate a_e(K) (Dymetman & Xiao 2016, §6). The paper's
example, an expert that knows the answer n to a question, fires on every word that is no number, and on n:

    class KnowsTheAnswer(Expert):
        def open(self, prior):
            self.answers = read_table()

        def fires(self, source, prefix):
            n = self.answers.get(" ".join(source))
            return Firing(groups={"Kind:Number": -1.0}, exceptions={n: 0.0}) if n else Firing()

(A constant added to all values changes no probability: 0 on words and n, −1 on other numbers, is 1 and 0.)
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
        groups: by the name of an output feature of the prior, e.g. `POS:NUM`; times the word's value of it.
        exceptions: by word. One that is neither in the dictionary nor evidence of the source changes nothing.
    """

    everywhere: float = 0.0
    groups: Mapping[str, float] = field(default_factory=dict)
    exceptions: Mapping[str, float] = field(default_factory=dict)


class Expert:
    """Base class of experts. It is made without arguments."""

    looks_at_prefix = False  # True: asked at every position; else once for each source, with an empty prefix

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    def open(self, prior: Prior) -> None:
        """Called once, before anything else, e.g. to read a table. `prior.symbols` are the words."""

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        """What it says of the next word.

        Must depend on nothing else than its arguments: an answer is kept, and training, validation and search must
        agree.

        Args:
            source: the words of the source sentence; none in a language model.
            prefix: the words of the target so far (since the last </s>); none unless `looks_at_prefix`.
        """
        raise NotImplementedError
