#!/usr/bin/env python3
"""Measure the speed of translation with log-linear outputs, in generation and training, against the same model with
softmax.

    python scripts/bench/bench_generate.py [--quick] [--device cuda] [--threads 1] [--memory both]

The model is fairseq's Transformer in Multi30k's size (4 + 4 layers of 128, 4 heads, feed-forward 256): once with its
own output matrix and cross_entropy (`--arch transformer`), once with ours (`--arch llrnn_transformer`, signatures of
4,000 words with an indicator feature and 400 morphological combinations). fairseq builds both from command-line
options. They run in this process, in turns. Figures are medians, on a CPU of processor time (measuring.py). Words are
sampled from a Zipf distribution, weights are random, and all hypotheses have the same length.

    generate     beam 5, batches of 32 sentences of 12 words, 15 steps, V = 40,000 target words. Tokens of hypotheses
                 per second. The softmax runs in fairseq's generator, ours in the search that our task builds.
    lexical      our generation with lexical translations (10 for each source word) over ours without: time, minus 1
    slots        … and with evidence (two slots a sentence, one of them outside the vocabulary), searched with
                 --evidence-freely
    condition    … and with evidence, and a search that counts copied strings, as by default
    operations   number of torch operations in a step of a search: ours, and ours with all of these; independent of load
    training     forward, backward and Adam on batches of 2,000 target words, for V = 11,000 (Multi30k's size), where
                 ours also runs with lexical translations and evidence (without the current sentence), and for V =
                 200,000

`--memory both` runs everything twice: with glibc's default malloc, and with memory kept (kept_memory.py), which makes
softmaxes much faster and ours a little. The figures of the second run have the suffix `_kept`.

The last line is one JSON object: generate_over_softmax, lexical_overhead, slots_overhead, condition_overhead,
step_operations, condition_operations, training_over_softmax (V = 11,000), training_with_conditions_over_softmax and
training_over_softmax_200k. Figures with "over_softmax" are the speed of ours over that of the softmax.
"""

import argparse
import contextlib
import io
import json
import logging
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from kept_memory import add_memory_option, memory_line, run_again
from measuring import Rounds, in_turns, parse, timed
from torch.utils._python_dispatch import TorchDispatchMode
from zipf_law import zipf

from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.cli.main import main as llrnn
from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.parts.lexical import LexicalPart

ROOT = Path(__file__).resolve().parents[2]
GENERATION_WORDS, SMALL, LARGE = 40_000, 11_000, 200_000  # V of the comparisons
QUICK, FULL = 6.0, 40.0  # seconds of one comparison
LEAST, MOST = 2, 1000  # rounds of one
CONDITIONS = {"lexical": "lexical", "slots": "slots", "evidence": "condition"}  # and what their figures are called
SOURCE_WORDS, COMBINATIONS, TOP_WORDS, TRANSLATIONS = 10_000, 400, 4_000, 10
SENTENCES, LENGTH, STEPS, BEAM, TRAINING_TOKENS = 32, 12, 15, 5, 2_000
SIZES = shlex.split(
    "--encoder-embed-dim 128 --encoder-ffn-embed-dim 256 --encoder-layers 4 --encoder-attention-heads 4 "
    "--decoder-layers 4 --decoder-attention-heads 4 --dropout 0.1 --optimizer adam --lr 0.001"
)


def write_world(folder: Path, words: int) -> None:
    """Write dictionaries src and tgt, and the prior of tgt, like fairseq-preprocess and `llrnn prior`."""
    rng = np.random.default_rng(1)
    for language, size in (("src", SOURCE_WORDS), ("tgt", words)):
        counts = np.ceil(zipf(size) * 400_000).astype(int)
        lines = "".join(f"{language}{i} {count}\n" for i, count in enumerate(counts))
        (folder / f"dict.{language}.txt").write_text(lines, encoding="utf-8")
    tags = [f"N{i % 10}\tCase={i % 7}|Gender={i % 3}|Number={i % 11}|Person={i % 13}" for i in range(COMBINATIONS)]
    classes = rng.choice(COMBINATIONS, words, p=zipf(COMBINATIONS))
    rows = "".join(f"tgt{i}\ttgt{i}\t{tags[c]}\n" for i, c in enumerate(classes))
    (folder / "lexicon.tsv").write_text(rows, encoding="utf-8")
    made = ["prior", "--lexicon", str(folder / "lexicon.tsv"), "--dict", str(folder / "dict.tgt.txt")]
    with contextlib.redirect_stdout(io.StringIO()):
        status = llrnn([*made, "--top-words", str(TOP_WORDS), "--out", str(folder / "prior")])
    if status != 0:
        raise SystemExit("`llrnn prior` failed; its error is above")


