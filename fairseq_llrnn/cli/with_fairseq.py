"""Sub-commands that need fairseq: it is imported quietly, or the user is told what to install."""

import logging

from fairseq_llrnn import register


def need_fairseq() -> None:
    """To be called before a module of plugin/ is imported. Raises OptionError where fairseq is not installed."""
    for logger in ("fairseq", "fairseq_llrnn.plugin"):  # they report while they are imported, and load a model
        logging.getLogger(logger).setLevel(logging.WARNING)
    register()
