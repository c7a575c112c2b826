"""Options that say where a model's data, prior and experts are."""

import argparse

PARTS = ("data", "prior", "expert")  # in the order of plugin.load.Places

_WHAT = {
    "data": ("DIR", "data folder{of} (default: the one the checkpoint was trained with)"),
    "prior": ("DIR", "prior{of} (default: the one the checkpoint was trained with)"),
    "expert": ("FILE:Class", "experts{of} (several with commas), as in its training; no checkpoint remembers them"),
}


def add_places(group: "argparse._ActionsContainer", prefix: str = "", of: str = "") -> None:
    """--{prefix}data, --{prefix}prior, --{prefix}expert; `of` says of which model."""
    for part, (metavar, what) in _WHAT.items():
        group.add_argument(f"--{prefix}{part}", metavar=metavar, help=what.format(of=of))
