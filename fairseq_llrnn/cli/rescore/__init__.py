"""`llrnn rescore`: rank the hypotheses of other systems' n-best lists with log-linear (and other) models."""

from fairseq_llrnn.cli.rescore.command import EXAMPLES, HELP, NAME, add_arguments, run

__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]
