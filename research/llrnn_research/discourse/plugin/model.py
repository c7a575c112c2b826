"""The model `discourse_encoder`: one encoder of sentences, and a classifier for each objective."""

from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import hash_symbols
from fairseq_llrnn.head.checks import in_hex
from fairseq_llrnn.networks.recurrent import word_table
from fairseq_llrnn.plugin.compat.user_errors import enter_command
from fairseq_llrnn.plugin.models.extensions import check_dropouts, check_sizes
from fairseq_llrnn.plugin.models.log_linear_decoder import encoder_input_ids
from fairseq_llrnn.plugin.models.options import SourceConfig, source_embedding
from fairseq_llrnn.source_embedding import check_source_prior
from llrnn_research.discourse.encoders import BIGRU, CBOW, KINDS, Classifiers, build_encoder
from llrnn_research.discourse.plugin.task import DiscourseTask

FINGERPRINT, CLASSIFIERS = "dictionary_fingerprint", "classifiers."


@dataclass
class DiscourseEncoderConfig(SourceConfig):
    """Options of the model."""

    encoder: ChoiceEnum(list(KINDS)) = field(  # type: ignore[valid-type]
        default=BIGRU,
        metadata={"help": "`cbow`: the sum of the words' vectors; `gru`, `bigru`: maxima over the states of a GRU"},
    )
    encoder_embed_dim: int = field(
        default=256, metadata={"help": "width of the words' vectors (of cbow: --sentence-dim)"}
    )
    sentence_dim: int = field(default=256, metadata={"help": "width of a sentence's vector"})
    dropout: float = field(
        default=0.0,
        metadata={"help": "dropout of word vectors; reduces overfitting to few examples"},
    )


@register_model("discourse_encoder", dataclass=DiscourseEncoderConfig)
class DiscourseEncoder(BaseFairseqModel):
    """Sentences -> vectors -> the answers of an objective."""

    dictionary_fingerprint: Tensor

    def __init__(self, args: DiscourseEncoderConfig, task: DiscourseTask) -> None:
        super().__init__()
        self.dictionary = task.dictionary
        width = args.sentence_dim if args.encoder == CBOW else args.encoder_embed_dim
        embedding = source_embedding(args, task, width)
        if embedding is None:
            embedding = word_table(len(self.dictionary), width, self.dictionary.pad())
        self.encoder = build_encoder(
            args.encoder, embedding, self.dictionary.pad(), width, args.sentence_dim, args.dropout
        )
        self.classifiers = Classifiers(task.objectives, self.encoder.output_size)
        self.begins_elsewhere = task.begins_elsewhere()
        self.register_buffer(FINGERPRINT, _fingerprint_of(self.dictionary))

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        enter_command()
        super().add_args(parser)

    @classmethod
    def build_model(cls, args: DiscourseEncoderConfig, task: Any) -> "DiscourseEncoder":
        """Build the model. Raises OptionError for another task or impossible sizes."""
        if not isinstance(task, DiscourseTask):
            raise OptionError("--arch discourse_encoder: needs --task discourse, found another task; add it")
        check_sizes(args, "encoder_embed_dim", "sentence_dim")
        check_dropouts(args, "dropout")
        if args.encoder == BIGRU and args.sentence_dim % 2:
            raise OptionError(
                f"--sentence-dim {args.sentence_dim}: expected an even number for bigru, half for each direction"
            )
        return cls(args, task)

    def forward(self, src_tokens: Tensor, objective: str) -> Tensor:
        """Return the logits of all answers: (B, sentences of an example, L) -> (B, answers)."""
        vectors = self.encode(src_tokens.flatten(0, 1))
        scores: Tensor = self.classifiers(objective, vectors.unflatten(0, src_tokens.shape[:2]))
        return scores

    def encode(self, tokens: Tensor) -> Tensor:
        """Return the vectors of sentences, padded on the right, with at least one word each: (B, L) -> (B, D)."""
        vectors: Tensor = self.encoder(encoder_input_ids(tokens, self.dictionary, self.encoder.embedding))
        return vectors

    def upgrade_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Check that the weights are for the same words and source prior.

        With --finetune-from-model, the checkpoint may have other objectives. Their classifiers are dropped, and missing
        ones keep their initial values.
        """
        saved = state_dict.get(FINGERPRINT)
        if saved is not None and in_hex(saved) != in_hex(self.dictionary_fingerprint):
            raise DataError(
                "the checkpoint was trained with another dict.txt than that of this data folder; give the folder of "
                "its training, or start a new training in another --save-dir"
            )
        check_source_prior(self.encoder.embedding, state_dict, "encoder.")
        if self.begins_elsewhere:
            of_model = {CLASSIFIERS + name: value for name, value in self.classifiers.state_dict().items()}
            for name in [name for name in state_dict if name.startswith(CLASSIFIERS) and name not in of_model]:
                del state_dict[name]
            for name, value in of_model.items():
                state_dict.setdefault(name, value.clone())


def _fingerprint_of(dictionary: Dictionary) -> Tensor:
    """Return the fingerprint as floating point, so that averages of checkpoints keep it."""
    return torch.tensor(list(bytes.fromhex(hash_symbols(dictionary.symbols))), dtype=torch.float32)
