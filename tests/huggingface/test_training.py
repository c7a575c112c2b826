"""Constraints in the loss, also with trainers of TRL."""

import copy
import itertools
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

from fairseq_llrnn.errors import DataError, OptionError

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers
from example_modules import EXAMPLES, load
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor, LogLinearForCausalLM, constrain_trainer
from fairseq_llrnn.huggingface.training import token_scores

TOKENIZER = tiny_tokenizer("byte_level")
TOKENIZER.padding_side = "left"
SPECIAL = {"vocab_size": len(TOKENIZER), "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
PROMPTS = ["the:", "a yes no the cat sat:"]
QUIET = {
    "per_device_train_batch_size": 8, "report_to": "none", "use_cpu": True, "bf16": False, "disable_tqdm": True,
    "save_strategy": "no", "logging_steps": 1, "learning_rate": 0.01, "max_steps": 2,
}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


def network(kind: str = "GPT2", **more: Any) -> Any:
    torch.manual_seed(1)
    if kind == "GPT2":  # without dropout, which makes samples differ from the loss
        sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    else:
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    config = getattr(transformers, f"{kind}Config")(**{**sizes, **SPECIAL, **more})
    return transformers.AutoModelForCausalLM.from_config(config).double()


def constraint(kind: str = "regex", **options: Any) -> BackgroundProcessor:
    if kind == "schema":
        pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
        return BackgroundProcessor.from_json_schema(SCHEMA, TOKENIZER, **options)
    if kind == "terms":
        return BackgroundProcessor.from_terms(["yes"], TOKENIZER, **options)
    if kind == "after":
        return BackgroundProcessor.from_regex("[0-9]{2}", TOKENIZER, after=":", **options)
    return BackgroundProcessor.from_regex("(yes|no)( (yes|no))*", TOKENIZER, **options)


def wrapped(text: Path, background: str = "unigram") -> Any:
    text.write_text("yes no\nthe cat\n", encoding="utf-8")
    return LogLinearForCausalLM.wrap(network(), TOKENIZER, {"text": text, "background": background})


# ---- without TRL ----------------------------------------------------------------------------------------------------


def test_the_texts_of_a_constraint_have_probability_one() -> None:
    numbers = [TOKENIZER(letter).input_ids[0] for letter in "qxz"]  # no token has two of them
    texts = [[*text, TOKENIZER.eos_token_id] for length in (1, 2) for text in itertools.product(numbers, repeat=length)]
    logits = torch.randn(len(TOKENIZER), len(TOKENIZER), dtype=torch.double)  # of a token after each one
    prompt, total = [5, 6], 0.0
    processor = BackgroundProcessor.from_regex("[qxz]+", TOKENIZER, longest=3)
    for text in texts:  # of several lengths in a batch, with padding on both sides
        rows = [[0, *prompt, *text, 0, 0], [*prompt[1:], *texts[0], *[0] * (2 + len(text))]]
        tokens = torch.tensor(rows)
        labels = torch.zeros_like(tokens, dtype=torch.bool)
        labels[0, 3 : 3 + len(text)] = True
        labels[1, 1:3] = True
        scores = token_scores(processor, logits[tokens[:, :-1]], tokens[:, 1:], labels[:, 1:])
        assert not scores.log_probs[~labels[:, 1:]].any()
        total += scores.log_probs[0].sum().exp()
        assert scores.loss == pytest.approx(-scores.log_probs.sum() / (len(text) + 2))
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["regex", "terms", "after", "schema"])
def test_the_loss_has_the_gradient_of_log_p(kind: str) -> None:
    processor = constraint(kind, longest=12)
    text = {"regex": "yes no", "terms": "a yes.", "after": "a:12", "schema": '{"a": 1}'}[kind]
    tokens = torch.tensor([[5, *TOKENIZER(text).input_ids, 1]])
    logits = torch.randn(1, tokens.size(1) - 1, len(TOKENIZER), dtype=torch.double, requires_grad=True)
    mask = torch.ones_like(tokens[:, 1:], dtype=torch.bool)

    def log_prob(logits: torch.Tensor) -> Any:
        return token_scores(processor, logits, tokens[:, 1:], mask, temperature=0.7).log_probs.sum()

    gradient, = torch.autograd.grad(log_prob(logits), logits)
    direction = torch.randn_like(logits)
    with torch.no_grad():
        change = (log_prob(logits + 1e-5 * direction) - log_prob(logits - 1e-5 * direction)) / 2e-5
    assert gradient.isfinite().all()
    assert float((gradient * direction).sum()) == pytest.approx(float(change), abs=1e-6)


