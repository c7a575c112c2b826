"""Convert a text to other units: characters, or subword pieces; and write their dictionaries.

A model gives a probability to the same lines of text in any units, so that bits per character can be compared
(`unit_bits.py`).
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

BLANK = "\N{LOWER ONE EIGHTH BLOCK}"  # ▁, for a blank among characters


def as_characters(line: str) -> str:
    """Split a line into characters, blanks included."""
    return " ".join(BLANK if c == " " else c for c in line)


def character_symbols(lines: Sequence[str]) -> Counter[str]:
    """Count every character of the training text."""
    return Counter(symbol for line in lines for symbol in as_characters(line).split(" "))


class Pieces:
    """Byte-pair encoding (Sennrich et al. 2016), trained on the training text, that can encode any text."""

    def __init__(self, model: Path) -> None:
        import sentencepiece

        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(model))

    @classmethod
    def train(cls, text: Path, model: Path, size: int) -> "Pieces":
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(model.with_suffix("")), model_type="bpe", vocab_size=size,
            character_coverage=1.0, byte_fallback=True, normalization_rule_name="identity",
            remove_extra_whitespaces=False, hard_vocab_limit=False, minloglevel=2, num_threads=1,
        )  # fmt: skip
        return cls(model)

    def write(self, line: str) -> str:
        return " ".join(self.processor.encode(line, out_type=str))

    def symbols(self, lines: Sequence[str]) -> Counter[str]:
        """Return all pieces, with their counts in the training text, at least 1."""
        known = (self.processor.id_to_piece(i) for i in range(self.processor.get_piece_size()))
        own = {piece for piece in known if piece not in ("<unk>", "<s>", "</s>")}
        counts = Counter(piece for line in lines for piece in self.write(line).split(" "))
        return Counter({piece: max(1, counts[piece]) for piece in own})


def write_dictionary(path: Path, counts: Counter[str]) -> None:
    """Write fairseq's dict.txt, the most frequent symbols first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    path.write_text("".join(f"{symbol} {count}\n" for symbol, count in ordered), encoding="utf-8")


def lines_of(path: Path) -> list[str]:
    """Return the lines of a text, with words between single blanks."""
    return [" ".join(line.split()) for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")]
