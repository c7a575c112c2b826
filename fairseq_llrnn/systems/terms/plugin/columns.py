"""Tokenisers of lines that have terms behind a tab: they cut the sentence only, and terms stay words."""

from __future__ import annotations

from typing import Any, Protocol


class Encoder(Protocol):
    """fairseq's tokeniser or cutter into pieces."""

    def encode(self, x: str) -> str: ...

    def decode(self, x: str) -> str: ...


class BeforeTab:
    """Encodes what is before the first tab of a line."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def encode(self, x: str) -> str:
        text, tab, terms = x.partition("\t")
        return f"{self.encoder.encode(text)}{tab}{terms}"

    def decode(self, x: str) -> str:
        return self.encoder.decode(x)


def before_tab(encoder: Any) -> BeforeTab | None:
    """encoder: None where a run has none."""
    return None if encoder is None else BeforeTab(encoder)
