"""Sampled training: what is unbiased and what is not, by going through all samples of small cases."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_masses import sparse_masses
from torch import Tensor

from fairseq_llrnn.backgrounds.class_weights import ClassWeights
from fairseq_llrnn.features.feature_table import FeatureTable, group_equal_rows
from fairseq_llrnn.output.feature_weights import SparseRows
from fairseq_llrnn.output.normalisers import ExactRows, LogLinearOutput, SlotScores
from fairseq_llrnn.output.sampled import ClassSampler, Sample, SampledOutput, inclusion_probabilities, sampled_log_prob

S, WIDTH, N = 8, 3, 4
TARGETS = torch.tensor([0, 3, 5, 3])


class Case:
    """A layer over S classes, in float64: class 2 is forbidden."""

    def __init__(self, seed: int = 0, slots: bool = False) -> None:
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float64)

        self.log_mass = normal(S) * 1.5
        self.log_mass[2] = -math.inf
        self.hidden = normal(N, WIDTH).requires_grad_()
        self.rows = normal(S, WIDTH).requires_grad_()
        self.bias = normal(S).requires_grad_()
        self.slots = normal(N, 2).requires_grad_() if slots else None
        self.targets = torch.tensor([0, 3, S + 1, 3]) if slots else TARGETS

    @property
    def leaves(self) -> list[Tensor]:
        return [self.hidden, self.rows, self.bias, *([] if self.slots is None else [self.slots])]

    def log_prob(self, sample: Sample) -> Tensor:
        """log w(t) − log Ẑ."""
        inside = self.targets.clamp_max(S - 1)
        bias = self.bias + self.log_mass
        return sampled_log_prob(
            self.hidden, sample, self.rows[sample.classes], bias[sample.classes], self.targets, self.rows[inside],
            bias[inside], self.slots, S,
        )  # fmt: skip

    def log_target(self) -> Tensor:
        """log w(t)."""
        scores = self.hidden @ self.rows.T + self.bias + self.log_mass
        if self.slots is not None:
            scores = torch.cat([scores, self.slots], dim=1)
        return scores.gather(1, self.targets.unsqueeze(1)).squeeze(1)

    def log_partition(self) -> Tensor:
        scores = self.hidden @ self.rows.T + self.bias + self.log_mass
        return (scores if self.slots is None else torch.cat([scores, self.slots], dim=1)).logsumexp(1)


def all_samples(inclusion: Tensor) -> list[tuple[float, Sample]]:
    """Every sample with its probability."""
    found = []
    for drawn in itertools.product([False, True], repeat=S):
        mask = torch.tensor(drawn)
        probability = float(torch.where(mask, inclusion, 1 - inclusion).prod())
        if probability > 0:
            classes = mask.nonzero().squeeze(1)
            found.append((probability, Sample(classes, -inclusion[classes].log())))
    assert sum(p for p, _ in found) == pytest.approx(1.0)
    return found


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("expected", [1, 2.5, 4, 8])
def test_the_estimate_of_z_and_its_gradient_are_unbiased(expected: float, slots: bool) -> None:
    case = Case(1, slots)
    weights = torch.linspace(0.3, 1.2, N, dtype=torch.float64)
    z = case.log_partition().exp()
    exact = torch.autograd.grad((z * weights).sum(), case.leaves)
    mean, gradient = torch.zeros(N, dtype=torch.float64), [torch.zeros_like(g) for g in exact]
    for probability, sample in all_samples(inclusion_probabilities(case.log_mass, expected)):
        estimate = (case.log_target() - case.log_prob(sample)).exp()
        mean += probability * estimate.detach()
        found = torch.autograd.grad((estimate * weights).sum(), case.leaves)
        gradient = [g + probability * f for g, f in zip(gradient, found, strict=True)]
    torch.testing.assert_close(mean, z.detach(), rtol=1e-10, atol=1e-12)
    for one, other in zip(gradient, exact, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def biases(case: Case, expected: float) -> tuple[Tensor, float, Tensor]:
    """E[log Ẑ] − log Z (N,); how far E[∇ log Ẑ] is from ∇ log Z, in norm; and Var(Ẑ) / 2Z² (N,)."""
    exact = torch.autograd.grad(case.log_partition().sum(), case.leaves)
    z = case.log_partition().exp().detach()
    mean, gradient = torch.zeros(N, dtype=torch.float64), [torch.zeros_like(g) for g in exact]
    spread = torch.zeros_like(mean)
    for probability, sample in all_samples(inclusion_probabilities(case.log_mass, expected)):
        estimate = case.log_target() - case.log_prob(sample)
        mean += probability * estimate.detach()
        spread += probability * (estimate.detach().exp() / z - 1) ** 2 / 2
        found = torch.autograd.grad(estimate.sum(), case.leaves)
        gradient = [g + probability * f for g, f in zip(gradient, found, strict=True)]
    distance = sum(float((g - e).square().sum()) for g, e in zip(gradient, exact, strict=True)) ** 0.5
    return mean - case.log_partition().detach(), distance, spread


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_logarithm_and_its_gradient_are_biased_less_and_less(seed: int) -> None:
    case = Case(seed)
    sizes = [1.0, 2.0, 4.0, 5.5, 6.5, 8.0]
    found = [biases(case, size) for size in sizes]
    for bias, _, _ in found:
        assert (bias < 1e-12).all()  # log Ẑ is too small on average
    for (bias, distance, _), (next_bias, next_distance, _) in itertools.pairwise(found):
        assert (next_bias >= bias - 1e-12).all() and next_distance <= distance + 1e-12
    assert float(found[0][0].min()) < -0.01 and found[0][1] > 0.05  # there is something to see
    torch.testing.assert_close(found[-1][0], torch.zeros(N, dtype=torch.float64))
    assert found[-1][1] == pytest.approx(0.0, abs=1e-12)
    bias, _, expected = found[-2]  # where Ẑ varies little, its variance says how large the bias is
    torch.testing.assert_close(-bias, expected, rtol=0.35, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), expected=st.integers(1, 8), slots=st.booleans())
def test_a_sampled_loss_is_never_negative_nor_below_the_target_s_own_share(
    seed: int, expected: int, slots: bool
) -> None:
    case = Case(seed, slots)
    torch.manual_seed(seed)
    sample = ClassSampler(case.log_mass, expected).draw()
    assert 2 not in sample.classes.tolist()
    log_prob = case.log_prob(sample)
    assert (log_prob <= 0).all() and log_prob.isfinite().all()


def test_all_classes_are_the_exact_loss() -> None:
    for slots in (False, True):
        case = Case(5, slots)
        sample = ClassSampler(case.log_mass, S).draw()
        assert sample.classes.tolist() == [0, 1, 3, 4, 5, 6, 7]
        torch.testing.assert_close(case.log_prob(sample), case.log_target() - case.log_partition())


@settings(max_examples=50, deadline=None)
@given(
    class_weights=st.lists(st.floats(-30, 5) | st.just(-math.inf), min_size=1, max_size=40), expected=st.integers(1, 50)
)
def test_inclusion_probabilities_add_up_to_the_size_and_follow_the_background(
    class_weights: list[float], expected: int
) -> None:
    log_mass = torch.tensor([0.0, *class_weights], dtype=torch.float64)
    inclusion = inclusion_probabilities(log_mass, expected)
    support = int((~log_mass.isneginf()).sum())
    assert float(inclusion.sum()) == pytest.approx(min(expected, support))
    assert (inclusion >= 0).all() and (inclusion <= 1).all()
    assert (inclusion[log_mass.isneginf()] == 0).all()
    some = (inclusion > 0) & (inclusion < 1)
    ratio = (inclusion.log() - log_mass)[some]
    if len(ratio):
        torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio))  # proportional to the mass …
        assert (log_mass[inclusion == 1] >= log_mass[some].max() - 1e-9).all()  # … up to 1


def test_samples_have_about_the_size_asked_for_and_follow_the_seed() -> None:
    sampler = ClassSampler(torch.zeros(1000), 100)
    torch.manual_seed(3)
    sizes = [len(sampler.draw().classes) for _ in range(50)]
    assert sum(sizes) / 50 == pytest.approx(100, abs=5)
    torch.manual_seed(3)
    assert len(sampler.draw().classes) == sizes[0]
    with pytest.raises(ValueError, match="expected=0: expected at least 1 class"):
        ClassSampler(torch.zeros(3), 0)


def test_some_rows_are_composed_as_among_all() -> None:
    rows = SparseRows(FeatureTable.from_rows([{"a": 1.0}, {}, {"a": 0.5, "b": -2.0}, {"c": 3.0}]))
    weight = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    some = torch.tensor([2, 1, 3, 2])
    found, expected = rows.compose_subset(weight, some), rows.compose(weight)[some]
    torch.testing.assert_close(found, expected)
    both = [torch.autograd.grad(x.square().sum(), weight)[0] for x in (found, expected)]
    torch.testing.assert_close(*both)
    assert rows.compose_subset(weight, some[:0]).shape == (0, 2)


# ---- with an output layer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weights", ["one row", "rows", "groups", "corrections"])
@pytest.mark.parametrize("slots", [False, True])
def test_a_sampled_output_of_all_classes_is_the_output(class_weights: str, slots: bool) -> None:
    """In value and gradient, however the masses are given; and of some classes, it is its definition."""
    generator = torch.Generator().manual_seed(2)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    signatures = group_equal_rows(FeatureTable.from_rows([{"a": 1.0, "b": i / 7} for i in range(S)]))
    output = LogLinearOutput(signatures.features, torch.from_numpy(signatures.class_of), WIDTH).double()
    torch.nn.init.normal_(output.weight, generator=generator)
    hidden, targets = normal(N, WIDTH).requires_grad_(), TARGETS
    log_mass: Tensor | ClassWeights = normal({"one row": 1, "rows": N, "groups": 2, "corrections": 1}[class_weights], S)
    if class_weights == "corrections":
        rows, classes = torch.tensor([0, 0, 1, 2, 2, 2, 3]), torch.tensor([0, 4, 3, 5, 6, 5, 3])
        only = torch.tensor([False, True, True, False])
        log_mass = sparse_masses(normal(1, S), rows, classes, normal(7), only, normal(N))
    dense = (
        log_mass.dense() if isinstance(log_mass, ClassWeights) else log_mass.repeat_interleave(N // len(log_mass), 0)
    )
    share, of_slots = normal(N), None
    if slots:
        of_slots = SlotScores(normal(N, 2).requires_grad_(), normal(N, 2))
        targets = torch.tensor([0, S, S + 1, 3])
    leaves = [hidden, output.weight, output.bias, *([of_slots.scores] if of_slots else [])]

    def sampled(sample: Sample) -> Tensor:
        return SampledOutput(output, sample).log_prob(hidden, targets, log_mass, share, of_slots)

    found = sampled(Sample(torch.arange(S), torch.zeros(S)))
    exact = ExactRows(output).log_prob(hidden, targets, log_mass, share, of_slots)
    torch.testing.assert_close(found, exact)
    for one, other in zip(
        torch.autograd.grad(found.sum(), leaves), torch.autograd.grad(exact.sum(), leaves), strict=True
    ):
        torch.testing.assert_close(one, other)

    drawn, log_weights = torch.tensor([0, 3, 6]), torch.tensor([0.0, 0.7, 1.1], dtype=torch.float64)
    weights = (output.class_scores(hidden) + dense).exp()
    for n, estimate in enumerate(sampled(Sample(drawn, log_weights))):
        target = int(targets[n])
        extra = (of_slots.scores + of_slots.log_mass)[n].exp() if of_slots else weights[n, :0]
        own = weights[n, target] if target < S else extra[target - S]
        of_drawn = zip(drawn.tolist(), log_weights.tolist(), strict=True)
        rest = sum(float(weights[n, c]) * math.exp(w) for c, w in of_drawn if c != target)
        z = float(extra.sum()) + rest + (float(own) if target < S else 0.0)
        assert float(estimate) == pytest.approx(math.log(float(own) / z) + float(share[n]))
