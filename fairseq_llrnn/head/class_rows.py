"""All classes of a head: their rows and normalisation, made once a batch or a search, and scores of the few others.

Sizes: B batch (in a search, N hypotheses), T time, L source length, S signatures, O open classes, J context classes
(slots of evidence, then the exceptions of experts), H hidden width, E encoder width.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fairseq_llrnn.evidence.slots import SlotRows
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.head.records import RowPair, Rows
from fairseq_llrnn.output.class_sampling import ClassSampler
from fairseq_llrnn.output.context_sources import ContextClassSource
from fairseq_llrnn.output.exact import ExactOutput
from fairseq_llrnn.output.learned_tree import LearnedTreeLayer
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.output.normalisation import OtherScores
from fairseq_llrnn.output.sampled_log_linear import SampledOutput
from fairseq_llrnn.output.scored_class import ScoredClass
from fairseq_llrnn.output.tree_layer import TreeLayer
from fairseq_llrnn.output.tree_log_linear import TreeOutput
from fairseq_llrnn.output.tree_normalisation import TreeNormalisation


def rows_of_classes(
    output: LogLinearOutput, opened: ScoredClass | None, sampler: ClassSampler | None, tree: TreeLayer | None
) -> Rows:
    """The normalisation, by a sample or a tree if there is one; and rows of open classes, if any; none of slots."""
    of_open = None if opened is None else opened.composed(output.weight, output.bias)
    if sampler is not None:
        return Rows(SampledOutput(output, sampler.draw()), of_open)
    if tree is not None:
        made = TreeOutput(output, tree, None if tree.training else output.composed())
        learned = tree if tree.training and isinstance(tree, LearnedTreeLayer) else None
        return Rows(TreeNormalisation(made, None if opened is None else opened.of_class, learned), of_open)
    own = output.composed() if opened is None else opened.without_row(output.composed())
    return Rows(ExactOutput(output, own), of_open)


def widened(
    rows: Rows, experts: ExpertFeatures, opened: ScoredClass | None, strings: ContextClassSource | None
) -> Rows:
    """The rows with the columns that the experts have named so far."""
    width = experts.weight.size(1)  # what comes after it was added before, for fewer columns
    signatures, bias = rows.exact.composed
    classes = replace(rows.exact, composed=(experts.widen_rows(signatures[:, :width]), bias))
    slots, of_open = rows.slots, rows.open_classes
    if slots is not None and strings is not None:
        slots = experts.widen_other_rows(slots[0][..., :width], strings.compose), slots[1]
    if of_open is not None and opened is not None:
        of_open = experts.widen_other_rows(of_open[0][:, :width], opened.rows.compose), of_open[1]
    return replace(rows, classes=classes, open_classes=of_open, slots=slots)


def rows_of_slots(
    layer: SlotRows, output: LogLinearOutput, source: ContextClassSource, states: Tensor, sentence: Tensor | None
) -> RowPair:
    """Rows (B, J, H) and biases (B, J) of the slots of every sentence, like those of LogLinearOutput.composed.

    Args:
        states: of the encoder, (B, L, E), or of hypotheses, (N, L, E). sentence: of each hypothesis, (N,), or None.
    """
    if sentence is not None:
        states = states[sentence.diff(prepend=sentence[:1] - 1) > 0]  # the first hypothesis of each
    rows: RowPair = layer(source, output.weight, output.bias, states)
    return rows


def other_scores(
    opened: ScoredClass | None, hidden: Tensor, rows: Rows, slots: RowPair | None, exceptions: RowPair | None
) -> OtherScores:
    """Scores of context classes, and of open ones, by which <unk> has its own: hidden (B, T, H').

    Args:
        slots: of each row's sentence, (B, J₁, H') and (B, J₁). exceptions: (B, T, J − J₁, H') and (B, T, J − J₁).
    """
    of_open = None
    if opened is not None and rows.open_classes is not None:
        of_open = opened, opened.scores(hidden, rows.open_classes)
    return OtherScores(_context_scores(hidden, slots, exceptions), of_open)


def _context_scores(hidden: Tensor, slots: RowPair | None, exceptions: RowPair | None) -> Tensor | None:
    """Scores of the context classes: (B, T, H') -> (B, T, J), at least float32; None where there are none."""
    found = []
    if slots is not None:
        rows, bias = slots
        found.append((hidden @ rows.to(hidden.dtype).transpose(1, 2)).to(bias.dtype) + bias.unsqueeze(1))
    if exceptions is not None:
        rows, bias = exceptions
        if rows.size(1) == 1:
            product = hidden @ rows.squeeze(1).to(hidden.dtype).transpose(1, 2)
        else:
            product = (hidden.unsqueeze(2) * rows.to(hidden.dtype)).sum(3)
        found.append(product.to(bias.dtype) + bias)
    if not found:
        return None
    return torch.cat(found, dim=2) if len(found) > 1 else found[0]
