"""The loss in every precision, eager and compiled, is as exact as torch's own linear layer and cross_entropy.

The oracle is the same head in float64. The tolerance is three times torch's own error: that of a table of features, a
linear layer and cross_entropy of the same sizes, in the same precision. The whole grid compiles with inductor and is
marked slow (`make test-all`). A part of it, in which pairs of values meet, compiles with aot_eager.
"""

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fairseq_llrnn import LogLinearHead, Prior, functional
from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head import FeatureInput
from fairseq_llrnn.output.learned_temperature import learned_temperature
from fairseq_llrnn.prior import EvidenceOptions, OpenOptions, Recipe, TranslationOptions
from fairseq_llrnn.prior.building import build_prior

WORDS = [first + second for first in "bcdfghklmn" for second in ("ar", "ir", "es", "on", "ant")]
SYMBOLS = [*SPECIALS, *WORDS, "12"]
SENTENCES = [" ".join([*WORDS[i : i + 9 : 1 + i % 2], "12"]) for i in range(0, 40, 3)]

KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "ngram": {"background": "ngram(3, folds=2)"},
    "cache": {"background": "cache(5, learned)"},
    "gates": {"background": "0.7 ngram:2 plus 0.3 cache:4 with weights per position"},
    "temperature": {"background": "ngram:2"},
    "lexical": {},
    "evidence": {},
    "open": {"open_vocabulary": OpenOptions(floor=2, types=1)},
}
WITH_SOURCE = ("lexical", "evidence")
PRECISIONS: dict[str, tuple[torch.dtype, torch.dtype | None]] = {  # of the parameters, and of autocast
    "float32": (torch.float32, None),
    "autocast bfloat16": (torch.float32, torch.bfloat16),
    "autocast float16": (torch.float32, torch.float16),
    "bfloat16": (torch.bfloat16, None),
}
AXES: dict[str, list[Any]] = {
    "kind": list(KINDS), "precision": list(PRECISIONS), "is_tied": [False, True], "is_compiled": [False, True],
    "width": [16, 1024],
}  # fmt: skip
LAYER = re.compile(r"loss$|linear\.|head\.output\.|head\.embedding\.")
Gradients = dict[str, Tensor]
GRID = list(product(*AXES.values()))


def pairwise() -> Iterator[tuple[Any, ...]]:
    """Cases in which each two values of different axes meet: time and again the one with most new pairs.

    To compile another background than a unigram takes from 5 to 40 seconds. Of these, only eager cases are there.
    """
    cases = [case for case in GRID if case[0] == "unigram" or not case[3]]
    wanted = {pair for case in cases for pair in combinations(enumerate(case), 2)}
    while wanted:
        best = max(cases, key=lambda case: len(wanted & set(combinations(enumerate(case), 2))))
        wanted -= set(combinations(enumerate(best), 2))
        yield best


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Prior]:
    place = tmp_path_factory.mktemp("grid")
    text = place / "text"
    text.write_text("\n".join(SENTENCES), encoding="utf-8")

    def build(kind: str) -> Prior:
        options: dict[str, Any] = dict(KINDS[kind])
        if kind == "lexical":
            bitext = ParallelText.read(text, text, SYMBOLS, SYMBOLS)
            options["translations"] = TranslationOptions(bitext, learned=True, aligner="ibm1")
        if kind == "evidence":
            options |= {"evidence": EvidenceOptions(("numbers",)), "source_dictionary": SYMBOLS}
        return build_prior(SYMBOLS, Recipe(text=text, suffixes=2, top_words=10, **options))

    return cache(build)


