"""Kinds of models of transformers that `wrap` takes, and one error for each kind that it does not take."""

import dataclasses
import os
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch

from fairseq_llrnn.errors import OptionError

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor, LogLinearForCausalLM, LogLinearForSeq2SeqLM

TOKENIZER = tiny_tokenizer("byte_level")
K = len(TOKENIZER)
SPECIAL = {"vocab_size": K, "bos_token_id": 1, "eos_token_id": 1, "pad_token_id": 0}
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
SIDES = {f"{side}_{what}": 1 for side in ("encoder", "decoder") for what in ("layers", "attention_heads")}
# other names of the sizes, and sizes that only some kinds have
OTHER_SIZES = {
    "num_key_value_heads": 2, "head_dim": 8, "n_embd": 32, "n_layer": 2, "n_head": 4, "d_model": 32, "n_layers": 2,
    "n_heads": 4, "num_layers": 2, "attention_heads": 4, "ffn_dim": 32, "dff": 32, "word_embed_proj_dim": 32,
    "max_position_embeddings": 64, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 16, "state_size": 4, "attention_hidden_size": 32, "expert_ffn_hidden_size": 16,
    "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "rotary_dim": 4, "moe_num_experts": 4, "moe_k": 2,
    "num_experts_per_token": 2, "first_k_dense_replace": 1,
}  # fmt: skip
DIFFERENT = "bloom cohere2 ctrl falcon gpt_oss gptj mamba mixtral mpt opt qwen3_moe rwkv"
OTHERS = """
afmoe apertus arcee aria_text bert-generation biogpt bitnet codegen cohere cohere2_moe cwm diffllama doge ernie4_5
ernie4_5_moe exaone4 exaone_moe falcon_mamba flex_olmo flint gemma gemma3_text glm glm4 glm4_moe gpt-sw3 gpt2
gpt_bigcode gpt_neox gpt_neox_japanese granite granite_swa granitemoe granitemoe_swa granitemoeshared helium hrm_text
hunyuan_v1_dense hunyuan_v1_moe hy_v3 hyperclovax internlm3 iquestcoder jais2 jetmoe kolibri1 laguna lfm2 llama mellum
mimo_v2_flash minimax_m2 ministral ministral3 mistral moshi nemotron olmo olmo2 olmo3 olmo_hybrid olmoe openai-gpt
persimmon phi phi3 phimoe qwen2 qwen3 seed_oss smollm3 solar_open stablelm starcoder2 xglm
"""
LLAMA4 = {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size_mlp": 32, "num_local_experts": 2}
VISION = {**SIZES, "image_size": 28, "patch_size": 14, "vision_output_dim": 32, "projector_input_dim": 32}
LLAMA4_VISION = {**VISION, "projector_output_dim": 32, "pixel_shuffle_ratio": 1.0}
WRAPPED = {
    "a network under another name": lambda: transformers.Llama4ForCausalLM(
        transformers.Llama4TextConfig(**LLAMA4, **SPECIAL)
    ),
    "images and text": lambda: transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            text_config={"model_type": "llama", **SIZES, **SPECIAL},
            vision_config={"model_type": "clip_vision_model", **SIZES, "image_size": 28, "patch_size": 14},
        )
    ),
    "a cache of its own": lambda: transformers.MiniMaxForCausalLM(
        transformers.MiniMaxConfig(**SIZES, num_key_value_heads=2, head_dim=8, num_local_experts=2, **SPECIAL)
    ),
    "a whole text at each step": lambda: transformers.CpmAntForCausalLM(
        transformers.CpmAntConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, dim_head=8, dim_ff=32, **SPECIAL
        )
    ),
    "latent attention": lambda: transformers.DeepseekV3ForCausalLM(
        transformers.DeepseekV3Config(
            **SIZES, num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=8, qk_nope_head_dim=8,
            v_head_dim=8, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1, moe_intermediate_size=16,
            **SPECIAL,
        )
    ),
}  # fmt: skip


def causal(kind: str) -> Any:
    """A small model of a kind that AutoModelForCausalLM has."""
    cls: Any = transformers.CONFIG_MAPPING[kind]
    names = {*(field.name for field in dataclasses.fields(cls)), *cls.attribute_map}
    config = cls(**{name: size for name, size in (SIZES | OTHER_SIZES).items() if name in names}, **SPECIAL)
    config.is_decoder = True
    return transformers.AutoModelForCausalLM.from_config(config)


def whisper() -> Any:
    config = transformers.WhisperConfig(
        d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, num_mel_bins=8, max_source_positions=20,
        decoder_start_token_id=1, suppress_tokens=[], begin_suppress_tokens=[], **SIDES, **SPECIAL,
    )  # fmt: skip
    return transformers.WhisperForConditionalGeneration(config)


