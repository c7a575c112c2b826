"""End a script in one line after a user's error, without a stack trace."""

import sys
from collections.abc import Callable

from fairseq_llrnn.errors import LLRNNError


def exit_status(script: str, act: Callable[[], int]) -> int:
    """Return the result of `act`, or 2 after a user's error or an unreadable file, which is printed in one line."""
    try:
        return act()
    except (LLRNNError, OSError) as error:
        print(f"{script}: error: {error}", file=sys.stderr)
        return 2
