"""Embeddings of our encoders: a table with a row per word, features of a source prior, those of extensions."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from torch import Tensor, nn

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.models.extensions import EXTENSIONS, SOURCE, takes
from fairseq_llrnn.source_embedding import SourceEmbedding


@dataclass
@takes(SOURCE)
class SourceConfig(FairseqDataclass):
    """Options of models with an encoder."""


def source_embedding(args: Namespace | FairseqDataclass, task: Any, size: int) -> nn.Module | None:
    """The embedding of the encoder, by --source-prior and extensions; None: a table with a row per word.

    Args:
        size: the width of its vectors.
    """
    by_extension = [extension.source_embedding(args, task, size) for extension in EXTENSIONS]
    embeddings = [embedding for embedding in by_extension if embedding is not None]
    if len(embeddings) > 1:
        raise OptionError("expected one option for the embedding of the encoder, found several; leave one out")
    beside = embeddings[0] if embeddings else None
    prior = getattr(task, "source_prior", None)
    return beside if prior is None else SourceEmbedding(prior, size, beside)


def reads_strings(embedding: nn.Module) -> bool:
    """Whether strings outside the dictionary are more than <unk> to it."""
    return any(getattr(part, "reads_strings", False) for part in embedding.modules())


def readable(tokens: Tensor, dictionary: Dictionary, embedding: nn.Module) -> Tensor:
    """Source tokens as an encoder's embedding can read them."""
    return plain(tokens) if reads_strings(embedding) else with_unk(tokens, dictionary)
