"""On a GPU a model says what it says on a CPU: loss, gradients and searches of every kind, in any precision.

All that a model reads was made on the CPU: what it keeps there, or makes there, shows as an error.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from every_kind import LEARNED, language_models, translations
from evidence_world import EvidenceWorld
from fairseq.utils import move_to_cuda
from shell import Shell
from tiny_world import EVERY_SENTENCE, Setting, World, randomised
from torch import Tensor
from translation_world import TranslationWorld

from fairseq_llrnn.plugin.compat.counted_gpus import clip_where_gradients_are

SAMPLED = "sampled"  # draws other classes there
PRECISIONS = ([], ["--fp16"], ["--memory-efficient-fp16"], ["--amp"], ["--bf16-products"])


@pytest.fixture
def lines(
    shell: Shell, world: World, translation: TranslationWorld, evidence: EvidenceWorld, trained: Path,
    expert_file: Path, tmp_path: Path,
) -> dict[str, Sequence[object]]:  # fmt: skip
    return language_models(shell, world, trained, tmp_path) | translations(translation, evidence, expert_file)


def validation_batch(setting: Setting) -> dict[str, Any]:
    setting.task.load_dataset("valid")
    batches = setting.task.get_batch_iterator(setting.task.dataset("valid"), max_tokens=200)
    sample = next(iter(batches.next_epoch_itr(shuffle=False)))
    assert isinstance(sample, dict)
    return sample


def loss_and_gradients(setting: Setting, sample: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
    setting.model.zero_grad()
    loss = setting.criterion(setting.model, sample)[0]
    loss.backward()
    named = setting.model.named_parameters()
    # copies: where the model goes, its gradients go too
    return loss.detach().cpu(), {name: p.grad.detach().clone().cpu() for name, p in named if p.grad is not None}


def searched(setting: Setting, sample: dict[str, Any]) -> list[list[Tensor]]:
    from fairseq.dataclass.configs import GenerationConfig

    generator = setting.task.build_generator([setting.model.eval()], GenerationConfig(beam=3, max_len_b=12))
    found = setting.task.inference_step(generator, [setting.model], sample)
    return [[hypothesis["positional_scores"].cpu() for hypothesis in sentence] for sentence in found]


def test_every_kind_computes_what_it_computes_on_a_cpu(gpu: torch.device, lines: dict[str, Sequence[object]]) -> None:
    wrong: dict[str, str] = {}
    for name, line in lines.items():
        setting = randomised([*line, "--dropout", "0"], scale=0.2, double=True)
        sample = validation_batch(setting)
        try:
            expected, gradients = loss_and_gradients(setting, sample)
            hypotheses = searched(setting, sample)
            setting.model.to(gpu).train()
            setting.criterion.to(gpu)
            sample = move_to_cuda(sample, gpu)
            loss, found = loss_and_gradients(setting, sample)
            if name == SAMPLED:
                continue
            torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)  # a model as background is in float32
            if name != LEARNED:
                torch.testing.assert_close(found, gradients, rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(searched(setting, sample), hypotheses, rtol=1e-4, atol=1e-4)
        except (AssertionError, RuntimeError, TypeError, ValueError, IndexError) as error:
            wrong[name] = f"{type(error).__name__}: {error}"
    assert not wrong, "\n\n".join(f"{name}: {text}" for name, text in wrong.items())


def test_the_norm_of_gradients_is_where_they_are() -> None:
    """fairseq takes it to the first GPU that it sees, also with --cpu; here, another place stands for that."""
    there, here = (torch.nn.Parameter(torch.zeros(2, device=device)) for device in ("meta", "cpu"))
    there.grad, here.grad = torch.zeros_like(there), torch.zeros_like(here)

    def clip(params: Sequence[Tensor], max_norm: float, aggregate: Callable[[Tensor], Tensor]) -> Tensor:
        return aggregate(torch.tensor(3.0))

    clipped = clip_where_gradients_are(clip)
    assert clipped([there], 1.0).device == there.device
    assert clipped(iter([here]), 1.0, lambda norm: 2 * norm) == 6.0


@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda options: " ".join(options) or "float32")
def test_training_scoring_and_generation(
    gpu: torch.device, precision: list[str], shell: Shell, world: World, tmp_path: Path
) -> None:
    training, task = (
        [a for a in args if a != "--cpu"] for args in (world.train_args(save_dir=tmp_path), world.task_args())
    )
    done = shell.run("fairseq-train", *training, *precision, "--max-epoch", 2)
    first, last = done.json_lines("valid")
    assert last["valid_nats"] < first["valid_nats"] < 3.7
    scoring = [*task, "--path", tmp_path / "checkpoint_last.pt", "--sample-break-mode", "eos", "--gen-subset", "valid"]
    scored = [
        shell.run("fairseq-eval-lm", *scoring, *place).out.partition("Loss (base 2): ")[2][:5]
        for place in ([], ["--cpu"])
    ]
    assert float(scored[0]) == pytest.approx(float(scored[1]), abs=0.002)
    found = shell.run("fairseq-generate", *scoring, "--beam", 3, "--max-len-b", 20, "--prefix-size", 1, *EVERY_SENTENCE)
    assert len([line for line in found.out.splitlines() if line.startswith("H-")]) == len(world.text("valid"))
