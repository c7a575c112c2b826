"""The loss of a log-linear layer, on one page: plain torch, no prior, no module.

    p(x | K)  ∝  b(K, x) exp(a(K)ᵀ φ(x)),   a(K) = W h + c        (Dymetman & Xiao 2016, §2)

Words with equal features φ are one class σ. With rows E = Φ W, masses B_K(σ) = Σ_{x ∈ σ} b(K, x), and the share
b(K, x) / B_K(σ) of a word in its class,

    scores(σ)       =  h E_σᵀ + (Φ c)_σ + log B_K(σ)                a sum over S classes instead of V words
    −log p(x | K)   =  log Σ_σ exp scores(σ)  −  scores(σ(x))  −  log share(x)

    E = features @ weight                                           # (S, F), (F, H): Φ and W, learned
    loss = log_linear_nll(hidden, class_of[words], E, log_mass, log_share[words]).mean()

With one word per class, log_mass = 0 and no shares it is torch's cross_entropy. The rest of this package computes these
five tensors. Sizes: N positions, G groups of positions, S classes, J classes of the context (slots), H hidden width.
Probabilities are natural logarithms.

Under torch.autocast only the hidden states and matrix products have its dtype. Biases, masses and sums over classes
keep float32, forward and backward, eager and compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights, log_shares
from fairseq_llrnn.errors import OptionError


def to_autocast(hidden: Tensor) -> Tensor:
    """Return hidden states in the dtype of torch.autocast if it is on; float64 stays, as in torch's products."""
    device = hidden.device.type
    if hidden.dtype == torch.float64 or not torch.is_autocast_enabled(device):
        return hidden
    return hidden.to(torch.get_autocast_dtype(device))


def outside_autocast(like: Tensor) -> torch.autocast:
    """Turn torch.autocast off, on the device of `like`. A compiled backward pass needs this: torch traces it inside."""
    return torch.autocast(like.device.type, enabled=False)


# Positions × classes of a chunk: they fit the caches of a CPU, and keep a GPU busy
CPU_CELLS, GPU_CELLS = 1 << 22, 1 << 27
# Unit of sums of rows' gradients: float16 can then represent sums over many positions, and a power of two is exact
UNIT = 2.0**8


