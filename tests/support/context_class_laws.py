"""The law of context classes (fairseq_llrnn.testing) for all of ours, also where counts change what slots weigh."""

from torch import Tensor

from fairseq_llrnn import testing
from fairseq_llrnn.automata.automaton import END
from fairseq_llrnn.evidence.counted_slots import CountedView
from fairseq_llrnn.output.context_classes import ContextClasses, ContextView


def check_context_classes(background: ContextClasses, history: Tensor) -> None:
    """As there."""
    testing.check_context_classes(background, history, _counted)


def _counted(view: ContextView, found: testing.Weights) -> None:
    if isinstance(view, CountedView):
        words, factors = view.source.words(view.contexts), view._log_factors.double()
        for weights, of_row, (of_end, *of_slots) in zip(found, words.tolist(), factors, strict=True):
            weights[END] = weights[END] + of_end
            for word, more in zip(of_row, of_slots, strict=True):
                if word >= 0:
                    weights[word] = weights[word] + more
