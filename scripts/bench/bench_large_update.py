#!/usr/bin/env python3
"""Measure a whole update of fairseq-train with a tree over a large vocabulary, with dense and with sparse gradients.

    python scripts/bench/bench_large_update.py [--quick] [--optimizer adagrad] [--words 250000] [--memory both]

Updates are those of fairseq's Trainer: forward, backward, clipping, the optimiser's step. The model is llrnn_lbl
(256-dimensional input and hidden states, 4 words of context) with a Huffman tree of arity 16 over a vocabulary in which
every word is a signature. A batch has 2,048 targets of a Zipf unigram. Dense: --optimizer adagrad (or adam). Sparse:
--tree-sparse-gradients --optimizer llrnn_adagrad (or llrnn_adam). Both take turns on the same batches in one process.
Figures are medians of processor time, of the update and of its parts.

The last line is one JSON object: milliseconds of both, and update_dense_over_sparse.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from kept_memory import add_memory_option, memory_line, run_again
from measuring import Rounds, clock, timed

import fairseq_llrnn
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import Recipe

WORDS, TOKENS, SIZE, ARITY = 250_000, 2048, 256, 16
PARTS = ("multiply_grads", "clip_grad_norm", "step")  # of an update: methods of the optimiser
QUICK, FULL = 5, 20  # updates that count


def write_data(folder: Path, words: int, batches: int) -> None:
    """Write a dictionary, a text of so many batches, and a prior in which every word is a signature."""
    from fairseq.data import Dictionary, indexed_dataset

    class_weights = 1.0 / np.arange(1, words + 1)
    counts = np.ceil(class_weights / class_weights.sum() * 20 * words).astype(int)
    lines = [f"w{i} {count}\n" for i, count in enumerate(counts.tolist())]
    (folder / "dict.txt").write_text("".join(lines), encoding="utf-8")
    rng = np.random.default_rng(1)
    builder = indexed_dataset.make_builder(str(folder / "train.bin"), impl="mmap", vocab_size=words + 4)
    for _ in range(batches * TOKENS // 32):
        tokens = 4 + rng.choice(words, 31, p=class_weights / class_weights.sum())  # after <s> <pad> </s> <unk>
        builder.add_item(torch.from_numpy(np.append(tokens, 2)))
    builder.finalize(str(folder / "train.idx"))
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    options = Recipe(counts=np.array(dictionary.count), top_words="all")
    build_prior(tuple(dictionary.symbols), options).save(folder / "prior")


class Contestant:
    """A training, update by update."""

    def __init__(self, data: Path, more: list[str]) -> None:
        from fairseq import options, tasks
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf
        from fairseq.trainer import Trainer

        common = f"""{data} --task llrnn_language_modeling --arch llrnn_lbl --criterion log_linear --cpu
            --decoder-embed-dim {SIZE} --decoder-hidden-size {SIZE} --output-tree huffman --tree-arity {ARITY}
            --sample-break-mode eos --tokens-per-sample 512 --max-tokens {TOKENS} --seed 1 --num-workers 0
            --lr 0.05 --clip-norm 1.0 --required-batch-size-multiple 1 --no-save"""
        parser = options.get_training_parser()
        args = options.parse_args_and_arch(parser, input_args=[*common.split(), *more])
        cfg = convert_namespace_to_omegaconf(args)
        task = tasks.setup_task(cfg.task)
        task.load_dataset("train", combine=True)
        self.trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
        self.batches = iter(self.trainer.get_train_iterator(1).next_epoch_itr(shuffle=False))
        self.parts = dict.fromkeys(PARTS, 0.0)
        for name in PARTS:
            setattr(self.trainer.optimizer, name, self._timed(name, getattr(self.trainer.optimizer, name)))

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            begin = clock()
            found = method(*args, **options)
            self.parts[name] += clock() - begin
            return found

        return timed

    def update(self) -> dict[str, float]:
        """Return the milliseconds of the next update, by part and in total."""
        batch = next(self.batches)
        self.parts = dict.fromkeys(PARTS, 0.0)
        update_ms = timed(lambda: self.trainer.train_step([batch]))
        parts = {**self.parts, "rest": update_ms - sum(self.parts.values()), "update": update_ms}
        return {name: seconds * 1e3 for name, seconds in parts.items()}


@contextmanager
def silence() -> Iterator[None]:
    logging.disable(logging.INFO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} updates instead of {FULL}")
    parser.add_argument("--optimizer", choices=("adagrad", "adam"), default="adagrad")
    parser.add_argument("--words", type=int, default=WORDS, help=f"size of the vocabulary (default: {WORDS:,})")
    parser.add_argument("--threads", type=int, default=1, help="of torch on the CPU (default: 1)")
    add_memory_option(parser)
    args = parser.parse_args()
    run_again(args.memory)
    torch.set_num_threads(args.threads)
    updates = QUICK if args.quick else FULL
    with tempfile.TemporaryDirectory() as temporary, silence():
        fairseq_llrnn.register()
        from fairseq.logging import metrics

        write_data(Path(temporary), args.words, updates + 3)
        both = {
            "dense": Contestant(Path(temporary), ["--optimizer", args.optimizer]),
            "sparse": Contestant(
                Path(temporary), ["--optimizer", f"llrnn_{args.optimizer}", "--tree-sparse-gradients"]
            ),
        }
        times: dict[str, list[dict[str, float]]] = {name: [] for name in both}
        for turn in range(updates + 2):  # the first two warm up
            for name, contestant in both.items():
                with metrics.aggregate(new_root=True):
                    found = contestant.update()
                if turn > 1:
                    times[name].append(found)
    names = (*PARTS, "rest", "update")
    middle = {
        run: {name: statistics.median(row[name] for row in rows) for name in names} for run, rows in times.items()
    }
    whole_updates = Rounds({run: [row["update"] for row in rows] for run, rows in times.items()})
    print(f"{args.words:,} words, {args.optimizer}, torch {torch.__version__}; {memory_line()}")
    print(f"  {'ms':<8}{''.join(f'{name:>16}' for name in names)}")
    for run, row in middle.items():
        print(f"  {run:<8}{''.join(f'{row[name]:>16.1f}' for name in names)}")
    figures = {f"update_{run}": round(row["update"], 1) for run, row in middle.items()}
    print(json.dumps({**figures, "update_dense_over_sparse": round(whole_updates.ratio("dense", "sparse"), 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
