"""`llrnn prior`: treebanks, lexicons and counts -> the prior directory that training needs."""

from fairseq_llrnn.cli.prior.command import EXAMPLES, HELP, NAME, add_arguments, run
from fairseq_llrnn.cli.prior.old_names import OLD_NAMES

__all__ = ["EXAMPLES", "HELP", "NAME", "OLD_NAMES", "add_arguments", "run"]
