"""What does not change a loss and its gradients."""

import torch
from torch import Tensor

from fairseq_llrnn.head import LogLinearHead


def assert_leaves_autocast(head: LogLinearHead, hidden: Tensor, targets: Tensor, **options: float) -> None:
    """Bit for bit, a head under autocast is the head outside of it with hidden states in that dtype.

    The backward pass of the plain loss may run inside as well, which is where torch traces a compiled one. Of what
    `options` add, torch has the backward pass.
    """
    found = []
    for states, is_on in ((hidden, True), (hidden.bfloat16(), False)):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_on):
            loss = head.loss(states, targets, **options)
        with torch.autocast("cpu", torch.bfloat16, enabled=is_on and not options):
            found.append([loss, *torch.autograd.grad(loss, [hidden, *head.parameters()], allow_unused=True)])
    for one, other in zip(*found, strict=True):
        assert one is other is None or torch.equal(one, other)
