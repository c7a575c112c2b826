"""Constraints in a vLLM server: custom logits processors.

    vllm serve MODEL --logits-processors fairseq_llrnn.huggingface.vllm_processor:ConstraintProcessor

    {"prompt": "…", "max_tokens": 60, "vllm_xargs": {"constraint_regex": "[0-9]+"}}                       # a request
    SamplingParams(max_tokens=60, extra_args={"constraint_json_schema": schema, "constraint_after": "</think>"})

vLLM makes one processor for all requests. Texts end within `max_tokens`. A request has a slot, also in the table of
tokens. Each step lists the slots of the rows of logits, and the lengths of their texts.

The interface is that of model runner V2, the default from vLLM 0.32 on
(https://docs.vllm.ai/en/v0.32.0/features/custom_logitsprocs). It is tested with a stand-in, not with vLLM. Speculative
decoding does not work.

Sizes: N rows, K tokens of the model, T tokens of a text.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.errors import LLRNNError, OptionError
from fairseq_llrnn.huggingface.processor import BackgroundProcessor

try:
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor
except ImportError:  # without vLLM, or an earlier version, which rejects the class
    LogitsProcessor = object

logger = logging.getLogger(__name__)
CONSTRAINTS = "constraint_regex", "constraint_json_schema", "constraint_grammar"
AFTER = "constraint_after"
PREFIX = "constraint_"
CACHED = 128  # constraints


@dataclass
class Request:
    """A request with a constraint."""

    processor: BackgroundProcessor | None  # None: its text has to end
    end: int

    def constrain_(self, logits: Tensor, row: int, written: Tensor) -> None:
        """Change a row of logits (N, K) to log p′ after the written tokens, (T,)."""
        if self.processor is not None:
            try:
                logits[row] = self.processor(written.long().unsqueeze(0), logits[row : row + 1])[0]
                return
            except LLRNNError as error:
                logger.warning("A request ends with an incomplete text: %s", error)
                self.processor = None
        logits[row] = NEGATIVE_INFINITY
        logits[row, self.end] = 0.0


class ConstraintProcessor(LogitsProcessor):
    """log p′ for the requests that have a constraint (module docstring)."""

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        """req_states: vLLM's tokens of all requests, by slot."""
        if vllm_config.speculative_config is not None:
            raise OptionError("ConstraintProcessor: expected no speculative decoding; leave --speculative-config out")
        model = vllm_config.model_config
        self.tokenizer = AutoTokenizer.from_pretrained(
            model.tokenizer, revision=model.tokenizer_revision, trust_remote_code=model.trust_remote_code
        )
        self.states = req_states
        self.requests: dict[int, Request | None] = {}  # by slot

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError, which is the server's answer, for a constraint that cannot be read."""
        try:
            constraint_of(sampling_params, byte_tokenizer())
        except LLRNNError as error:
            raise ValueError(str(error)) from None

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Return whether the new request of a slot has a constraint."""
        self.requests[req_idx] = self._new(sampling_params)
        return self.requests[req_idx] is not None

    def apply(self, logits: Tensor, ctx: Any) -> Tensor:
        """Return log p′ in the rows with a constraint. logits: (N, K), which changes in place."""
        lengths = ctx.seq_lens_upper_bound_np.tolist()  # exact without speculative decoding
        for row, (slot, length) in enumerate(zip(ctx.idx_mapping_np.tolist(), lengths, strict=True)):
            if (request := self.requests.get(slot)) is not None:
                prompt = int(self.states.prompt_len.np[slot])
                request.constrain_(logits, row, self.states.all_token_ids.gpu[slot, prompt:length])
        return logits

    def _new(self, params: Any) -> Request | None:
        """Return a new request. params: vLLM's SamplingParams. None: it has no constraint."""
        processor = None
        try:
            constraint = constraint_of(params, self.tokenizer)
            if constraint is None:
                return None
            processor = constraint.for_search([*params.all_stop_token_ids], 0, params.max_tokens)
        except LLRNNError as error:  # of one request, not of the server
            logger.warning("A request ends without a text: %s", error)
        return Request(processor, self.tokenizer.eos_token_id)


def constraint_of(params: Any, tokenizer: Any) -> BackgroundProcessor | None:
    """Return the constraint of a request, or None.

    Args:
        params: vLLM's SamplingParams.

    Raises:
        OptionError: several constraints, or one that is no text. DataError: it cannot be read.
    """
    given = {name: value for name, value in (params.extra_args or {}).items() if name.startswith(PREFIX)}
    if not given:
        return None
    names = [name for name in CONSTRAINTS if name in given]
    are_texts = all(isinstance(value, str) for value in given.values())
    if len(names) != 1 or {*given} - {names[0], AFTER} or not are_texts:
        raise OptionError(
            f"extra_args: expected one of {', '.join(CONSTRAINTS)} as text, and {AFTER} or none, found "
            f"{given!r:.100}; give one of them"
        )
    return _compiled(names[0], given[names[0]], given.get(AFTER), tokenizer)


@lru_cache(CACHED)
def _compiled(name: str, text: str, after: str | None, tokenizer: Any) -> BackgroundProcessor:
    if name == "constraint_regex":
        return BackgroundProcessor.from_regex(text, tokenizer, after=after, unread=0)
    if name == "constraint_json_schema":
        return BackgroundProcessor.from_json_schema(text, tokenizer, after=after, unread=0)
    return BackgroundProcessor.from_grammar(f"{text}\n", tokenizer, after=after, unread=0)  # no name of a file


@lru_cache(1)
def byte_tokenizer() -> Any:
    """A tokenizer of bytes, to check a constraint before the model's tokenizer is there."""
    tokens = ["<end>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    backend = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=[]))
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")
