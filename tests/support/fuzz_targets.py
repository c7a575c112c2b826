"""What is fed with damaged inputs: a *target* makes its input at a fresh place, and says "accepted" or "refused"."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

Target = Callable[[Path, random.Random], str]
LONGEST_MESSAGE = 1500  # characters


def check_said(message: str) -> None:
    """A message is one line, of a length that can be read."""
    wrong = "\n" in message or len(message) > LONGEST_MESSAGE
    assert not wrong, f"a message of {len(message)} characters or several lines: {message[:200]}"