def random_translations(prior: Any, source_symbols: list[str]) -> Any:
    """Return the prior with ten random translations of every source word."""
    rng = np.random.default_rng(2)
    sources = np.repeat(np.arange(4, len(source_symbols)), 2 * TRANSLATIONS)
    targets = 4 + rng.choice(len(prior.symbols) - 4, len(sources), p=zipf(len(prior.symbols) - 4))
    pairs = np.unique(np.stack([sources, targets]), axis=1)
    weights = rng.random(pairs.shape[1])
    table = LexicalTable.from_pairs(pairs[0], pairs[1], weights, len(source_symbols), TRANSLATIONS)
    return prior.with_part(LexicalPart(table, 0.5, False, "random"), tuple(source_symbols))


def some_evidence(prior: Any) -> Any:
    """Return the prior with evidence for every sixth source word, half of it outside the vocabulary."""
    symbols = prior.source_symbols
    mapping = {word: (f"tgt{i}" if i % 12 else word,) for i, word in enumerate(symbols) if i > 3 and i % 6 == 0}
    rules = EvidenceRules(("mapped",), mapping, {})
    return prior.with_part(EvidencePart(rules))


class System:
    """A task, model and criterion that fairseq builds from options. `condition`: the part of the prior about the
    source.
    """

    def __init__(self, folder: Path, ours: bool, device: str, condition: str = "") -> None:
        from fairseq import options, tasks
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf

        arguments = [str(folder), "--source-lang", "src", "--target-lang", "tgt", *SIZES]
        if ours:
            arguments += ["--user-dir", str(ROOT / "fairseq_llrnn"), "--task", "llrnn_translation"]
            arguments += ["--arch", "llrnn_transformer", "--criterion", "log_linear"]
            arguments += ["--evidence-freely"] if condition == "slots" else []
        else:
            arguments += ["--task", "translation", "--arch", "transformer", "--criterion", "cross_entropy"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fairseq's use of hydra
            parsed = options.parse_args_and_arch(options.get_training_parser(), input_args=arguments)
            cfg = convert_namespace_to_omegaconf(parsed)
        torch.manual_seed(1)
        self.task = tasks.setup_task(cfg.task)
        if condition:
            self.task.prior = random_translations(self.task.prior, self.task.source_dictionary.symbols)
        if condition in ("slots", "evidence"):
            self.task.prior = some_evidence(self.task.prior)
        self.device = device
        self.model = self.task.build_model(cfg.model).to(device)
        self.criterion = self.task.build_criterion(cfg.criterion).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.001)

    def batch(self, sentences: int) -> dict[str, Any]:
        """Return random sentences of LENGTH words, the same for every system."""
        from fairseq import utils
        from fairseq.data import LanguagePairDataset

        rng = np.random.default_rng(3)
        sides = []
        for dictionary in (self.task.source_dictionary, self.task.target_dictionary):
            words = 4 + rng.choice(len(dictionary) - 4, (sentences, LENGTH), p=zipf(len(dictionary) - 4))
            sides.append([torch.tensor([*row, dictionary.eos()]) for row in words.tolist()])
        sizes = np.full(sentences, LENGTH + 1)
        source, target = self.task.source_dictionary, self.task.target_dictionary
        dataset = LanguagePairDataset(sides[0], sizes, source, sides[1], sizes, target, shuffle=False)
        batch: dict[str, Any] = dataset.collater([dataset[i] for i in range(sentences)])
        return utils.move_to_cuda(batch) if self.device == "cuda" else batch

    def translation(self) -> Callable[[], None]:
        generator = self.task.build_generator(
            [self.model], argparse.Namespace(beam=BEAM, min_len=STEPS, max_len_a=0, max_len_b=STEPS)
        )
        sample = self.batch(SENTENCES)

        def translate() -> None:
            self.model.eval()
            self.task.inference_step(generator, [self.model], sample)

        return translate

    def training(self) -> Callable[[], None]:
        sample = self.batch(TRAINING_TOKENS // (LENGTH + 1))

        def step() -> None:
            self.model.train()
            loss, _, _ = self.criterion(self.model, sample)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

        return step


class Counted(TorchDispatchMode):
    """Count the operations of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += 1
        return operation(*args, **(kwargs or {}))


def operations(task: Callable[[], None]) -> int:
    """Count the operations of a translation, per step."""
    with Counted() as counted:
        task()
    return round(counted.operations / (STEPS + 1))


def measure(tasks: dict[str, Callable[[], None]], budget: float, device: str) -> Rounds:
    return in_turns({name: partial(timed, task, device) for name, task in tasks.items()}, LEAST, MOST, budget)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds; about a minute")
    add_memory_option(parser)
    args = parse(parser)
    run_again(args.memory)
    logging.disable(logging.INFO)  # fairseq's, of building models
    budget = QUICK if args.quick else FULL

    found: dict[str, float] = {}
    print(f"{args.device}, {args.threads} threads, torch {torch.__version__}; milliseconds\n{memory_line()}\n")
    print(f"{'':<34}{'softmax':>10}{'ours':>10}{'faster by':>11}")
    with tempfile.TemporaryDirectory() as temporary:
        for words in (GENERATION_WORDS, SMALL, LARGE):
            folder = Path(temporary) / str(words)
            folder.mkdir()
            write_world(folder, words)
            softmax, ours = System(folder, False, args.device), System(folder, True, args.device)
            if words == GENERATION_WORDS:
                tasks = {"softmax": softmax.translation(), "ours": ours.translation()}
                for condition in CONDITIONS:
                    tasks[condition] = System(folder, True, args.device, condition).translation()
                # softmax takes as long as several of the others, whose ratios need more rounds
                rounds = measure({name: tasks[name] for name in ("softmax", "ours")}, budget, args.device)
                row(f"generate, V = {words:,}", rounds)
                found["generate_over_softmax"] = rounds.ratio("softmax", "ours")
                rounds = measure({name: task for name, task in tasks.items() if name != "softmax"}, budget, args.device)
                for condition, label in CONDITIONS.items():
                    found[f"{label}_overhead"] = rounds.ratio(condition, "ours") - 1
                    print(f"{'  with ' + condition:<44}{1e3 * rounds.median(condition):>10,.1f}", end="")
                    print(f"{100 * found[f'{label}_overhead']:>10.0f} %")
                found["step_operations"] = operations(tasks["ours"])
                found["condition_operations"] = operations(tasks["evidence"])
            else:
                tasks = {"softmax": softmax.training(), "ours": ours.training()}
                if words == SMALL:
                    tasks["evidence"] = System(folder, True, args.device, "evidence").training()
                rounds = measure(tasks, budget, args.device)
                found["training_over_softmax" + ("_200k" if words == LARGE else "")] = rounds.ratio("softmax", "ours")
                row(f"training step, V = {words:,}", rounds)
                if words == SMALL:
                    found["training_with_conditions_over_softmax"] = rounds.ratio("softmax", "evidence")
                    row("  with translations and evidence", rounds, "evidence")
    print(json.dumps({name: round(value, 3) for name, value in found.items()}))
    return 0


def row(name: str, rounds: Rounds, ours: str = "ours") -> None:
    softmax, own = 1e3 * rounds.median("softmax"), 1e3 * rounds.median(ours)
    print(f"{name:<34}{softmax:>10,.1f}{own:>10,.1f}{rounds.ratio('softmax', ours):>10.2f}×", flush=True)


if __name__ == "__main__":
    sys.exit(main())
