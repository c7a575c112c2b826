"""Encoder-decoders of transformers whose output is the log-linear head.

    model = LogLinearForSeq2SeqLM.from_config(BartConfig(d_model=128), prior)   # or that of any other AutoModel
    loss = model(input_ids=source, labels=targets).loss                         # as Seq2SeqTrainer calls it
    tokens = model.generate(source, num_beams=5, max_new_tokens=50)
    model.save_pretrained("folder")                                             # config.json, model.safetensors, prior/
    model = LogLinearForSeq2SeqLM.from_pretrained("folder")

The tokens of `from_config` are the prior's: `model.head.encode_source(lines)` (with terms, if you like),
`model.head.encode(lines)` and `model.head.decode(tokens)`. Targets end with `</s>`, and a decoder reads `</s>` first.
Padding is on the right. Numbers from V on are strings that a source offers. `generate` writes complete
sentences within its limit of length, and writes each string of a source as often as the source has it.

`wrap` takes a pretrained model and keeps the tokens of its tokenizer (causal_lm.py).

Sizes: B sentences, N hypotheses, L source length, T target length, V words, K tokens of the model, H width.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, GenerationConfig, PreTrainedConfig
from transformers.modeling_outputs import Seq2SeqLMOutput

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import UNK, plain
from fairseq_llrnn.head.checks import check_source_ids
from fairseq_llrnn.huggingface.model_search import NOT_READ, Search, limit_source_strings
from fairseq_llrnn.huggingface.models import IGNORED, LogLinearConfig, LogLinearModel, check_first_token, special_tokens
from fairseq_llrnn.huggingface.word_tables import SourceWords, TargetWords, scale_of
from fairseq_llrnn.prior.prior import Prior


class LogLinearSeq2SeqConfig(LogLinearConfig):
    """The configuration of a LogLinearForSeq2SeqLM."""

    model_type = "llrnn_seq2seq"
    is_encoder_decoder: bool = True


class LogLinearForSeq2SeqLM(LogLinearModel):
    """An encoder-decoder with the log-linear head (module docstring)."""

    config_class = LogLinearSeq2SeqConfig
    auto_model = AutoModelForSeq2SeqLM

    def __init__(self, config: Any, prior: Prior | None = None) -> None:
        """prior: None for the one next to the weights that `from_pretrained` reads."""
        super().__init__(config)
        network = AutoModel.from_config(config.text_config, trust_remote_code=False)
        self._make(network, prior, source_size=config.head_size)
        if config.feature_input:
            source, target = network.get_encoder(), network.get_decoder()
            table, scale = source.get_input_embeddings(), scale_of(target.get_input_embeddings())
            words = self.head.prior.source_symbols
            unk = words.index(UNK) if words else None
            size = table.num_embeddings, table.embedding_dim
            source.set_input_embeddings(SourceWords(*size, config.pad_token_id, unk, scale_of(table)))
            target.set_input_embeddings(TargetWords(self, scale))
            network._tied_weights_keys, network.all_tied_weights_keys = {}, {}  # of tables that are gone
            if "shared" in network._modules:
                del network._modules["shared"]
                network.__dict__["shared"] = source.get_input_embeddings()
        self.post_init()

    @classmethod
    def from_config(cls, config: PreTrainedConfig, prior: Prior, **settings: Any) -> Self:
        """Make a model of the prior's words with random weights.

        Args:
            config: of any network that AutoModelForSeq2SeqLM has. Its vocab_size is the number of source tokens if the
                prior has no dictionary of the source.
            settings: of LogLinearSeq2SeqConfig, e.g. label_smoothing. By default, tie_word_embeddings is that of
                `config`: the decoder's features, read and predicted.
        """
        cls.check_network(config)
        cls._check_settings(prior, settings)
        end = prior.index("</s>")
        special = {**special_tokens(prior, end), "decoder_start_token_id": end}
        inner = copy.deepcopy(config)
        inner.update({**special, "vocab_size": len(prior.source_symbols) or config.vocab_size})
        inner.update({"forced_eos_token_id": None, "forced_bos_token_id": None, "tie_word_embeddings": False})
        if hasattr(inner, "decoder_vocab_size"):
            inner.update({"decoder_vocab_size": len(prior.symbols), "share_encoder_decoder_embeddings": False})
        return cls._from_network(inner, prior, config.tie_word_embeddings, {**special, **settings})

    def get_encoder(self, *args: Any, **kwargs: Any) -> Any:
        return self.model.get_encoder(*args, **kwargs)

    def get_input_embeddings(self) -> Any:
        return self.model.get_encoder().get_input_embeddings()

    def _read_embeddings(self) -> Any:
        return self.model.get_decoder().get_input_embeddings()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        labels: Tensor | None = None,
        text: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        search: Search | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput:
        """The loss if there are labels, or log p of the next token after each position.

        Args:
            input_ids: (B, L), the source. With inputs_embeds or encoder_outputs, the background alone reads it.
            attention_mask: (B, L). None: 0 at padding.
            decoder_input_ids: (B, T), the start token first. None: from `labels`. With decoder_inputs_embeds, the
                background alone reads them.
            labels: (B, T), `</s>` after the last word. −100 (or `<pad>`) at padding.
            text: the labels as the text has them, (B, T'), T' ≥ T, if training changes them (slots instead of several
                pieces or words): backgrounds find by them what they leave out. None: the labels.
            num_items_in_batch: the loss is a sum divided by it. None: the mean.
            search: what `generate` remembers.
            return_dict: of transformers. The output has names in any case.
            kwargs: of the network, e.g. output_hidden_states, output_attentions, decoder_attention_mask.
        """
        if past_key_values is not None and search is None and past_key_values.get_seq_length():
            raise DataError(
                f"{type(self).__name__}: past_key_values without the tokens that they are of, which the background "
                "reads; use `generate`, or give all tokens without a cache"
            )
        has_source = input_ids is not None or inputs_embeds is not None or encoder_outputs is not None
        if not has_source or (labels is None and decoder_input_ids is None):
            raise DataError(
                f"{type(self).__name__}: expected input_ids, the source, next to labels or decoder_input_ids, found "
                "None; give both (labels are smoothed by label_smoothing of the model's configuration, not of a "
                "Trainer, which keeps them back)"
            )
        self._check_source(input_ids, search)
        if attention_mask is None and input_ids is not None:
            attention_mask = self._mask(input_ids)
        condition: Any = None
        targets: Tensor | None = None
        read = decoder_input_ids
        if search is None:
            targets = None if labels is None else self.to_targets(labels=labels)
            read, condition = self._bind(input_ids, decoder_input_ids, labels, targets, text)
        reads_source = encoder_outputs is None and inputs_embeds is None
        outputs = self.model(
            input_ids=input_ids if reads_source else None,
            attention_mask=attention_mask,
            inputs_embeds=inputs_embeds,
            encoder_outputs=encoder_outputs,
            decoder_input_ids=read if decoder_inputs_embeds is None else None,
            decoder_inputs_embeds=decoder_inputs_embeds,
            past_key_values=past_key_values,
            use_cache=use_cache if targets is None else False,
            return_dict=True,
            **kwargs,
        )
        rest = {name: value for name, value in outputs.items() if name != "last_hidden_state"}
        if search is not None:
            return Seq2SeqLMOutput(logits=self._next(outputs.last_hidden_state[:, -1], search), **rest)
        batch = self.head.batch(outputs.last_hidden_state, condition, outputs.encoder_last_hidden_state)
        loss = None if targets is None else self._loss(batch, targets, num_items_in_batch)
        logits = self._logits(batch) if self._needs_logits(labels) else None
        return Seq2SeqLMOutput(loss=loss, logits=logits, **rest)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Return what the decoder reads, (B, T): the labels after the start token. transformers' collator calls it."""
        tokens = labels.masked_fill(labels == IGNORED, self.config.pad_token_id)
        return torch.cat([torch.full_like(tokens[:, :1], self.config.start_token_id), tokens[:, :-1]], dim=1)

    def _bind(
        self, source: Tensor | None, decoder_input_ids: Tensor | None, labels: Tensor | None, targets: Tensor | None,
        text: Tensor | None,
    ) -> tuple[Tensor, Any]:  # fmt: skip
        """What the decoder reads, (B, T), and the background of the batch.

        Raises:
            DataError: decoder_input_ids are not what training reads.
        """
        head, start = self.head, self.config.start_token_id
        if labels is not None and targets is not None:
            read = self.prepare_decoder_input_ids_from_labels(labels)
            if decoder_input_ids is not None:
                same = decoder_input_ids.shape == read.shape
                if not (
                    same and bool(((decoder_input_ids == read) | (labels == IGNORED) | targets.eq(head.pad)).all())
                ):
                    raise DataError(
                        f"{type(self).__name__}: expected decoder_input_ids that are `</s>` and the labels, found "
                        "others; leave them out with labels"
                    )
        else:
            assert decoder_input_ids is not None  # which `forward` checks
            read = decoder_input_ids
        check_first_token(start, read, f"{type(self).__name__}: expected the first of decoder_input_ids")
        words = self.to_words(decoder_input_ids=read)
        previous = torch.cat([torch.full_like(words[:, :1], head.eos), words[:, 1:]], dim=1)
        in_text = None if text is None else head.previous(self.to_targets(text=text))
        condition = head.bind(previous, self._source(source), in_text)
        return read if self.is_wrapped else condition.input_ids, condition

    def _source(self, tokens: Tensor | None) -> Tensor | None:
        """The source as the background reads it. None: a tokenizer's, which no background depends on."""
        return None if self.is_wrapped else tokens

    def _check_source(self, source: Tensor | None, search: Search | None) -> None:
        """Raise DataError for source tokens that are numbers of no word, or that the background lacks."""
        prior = self.head.prior
        if self.is_wrapped or torch.compiler.is_compiling():
            return
        if source is None and search is None and prior.source_symbols:
            raise DataError(
                f"{type(self).__name__}: expected input_ids next to inputs_embeds or encoder_outputs, since the "
                "background reads the source, found None; give both"
            )
        if source is not None and prior.source_symbols:
            check_source_ids(prior, source)
        elif source is not None and self.config.feature_input:
            size = self.get_input_embeddings().num_embeddings
            if bool(((source < 0) | (source >= size)).any()):
                wrong = int(source[(source < 0) | (source >= size)][0])
                raise DataError(
                    f"input_ids: expected ids of source words, from 0 to {size - 1:,}, found {wrong:,}; give the "
                    "model's vocab_size as many source tokens as there are"
                )

    def _mask(self, source: Tensor) -> Tensor:
        return plain(source).ne(self.config.pad_token_id).long()

    # ---- generate ---------------------------------------------------------------------------------------------------

    def _maybe_prepare_encoder_kwargs_for_generation(
        self,
        inputs_tensor: Tensor,
        model_kwargs: dict[str, Any],
        model_input_name: str | None,
        generation_config: GenerationConfig,
    ) -> dict[str, Any]:
        """Also keep the source, which transformers passes to the encoder alone."""
        is_tokens = inputs_tensor.dim() == 2 and not bool((inputs_tensor == IGNORED).all())  # of encoder_outputs alone
        if is_tokens and model_kwargs.get("attention_mask") is None:
            model_kwargs["attention_mask"] = self._mask(inputs_tensor)
        if generation_config.forced_bos_token_id is not None and not self.is_wrapped:
            raise DataError(
                "generate: expected no forced_bos_token_id, since training forces no first word, found "
                f"{generation_config.forced_bos_token_id}; set it to None"
            )
        self._check_source(inputs_tensor if is_tokens else None, None)
        if is_tokens:
            model_kwargs["source"] = inputs_tensor  # a tensor: repeated for each hypothesis of a sentence
        return super()._maybe_prepare_encoder_kwargs_for_generation(
            inputs_tensor, model_kwargs, model_input_name, generation_config
        )

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        """input_ids: (N, T), all that was written."""
        search: Search = kwargs["search"]
        state = search.step(input_ids)
        kwargs.pop("source", None)
        inputs: dict[str, Any] = super().prepare_inputs_for_generation(input_ids, **kwargs)
        if not self.is_wrapped:
            inputs["decoder_input_ids"] = self.head.to_input_ids(inputs["decoder_input_ids"], state)
        return inputs

    def _new_search(self, config: GenerationConfig, model_kwargs: dict[str, Any], sentences: int) -> Search:
        source, states = model_kwargs.get("source"), model_kwargs["encoder_outputs"][0]
        hypotheses = len(states)
        if source is None or self.is_wrapped:
            sentence = torch.arange(hypotheses, device=states.device) // (hypotheses // sentences)
        else:
            sentence = torch.unique_consecutive(source, return_inverse=True, dim=0)[1]

        def to_read(written: Tensor) -> Tensor:
            check_first_token(self.config.start_token_id, written, "generate: expected decoder_start_token_id")
            words = self.to_words(decoder_input_ids=written)
            return torch.cat([torch.full_like(words[:, :1], NOT_READ), words[:, 1:]], dim=1)

        def start() -> Any:
            of_source = {} if self.is_wrapped else {"source": self._source(source), "source_states": states}
            return limit_source_strings(self.head, lambda: self.head.start(hypotheses, **of_source))

        return Search(self, config, sentence, start, to_read)


AutoConfig.register(LogLinearSeq2SeqConfig.model_type, LogLinearSeq2SeqConfig)
AutoModelForSeq2SeqLM.register(LogLinearSeq2SeqConfig, LogLinearForSeq2SeqLM)
