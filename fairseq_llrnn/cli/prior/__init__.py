"""`llrnn prior`: treebanks, lexicons and counts -> the prior directory that training needs."""

from fairseq_llrnn.cli.prior.command import EXAMPLES, HELP, NAME, add_arguments, run

__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]
