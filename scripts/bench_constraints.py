#!/usr/bin/env python3
"""How long does a constraint take at each step of `generate`? BackgroundProcessor and other packages in turns.

    python scripts/bench_constraints.py [--rounds 5] [--vocabulary 32000]

A ByteLevel BPE tokenizer is trained on invented words. Two constraints: a context-free grammar of 49 rules, bounded in
depth for our processor, and a JSON schema. Texts are drawn with random logits under our processor first. Then every
contestant reads the same texts, token by token, and masks random logits: of one hypothesis, and of eight, which change
places as beams do. Ours also normalises (p' sums to one), the others do not.

For the schema, outlines takes part by its index (outlines-core, in torch), and transformers by
PrefixConstrainedLogitsProcessor, which is `prefix_allowed_tokens_fn`, on the tokens that this index allows.

Figures are microseconds of processor time for each step, for all hypotheses together: medians over rounds. `build` is
in milliseconds. llguidance and xgrammar take part if they are installed (`pip install '.[hf]' xgrammar`).
"""

import argparse
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the package is not installed

from fairseq_llrnn.huggingface import BackgroundProcessor
from fairseq_llrnn.huggingface.lifting import token_texts

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
        },
        "active": {"type": "boolean"},
    },
    "required": ["name", "age", "email", "tags", "address", "active"],
}
LONGEST = 80


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


