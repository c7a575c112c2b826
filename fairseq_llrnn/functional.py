"""The loss of a log-linear layer, on one page: plain torch, no prior, no module.

    p(x | K)  ∝  b(K, x) exp(a(K)ᵀ φ(x)),   a(K) = W h + c        (Dymetman & Xiao 2016, §2)

Words with equal features φ are one class σ. With rows E = Φ W, masses B_K(σ) = Σ_{x ∈ σ} b(K, x), and the share
b(K, x) / B_K(σ) of a word in its class,

    scores(σ)       =  h E_σᵀ + (Φ c)_σ + log B_K(σ)                a sum over S classes instead of V words
    −log p(x | K)   =  log Σ_σ exp scores(σ)  −  scores(σ(x))  −  log share(x)

    E = features @ weight                                           # (S, F), (F, H): Φ and W, learned
    loss = log_linear_nll(hidden, class_of[words], E, log_mass, log_share[words]).mean()

With one word a class, log_mass = 0 and no shares it is torch's cross_entropy. Everything else in this package makes
these five tensors. Sizes: N positions, G groups of positions, S classes, J classes of the context (slots), H hidden
width. Probabilities are natural logarithms.

Under torch.autocast the hidden states take its dtype, and with them the matrix products. All else runs outside of it:
biases, masses and sums over classes keep float32, forward and backward, eager and compiled.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairseq_llrnn.backgrounds.class_weights import NEGATIVE_INFINITY, ClassWeights, log_shares


def to_autocast(hidden: Tensor) -> Tensor:
    """Return hidden states in the dtype of torch.autocast where it is on; float64 stays, as in torch's products."""
    device = hidden.device.type
    if hidden.dtype == torch.float64 or not torch.is_autocast_enabled(device):
        return hidden
    return hidden.to(torch.get_autocast_dtype(device))


def outside_autocast(like: Tensor) -> torch.autocast:
    """Turn torch.autocast off, on the device of `like`. A compiled backward pass needs this: torch traces it inside."""
    return torch.autocast(like.device.type, enabled=False)


