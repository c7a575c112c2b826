#!/usr/bin/env python3
"""Which JSON schemas do we and other packages compile, how long does that take, and what do they accept?

    python scripts/bench/bench_schemas.py --schemas jsonschemabench/maskbench/data [--number 395] [--vocabulary 32000]

The schemas are those of MaskBench (https://github.com/guidance-ai/jsonschemabench): JSON files with a `schema` and
`tests`, instances that are valid or not, or lists of these, as in the official JSON-Schema-Test-Suite. A sample of
files is drawn with a fixed seed. Each schema is compiled in a process of
its own, with a limit of time, by the packages that are installed (`pip install '.[hf]' xgrammar`). xgrammar has
strict_mode=False, so that objects may have other properties, as in the standard.

A package accepts an instance if it allows all tokens of json.dumps(instance), and the end after them.

The last line is one JSON object: for each package the percentage of schemas that compile and of schemas for which also
all tests are right, the number of valid instances that are rejected and of invalid ones that are accepted (of those
with a compiled schema), and the median and the 90th percentile of processor time of the compiled ones in milliseconds.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # also where the package is not installed

import torch
from bench_constraints import tokenizer_of

from fairseq_llrnn.huggingface import BackgroundProcessor

SEED = 1
Accepts = Callable[[Sequence[int]], bool]
Compile = Callable[[dict[str, Any]], Accepts]  # raises an error for a schema that it does not read


def of_ours(tokenizer: Any) -> Compile:
    import numpy as np

    BackgroundProcessor.from_json_schema({}, tokenizer)  # llguidance reads a tokenizer once

    def compile_schema(schema: dict[str, Any]) -> Accepts:
        processor = BackgroundProcessor.from_json_schema(schema, tokenizer)
        weights, one = processor.weights, torch.zeros(1)

        def accepts(tokens: Sequence[int]) -> bool:
            states = weights.start(1)
            for token in tokens:
                states = weights.advance(states, np.array([token]))
            (row,) = weights.rows(states, one)
            return bool(row.dense(weights.num_tokens, one)[processor.eos].isfinite())

        return accepts

    return compile_schema


def of_llguidance(tokenizer: Any) -> Compile:
    import llguidance
    import llguidance.hf

    of_tokens = llguidance.hf.from_tokenizer(tokenizer)

    def compile_schema(schema: dict[str, Any]) -> Accepts:
        grammar = json.dumps({"grammars": [{"json_schema": schema}]})
        begin = llguidance.LLMatcher(of_tokens, grammar, log_level=0)
        if begin.is_error():
            raise ValueError(begin.get_error())

        def accepts(tokens: Sequence[int]) -> bool:
            matcher = begin.deep_copy()
            return all(matcher.consume_token(token) for token in tokens) and matcher.is_accepting()

        return accepts

    return compile_schema


def of_xgrammar(tokenizer: Any) -> Compile:
    import xgrammar

    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile_schema(schema: dict[str, Any]) -> Accepts:
        compiled = compiler.compile_json_schema(json.dumps(schema), strict_mode=False)

        def accepts(tokens: Sequence[int]) -> bool:
            matcher = xgrammar.GrammarMatcher(compiled)
            return all(matcher.accept_token(token) for token in [*tokens, tokenizer.eos_token_id])

        return accepts

    return compile_schema


PACKAGES = {
    "ours": ("fairseq-llrnn", of_ours),
    "llguidance": ("llguidance", of_llguidance),
    "xgrammar": ("xgrammar", of_xgrammar),
}


def tried(compile_schema: Compile, schema: Any, tests: Sequence[tuple[list[int], bool]], answers: Any) -> None:
    """Send processor seconds and the accepted tests, or an error."""
    compile_schema({"type": "null"})  # the first one in a process takes longer
    began = time.process_time()
    try:
        accepts = compile_schema(schema)
    except BaseException as error:  # pyo3's panics are no Exception
        answers.send(f"{type(error).__name__}: {error}")
        return
    seconds = time.process_time() - began
    answers.send((seconds, [accepts(tokens) for tokens, _ in tests]))


def within(limit: float, *arguments: Any, call: Callable[..., None] = tried) -> Any:
    """Return what a call sends, in a process of its own."""
    context = multiprocessing.get_context("fork")
    answers, of_process = context.Pipe(duplex=False)
    process = context.Process(target=call, args=(*arguments, of_process))
    process.start()
    of_process.close()
    try:
        return answers.recv() if answers.poll(limit) else "too long"
    except EOFError:
        return "crash"
    finally:
        process.kill()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=Path, required=True, help="a folder with JSON files of MaskBench")
    parser.add_argument("--number", type=int, default=395, help="files that are drawn, 0 for all (default: 395)")
    parser.add_argument("--vocabulary", type=int, default=32_000, help="tokens (default: 32,000)")
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=list(PACKAGES), help="(default: all)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a schema and its tests (default: 60)")
    parser.add_argument("--errors", action="store_true", help="print the error of each schema that does not compile")
    args = parser.parse_args()
    torch.set_num_threads(1)
    files = sorted(args.schemas.glob("*.json"))
    if args.number:
        files = random.Random(SEED).sample(files, args.number)
    found = [json.loads(file.read_text("utf-8")) for file in files]
    cases = [case for each in found for case in (each if isinstance(each, list) else [each])]
    tokenizer = tokenizer_of(args.vocabulary)
    tests = [
        [(tokenizer(json.dumps(t["data"], ensure_ascii=False))["input_ids"], t["valid"]) for t in case["tests"]]
        for case in cases
    ]
    figures: dict[str, float] = {}
    for name in args.packages:
        distribution, of_package = PACKAGES[name]
        if importlib.util.find_spec(distribution.replace("-", "_")) is None:
            continue
        compile_schema = of_package(tokenizer)
        seconds, right, of_kind, wrong = [], 0, {True: 0, False: 0}, {True: 0, False: 0}
        for case, of_case in zip(cases, tests, strict=True):
            answer = within(args.limit, compile_schema, case["schema"], of_case)
            if isinstance(answer, str):
                if args.errors:
                    print(f"{name}: {case.get('description', '')}: {answer.splitlines()[0][:200]}", flush=True)
                continue
            seconds.append(answer[0])
            wrongs = [valid for (_, valid), accepted in zip(of_case, answer[1], strict=True) if accepted != valid]
            right += not wrongs
            for kind in (True, False):
                of_kind[kind] += sum(valid == kind for _, valid in of_case)
                wrong[kind] += wrongs.count(kind)
        tenths = statistics.quantiles(seconds, n=10)
        figures |= {
            f"{name}_compile_percent": round(100 * len(seconds) / len(cases), 1),
            f"{name}_right_percent": round(100 * right / len(cases), 1),
            f"{name}_wrong_rejects": wrong[True],
            f"{name}_valid": of_kind[True],
            f"{name}_wrong_accepts": wrong[False],
            f"{name}_invalid": of_kind[False],
            f"{name}_ms_median": round(1000 * statistics.median(seconds), 1),
            f"{name}_ms_90": round(1000 * tenths[8], 1),
        }
        version = importlib.metadata.version(distribution) if name != "ours" else ""
        print(f"{name} {version}: { ({k: v for k, v in figures.items() if k.startswith(name)}) }", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