def draw(processor: BackgroundProcessor, eos: int, count: int) -> list[list[int]]:
    """Texts as tokens, without their ends."""
    generator = torch.Generator().manual_seed(2)
    found: list[list[int]] = []
    while len(found) < count:
        written = torch.zeros(1, 1, dtype=torch.long)
        while written.size(1) <= LONGEST and (written.size(1) == 1 or written[0, -1] != eos):
            log_p = processor(written, torch.randn(1, processor.weights.num_tokens, generator=generator))
            following = torch.multinomial(log_p.exp(), 1, generator=generator)
            written = torch.cat([written, following], dim=1)
        tokens = written[0, 1:].tolist()
        if len(tokens) > 10:
            found.append(tokens[: LONGEST // 2])
    return found


Contestant = Callable[[list[list[int]]], float]  # the rows of texts, of equal length -> seconds a step


def ours(processor: BackgroundProcessor, scores: torch.Tensor) -> Contestant:
    def walk(rows: list[list[int]]) -> float:
        order, total = list(range(len(rows))), 0.0
        chance = random.Random(3)
        steps = [torch.zeros(len(rows), 1, dtype=torch.long)]
        for length in range(1, len(rows[0])):
            chance.shuffle(order)
            steps.append(torch.tensor([[0, *rows[row][:length]] for row in order]))
        for written in steps:
            began = time.process_time()
            processor(written, scores[: len(rows)])
            total += time.process_time() - began
        return total / len(steps)

    return walk


def of_llguidance(tokenizer: Any, grammar: str, scores: torch.Tensor, first: list[int]) -> Contestant:
    import llguidance
    import llguidance.hf
    import llguidance.torch as masks

    of_tokens = llguidance.hf.from_tokenizer(tokenizer)
    begin = llguidance.LLMatcher(of_tokens, grammar, log_level=0)
    if begin.is_error():
        raise SystemExit(begin.get_error())
    begin.consume_tokens(first)

    def walk(rows: list[list[int]]) -> float:
        matchers = [begin.deep_copy() for _ in rows]
        bitmask = masks.allocate_token_bitmask(len(rows), of_tokens.vocab_size)
        total, length = 0.0, len(rows[0])
        for at in range(length):
            logits = scores[: len(rows)].clone()
            began = time.process_time()
            for at_row, matcher in enumerate(matchers):
                masks.fill_next_token_bitmask(matcher, bitmask, at_row)
            masks.apply_token_bitmask_inplace(logits, bitmask)
            for row, matcher in zip(rows, matchers, strict=True):
                if not matcher.consume_token(row[at]):
                    raise SystemExit(f"llguidance forbids token {row[at]}: {matcher.get_error()}")
            total += time.process_time() - began
        return total / length

    return walk


def of_xgrammar(tokenizer: Any, kind: str, text: str, scores: torch.Tensor, first: list[int]) -> Contestant:
    import xgrammar

    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
    compiled = getattr(xgrammar.GrammarCompiler(info), f"compile_{kind}")(text)

    def walk(rows: list[list[int]]) -> float:
        matchers = [xgrammar.GrammarMatcher(compiled) for _ in rows]
        for matcher in matchers:
            for token in first:
                matcher.accept_token(token)
        bitmask = xgrammar.allocate_token_bitmask(len(rows), info.vocab_size)
        total, length = 0.0, len(rows[0])
        for at in range(length):
            logits = scores[: len(rows)].clone()
            began = time.process_time()
            for at_row, matcher in enumerate(matchers):
                matcher.fill_next_token_bitmask(bitmask, at_row)
            xgrammar.apply_token_bitmask_inplace(logits, bitmask)
            for row, matcher in zip(rows, matchers, strict=True):
                if not matcher.accept_token(row[at]):
                    raise SystemExit(f"xgrammar forbids token {row[at]}")
            total += time.process_time() - began
        return total / length

    return walk


def of_outlines(tokenizer: Any, scores: torch.Tensor, in_transformers: bool) -> Contestant:
    """in_transformers: mask by PrefixConstrainedLogitsProcessor of transformers."""
    from outlines_core import Guide, Index, Vocabulary
    from outlines_core.json_schema import build_regex_from_schema
    from outlines_core.kernels import torch as masks
    from transformers import PrefixConstrainedLogitsProcessor

    eos, spelled = tokenizer.eos_token_id, token_texts(tokenizer).later
    vocabulary = Vocabulary(eos, {text: [token] for token, text in enumerate(spelled) if text is not None})
    index = Index(build_regex_from_schema(json.dumps(SCHEMA)), vocabulary)

    def walk(rows: list[list[int]]) -> float:
        guides = [Guide(index) for _ in rows]
        constrained = PrefixConstrainedLogitsProcessor(lambda row, _: guides[row].get_tokens(), 1)
        bitmasks = [masks.allocate_token_bitmask(scores.size(1)) for _ in rows]
        total, length = 0.0, len(rows[0])
        for at in range(length):
            logits, written = scores[: len(rows)].clone(), torch.tensor([row[: at + 1] for row in rows])
            began = time.process_time()
            if in_transformers:
                constrained(written, logits)
            else:
                for at_row, (guide, bitmask) in enumerate(zip(guides, bitmasks, strict=True)):
                    masks.fill_next_token_bitmask(guide, bitmask)
                    masks.apply_token_bitmask_inplace(logits[at_row : at_row + 1], bitmask)
            for row, guide in zip(rows, guides, strict=True):
                guide.advance(row[at], return_tokens=False)
            total += time.process_time() - began
        return total / length

    return walk


def measured(name: str, build: Callable[[], Any]) -> Any:
    began = time.process_time()
    made = build()
    print(f"    build {name}: {1000 * (time.process_time() - began):,.0f} ms")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="of all contestants (default: 5)")
    parser.add_argument("--vocabulary", type=int, default=32_000, help="tokens (default: 32,000)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = tokenizer_of(args.vocabulary)
    scores = torch.randn(8, len(tokenizer), generator=torch.Generator().manual_seed(4))
    has_llguidance, has_xgrammar = (importlib.util.find_spec(name) is not None for name in ("llguidance", "xgrammar"))
    figures: dict[str, float] = {}
    for constraint in ("grammar", "schema"):
        print(constraint)
        if constraint == "grammar":
            processor = measured("ours", lambda: BackgroundProcessor.from_grammar(our_grammar(), tokenizer))
        else:
            processor = measured("ours", lambda: BackgroundProcessor.from_json_schema(SCHEMA, tokenizer))
        first = tokenizer(" ")["input_ids"] if constraint == "grammar" else []
        contestants = {"ours": ours(processor, scores)}
        texts = draw(processor, tokenizer.eos_token_id, 24)
        if has_llguidance:
            from llguidance import LLMatcher

            if constraint == "grammar":
                lark = LLMatcher.grammar_from_lark(lark_grammar())
            else:
                lark = LLMatcher.grammar_from_json_schema(json.dumps(SCHEMA))
            contestants["llguidance"] = measured("llguidance", partial(of_llguidance, tokenizer, lark, scores, first))
        if has_xgrammar:
            kind = "grammar" if constraint == "grammar" else "json_schema"
            text = ebnf_grammar() if constraint == "grammar" else json.dumps(SCHEMA)
            contestants["xgrammar"] = measured("xgrammar", partial(of_xgrammar, tokenizer, kind, text, scores, first))
        if constraint == "schema":
            for name, in_transformers in (("outlines", False), ("transformers", True)):
                contestants[name] = measured(name, partial(of_outlines, tokenizer, scores, in_transformers))
        for hypotheses in (1, 8):
            found: dict[str, list[float]] = {name: [] for name in contestants}
            for _ in range(args.rounds):
                for name, walk in contestants.items():
                    groups = [texts[at : at + hypotheses] for at in range(0, len(texts), hypotheses)]
                    times = [
                        walk([row[: min(map(len, group))] if hypotheses > 1 else row for row in group])
                        for group in groups
                    ]
                    found[name].append(1e6 * statistics.mean(times))
            for name, times in found.items():
                figures[f"{constraint}_{hypotheses}_{name}"] = round(statistics.median(times))
                print(f"    {hypotheses} {name}: {statistics.median(times):,.0f} µs")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
