"""How a script ends where its user made a mistake: one line, and no stack trace."""

import sys
from collections.abc import Callable

from fairseq_llrnn.errors import LLRNNError


def exit_status(script: str, act: Callable[[], int]) -> int:
    """What `act` returns; 2 where it raises a user's error or cannot read a file, which is printed in one line."""
    try:
        return act()
    except (LLRNNError, OSError) as error:
        print(f"{script}: error: {error}", file=sys.stderr)
        return 2
