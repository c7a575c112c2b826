"""Constraints in the loss: a model is trained with the distribution that a search samples from.

    trainer = GRPOTrainer(model, reward_funcs=reward, args=options, train_dataset=prompts, processing_class=tokenizer)
    constrain_trainer(trainer, BackgroundProcessor.from_regex("[0-9]+", tokenizer))
    trainer.train()

TRL computes log p of tokens itself: a trainer calls its model with fused_lm_head=True, and multiplies the network's
last hidden states by the rows of `get_output_embeddings()`. `OutputRows` has these rows for a wrapped model whose
background has no context. For all other distributions, `constrain_trainer` answers such a call with log p′.

Sizes: B texts, T positions, each predicting the next token, M of them in constrained texts, K tokens, H width.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers.utils import ModelOutput

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.huggingface.processor import BackgroundProcessor
from fairseq_llrnn.output.normalisers import Exact

PLAIN = "without_constraint"  # attribute of a method: the one that it replaces
IGNORED = -100  # the label of a token that is not predicted
# settings with which samples have another distribution, the loss is another one, or a row has several texts
NEUTRAL = {
    "top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0, "generation_kwargs": None, "use_vllm": False,
    "label_smoothing_factor": 0.0, "compute_loss_func": None, "packing": False, "padding_free": False,
}  # fmt: skip


class OutputRows(nn.Module):
    """The softmax of a wrapped model: row and bias of each token, so that p = softmax(W h + b)."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = (model,)  # no part of this module; PEFT may give it another head

    @property
    def weight(self) -> Tensor:
        """(K, H). Raises DataError: the background depends on the context."""
        head, words = self._model[0].head, self._model[0].words
        if head.needs_context or head.sources or head.change is not None or type(head.normaliser) is not Exact:
            raise DataError(
                f"{type(self._model[0]).__name__}.get_output_embeddings: expected a background without context, found "
                "another; for a trainer of TRL, call fairseq_llrnn.huggingface.constrain_trainer(trainer)"
            )
        rows: Tensor = head.output.rows.compose(head.output.weight)[head.output.class_of[words]]
        return rows

    @property
    def bias(self) -> Tensor:
        """(K,)."""
        head, words = self._model[0].head, self._model[0].words
        background = head.background.bind()
        biases = head.output.rows.compose(head.output.bias.unsqueeze(1)).squeeze(1)[head.output.class_of[words]]
        log_weights = background.view(background.start(1)).log_weights[0]
        return biases + log_weights.to(biases)[words]


@dataclass
class TokenScores(ModelOutput):
    """What a trainer of TRL reads, (B, T) where no shape is given, and 0 without a label."""

    loss: Tensor | None = None  # ()
    log_probs: Tensor | None = None
    entropy: Tensor | None = None
    is_top1: Tensor | None = None
    label_mask: Tensor | None = None
    aux_loss: Tensor | None = None  # (), of a mixture of experts


def constrain_trainer(trainer: Any, processor: BackgroundProcessor | None = None) -> None:
    """Let a trainer of TRL sample and train with the distribution of a constraint.

    A text begins at its first label after the first token, and `max_completion_length` limits it, as in the samples.

    Args:
        trainer: a GRPOTrainer or SFTTrainer, before `train`.
        processor: a constraint on the texts that are predicted. None: the background of a wrapped model alone.

    Raises:
        OptionError: a setting that makes samples and loss differ, or a processor that reads prompts or is for one
            batch. DataError: no text is short enough.
    """
    args = trainer.args
    for name, neutral in NEUTRAL.items():
        if (found := getattr(args, name, getattr(trainer, name, neutral))) != neutral:
            raise OptionError(
                f"constrain_trainer: {name}: expected {neutral}, with which samples and loss have the distribution of "
                f"the constraint, found {found!r:.60}; leave it out"
            )
    if processor is not None and not isinstance(processor, BackgroundProcessor):
        raise TypeError(f"constrain_trainer: expected a BackgroundProcessor, found {processor!r:.60}; make one")
    if processor is not None and not (processor.finds_unread and processor.sentences is None):
        raise OptionError(
            "constrain_trainer: expected a processor for texts after any prompt, found one with `unread`, sources or "
            "rows of a batch; make it without them"
        )
    longest = getattr(args, "max_completion_length", None)
    ends = getattr(getattr(trainer, "generation_config", None), "eos_token_id", None)
    in_loss = None if processor is None else processor.for_search(ends, 0, longest)
    for model in (trainer.model, getattr(trainer, "ref_model", None)):
        if model is not None:
            network = model.get_base_model() if hasattr(model, "get_base_model") else model
            is_sampled = longest is not None
            for name in ("forward", "generate"):  # those of an earlier trainer of this model
                if (plain := getattr(getattr(network, name), PLAIN, None)) is not None:
                    setattr(network, name, plain)
            network.forward = _with_token_scores(network, in_loss, getattr(args, "temperature", 1.0), is_sampled)
            if processor is not None:
                network.generate = _constrained_search(network, processor)


def _constrained_search(model: Any, processor: BackgroundProcessor) -> Any:
    """Return `generate` of a model with a constraint."""
    search = model.generate

    @functools.wraps(search)
    def generate(*inputs: Any, **options: Any) -> Any:
        plain = SimpleNamespace(generate=search, generation_config=model.generation_config)
        return processor.generate(plain, *inputs, **options)

    setattr(generate, PLAIN, search)
    return generate


