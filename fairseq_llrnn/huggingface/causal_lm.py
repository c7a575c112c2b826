"""Language models of transformers whose output is the log-linear head.

    config = GPT2Config(n_embd=64, n_layer=2, n_head=2)                     # or that of any other AutoModel
    model = LogLinearForCausalLM.from_config(config, prior)                 # tokens are the words of the prior
    model = LogLinearForCausalLM.wrap(pretrained, tokenizer, recipe)        # tokens are those of the tokenizer

    loss = model(input_ids=tokens, labels=tokens).loss
    tokens = model.generate(prompt, attention_mask=mask, max_new_tokens=20, num_beams=4)
    model.save_pretrained("folder")                                         # config.json, model.safetensors, prior/
    model = LogLinearForCausalLM.from_pretrained("folder")

The background reads a text from its first token on, but no padding and no start token. A text over a prior's words
starts with `</s>`. A text over a tokenizer's tokens may start with the tokenizer's start token.

Sizes: B rows, T tokens, K tokens of the model, H width. A row is aligned so that column 0 is what comes before its
first word, and column j the position of its j-th word. Padding on the left then takes no column.
"""

from __future__ import annotations

import copy
import inspect
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, GenerationConfig, PreTrainedConfig
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.model_search import NOT_READ, Search
from fairseq_llrnn.huggingface.models import LogLinearConfig, LogLinearModel, check_first_token, special_tokens
from fairseq_llrnn.huggingface.scoring import ScoresTexts
from fairseq_llrnn.huggingface.training import OutputRows
from fairseq_llrnn.huggingface.word_tables import TargetWords, scale_of
from fairseq_llrnn.prior.prior import Prior

OWN_CACHE = ("cpmant", "minimax")  # networks with caches that only their own classes make


class LogLinearCausalConfig(LogLinearConfig):
    """The configuration of a LogLinearForCausalLM."""

    model_type = "llrnn_causal_lm"