@pytest.mark.parametrize("is_constrained", [False, True])
@pytest.mark.parametrize("width", [16, 1024])
def test_logits_of_half_precision_give_what_a_search_reads(width: int, is_constrained: bool) -> None:
    """`generate` passes logits in float32, also those of a network in bfloat16 or under autocast."""
    tokens = torch.tensor([[5, *TOKENIZER("yes no").input_ids]])
    hidden, rows = torch.randn(1, tokens.size(1) - 1, width), torch.randn(len(TOKENIZER), width) / width**0.5
    with torch.autocast("cpu", torch.bfloat16):
        logits = hidden @ rows.T
    mask = torch.ones_like(tokens[:, 1:], dtype=torch.bool)
    scores = token_scores(constraint() if is_constrained else None, logits, tokens[:, 1:], mask)
    of_search = logits[0].float()
    for step in range(mask.size(1)):
        log_p = of_search[step : step + 1].log_softmax(1)
        if is_constrained:
            log_p = constraint(unread=0)(tokens[:, 1 : 1 + step], of_search[step : step + 1])
        torch.testing.assert_close(scores.log_probs[0, step], log_p[0, tokens[0, step + 1]])


def test_a_text_that_the_constraint_forbids_is_an_error() -> None:
    tokens = torch.tensor([[5, *TOKENIZER("yes cat").input_ids]])
    logits, mask = torch.zeros(1, tokens.size(1) - 1, len(TOKENIZER)), torch.ones_like(tokens[:, 1:], dtype=torch.bool)
    with pytest.raises(DataError, match=r"texts that the constraint allows, found token \d+ at place 1 of text 0"):
        token_scores(constraint(), logits, tokens[:, 1:], mask)


@pytest.mark.parametrize("background", ["unigram", "uniform"])
def test_a_wrapped_model_has_rows_of_a_softmax(background: str, tmp_path: Path) -> None:
    model = wrapped(tmp_path / "text", background)
    with torch.no_grad():
        model.head.output.bias.add_(0.1 * torch.randn_like(model.head.output.bias))
    tokens = torch.tensor([[1, 5, 6, 7]])
    rows = model.get_output_embeddings()
    logits = model.base_model(tokens).last_hidden_state @ rows.weight.T + rows.bias
    torch.testing.assert_close(logits.log_softmax(2), model(tokens).logits)
    assert copy.deepcopy(model).get_output_embeddings().weight.data_ptr() != rows.weight.data_ptr()


def test_rows_of_a_softmax_need_a_background_without_context(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"background without context, found another; .*constrain_trainer\(trainer\)"):
        wrapped(tmp_path / "text", "ngram:2").get_output_embeddings().weight  # noqa: B018


def trainer_like(model: Any = None, **args: Any) -> Any:
    """What constrain_trainer reads of a trainer."""
    return SimpleNamespace(args=SimpleNamespace(**args), model=model)


@pytest.mark.parametrize("length", [None, 9])
def test_samples_are_not_left_out_of_the_counts_of_a_background(length: int | None, tmp_path: Path) -> None:
    model = wrapped(tmp_path / "text", "ngram(2, folds=2)")
    tokens = torch.tensor([[*TOKENIZER("yes no").input_ids, 1]])  # a sentence of the counted text
    wanted = model.eval()(tokens).logits[:, :-1].gather(2, tokens[:, 1:].unsqueeze(2)).squeeze(2)
    constrain_trainer(trainer_like(model, **({} if length is None else {"max_completion_length": length})))
    found = model.train()(input_ids=tokens, labels=tokens, fused_lm_head=True).log_probs
    assert torch.allclose(found, wanted) == (length is not None)
    assert model.head.training


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_p": 0.9}, "top_p: expected 1.0, with which samples and loss .*, found 0.9; leave it out"),
        ({"top_k": 5}, "top_k: expected 0,"),
        ({"generation_kwargs": {"min_p": 0.1}}, "generation_kwargs: expected None,"),
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor: expected 0.0,"),
        ({"packing": True}, "packing: expected False,"),
    ],
)
def test_settings_with_another_distribution_are_errors(options: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"constrain_trainer: {message}"):
        constrain_trainer(trainer_like(**options), constraint())


