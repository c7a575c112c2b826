"""Marian with the log-linear head: LogLinearForSeq2SeqLM with a flat configuration, as earlier versions saved it.

config = LogLinearMarianConfig.from_prior(prior, d_model=128, encoder_layers=2, …)
model = LogLinearMarian(config, prior)
"""

from __future__ import annotations

from typing import Any, Self

from transformers import AutoConfig, AutoModelForSeq2SeqLM, MarianConfig, MarianModel

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.huggingface.models import special_tokens
from fairseq_llrnn.huggingface.seq2seq import LogLinearForSeq2SeqLM
from fairseq_llrnn.prior.prior import Prior

POSITIONS = ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"]  # computed


class LogLinearMarianConfig(MarianConfig):
    """Marian's configuration; `tie_word_embeddings` ties the decoder's features, read and predicted."""

    model_type = "llrnn_marian"
    label_smoothing: float = 0.0  # ε, spread over all words that may come next; the Trainer's own needs logits
    feature_input, num_tokens = True, None  # of LogLinearConfig
    attribute_map = {**MarianConfig.attribute_map, "head_size": "d_model", "start_token_id": "decoder_start_token_id"}

    @classmethod
    def from_prior(cls, prior: Prior, vocab_size: int | None = None, **others: Any) -> LogLinearMarianConfig:
        """Return the configuration of a model of the prior's words.

        Args:
            vocab_size: the number of source tokens, if the prior has no dictionary of the source.
            others: what differs from Marian's defaults.

        Raises:
            OptionError: the number of source tokens is missing.
        """
        source = len(prior.source_symbols) or vocab_size
        if source is None:
            raise OptionError(
                "LogLinearMarian: expected vocab_size, the number of source tokens, since the prior has no dictionary "
                "of the source, found none; give it"
            )
        end = prior.index("</s>")
        special = {**special_tokens(prior, end), "decoder_start_token_id": end}
        words = {"vocab_size": source, "decoder_vocab_size": len(prior.symbols)}
        fixed = {"forced_eos_token_id": None, "share_encoder_decoder_embeddings": False}
        return cls(**{**words, **special, **fixed, **others})


class LogLinearMarian(LogLinearForSeq2SeqLM):
    """MarianModel -> log-linear head."""

    config_class = LogLinearMarianConfig
    _keys_to_ignore_on_save = POSITIONS
    _keys_to_ignore_on_load_missing = POSITIONS

    @classmethod
    def from_config(cls, *_: Any, **__: Any) -> Self:
        """Raises OptionError: the configuration has no other network inside."""
        raise OptionError(
            "LogLinearMarian: from_config and wrap are not supported, as its configuration is flat; use "
            "LogLinearForSeq2SeqLM.from_config or .wrap, or LogLinearMarian(LogLinearMarianConfig.from_prior(…), prior)"
        )

    wrap = from_config

    def _new_network(self) -> MarianModel:
        return MarianModel(self.config)


AutoConfig.register(LogLinearMarianConfig.model_type, LogLinearMarianConfig)
AutoModelForSeq2SeqLM.register(LogLinearMarianConfig, LogLinearMarian)
