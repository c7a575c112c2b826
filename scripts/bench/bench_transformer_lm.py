#!/usr/bin/env python3
"""Train a Transformer language model with a softmax or a log-linear output, or time whole training steps of both.

    python scripts/bench/bench_transformer_lm.py PRIOR TRAIN VALID TEST --output log-linear
    python scripts/bench/bench_transformer_lm.py PRIOR TRAIN VALID TEST --time 20
    python scripts/bench/bench_transformer_lm.py PRIOR TRAIN VALID TEST --time 20 --device cuda \\
        --layers 6 --context 256 --batch 32768 --dropout 0.2

The first trains one output and prints one JSON line. The others time several outputs in turn, on a CPU and on a GPU.

The texts have one tokenised sentence per line and may be gzip files. Their words are those of the prior's dictionary.
Outputs: softmax (an embedding tied to the output, over the unigram of TRAIN) and log-linear (tied feature weights).
The network is a Transformer with normalisation before each layer and after the last one. In training, the learning rate
rises for --warm-up updates and then falls linearly to 0. Perplexity includes </s>. Only the rest after the last whole
chunk is left out. "seconds" (of the processor on a CPU) and "tokens_per_second" leave perplexities out. "peak_gb" is of
torch's allocator on a GPU, and all resident memory on a CPU.

With --time N, whole steps are timed (forward, backward, clipping, AdamW), N of each contestant in turn:

    log-linear            the network is compiled, if --compile is given; the output runs eagerly
    log-linear, compiled  loss and network compiled, if --compile is given
    softmax               cross_entropy; with --compile, it is compiled with the network
    softmax, chunked      torch's linear_cross_entropy with its default chunks (torch 2.13)
    softmax, Liger        LigerFusedLinearCrossEntropyLoss, on a GPU, if liger_kernel is installed
    softmax, cut          cut_cross_entropy.linear_cross_entropy, also on a GPU; it has no bias, so no unigram

A contestant whose first step fails is left out with its error. The table has tokens per second, the ratio to the
softmax, parameters, and the peak memory of a step: on a GPU by torch's allocator, without weights, gradients and the
optimiser's state, on a CPU the resident memory above that before the step. The last line is a JSON object with
training_step_over_softmax, the seconds of the fastest log-linear step over those of the softmax.
"""

import argparse
import gzip
import json
import math
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed

from measuring import clock, device_name, in_turns, parse, peak_memory, resident, return_freed_blocks, timed

from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.features.dictionary import EOS, UNK
from fairseq_llrnn.functional import to_autocast
from fairseq_llrnn.head import FeatureInput

OUTPUTS = ("softmax", "log-linear")
TIMED = ("log-linear", "log-linear, compiled", "softmax", "softmax, chunked", "softmax, Liger", "softmax, cut")


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each with a normalisation before it and a residual connection."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention_in, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), self.dropout, nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, H) to (B, T, H)."""
        projected = self.attention_in(self.norms[0](x)).unflatten(2, (3, self.heads, -1))
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # shape: (B, heads, T, H / heads)
        p = self.dropout.p if self.training else 0.0
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=p)
        x = x + self.dropout(self.attention_out(attended.transpose(1, 2).flatten(2)))
        return x + self.dropout(self.feed_forward(self.norms[1](x)))


