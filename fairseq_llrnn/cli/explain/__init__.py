"""`llrnn explain`: why a trained model gave each word of a sentence, or of a translation, its probability."""

from fairseq_llrnn.cli.explain.command import EXAMPLES, HELP, NAME, add_arguments, run

__all__ = ["EXAMPLES", "HELP", "NAME", "add_arguments", "run"]
