"""A head over a mixture whose weights the network chooses, beside its definition over all words."""

from __future__ import annotations

import positions
import torch
from dynamic_prior import AfterLastWord
from small_priors import make_prior
from torch import Tensor

from fairseq_llrnn.backgrounds.mixture import Mixture
from fairseq_llrnn.head import LogLinearHead

H = 4
TARGETS = torch.tensor([[4, 8, 4, 2], [5, 6, 10, 2], [9, 3, 7, 2]])
EOS = 2


def make_head() -> LogLinearHead:
    torch.manual_seed(3)
    prior = make_prior()
    head = LogLinearHead(prior, H)
    class_of, num_classes = head.output.class_of, prior.output.num_classes
    table = torch.randn(head.num_words, head.num_words, dtype=torch.float64)
    table[:, :2] = -torch.inf
    dynamic = AfterLastWord(class_of, num_classes, table.log_softmax(-1), EOS)
    head.background = Mixture([prior.background(), dynamic], [1, 2], "network")
    head.background.gates(H)
    head = head.double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
    return head.eval()


def by_definition(head: LogLinearHead, hidden: Tensor, previous: Tensor) -> Tensor:
    """log p of all words (B, T, V)."""
    mixture = head.background
    assert isinstance(mixture, Mixture)
    static, dynamic = mixture.each()
    weights = mixture.gate(hidden).softmax(-1)  # shape: (B, T, 2)
    of_static = static.log_weights(static.start(1)).exp().double()
    states = torch.stack(positions.states(dynamic, previous), dim=1)
    of_dynamic = torch.stack([dynamic.log_weights(s).exp() for s in states.unbind(1)], dim=1)
    b = weights[..., :1] * of_static + weights[..., 1:] * of_dynamic
    log_b = torch.where(b > 0, b.clamp_min(1e-300).log(), -torch.inf)  # log 0 would have no gradient
    phi = head.output.rows.dense().double()[head.output.class_of]
    return ((hidden @ head.output.weight.T + head.output.bias) @ phi.T + log_b).log_softmax(-1)


def test_batches_and_steps_are_the_definition() -> None:
    head = make_head()
    hidden = torch.randn(*TARGETS.shape, H, dtype=torch.float64, requires_grad=True)
    previous = torch.cat([torch.full_like(TARGETS[:, :1], EOS), TARGETS[:, :-1]], dim=1)
    expected = by_definition(head, hidden, previous)
    torch.testing.assert_close(head.log_probs(hidden, previous=previous), expected, rtol=1e-6, atol=1e-6)
    loss = head.loss(hidden, TARGETS, previous=previous, reduction="sum")
    slow = -expected.gather(2, TARGETS.unsqueeze(2)).sum()
    leaves = [hidden, *(p for p in head.parameters() if p.requires_grad)]
    for one, other in zip(torch.autograd.grad(loss, leaves), torch.autograd.grad(slow, leaves), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    state = head.start(len(TARGETS))
    with torch.no_grad():
        for t in range(TARGETS.size(1)):
            step = head.step(hidden[:, t], state)
            values, tokens = step.top_k(6)
            torch.testing.assert_close(values, expected[:, t].topk(6).values, rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(step.log_probs_of(tokens), values)
            state = head.advance(state, TARGETS[:, t])
    order = torch.tensor([2, 0])
    torch.testing.assert_close(
        head.step(hidden[order, 0], state.select(order)).word_log_probs(),
        head.step(hidden[:, 0], state).word_log_probs()[order],
    )
