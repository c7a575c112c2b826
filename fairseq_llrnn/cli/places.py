"""Where results go: what would stop the writing is found out before anything is computed."""

import os

from fairseq_llrnn.errors import OptionError


def check_place(path: str, said: str) -> None:
    """Raise OptionError unless `path` can be a new file, or one to replace. `said`: how the user named it."""
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise OptionError(f"{said}: expected a place in a folder, but there is no such folder; make it first")
    if os.path.exists(path) and not os.path.isfile(path):
        raise OptionError(f"{said}: expected a file to write or replace, found a folder or device; give another")