def test_processors_that_are_not_for_any_prompt_are_errors() -> None:
    for processor in (constraint(unread=3), BackgroundProcessor.per_row([constraint(), None])):
        with pytest.raises(OptionError, match="processor for texts after any prompt, found one with `unread`"):
            constrain_trainer(trainer_like(), processor)
    with pytest.raises(DataError, match="expected max_new_tokens of at least 2, .*, found 1; give more"):
        constrain_trainer(trainer_like(max_completion_length=1), constraint())
    with pytest.raises(TypeError, match="constrain_trainer: expected a BackgroundProcessor, found 'a'; make one"):
        constrain_trainer(trainer_like(), "a")  # type: ignore[arg-type]


def test_a_model_has_the_constraint_of_its_last_trainer() -> None:
    model, prompts = network(), torch.tensor([[5, 6]])
    plain = model(prompts).logits
    for kind in ("regex", "terms", "regex"):
        processor = constraint(kind)
        constrain_trainer(trainer_like(model, max_completion_length=9), processor)
        options = {"attention_mask": torch.ones_like(prompts), "max_new_tokens": 9}
        assert torch.equal(model.generate(prompts, **options), processor.generate(network(), prompts, **options))
    constrain_trainer(trainer_like(model))
    assert torch.equal(model(prompts).logits, plain)
    assert torch.equal(model.generate(prompts, **options), network().generate(prompts, **options))


def test_texts_of_one_token_have_no_loss() -> None:
    model, tokens = network(), torch.tensor([[5]])
    constrain_trainer(trainer_like(model, max_completion_length=9), constraint())
    scores = model(input_ids=tokens, labels=tokens, fused_lm_head=True)
    assert scores.loss == 0 and scores.log_probs.shape == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_network_has_the_loss_and_the_gradient(backend: str) -> None:
    """Also of a second batch of another width, with checkpoints."""
    model = network("Llama", num_hidden_layers=1).train()
    constrain_trainer(trainer_like(model, max_completion_length=9), constraint())
    model.gradient_checkpointing_enable()
    torch.compiler.reset()
    compiled = torch.compile(model, backend=backend)
    for texts in (["yes no", "no"], ["yes", "no no no"]):
        rows = [[5, *TOKENIZER(text).input_ids, 1] for text in texts]
        tokens = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), True, 0)
        labels, mask = tokens.masked_fill(tokens == 0, -100), (tokens != 0).long()
        batch = {"input_ids": tokens, "attention_mask": mask, "labels": labels, "fused_lm_head": True}
        found = []
        for each in (model, compiled):
            model.zero_grad()
            scores = each(**batch)
            scores.loss.backward()
            found.append([scores.loss, scores.log_probs, *(weight.grad.clone() for weight in model.parameters())])
        torch.testing.assert_close(*found)


# ---- with TRL -------------------------------------------------------------------------------------------------------


