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
from torch.nn.utils.rnn import pad_sequence
from translation_world import TranslationWorld

from fairseq_llrnn.plugin.compat.counted_gpus import clip_where_gradients_are

Hypotheses = list[list[dict[str, Tensor]]]  # of each sentence

SAMPLED = "sampled"  # draws other classes there
# Words of one class are equally probable there, and which of them comes first is chance.
TIED = ("ngram:2 plus uniform with weights per position", "temperature")
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


def searched(setting: Setting, sample: dict[str, Any], beginning: Tensor | None = None) -> Hypotheses:
    """The hypotheses of each sentence. beginning: tokens that they have to begin with, (B, T)."""
    from fairseq.dataclass.configs import GenerationConfig

    generator = setting.task.build_generator([setting.model.eval()], GenerationConfig(beam=3, max_len_b=12))
    found: Hypotheses = setting.task.inference_step(generator, [setting.model], sample, prefix_tokens=beginning)
    return found


def check_scores(setting: Setting, sample: dict[str, Any], found: Hypotheses) -> None:
    """That a search that has to say the same gives the same scores."""
    for rank in range(min(map(len, found))):
        said = [sentence[rank] for sentence in found]
        tokens = [hypothesis["tokens"].cpu() for hypothesis in said]
        beginning = pad_sequence(tokens, batch_first=True, padding_value=setting.task.target_dictionary.pad())
        for again, hypothesis in zip(searched(setting, sample, beginning), said, strict=True):
            torch.testing.assert_close(again[0]["tokens"], hypothesis["tokens"].cpu())
            scores = again[0]["positional_scores"], hypothesis["positional_scores"].cpu()
            torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-4)


def test_every_kind_computes_what_it_computes_on_a_cpu(gpu: torch.device, lines: dict[str, Sequence[object]]) -> None:
    wrong: dict[str, str] = {}
    for name, line in lines.items():
        setting = randomised([*line, "--dropout", "0"], scale=0.2, double=True)
        sample = validation_batch(setting)
        try:
            expected, gradients = loss_and_gradients(setting, sample)
            setting.model.to(gpu)
            setting.criterion.to(gpu)
            there = move_to_cuda(sample, gpu)
            loss, found = loss_and_gradients(setting, there)
            if name == SAMPLED:
                continue
            # a model as background is in float32
            torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
            if name != LEARNED:
                rtol, atol = (1e-2, 1e-4) if name.startswith("model:") else (1e-5, 1e-6)
                torch.testing.assert_close(found, gradients, rtol=rtol, atol=atol)
            hypotheses = searched(setting, there)
            setting.model.to("cpu")
            check_scores(setting, sample, hypotheses)
            if name not in TIED:
                for sentence, other in zip(hypotheses, searched(setting, sample), strict=True):
                    for one, expected in zip(sentence, other, strict=True):
                        scores = one["positional_scores"].cpu(), expected["positional_scores"]
                        torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-4)
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
