#!/usr/bin/env python3
"""How long does a constraint take at each step of `generate`? BackgroundProcessor and other packages in turns.

    python scripts/bench/bench_constraints.py [--rounds 7] [--vocabulary 32000]

A ByteLevel BPE tokenizer is trained on invented words. Four constraints: a context-free grammar of 49 rules, bounded in
depth for our processor, a regular expression, a JSON schema, and a Lark grammar of JSON with unbounded nesting.
Searches of one and of eight hypotheses are drawn with random logits under our processor first, without those that
another package forbids. As in a beam search, some of the eight go on from the same parent, and others are dropped. Then
every contestant repeats the same searches. It copies the states of parents (xgrammar: `fork`, llguidance: `deep_copy`),
reads a token for each hypothesis, and gives

    mask     the allowed tokens as bits (xgrammar: BatchGrammarMatcher with one thread)
    log p    log p of all tokens, normalised over the allowed ones; the others apply their mask, then log_softmax

Figures are microseconds of processor time for each step, for all hypotheses together: medians over rounds, and the
quartiles. `build` is in milliseconds. Packages take part if they are installed (`pip install '.[hf]' xgrammar`). The
last line is one JSON object: CONSTRAINT_HYPOTHESES_PACKAGE_KIND and the versions.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # also where the package is not installed

from constraint_contestants import Contestant, LLGuidance, Ours, XGrammar, draw

from fairseq_llrnn.huggingface import BackgroundProcessor

RULES = {  # 49 alternatives
    "S": ["NP VP '.'", "PP ',' NP VP '.'", "NP VP ',' 'and' NP VP '.'", "'does' NP VB '?'"],
    "NP": ["D N", "D A N", "D N PP", "D N 'that' VP", "'she'", "'he'"],
    "VP": ["VI", "VT NP", "VT NP PP", "VS 'that' NP VP"],
    "VB": ["'sleep'", "'see' NP", "'sing'"],
    "PP": ["P NP", "P D N"],
    "D": ["'the'", "'a'", "'every'", "'this'"],
    "A": ["'old'", "'small'", "'green'", "'very' A"],
    "N": ["'cat'", "'dog'", "'house'", "'river'", "'teacher'", "'letter'", "'garden'"],
    "VI": ["'sleeps'", "'sings'", "'laughs'"],
    "VT": ["'sees'", "'follows'", "'reads'", "'finds'"],
    "VS": ["'says'", "'knows'", "'thinks'"],
    "P": ["'in'", "'near'", "'behind'", "'with'", "'of'"],
}
DEPTH = 6
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer"},
        "email": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue", "large", "small"]}, "maxItems": 4},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}, "zip": {"type": "integer"}},
            "required": ["street", "city", "zip"],
            "additionalProperties": False,
        },
        "active": {"type": "boolean"},
    },
    "required": ["name", "age", "email", "tags", "address", "active"],
    "additionalProperties": False,
}
REGEX = r"[a-z]+( [a-z]+){5,9}: (19|20)\d\d-(0[1-9]|1[0-2])-\d\d( \w+)*"
SEARCHES = {1: 12, 8: 4}  # by the number of hypotheses
NESTED = r"""start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" (pair ("," pair)*)? "}"
array: "[" (value ("," value)*)? "]"
pair: STRING ":" value
STRING: /"[a-z0-9 ]*"/
NUMBER: /-?(0|[1-9][0-9]*)/
"""
NESTED_EBNF = r"""root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" (pair ("," pair)*)? "}"
array ::= "[" (value ("," value)*)? "]"
pair ::= string ":" value
string ::= "\"" [a-z0-9 ]* "\""
number ::= "-"? ("0" | [1-9] [0-9]*)
"""


def tokenizer_of(size: int) -> Any:
    chance = random.Random(1)
    syllables = [c + v + e for c in "bcdfghklmnprstvw" for v in "aeiou" for e in ("", "n", "r", "s", "t")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(60_000)]
    known = [alternative.replace("'", "") for alternatives in RULES.values() for alternative in alternatives]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(
        [*(" ".join(words[at : at + 20]) for at in range(0, len(words), 20)), *known * 50], trainer
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")


def our_grammar() -> str:
    rules = (f"{name} -> {' | '.join(alternatives)}" for name, alternatives in RULES.items())
    return "\n".join([f"%depth {DEPTH}", *rules])


def lark_grammar() -> str:
    """With a space before each word: a contestant reads one before each text."""

    def alternative(text: str) -> str:
        items = (f'" {item[1:-1]}"' if item[0] == "'" else item.lower() for item in text.split())
        return " ".join(items)

    lines = [f"{name.lower()}: {' | '.join(map(alternative, ways))}" for name, ways in RULES.items()]
    return "\n".join(["start: s", *lines])


def ebnf_grammar() -> str:
    return lark_grammar().replace(": ", " ::= ").replace("start ::=", "root ::=")


def is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def measured(name: str, build: Callable[[], Any]) -> Any:
    began = time.process_time()
    made = build()
    print(f"    build {name}: {1000 * (time.process_time() - began):,.0f} ms")
    return made


def contestants(constraint: str, tokenizer: Any, processor: BackgroundProcessor) -> dict[str, Contestant]:
    first = tokenizer(" ")["input_ids"] if constraint == "grammar" else []
    found: dict[str, Contestant] = {"ours": Ours(processor)}
    if is_installed("llguidance"):
        from llguidance import LLMatcher

        lark = {
            "grammar": lambda: LLMatcher.grammar_from_lark(lark_grammar()),
            "regex": lambda: LLMatcher.grammar_from_regex(REGEX),
            "schema": lambda: LLMatcher.grammar_from_json_schema(json.dumps(SCHEMA)),
            "nested": lambda: LLMatcher.grammar_from_lark(NESTED),
        }[constraint]()
        found["llguidance"] = measured("llguidance", partial(LLGuidance, tokenizer, lark, first))
    if is_installed("xgrammar"):
        kind, text = {
            "grammar": ("grammar", ebnf_grammar()),
            "regex": ("regex", REGEX),
            "schema": ("json_schema", json.dumps(SCHEMA)),
            "nested": ("grammar", NESTED_EBNF),
        }[constraint]
        found["xgrammar"] = measured("xgrammar", partial(XGrammar, tokenizer, kind, text, first))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="of all contestants (default: 7)")
    parser.add_argument("--vocabulary", type=int, default=32_000, help="tokens (default: 32,000)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = tokenizer_of(args.vocabulary)
    scores = torch.randn(8, len(tokenizer), generator=torch.Generator().manual_seed(4))
    builders: dict[str, Callable[[], BackgroundProcessor]] = {
        "grammar": lambda: BackgroundProcessor.from_grammar(our_grammar(), tokenizer),
        "regex": lambda: BackgroundProcessor.from_regex(REGEX, tokenizer),
        "schema": lambda: BackgroundProcessor.from_json_schema(SCHEMA, tokenizer),
        "nested": lambda: BackgroundProcessor.from_grammar(NESTED, tokenizer),
    }
    figures: dict[str, float | str] = {}
    for constraint, build in builders.items():
        print(constraint)
        processor = measured("ours", build)
        others = contestants(constraint, tokenizer, processor)
        for hypotheses, count in SEARCHES.items():
            searches = draw(processor, hypotheses, count, others.values())
            runs = [(name, kind) for name, contestant in others.items() for kind in contestant.kinds]
            found: dict[tuple[str, str], list[float]] = {run: [] for run in runs}
            for _ in range(args.rounds):
                for name, kind in runs:
                    times = [others[name].seconds(search, scores, kind) for search in searches]
                    found[name, kind].append(1e6 * statistics.mean(times))
            for (name, kind), times in found.items():
                low, middle, high = statistics.quantiles(times, n=4)
                figures[f"{constraint}_{hypotheses}_{name}_{kind}"] = round(middle)
                print(f"    {hypotheses} {name}, {kind}: {middle:,.0f} µs ({low:,.0f} to {high:,.0f})", flush=True)
    for name in ("llguidance", "xgrammar", "torch"):
        if is_installed(name.replace("-", "_")):
            figures[name] = importlib.metadata.version(name)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
