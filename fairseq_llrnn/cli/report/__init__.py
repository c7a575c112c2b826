"""`llrnn report`: systems' translations of one test beside each other, on the terminal and as a page to read."""

from fairseq_llrnn.cli.report.command import EXAMPLES, HELP, NAME, add_arguments, run

__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]
