"""llrnn_bag: a classifier that reads a text as a bag of words, as fastText does, with a log-linear head on top."""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.models import register_model
from fairseq.tasks import FairseqTask

from fairseq_llrnn.plugin.announced import registered
from fairseq_llrnn.plugin.models.extensions import HEAD, check_dropouts, check_sizes, takes
from fairseq_llrnn.plugin.models.options import SourceConfig, prior_of, source_embedding
from fairseq_llrnn.systems.classification.plugin.label_decoder import LabelDecoder, LabelModel, TextEncoder, label_head
from fairseq_llrnn.systems.classification.text_vectors import BagOfWords


@dataclass
@takes(HEAD)
class LLRNNBagConfig(SourceConfig):
    """Options of llrnn_bag."""

    encoder_embed_dim: int = field(default=100, metadata={"help": "width of the words' vectors, and of a text's"})
    dropout: float = field(default=0.0, metadata={"help": "dropout on a text's vector"})


@registered(register_model, "llrnn_bag", dataclass=LLRNNBagConfig)
class LLRNNBag(LabelModel):
    """The mean of the vectors of a text's words -> log-linear head over its labels."""

    @classmethod
    def build_model(cls, args: Namespace | LLRNNBagConfig, task: FairseqTask) -> "LLRNNBag":
        """Build from the options and the task's prior. Raises OptionError: another task, or a wrong number."""
        prior_of(task, "llrnn_bag", "llrnn_classification")
        check_sizes(args, "encoder_embed_dim")
        check_dropouts(args, "dropout")
        words, size = task.source_dictionary, args.encoder_embed_dim
        bag = BagOfWords(len(words), words.pad(), size, args.dropout, source_embedding(args, task, size))
        encoder, head = TextEncoder(words, bag, task.max_positions()), label_head(args, task, size)
        bag.sparse_gradients = head.normaliser.sparse_gradients
        return cls(encoder, LabelDecoder(task.target_dictionary, head))
