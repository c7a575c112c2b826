"""llrnn_bag: a classifier that reads a text as a bag of words, as fastText does, with a log-linear head on top."""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.models import register_model
from fairseq.tasks import FairseqTask

from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.models.options import prior_of
from fairseq_llrnn.plugin.models.ranges import check_dropouts, check_sizes
from fairseq_llrnn.plugin.models.source_side import SourceConfig, source_embedding
from fairseq_llrnn.plugin.models.tree_options import TreeConfig
from fairseq_llrnn.systems.classification.plugin.label_decoder import LabelDecoder, LabelModel, TextEncoder, label_head
from fairseq_llrnn.systems.classification.text_vectors import BagOfWords


@dataclass
class LLRNNBagConfig(SourceConfig, TreeConfig):
    """Options of llrnn_bag."""

    encoder_embed_dim: int = field(default=100, metadata={"help": "width of the words' vectors, and of a text's"})
    dropout: float = field(default=0.0, metadata={"help": "dropout on a text's vector"})


@registered(register_model, "llrnn_bag", dataclass=LLRNNBagConfig)
class LLRNNBag(LabelModel):
    """The mean of the vectors of a text's words -> log-linear head over its labels."""

    @classmethod
    def build_model(cls, args: Namespace | LLRNNBagConfig, task: FairseqTask) -> "LLRNNBag":
        """Build from the options and the task's prior. Raises OptionError: another task, or a wrong number."""
        prior = prior_of(task, "llrnn_bag", "llrnn_classification")
        check_sizes(args, "encoder_embed_dim")
        check_dropouts(args, "dropout")
        words, size = task.source_dictionary, args.encoder_embed_dim
        read, sparse = source_embedding(args, task, size), getattr(args, "tree_sparse_gradients", False)
        bag = BagOfWords(len(words), words.pad(), size, args.dropout, read, sparse)
        encoder = TextEncoder(words, bag, task.max_positions())
        return cls(encoder, LabelDecoder(task.target_dictionary, label_head(args, prior, size)))