class _Arguments(NamedTuple):
    """The arguments of a loss, for N positions or for a chunk of them."""

    hidden: Tensor  # (N, H)
    rows: Tensor  # (S, H)
    bias: Tensor  # (S,), or (G, S) with row g for the N/G positions from g·N/G on; includes log_mass
    slots: Tensor | None  # (N, J) scores without the constant of `apply_sparse_updates_`
    targets: Tensor  # (N,); S + j for slot j
    class_weights: ClassWeights  # only the entries are used

    def slices(self) -> list[slice]:
        """Return chunks of whole groups. Their number is a power of two, or of four in a compiled graph: torch compiles
        a graph for each number, and stops at eight.
        """
        num_positions, chunks = len(self.hidden), 1
        groups = num_positions if self.bias.dim() == 1 else len(self.bias)
        at_once = CPU_CELLS if self.hidden.device.type == "cpu" else GPU_CELLS
        factor = 4 if torch.compiler.is_compiling() else 2
        while chunks * at_once < num_positions * len(self.rows) and factor * chunks <= groups:
            chunks *= factor
        ends = [groups * i // chunks * (num_positions // groups) for i in range(1, chunks)]
        return [slice(begin, end) for begin, end in zip([0, *ends], [*ends, num_positions], strict=True)]

    def at(self, positions: slice) -> _Arguments:
        """Return a chunk."""
        bias, slots, class_weights = self.bias, self.slots, self.class_weights
        if bias.dim() == 2:
            width = len(self.hidden) // len(bias)
            bias = bias[positions.start // width : positions.stop // width]
        if class_weights.entries is not None:
            numbers = torch.arange(positions.start, positions.stop, device=bias.device)
            class_weights = class_weights.select(numbers)
        slots = None if slots is None else slots[positions]
        return _Arguments(self.hidden[positions], self.rows, bias, slots, self.targets[positions], class_weights)


def _loss_and_differences(arguments: _Arguments) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return −log p (n,) and its gradients by the scores of classes (n, S) and of slots (n, J): p − onehot.

    There is one buffer of n × S. log p is not computed as the target's score minus log Z, which would lose all digits
    if log weights of a background are in the thousands. p − onehot is subtracted in the dtype of the sums: half
    precision would lose the rest of a p near 1.
    """
    hidden, rows, bias, slots, targets, class_weights = arguments
    if bias.dim() == 1 and hidden.dtype == bias.dtype:
        scores = torch.addmm(bias, hidden, rows.T)
    else:
        # products may be in half precision, sums over classes are not: log Z is float32
        scores = (hidden @ rows.T).to(bias.dtype)
        scores.view(bias.numel() // len(rows), -1, len(rows)).add_(bias.view(-1, 1, len(rows)))
    scores = class_weights.apply_sparse_updates_(scores)
    top = scores.amax(dim=1, keepdim=True)
    nothing, of_target, slot = top.isneginf(), targets.unsqueeze(1), targets.unsqueeze(1) - len(rows)  # shape: (n, 1)
    if slots is not None:
        of_target = of_target.masked_fill(slot >= 0, 0)
    log_prob = scores.gather(1, of_target) - top.masked_fill(nothing, 0.0)
    # if everything is forbidden, as after a word outside a grammar, a gradient 0 would be multiplied by NaN
    scores[:, :1].masked_fill_(nothing, 0.0)
    probabilities = torch.softmax(scores, dim=1, out=scores)
    # log Z from the largest term, whose probability cannot underflow (amax is several times faster than max)
    log_largest = probabilities.amax(dim=1, keepdim=True).log()
    log_prob = log_prob + log_largest
    if slots is None:
        difference = probabilities.scatter_(1, of_target, probabilities.gather(1, of_target) - 1.0)
        return -log_prob.squeeze(1), difference, None
    shares = log_shares(torch.cat([top - log_largest, slots], dim=1))  # shape: (n, 1 + J), of all classes and each slot
    is_slot, of_slot = slot >= 0, 1 + slot.clamp_min(0)
    log_prob = torch.where(is_slot, shares.gather(1, of_slot), log_prob + shares[:, :1])
    shares, is_class = shares.exp(), (~is_slot).to(scores.dtype)
    probabilities.mul_(shares[:, :1])
    difference = probabilities.scatter_(1, of_target, probabilities.gather(1, of_target) - is_class)
    return -log_prob.squeeze(1), difference, shares.scatter_add(1, of_slot, is_class - 1.0)[:, 1:]


class _Sums:
    """Gradients of a loss: of hidden states, slots and entries by position, others summed over positions."""

    def __init__(self, needs: Sequence[bool]) -> None:
        self.needs = needs
        self.hidden: list[Tensor] = []
        self.groups: list[Tensor] = []
        self.slots: list[Tensor] = []
        self.added: list[Tensor] = []
        self.rows: Tensor | None = None
        self.bias: Tensor | None = None

    def add(self, chunk: _Arguments, difference: Tensor, slot_difference: Tensor | None, weight: Tensor) -> None:
        """Add a chunk, whose losses have these weights, (n,) in the dtype of the bias."""
        hidden, rows, bias, _, _, class_weights = chunk
        short, (need_hidden, need_rows, need_bias, _, need_added) = difference.to(hidden.dtype), self.needs
        if need_hidden:
            self.hidden.append(short @ rows)
        if need_rows:
            weighted = (hidden * weight.unsqueeze(1)).to(hidden.dtype)
            if self.rows is None:
                self.rows = (short.T @ weighted).to(weight.dtype)
            elif short.dtype == weight.dtype:
                self.rows.addmm_(short.T, weighted)
            else:
                self.rows += short.T @ weighted
        if need_bias and bias.dim() == 1:
            of_bias = difference.T.mv(weight)
            self.bias = of_bias if self.bias is None else self.bias + of_bias
        elif need_bias:
            grouped = weight.view(len(bias), 1, -1), difference.view(len(bias), -1, len(rows))
            self.groups.append(torch.bmm(*grouped).squeeze(1))
        if slot_difference is not None:
            self.slots.append(slot_difference)
        if need_added and class_weights.entries is not None:
            self.added.append(difference[class_weights.entries.rows, class_weights.entries.classes])

    def last(self) -> list[Tensor]:
        """Return the gradients of the last chunk, and the sums until then."""
        lists = self.hidden, self.groups, self.slots, self.added
        return [each for each in (*(parts[-1] for parts in lists if parts), self.rows, self.bias) if each is not None]

    def all(self, class_weights: ClassWeights, slices: Sequence[slice]) -> list[Tensor | None]:
        """Return the gradients in the order of `needs`."""
        lists = self.hidden, self.groups, self.slots, self.added
        hidden, groups, slots, added = (torch.cat(parts) if parts else None for parts in lists)
        if added is not None and class_weights.entries is not None and len(slices) > 1:
            rows = class_weights.entries.rows
            numbers = [((rows >= span.start) & (rows < span.stop)).nonzero().squeeze(1) for span in slices]
            added = torch.empty_like(added).index_copy(0, torch.cat(numbers), added)
        return [hidden, self.rows, self.bias if groups is None else groups, slots, added]


def _computed_after(hidden: Tensor, earlier: Sequence[Tensor]) -> Tensor:
    """Return the same states, which depend on earlier tensors.

    Without this order, inductor computes the scores of all chunks before the gradients of rows, and keeps N × S scores.
    """
    zeros = [each.flatten()[:1].isnan().to(hidden.dtype) * 0.0 for each in earlier]
    return hidden + torch.cat(zeros).sum()  # a chunk may have no entries


def _losses_and_sums(
    arguments: _Arguments, slices: Sequence[slice], needs: Sequence[bool], weight: Tensor | None
) -> tuple[Tensor, _Sums, tuple[Tensor | None, Tensor | None]]:
    """Return the losses (N,), gradients if there are weights (N,), and the differences of the last chunk."""
    losses: list[Tensor] = []
    sums, difference, slot_difference = _Sums(needs), None, None
    for positions in slices:
        chunk = arguments if len(slices) == 1 else arguments.at(positions)
        if losses and torch.compiler.is_compiling():
            chunk = chunk._replace(hidden=_computed_after(chunk.hidden, [losses[-1], *sums.last()]))
        difference = slot_difference = None  # free the memory of the previous chunk
        loss, difference, slot_difference = _loss_and_differences(chunk)
        losses.append(loss)
        if weight is not None:
            sums.add(chunk, difference, slot_difference, weight[positions].masked_fill(loss.isinf(), 0.0))
    return torch.cat(losses), sums, (difference, slot_difference)


class _Nll(torch.autograd.Function):
    """−log p of targets over classes and slots, (N,). No tensor of N × S outlives its chunk of positions.

    If all counted losses have the same weight, a chunk's gradients are computed in the forward pass, up to that weight.
    For other weights they are computed in the backward pass, which recomputes chunks unless there is only one.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, rows: Tensor, bias: Tensor, slots: Tensor | None, added: Tensor | None,
        targets: Tensor, class_weights: ClassWeights, is_counted: Tensor | None, needs: Sequence[bool],
    ) -> Tensor:  # fmt: skip
        """Arguments: those of _Arguments. added: of the entries. needs: whether each of the first five needs a
        gradient.

        is_counted: (N,) bool, losses with one weight, the others with weight zero. None: any weights.
        """
        arguments = _Arguments(hidden, rows, bias, slots, targets, class_weights)
        ctx.needs, ctx.slices, ctx.class_weights = needs, arguments.slices(), class_weights
        ctx.is_counted = is_counted is not None
        weight = None if is_counted is None or not any(needs) else is_counted.to(bias.dtype) / UNIT
        loss, sums, differences = _losses_and_sums(arguments, ctx.slices, needs, weight)
        if is_counted is not None:
            ctx.save_for_backward(is_counted & loss.isfinite(), *sums.all(class_weights, ctx.slices))
        else:
            saved = differences if len(ctx.slices) == 1 else (None, None)
            ctx.save_for_backward(hidden, rows, bias, slots, targets, *saved)
        return loss

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        """weight: (N,), the gradient of the losses."""
        if torch.is_grad_enabled():
            raise OptionError("the log-linear loss has no second derivative: leave create_graph=True out")
        factor = None
        if ctx.is_counted:
            is_counted, *found = ctx.saved_tensors
            first = weight[is_counted.byte().argmax(0, keepdim=True)]  # of the first counted loss
            factor = UNIT * torch.where((weight == torch.where(is_counted, first, 0.0)).all(), first, torch.nan)
        else:
            hidden, rows, bias, slots, targets, difference, slot_difference = ctx.saved_tensors
            arguments = _Arguments(hidden, rows, bias, slots, targets, ctx.class_weights)
            with outside_autocast(weight):
                if difference is None:
                    _, sums, _ = _losses_and_sums(arguments, ctx.slices, ctx.needs, weight)
                else:
                    sums = _Sums(ctx.needs)
                    sums.add(arguments, difference, slot_difference, weight)
            found = sums.all(ctx.class_weights, ctx.slices)
        hidden, rows, bias, slots, added = found
        hidden, slots = (None if grad is None else grad * weight.unsqueeze(1) for grad in (hidden, slots))
        rows, bias = (grad if grad is None or factor is None else grad * factor for grad in (rows, bias))
        added = None if added is None else added * weight[ctx.class_weights.entries.rows]
        return hidden, rows, bias, slots, added, None, None, None, None


def log_linear_nll(
    hidden: Tensor,
    targets: Tensor,
    rows: Tensor,
    log_mass: Tensor | ClassWeights,
    log_share: Tensor | None = None,
    bias: Tensor | None = None,
    slot_scores: Tensor | None = None,
    is_counted: Tensor | None = None,
) -> Tensor:
    """Return −log p of each target in nats (module docstring): (N,), float32 or better, or inf for forbidden targets.

    It is computed in chunks of positions. No tensor with N × S elements is kept.

    Args:
        hidden: (N, H). targets: (N,) their classes; S + j for slot j.
        rows: E, (S, H).
        log_mass: log B_K(σ), (S,), or (G, S), with row g for the N/G positions from g·N/G on, or class weights of N
            rows with sparse updates (backgrounds/class_weights.py). −inf forbids a class.
        log_share: log b − log B of the target words, (N,), or None if classes have one word each.
        bias: Φc, (S,). slot_scores: aᵀφ + log mass of J more classes at each position, (N, J).
        is_counted: (N,) bool: losses that the caller sums with equal weights, as in a sum or a mean; the others have
            weight zero. Gradients are then computed in the forward pass, which saves a quarter of the products. If the
            weights differ, gradients of rows and bias are NaN. None: any weights.

    Raises:
        OptionError: in the backward pass with create_graph=True, because there is no second derivative.
    """
    hidden = to_autocast(hidden)
    class_weights = ClassWeights.of(log_mass, len(hidden))
    dtype = torch.promote_types(rows.dtype if bias is None else bias.dtype, torch.float32)
    shared = class_weights.shared.to(dtype) if bias is None else class_weights.shared.to(dtype) + bias
    shared = shared.squeeze(0) if len(shared) == 1 else shared
    slots = None if slot_scores is None else class_weights.without_constant(slot_scores).to(dtype)
    added = None if class_weights.entries is None else class_weights.entries.added
    tensors = hidden, rows.to(hidden.dtype), shared, slots, added
    needs = [torch.is_grad_enabled() and tensor is not None and tensor.requires_grad for tensor in tensors]
    with outside_autocast(hidden):
        loss = _Nll.apply(*tensors, targets, class_weights, is_counted, needs)
    loss = torch.where(loss.isposinf(), -NEGATIVE_INFINITY, loss)
    return loss if log_share is None else loss - log_share.to(dtype)