class Transformer(nn.Module):
    """Map embeddings (B, T, H) to hidden states (B, T, H)."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        self.positions = nn.Parameter(0.02 * torch.randn(args.context, args.width))
        self.layers = nn.Sequential(*(Layer(args.width, args.heads, args.dropout) for _ in range(args.layers)))
        self.norm, self.dropout = nn.LayerNorm(args.width), nn.Dropout(args.dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.dropout(self.norm(self.layers(self.dropout(x + self.positions[: x.size(1)]))))
        return hidden


class Softmax(nn.Module):
    """A row per word, shared with its embedding. The bias starts as the unigram.

    Args:
        kind: implementation of the loss, one of TIMED (module docstring).
    """

    def __init__(self, width: int, log_unigram: Tensor, kind: str) -> None:
        super().__init__()
        self.kind = kind
        if kind == "softmax, Liger":
            from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

            self.liger = LigerFusedLinearCrossEntropyLoss()
        if kind == "softmax, cut":
            from cut_cross_entropy import linear_cross_entropy

            self.cut = linear_cross_entropy
        self.embedding = nn.Embedding(len(log_unigram), width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.bias = nn.Parameter(log_unigram.clone())

    def embed(self, tokens: Tensor) -> Tensor:
        vectors: Tensor = self.embedding(tokens)
        return vectors

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        hidden, targets = to_autocast(hidden.flatten(0, 1)), targets.flatten()  # only torch's products do so themselves
        rows, bias = self.embedding.weight.to(hidden.dtype), self.bias.to(hidden.dtype)
        loss: Tensor
        if self.kind == "softmax, chunked":
            options = nn.LinearCrossEntropyOptions()
            loss = functional.linear_cross_entropy(hidden, rows, targets, linear_bias=bias, options=options)
        elif self.kind == "softmax, Liger":
            loss = self.liger(rows, hidden, targets, bias)
        elif self.kind == "softmax, cut":
            loss = self.cut(hidden, rows, targets)
        else:
            loss = functional.cross_entropy(functional.linear(hidden, rows, bias).float(), targets)
        return loss


class Contestant:
    """A language model with its optimiser. Its seed determines weights, dropout and the order of the text."""

    def __init__(self, output: str, prior: Prior, train: Tensor, args: argparse.Namespace) -> None:
        torch.manual_seed(args.seed)
        self.args, self.train = args, train
        self.network = Transformer(args)
        self.output: Any
        if output.startswith("softmax"):
            counts = torch.bincount(train, minlength=len(prior.symbols)) + 0.5
            self.output = Softmax(args.width, (counts / counts.sum()).log(), output)
        else:
            self.output = LogLinearHead(prior, args.width, embedding=FeatureInput(args.width, tied=True))
        self.model = nn.ModuleList([self.network, self.output]).to(args.device)
        if args.compile:
            self.network.compile()
        is_compiled = args.compile and (not args.time or output in ("log-linear, compiled", "softmax"))
        self.loss_of = torch.compile(self.output.loss) if is_compiled else self.output.loss
        matrices, vectors = ([p for p in self.model.parameters() if (p.dim() > 1) == large] for large in (True, False))
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=args.rate, betas=(0.9, 0.98), fused=True)
        self.generator = torch.Generator().manual_seed(args.seed)
        self.batches = self._batches()

    def _batches(self) -> Iterator[Tensor]:
        """Yield chunks of `context` tokens and the one after them, in random order, (B, T + 1), without end."""
        length, size = self.args.context, max(1, self.args.batch // self.args.context)
        while True:
            offset = int(torch.randint(length, (1,), generator=self.generator))
            chunks = (len(self.train) - 1 - offset) // length
            order = torch.randperm(chunks, generator=self.generator).to(self.train.device) * length + offset
            for starts in order.split(size):
                if len(starts) == min(size, chunks):
                    yield self.train[starts.unsqueeze(1) + torch.arange(length + 1, device=starts.device)]

    def _loss(self, tokens: Tensor) -> Tensor:
        reduced = (self.args.bfloat16 or self.args.device == "cuda") and self.model.training
        with torch.autocast(self.args.device, torch.bfloat16, enabled=reduced):
            hidden = self.network(self.output.embed(tokens[:, :-1]))
            loss: Tensor = (self.loss_of if self.model.training else self.output.loss)(hidden, tokens[:, 1:])
        return loss

    def step(self) -> Tensor:
        """Run an update and return the loss before it."""
        loss = self._loss(next(self.batches))
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        return loss.detach()

    def set_rate(self, rate: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    @torch.no_grad()
    def perplexity(self, tokens: Tensor) -> float:
        self.model.eval()
        length, nats, chunks = self.args.context, 0.0, (len(tokens) - 1) // self.args.context
        for starts in (torch.arange(chunks, device=tokens.device) * length).split(16):
            batch = tokens[starts.unsqueeze(1) + torch.arange(length + 1, device=tokens.device)]
            nats += self._loss(batch).item() * len(starts)
        self.model.train()
        return math.exp(nats / chunks)


def train(contestant: Contestant, valid: Tensor, test: Tensor) -> dict[str, Any]:
    """Train, and return the figures of the run."""
    args = contestant.args
    updates = round(args.passes * len(contestant.train) / args.batch)
    curve, seconds, begin = [], 0.0, clock(args.device)
    for update in range(updates):
        contestant.set_rate(args.rate * min(1.0, (update + 1) / args.warm_up) * (1.0 - update / updates))
        contestant.step()
        if (update + 1) % max(1, updates // 4) == 0 and update + 1 < updates:
            seconds += clock(args.device) - begin
            curve.append((update + 1, round(contestant.perplexity(valid), 2)))
            begin = clock(args.device)
    seconds += clock(args.device) - begin
    peak = torch.cuda.max_memory_allocated() if args.device == "cuda" else resident("VmHWM")
    return {
        "updates": updates, "seconds": round(seconds, 1), "tokens_per_second": round(updates * args.batch / seconds),
        "peak_gb": round(peak / 1e9, 2), "valid": round(contestant.perplexity(valid), 2),
        "test": round(contestant.perplexity(test), 2), "curve": curve,
    }  # fmt: skip


def measure(prior: Prior, text: Tensor, args: argparse.Namespace) -> dict[str, Any]:
    """Time steps of contestants in turn, and print a table."""
    contestants, failed = dict[str, Contestant](), dict[str, str]()
    for name in TIMED if args.device == "cuda" else TIMED[:4]:
        if name == "log-linear, compiled" and not args.compile:
            continue
        try:
            contestants[name] = Contestant(name, prior, text, args)
            contestants[name].step()
        except Exception as error:  # of an optional package or a compiler: any
            contestants.pop(name, None)
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    rounds = in_turns(
        {name: partial(timed, each.step, args.device) for name, each in contestants.items()}, args.time, args.time
    )
    if args.device == "cpu":
        return_freed_blocks()
    memory = {name: peak_memory(each.step, args.device) / 1e9 for name, each in contestants.items()}
    size = min(max(1, args.batch // args.context), (len(text) - 1) // args.context) * args.context
    speeds = {name: round(size / rounds.median(name)) for name in contestants}
    print(f"{'':<24}{'tokens/s':>10}{'of softmax':>12}{'parameters':>14}{'GB of a step':>14}")
    for name, each in contestants.items():
        parameters = sum(parameter.numel() for parameter in each.model.parameters())
        ratio = rounds.ratio("softmax", name) if "softmax" in contestants else math.nan
        print(f"{name:<24}{speeds[name]:>10,}{ratio:>12.2f}{parameters:>14,}{memory[name]:>14.3f}")
    for name, reason in failed.items():
        print(f"{name:<24}left out: {reason}")
    ours = [name for name in contestants if name.startswith("log-linear")]
    ratio = math.nan
    if ours and "softmax" in contestants:
        ratio = rounds.ratio(max(ours, key=speeds.__getitem__), "softmax")
    return {
        "training_step_over_softmax": round(ratio, 3),
        "tokens_per_second": speeds, "step_gb": {name: round(value, 4) for name, value in memory.items()},
    }  # fmt: skip


def read_tokens(path: Path, index: dict[str, int], most: int | None, device: str) -> Tensor:
    """Return the first tokens of a text with </s> after each sentence: (N,)."""
    tokens: list[int] = []
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            if words := line.split():
                tokens += [*(index.get(word, index[UNK]) for word in words), index[EOS]]
            if most is not None and len(tokens) >= most:
                break
    return torch.tensor(tokens[:most], device=device)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prior", type=Path, help="folder of `llrnn prior`")
    parser.add_argument("texts", type=Path, nargs=3, metavar="TEXT", help="for training, validation and test")
    parser.add_argument("--output", choices=OUTPUTS, default="log-linear", help="of the model that is trained")
    parser.add_argument("--time", type=int, metavar="N", help="time N steps of all contestants instead of training")
    parser.add_argument("--tokens", type=int, help="read only the first ones of the training text")
    parser.add_argument("--passes", type=float, default=1.0, help="over the training text")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--context", type=int, default=64, help="tokens that the network reads at once")
    parser.add_argument("--batch", type=int, default=1024, help="tokens of an update")
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--warm-up", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="compile the network and the loss")
    parser.add_argument(
        "--bfloat16", action="store_true", help="train under autocast, as always on a GPU; perplexities are in float32"
    )
    args = parse(parser)
    prior = Prior.load(args.prior)
    index = {symbol: number for number, symbol in enumerate(prior.symbols)}
    tokens = [
        read_tokens(path, index, args.tokens if i == 0 else None, args.device) for i, path in enumerate(args.texts)
    ]
    for path, text in zip(args.texts, tokens, strict=True):
        if len(text) < 2 * args.context:
            parser.error(f"{path}: expected at least {2 * args.context} tokens, twice --context, found {len(text)}")
    settings = {"rows": prior.counts()["output signatures"], "words": len(prior.symbols), "torch": torch.__version__,
                "device": device_name(args)}  # fmt: skip
    if args.time:
        found = measure(prior, tokens[0], args)
    else:
        contestant = Contestant(args.output, prior, tokens[0], args)
        options = "output passes width layers dropout context batch rate seed compile bfloat16".split()
        settings |= {name: getattr(args, name) for name in options}
        settings |= {"tokens": len(tokens[0]), "parameters": sum(p.numel() for p in contestant.model.parameters())}
        found = train(contestant, *tokens[1:])
    print(json.dumps({**settings, **found}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
