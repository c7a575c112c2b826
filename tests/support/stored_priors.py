"""The priors and models of tests/stored, made at v0.2.0-rc1, and what is compared with the values recorded there."""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import torch

from fairseq_llrnn import LogLinearHead
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.prior.prior import Prior

ARCHIVE = Path(__file__).resolve().parents[1] / "stored" / "stored.zip"
HIDDEN = 4


def unpack(place: Path) -> dict[str, dict[str, Any]]:
    """Unpack the archive into a folder; return the recorded values of `priors` and `models`, by name."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(place)
    recorded: dict[str, dict[str, Any]] = json.loads((place / "scores.json").read_text(encoding="utf-8"))
    return recorded


def fill(module: torch.nn.Module) -> None:
    """Give the parameters values that depend on their names and shapes alone."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            first = int(hashlib.sha256(name.encode()).hexdigest()[:4], 16)
            parameter.copy_(0.3 * torch.sin(first + 1.7 * torch.arange(parameter.numel())).view_as(parameter))


def facts(prior: Prior, lines: list[str], sources: list[str]) -> dict[str, Any]:
    """What a prior is, and what a head with it says of sentences: losses in nats, one a line."""
    from_source = bool(prior.source_symbols)
    torch.manual_seed(1)
    head = LogLinearHead(prior, HIDDEN, source_size=HIDDEN if from_source else None).eval()
    fill(head)
    losses: list[float | None] = []
    for line, source in zip(lines, sources, strict=True):
        words = [word for word in line.split() if word in prior.symbols and prior.allowed[prior.index(word)]]
        targets = torch.tensor([[*map(prior.index, words), *([] if prior.has_labels else [head.eos])]])
        hidden = torch.sin(torch.arange(targets.numel() * HIDDEN)).view(1, -1, HIDDEN)
        given = {}
        if from_source:
            unk = prior.source_symbols.index("<unk>")
            indices = [prior.source_index(word) for word in source.split()]
            given["source"] = torch.tensor([[*(unk if i is None else i for i in indices), 2]])
            given["source_states"] = torch.cos(torch.arange(given["source"].numel() * HIDDEN)).view(1, -1, HIDDEN)
        try:
            losses.append(float(head.loss(hidden, targets, reduction="sum", **given).detach()))
        except DataError:  # a grammar forbids it
            losses.append(None)
    return {"fingerprint": prior.fingerprint, "counts": prior.counts(), "losses": losses}


def texts_of(name: str, place: Path) -> tuple[list[str], list[str]]:
    """Test sentences that suit a prior or model, and their sources."""

    def read(file: str) -> list[str]:
        return (place / file).read_text(encoding="utf-8").splitlines()[:5]

    if name in ("labels", "bag", "classifier"):
        return [line.split()[0] for line in read("test.labels")], read("test.text")
    if name in ("novel", "discourse"):
        lines = [line.lower() for line in read("novel-test.txt")]
        return lines, lines
    of_pieces = "pieces-" if "pieces" in name else ""
    pairs = read(f"{of_pieces}test.tgt"), read(f"{of_pieces}test.src")
    texts = read("test.txt")
    return pairs if name in PAIRS else (texts, texts)


PAIRS = (
    *("evidence", "lexical", "terms", "lemmas", "placed", "pieces"),
    *("lstm", "transformer", "transformer-pieces", "transformer-terms", "rctm", "encoder-decoder", "rnnsearch"),
)
