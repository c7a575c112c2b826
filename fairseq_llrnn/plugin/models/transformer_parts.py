"""fairseq's encoder and decoder as llrnn_transformer has them: a source that is kept, embeddings that are composed."""

from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.plugin.compat.dictionaries import readable
from fairseq_llrnn.plugin.models.log_linear_decoder import (
    EncoderOut,
    HiddenStates,
    IncrementalState,
    LogLinearDecoder,
    short_products,
)
from fairseq_llrnn.source_embedding import check_source_prior


class SourceKeepingEncoder(TransformerEncoderBase):
    """fairseq's encoder, whose output also holds the source, which the background wants to see."""

    bf16_products = False

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        token_embeddings: Tensor | None = None,
    ) -> EncoderOut:
        with short_products(self, src_tokens):
            read = readable(src_tokens, self.dictionary, self.embed_tokens)
            encoder_out = super().forward(read, src_lengths, return_all_hiddens, token_embeddings)
        encoder_out["src_tokens"] = [src_tokens]
        return encoder_out

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> dict[str, Tensor]:
        """As fairseq's; refuses weights that were trained beside another source prior."""
        check_source_prior(self.embed_tokens, state_dict, f"{name}.")
        upgraded: dict[str, Tensor] = super().upgrade_state_dict_named(state_dict, name)
        return upgraded


class TransformerLogLinearDecoder(LogLinearDecoder):
    """fairseq's decoder as the body, our output on it."""

    def __init__(
        self,
        dictionary: Dictionary,
        body: TransformerDecoderBase,
        head: LogLinearHead,
        bf16_products: bool,
    ) -> None:
        super().__init__(dictionary, head, bf16_products)
        self.body = body

    def hidden(
        self, previous: Tensor, encoder_out: EncoderOut | None, incremental_state: IncrementalState | None
    ) -> HiddenStates:
        read = self.body.embed_tokens
        if isinstance(read, PaddedFeatureEmbedding):
            read.table = self.input_rows(incremental_state)
        hidden, extra = self.body.extract_features(previous, encoder_out, incremental_state)
        return HiddenStates(hidden, extra["attn"][0])

    def max_positions(self) -> int:
        return self.body.max_positions()


class PaddedFeatureEmbedding(nn.Module):
    """The head's embeddings where fairseq's decoder expects a table of words; padding is the zero vector.

    `table` is what it reads in a search: the composed rows, which the decoder above puts there.
    """

    table: Tensor | None

    def __init__(self, head: LogLinearHead, embedding_dim: int, padding_idx: int) -> None:
        super().__init__()
        self._embed = head.embed  # a method: the head is the decoder's part, not this module's
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx

    def forward(self, tokens: Tensor) -> Tensor:
        return self._embed(tokens, self.table) * tokens.ne(self.padding_idx).unsqueeze(-1)
