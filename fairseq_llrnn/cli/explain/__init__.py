"""`llrnn explain`: why a trained model gave each word of a sentence, or of a translation, its probability."""

from fairseq_llrnn.cli.explain.command import HELP, NAME, add_arguments, run

__all__ = ["HELP", "NAME", "add_arguments", "run"]
