"""Constraints on models that read images or sound, by greedy search and with beams."""

import re

import pytest
import torch
from tiny_tokenizers import tiny_tokenizer
from torch import Tensor

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers

from fairseq_llrnn.huggingface import BackgroundProcessor

TOKENIZER = tiny_tokenizer("byte_level")
SIZE = len(TOKENIZER)
SPECIAL = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
SEARCHES = ({"do_sample": False}, {"num_beams": 3, "num_return_sequences": 3})


def check_texts(texts: list[str], search: dict) -> None:
    assert len(texts) == search.get("num_return_sequences", 1)
    assert all(re.fullmatch("[a-z]{4} [0-9]{2}", text) for text in texts), texts


@pytest.mark.parametrize("search", SEARCHES)
def test_llava_writes_what_is_allowed(search: dict) -> None:
    torch.manual_seed(1)
    text = transformers.LlamaConfig(vocab_size=SIZE + 1, num_hidden_layers=1, **SMALL, **SPECIAL)
    vision = transformers.CLIPVisionConfig(image_size=28, patch_size=14, num_hidden_layers=2, **SMALL)
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=SIZE, vision_feature_layer=-1
    )
    model = transformers.LlavaForConditionalGeneration(config).eval()
    model.generation_config.update(**SPECIAL)
    prompt: Tensor = torch.tensor([[2, *[SIZE] * 4, *TOKENIZER("the cat")["input_ids"]]])  # an image has 4 tokens
    images = {"pixel_values": torch.randn(1, 3, 28, 28), "attention_mask": torch.ones_like(prompt)}
    processor = BackgroundProcessor.from_regex("[a-z]{4} [0-9]{2}", TOKENIZER)
    found = processor.generate(model, input_ids=prompt, max_new_tokens=8, **images, **search)
    check_texts(TOKENIZER.batch_decode(found[:, prompt.size(1) :], skip_special_tokens=True), search)


@pytest.mark.parametrize("search", SEARCHES)
def test_whisper_writes_what_is_allowed(search: dict) -> None:
    torch.manual_seed(1)
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_source_positions": 50}
    config = transformers.WhisperConfig(vocab_size=SIZE, decoder_start_token_id=2, **sizes, **heads, **SPECIAL)
    config.suppress_tokens = config.begin_suppress_tokens = None
    model = transformers.WhisperForConditionalGeneration(config).eval()
    model.generation_config.update(**SPECIAL, no_timestamps_token_id=SIZE - 1)
    processor = BackgroundProcessor.from_regex("[a-z]{4} [0-9]{2}", TOKENIZER)
    found = processor.generate(model, input_features=torch.randn(1, 80, 100), max_new_tokens=8, **search)
    check_texts(TOKENIZER.batch_decode(found, skip_special_tokens=True), search)
