"""The log-potentials θ of a chain: explicit ones, three forms of low rank, and rows composed of features.

Sizes: R kinds of tokens (words, or signatures), K order, D width, F features. θ⁰ is (R,). θˡ is (R, R), l = 1 … K, the
log-potential of a token and the one l places after it.

    explicit   θˡ                            K · R² numbers
    urw        θˡ = U Rˡ Wᵀ                  (thesis, §4.2, 1, of a log-bilinear model)
    uw         θˡ = U (Wˡ)ᵀ                  (2, of the thesis' experiments)
    uvw        θˡ = Uˡ Vᵀ + V (Wˡ)ᵀ          (3)

All forms of low rank are θˡ = Aˡ (Bˡ)ᵀ with Aˡ, Bˡ (R, D) or, for uvw, (R, 2D), which is all that computations use.
With features, the rows of U, V and W are Φ times a row per feature (Φ (R, F), of a prior), and θ⁰ = log B + Φu. The
log-potentials are then linear in products of features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_llrnn.errors import OptionError, check_least

EXPLICIT = "explicit"
FORMS = (EXPLICIT, "urw", "uw", "uvw")
SPREAD = 0.1  # standard deviation of initial rows
Parameters = Mapping[str, Tensor]


@dataclass(frozen=True)
class Potentials:
    """θ in the form that computations use."""

    unary: Tensor  # (R,) −inf forbids
    left: tuple[Tensor, ...]  # K of Aˡ (R, D'), or of θˡ (R, R) if explicit
    right: tuple[Tensor, ...] | None  # K of Bˡ (R, D'); None: explicit

    @property
    def size(self) -> int:
        """Return R."""
        return len(self.unary)

    @property
    def order(self) -> int:
        """Return K."""
        return len(self.left)

    def rows(self, edge: int, tokens: Tensor | slice) -> Tensor:
        """Return θˡ of some first tokens with all second ones, l = edge + 1: (n, R)."""
        chosen = self.left[edge][tokens]
        return chosen if self.right is None else chosen @ self.right[edge].T

    def columns(self, edge: int, tokens: Tensor | slice) -> Tensor:
        """Return θˡ of all first tokens with some second ones, transposed: (n, R)."""
        if self.right is None:
            return self.left[edge][:, tokens].T
        return self.right[edge][tokens] @ self.left[edge].T


@dataclass(frozen=True)
class Form:
    """The parameters, and θ as a function of them."""

    name: str  # one of FORMS
    order: int  # K
    offset: Tensor  # (R,) constant part of θ⁰; −inf forbids a token
    width: int = 0  # D, for forms of low rank
    features: Tensor | None = None  # Φ (R, F) sparse; None: separate rows for each token

    def __post_init__(self) -> None:
        if self.name not in FORMS:
            raise OptionError(f"--form {self.name}: expected one of {', '.join(FORMS)}")
        check_least("--order", self.order, 1)
        if self.name == EXPLICIT and self.features is not None:
            raise OptionError(
                "--form explicit: not possible with --prior, whose features compose rows; choose --form uw, urw or uvw"
            )
        if self.name != EXPLICIT:
            check_least("--width", self.width, 1)

    @property
    def size(self) -> int:
        """Return R."""
        return len(self.offset)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters, by name."""
        rows = self.size if self.features is None else self.features.shape[1]
        shared, edges, unary = (rows, self.width), (self.order, rows, self.width), {"unary": (rows,)}
        if self.name == EXPLICIT:
            return unary | {"edges": (self.order, self.size, self.size)}
        if self.name == "urw":
            return unary | {"U": shared, "R": (self.order, self.width, self.width), "W": shared}
        return unary | ({"U": shared, "W": edges} if self.name == "uw" else {"U": edges, "V": shared, "W": edges})

    def initial(self, seed: int = 1, unary: Tensor | None = None) -> dict[str, Tensor]:
        """Return initial parameters: small random rows, or zero edges if explicit.

        Args:
            unary: (R,) initial θ⁰ of tokens with separate rows.
        """
        generator = torch.Generator().manual_seed(seed)
        parameters = {}
        for name, shape in self.shapes().items():
            values = torch.zeros(shape, dtype=torch.float64)
            if name not in ("unary", "edges"):
                values.normal_(0.0, SPREAD if name != "R" else 1.0 / math.sqrt(self.width), generator=generator)
            parameters[name] = values
        if unary is not None and self.features is None:
            parameters["unary"] = unary.clone()
        return parameters

    def potentials(self, parameters: Parameters) -> Potentials:
        """Return θ of these parameters, differentiably."""
        composed = {
            name: value if name in ("R", "edges") or self.features is None else _composed(self.features, value)
            for name, value in parameters.items()
        }
        unary = self.offset + composed["unary"]
        if self.name == EXPLICIT:
            return Potentials(unary, tuple(composed["edges"]), None)
        edges = range(self.order)
        if self.name == "urw":
            left = tuple(composed["U"] @ composed["R"][e] for e in edges)
            return Potentials(unary, left, (composed["W"],) * self.order)
        if self.name == "uw":
            return Potentials(unary, (composed["U"],) * self.order, tuple(composed["W"]))
        left = tuple(torch.cat([composed["U"][e], composed["V"]], dim=1) for e in edges)
        return Potentials(unary, left, tuple(torch.cat([composed["V"], composed["W"][e]], dim=1) for e in edges))

    def gradient(self, parameters: Parameters, gradient: Potentials) -> dict[str, Tensor]:
        """Return gradients of the parameters from those of θ (for low rank, of Aˡ and Bˡ) by the chain rule."""
        if self.name == EXPLICIT:
            return {"unary": gradient.unary, "edges": torch.stack(gradient.left)}
        leaves = {name: value.detach().requires_grad_() for name, value in parameters.items()}
        with torch.enable_grad():
            potentials = self.potentials(leaves)
        assert potentials.right is not None and gradient.right is not None
        outputs = (potentials.unary, *potentials.left, *potentials.right)
        of_outputs = gradient.unary, *gradient.left, *gradient.right
        gradients = torch.autograd.grad(outputs, list(leaves.values()), of_outputs)
        return dict(zip(leaves, gradients, strict=True))


def _composed(features: Tensor, values: Tensor) -> Tensor:
    """Return Φ times values (F,), (F, D) or (K, F, D): (R, …)."""
    if values.dim() == 1:
        return torch.mv(features, values)
    if values.dim() == 2:
        return torch.sparse.mm(features, values)
    return torch.stack([torch.sparse.mm(features, matrix) for matrix in values])


def memory_of_explicit(size: int, order: int, kept: int) -> int:
    """Return the bytes for training explicit potentials: θ, exponentials, gradients, scales, `kept` L-BFGS steps."""
    return 8 * order * size * size * (6 + 2 * kept)
