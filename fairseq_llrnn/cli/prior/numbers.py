"""Numbers of the options of `llrnn prior` that may also be a word."""

import argparse
from typing import Literal


def number_or_learned(text: str) -> float | Literal["learned"]:
    """A number, or `learned`: then it is a parameter of the model."""
    if text == "learned":
        return "learned"
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or `learned`, found {text!r}") from None
