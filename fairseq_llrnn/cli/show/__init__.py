"""`llrnn show`: what a prior knows, as a whole or about single words. Needs neither model nor fairseq."""

from fairseq_llrnn.cli.show.command import HELP, NAME, add_arguments, run

__all__ = ["HELP", "NAME", "add_arguments", "run"]