class Network(nn.Module):
    """Words by their features, a linear layer, and the loss of a head."""

    def __init__(self, prior: Prior, kind: str, is_tied: bool, width: int) -> None:
        super().__init__()
        mass_change = learned_temperature if kind == "temperature" else None
        source_size = width if kind in WITH_SOURCE else None
        self.linear = nn.Linear(width, width)
        self.head = LogLinearHead(
            prior, width, embedding=FeatureInput(width, is_tied), source_size=source_size, mass_change=mass_change
        )
        self.source = None if source_size is None else self.head.encode_source(SENTENCES[:4])
        for parameter in self.parameters():  # numbers that bfloat16 has, too; logits with a deviation near 1
            nn.init.normal_(parameter, std=width**-0.5)
            parameter.data = parameter.bfloat16().float()

    def forward(self, targets: Tensor, loss: Callable[..., Tensor]) -> Tensor:
        hidden = self.linear(self.head.embed(self.head.previous(targets)))
        if self.source is None:
            return loss(hidden, targets)
        shape, generator = (*self.source.shape, self.head.hidden_size), torch.Generator().manual_seed(2)
        states = torch.randn(shape, generator=generator).bfloat16().to(self.linear.weight.dtype)
        return loss(hidden, targets, source=self.source, source_states=states)

    def torch_loss(self, hidden: Tensor, targets: Tensor, **_: Tensor) -> Tensor:
        """What torch has for a background without context: the linear layer of features times weights."""
        output = self.head.output
        bias = (output.rows.dense().float() @ output.bias.float()).to(output.bias.dtype)
        features = output.rows.dense().to(output.weight.dtype)
        logits = nn.functional.linear(hidden, features @ output.weight, bias)
        return cross_entropy(logits.flatten(0, 1), output.class_of[targets].flatten())


def gradients(network: Network, targets: Tensor, loss: Callable[..., Tensor], short: torch.dtype | None) -> Gradients:
    """The loss, and the gradients of all parameters that count in it, by name, in float64."""
    autocast: AbstractContextManager[Any] = nullcontext() if short is None else torch.autocast("cpu", short)
    network.zero_grad()
    with autocast:
        value = network(targets, loss)
    value.backward()
    named = {name: parameter.grad for name, parameter in network.named_parameters() if parameter.grad is not None}
    return {"loss": value.detach().double(), **{name: gradient.double() for name, gradient in named.items()}}


def error(found: Gradients, expected: Gradients) -> float:
    """The largest relative error of the loss and of a gradient.

    Gradients of what torch's layer lacks, such as the weight of a cache, are sums in which large terms of both signs
    cancel. Their errors count by the norm of all gradients.
    """
    assert found.keys() == expected.keys()
    whole = float(torch.stack([each.norm() for name, each in expected.items() if name != "loss"]).norm())
    norms = {name: float(each.norm()) if LAYER.match(name) else whole for name, each in expected.items()}
    return max(float((found[name] - expected[name]).norm()) / norm for name, norm in norms.items())


def check(priors: Callable[[str], Prior], case: tuple[Any, ...], backend: str) -> None:
    kind, precision, is_tied, is_compiled, width = case
    dtype, short = PRECISIONS[precision]
    torch.manual_seed(3)
    exact = Network(priors(kind), kind, is_tied, width)
    own = copy.deepcopy(exact).to(dtype)
    exact.double()
    targets = own.head.encode(SENTENCES[:4])
    of_torch = gradients(exact, targets, exact.torch_loss, None)
    allowed = 3 * error(gradients(own, targets, own.torch_loss, short), of_torch)
    torch.compiler.reset()
    loss = torch.compile(own.head.loss, backend=backend) if is_compiled else own.head.loss
    found = gradients(own, targets, loss, short)
    assert error(found, gradients(exact, targets, exact.head.loss, None)) <= allowed


@pytest.mark.parametrize("case", list(pairwise()), ids=lambda case: "-".join(map(str, case)))
def test_the_error_is_that_of_torch(priors: Callable[[str], Prior], case: tuple[Any, ...]) -> None:
    check(priors, case, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("case", list(pairwise()), ids=lambda case: "-".join(map(str, case)))
def test_the_error_is_that_of_torch_in_many_chunks(
    priors: Callable[[str], Prior], case: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functional, "CPU_CELLS", 64)  # two positions or so
    check(priors, case, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("case", GRID, ids=lambda case: "-".join(map(str, case)))
def test_the_error_is_that_of_torch_with_inductor(priors: Callable[[str], Prior], case: tuple[Any, ...]) -> None:
    check(priors, case, "inductor")
