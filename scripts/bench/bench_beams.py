#!/usr/bin/env python3
"""How probable is the best beam of a constrained search, and do the probabilities of choices sum to one?

    python scripts/bench/bench_beams.py MODEL [--budget 60] [--beams 4] [--batch 20]

MODEL is as for bench_budget.py, which has the 100 prompts for a JSON record. A BackgroundProcessor writes each record
by greedy search and with beams, and log p' of both is compared. Each of 100 questions then has five possible answers. A
search with five beams returns all of them with their log p'. log p without the constraint comes from the same search.
The last line is one JSON object.
"""

import argparse
import json
import math
import statistics
import sys
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # also where the package is not installed

import torch
from bench_budget import JOBS, NAMES, PROMPTS, SCHEMA, chat_batches, loaded, record_of
from bench_limits import is_instance
from torch import Tensor

from fairseq_llrnn.huggingface import BackgroundProcessor

CHOICES = "never rarely sometimes often always".split()
QUESTIONS = [
    f"How often does {name}, a {job}, work outdoors: {', '.join(CHOICES)}? Answer with one word."
    for name, job in product(NAMES, JOBS)
]


def log_probabilities(found: Any, end: int) -> Tensor:
    """Return log p' of each text of a greedy search, its end included."""
    written = found.sequences[:, -len(found.scores) :]
    steps = torch.stack(found.scores, 1).gather(2, written[..., None]).squeeze(2)  # (rows, T)
    is_end = written == end
    return steps.masked_fill(is_end.cumsum(1) - is_end.long() > 0, 0.0).sum(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--budget", type=int, default=60, help="tokens of a record (default: 60)")
    parser.add_argument("--beams", type=int, default=4, help="of a record (default: 4)")
    parser.add_argument("--batch", type=int, default=20, help="prompts at once (default: 20)")
    args = parser.parse_args()
    tokenizer, model = loaded(args.model)
    details: dict[str, Any] = {"return_dict_in_generate": True, "output_scores": True}

    sums: list[float] = []
    plain: list[float] = []
    choices = BackgroundProcessor.from_words(CHOICES, tokenizer, separators=(), canonical=True)
    for batch in chat_batches(tokenizer, QUESTIONS, args.batch):
        with torch.inference_mode():
            found = choices.generate(
                model, **batch, max_new_tokens=8, num_beams=len(CHOICES), num_return_sequences=len(CHOICES),
                length_penalty=0.0, output_logits=True, **details,
            )  # fmt: skip
        texts = tokenizer.batch_decode(found.sequences[:, batch["input_ids"].size(1) :], skip_special_tokens=True)
        if sorted(texts) != sorted(CHOICES * len(batch["input_ids"])):
            raise SystemExit("expected each answer once for each question")
        log_p = model.compute_transition_scores(  # 0 after the end
            found.sequences, found.logits, found.beam_indices, normalize_logits=True
        ).sum(1)
        for scores, totals in ((found.sequences_scores, sums), (log_p, plain)):
            totals += scores.double().exp().view(-1, len(CHOICES)).sum(1).tolist()
    result: dict[str, float] = {
        "choices/error": max(abs(each - 1) for each in sums),
        "choices/plain": statistics.mean(plain),
    }
    print(f"answers: {result}, the last one: {texts[-len(CHOICES)]!r}", flush=True)

    records = BackgroundProcessor.from_json_schema(SCHEMA, tokenizer, longest=args.budget)
    searches: dict[str, dict[str, Any]] = {"greedy": {}, "beams": {"num_beams": args.beams, "length_penalty": 0.0}}
    of_search: dict[str, list[float]] = {}
    for search, options in searches.items():
        valid, of_search[search] = 0, []
        for batch in chat_batches(tokenizer, PROMPTS, args.batch):
            with torch.inference_mode():
                found = records.generate(
                    model, **batch, max_new_tokens=args.budget, do_sample=False, **options, **details
                )
            is_greedy = search == "greedy"
            scores = log_probabilities(found, tokenizer.eos_token_id) if is_greedy else found.sequences_scores
            of_search[search] += scores.tolist()
            rows = found.sequences[:, batch["input_ids"].size(1) :].tolist()
            valid += sum(is_instance(record_of(tokenizer, row), SCHEMA) for row in rows)
        result[f"{search}/valid"] = valid
        print(f"{search}: {valid} valid, the last one: {tokenizer.decode(rows[-1])!r}", flush=True)
    gains = [beams - greedy for greedy, beams in zip(of_search["greedy"], of_search["beams"], strict=True)]
    result["beams/better"] = sum(gain > 1e-3 for gain in gains)
    result["beams/worse"] = sum(gain < -1e-3 for gain in gains)
    result["beams/factor"] = math.exp(statistics.median(gains))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