def grpo(model: Any, folder: Path, **options: Any) -> Any:
    """A trainer, whose samples and their log p are in `sampled`, and what its loss reads in `trained`."""
    trl = pytest.importorskip("trl", reason="trl is not installed: pip install trl")
    import datasets

    search, sampled, trained = model.generate, [], []

    def generate(*inputs: Any, **settings: Any) -> Any:
        found = search(*inputs, **settings, return_dict_in_generate=True, output_scores=True)
        log_p = torch.stack(found.scores, 1).log_softmax(-1)
        new = found.sequences[:, -log_p.size(1) :].unsqueeze(2)
        sampled.append((found.sequences, log_p.gather(2, new).squeeze(2)))
        return found.sequences

    model.generate = generate
    settings = {"num_generations": 4, "max_completion_length": 9, "temperature": 0.7, **options}
    peft_config = settings.pop("peft_config", None)
    trainer = trl.GRPOTrainer(
        model, lambda completions, **_: [float(len(text)) for text in completions],
        args=trl.GRPOConfig(output_dir=str(folder), **{**QUIET, **settings}), processing_class=TOKENIZER,
        train_dataset=datasets.Dataset.from_list([{"prompt": prompt} for prompt in PROMPTS]), peft_config=peft_config,
    )  # fmt: skip
    score = trainer._get_per_token_logps_and_entropies

    def recorded(model: Any, tokens: Any, mask: Any, length: int, *inputs: Any, **settings: Any) -> Any:
        found = score(model, tokens, mask, length, *inputs, **settings)
        if torch.is_grad_enabled():  # not the reference model
            trained.append((tokens, mask, found[0].detach()))
        return found

    trainer._get_per_token_logps_and_entropies = recorded
    trainer.sampled, trainer.trained = sampled, trained
    return trainer


def ratios(trainer: Any) -> torch.Tensor:
    """p in the loss, divided by p in the samples, of all sampled tokens. There is one loss for each set of samples."""
    found = []
    for (samples, sampled), (tokens, mask, trained) in zip(trainer.sampled, trainer.trained, strict=True):
        texts = samples.tolist()
        for text, real, log_p in zip(tokens.tolist(), mask, trained, strict=True):
            length = int(real[-len(log_p) :].sum())
            found.append((log_p[:length] - sampled[texts.index(text)][:length]).exp())
    return torch.cat(found)


@pytest.mark.parametrize("kind", ["regex", "terms", "after", "schema"])
@pytest.mark.parametrize("name", ["GPT2", "Llama", "wrapped"])
def test_samples_and_loss_of_grpo_have_one_distribution(kind: str, name: str, tmp_path: Path) -> None:
    trainer = grpo(wrapped(tmp_path / "text") if name == "wrapped" else network(name), tmp_path)
    processor = constraint(kind)
    constrain_trainer(trainer, processor)
    trainer.train()
    assert len(found := ratios(trainer)) > 32
    assert (found - 1.0).abs().max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, "eager", "aot_eager", "inductor"])
def test_a_compiled_network_with_checkpoints_in_float32(backend: str | None, tmp_path: Path) -> None:
    options = {} if backend is None else {"torch_compile": True, "torch_compile_backend": backend}
    trainer = grpo(network("Llama").float(), tmp_path, gradient_checkpointing=True, **options)
    constrain_trainer(trainer, constraint("schema"))
    trainer.train()
    assert (ratios(trainer) - 1.0).abs().max() < 1e-6


def test_other_ends_of_a_model_have_no_probability_in_samples_and_loss(tmp_path: Path) -> None:
    model = network()
    model.generation_config.eos_token_id = [1, *TOKENIZER("t").input_ids, *TOKENIZER("h").input_ids]
    trainer = grpo(model, tmp_path)
    constrain_trainer(trainer, constraint("after"))
    trainer.train()
    assert (ratios(trainer) - 1.0).abs().max() < 1e-6


@pytest.mark.parametrize("background", ["ngram:2", "unigram"])
def test_the_background_of_a_wrapped_model_is_in_samples_and_loss(background: str, tmp_path: Path) -> None:
    trainer = grpo(wrapped(tmp_path / "text", background), tmp_path)
    constrain_trainer(trainer)
    trainer.train()
    assert (ratios(trainer) - 1.0).abs().max() < 1e-6


