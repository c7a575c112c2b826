"""Register the speller of priors with `--open-vocabulary neural`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairseq_llrnn.open_vocabulary.speller_sizes import SpellerSizes
from fairseq_llrnn.open_vocabulary.vocabulary import register_speller
from fairseq_llrnn.systems.speller import KIND

if TYPE_CHECKING:
    from fairseq_llrnn.open_vocabulary.open_strings import Speller
    from fairseq_llrnn.open_vocabulary.open_table import OpenTable


@register_speller(KIND)
def neural_speller(head: Any, table: OpenTable, sizes: Any) -> Speller:
    """Return the network. sizes: SpellerSizes, or None for the default."""
    from fairseq_llrnn.open_vocabulary.spelled import SpelledStrings
    from fairseq_llrnn.open_vocabulary.speller import NeuralSpeller

    spelled = head.prior.session.memoize(KIND, lambda: SpelledStrings(table.vocabulary, table.words))
    return NeuralSpeller(
        len(table.vocabulary.names), spelled.alphabet.size, head.hidden_size, sizes or SpellerSizes(), spelled
    )
