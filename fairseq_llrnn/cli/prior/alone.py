"""Options of `llrnn prior` that mean nothing by themselves."""

import argparse
from collections.abc import Sequence

from fairseq_llrnn.errors import OptionError


def refuse_alone(args: argparse.Namespace, names: Sequence[str], needed: str) -> None:
    """Raise OptionError for the first of some options that is given; `needed` is what it needs and what is not."""
    for name in names:
        if getattr(args, name) not in (None, []):
            raise OptionError(f"--{name.replace('_', '-')}: it needs {needed}; add that, or leave it out")
