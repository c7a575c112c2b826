"""The picture of how much a network computed as it read each token (Jernite 2018, figure 2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_llrnn.explain.pictures import new_figure, plain, save

LINE = 60  # tokens beside each other
INCHES, HEIGHT = 0.22, 1.3  # of a token, of a line


@dataclass(frozen=True)
class ReadSentence:
    """What was read, and the share of the dimensions that was computed for each token."""

    tokens: Sequence[str]
    shares: Sequence[float]


def lines_of(sentences: Sequence[ReadSentence]) -> list[ReadSentence]:
    """The sentences, cut into lines that fit the picture."""
    return [
        ReadSentence(sentence.tokens[start : start + LINE], sentence.shares[start : start + LINE])
        for sentence in sentences
        for start in range(0, len(sentence.tokens), LINE)
    ]


def draw_computation(sentences: Sequence[ReadSentence], path: Path) -> None:
    """Write a PNG with a bar for each token. Raises OSError."""
    lines = lines_of(sentences)
    longest = max(len(line.tokens) for line in lines)
    figure = new_figure(INCHES * longest + 1.0, HEIGHT * len(lines) + 0.3)
    for number, line in enumerate(lines, start=1):
        axes = figure.add_subplot(len(lines), 1, number)
        axes.bar(range(len(line.shares)), line.shares, color="#4c72b0", width=0.85)
        labels = [plain(token) for token in line.tokens]
        axes.set_xticks(range(len(labels)), labels, fontsize=9, rotation=0 if max(map(len, labels)) < 3 else 60)
        axes.set_xlim(-0.6, longest - 0.4)
        axes.set_ylim(0.0, 1.0)
        axes.set_yticks([0.0, 0.5, 1.0], ["0", "0.5", "1"], fontsize=7)
        axes.set_ylabel("m", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save(figure, path, dpi=110)