class _ClassScore(torch.autograd.Function):
    """The target's log p and log Z over the classes, with one N×S buffer: p − onehot, kept for the gradient.

    log p is not the difference of the target's score and log Z, which are without digits where logarithms of a
    background are in the thousands. Likewise p − onehot is subtracted in the dtype of the sums: in half precision, a p
    near 1 would have lost what is left of it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        rows: Tensor,
        bias: Tensor,
        target: Tensor,
        class_weights: ClassWeights,
        added: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """hidden (N, H), rows (S, H), bias (S,) or (G, S) [float32: holds log_mass], target (N,) -> (N,) and (N,).

        Row g of a bias (G, S) is of the N/G positions from g·N/G on: those of a sentence, or of one position.
        masses: whose entries count; their `added`, (E,), for its gradient. log Z is −inf where everything is forbidden.
        """
        if bias.dim() == 1 and hidden.dtype == bias.dtype:
            scores = torch.addmm(bias, hidden, rows.T)
        else:
            # in half precision the products are, the sums over classes are not: log_partition is float32
            scores = (hidden @ rows.T).to(bias.dtype)
            scores.view(bias.numel() // len(rows), -1, len(rows)).add_(bias.view(-1, 1, len(rows)))
        if class_weights.entries is not None:
            scores = class_weights.apply_sparse_updates_(scores)
        top = scores.amax(dim=1)
        nothing, of_target = top.isneginf(), target.unsqueeze(1)
        log_prob = scores.gather(1, of_target).squeeze(1) - top.masked_fill(nothing, 0.0)
        # where everything is forbidden, as after padding, a gradient 0 would meet probabilities that are NaN
        scores[:, 0].masked_fill_(nothing, 0.0)
        probabilities = torch.softmax(scores, dim=1, out=scores)
        # log Z from the largest term, whose probability cannot underflow (amax is several times faster than max)
        largest = probabilities.amax(dim=1)
        log_largest = largest.masked_fill(largest == 0.0, 1.0).log()
        difference = probabilities.scatter_(1, of_target, probabilities.gather(1, of_target) - 1.0)
        ctx.save_for_backward(hidden, rows, target, difference)
        ctx.groups = None if bias.dim() == 1 else len(bias)
        ctx.places = (
            None if class_weights.entries is None else (class_weights.entries.rows, class_weights.entries.classes)
        )
        return log_prob + log_largest, top - log_largest

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_score: Tensor, grad_total: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None, Tensor | None]:
        # of the scores: grad_score·onehot + grad_partition·p  =  grad_partition·(p − onehot) + grad_total·onehot
        hidden, rows, target, difference = ctx.saved_tensors
        need_hidden, need_rows, need_bias, *_, need_added = ctx.needs_input_grad
        grad_partition = grad_total - grad_score
        of_target, of_partition = grad_total.unsqueeze(1), grad_partition.unsqueeze(1)  # shape: (N, 1)
        dtype, short = hidden.dtype, difference.to(hidden.dtype)
        grad_hidden = grad_rows = grad_bias = grad_added = None
        with outside_autocast(hidden):
            if need_hidden:
                grad_hidden = torch.addcmul(rows[target] * of_target, short @ rows, of_partition).to(dtype)
            if need_rows:
                grad_rows = short.T @ (hidden * of_partition).to(dtype)
                grad_rows.index_add_(0, target, (hidden * of_target).to(dtype))
            if need_bias and ctx.groups is None:
                grad_bias = (grad_partition @ difference).index_add_(0, target, grad_total)
            elif need_bias:
                groups, (positions, classes) = ctx.groups, difference.shape
                each = (groups, positions // groups)
                grad_bias = torch.bmm(grad_partition.view(groups, 1, -1), difference.view(*each, classes)).squeeze(1)
                grad_bias.scatter_add_(1, target.view(each), grad_total.reshape(each))
        if need_added:
            row, of_class = ctx.places
            of_entry = grad_total[row].masked_fill(target[row] != of_class, 0.0)
            grad_added = grad_partition[row] * difference[row, of_class] + of_entry
        return grad_hidden, grad_rows, grad_bias, None, None, grad_added


def log_linear_nll(
    hidden: Tensor,
    targets: Tensor,
    rows: Tensor,
    log_mass: Tensor | ClassWeights,
    log_share: Tensor | None = None,
    bias: Tensor | None = None,
    slot_scores: Tensor | None = None,
) -> Tensor:
    """−log p of each target in nats (module docstring): (N,), float32 or better; inf for what is forbidden.

    Args:
        hidden: (N, H). targets: (N,) their classes; S + j for slot j.
        rows: E, (S, H).
        log_mass: log B_K(σ), (S,); or (G, S), of which row g serves the N/G positions from g·N/G on; or masses
            of N rows with entries (backgrounds/class_weights.py). −inf forbids a class.
        log_share: log b − log B of the target words, (N,); None where classes have one word each.
        bias: Φc, (S,). slot_scores: aᵀφ + log mass of J more classes at each position, (N, J).
    """
    hidden = to_autocast(hidden)
    class_weights = (
        log_mass if isinstance(log_mass, ClassWeights) else ClassWeights(torch.atleast_2d(log_mass), len(hidden))
    )
    dtype = torch.promote_types(rows.dtype if bias is None else bias.dtype, torch.float32)
    shared = class_weights.shared.to(dtype) if bias is None else class_weights.shared.to(dtype) + bias
    shared = shared.squeeze(0) if len(shared) == 1 else shared
    slot = targets - len(rows)
    classes = targets if slot_scores is None else targets.masked_fill(slot >= 0, 0)
    added = None if class_weights.entries is None else class_weights.entries.added
    with outside_autocast(hidden):
        log_prob, log_partition = _ClassScore.apply(
            hidden, rows.to(hidden.dtype), shared, classes, class_weights, added
        )
    if slot_scores is not None:
        beside = class_weights.without_constant(slot_scores).to(dtype)
        shares = log_shares(torch.cat([log_partition.unsqueeze(1), beside], dim=1))  # shape: (N, 1 + J)
        of_slot = shares.gather(1, 1 + slot.clamp_min(0).unsqueeze(1)).squeeze(1)
        log_prob = torch.where(slot >= 0, of_slot, log_prob + shares[:, 0])
    log_prob = torch.where(log_prob.isneginf(), NEGATIVE_INFINITY, log_prob)
    return -log_prob if log_share is None else -(log_prob + log_share.to(dtype))