def moonshine() -> Any:
    parts = ("hidden_layers", "attention_heads", "key_value_heads")
    heads = {f"{side}_num_{part}": 2 for side in ("encoder", "decoder") for part in parts}
    config = transformers.MoonshineConfig(
        hidden_size=16, intermediate_size=16, decoder_start_token_id=1, **heads, **SPECIAL
    )
    return transformers.MoonshineForConditionalGeneration(config)


def with_adapters() -> Any:
    peft = pytest.importorskip("peft", reason="peft is not installed: pip install '.[peft]'")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **SPECIAL))
    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2))


def bart(**more: Any) -> Any:
    return transformers.BartConfig(
        d_model=16, encoder_ffn_dim=16, decoder_ffn_dim=16, decoder_start_token_id=1, **SIDES, **SPECIAL, **more
    )


def two_networks() -> Any:
    bert = transformers.BertConfig(**SIZES, vocab_size=K)
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(bert, bert, decoder_start_token_id=1)
    return transformers.EncoderDecoderModel(config)


REFUSED = {
    "whisper": (whisper, "reads tokens alone, found WhisperFor.*it reads input_features.*BackgroundProcessor"),
    "moonshine": (moonshine, "reads tokens alone, found MoonshineFor.*it reads input_values.*BackgroundProcessor"),
    "adapters": (with_adapters, r"without adapters, found one of PEFT; call merge_and_unload\(\) first, or wrap"),
    "a decoder": (
        lambda: transformers.BartForCausalLM(bart(is_decoder=True, is_encoder_decoder=False)),
        "whose network is a BartModel, found BartForCausalLM; load a whole model",
    ),
    "two networks": (two_networks, "whose network AutoModel makes, found EncoderDecoderModel; use another"),
    "a model in a model": (
        lambda: transformers.Llama4ForConditionalGeneration(
            transformers.Llama4Config(text_config={**LLAMA4, **SPECIAL}, vision_config=LLAMA4_VISION)
        ),
        "network without a softmax, found Llama4ForConditionalGeneration; wrap its language_model",
    ),
    "another width": (
        lambda: transformers.RemBertForCausalLM(
            transformers.RemBertConfig(**SIZES, output_embedding_size=16, is_decoder=True, **SPECIAL)
        ),
        r"linear in the last hidden states, found others in RemBertForCausalLM \(of another size\)",
    ),
}


def check_wrapped(model: Any) -> None:
    """Check that a model has the same probabilities and writes the same texts after `wrap`."""
    tokens = torch.tensor([[1, 5, 6, 7], [1, 9, 5, 8]])
    batch = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    with torch.no_grad():
        before = model(**batch).logits.log_softmax(-1)
    written = model.generate(**batch, max_new_tokens=5, num_beams=2, use_cache=False)
    wrapped = LogLinearForCausalLM.wrap(model, TOKENIZER)
    with torch.no_grad():
        torch.testing.assert_close(wrapped(**batch).logits, before)
    assert torch.equal(wrapped.generate(**batch, max_new_tokens=5, num_beams=2), written)


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_wrapped_model_scores_and_writes_as_before(kind: str) -> None:
    torch.manual_seed(1)
    check_wrapped(WRAPPED[kind]().eval())


@pytest.mark.parametrize(
    "kind", [*DIFFERENT.split(), *(pytest.param(kind, marks=pytest.mark.slow) for kind in OTHERS.split())]
)
def test_causal_models(kind: str) -> None:
    torch.manual_seed(1)
    check_wrapped(causal(kind).eval())


@pytest.mark.parametrize("kind", REFUSED)
def test_other_kinds_are_one_error(kind: str) -> None:
    make, message = REFUSED[kind]
    model = make()
    ours = LogLinearForSeq2SeqLM if model.config.is_encoder_decoder else LogLinearForCausalLM
    with pytest.raises(OptionError, match=message):
        ours.wrap(model, TOKENIZER)


def test_models_can_be_wrapped_as_the_errors_advise() -> None:
    model = REFUSED["a model in a model"][0]()
    assert LogLinearForCausalLM.wrap(model.language_model, TOKENIZER).model is model.language_model.model
    check_wrapped(with_adapters().merge_and_unload().eval())


@pytest.mark.parametrize("make", [whisper, moonshine])
@pytest.mark.parametrize("beams", [1, 3])
def test_a_processor_constrains_speech(make: Any, beams: int) -> None:
    torch.manual_seed(1)
    processor = BackgroundProcessor.from_words(["yes", "no"], TOKENIZER, separators=(), longest=8)
    model = make().eval()
    heard = torch.randn(2, 8, 40) if make is whisper else torch.randn(2, 2000)
    written = model.generate(heard, max_new_tokens=8, num_beams=beams, logits_processor=[processor])
    assert {*TOKENIZER.batch_decode(written, skip_special_tokens=True)} <= {"yes", "no"}
