#!/usr/bin/env python3
"""Fine-tune a pretrained network of transformers on questions and forms, without the grammar or with it, and parse.

    python examples/huggingface/smollm2.py smollm2
    pretrained_parser.py smollm2 --text OUT/text --out OUT/smollm2 --seed 1 [--grammar]
    funql_score.py --gold OUT/text/test.tsv without=OUT/smollm2/600-1-without.forms …

OUT/text is from funql_prepare.py: names are symbols. The network reads a question, a line break and a form, and learns
the tokens of the form. With --grammar, its probabilities are those of the tokens that the grammar allows, in training
and search. Without, it parses twice: freely, and under the grammar. The grammar is funql.grammar without a limit of
depth, read by llguidance. The loss is exact: one log p′ for each token (fairseq_llrnn/huggingface/training.py).

AdamW over all weights, products in bfloat16, batches of 16 pairs, a rate that falls to 0. Search is greedy. The last
line has the seconds of processor time.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from funql import tokens_of
from funql_recognise import Rules, read_rules
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, get_linear_schedule_with_warmup, set_seed

from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.huggingface import BackgroundProcessor
from fairseq_llrnn.huggingface.training import IGNORED, text_scores

GRAMMAR = Path(__file__).resolve().parent / "funql.grammar"
BATCH, WARM_UP, CLIP = 16, 10, 1.0
LONGEST = 160  # tokens of a form; the longest form of the training file has fewer
Pair = tuple[str, str]  # question and form


def lark_of(rules: Rules, start: str = "Query") -> str:
    """Return the rules as a Lark grammar of texts without blanks."""

    def name(nonterminal: str) -> str:
        return "start" if nonterminal == start else re.sub(r"(?<!^)(?=[A-Z])", "_", nonterminal).lower()

    def symbol(part: str) -> str:
        return f'{part}"' if part.startswith('"') else name(part)

    return "\n".join(
        f"{name(left)}: {' | '.join(' '.join(map(symbol, right)) for right in alternatives)}"
        for left, alternatives in rules.items()
    )


def read(text: Path, split: str) -> list[Pair]:
    """Return the pairs of a split. Forms have no blanks."""
    questions, forms = ([line for _, line in iter_lines(text / f"{split}.{side}")] for side in ("question", "form"))
    return [(question, form.replace(" ", "")) for question, form in zip(questions, forms, strict=True)]


def prompt(question: str) -> str:
    return f"{question}\n"


def batch_of(pairs: Sequence[Pair], tokenizer: Any) -> dict[str, Tensor]:
    """Return input ids, attention mask and labels, which have the tokens of forms and the end: (B, T) each."""
    rows, labels = [], []
    for question, form in pairs:
        before, after = tokenizer(prompt(question))["input_ids"], tokenizer(form)["input_ids"]
        rows.append(torch.tensor([*before, *after, tokenizer.eos_token_id]))
        labels.append(torch.tensor([IGNORED] * len(before) + [*after, tokenizer.eos_token_id]))
    mask = [torch.ones_like(row) for row in rows]
    return {
        "input_ids": pad_sequence(rows, True, tokenizer.eos_token_id),
        "attention_mask": pad_sequence(mask, True, 0),
        "labels": pad_sequence(labels, True, IGNORED),
    }


def batches(pairs: Sequence[Pair], epochs: int, seed: int) -> Iterator[list[Pair]]:
    """Yield the batches of all epochs, in another order each time."""
    order = random.Random(seed)
    for _ in range(epochs):
        shuffled = order.sample(pairs, len(pairs))
        yield from (shuffled[i : i + BATCH] for i in range(0, len(shuffled), BATCH))


def train(
    model: Any, tokenizer: Any, pairs: Sequence[Pair], grammar: BackgroundProcessor | None, args: argparse.Namespace
) -> None:
    """Fine-tune the network, with log p′ of the grammar's tokens or log p of all tokens."""
    steps = list(batches(pairs, args.epochs, args.seed))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    schedule = get_linear_schedule_with_warmup(optimizer, WARM_UP, len(steps))
    in_loss = None if grammar is None else grammar.for_search(tokenizer.eos_token_id, 0, None)
    model.train()
    for number, some in enumerate(steps, start=1):
        batch = batch_of(some, tokenizer)
        labels = batch.pop("labels")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(**batch).logits
        loss = text_scores(in_loss, logits, batch["input_ids"], labels).loss
        assert loss is not None
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        if number % 10 == 0 or number == len(steps):
            print(f"update {number} of {len(steps)}: {loss.item():.4f} nats per token", flush=True)


def parse(
    model: Any, tokenizer: Any, questions: Sequence[str], grammar: BackgroundProcessor | None, size: int = 28
) -> list[str]:
    """Return the symbols of the most probable form of each question, with blanks between them."""
    model.to(torch.bfloat16).eval()
    forms = [""] * len(questions)
    order = sorted(range(len(questions)), key=lambda place: len(tokenizer(questions[place])["input_ids"]))
    for some in (order[i : i + size] for i in range(0, len(order), size)):
        texts = [prompt(questions[place]) for place in some]
        inputs = tokenizer(texts, padding=True, padding_side="left", return_tensors="pt")
        options: dict[str, Any] = {"max_new_tokens": LONGEST, "do_sample": False}
        options |= inputs | {"pad_token_id": tokenizer.eos_token_id}
        found = model.generate(**options) if grammar is None else grammar.generate(model, **options)
        written = tokenizer.batch_decode(found[:, inputs["input_ids"].size(1) :], skip_special_tokens=True)
        for place, form in zip(some, written, strict=True):
            try:
                forms[place] = " ".join(tokens_of(form))
            except DataError:  # signs outside the language
                forms[place] = "?"
    return forms


@one_line_errors("pretrained_parser.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a folder of transformers")
    parser.add_argument("--text", type=Path, required=True, help="output of funql_prepare.py")
    parser.add_argument("--out", type=Path, required=True, help="folder of the forms")
    parser.add_argument("--train", default="train", help="train or mixed: with recombined pairs (default: train)")
    parser.add_argument("--epochs", type=int, default=8, help="(default: 8)")
    parser.add_argument("--lr", type=float, default=2e-4, help="(default: 0.0002)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument("--grammar", action="store_true", help="the grammar in training and search")
    args = parser.parse_args()
    pairs, questions = read(args.text, args.train), [question for question, _ in read(args.text, "test")]
    stem, begin = f"{len(pairs)}-{args.seed}", time.process_time()
    set_seed(args.seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForCausalLM.from_pretrained(args.model)
    grammar = BackgroundProcessor.from_grammar(lark_of(read_rules(GRAMMAR)), tokenizer)
    train(model, tokenizer, pairs, grammar if args.grammar else None, args)
    print(f"training: {time.process_time() - begin:.0f} seconds of processor time", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    searches = {"both": grammar} if args.grammar else {"without": None, "search": grammar}
    for name, used in searches.items():
        write_lines(args.out / f"{stem}-{name}.forms", parse(model, tokenizer, questions, used))
    print(f"training and search: {time.process_time() - begin:.0f} seconds of processor time")


if __name__ == "__main__":
    main()
