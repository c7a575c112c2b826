"""`llrnn prior`: treebanks, lexicons and counts -> the prior directory that training needs."""

from fairseq_llrnn.cli.prior.command import HELP, NAME, add_arguments, run

__all__ = ["HELP", "NAME", "add_arguments", "run"]
