"""A trained model as a background (backgrounds/language_model.py): the laws, one call for a batch, frozen."""

import positions
import torch
from torch import Tensor, nn

from fairseq_llrnn.backgrounds.algebra import Product
from fairseq_llrnn.backgrounds.language_model import BoundModel, ModelBackground
from fairseq_llrnn.testing import check_background

WORDS, CLASSES = 9, 4


class TinyModel(nn.Module):
    """A recurrent model over nine words, which counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.network = nn.Embedding(WORDS, 5), nn.GRU(5, 6, batch_first=True)
        self.output = nn.Linear(6, WORDS)
        self.calls = 0

    def forward(self, previous: Tensor, last: bool) -> Tensor:
        self.calls += 1
        hidden, _ = self.network(self.embedding(previous))
        hidden = hidden[:, -1:] if last else hidden
        return self.output(hidden).log_softmax(-1)


def background(
    forbidden: int | None = None, weight: float = 1.0, temperature: float = 1.0
) -> tuple[BoundModel, TinyModel]:
    torch.manual_seed(1)
    model = TinyModel()
    weights = torch.zeros(WORDS)
    if forbidden is not None:
        weights[forbidden] = float("-inf")
    class_of = torch.tensor([0, 1, 1, 2, 2, 2, 3, 1, 0])
    return BoundModel(ModelBackground(class_of, CLASSES, weights, 2, model, weight, temperature)), model


def test_it_obeys_the_laws() -> None:
    check_background(background()[0].module)
    check_background(background(forbidden=4)[0].module)
    check_background(background(forbidden=4, weight=0.3, temperature=2.0)[0].module)


def test_its_weights_are_the_models_and_forbidden_words_stay_forbidden() -> None:
    found, model = background(forbidden=4)
    state = found.advance(found.start(3), torch.tensor([1, 5, 8]))
    expected = model(torch.tensor([[2, 1], [2, 5], [2, 8]]), last=False)[:, -1]
    expected[:, 4] = float("-inf")
    torch.testing.assert_close(found.view(state).log_weights, expected)


def test_a_temperature_divides_the_logarithms() -> None:
    plain, warm = background()[0], background(temperature=2.0)[0]
    state = plain.start(1)
    torch.testing.assert_close(warm.view(state).log_weights, plain.view(state).log_weights / 2)


def test_a_batch_of_training_is_one_call() -> None:
    found, model = background()
    previous = torch.tensor([[2, 3, 4], [2, 5, 6]])
    for bound in (found, Product([found.module, found.module]).bind()):
        model.calls = 0
        view = bound.view_of(previous)
        assert view.class_mass.dense().shape == (6, CLASSES)
        assert view.locate(torch.tensor([3, 4, 2, 5, 6, 2]))[1].isfinite().all()
        assert model.calls == len(getattr(bound, "parts", [bound]))


def test_a_step_of_a_search_is_one_call() -> None:
    found, model = background()
    state = found.advance(found.start(3), torch.tensor([1, 5, 8]))
    view = found.view(state)
    assert view.class_mass.dense().shape == view.best_share.shape == (3, CLASSES)
    assert view.locate(torch.tensor([3, 3, 3]))[1].shape == (3,)
    assert model.calls == 1


def test_a_weight_leaves_the_rest_to_b0() -> None:
    plain, mixed = background(forbidden=4)[0], background(forbidden=4, weight=0.3)[0]
    state = plain.start(1)
    expected = 0.3 * plain.view(state).log_weights.exp() + 0.7  # b₀ is 1 here
    expected[:, 4] = 0.0
    torch.testing.assert_close(mixed.view(state).log_weights.exp(), expected)


class Sharp(nn.Module):
    """So sure of one word that the others are lost beside it in single precision."""

    def forward(self, previous: Tensor, last: bool) -> Tensor:
        shape = previous[:, -1:].shape if last else previous.shape
        logits = torch.full((*shape, WORDS), -200.0)
        logits[..., 3] = 0.0
        logits[..., 5] = float("-inf")
        return logits


def test_masses_of_words_that_are_hardly_possible() -> None:
    class_of = torch.tensor([0, 1, 1, 2, 2, 3, 3, 1, 0])
    found = BoundModel(ModelBackground(class_of, CLASSES, torch.zeros(WORDS), 2, Sharp()))
    expected = torch.tensor([2.0, 3.0, 1.0, 1.0]).log() + torch.tensor([-200.0, -200.0, 0.0, -200.0])
    torch.testing.assert_close(found.view(found.start(2)).class_mass.dense().float(), expected.expand(2, -1))
    check_background(found.module)


def test_the_model_is_frozen_and_in_no_checkpoint() -> None:
    found, _ = background()
    assert not list(found.module.parameters())
    assert not positions.log_mass(found, torch.tensor([[2, 3]])).requires_grad
    assert not found.module.state_dict()