def _with_token_scores(
    model: Any, processor: BackgroundProcessor | None, temperature: float, is_sampled: bool
) -> Any:  # fmt: skip
    """Return `forward` of a model that returns TokenScores with fused_lm_head=True.

    Args:
        is_sampled: whether the texts are samples, which are not left out of the counts of a background.
    """
    plain = model.forward
    has_positions = "position_ids" in inspect.signature(type(model).forward).parameters

    @functools.wraps(plain)
    def forward(*inputs: Any, fused_lm_head: bool = False, **options: Any) -> Any:
        if not fused_lm_head:
            return plain(*inputs, **options)
        labels, number = options.pop("labels"), options.pop("num_items_in_batch", None)
        mask = options.get("attention_mask")
        if has_positions and mask is not None:  # those of a search, also if prompts are padded on the left
            options["position_ids"] = (mask.cumsum(1) - 1).clamp_min(0)
        head = getattr(model, "head", None) if is_sampled and model.training else None
        if head is not None:
            head.eval()
        outputs = plain(*inputs, **options)
        if head is not None:
            head.train()
        scores = text_scores(processor, outputs.logits, options["input_ids"], labels, temperature, number)
        scores.aux_loss = outputs.get("aux_loss")
        if options.get("output_router_logits") and scores.aux_loss is None:
            raise OptionError(
                f"{type(model).__name__}: a wrapped mixture of experts has no loss of its router; set "
                "output_router_logits of the network's configuration to False"
            )
        return scores

    setattr(forward, PLAIN, plain)
    return forward


@torch.compiler.disable
def text_scores(
    processor: BackgroundProcessor | None, logits: Tensor, tokens: Tensor, labels: Tensor, temperature: float = 1.0,
    number: Tensor | int | None = None,
) -> TokenScores:  # fmt: skip
    """Return log p′ of tokens, each predicted by the logits before it.

    Compiled code calls it with whole tensors, since parts of these as outputs of a graph fail with inductor.
    """
    return token_scores(processor, logits[:, :-1], tokens[:, 1:], labels[:, 1:] != IGNORED, temperature, number)


def token_scores(
    processor: BackgroundProcessor | None, logits: Tensor, tokens: Tensor, label_mask: Tensor,
    temperature: float = 1.0, number: Tensor | int | None = None,
) -> TokenScores:  # fmt: skip
    """Return log p′ of tokens.

    Args:
        logits: (B, T, K). tokens: (B, T), which they predict.
        label_mask: (B, T), where a token counts.
        temperature: divides log p′, as in a search.
        number: the loss is a sum divided by it. None: the mean.

    Raises:
        DataError: a text that the constraint does not allow.
    """
    rows, places, log_p = constrained(processor, logits, tokens, label_mask)
    if temperature != 1.0:
        log_p = (log_p / temperature).log_softmax(1)
    chosen = log_p.gather(1, tokens[rows, places].unsqueeze(1)).squeeze(1)

    def at_places(values: Tensor) -> Tensor:
        of_all = values.new_zeros(label_mask.shape).index_put((rows, places), values)
        return of_all.masked_fill(~label_mask, 0)

    log_probs = at_places(chosen)
    with torch.no_grad():
        entropy = at_places(torch.special.entr(log_p.exp()).sum(1))
        is_top1 = at_places(chosen == log_p.amax(1))
    loss = -log_probs.sum() / (label_mask.sum().clamp_min(1) if number is None else number)
    return TokenScores(loss, log_probs, entropy, is_top1, label_mask)


def constrained(
    processor: BackgroundProcessor | None, logits: Tensor, tokens: Tensor, label_mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows and places of the tokens of texts, (M,), and log p′ of all tokens there, (M, K).

    A text begins at the first label of a row and ends at the last one. The processor reads one token of each text after
    the other, as in a search.
    """
    if processor is None or not label_mask.numel():
        rows, places = label_mask.nonzero().unbind(1)
        return rows, places, _scores_at(logits, rows, places).log_softmax(1)
    count = label_mask.long().cumsum(1)
    begun = count.gt(0) & (count - label_mask.long()).lt(count[:, -1:])
    lengths, first = begun.sum(1), begun.long().argmax(1)
    at = (first.unsqueeze(1) + torch.arange(int(lengths.max()), device=first.device)).clamp_max(tokens.size(1) - 1)
    texts = tokens.gather(1, at)
    found = [(first[:0], first[:0], _scores_at(logits, first[:0], first[:0]))]
    for step in range(texts.size(1)):
        rows = (lengths > step).nonzero().flatten()
        places = first[rows] + step
        log_p = processor(texts[rows, :step], _scores_at(logits, rows, places))
        forbidden = log_p.detach().gather(1, texts[rows, step : step + 1]).squeeze(1).isneginf()
        if bool(forbidden.any()):
            row = int(rows[forbidden][0])
            raise DataError(
                f"constrain_trainer: expected texts that the constraint allows, found token {int(texts[row, step])} at "
                f"place {step} of text {row} of a batch, which it forbids; remove the text, or change the constraint"
            )
        found.append((rows, places, log_p))
    rows, places, log_p = (torch.cat(parts) for parts in zip(*found, strict=True))
    return rows, places, log_p


def _scores_at(logits: Tensor, rows: Tensor, places: Tensor) -> Tensor:
    """Return logits (B, T, K) of tokens, (M, K), in float32 at least, as `generate` reads them."""
    return logits[rows, places].to(torch.promote_types(logits.dtype, torch.float32))
