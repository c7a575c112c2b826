"""What our encoders read with: a table with a row per word, features of a source prior, characters, or both."""

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from torch import Tensor, nn

from fairseq_llrnn.evidence.term_table import plain
from fairseq_llrnn.plugin.compat.dictionaries import known_words
from fairseq_llrnn.source_embedding import SourceEmbedding
from fairseq_llrnn.systems.characters.plugin import CNN, NONE, CharacterSizes, source_character_options

SOURCE_CHARACTERS = {
    "help": "`cnn`: the encoder reads source words by their characters, also those that its dictionary lacks; beside "
    "--source-prior, both are read, and added; --character-embed-dim, --character-filters and --highway-layers are its "
    "sizes, too"
}


@dataclass
class SourceConfig(CharacterSizes):
    """Options of models with an encoder."""

    source_characters: ChoiceEnum([NONE, CNN]) = field(  # type: ignore[valid-type]
        default=NONE, metadata=SOURCE_CHARACTERS
    )


def source_embedding(args: Namespace | FairseqDataclass, task: Any, size: int) -> nn.Module | None:
    """What the encoder reads with by --source-prior and --source-characters; None: a table with a row per word.

    Args:
        size: the width of its vectors.
    """
    characters, options = None, source_character_options(args, size)
    if options is not None:
        both = getattr(args, "input_characters", NONE) == CNN
        from fairseq_llrnn.systems.characters.embedding import CharacterEmbedding
        from fairseq_llrnn.systems.characters.source import SourceCharacters

        kind = SourceCharacters if both else CharacterEmbedding
        characters = kind(task.source_words, options, task.source_dictionary.pad())
    prior = getattr(task, "source_prior", None)
    return characters if prior is None else SourceEmbedding(prior, size, characters)


def reads_characters(embedding: nn.Module) -> bool:
    """Whether strings outside the dictionary are more than <unk> to it."""
    return any(getattr(part, "reads_strings", False) for part in embedding.modules())


def readable(tokens: Tensor, dictionary: Dictionary, embedding: nn.Module) -> Tensor:
    """Source tokens as an encoder's embedding can read them."""
    return plain(tokens) if reads_characters(embedding) else known_words(tokens, dictionary)
