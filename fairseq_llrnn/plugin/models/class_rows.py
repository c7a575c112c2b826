"""All classes of a decoder's output: their rows, made once a batch or a search, and their scores.

Sizes: B batch (in a search, hypotheses), T time, L source length, S signatures, O open classes, J classes beyond the
prior's (slots of evidence, then the exceptions of experts), H hidden width, E encoder width. `extra` is the second
element of the decoder's output: "composed" or "sampled" for the signatures; where there are any, "open", "slots" and
"exceptions".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.evidence.background import EvidenceMixture
from fairseq_llrnn.evidence.slots import SlotRows
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture
from fairseq_llrnn.output.class_sampling import ClassSampler
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.output.sampled_log_linear import SampledOutput
from fairseq_llrnn.plugin.models.experts import Keep, Rows, exception_scores, without_experts


def rows_of_classes(
    output: LogLinearOutput, opened: OpenMixture | None, sampler: ClassSampler | None, keep: Keep
) -> dict[str, Any]:
    """Rows of the signatures, or of those that are drawn; and of the open classes, if there are any."""
    rows: dict[str, Any] = {}
    if sampler is not None:
        rows["sampled"] = SampledOutput(output, sampler.draw())
    elif opened is None:
        rows["composed"] = keep("output rows", output.composed)
    else:
        rows["composed"] = keep("output rows", lambda: opened.without_unk(output.composed()))
    if opened is not None:
        rows["open"] = keep("open rows", lambda: opened.composed(output.weight, output.bias))
    return rows


def rows_of_slots(
    layer: SlotRows, output: LogLinearOutput, evidence: EvidenceMixture, sentence: Tensor | None, states: Tensor
) -> Rows:
    """Rows (B, J, H) and biases (B, J) of the slots of every sentence, like those of LogLinearOutput.composed.

    Args:
        sentence: of each hypothesis of a search, (N,). states: of the encoder, (L, B, E), or of hypotheses, (L, N, E).
    """
    states = states.transpose(0, 1)
    if sentence is not None:
        states = states[sentence.diff(prepend=sentence[:1] - 1) > 0]  # the first hypothesis of each
    rows: Rows = layer(evidence.slots, output.weight, output.bias, states)
    return rows


def class_scores(
    output: LogLinearOutput, opened: OpenMixture | None, hidden: Tensor, extra: dict[str, Any]
) -> Tensor:
    """Scores of all classes, that of <unk> being of the open ones: (B, T, H) -> (B, T, S + J)."""
    scores = output.class_scores(hidden, extra["composed"])
    if opened is not None:
        scores = opened.with_unk(scores, opened.scores(hidden, extra["open"]))
    return torch.cat([scores, more_scores(hidden, extra)], dim=2) if has_more(extra) else scores


def has_more(extra: dict[str, Any]) -> bool:
    """Whether there are classes beyond the prior's."""
    return extra.get("slots") is not None or extra.get("exceptions") is not None


def more_scores(hidden: Tensor, extra: dict[str, Any]) -> Tensor:
    """Scores of those classes: (B, T, H) -> (B, T, J), at least float32."""
    found = []
    if extra.get("slots") is not None:
        rows, bias = extra["slots"]
        if "state" in extra:  # a search, whose hypotheses know their sentence
            sentence = without_experts(extra["background"], extra["state"])[1][:, 0]
            rows, bias = rows[sentence], bias[sentence]
        found.append((hidden @ rows.to(hidden.dtype).transpose(1, 2)).to(bias.dtype) + bias.unsqueeze(1))
    if extra.get("exceptions") is not None:
        found.append(exception_scores(hidden, extra["exceptions"]))
    return torch.cat(found, dim=2) if len(found) > 1 else found[0]
