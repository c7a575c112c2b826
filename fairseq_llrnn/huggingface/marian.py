"""Marian of transformers, an encoder-decoder, whose output is the log-linear head, with the prior beside its weights.

    config = LogLinearMarianConfig.of(prior, d_model=128, encoder_layers=2, …)
    model = LogLinearMarian(config, prior)
    loss = model(input_ids=source, labels=targets).loss                     # as Seq2SeqTrainer calls it
    tokens = model.generate(source, num_beams=5, max_new_tokens=50)
    model.save_pretrained("folder")                                         # config.json, model.safetensors, prior/
    model = LogLinearMarian.from_pretrained("folder")

Tokens are the prior's: `model.head.encode_source(lines)` (with terms, if you like), `model.head.encode(lines)` and
`model.head.decode(tokens)`. Targets end with `</s>`, and `</s>` is what a decoder reads first; padding is on the right.
Numbers from V on are strings that a source offers. What `generate` writes is complete within its limit of length, and
in a search slots know what was said, as in fairseq's.

Sizes: B sentences, N hypotheses, L source length, T target length, V words, W words and strings of the session, H
width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    GenerationConfig,
    GenerationMixin,
    LogitsProcessorList,
    MarianConfig,
    MarianModel,
)
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.models.marian.modeling_marian import MarianPreTrainedModel

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import EOS, PAD, UNK, plain
from fairseq_llrnn.head.checks import check_token_ids
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import FeatureInput
from fairseq_llrnn.huggingface.processor import PrefixStates, by_token, only_behind_the_end
from fairseq_llrnn.output.records import State
from fairseq_llrnn.prior.prior import Prior

PRIOR = "prior"  # the folder beside the weights
IGNORED = -100  # as transformers marks labels that are no targets
EMBEDDING = "head.embedding.weight"  # another name of the output's weights per feature, where they are tied
POSITIONS = ["model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"]  # computed


class LogLinearMarianConfig(MarianConfig):
    """Marian's configuration; `tie_word_embeddings` ties the decoder's features, read and predicted."""

    model_type = "llrnn_marian"
    label_smoothing: float = 0.0  # ε, spread over all words that may come next; the Trainer's own needs logits

    @classmethod
    def of(cls, prior: Prior, vocab_size: int | None = None, **others: Any) -> LogLinearMarianConfig:
        """That of a model of the prior's words.

        Args:
            vocab_size: of the source, where the prior does not know it. others: what differs from Marian's defaults.

        Raises:
            OptionError: nobody says what the source's words are.
        """
        source = len(prior.source_symbols) or vocab_size
        if source is None:
            raise OptionError(
                "LogLinearMarian: expected vocab_size, the number of source tokens, since the prior has no dictionary "
                "of the source, found none; give it"
            )
        end, pad = prior.index(EOS), prior.index(PAD)
        special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": pad, "decoder_start_token_id": end}
        words = {"vocab_size": source, "decoder_vocab_size": len(prior.symbols)}
        fixed = {"forced_eos_token_id": None, "share_encoder_decoder_embeddings": False}
        return cls(**{**words, **special, **fixed, **others})


class LogLinearMarian(MarianPreTrainedModel, GenerationMixin):
    """MarianModel -> log-linear head. `logits` are log p of all tokens; −inf for what the background forbids."""

    config_class = LogLinearMarianConfig
    base_model_prefix = "model"
    _tied_weights_keys = {EMBEDDING: "head.output.weight"}
    _keys_to_ignore_on_save = POSITIONS
    _keys_to_ignore_on_load_missing = POSITIONS

    def __init__(self, config: LogLinearMarianConfig, prior: Prior | None = None) -> None:
        """prior: None for the one beside the weights that `from_pretrained` reads."""
        super().__init__(config)
        prior = Prior.load(Path(config.name_or_path) / PRIOR) if prior is None else prior
        width = config.d_model
        self.model = MarianModel(config)
        with torch.device("cpu"):  # `from_pretrained` makes tensors without values, but what the head computes has some
            self.head = LogLinearHead(
                prior, width, embedding=FeatureInput(width, config.tie_word_embeddings), source_size=width
            )
        unk = prior.source_symbols.index(UNK) if prior.source_symbols else None
        self.model.encoder.embed_tokens = SourceWords(config.vocab_size, width, config.pad_token_id, unk)
        self.model.decoder.embed_tokens = TargetWords(self.head)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        labels: Tensor | None = None,
        text: Tensor | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        state: State | None = None,
        ended: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> Seq2SeqLMOutput:
        """The loss, where there are labels; or log p of the next token, after each position or, in a search, the last.

        Args:
            input_ids: (B, L), the source. decoder_input_ids: (B, T), `</s>` first; from `labels`, if there are any.
            labels: (B, T), `</s>` behind the last word; −100 (or `<pad>`) at padding.
            text: the labels as the text has them, (B, T'), T' ≥ T, where training changes them (slots in the place of
                several pieces or words): what backgrounds leave out is found by them. None: by the labels.
            state, ended: of hypotheses in a search, (N,) each; `generate` gives them.
            return_dict: of transformers; what is returned has names in any case.
        """
        head, targets = self.head, None
        if labels is not None:
            targets = labels.masked_fill(labels == IGNORED, head.pad)
            check_token_ids(head, labels=targets)
        previous = decoder_input_ids if targets is None else head.previous(targets)
        if previous is None or (input_ids is None and state is None):
            raise DataError(
                "LogLinearMarian: expected input_ids, the source, beside labels or decoder_input_ids, found None; give "
                "both (labels are smoothed by label_smoothing of the model's configuration, not of a Trainer, which "
                "keeps them back)"
            )
        if state is None:
            self._check_first(previous, decoder_input_ids, targets)
        if past_key_values is not None and state is None:
            raise DataError("LogLinearMarian: expected `state` beside a cache, found None; `generate` gives it")
        if attention_mask is None and input_ids is not None:
            attention_mask = self._mask(input_ids)
        if encoder_outputs is None:
            encoder_outputs = self.model.encoder(input_ids=input_ids, attention_mask=attention_mask)
        read = encoder_outputs[0]
        restore_original_tokens = None if text is None else head.previous(text.masked_fill(text == IGNORED, head.pad))
        condition = head.bind(previous, input_ids, restore_original_tokens) if state is None else None
        decoded = self.model.decoder(
            input_ids=previous if condition is None else condition.input_ids,
            encoder_hidden_states=read,
            encoder_attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=use_cache if targets is None else False,
        )
        hidden = decoded.last_hidden_state
        if condition is None:
            logits = self._next(hidden[:, -1], state, ended)
            return Seq2SeqLMOutput(logits=logits, past_key_values=decoded.past_key_values)
        batch = head.batch(hidden, condition, read)
        if targets is None:
            logits = head.word_log_probs(batch)
            if logits.requires_grad:
                logits.register_hook(partial(refuse_smoothed, logits.detach().isneginf()))
            return Seq2SeqLMOutput(logits=logits)
        smoothing = self.config.label_smoothing if self.training else 0.0
        return Seq2SeqLMOutput(loss=head.loss_of(batch, targets, smoothing))

    def _check_first(self, previous: Tensor, decoder_input_ids: Tensor | None, targets: Tensor | None) -> None:
        """Raise DataError for decoder_input_ids that are not what training reads.

        Args:
            previous: `</s>` and the labels, or decoder_input_ids.
        """
        head = self.head
        if decoder_input_ids is None:
            return
        same = decoder_input_ids.shape == previous.shape
        if targets is not None and not (same and bool(((decoder_input_ids == previous) | targets.eq(head.pad)).all())):
            raise DataError(
                "LogLinearMarian: expected decoder_input_ids that are `</s>` and the labels, found others; leave them "
                "out beside labels"
            )
        refuse_other_start(head, decoder_input_ids, "LogLinearMarian: expected the first of decoder_input_ids")

    def resize_token_embeddings(self, *_: Any, **__: Any) -> nn.Module:
        """Raises DataError: the words are those of the prior."""
        raise DataError(
            "LogLinearMarian.resize_token_embeddings: not supported, as the words are those of the prior; build a "
            "prior over the other dictionary, and a model with it"
        )

    def _mask(self, source: Tensor) -> Tensor:
        return plain(source).ne(self.config.pad_token_id).long()

    # ---- generate -------------------------------------------------------------------------------------------------

    def _next(self, hidden: Tensor, state: State | None, ended: Tensor | None) -> Tensor:
        """log p of the next token: (N, H) -> (N, 1, W). After the end only `<pad>` follows."""
        assert state is not None and ended is not None  # of `prepare_inputs_for_generation`
        head, step = self.head, self.head.step(hidden, state)
        log_p = by_token(step.word_log_probs(), step.background.columns(state.states), head.prior)
        is_pad = torch.arange(log_p.size(1), device=log_p.device) == head.pad
        return only_behind_the_end(log_p, ended, is_pad).unsqueeze(1)

    def _maybe_prepare_encoder_kwargs_for_generation(
        self,
        inputs_tensor: Tensor,
        model_kwargs: dict[str, Any],
        model_input_name: str | None,
        generation_config: GenerationConfig,
    ) -> dict[str, Any]:
        """As transformers', which says the source to nobody but the encoder; and the search's memory."""
        if model_kwargs.get("attention_mask") is None:
            model_kwargs["attention_mask"] = self._mask(inputs_tensor)
        if generation_config.forced_bos_token_id is not None:
            raise DataError(
                "generate: expected no forced_bos_token_id, since training forces no first word, found "
                f"{generation_config.forced_bos_token_id}; set it to None"
            )
        model_kwargs["source"] = inputs_tensor  # a tensor: repeated for each hypothesis of a sentence
        model_kwargs["search"] = Search(self.head, generation_config)
        return super()._maybe_prepare_encoder_kwargs_for_generation(
            inputs_tensor, model_kwargs, model_input_name, generation_config
        )

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        """input_ids: (N, T), all that was written."""
        search: Search = kwargs.pop("search")
        state = search.state(input_ids, kwargs.pop("source"), kwargs["encoder_outputs"][0])
        inputs: dict[str, Any] = super().prepare_inputs_for_generation(input_ids, **kwargs)
        inputs["decoder_input_ids"] = self.head.to_input_ids(inputs["decoder_input_ids"], state)
        return {**inputs, "state": state, "ended": (input_ids[:, 1:] == self.head.eos).any(1)}

    def _get_logits_processor(self, *args: Any, **kwargs: Any) -> LogitsProcessorList:
        """The limit of length, then transformers' own: not in the logits, which a beam search normalises again."""
        processors: LogitsProcessorList = super()._get_logits_processor(*args, **kwargs)
        processors.insert(0, kwargs["model_kwargs"]["search"].within)
        return processors

    # ---- files ----------------------------------------------------------------------------------------------------

    def save_pretrained(self, save_directory: Path | str, *args: Any, **kwargs: Any) -> None:
        super().save_pretrained(save_directory, *args, **kwargs)
        if kwargs.get("is_main_process", True):
            self.head.prior.save(Path(save_directory) / PRIOR)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *args: Any, **kwargs: Any) -> LogLinearMarian:
        """Raises PriorError where the prior beside the weights is another one than they were trained with."""
        model: LogLinearMarian = super().from_pretrained(folder, *args, **kwargs)
        model.head.check_prior()
        for name in POSITIONS:  # loading forgets that they are not trained, and optimisers of checkpoints do not fit
            model.get_parameter(name).requires_grad_(False)
        return model

    def named_non_persistent_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Those that loading makes anew: not what the head has computed from its prior."""
        for name, buffer in super().named_non_persistent_buffers(*args, **kwargs):
            if not name.startswith("head."):
                yield name, buffer


class Search:
    """What a search remembers from one step to the next."""

    def __init__(self, head: LogLinearHead, config: GenerationConfig) -> None:
        """config: whose max_length is known when the search begins."""
        self.head, self.config = head, config
        self.states: PrefixStates[State] | None = None
        self.sentence: Tensor | None = None  # (N,)
        self.now: State | None = None  # of the step under way

    def state(self, written: Tensor, source: Tensor, source_states: Tensor) -> State:
        """Of hypotheses that have written (N, T), `</s>` first; source: (N, L), source_states: (N, L, E)."""
        if self.states is None or self.sentence is None:
            refuse_other_start(self.head, written, "generate: expected decoder_start_token_id")
            self.sentence = torch.unique_consecutive(source, return_inverse=True, dim=0)[1]
            self.states = PrefixStates(
                lambda n: self._start(source, source_states), self.head.advance, State.select, unread=1
            )
        self.now = self.states.of(written, self.sentence)
        return self.now

    def within(self, written: Tensor, scores: Tensor) -> Tensor:
        """A logits processor: scores (N, W) without words after which no end is in reach; all others stay."""
        assert self.now is not None
        limited = self.now.limited(self.longest)
        if limited.reachable is self.now.background:
            return scores
        shares = limited.reachable.log_shares(limited.states)
        columns = limited.reachable.columns(limited.states)
        out = by_token(shares, columns, self.head.prior).isneginf()
        ended = (written[:, 1:] == self.head.eos).any(1)  # behind the end there is only <pad>
        return scores.masked_fill(out & ~ended.unsqueeze(1), NEGATIVE_INFINITY)

    @property
    def longest(self) -> int:
        """Of what is written; `</s>` at the start is not counted."""
        return self.config.max_length - 1

    def _start(self, source: Tensor, source_states: Tensor) -> State:
        """Raises DataError where nothing complete is within reach."""
        head, longest = self.head, self.longest
        with ExitStack() as restored:
            if (table := head.prior.offers()) is not None:
                restored.callback(setattr, table, "once", table.once)
                table.once = True
            state = head.start(len(source), source=source, source_states=source_states)
        needed = int(state.background.steps_to_end(state.states).max())
        if needed > longest:
            raise DataError(
                f"generate: expected max_new_tokens of at least {needed}, which a complete sentence needs here, found "
                f"{longest}; give more"
            )
        return state


def refuse_other_start(head: LogLinearHead, tokens: Tensor, expected: str) -> None:
    """Raise DataError where a row of tokens (B, T) does not begin as in training, with `</s>`."""
    first = tokens[:, 0]
    if bool(first.ne(head.eos).any()):
        other = int(first[first != head.eos][0])
        raise DataError(f"{expected} to be {head.eos}, as in training, found {other}; give {head.eos}")


def refuse_smoothed(forbidden: Tensor, gradient: Tensor) -> None:
    """Raise OptionError for a gradient of log p, (B, T, W), where log p is −inf."""
    if bool((gradient.ne(0) & forbidden).any()):
        raise OptionError(
            "LogLinearMarian: not supported with label_smoothing_factor, which smooths towards words that the "
            "background forbids (log p is −inf); set it to 0, and label_smoothing of the model's configuration instead"
        )


class SourceWords(nn.Embedding):
    """A table of the source's words, which knows terms and strings outside the dictionary as what they stand at."""

    def __init__(self, number: int, width: int, pad: int, unk: int | None) -> None:
        """unk: what strings outside the dictionary are read as; None: there are none."""
        super().__init__(number, width, pad)
        self.unk = unk

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = plain(tokens)
        if self.unk is not None:
            tokens = tokens.masked_fill(tokens >= self.num_embeddings, self.unk)
        return super().forward(tokens)


class TargetWords(nn.Module):
    """The head's embeddings where Marian's decoder expects a table of words; padding is the zero vector."""

    def __init__(self, head: LogLinearHead) -> None:
        super().__init__()
        self._embed, self._pad = head.embed, head.pad  # a method: the head is no part of this module

    def forward(self, tokens: Tensor) -> Tensor:
        return self._embed(tokens) * tokens.ne(self._pad).unsqueeze(-1)


AutoConfig.register(LogLinearMarianConfig.model_type, LogLinearMarianConfig)
AutoModelForSeq2SeqLM.register(LogLinearMarianConfig, LogLinearMarian)
