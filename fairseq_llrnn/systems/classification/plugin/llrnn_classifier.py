"""Classifiers with a log-linear head: llrnn_bag and llrnn_classifier.

llrnn_bag reads a text as a bag of words, like fastText. llrnn_classifier pools the states of a recurrent network.
"""

from argparse import Namespace
from dataclasses import dataclass, field

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from fairseq.tasks import FairseqTask

from fairseq_llrnn.networks.recurrent import RecurrentEncoder, all_cells
from fairseq_llrnn.plugin.models.extensions import HEAD, check_dropouts, check_sizes, takes
from fairseq_llrnn.plugin.models.options import SourceConfig, prior_of, source_embedding
from fairseq_llrnn.systems.classification.plugin.label_decoder import (
    POOLINGS,
    BagOfWords,
    LabelDecoder,
    LabelModel,
    PooledStates,
    TextEncoder,
    label_head,
)


@dataclass
@takes(HEAD)
class LLRNNBagConfig(SourceConfig):
    """Options of llrnn_bag."""

    encoder_embed_dim: int = field(default=100, metadata={"help": "width of the words' vectors, and of a text's"})
    dropout: float = field(default=0.0, metadata={"help": "dropout on a text's vector"})


@register_model("llrnn_bag", dataclass=LLRNNBagConfig)
class LLRNNBag(LabelModel):
    """The mean of the vectors of a text's words -> log-linear head over its labels."""

    @classmethod
    def build_model(cls, args: Namespace | LLRNNBagConfig, task: FairseqTask) -> "LLRNNBag":
        """Build from the options and the task's prior. Raises OptionError for another task, or a number out of range.
        """
        prior_of(task, "llrnn_bag", "llrnn_classification")
        check_sizes(args, "encoder_embed_dim")
        check_dropouts(args, "dropout")
        words, size = task.source_dictionary, args.encoder_embed_dim
        bag = BagOfWords(len(words), words.pad(), size, args.dropout, source_embedding(args, task, size))
        encoder, head = TextEncoder(words, bag, task.max_positions()), label_head(args, task, size)
        bag.sparse_gradients = head.normaliser.sparse_gradients
        return cls(encoder, LabelDecoder(task.target_dictionary, head))


CONSTANT = [name for name, cell in all_cells().items() if cell.constant is None]


@dataclass
@takes(HEAD)
class LLRNNClassifierConfig(SourceConfig):
    """Options of llrnn_classifier."""

    cell: ChoiceEnum(CONSTANT) = field(  # type: ignore[valid-type]
        default="lstm", metadata={"help": "kind of recurrent cell; rnn: Elman's"}
    )
    encoder_embed_dim: int = field(default=256, metadata={"help": "width of the words' vectors"})
    encoder_hidden_size: int = field(default=256, metadata={"help": "width of the layers, per direction"})
    encoder_layers: int = field(default=1, metadata={"help": "number of layers, each in both directions"})
    pooling: ChoiceEnum(POOLINGS) = field(  # type: ignore[valid-type]
        default="max", metadata={"help": "pooling of the states at words; last: the last state of each direction"}
    )
    dropout: float = field(default=0.0, metadata={"help": "dropout on input, between layers and on output"})


@register_model("llrnn_classifier", dataclass=LLRNNClassifierConfig)
class LLRNNClassifier(LabelModel):
    """A recurrent network in both directions, pooled -> log-linear head over labels."""

    @classmethod
    def build_model(cls, args: Namespace | LLRNNClassifierConfig, task: FairseqTask) -> "LLRNNClassifier":
        """Build from the options and the task's prior. Raises OptionError for another task, or a number out of range.
        """
        prior_of(task, "llrnn_classifier", "llrnn_classification")
        check_sizes(args, "encoder_embed_dim", "encoder_hidden_size", "encoder_layers")
        check_dropouts(args, "dropout")
        words, p = task.source_dictionary, args.dropout
        reader = RecurrentEncoder(
            len(words),
            words.pad(),
            args.encoder_embed_dim,
            args.encoder_hidden_size,
            args.encoder_layers,
            args.cell,
            dropout_in=p,
            dropout_between=p,
            dropout_out=p,
            embedding=source_embedding(args, task, args.encoder_embed_dim),
        )
        network = PooledStates(reader, args.pooling)
        encoder = TextEncoder(words, network, task.max_positions())
        return cls(encoder, LabelDecoder(task.target_dictionary, label_head(args, task, network.output_size)))
