"""Sub-commands that need fairseq: it is imported quietly, or the user is told what to install."""

import logging

from fairseq_llrnn import register


def need_fairseq() -> None:
    """To be called before a module of plugin/ is imported. Raises OptionError where fairseq is not installed."""
    logging.getLogger("fairseq").setLevel(logging.WARNING)  # it reports while it is imported
    register()
