"""GPT-2 from `transformers` whose lm_head is the log-linear head, with the prior beside its weights.

    model = LogLinearGPT2(LogLinearGPT2Config.of(prior, n_embd=64, n_layer=2, n_head=2), prior)
    model.save_pretrained("folder")                        # config.json, model.safetensors, prior/
    model = LogLinearGPT2.from_pretrained("folder")

A sentence is `</s>`, its words, `</s>`. Embeddings are sums over features and share their weights with the output, as
GPT-2's own do. Padding is on the right; prompts of one call of `generate` have the same length.
Sizes: N sentences or hypotheses, T tokens, V words, H width.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, GenerationMixin, GPT2Config, GPT2Model, GPT2PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head import FeatureInput

PRIOR = "prior"  # the folder beside the weights
TIED = ["transformer.wte.weight", "lm_head.embedding.weight"]  # other names of the output's weights per feature
IGNORED = -100  # as Hugging Face marks labels that are no targets


class LogLinearGPT2Config(GPT2Config):
    """GPT-2's configuration."""

    model_type = "llrnn_gpt2"

    @classmethod
    def of(cls, prior: Prior, n_embd: int, n_layer: int, n_head: int, n_positions: int = 64) -> LogLinearGPT2Config:
        """That of a model of the prior's words."""
        end, pad = prior.index("</s>"), prior.index("<pad>")
        sizes = {"n_embd": n_embd, "n_layer": n_layer, "n_head": n_head, "n_positions": n_positions}
        return cls(vocab_size=len(prior.symbols), bos_token_id=end, eos_token_id=end, pad_token_id=pad, **sizes)


class LogLinearGPT2(GPT2PreTrainedModel, GenerationMixin):
    """GPT-2 -> log-linear head. `logits` are log p of all words; −inf for what the background forbids."""

    config_class = LogLinearGPT2Config
    _tied_weights_keys = dict.fromkeys(TIED, "lm_head.output.weight")
    _keys_to_ignore_on_save = TIED

    def __init__(self, config: LogLinearGPT2Config, prior: Prior | None = None) -> None:
        """prior: None for the one beside the weights that `from_pretrained` reads."""
        super().__init__(config)
        prior = Prior.load(Path(config.name_or_path) / PRIOR) if prior is None else prior
        self.transformer = GPT2Model(config)
        with torch.device("cpu"):  # `from_pretrained` makes tensors without values, but what the head computes has some
            self.lm_head = LogLinearHead(prior, config.n_embd, embedding=FeatureInput(config.n_embd, tied=True))
        self.transformer.set_input_embeddings(self.lm_head.embedding)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        position_ids: Tensor | None = None,
        written: Tensor | None = None,
        logits_to_keep: int = 0,
        return_dict: bool | None = None,
    ) -> CausalLMOutputWithPast:
        """The loss, where there are labels; or log p of the next word, after each position or after the last.

        Args:
            input_ids: (N, T), `</s>` first; with a cache, only those that it has not seen.
            labels: (N, T), as input_ids, −100 at padding; label t is the target at position t − 1.
            written: (N, ≥ T) all tokens so far, of which the background is asked; `generate` gives them.
            logits_to_keep, return_dict: of `generate`, whose values are what this model does anyway.
        """
        seen = 0 if past_key_values is None else past_key_values.get_seq_length()
        read = self.transformer(
            input_ids,
            attention_mask=attention_mask,
            past_key_values=past_key_values,
            use_cache=use_cache,
            position_ids=position_ids,
        )
        hidden, head, loss = read.last_hidden_state, self.lm_head, None
        logits: Tensor | None = None  # no tensor as wide as the vocabulary where only the loss is asked for
        if labels is not None:
            targets = labels[:, 1:].masked_fill(labels[:, 1:] == IGNORED, head.pad)
            loss = head.loss(hidden[:, :-1], targets, previous=input_ids[:, :-1])
        elif written is not None:
            if logits_to_keep > 1:
                raise DataError("LogLinearGPT2.generate: assisted generation is not supported; leave it out")
            logits = self._log_probs_after(hidden[:, -1], written)
        elif seen:
            raise DataError("LogLinearGPT2: expected `written`, all tokens so far, beside a cache, found None; give it")
        else:
            logits = head.log_probs(hidden, previous=input_ids)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=read.past_key_values)

    def _log_probs_after(self, hidden: Tensor, written: Tensor) -> Tensor:
        """log p of the next token: (N, H), (N, T) -> (N, 1, V). After the end only `<pad>` follows."""
        head = self.lm_head
        # all of the prefix once more: T small steps, and right for any search, however it reorders its hypotheses
        state = head.advance(head.start(len(written)), written[:, 1:])
        log_p = head.step(hidden, state).word_log_probs()
        # a beam search may keep a hypothesis of probability zero, where a grammar has fewer: nothing follows it, either
        over = has_ended(written, head.eos) | log_p.isnan().any(1)
        only_pad = torch.full_like(log_p, -torch.inf)
        only_pad[:, head.pad] = 0.0
        return torch.where(over.unsqueeze(1), only_pad, log_p).unsqueeze(1)

    # ---- what Hugging Face calls, with names and arguments of its own -----------------------------------------------

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict[str, Any]:
        head = self.lm_head
        padded = (input_ids[:, 1:] == head.pad) & ~(input_ids[:, 1:] == head.eos).cumsum(1).bool()
        if (input_ids[:, 0] != head.eos).any() or padded.any():
            raise DataError(
                "LogLinearGPT2.generate: expected prompts that begin with </s> and are of one length, found "
                f"{'padding' if padded.any() else 'another first token'}; put </s> first, and generate for each length "
                "of prompts by itself"
            )
        return {**super().prepare_inputs_for_generation(input_ids, **kwargs), "written": input_ids}

    def save_pretrained(self, save_directory: Path | str, *args: Any, **kwargs: Any) -> None:
        super().save_pretrained(save_directory, *args, **kwargs)
        if kwargs.get("is_main_process", True):
            self.lm_head.prior.save(Path(save_directory) / PRIOR)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *args: Any, **kwargs: Any) -> LogLinearGPT2:
        model: LogLinearGPT2 = super().from_pretrained(folder, *args, **kwargs)
        model.lm_head.check_prior()
        return model

    def named_non_persistent_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Those that loading makes anew: not what the head has computed from its prior."""
        for name, buffer in super().named_non_persistent_buffers(*args, **kwargs):
            if not name.startswith(("lm_head.", "transformer.wte.")):
                yield name, buffer


def has_ended(written: Tensor, end: int) -> Tensor:
    """Which of the hypotheses have written `</s>`, the first token apart: (N, T) -> (N,) bool."""
    return (written[:, 1:] == end).any(1)


AutoConfig.register(LogLinearGPT2Config.model_type, LogLinearGPT2Config)
AutoModelForCausalLM.register(LogLinearGPT2Config, LogLinearGPT2)
