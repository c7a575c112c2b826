#!/usr/bin/env python3
"""How fast does `generate` of transformers write with the log-linear head, against the same network with its softmax?

    python scripts/bench/bench_huggingface.py [--quick] [--threads 1] [--device cuda]

The network is a GPT-2 (12 layers of width 768, V = 50,257) with random weights. LogLinearForCausalLM.wrap puts the head
on it, with a unigram and with a trigram background. All contestants share the network, search greedily, write as many
tokens, and run in turns; figures are medians, on a CPU of processor time (measuring.py). Words are drawn from a Zipf
distribution. Batches have 1 and 8 prompts of 8 tokens; 64 and 250 tokens are written.

The last line is one JSON object: milliseconds a token of the softmax, and of each background the time over the
softmax's, for each size: unigram_over_softmax_1x64 is the one of a batch of 1 and 64 tokens.
"""

import argparse
import json
import logging
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # also where the package is not installed

import numpy as np
import torch
from measuring import device_name, in_turns, parse, timed
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from fairseq_llrnn import LogLinearForCausalLM
from fairseq_llrnn.prior import Recipe

PROMPT = 8  # tokens
SIZES = [(1, 64), (8, 64), (1, 250), (8, 250)]  # batches, and tokens that are written
BACKGROUNDS = {"unigram": "unigram", "trigram": "ngram(3, folds=0)"}


def contestants(quick: bool, device: str, folder: Path) -> tuple[dict[str, Any], torch.Tensor]:
    """Models by name, and 8 prompts."""
    words = 2_000 if quick else 50_257
    layers, width = (2, 64) if quick else (12, 768)
    words_of = Tokenizer(models.WordLevel({f"t{number}": number for number in range(words)}, "t1"))
    words_of.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words_of, eos_token="t0")
    generator = np.random.default_rng(1)
    drawn = np.minimum(generator.zipf(1.2, (2_000 if quick else 20_000, 20)), words - 1)
    (folder / "text").write_text("\n".join(" ".join(f"t{n}" for n in row) for row in drawn.tolist()), encoding="utf-8")
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=words, n_embd=width, n_layer=layers, n_head=width // 32, eos_token_id=0)
    softmax = GPT2LMHeadModel(config).eval().to(device)
    found: dict[str, Any] = {"softmax": softmax}
    for name, background in BACKGROUNDS.items():
        recipe = Recipe(text=folder / "text", background=background)
        found[name] = LogLinearForCausalLM.wrap(softmax, tokenizer, recipe).eval()
    return found, torch.from_numpy(drawn[:8, :PROMPT]).to(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try this program")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help=f"how many of {SIZES} (default: all)")
    args = parse(parser)
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        found, prompts = contestants(args.quick, args.device, Path(folder))
    print(f"{device_name(args)}; time per token over the softmax's")
    figures: dict[str, float] = {}
    for batch, tokens in SIZES[: args.sizes]:
        search = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False, "pad_token_id": 0}
        runs = {
            name: partial(timed, partial(model.generate, prompts[:batch], **search), args.device)
            for name, model in found.items()
        }
        rounds = in_turns(runs, args.rounds, args.rounds)
        size = f"{batch}x{tokens}"
        figures[f"softmax_ms_{size}"] = round(1000 * rounds.median("softmax") / tokens, 2)
        for name in BACKGROUNDS:
            figures[f"{name}_over_softmax_{size}"] = round(rounds.ratio(name, "softmax"), 3)
        print(f"batch {batch}, {tokens} tokens: " + ", ".join(f"{k} {v}" for k, v in figures.items() if size in k))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