def test_adapters_and_a_penalty_of_grpo(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed: pip install '.[peft]'")
    options = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"], r=2)
    trainer = grpo(network("Llama"), tmp_path, peft_config=options, beta=0.1)
    constrain_trainer(trainer, constraint())
    trainer.train()
    assert (ratios(trainer) - 1.0).abs().max() < 1e-6


def sft(model: Any, folder: Path, **options: Any) -> Any:
    trl = pytest.importorskip("trl", reason="trl is not installed: pip install trl")
    import datasets

    texts = [{"prompt": prompt, "completion": text} for prompt in PROMPTS for text in ("yes no", "no", "no yes yes")]
    return trl.SFTTrainer(
        model, args=trl.SFTConfig(output_dir=str(folder), **{**QUIET, **options}), processing_class=TOKENIZER,
        train_dataset=datasets.Dataset.from_list(texts),
    )  # fmt: skip


def test_sft_of_a_wrapped_model_has_its_loss(tmp_path: Path) -> None:
    model = wrapped(tmp_path / "text")
    trainer = sft(model, tmp_path)
    batch = next(iter(trainer.get_train_dataloader()))
    assert trainer.compute_loss(model, dict(batch)).item() == pytest.approx(model(**batch).loss.item(), abs=1e-5)
    weights = copy.deepcopy(model.head.output.weight)
    trainer.train()
    assert not torch.equal(model.head.output.weight, weights)


@pytest.mark.parametrize("name", ["GPT2", "Llama", "wrapped"])
def test_sft_has_a_constraint_in_its_loss(name: str, tmp_path: Path) -> None:
    model = wrapped(tmp_path / "text") if name == "wrapped" else network(name)
    trainer = sft(model, tmp_path)
    batch = next(iter(trainer.get_train_dataloader()))
    without = trainer.compute_loss(model, dict(batch))
    constrain_trainer(trainer, constraint())
    with_constraint = trainer.compute_loss(model, dict(batch))
    total = 0.0
    for tokens, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        start, end = (labels != -100).nonzero()[[0, -1], 0].tolist()
        processor = constraint()
        for place in range(start, end + 1):
            prefix = tokens[None, :place]
            total -= processor(prefix, model(prefix).logits[:, -1])[0, tokens[place]].item()
    assert with_constraint.item() == pytest.approx(total / int((batch["labels"][:, 1:] != -100).sum()), abs=1e-6)
    trainer.train()
    assert trainer.compute_loss(model, dict(batch)) < with_constraint < without


def test_the_loss_of_a_router(tmp_path: Path) -> None:
    experts = {"num_key_value_heads": 2, "num_local_experts": 4, "output_router_logits": True}
    model = network("Mixtral", **experts).float()
    trainer = sft(model, tmp_path, max_steps=1)
    without = trainer.compute_loss(model, dict(batch := next(iter(trainer.get_train_dataloader()))))
    constrain_trainer(trainer, constraint())
    assert trainer.compute_loss(model, dict(batch)) < without
    aux_loss = model(**batch).aux_loss.item()
    assert trainer._metrics["train"]["aux_loss"] == pytest.approx([aux_loss, aux_loss], abs=1e-5)
    wrapped_model = LogLinearForCausalLM.wrap(network("Mixtral", **experts).float(), TOKENIZER)
    trainer = sft(wrapped_model, tmp_path, max_steps=1)
    constrain_trainer(trainer, constraint())
    with pytest.raises(OptionError, match="a wrapped mixture of experts has no loss of its router"):
        trainer.compute_loss(wrapped_model, dict(batch))


def test_a_background_with_context_needs_constrain_trainer(tmp_path: Path) -> None:
    model = wrapped(tmp_path / "text", "ngram:2")
    trainer = sft(model, tmp_path)
    batch = next(iter(trainer.get_train_dataloader()))
    with pytest.raises(DataError, match="background without context, found another"):
        trainer.compute_loss(model, dict(batch))
    constrain_trainer(trainer)
    assert trainer.compute_loss(model, dict(batch)).item() == pytest.approx(model(**batch).loss.item(), abs=1e-5)


@pytest.mark.parametrize("options", [[], ["--free"]])
def test_the_example_trains(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("trl", reason="trl is not installed: pip install trl")
    (example,) = load(EXAMPLES / "huggingface", "train_with_constraint")
    example.main([str(tmp_path), "--steps", "2", *options])
    assert re.search(r"\d+ of 100 digits are right\n", capsys.readouterr().out)
