"""The language model in plain PyTorch: the loss of llrnn_lm with the same weights, training resumed, the script."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import tiny_world
import torch
from example_modules import EXAMPLES, load, run_example
from tiny_world import World

from toy_french import make_corpus, write_corpus

LINES = ["le chat voit la mer", "une rose garde le roi", "la neige rend un pain lourd bien"]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load(EXAMPLES / "pytorch", "language_model")[0]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(make_corpus(150, seed=1), folder)
    return folder


def copied(decoder: torch.nn.Module, model: torch.nn.Module, layers: int) -> None:
    """The weights of a decoder of llrnn_lm in a model of the example: its layers are modules of their own."""
    model.head.load_state_dict(decoder.head.state_dict())
    names = [f"{kind}_{of}" for kind in ("weight", "bias") for of in ("ih", "hh")]
    theirs = decoder.network.state_dict()
    model.lstm.load_state_dict({f"{n}_l{i}": theirs[f"layers.{i}.{n}_l0"] for i in range(layers) for n in names})


@pytest.mark.parametrize("prior", ["prior", "separate", "softmax"])
def test_the_loss_and_gradients_of_llrnn_lm(world: World, example: ModuleType, prior: str) -> None:
    setting = tiny_world.evaluated(world.train_args(prior))
    model = example.LanguageModel(setting.task.prior, width=16, layers=2).eval()
    decoder = setting.model.decoder
    copied(decoder, model, layers=2)
    sample = tiny_world.batch(setting.task.dictionary, LINES)
    expected, _, _ = setting.criterion(setting.model, sample)
    loss = model.loss(sample["target"], "sum")
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    loss.backward()
    expected.backward()
    ours = [model.head.output.weight, model.head.output.bias, model.head.embedding.weight, model.lstm.weight_hh_l1]
    theirs = [decoder.head.output.weight, decoder.head.output.bias, decoder.head.embedding.weight]
    for mine, other in zip(ours, [*theirs, decoder.network.layers[1].weight_hh_l0], strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-5)


def test_a_training_that_goes_on_ends_where_one_without_a_stop_does(
    example: ModuleType, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(work: str, epochs: int) -> str:
        example.main([str(corpus), str(tmp_path / work), "--epochs", str(epochs), "--width", "16"])
        return capsys.readouterr().out

    whole, first = train("whole", 2), train("parts", 1)
    then = train("parts", 2)
    assert "epoch 2" not in first and "epoch 1" not in then
    last = [torch.load(tmp_path / work / "checkpoint.pt", weights_only=True)["model"] for work in ("whole", "parts")]
    assert all(torch.equal(one, other) for one, other in zip(*(saved.values() for saved in last), strict=True))
    ppl = [float(line.split()[-1]) for line in whole.splitlines() if line.startswith("epoch")]
    assert ppl[1] < ppl[0] < 1000, "the unigram alone has less than that"


@pytest.mark.slow
def test_the_script_trains_writes_and_explains_without_fairseq(corpus: Path, tmp_path: Path) -> None:
    found = run_example("pytorch/run.sh", tmp_path, variables={"CORPUS": str(corpus), "EPOCHS": "1", "WIDTH": "16"})
    assert "epoch 1: validation perplexity" in found.out and "the model writes:" in found.out
    explained = found.out.partition("what the network adds")[2].splitlines()[1:]
    values = {line.split()[0]: float(line.rsplit(maxsplit=1)[1]) for line in explained}
    background = float(found.out.partition("log b ")[2].partition(":")[0])
    log_p = values.pop("log")
    assert background + sum(values.values()) == pytest.approx(log_p, abs=0.01 * (len(values) + 2))
    imports = "import sys; sys.path[:0] = [{!r}]; import language_model; print('fairseq' in sys.modules)"
    command = [sys.executable, "-c", imports.format(str(EXAMPLES / "pytorch"))]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