class LogLinearForCausalLM(ScoresTexts, LogLinearModel):
    """A language model with the log-linear head (module docstring)."""

    config_class = LogLinearCausalConfig
    auto_model = AutoModelForCausalLM

    def __init__(self, config: LogLinearCausalConfig, prior: Prior | None = None) -> None:
        """prior: None for the one next to the weights that `from_pretrained` reads."""
        super().__init__(config)
        self._make(AutoModel.from_config(config.text_config, trust_remote_code=False), prior)
        if self.is_wrapped:
            self.output_rows = OutputRows(self)
        if config.feature_input:
            self.model.set_input_embeddings(TargetWords(self, scale_of(self.model.get_input_embeddings())))
        self.post_init()

    @classmethod
    def from_config(cls, config: PreTrainedConfig, prior: Prior, **settings: Any) -> Self:
        """Make a model of the prior's words with random weights.

        Args:
            config: of any network that AutoModelForCausalLM has. Its vocab_size is set.
            settings: of LogLinearCausalConfig, e.g. label_smoothing. tie_word_embeddings is that of `config` by
                default, if the network reads words as wide as its states.
        """
        cls.check_network(config)
        cls._check_settings(prior, settings)
        end = prior.index("</s>")
        special = special_tokens(prior, end)
        inner = copy.deepcopy(config)
        inner.update({**special, "vocab_size": len(prior.symbols), "tie_word_embeddings": False})
        return cls._from_network(inner, prior, config.tie_word_embeddings, {**special, **settings})

    def get_output_embeddings(self) -> OutputRows | None:
        """Return the softmax of a wrapped model."""
        return self.output_rows if self.is_wrapped else None

    @cached_property
    def _arguments(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.model.forward).parameters)

    @property
    def _cache_name(self) -> str | None:
        if self.config.text_config.model_type in OWN_CACHE:
            return None
        return next((name for name in ("past_key_values", "cache_params") if name in self._arguments), None)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        position_ids: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        logits_to_keep: int = 0,
        cache_params: Any = None,
        search: Search | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        """The loss if there are labels, or log p of the next token after each position.

        Args:
            input_ids: (B, T). With inputs_embeds, the background alone reads them.
            attention_mask: (B, T), 0 at padding on the left or the right. None: no padding, or, over a prior's words,
                none but `<pad>`.
            labels: (B, T), as input_ids. −100 is left out of the loss. The label at t is predicted at t − 1.
            num_items_in_batch: the loss is a sum divided by it. None: the mean.
            logits_to_keep: return log p of so many last positions. 0: of all.
            cache_params: the cache of a state-space network.
            search: what `generate` remembers.
            return_dict: of transformers. The output has names in any case.
            kwargs: of the network, e.g. output_hidden_states, output_attentions.
        """
        cache = past_key_values if cache_params is None else cache_params
        if search is None and cache is not None and has_read(cache):
            raise DataError(
                "LogLinearForCausalLM: past_key_values without the tokens that they are of, which the background "
                "reads; use `generate`, or give all tokens without a cache"
            )
        if inputs_embeds is None and input_ids is None:
            raise DataError("LogLinearForCausalLM: expected input_ids or inputs_embeds, found None; give one")
        if search is None and input_ids is not None:
            self.to_words(input_ids=input_ids)  # before the network reads them
            if attention_mask is None and not self.is_wrapped:
                attention_mask = self._mask(input_ids)
        hidden, outputs = self._read(input_ids, attention_mask, inputs_embeds, cache, use_cache, position_ids, **kwargs)
        rest = {name: outputs.get(name) for name in ("past_key_values", "hidden_states", "attentions")}
        if search is not None:
            return CausalLMOutputWithPast(logits=self._next(hidden[:, -1], search), **rest)
        if input_ids is None:
            input_ids = self._no_tokens(hidden)
        return self._scored(hidden, input_ids, attention_mask, labels, num_items_in_batch, logits_to_keep, rest)

    def _mask(self, tokens: Tensor) -> Tensor | None:
        """1 where a token (B, T) over the prior's words is no padding. None: there is none."""
        is_real = tokens != self.head.pad
        return is_real.long() if torch.compiler.is_compiling() or not bool(is_real.all()) else None

    def _read(
        self, input_ids: Tensor | None, attention_mask: Tensor | None, inputs_embeds: Tensor | None,
        cache: Any, use_cache: bool | None, position_ids: Tensor | None, **kwargs: Any,
    ) -> tuple[Tensor, Any]:  # fmt: skip
        """The network's last hidden states, (B, T, H), and all that it returns."""
        accepts, cache_name = self._arguments, self._cache_name or ""
        is_first = position_ids is None and cache is None
        if is_first and attention_mask is not None and attention_mask.dim() == 2:
            position_ids = (attention_mask.cumsum(1) - 1).clamp_min(0)  # padding on the left has no position
        if cache_name == "cache_params" and cache is not None and has_read(cache):
            attention_mask = None  # a state-space network has read the padding
        if inputs_embeds is None and input_ids is not None and not self.is_wrapped:
            input_ids = input_ids.masked_fill(input_ids >= self.head.num_words, self.head.unk)
        given = {
            "input_ids": input_ids if inputs_embeds is None else None, "inputs_embeds": inputs_embeds,
            "attention_mask": attention_mask, "position_ids": position_ids, "use_cache": use_cache, cache_name: cache,
        }  # fmt: skip
        arguments = {name: value for name, value in given.items() if value is not None and name in accepts}
        outputs = self.model(**arguments, **kwargs, return_dict=True)
        return outputs.last_hidden_state, outputs

    def _no_tokens(self, hidden: Tensor) -> Tensor:
        """Tokens (B, T) for a background that reads none, if the network reads inputs_embeds alone.

        Raises:
            DataError: the background depends on tokens, and there are none.
        """
        if self.head.needs_context:
            raise DataError(
                "LogLinearForCausalLM: expected input_ids next to inputs_embeds, since the background reads them, "
                "found None; give both"
            )
        return torch.full(hidden.shape[:2], self.config.start_token_id, device=hidden.device)

    def _scored(
        self, hidden: Tensor, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor | None,
        num_items_in_batch: Tensor | int | None, logits_to_keep: int, rest: dict[str, Any],
    ) -> CausalLMOutputWithPast:  # fmt: skip
        """Losses and log p of a whole batch."""
        head = self.head
        read = self._to_read(input_ids, attention_mask)
        first = (read != NOT_READ).long().cumsum(1).eq(0).sum(1, keepdim=True)  # shape: (B, 1), of the first word
        columns = torch.arange(read.size(1) + 1, device=read.device)
        place = first - 1 + columns  # shape: (B, T + 1), the position of each column
        inside = (place >= 0) & (place < read.size(1))
        at = place.clamp(0, read.size(1) - 1)

        def aligned(values: Tensor, missing: int) -> Tensor:
            return values.gather(1, at).masked_fill(~inside, missing)

        before = aligned(read, head.pad)
        previous = torch.cat([torch.full_like(first, head.eos), before[:, 1:]], dim=1)
        batch = head.batch(
            hidden.gather(1, at.unsqueeze(2).expand(-1, -1, hidden.size(2))), head.bind(previous.clamp_min(0))
        )
        loss = logits = None
        if labels is not None:
            shifted = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], -100)], dim=1)
            self._check_labels(labels, input_ids)
            loss = self._loss(batch, aligned(self.to_targets(labels=shifted), head.pad), num_items_in_batch)
        if self._needs_logits(labels):
            back = torch.arange(read.size(1), device=read.device) - first + 1  # shape: (B, T), the column of a position
            back = back[:, -logits_to_keep:].clamp_min(0)
            of_columns = self._logits(batch)
            logits = of_columns.gather(1, back.unsqueeze(2).expand(-1, -1, of_columns.size(2)))
        return CausalLMOutputWithPast(loss=loss, logits=logits, **rest)

    def _to_read(self, tokens: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The words that the background reads: (B, T), NOT_READ for padding on the left and the start token.

        Raises:
            DataError: a text over the prior's words does not start with `</s>`.
        """
        words, start = self.to_words(input_ids=tokens), self.config.start_token_id
        is_real = torch.ones_like(tokens, dtype=torch.bool)
        if attention_mask is not None and attention_mask.dim() == 2:
            is_real = attention_mask[:, : tokens.size(1)].bool()
        begun = is_real.long().cumsum(1)
        is_first = (begun == 1) & is_real
        if not self.is_wrapped and tokens.size(1):
            first = tokens.masked_fill(~is_first, 0).sum(1, keepdim=True)
            check_first_token(start, first, "LogLinearForCausalLM: expected the first of input_ids")
        words = words.masked_fill(~is_real, self.head.pad)
        return words.masked_fill((begun == 0) | (is_first & (tokens == start)), NOT_READ)

    def _check_labels(self, labels: Tensor, input_ids: Tensor) -> None:
        """Raise DataError for labels that are moved already, so that the label at t is the token at t + 1."""
        if torch.compiler.is_compiling():
            return
        counts = labels[:, :-1] != -100
        moved, same = labels[:, :-1] == input_ids[:, 1:], labels == input_ids
        if bool(counts.sum() > 2) and bool((moved | ~counts).all()) and not bool((same[:, :-1] | ~counts).all()):
            raise DataError(
                "LogLinearForCausalLM: expected labels as input_ids, found each label one place to the left; give the "
                "tokens themselves, which the model moves"
            )

    # ---- generate ---------------------------------------------------------------------------------------------------

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, inputs_embeds: Tensor | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """input_ids: (N, T), prompts and all that was written."""
        kwargs["search"].step(input_ids)
        inputs: dict[str, Any] = super().prepare_inputs_for_generation(input_ids, inputs_embeds=inputs_embeds, **kwargs)
        return inputs

    def _prepare_cache_for_generation(self, config: GenerationConfig, model_kwargs: dict[str, Any], *rest: Any) -> None:
        if self._cache_name is None:  # the search then reads all tokens at each step
            config.use_cache = False
        super()._prepare_cache_for_generation(config, model_kwargs, *rest)
        if self._cache_name == "cache_params" and "past_key_values" in model_kwargs:  # by the network's own name
            model_kwargs["cache_params"] = model_kwargs.pop("past_key_values")

    def _new_search(self, config: GenerationConfig, model_kwargs: dict[str, Any], sentences: int) -> Search:
        """Return a new search.

        Raises DataError for prompts that are padded on the right. Its `to_read` raises it for parts of prompts, or
        embeddings without the tokens that the background reads.
        """
        mask, embeds = model_kwargs.get("attention_mask"), model_kwargs.get("inputs_embeds")
        if mask is not None and bool((mask[:, -1] == 0).any()):
            raise DataError(
                "generate: expected prompts that are padded on the left, found padding on the right; set "
                "padding_side='left' of the tokenizer"
            )
        length = getattr(config, "_mask_length", 0) if mask is None else mask.size(1)  # of the prompts
        hypotheses = sentences * max(config.num_beams, config.num_return_sequences or 1)
        each = torch.arange(hypotheses, device=self.device) // (hypotheses // sentences)

        def to_read(written: Tensor) -> Tensor:
            if embeds is not None:  # prompts of embeddings may have no tokens
                if not written.size(1):
                    self._no_tokens(embeds)
                return self.to_words(input_ids=written)
            if written.size(1) < length:
                raise DataError(
                    "generate: expected whole prompts, which the background reads, found their last tokens; give all "
                    "tokens next to past_key_values, and no prefill_chunk_size"
                )
            if mask is None:
                return self._to_read(written, None)
            more = mask.new_ones(len(written), written.size(1) - mask.size(1))
            return self._to_read(written, torch.cat([mask, more], dim=1))

        return Search(self, config, each, lambda: self.head.start(hypotheses), to_read)


def has_read(cache: Any) -> bool:
    """Whether a cache has seen tokens. Recurrent layers do not count them, but have a state then."""
    is_attention = any(hasattr(layer, "get_seq_length") for layer in cache.layers)
    return bool(cache.get_seq_length() if is_attention or not cache.layers else cache.has_previous_state())


AutoConfig.register(LogLinearCausalConfig.model_type, LogLinearCausalConfig)
AutoModelForCausalLM.register(LogLinearCausalConfig, LogLinearForCausalLM)
# a Trainer moves the labels of these models by one place when it smooths them
MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[LogLinearCausalConfig.model_type] = LogLinearForCausalLM.__name__
