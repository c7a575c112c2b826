"""Constraints in a vLLM server: a custom logits processor for its V1 interface.

    vllm serve MODEL --logits-processors fairseq_llrnn.huggingface.vllm_processor:ConstraintProcessor

    {"prompt": "…", "max_tokens": 60, "vllm_xargs": {"constraint_regex": "[0-9]+"}}                       # a request
    SamplingParams(max_tokens=60, extra_args={"constraint_json_schema": schema, "constraint_after": "</think>"})

vLLM makes one processor for all requests of its batch. Before each step, it lists the requests that it has removed,
added and moved (`update_state`), and then passes the logits of all rows (`apply`). A request's list of written tokens
grows in place. Texts end within `max_tokens`.

This follows https://docs.vllm.ai/en/stable/features/custom_logitsprocs and is tested with a stand-in of that interface,
not with vLLM. From 0.32 on, vLLM has this interface with VLLM_USE_V2_MODEL_RUNNER=0. Speculative decoding does not
work. vLLM does not pass the written tokens to processors that it finds as entry points.

Sizes: N rows, K tokens of the model.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from fairseq_llrnn.backgrounds.background import NEGATIVE_INFINITY
from fairseq_llrnn.errors import LLRNNError, OptionError
from fairseq_llrnn.huggingface.processor import BackgroundProcessor

try:
    from vllm.v1.sample.logits_processor import LogitsProcessor
except ImportError:  # tests have a stand-in
    LogitsProcessor = object

logger = logging.getLogger(__name__)
CONSTRAINTS = "constraint_regex", "constraint_json_schema", "constraint_grammar"
AFTER = "constraint_after"
PREFIX = "constraint_"
CACHED = 128  # constraints


class ConstraintProcessor(LogitsProcessor):
    """log p′ for the requests that have a constraint (module docstring)."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError, which is the server's answer, for a constraint that cannot be read."""
        try:
            constraint_of(sampling_params, byte_tokenizer())
        except LLRNNError as error:
            raise ValueError(str(error)) from None

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        model = vllm_config.model_config
        self.tokenizer = AutoTokenizer.from_pretrained(
            model.tokenizer, revision=model.tokenizer_revision, trust_remote_code=model.trust_remote_code
        )
        # by row: None if no text goes on, the list of written tokens, which grows, and other ends than the tokenizer's
        self.requests: dict[int, tuple[BackgroundProcessor | None, list[int], list[int]]] = {}

    def is_argmax_invariant(self) -> bool:
        """Return whether the most probable token stays the same."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests of the batch. batch_update: None if they are those of the step before."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self.requests.pop(row, None)
        for row, params, _, written in batch_update.added:
            self.requests.pop(row, None)
            try:
                if (processor := constraint_of(params, self.tokenizer)) is not None:
                    ends = sorted({*params.all_stop_token_ids} - {self.tokenizer.eos_token_id})
                    self.requests[row] = processor.limited(0, params.max_tokens), written, ends
            except LLRNNError as error:  # of one request, not of the server
                logger.warning("A request ends without a text: %s", error)
                self.requests[row] = None, written, []
        for source, target, direction in batch_update.moved:
            moved, replaced = self.requests.pop(source, None), self.requests.pop(target, None)
            if moved is not None:
                self.requests[target] = moved
            if replaced is not None and direction.name == "SWAP":
                self.requests[source] = replaced

    def apply(self, logits: Tensor) -> Tensor:
        """Return log p′ in the rows with a constraint. logits: (N, K), which changes in place."""
        for row, (processor, written, ends) in self.requests.items():
            if processor is None:
                self._end(logits, row)
                continue
            if -1 in written:
                raise OptionError(
                    "ConstraintProcessor: expected written tokens, found placeholders of vLLM; name the processor in "
                    "--logits-processors, or set --no-async-scheduling"
                )
            logits[row, ends] = NEGATIVE_INFINITY
            tokens = torch.tensor([written], dtype=torch.long, device=logits.device)
            try:
                logits[row] = processor(tokens, logits[row : row + 1])[0]
            except LLRNNError as error:
                logger.warning("A request ends with an incomplete text: %s", error)
                self.requests[row] = None, written, []
                self._end(logits, row)
        return logits

    def _end(self, logits: Tensor, row: int) -> None:
        logits[row] = NEGATIVE_INFINITY
        logits[row, self.tokenizer.eos_token_id] = 0.0


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
