"""Train Marian models of any output with Seq2SeqTrainer, and run `generate`: code shared by the scripts here.

Sizes: B sentences of a batch, L and T source and target length.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
from transformers import PreTrainedModel, PrinterCallback, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

IGNORED = -100  # as transformers marks labels that are no targets
Example = dict[str, list[int]]  # input_ids, labels and, where these are not the text's, text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options of sizes and training."""
    for name, value in (("width", 128), ("ffn", 256), ("layers", 2), ("heads", 4), ("batch", 64), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"(default: {value})")
    parser.add_argument("--updates", type=int, default=2000, help="(default: 2000)")
    parser.add_argument("--warmup", type=int, default=400, help="updates of a growing learning rate (default: 400)")
    parser.add_argument("--lr", type=float, default=0.003, help="(default: 0.003)")
    parser.add_argument("--dropout", type=float, default=0.3, help="(default: 0.3)")
    parser.add_argument("--sorted-batches", action="store_true", help="of neighbours by length, as fairseq's")
    parser.add_argument("--label-smoothing", type=float, default=0.1, help="(default: 0.1)")


def sizes(args: argparse.Namespace) -> dict[str, Any]:
    """Return the sizes of a Marian configuration: a Transformer like fairseq's."""
    both = {"layers": args.layers, "attention_heads": args.heads, "ffn_dim": args.ffn}
    sided = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in both.items()}
    own = {"scale_embedding": True, "activation_function": "relu", "init_std": 0.06, "max_position_embeddings": 256}
    return {**sided, **own, "d_model": args.width, "dropout": args.dropout}


def padded(examples: Sequence[Example], pad: int, start: int) -> dict[str, Tensor]:
    """Return a batch for the Trainer, padded on the right: (B, L) and (B, T). start: first input of the decoder."""
    source = pad_sequence([torch.tensor(one["input_ids"]) for one in examples], True, pad)
    labels = pad_sequence([torch.tensor(one["labels"]) for one in examples], True, IGNORED)
    read = torch.cat([torch.full_like(labels[:, :1], start), labels[:, :-1]], dim=1)
    read = read.masked_fill(read == IGNORED, pad)  # the Trainer's label smoothing keeps labels from the model
    batch = {"input_ids": source, "attention_mask": (source != pad).long(), "decoder_input_ids": read, "labels": labels}
    if "text" in examples[0]:
        batch["text"] = pad_sequence([torch.tensor(one["text"]) for one in examples], True, IGNORED)
    return batch


class SortedBatches:
    """Batches of examples of similar source and target length, the same in each epoch, in another order."""

    def __init__(self, examples: Sequence[Example], size: int, seed: int) -> None:
        self.seed, self.epoch = seed, 0
        order = np.random.RandomState(seed).permutation(len(examples))
        for side in ("labels", "input_ids"):
            lengths = np.array([len(one[side]) for one in examples])
            order = order[np.argsort(lengths[order], kind="stable")]
        self.batches = [order[at : at + size].tolist() for at in range(0, len(order), size)]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        self.epoch += 1
        batches = list(self.batches)
        np.random.RandomState(self.seed + self.epoch).shuffle(batches)
        return iter(batches)


class WithSortedBatches(Seq2SeqTrainer):
    """A Trainer that uses them."""

    def get_train_dataloader(self) -> DataLoader[Any]:
        examples: Any = self.train_dataset
        batches = SortedBatches(examples, self.args.per_device_train_batch_size, self.args.seed)
        return DataLoader(examples, batch_sampler=batches, collate_fn=self.data_collator)


def fit(model: PreTrainedModel, examples: Sequence[Example], out: Path, args: argparse.Namespace, **more: Any) -> None:
    """Train, and save in `out`. more: of Seq2SeqTrainingArguments."""
    set_seed(args.seed)
    options = Seq2SeqTrainingArguments(
        output_dir=str(out / "checkpoints"),
        max_steps=args.updates,
        per_device_train_batch_size=args.batch,
        train_sampling_strategy="group_by_length",
        learning_rate=args.lr,
        lr_scheduler_type="linear",
        warmup_steps=args.warmup,
        adam_beta2=0.98,
        max_grad_norm=1.0,
        save_strategy="no",
        logging_steps=100,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        seed=args.seed,
        **more,
    )
    pad, start = model.config.pad_token_id, model.config.decoder_start_token_id
    trainer = (WithSortedBatches if args.sorted_batches else Seq2SeqTrainer)(
        model, options, train_dataset=examples, data_collator=lambda some: padded(some, pad, start)
    )
    trainer.remove_callback(PrinterCallback)
    begin = time.process_time()
    trainer.train()
    print(f"{args.updates} updates: {time.process_time() - begin:.0f} seconds of processor time")
    model.save_pretrained(out)


def in_batches(lengths: Sequence[int], size: int = 50) -> Iterator[list[int]]:
    """Return the numbers of sentences of similar length."""
    order = sorted(range(len(lengths)), key=lambda at: lengths[at])
    yield from (order[at : at + size] for at in range(0, len(order), size))


def generated(
    model: PreTrainedModel,
    sources: Sequence[list[int]],
    longest: int,
    beam: int,
    readable: Callable[[Tensor], Tensor] = lambda source: source,
    processors: Callable[[Tensor], list[Any]] = lambda source: [],
) -> Iterator[tuple[int, Tensor]]:
    """Yield the number and the best translation of each source.

    Args:
        readable: returns source tokens (B, L) as input ids of the model's encoder.
        processors: returns the processors of `generate` for these sources.
    """
    pad = model.config.pad_token_id
    for numbers in in_batches([len(source) for source in sources]):
        batch = pad_sequence([torch.tensor(sources[at]) for at in numbers], True, pad)
        found = model.generate(
            readable(batch),
            attention_mask=(batch != pad).long(),
            num_beams=beam,
            early_stopping=True,
            max_new_tokens=longest,
            logits_processor=processors(batch),
        )
        yield from zip(numbers, found, strict=True)
