"""How a head turns text into tokens, and tokens into what a network reads: by features ψ, by characters, or both.

Sizes: B batch, T time, L source length, V words, R input signatures, D embedding width, h filters of characters.
Tokens from V on are strings outside the dictionary. Features know them by the open class that they look like, where the
prior has an open vocabulary; characters know them all. layers.py makes the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.characters.embedding import CharacterEmbedding
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.merged_targets import merged_target
from fairseq_llrnn.evidence.slots import SlotRows
from fairseq_llrnn.evidence.terms import Terms
from fairseq_llrnn.features.dictionary import PAD
from fairseq_llrnn.head import text
from fairseq_llrnn.networks.characters import CharacterOptions
from fairseq_llrnn.open_vocabulary.open_strings import OpenStrings
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart
from fairseq_llrnn.prior.prior import Prior


class HeadInput(nn.Module):
    """The part of a head that comes before the network."""

    prior: Prior
    num_words: int  # V
    hidden_size: int
    eos: int
    unk: int
    output: LogLinearOutput
    embedding: FeatureEmbedding | None  # ψ
    characters: CharacterEmbedding | None
    strings: OpenStrings | None
    slot_rows: SlotRows | None

    def _new_embedding(self, size: int, tied: bool) -> FeatureEmbedding:
        """ψ-embeddings of V words, and of the open classes, if there are any."""
        prior = self.prior
        if tied and size != self.hidden_size:
            raise OptionError(
                f"tie_embedding: expected embed_size {self.hidden_size}, which is hidden_size, found {size}"
            )
        if tied and prior.input.features.names != prior.output.features.names:
            raise OptionError(
                "tie_embedding: expected the same features in input and output, but the prior was built with other "
                "input features; build it without them, or do not tie"
            )
        opened = prior.find(OpenVocabularyPart)
        read = prior.input if opened is None else opened.vocabulary.readable(prior.input)
        class_of = torch.from_numpy(read.class_of.copy())
        return FeatureEmbedding(read.features, class_of, size, self.output.weight if tied else None)

    def _new_characters(self, options: CharacterOptions, size: int | None) -> CharacterEmbedding:
        """size: of the embedding that they are added to; None: they are alone."""
        return CharacterEmbedding(self.prior.session.target, options if size is None else replace(options, size=size))

    # ---- text and tokens ------------------------------------------------------------------------------------------

    def encode(self, lines: Sequence[str], source: Tensor | None = None) -> Tensor:
        """Tokenised sentences as numbers, `</s>` behind the last word, padded on the right: (B, T), where the head is.

        Words outside the dictionary are `<unk>`; with an open vocabulary or evidence they get numbers of their own.

        Args:
            source: of `encode_source`, (B, L), for evidence over pieces: what spells a slot becomes its one token.
        """
        words = self.prior.session.target
        opens = self.strings is not None or self.slot_rows is not None
        tokens = text.encode(lines, words, words.index if opens else None)
        if source is not None and self.slot_rows is not None and len(tokens):
            table = evidence_table(self.prior)
            rows = [merged_target(table, *pair) for pair in zip(source, tokens, strict=True)]
            pad = words.known_index[PAD]
            tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
            tokens = tokens[:, tokens.ne(pad).any(0)]
        return tokens.to(self.output.weight.device)

    def encode_source(self, lines: Sequence[str], terms: Terms | None = None) -> Tensor:
        """As `encode`, sentences of the source language: (B, L). Words outside its dictionary may be evidence.

        Args:
            terms: to be marked in the sentences; those of a single line stand behind it, with tabs.
        """
        table = None if self.slot_rows is None else evidence_table(self.prior)
        index = None if table is None else table.source_index
        if terms is None:
            tokens = text.encode(lines, self.prior.session.source, index)
        else:
            split = [line.split("\t") for line in lines]
            tokens = text.encode([line for line, *_ in split], self.prior.session.source, index)
            marked = [terms.marked(row, cells) for row, (_, *cells) in zip(tokens.tolist(), split, strict=True)]
            tokens = torch.tensor(marked, dtype=torch.long).view_as(tokens)
        return tokens.to(self.output.weight.device)

    def decode(self, tokens: Tensor) -> list[str]:
        """The sentences that tokens (B, T) spell, up to `</s>`; one at the beginning of a row is left out."""
        return text.decode(tokens, self.prior.session.target)

    def previous(self, targets: Tensor) -> Tensor:
        """The tokens before each target, which a network reads: `</s>`, then all but the last; (B, T) -> (B, T)."""
        return torch.cat([torch.full_like(targets[:, :1], self.eos), targets[:, :-1]], dim=1)

    # ---- vectors --------------------------------------------------------------------------------------------------

    @property
    def embed_size(self) -> int:
        """The width of what `embed` returns: D, or h where words are read by their characters alone."""
        if self.characters is not None:
            return self.characters.embedding_dim
        return self._embedding().weight.size(1)

    def embedding_rows(self) -> Tensor | None:
        """The ψ-embeddings of all input signatures, (R, D), to hand to `embed` several times; None: it needs none."""
        if self.embedding is None and self.characters is not None:
            return None
        embedding = self._embedding()
        return None if embedding.sparse_gradients and torch.is_grad_enabled() else embedding.table()

    def embed(self, tokens: Tensor, rows: Tensor | None = None) -> Tensor:
        """What the network reads in the place of tokens (…,): (…, D).

        The ψ-embedding, to which strings outside the dictionary are `<unk>`; or a vector from the characters, which
        strings outside the dictionary have as well; or the sum of both.

        Args:
            rows: of `embedding_rows`, where they are used more than once.
        """
        if self.characters is None:
            open_words = self.num_words if self.strings is None else self._embedding().class_of.numel()
            return self._embedding()(tokens.masked_fill(tokens >= open_words, self.unk), rows)
        spelled = self.characters(tokens)
        return spelled if self.embedding is None else spelled + self.embedding(self._by_features(tokens), rows)

    def _embedding(self) -> FeatureEmbedding:
        if self.embedding is None:
            raise OptionError("LogLinearHead.embed: expected a head made with embed_size, found one without; give it")
        return self.embedding

    # ---- strings outside the dictionary -----------------------------------------------------------------------------

    def _known(self, tokens: Tensor) -> Tensor:
        """Tokens as the background knows them: one with slots knows strings outside the dictionary itself."""
        return tokens if self.strings is None or self.slot_rows is not None else self.strings.known(tokens)

    def _readable(self, tokens: Tensor, known: Tensor, background: Background, states: Tensor | None) -> Tensor:
        """Tokens as the network may read them: strings outside the dictionary as they are if characters are read."""
        read = background.readable(known, states)
        if self.characters is not None:
            return torch.where(tokens >= self.num_words, tokens, read)
        if self.strings is not None and self.slot_rows is None and self.embedding is not None:
            return self.strings.read_as(tokens, read)
        return read

    def _by_features(self, tokens: Tensor) -> Tensor:
        """Tokens as ψ knows them, where characters read them as they are."""
        known = tokens.masked_fill(tokens >= self.num_words, self.unk)
        return known if self.strings is None or self.slot_rows is not None else self.strings.read_as(tokens, known)
