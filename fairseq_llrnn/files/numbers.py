"""How large a number may be that a file gives: far beyond what is of use, and far below where float32 loses digits.

A finite number can do what NaN does: with a log weight of 1e30, the shares of a class no longer sum to one.
"""

LARGEST_WEIGHT, LEAST_WEIGHT = 1e99, 1e-99  # of words and arcs, where it is not 0
LARGEST_LOG = 1_000.0  # of a log weight in a text file, natural or decimal
LARGEST_STORED_LOG = 10_000.0  # of a log weight in a prior, in nats: what sums of those may come to
LARGEST_LOG_PROB = 1e100  # of a model's score that was kept, in nats: sums of such scores are finite
LARGEST_VALUE = 1e6  # of a feature
LARGEST_SCORE = 1e12  # of a hypothesis, and of a weight in their sum


def is_weight(number: float) -> bool:
    """Whether a weight above 0 is one that we take."""
    return LEAST_WEIGHT <= number <= LARGEST_WEIGHT
