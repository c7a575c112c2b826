"""The laws of all backgrounds, fast or slow, for tests of this package and of users' own backgrounds.


    class NoRepetition(Background):
        '''Forbids the last word, a smaller number for each row.'''
        …

    def test_it_obeys_the_laws():
        check_background(NoRepetition(class_of, num_classes))

Sizes: V words, S signatures, N rows (hypotheses), T time, L source length, H hidden width. The slow defaults of
`Background` are the definition; a faster override must return the same. Values are compared in the background's own
precision: use float64 weights for a sharp test. `check_context_classes` has the laws of sources of context classes,
compared with an oracle that loops over words, in float64. `check_class_features` has the laws of the rows of such
classes in a head.

background_laws.py   check_background
class_laws.py        check_context_classes, check_class_features
asserting.py         assertions that name a law
"""

from fairseq_llrnn.testing.background_laws import check_background
from fairseq_llrnn.testing.class_laws import Weights as Weights
from fairseq_llrnn.testing.class_laws import (
    check_class_features,
    check_context_classes,
    class_of,
    masses_of,
    weights_of,
)

__all__ = ["check_background", "check_class_features", "check_context_classes", "class_of", "masses_of", "weights_of"]
