"""Half precision: products may be short, log weights and sums over classes never are.

What fairseq does on a CPU: --fp16 with --fp16-no-flatten-grads (or --memory-efficient-fp16) trains; --fp16 alone asks
for a GPU; --bf16 asks for a TPU, on every machine. For bfloat16 there is our own --bf16-products.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from shell import Shell
from tiny_world import World, batch, build, randomised, read_checkpoint

from fairseq_llrnn.plugin.models import log_linear_decoder
from fairseq_llrnn.plugin.models.log_linear_decoder import bfloat16_on

DTYPES = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [["--label-smoothing", "0.1"], ["--context-window", "4", "--cell", "gru"]])
def test_a_short_model_keeps_its_background_and_its_loss(world: World, options: list[str], dtype: torch.dtype) -> None:
    setting = randomised([*world.train_args(), *options, "--adaptor-penalty", "0.01", "--adaptor-norm", "1"], scale=0.2)
    sample = batch(setting.task.dictionary, world.text("valid"))
    exact = {name: buffer.clone() for name, buffer in setting.model.decoder.head.background.named_buffers()}
    whole, size, _ = setting.criterion(setting.model, sample)
    setting.model.to(dtype)
    setting.criterion.to(dtype)
    for name, buffer in setting.model.decoder.head.background.named_buffers():
        assert torch.equal(buffer, exact[name]), name
        assert buffer.dtype == exact[name].dtype, name
    assert setting.model.decoder.head.output.weight.dtype == dtype

    short, _, log = setting.criterion(setting.model, sample)
    assert short.dtype == torch.float32
    assert abs(short.item() - whole.item()) / size < (0.03 if dtype == torch.bfloat16 else 0.004)
    short.backward()
    assert all(bool(p.grad.isfinite().all()) for p in setting.model.parameters())
    with torch.no_grad():
        log_probs = setting.model.get_normalized_probs(setting.model(**sample["net_input"]), log_probs=True)
    assert log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(log_probs.shape[:2]), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        -log_probs.gather(2, sample["target"].unsqueeze(2)).squeeze(2)[sample["target"] != 1].sum(),
        log["nll_loss"],
        rtol=0.01,
        atol=0.1,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_very_rare_words_keep_their_probability(world: World, dtype: torch.dtype) -> None:
    """Weights that differ by 80 nats: beyond what fits into half precision once exponentiated."""
    setting = build(world.train_args())
    background = setting.model.decoder.head.background
    rare = setting.task.dictionary.index("neige")
    with torch.no_grad():
        background.word_log_share[rare] -= 80.0
        for parameter in setting.model.parameters():
            parameter.zero_()
    sample = batch(setting.task.dictionary, ["la neige tient bien"])
    whole = setting.criterion(setting.model, sample)[0]
    assert whole.item() > 80.0
    setting.model.to(dtype)
    assert setting.criterion(setting.model, sample)[0].item() == pytest.approx(whole.item(), abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        ["--fp16", "--fp16-no-flatten-grads", "--adaptor-penalty", "0.001", "--store-ema", "--ema-fp32"],
        ["--memory-efficient-fp16", "--cell", "gru", "--tie-features", "--layer-norm"],
        ["--bf16-products", "--dropout", "0.1"],
    ],
    ids=lambda options: options[0],
)
def test_training_and_scoring(options: list[str], shell: Shell, world: World, tmp_path: Path) -> None:
    trained = shell.run("fairseq-train", *world.train_args(save_dir=tmp_path), *options, "--max-epoch", 2)
    if "--store-ema" in options:  # the average of the weights, too, remembers its prior
        extra = read_checkpoint(tmp_path / "checkpoint_last.pt")["extra_state"]
        build(world.train_args()).model.load_state_dict(extra["ema"])
    first, last = trained.json_lines("valid")
    assert last["valid_nats"] < first["valid_nats"] < 3.7
    scored = shell.run(
        "fairseq-eval-lm", *world.task_args(), "--path", tmp_path / "checkpoint_last.pt", "--gen-subset", "valid",
        "--sample-break-mode", "eos", *(["--fp16"] if "fp16" in options[0] else []),
    )  # fmt: skip
    loss = re.search(r"Loss \(base 2\): ([\d.]+)", scored.out)
    assert loss is not None
    assert float(loss[1]) == pytest.approx(last["valid_nll_loss"], abs=0.003)


def test_without_bfloat16_products_are_in_float32(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A processor without AVX-512, of which torch says so as it meets an LSTM."""

    def refuse(*args: object) -> None:
        raise RuntimeError("could not create a primitive descriptor for the LSTM forward propagation primitive")

    losses = []
    bfloat16_on.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(log_linear_decoder.nn, "LSTM", refuse)
        assert not bfloat16_on("cpu")
    for options in ([], ["--bf16-products"]):
        setting = build([*world.train_args(), *options])
        setting.model.train()
        losses.append(setting.criterion(setting.model, batch(setting.task.dictionary, world.text("valid")))[0].item())
    bfloat16_on.cache_clear()
    assert losses[0] == losses[1]
    assert [record.message for record in caplog.records if "bf16" in record.message] == [
        "--bf16-products: torch has no bfloat16 LSTM for this processor; products are in float32"
    ]


@pytest.mark.parametrize("allowed", [False, True])
def test_short_products_leave_out_cudnn_attention_and_nothing_else(
    allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the user had it before and after; what else the user forbids stays forbidden."""
    monkeypatch.setattr(log_linear_decoder, "bfloat16_on", lambda device: True)
    backends = torch.backends.cuda
    before = backends.cudnn_sdp_enabled()
    backends.enable_cudnn_sdp(allowed)
    backends.enable_flash_sdp(False)
    try:
        for trains in (True, False):
            network = SimpleNamespace(bf16_products=True, training=trains)
            with log_linear_decoder.short_products(network, torch.zeros(1)) as short:
                assert short == trains
                assert backends.cudnn_sdp_enabled() == (allowed and not trains)
                assert not backends.flash_sdp_enabled() and backends.mem_efficient_sdp_enabled()
            assert backends.cudnn_sdp_enabled() == allowed
    finally:
        backends.enable_cudnn_sdp(before)
        backends.enable_flash_sdp(True)


@pytest.mark.parametrize("trains", [True, False])
def test_products_that_are_short_already_stay_so(trains: bool) -> None:
    """Those of --amp: the network is a part of what it makes short."""
    network, one = SimpleNamespace(bf16_products=False, training=trains), torch.ones(1, 1)
    with torch.autocast("cpu", torch.bfloat16), log_linear_decoder.short_products(network, one) as short:
        assert not short
        assert (one @ one).dtype == torch.bfloat16
