#!/usr/bin/env python3
"""Does each text of a JSON schema end within `longest` tokens?

    python scripts/bench/bench_limits.py --schemas jsonschemabench/maskbench/data [--number 1000] [--vocabulary 4000]

The schemas are those of MaskBench (bench_schemas.py). For each schema that compiles, a GPT-2 with random weights writes
a text by greedy search, one by sampling, and one by beams. The limits are the shortest completion that is found, three
tokens more, and twice as many. From schema to schema, each search takes the next one of them. A text is right if it has
an end and is an instance of the schema (`pip install jsonschema`, without formats).

The last line is one JSON object: how many schemas compile, have a completion within --most tokens, and have only right
texts, the number of texts and of wrong ones, the reasons of other schemas, and the milliseconds of a token.
"""

import argparse
import collections
import json
import random
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # also where the package is not installed

import torch
from bench_constraints import tokenizer_of
from bench_schemas import SEED, within
from transformers import GPT2Config, GPT2LMHeadModel

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface import BackgroundProcessor

SEARCHES: dict[str, dict[str, Any]] = {"greedy": {}, "sampled": {"do_sample": True}, "beams": {"num_beams": 3}}


def texts_of(schema: Any, tokenizer: Any, model: Any, most: int, turn: int, answers: Any) -> None:
    """Send the texts with their limits and seconds, or a reason."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            processor = BackgroundProcessor.from_json_schema(schema, tokenizer)
    except DataError:
        answers.send("does not compile")
        return
    try:
        limited = processor.weights.within(most)
    except DataError:
        answers.send("no completion is found")
        return
    least = limited.least(limited.start(1))
    if least > most:
        answers.send("its shortest completion is too long")
        return
    found = []
    limits = (least, least + 3, 2 * least)
    for number, (name, options) in enumerate(SEARCHES.items()):
        longest = limits[(number + turn) % len(limits)]
        one = BackgroundProcessor._from_weights(processor.weights, processor.eos, 1, longest)
        torch.manual_seed(longest)
        begun = time.process_time()
        prompt = torch.zeros(1, 1, dtype=torch.long)
        row = model.generate(
            prompt, attention_mask=prompt + 1, max_new_tokens=longest, logits_processor=[one], **options
        )
        written = row[0, 1:].tolist()
        ended = written[: written.index(processor.eos)] if processor.eos in written else None
        text = None if ended is None else tokenizer.decode(ended, clean_up_tokenization_spaces=False)
        found.append((name, longest, text, (time.process_time() - begun) / max(1, len(ended or [0]))))
    answers.send(found)


def is_instance(text: str | None, schema: Any) -> bool:
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]

    try:
        return text is not None and validator_for(schema)(schema).is_valid(json.loads(text, strict=False))
    except ValueError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=Path, required=True, help="a folder with JSON files of MaskBench")
    parser.add_argument("--number", type=int, default=1_000, help="how many are drawn (default: 1,000)")
    parser.add_argument("--vocabulary", type=int, default=4_000, help="tokens (default: 4,000)")
    parser.add_argument("--most", type=int, default=150, help="tokens of the shortest completion (default: 150)")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a schema (default: 120)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = tokenizer_of(args.vocabulary)
    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=1, initializer_range=1.0, **special)
    model = GPT2LMHeadModel(config).eval()
    BackgroundProcessor.from_json_schema({}, tokenizer)  # llguidance reads a tokenizer once
    reasons, right, texts, wrong, seconds = collections.Counter[str](), 0, 0, 0, []
    for turn, file in enumerate(random.Random(SEED).sample(sorted(args.schemas.glob("*.json")), args.number)):
        schema = json.loads(file.read_text("utf-8"))["schema"]
        answer = within(args.limit, schema, tokenizer, model, args.most, turn, call=texts_of)
        if isinstance(answer, str):
            reasons[answer] += 1
            if answer not in ("does not compile", "its shortest completion is too long"):
                print(f"{file.name}: {answer}", flush=True)
            continue
        wrongs = [each for each in answer if not is_instance(each[2], schema)]
        for name, longest, text, _ in wrongs:
            print(f"{file.name}: {name}, {longest} tokens: {text!r:.300}", flush=True)
        right, texts, wrong = right + (not wrongs), texts + len(answer), wrong + len(wrongs)
        seconds += [each[3] for each in answer]
    print(
        json.dumps({
            "compile": args.number - reasons["does not compile"], "with_completion": texts // len(SEARCHES),
            "right": right, "texts": texts, "wrong": wrong, "ms_median": round(1000 * statistics.median(seconds), 1),
            "ms_90": round(1000 * statistics.quantiles(seconds, n=10)[8], 1), "reasons": reasons,
        })
    )  # fmt: skip


if __name__ == "__main__":
    main()
