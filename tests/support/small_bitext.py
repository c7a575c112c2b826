"""A bitext of a few words, for tests of lexical translations."""

from collections.abc import Callable
from pathlib import Path

from shell import Shell
from small_corpus import Done

from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

ENGLISH = ["the house", "the cat", "the window", "12 cats", "a window"]
FRENCH = ["la maison", "le chat", "la fenêtre", "12 chats", "une fenêtre"]
Run = Callable[..., Done]


def preprocess(shell: Shell, data: Path, english: list[str], french: list[str], *options: object) -> None:
    """Write the texts beside `data`, and `data`."""
    for language, lines in (("en", english), ("fr", french)):
        (data.parent / f"train.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shell.run(
        "fairseq-preprocess", "-s", "en", "-t", "fr", "--trainpref", data.parent / "train", "--destdir", data, *options
    )


def translations(prior: Prior, word: str) -> list[str]:
    """Of a source word, the best one first."""
    row = prior.find(LexicalPart).table.row(prior.source_symbols.index(word))
    return [prior.symbols[x] for x, _ in row]
