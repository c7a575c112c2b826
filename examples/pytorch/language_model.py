"""A log-linear language model in plain PyTorch, on the embedded corpus (README.md).

Sizes: B sentences of a batch, T their length, N sentences written at once, H width.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.head import FeatureInput
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

State = tuple[Tensor, Tensor]  # of the LSTM


class LanguageModel(nn.Module):
    """Embeddings by features -> LSTM -> log-linear head."""

    def __init__(self, prior: Prior, width: int, layers: int = 1) -> None:
        super().__init__()
        self.head = LogLinearHead(prior, width, embedding=FeatureInput(width), initial_scale=None)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)

    def hidden(self, previous: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Return the states that predict the words after the tokens (B, T): (B, T, H), and the LSTM's last state."""
        hidden, state = self.lstm(self.head.embed(previous), state)
        return hidden, state

    def loss(self, targets: Tensor, reduction: str = "mean") -> Tensor:
        """Return −log p of all tokens (B, T) except padding, in nats."""
        return self.head.loss(self.hidden(self.head.previous(targets))[0], targets, reduction=reduction)

    @torch.inference_mode()
    def write(self, sentences: int, longest: int = 30, k: int = 20) -> Tensor:
        """Write N sentences, with each word sampled from the k most probable ones: (N, ≤ longest)."""
        token = self.head.encode([""] * sentences)[:, 0]  # </s>, which begins a sentence
        state, network = self.head.start(sentences), None
        written: list[Tensor] = []
        ended = torch.zeros_like(token, dtype=torch.bool)
        while len(written) < longest and not ended.all():
            hidden, network = self.hidden(token.unsqueeze(1), network)
            values, tokens = self.head.top_k(hidden[:, -1], state, k)
            token = tokens.gather(1, values.softmax(-1).multinomial(1)).squeeze(1)
            state = self.head.advance(state, token)
            written.append(token.masked_fill(ended, self.head.pad))
            ended |= token == self.head.eos
        return torch.stack(written, dim=1)


def batches(head: LogLinearHead, lines: list[str], order: Sequence[int], size: int = 64) -> Iterator[Tensor]:
    """Yield the sentences in that order as numbers, padded: (B, T)."""
    for i in range(0, len(order), size):
        yield head.encode([lines[j] for j in order[i : i + size]])


@torch.inference_mode()
def perplexity(model: LanguageModel, lines: list[str]) -> float:
    """Return the perplexity over all words and sentence ends."""
    model.eval()
    nats, words = 0.0, 0
    for batch in batches(model.head, lines, range(len(lines))):
        nats += model.loss(batch, "sum").item()
        words += int(batch.ne(model.head.pad).sum())
    return math.exp(nats / words)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of scripts/make_corpus.py")
    parser.add_argument("work", type=Path, help="folder for the prior and the checkpoint")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    args = parser.parse_args(argv)
    torch.manual_seed(1)
    if not (args.work / "prior").exists():
        text, lexicon = args.corpus / "train.txt", args.corpus / "lexicon.tsv"
        options = Recipe(text=text, words=LexiconOptions(lexicon=lexicon), top_words=1000, shapes=True)
        build_prior(args.corpus / "vocabulary.txt", options).save(args.work / "prior")
    prior = Prior.load(args.work / "prior")
    train, valid = ((args.corpus / name).read_text("utf-8").splitlines() for name in ("train.txt", "valid.txt"))
    model, epoch = LanguageModel(prior, args.width).to(args.device), 0
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    if (checkpoint := args.work / "checkpoint.pt").exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        epoch = saved["epoch"]
    while epoch < args.epochs:
        epoch += 1
        model.train()
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(epoch)).tolist()
        for batch in batches(model.head, train, order):
            optimizer.zero_grad()
            model.loss(batch).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        print(f"epoch {epoch}: validation perplexity {perplexity(model, valid):.2f}")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, part := checkpoint.with_suffix(".part"))
        part.replace(checkpoint)
    print(f"\nperplexity {perplexity(model, valid):.2f}; the model writes:")
    print("\n".join(f"    {sentence}" for sentence in model.head.decode(model.write(3))))
    first = model.head.encode(valid[:1])
    words = model.head.explain(model.hidden(model.head.previous(first))[0], first[0])
    word = max(words[:-1], key=lambda word: word.log_prob - word.log_background)
    print(f"\nwhat the network adds to the background of {word.token!r}, log b {word.log_background:.2f}:")
    for feature, value in (*word.own_features, ("normaliser", word.normaliser), ("log p", word.log_prob)):
        print(f"    {feature:<20} {value:+.2f}")


if __name__ == "__main__":
    main()
