#!/usr/bin/env python3
"""How many JSON records of a pretrained model are valid within a number of tokens?

    python scripts/bench/bench_budget.py MODEL [--budget 60] [--batch 20]

MODEL is a folder or name of an instruction-tuned model for AutoModelForCausalLM, such as SmolLM2-135M-Instruct. Each of
100 prompts requests a record of a person. The model writes it without a constraint, with the mask of llguidance, and
with a BackgroundProcessor, each by greedy search and by sampling (temperature 1). A record is valid if it has an end
and is an instance of the schema (`pip install jsonschema`). The last line is one JSON object of the counts.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # also where the package is not installed

import llguidance
import llguidance.hf
import llguidance.torch
import torch
from bench_limits import is_instance
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessor

from fairseq_llrnn.huggingface import BackgroundProcessor

NAMES = "Ada Bela Chloe Dmitri Elena Farid Greta Hugo Ines Jun".split()
JOBS = "baker nurse pilot farmer painter teacher plumber dentist sailor gardener".split()
TEXT = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "job": TEXT,
        "age": {"type": "integer"},
        "hobbies": {"type": "array", "items": TEXT},
    },
    "required": ["name", "job", "age", "hobbies"],
    "additionalProperties": False,
}
PROMPTS = [
    f"Write one JSON object with the keys name, job, age and hobbies about {name}, a {job}. Write nothing else."
    for name, job in product(NAMES, JOBS)
]
SEARCHES: dict[str, dict[str, Any]] = {"greedy": {"do_sample": False}, "sampled": {"do_sample": True, "top_k": 0}}


class Mask(LogitsProcessor):
    """The mask of llguidance, for one search."""

    def __init__(self, tokenizer: Any, reader: Any, rows: int) -> None:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(SCHEMA)
        self.matchers = [llguidance.LLMatcher(reader, grammar) for _ in range(rows)]
        self.eos, self.reader, self.is_first = tokenizer.eos_token_id, reader, True

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores = scores.clone()
        bits = llguidance.torch.allocate_token_bitmask(1, self.reader.vocab_size)
        for row, matcher in enumerate(self.matchers):
            if not self.is_first and not matcher.is_stopped():
                matcher.consume_token(int(input_ids[row, -1]))
            if matcher.is_stopped():
                continue
            llguidance.torch.fill_next_token_bitmask(matcher, bits)
            llguidance.torch.apply_token_bitmask_inplace(scores[row : row + 1], bits)
        self.is_first = False
        return scores


def chat_batches(tokenizer: Any, prompts: Sequence[str], size: int) -> Iterator[Any]:
    """Yield the inputs of `generate` for prompts of a user, padded on the left."""
    for first in range(0, len(prompts), size):
        chats = [[{"role": "user", "content": prompt}] for prompt in prompts[first : first + size]]
        yield tokenizer.apply_chat_template(
            chats, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
        )


def record_of(tokenizer: Any, row: list[int]) -> str | None:
    """Return the text of a row before its end, or None if it has no end."""
    end = tokenizer.eos_token_id
    return tokenizer.decode(row[: row.index(end)]) if end in row else None


def loaded(name: str) -> tuple[Any, Any]:
    """Return the tokenizer and the model of a folder or a name, on one thread."""
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")
    return tokenizer, AutoModelForCausalLM.from_pretrained(name).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--budget", type=int, default=60, help="tokens (default: 60)")
    parser.add_argument("--batch", type=int, default=20, help="prompts at once (default: 20)")
    args = parser.parse_args()
    tokenizer, model = loaded(args.model)
    reader = llguidance.hf.from_tokenizer(tokenizer, n_vocab=model.config.vocab_size)
    ours = BackgroundProcessor.from_json_schema(SCHEMA, tokenizer, longest=args.budget)
    counts: dict[str, int] = {}
    for search, options in SEARCHES.items():
        for system in ("plain", "llguidance", "ours"):
            torch.manual_seed(1)
            valid = 0
            for batch in chat_batches(tokenizer, PROMPTS, args.batch):
                processors: dict[str, list[Any]] = {
                    "plain": [], "llguidance": [Mask(tokenizer, reader, len(batch["input_ids"]))], "ours": [ours]
                }  # fmt: skip
                with torch.inference_mode():
                    found = model.generate(
                        **batch, max_new_tokens=args.budget, logits_processor=processors[system], **options
                    )
                for row in found[:, batch["input_ids"].size(1) :].tolist():
                    valid += is_instance(record_of(tokenizer, row), SCHEMA)
            counts[f"{search}/{system}"] = valid
            print(f"{search}, {system}: {valid} valid, the last one: {tokenizer.decode(row)!r}", flush=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
