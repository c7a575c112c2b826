"""A head under torch.compile, torch.export and autocast says what it says without them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from same_gradients import assert_leaves_autocast
from torch import Tensor, nn

from fairseq_llrnn import LogLinearHead
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

WIDTH, WORDS = 8, tuple(f"w{i}" for i in range(30))


def make(place: Path, background: str) -> LogLinearHead:
    (place / "train.txt").write_text("\n".join(" ".join(WORDS[i : i + 5]) for i in range(30)), encoding="utf-8")
    options = Recipe(text=place / "train.txt", suffixes=3, top_words=10, background=background)
    torch.manual_seed(1)
    return LogLinearHead(build_prior([*SPECIALS, *WORDS], options), WIDTH)


@pytest.fixture
def head(tmp_path: Path) -> LogLinearHead:
    return make(tmp_path, "unigram")


def batch(head: LogLinearHead) -> tuple[Tensor, Tensor]:
    return torch.randn(2, 5, WIDTH, requires_grad=True), torch.randint(4, head.num_words, (2, 5))


BACKGROUNDS = [
    "unigram", "ngram(3, folds=2)", "0.5 ngram(3, folds=2) plus 0.5 uniform",
    "ngram(3, folds=2) plus uniform with weights per position",
]  # fmt: skip


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("training", [True, False])
def test_the_compiled_loss_is_one_graph_with_the_same_gradient(
    tmp_path: Path, background: str, training: bool
) -> None:
    head = make(tmp_path, background).train(training)
    hidden, targets = batch(head)
    torch._dynamo.reset()
    compiled = torch.compile(head.loss, fullgraph=True, backend="aot_eager")
    leaves = [hidden, head.output.weight, head.output.bias]
    losses = compiled(hidden, targets), head.loss(hidden, targets)
    torch.testing.assert_close(*losses)
    for one, other in zip(*(torch.autograd.grad(loss, leaves) for loss in losses), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    "ask",
    [lambda head, h, t: head.log_probs(h, previous=t), lambda head, h, t: head.top_k(h[:, 0], head.start(2), 3)[0]],
)
def test_what_a_search_asks_compiles_too(head: LogLinearHead, ask: Callable[..., Tensor]) -> None:
    """Not in one graph: Python 3.11 takes a lock where it keeps what was computed."""
    hidden, targets = batch(head.eval())
    with torch.no_grad():
        torch.testing.assert_close(
            torch.compile(ask, backend="aot_eager")(head, hidden, targets), ask(head, hidden, targets)
        )


class LogProbs(nn.Module):
    def __init__(self, head: LogLinearHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: Tensor) -> Tensor:
        return self.head.log_probs(hidden)


@pytest.mark.parametrize("is_grad_enabled", [True, False])
def test_log_probabilities_are_exported_for_any_batch_and_time(head: LogLinearHead, is_grad_enabled: bool) -> None:
    """A size that the code reads as a number would be fixed in the graph, which torch.export refuses."""
    sizes = {"hidden": {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}}
    with torch.set_grad_enabled(is_grad_enabled):
        exported = torch.export.export(LogProbs(head.eval()), (torch.randn(2, 5, WIDTH),), dynamic_shapes=sizes)
    for shape in ((2, 5), (3, 4), (1, 1), (7, 2)):
        hidden = torch.randn(*shape, WIDTH)
        torch.testing.assert_close(exported.module()(hidden), head.log_probs(hidden))


@pytest.mark.slow  # torch.onnx exports the graph of test_log_probabilities_are_exported
def test_log_probabilities_in_onnx_have_any_batch_and_time(head: LogLinearHead) -> None:
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnx and onnxscript")
    sizes = {"hidden": {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}}
    program = torch.onnx.export(
        LogProbs(head.eval()), (torch.randn(2, 5, WIDTH),), dynamo=True, dynamic_shapes=sizes, verbose=False
    )
    (shape,) = (value.shape for value in program.model.graph.outputs)
    assert [str(size) for size in shape] == ["batch", "time", str(head.num_words)]
    for batch_and_time in ((2, 5), (3, 4), (7, 2)):
        hidden = torch.randn(*batch_and_time, WIDTH)
        (found,) = program.call_reference({"hidden": hidden})
        torch.testing.assert_close(torch.as_tensor(found), head.log_probs(hidden))


def test_autocast_shortens_products_and_not_sums(head: LogLinearHead) -> None:
    hidden, targets = batch(head)
    exact = head.loss(hidden, targets)
    with torch.autocast("cpu", torch.bfloat16):
        found = head.loss(hidden, targets)
        full = head.log_probs(hidden, previous=head.previous(targets))
        batch_of_one = head.batch(hidden[:1], head.bind(head.previous(targets)[:1]))
        words = [head.target_log_probs(batch_of_one, torch.full_like(targets[:1], w)) for w in range(full.size(-1))]
    torch.testing.assert_close(torch.stack(words).double().exp().sum(0), torch.ones(1, 5).double(), atol=1e-5, rtol=0)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, exact, atol=0.01, rtol=0.01)
    torch.testing.assert_close(full.exp().sum(-1), torch.ones(2, 5), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1, "adaptor_penalty": 0.2}], ids=["plain", "regularised"]
)
def test_the_head_leaves_autocast(head: LogLinearHead, options: dict[str, float]) -> None:
    assert_leaves_autocast(head, *batch(head), **options)
