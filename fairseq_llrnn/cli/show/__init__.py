"""`llrnn show`: what a prior knows, as a whole or about single words. Needs neither model nor fairseq."""

from fairseq_llrnn.cli.show.command import EXAMPLES, HELP, NAME, add_arguments, run

__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]
