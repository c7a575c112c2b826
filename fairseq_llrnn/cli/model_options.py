"""Options that say where a model's data, prior and experts are."""

import argparse

PARTS = ("data", "prior", "expert")  # in the order of Places (plugin/compat/loading.py)
TRANSLATES = "source_prior"  # and of those that translate

_WHAT = {
    "data": ("DIR", "data folder{of} (default: the one the checkpoint was trained with)"),
    "prior": ("DIR", "prior{of} (default: the one the checkpoint was trained with)"),
    "expert": ("FILE:Class", "experts{of} (several with commas), as in its training; no checkpoint remembers them"),
    TRANSLATES: ("DIR", "prior of the source's words{of} (default: the one the checkpoint was trained with)"),
}


def add_places(group: "argparse._ActionsContainer", prefix: str = "", of: str = "", translates: bool = True) -> None:
    """--{prefix}data, --{prefix}prior, --{prefix}expert, and --{prefix}source-prior if the model `translates`.

    of: which model it is.
    """
    for part in (*PARTS, TRANSLATES) if translates else PARTS:
        metavar, what = _WHAT[part]
        group.add_argument(f"--{prefix}{part.replace('_', '-')}", metavar=metavar, help=what.format(of=of))
