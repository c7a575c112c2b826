"""Characters, or subword pieces of sentencepiece, for a softmax over pieces.

If the last piece of a word ends with a blank, the product over the pieces of a word is a probability of the word: those
of all words and of the sentence's end have a sum of at most 1 (other pieces of the same word are left out).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fairseq_llrnn.errors import need_library

BLANK = "\u2581"  # at the end of the last piece of a word
CHARACTERS = 1  # the size of pieces that are characters
MOST_CHARACTERS = 1_000_000  # of a text, more than Unicode has; sentencepiece needs a limit


class Pieces:
    """Byte-pair encoding (Sennrich et al. 2016), trained on the training text, that can encode any text."""

    def __init__(self, model: Path) -> None:
        need_library("pieces", "sentencepiece", "pieces")
        import sentencepiece

        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(model))

    @classmethod
    def train(cls, text: Path, model: Path, size: int, blank_last: bool = False) -> Pieces:
        """Learn `size` pieces from a text, or its characters, and write them as `model`.

        A small text has fewer pieces. blank_last: a blank ends the last piece of a word, instead of beginning its first
        one.
        """
        need_library("pieces", "sentencepiece", "pieces")
        import sentencepiece

        kind, most = ("char", MOST_CHARACTERS) if size == CHARACTERS else ("bpe", size)
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(model.with_suffix("")), model_type=kind, vocab_size=most,
            character_coverage=1.0, byte_fallback=True, normalization_rule_name="identity",
            remove_extra_whitespaces=False, treat_whitespace_as_suffix=blank_last, hard_vocab_limit=False,
            minloglevel=2, num_threads=1,
        )  # fmt: skip
        return cls(model)

    @property
    def size(self) -> int:
        """The number of pieces, with those of bytes. A small text has fewer than requested."""
        size: int = self.processor.get_piece_size()
        return size

    def write(self, line: str) -> str:
        """Return a line in pieces, with blanks between them."""
        return " ".join(self.processor.encode(line, out_type=str))

    @staticmethod
    def sizes(pieces: Sequence[str]) -> list[int]:
        """Return the number of pieces of each word of a line, with blanks at the ends of words."""
        ends = [number for number, piece in enumerate(pieces, 1) if piece.endswith(BLANK)]
        return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]

    def symbols(self, lines: Sequence[str]) -> Counter[str]:
        """Return all pieces, with their counts in the training text, at least 1."""
        names = (self.processor.id_to_piece(i) for i in range(self.processor.get_piece_size()))
        own = {piece for piece in names if piece not in ("<unk>", "<s>", "</s>")}
        counts = Counter(piece for line in lines for piece in self.write(line).split(" "))
        return Counter({piece: max(1, counts[piece]) for piece in own})
