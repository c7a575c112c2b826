"""The weights of a head: drawn, moved between devices, loaded from checkpoints.

No checkpoint has the buffers of a head. They are rebuilt from the prior. Sizes: S signatures, H hidden width.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn

from fairseq_llrnn.head.checks import check_fingerprint, check_names, check_numbers, fingerprint_of
from fairseq_llrnn.output.class_source import ClassSource
from fairseq_llrnn.output.feature_weights import FeatureEmbedding
from fairseq_llrnn.output.normalisers import HeadModule, LogLinearOutput
from fairseq_llrnn.prior.prior import Prior

SAMPLE = 32  # random bytes that detect a move that loses the contents of tensors


class StoredHead(nn.Module):
    """A module whose buffers and names of weights come from a prior."""

    prior: Prior
    hidden_size: int  # H
    output: LogLinearOutput
    sources: list[ClassSource]
    attached: dict[str, Any]  # its other modules, by their roles
    prior_fingerprint: Tensor
    arguments: dict[str, Any]  # of the constructor, after the prior and H

    def reset_parameters(self) -> None:
        """Draw all weights again, and rebuild all buffers from the prior."""
        from torch.distributed.tensor import DTensor, distribute_tensor  # slow to import

        with torch.device("cpu"):
            made = type(self)(self.prior, self.hidden_size, **self.arguments)
        self._take_buffers(made, self.output.weight.device)
        with torch.no_grad():
            for parameter, drawn in zip(self.parameters(), made.parameters(), strict=True):
                value: Tensor = drawn
                if isinstance(parameter, DTensor):  # FSDP2 has divided it among processes
                    value = distribute_tensor(drawn.to(parameter.device), parameter.device_mesh, parameter.placements)
                parameter.copy_(value)

    def rebuild_buffers(self, device: torch.device | None = None) -> None:
        """Rebuild all buffers from the prior, on a device (None: that of the weights), without other changes."""
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            made = type(self)(self.prior, self.hidden_size, **self.arguments)
        self._take_buffers(made, device or self.output.weight.device)

    def _take_buffers(self, made: nn.Module, device: torch.device) -> None:
        for name, module in self.named_modules():
            for key, buffer in made.get_submodule(name)._buffers.items():
                own = module._buffers[key]
                if buffer is not None and own is not None:
                    module._buffers[key] = buffer.to(device, own.dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """As torch's, and rebuild the buffers if their contents are lost, as in `to_empty`: no checkpoint has them."""
        before = self.output.class_of
        sample = torch.frombuffer(bytearray(os.urandom(SAMPLE)), dtype=torch.uint8).to(before.device)
        super()._apply(fn, recurse)
        tie(self)
        if not self.output.class_of.is_meta:
            moved = fn(sample)
            if before.is_meta or not torch.equal(moved.cpu().to(torch.uint8), sample.cpu()):
                self.rebuild_buffers()
        return self

    def check_weights(self, state_dict: dict[str, Any], prefix: str, options: Mapping[str, str] | None = None) -> None:
        """Check that weights were trained with this prior and these modules. `prefix` ends in a dot.

        Args:
            options: as in `check_names`.

        Raises:
            PriorError, OptionError: with the difference. DataError: weights that are not finite, or too large.
        """
        own = fingerprint_of(self.prior) if self.prior_fingerprint.is_meta else self.prior_fingerprint
        check_fingerprint(own, state_dict.get(f"{prefix}prior_fingerprint"), self.prior.folder)
        modules = [*self.attached.values(), *self.sources]
        for module in modules:
            if isinstance(module, HeadModule):
                module.check_weights(state_dict, prefix)
        check_numbers({f"{prefix}{name}": state_dict.get(f"{prefix}{name}") for name, _ in self.named_parameters()})
        check_names(self, [module.name for module in modules], state_dict, prefix, options or {})

    def check_prior(self) -> None:
        """Check the prior of weights that were loaded without `load_state_dict`.

        Raises:
            PriorError: with both fingerprints.
        """
        check_fingerprint(fingerprint_of(self.prior), self.prior_fingerprint, self.prior.folder)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        self.check_weights(state_dict, prefix)
        if local_metadata.get("assign_to_params_buffers") and any(buffer.is_meta for buffer in self.buffers()):
            self.rebuild_buffers(state_dict[f"{prefix}output.weight"].device)  # of which submodules compute others
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


def tie(head: StoredHead, _: object = None) -> None:
    """Let tied embeddings use the output's weights again. torch has made weights of their own for them."""
    for module in head.modules():
        if isinstance(module, FeatureEmbedding) and module.is_tied:
            module.weight = head.output.weight
