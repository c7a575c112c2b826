"""--input-characters: models that read characters, in this process and through the commands."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from available import available
from every_kind import TRANSFORMER
from shell import Shell
from tiny_world import TRAINING, World, assert_prefixes_agree, batch, build, open_prior, randomised, read_checkpoint
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.characters.input import CharacterWords

SMALL = ["--input-characters", "cnn", "--character-embed-dim", "4", "--character-filters", "1:3,3:5"]
ADDED = [*SMALL, "--character-mode", "add"]
LINES = ["le chat voit la mer", "une pomme verte"]

MODELS: dict[str, list[str]] = {
    "only": SMALL,
    "added": ADDED,
    "tied": [*ADDED, "--tie-features"],
    "two layers": [*SMALL, "--highway-layers", "2"],
    "a window": [*SMALL, "--context-window", "2"],
}
TRANSLATORS: dict[str, list[str]] = {
    "recurrent": ["llrnn_lstm", *SMALL],
    "recurrent, tied": ["llrnn_lstm", *ADDED, "--decoder-embed-dim", "16", "--tie-features"],
    "with the summary": ["llrnn_lstm", *SMALL, "--context-every-step"],
    "maxout units": ["llrnn_encoder_decoder", *SMALL],
    "convolutions": ["llrnn_rctm", *SMALL, "--source-characters", "cnn"],
    "transformer": ["llrnn_transformer", *SMALL],
    "transformer, added": ["llrnn_transformer", *ADDED, "--feature-input"],
}


def trains_everything(setting: Any, sample: dict[str, Any]) -> None:
    loss, _, _ = setting.criterion(setting.model.train(), sample)
    loss.backward()
    idle = {n for n, p in setting.model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    assert all(name.endswith("k_proj.bias") for name in idle)  # which moves all scores of a query alike


@pytest.mark.parametrize("name", MODELS)
def test_language_models_train_all_weights_and_search_as_they_score(world: World, name: str) -> None:
    setting = randomised([*world.train_args(), *MODELS[name]], scale=0.3)
    sample = batch(setting.task.dictionary, LINES)
    trains_everything(setting, sample)
    assert_prefixes_agree(setting, LINES)


def test_a_log_bilinear_model_searches_as_it_scores(world: World) -> None:
    sizes = ["--decoder-embed-dim", "16", "--decoder-hidden-size", "16"]
    arguments = [*world.task_args(), "--arch", "llrnn_lbl", *sizes, *TRAINING, "--no-save", *SMALL]
    assert_prefixes_agree(randomised(arguments, double=True), LINES, first=2)


@pytest.mark.parametrize("options", [SMALL, [*ADDED, "--tie-features"]], ids=["only", "tied"])
def test_a_transformer_searches_as_it_scores(world: World, options: list[str]) -> None:
    arguments = [*world.task_args(), *TRANSFORMER, *TRAINING, "--no-save", *options]
    setting = randomised(arguments, scale=0.3, double=True)
    trains_everything(setting, batch(setting.task.dictionary, LINES))
    assert_prefixes_agree(setting, LINES, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("width", [16, 256, 1024])
@pytest.mark.parametrize("options", [SMALL[:2], ADDED[:2] + ADDED[-2:]], ids=["only", "added"])
def test_a_transformer_starts_with_inputs_of_its_scale(world: World, options: list[str], width: int) -> None:
    """It multiplies them by the root of its width; positions have a root mean square of 0.7."""
    arguments = [*world.task_args(), *TRANSFORMER, *TRAINING, "--no-save", "--decoder-embed-dim", width, *options]
    decoder = build(arguments).model.decoder
    read = decoder.body.embed_scale * decoder.head.embed(torch.arange(4, len(decoder.dictionary)))
    assert 0.3 < read.square().mean().sqrt().item() < 1.5


@pytest.mark.parametrize("width", [16, 512])
@pytest.mark.parametrize("options", [SMALL[:2], [*ADDED[:2], *ADDED[-2:], "--feature-input"]], ids=["only", "added"])
def test_a_translating_transformer_starts_with_inputs_of_its_scale(
    translation: TranslationWorld, options: list[str], width: int
) -> None:
    model = wide_translator(translation, width, *options)
    words = torch.arange(4, len(model.decoder.dictionary))
    inputs = {
        "decoder": model.decoder.body.embed_scale * model.decoder.head.embed(words),
        "encoder": model.encoder.embed_scale * model.encoder.embed_tokens(words),
    }
    rms = {side: float(read.detach().square().mean().sqrt()) for side, read in inputs.items()}
    assert all(0.25 < value < 1.5 for value in rms.values()), rms


def wide_translator(translation: TranslationWorld, width: int, *options: str) -> Any:
    sizes = ["--encoder-embed-dim", str(width), "--decoder-embed-dim", str(width), "--source-characters", "cnn"]
    return build([*translation.train_args("llrnn_transformer"), *sizes, *options]).model.eval()


def test_inputs_that_the_network_does_not_multiply_are_not_scaled(translation: TranslationWorld) -> None:
    model = wide_translator(translation, 16, *SMALL, "--no-scale-embedding")
    assert not any(name.endswith("characters.scale") for name in model.state_dict())


def test_weights_of_earlier_checkpoints_keep_their_scale(translation: TranslationWorld, world: World) -> None:
    """llrnn_transformer was trained with a factor of 1, llrnn_transformer_lm with that of its width."""
    language_model = build([*world.task_args(), *TRANSFORMER, *TRAINING, "--no-save", *SMALL]).model
    for model, factor in ((wide_translator(translation, 16, *SMALL), 1.0), (language_model, 0.25)):
        now = {name: value.clone() for name, value in model.state_dict().items()}
        scales = {name: value for name, value in now.items() if name.endswith(".scale")}
        assert scales and set(map(float, scales.values())) == {0.25}
        model.load_state_dict({name: value for name, value in now.items() if name not in scales})
        assert {float(model.state_dict()[name]) for name in scales} == {factor}
        model.load_state_dict(now)
        assert {float(model.state_dict()[name]) for name in scales} == {0.25}


@pytest.mark.parametrize("bfloat16", [False, True], ids=["float32", "autocast bfloat16"])
@pytest.mark.parametrize("width", [16, 1024])
def test_compiled_inputs_equal_eager_ones(world: World, width: int, bfloat16: bool) -> None:
    arguments = [*world.task_args(), *TRANSFORMER, *TRAINING, "--no-save", "--decoder-embed-dim", width, *ADDED]
    head = build(arguments).model.decoder.head
    tokens = torch.arange(4, 10).view(2, 3)
    found = []
    for embed in (head.embed, torch.compile(head.embed, backend="aot_eager")):
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            read = embed(tokens)
        head.zero_grad()
        read.float().square().sum().backward()
        found.append([read, *(weight.grad for weight in head.embedding.parameters())])
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("name", available(TRANSLATORS))
def test_translation_models_train_all_weights_and_search_as_they_score(
    translation: TranslationWorld, name: str
) -> None:
    arch, *options = TRANSLATORS[name]
    setting = randomised([*translation.train_args(arch), *options], scale=0.3)
    sample = pairs(setting.task, LINES)
    trains_everything(setting, sample)
    setting.model.eval()
    assert_steps_agree(setting, sample)


def test_added_is_the_sum_of_both(world: World) -> None:
    head = build([*world.train_args(), *ADDED]).model.decoder.head
    tokens = torch.arange(4, 9)
    spelled = super(CharacterWords, head.embedding).forward(tokens)
    expected = spelled + head.embedding.features(tokens)
    torch.testing.assert_close(head.embed(tokens), expected)
    assert head.embed_size == head.embedding.features.weight.size(1) == 16
    assert build([*world.train_args(), *SMALL]).model.decoder.head.embed_size == 8


@pytest.mark.parametrize(
    ("arch", "parameters"),
    [("llrnn_lm_char_small", (525, 6, 1, 300, 2)), ("llrnn_lm_char_large", (1100, 7, 2, 650, 2))],
)
def test_the_architectures_have_the_sizes_of_the_thesis(world: World, arch: str, parameters: tuple[int, ...]) -> None:
    args = [*world.task_args(), "--arch", arch, *world.train_args()[world.train_args().index("--criterion") :]]
    decoder = build(args).model.decoder
    network = decoder.head.embedding.network
    found = (decoder.head.embed_size, len(network.filters), len(network.layers), decoder.head.hidden_size)
    assert (*found, len(decoder.network.layers)) == parameters
    assert network.embedding.embedding_dim == 15
    assert decoder.network.dropouts == [0.0, 0.5] and decoder.network.dropout_out == 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--character-mode", "add"], "--character-mode add: it needs --input-characters cnn; add it"),
        (["--highway-layers", "2"], "--highway-layers 2: it needs --input-characters cnn"),
        ([*SMALL, "--highway-layers", "11"], "--highway-layers 11: expected a number from 0 to 10"),
        ([*SMALL, "--highway-layers", "-1"], "--highway-layers -1: expected a number from 0 to 10"),
        ([*SMALL, "--character-embed-dim", "0"], "--character-embed-dim 0: expected a number of at least 1"),
        ([*SMALL, "--character-filters", "3"], "--character-filters 3: expected widths and their numbers of filters"),
        ([*SMALL, "--tie-features"], "--tie-features: with --input-characters cnn it needs"),
    ],
)
def test_what_makes_no_sense_is_refused(world: World, options: list[str], said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        build([*world.train_args(), *options])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([*SMALL, "--feature-input"], "--feature-input: with --input-characters it needs --character-mode add"),
        (ADDED, "--character-mode add: it needs --feature-input; add it"),
        ([*SMALL, "--tie-features"], "--tie-features needs --feature-input"),
        ([*SMALL, "--decoder-embed-path", "x.vec"], "remove --decoder-embed-path or --input-characters"),
    ],
)
def test_what_a_transformer_does_not_combine(translation: TranslationWorld, options: list[str], said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        build([*translation.train_args("llrnn_transformer"), *options])


# ---- unseen words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [SMALL, ADDED])
def test_unseen_words_are_read_by_their_characters(world: World, opened: str, options: list[str]) -> None:
    setting = randomised([*world.train_args(opened), *options])
    head, table = setting.model.eval().decoder.head, setting.task.prior.open_words
    ids = torch.tensor([[table.words.index(word) for word in ("rosette", "chats", "2016")]])
    condition = head.bind(ids)
    torch.testing.assert_close(condition.input_ids, ids)
    read = head.embed(ids)
    expected = head.embedding.before_and_after(["rosette", "chats", "2016"])[1]
    if head.embedding.features is not None:
        classes = torch.from_numpy(table.rows()[1][ids[0].numpy() - head.num_words]) + head.num_words
        expected = expected + head.embedding.features(classes)
    torch.testing.assert_close(read[0], expected)


@pytest.fixture(scope="module")
def spelled(shell: Shell, world: World) -> str:
    return open_prior(shell, world, world.data, "spelled-characters", kind="neural")


@pytest.mark.parametrize("options", [SMALL, ADDED])
def test_words_are_read_and_spelled_by_characters(world: World, spelled: str, options: list[str]) -> None:
    """Both networks of characters in one model: the one reads an unknown word, the other one has written it."""
    made = build([*world.train_args(spelled), *options], double=True)

    def losses(lines: list[str]) -> torch.Tensor:
        sample = batch(made.task.dictionary, lines)
        batch_of = made.model.decoder(sample["net_input"]["src_tokens"])[1]["batch"]
        loss = made.model.decoder.head.target_log_probs(batch_of, sample["target"])
        return loss.masked_fill(sample["target"] == made.task.dictionary.pad(), 0.0)

    made.model.train()
    loss = losses(["le chat xyzzy voit 1999", "le chat voit"])
    loss.sum().backward()
    assert bool(loss.isfinite().all())
    assert not [name for name, p in made.model.named_parameters() if p.grad is None]
    made.model.eval()
    one, other = losses(["le tachel voit"]), losses(["le lechat voit"])
    assert not torch.isclose(one[0, 1], other[0, 1]) and not torch.isclose(one[0, 2], other[0, 2])


# ---- through the commands -------------------------------------------------------------------------------------------


def test_a_model_is_scored_and_searched(shell: Shell, world: World, model: Path) -> None:
    ends = ["--sample-break-mode", "eos", "--required-batch-size-multiple", 1]
    args = [*world.task_args("open-characters"), "--path", model]
    evaluated = shell.run("fairseq-eval-lm", *args, "--gen-subset", "test", *ends)
    assert "Perplexity" in evaluated.out + evaluated.err
    shell.run("fairseq-generate", *args, "--gen-subset", "test", *ends, "--beam", 2, "--max-len-b", 8)
    found = shell.run("fairseq-interactive", *args, "--beam", 2, "--max-len-b", 8, stdin="le xyzzy\n").out
    assert "\nH-0\t" in found
    one, other = (
        json.loads(shell.run("llrnn", "score", "--path", model, "--open", "--json", stdin=f"le {w} voit\n").out)
        for w in ("rosette", "rosettes")
    )
    assert one["known_bits"] != other["known_bits"], "what comes after the unknown word depends on its characters"
    shell.run("llrnn", "explain", "--path", model, "le rosette voit")


@pytest.mark.slow
def test_bfloat16_products(shell: Shell, world: World, tmp_path: Path) -> None:
    args = [*world.train_args(save_dir=tmp_path), *ADDED, "--bf16-products", "--max-epoch", 1]
    done = shell.run("fairseq-train", *args)
    assert done.json_lines("valid")[-1]["valid_loss"] > 0


def test_weights_with_and_without_characters_do_not_mix(
    shell: Shell, world: World, model: Path, trained: Path, tmp_path: Path
) -> None:
    for path, prior, options, said in (
        (model, "open-characters", [], "--input-characters cnn"),
        (trained / "checkpoint_last.pt", "prior", SMALL, "--input-characters none"),
    ):
        args = [*world.train_args(prior, tmp_path), *options, "--restore-file", path, "--max-epoch", 3]
        done = shell.run("fairseq-train", *args, code=1)
        assert "found one of another model (" in done.err and said in done.err and "Traceback" not in done.err


def test_an_older_checkpoint_lacks_the_options(shell: Shell, world: World, trained: Path, tmp_path: Path) -> None:
    state = read_checkpoint(trained / "checkpoint_last.pt")
    for name in ("input_characters", "character_mode", "character_embed_dim", "character_filters", "highway_layers"):
        if hasattr(state["cfg"]["model"], name):
            delattr(state["cfg"]["model"], name)
        else:
            state["cfg"]["model"].pop(name, None)
    torch.save(state, tmp_path / "old.pt")
    shell.run("llrnn", "explain", "--path", tmp_path / "old.pt", "--data", world.data, "le chat voit")
