"""LogLinearForCausalLM and LogLinearForSeq2SeqLM with transformers' Trainer and pipeline, PEFT, and two processes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior import Prior, Recipe, build_prior

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers

from fairseq_llrnn.huggingface import LogLinearForCausalLM, LogLinearForSeq2SeqLM

SYMBOLS = (*SPECIALS, *"le la chat mer dort .".split())
FRENCH = ["le chat dort .", "la mer dort .", "le chat dort", "la mer ."]
TOKENS = ["<pad>", "<start>", "<end>", "<unk>", *SYMBOLS[4:]]
SIZES = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
NO_DROPOUT = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
QUIET = {"report_to": "none", "disable_tqdm": True, "dataloader_pin_memory": False, "use_cpu": True}


def prior_of(place: Path, background: str = "ngram(2, folds=2)") -> Prior:
    (place / "text").write_text("\n".join(FRENCH * 2), encoding="utf-8")
    return build_prior(SYMBOLS, Recipe(text=place / "text", top_words=4, suffixes=1, background=background))


def causal(place: Path, **settings: Any) -> Any:
    torch.manual_seed(1)
    return LogLinearForCausalLM.from_config(transformers.LlamaConfig(**SIZES), prior_of(place), **settings)


def softmax() -> Any:
    torch.manual_seed(1)
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = transformers.GPT2Config(
        vocab_size=len(TOKENS), n_embd=8, n_layer=1, n_head=2, initializer_range=0.5, **NO_DROPOUT, **special
    )
    return transformers.GPT2LMHeadModel(config).eval()


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({token: at for at, token in enumerate(TOKENS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "eos_token": "<end>", "unk_token": "<unk>", "bos_token": "<start>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, padding_side="left", **special)


def examples(model: Any) -> list[dict[str, torch.Tensor]]:
    tokens = model.head.encode(FRENCH)
    rows = [torch.cat([torch.tensor([2]), row[row != 1]]) for row in tokens]
    return [{"input_ids": row, "labels": row, "attention_mask": torch.ones_like(row)} for row in rows]


def padded(batch: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    fill = {"input_ids": 1, "labels": -100, "attention_mask": 0}
    return {
        name: torch.nn.utils.rnn.pad_sequence([row[name] for row in batch], True, value) for name, value in fill.items()
    }


def accuracy(predicted: Any) -> dict[str, float]:
    found, wanted = predicted.predictions[:, :-1].argmax(-1), predicted.label_ids[:, 1:]
    return {"accuracy": float((found == wanted)[wanted != -100].mean())}


def test_a_trainer_accumulates_evaluates_and_goes_on(tmp_path: Path) -> None:
    options = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=4, per_device_train_batch_size=2, gradient_accumulation_steps=2,
        save_steps=2, learning_rate=0.05, activation_checkpointing=True, lr_scheduler_type="constant", **QUIET,
    )  # fmt: skip

    def trainer(model: Any) -> Any:
        return transformers.Trainer(
            model, options, train_dataset=examples(model), eval_dataset=examples(model), data_collator=padded,
            compute_metrics=accuracy,
        )  # fmt: skip

    first = trainer(causal(tmp_path))
    before = first.evaluate()
    first.train()
    after = first.evaluate()
    assert after["eval_loss"] < before["eval_loss"] and 0.0 <= after["eval_accuracy"] <= 1.0
    saved = tmp_path / "out" / "checkpoint-2"
    again = trainer(LogLinearForCausalLM.from_pretrained(saved))
    again.train(resume_from_checkpoint=str(saved))
    assert again.evaluate()["eval_loss"] == pytest.approx(after["eval_loss"], abs=1e-5)


def test_a_seq2seq_trainer_with_metrics(tmp_path: Path) -> None:
    sides = {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    config = transformers.BartConfig(
        vocab_size=12, d_model=8, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=16, **sides
    )
    model = LogLinearForSeq2SeqLM.from_config(config, prior_of(tmp_path), label_smoothing=0.1)
    targets = model.head.encode(FRENCH)
    rows = [{"input_ids": t, "labels": t.masked_fill(t == 1, -100)} for t in targets]
    for predict in (False, True):
        options = transformers.Seq2SeqTrainingArguments(
            output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2, save_strategy="no",
            predict_with_generate=predict, generation_max_length=8, **QUIET,
        )  # fmt: skip
        shapes: list[tuple[int, ...]] = []

        def metrics(
            predicted: Any, shapes: list[tuple[int, ...]] = shapes, predict: bool = predict
        ) -> dict[str, float]:
            found = predicted.predictions if predict else predicted.predictions[0]  # then come the encoder's states
            shapes.append(found.shape)
            return {"texts": float(len(found))}

        trainer = transformers.Seq2SeqTrainer(
            model, options, train_dataset=rows, eval_dataset=rows, compute_metrics=metrics
        )
        trainer.train()
        assert trainer.evaluate()["eval_texts"] == 4.0
        assert len(shapes[0]) == (2 if predict else 3)


def test_label_smoothing_of_a_trainer_works_where_no_token_is_forbidden(tmp_path: Path) -> None:
    options = transformers.TrainingArguments(output_dir=str(tmp_path), label_smoothing_factor=0.1, **QUIET)
    batch = {"input_ids": torch.tensor([[1, 4, 6, 8, 2]]), "labels": torch.tensor([[1, 4, 6, 8, 2]])}
    wanted = transformers.Trainer(softmax(), options).compute_loss(softmax(), dict(batch))
    ours = LogLinearForCausalLM.wrap(softmax(), tokenizer()).train()
    torch.testing.assert_close(transformers.Trainer(ours, options).compute_loss(ours, dict(batch)), wanted)
    sides = {f"{side}_{name}": 1 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 2, "dropout": 0.0}
    config = transformers.BartConfig(
        vocab_size=len(TOKENS), d_model=8, encoder_ffn_dim=8, decoder_ffn_dim=8, **sides, **special
    )
    losses = []
    for wrap in (False, True):
        torch.manual_seed(1)
        model: Any = transformers.BartForConditionalGeneration(config)
        model = LogLinearForSeq2SeqLM.wrap(model, tokenizer()) if wrap else model
        collate = transformers.DataCollatorForSeq2Seq(tokenizer(), model=model, padding=True)
        collated = collate([{"input_ids": [4, 5, 2], "labels": [4, 2]}, {"input_ids": [6, 2], "labels": [6, 8, 2]}])
        losses.append(transformers.Trainer(model.train(), options).compute_loss(model, dict(collated)))
    torch.testing.assert_close(losses[1], losses[0])
    forbids = causal(tmp_path)
    row = {name: value.unsqueeze(0) for name, value in examples(forbids)[0].items()}
    with pytest.raises(OptionError, match="LogLinearForCausalLM: not supported with label_smoothing_factor"):
        transformers.Trainer(forbids, options).compute_loss(forbids, row).backward()


def test_a_pipeline_of_several_prompts() -> None:
    model = LogLinearForCausalLM.wrap(softmax(), tokenizer(), {"background": "unigram"})
    write = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer(), batch_size=2)
    prompts = ["<start> le", "<start> la mer dort"]
    search = {"max_new_tokens": 4, "do_sample": False}
    together = [found[0]["generated_text"] for found in write(prompts, **search)]
    assert together == [write(prompt, **search)[0]["generated_text"] for prompt in prompts]


@pytest.mark.parametrize("targets", [["q_proj", "v_proj"], "all-linear"])
def test_adapters_of_peft(targets: Any, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed: pip install '.[peft]'")
    options = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=targets, r=2, modules_to_save=["head"])
    model = peft.get_peft_model(causal(tmp_path), options)
    batch = padded(examples(model))
    model(**batch).loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                assert parameter.grad is not None
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.eval()
    model.save_pretrained(tmp_path / "adapter")
    again = peft.PeftModel.from_pretrained(causal(tmp_path), tmp_path / "adapter")
    torch.testing.assert_close(again(**batch).loss, model(**batch).loss)
    assert model.generate(input_ids=batch["input_ids"][:, :1], max_new_tokens=5).size(0) == len(FRENCH)
    merged = model.merge_and_unload()
    torch.testing.assert_close(merged(**batch).loss, again(**batch).loss)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["MULTI_CPU", "FSDP"])
def test_two_processes(kind: str, tmp_path: Path) -> None:
    """accelerate starts no second process on a CPU without MPI, and has no FSDP there: torch does both."""
    prior_of(tmp_path, "uniform").save(tmp_path / "prior")
    script = Path(__file__).parent / "train_in_processes.py"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script),
               str(tmp_path / "prior"), str(tmp_path / "out"), *(["sharded"] if kind == "FSDP" else [])]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    assert kind in done.stdout
    if kind == "MULTI_CPU":
        model = LogLinearForCausalLM.from_pretrained(tmp_path / "out")
        assert model(torch.tensor([[2, 4, 5]])).logits.logsumexp(2).abs().max() < 1e-4
