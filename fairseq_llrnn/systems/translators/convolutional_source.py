"""What a recurrent language model reads of a source sentence beside each word, made by convolutions.

Sizes: B batch, L source length, Q width of a vector, M vectors. Source: Kalchbrenner & Blunsom 2013: RCTM I, one
vector for all words of the target (M = 1), and RCTM II, one for each place in it. The paper unfolds to the length that
the target has, and adds the length's probability; here it is the most probable length, in training and search alike,
so that a next word never depends on how long its sentence will be.
"""

from __future__ import annotations

from torch import Tensor, nn

from fairseq_llrnn.networks.recurrent import dropout, roll_rows, word_table
from fairseq_llrnn.systems.translators.sentence_convolutions import (
    LONGEST,
    InvertedNgramModel,
    NgramModel,
    SentenceModel,
    stretch,
)
from fairseq_llrnn.systems.translators.target_length import PoissonLength, most_probable


class ConvolutionalSource(nn.Module):
    """Embedding -> a state per source word, and M vectors of the sentence.

    Args:
        num_words, pad: of the source dictionary. size: Q.
        ngram_layers: None for a vector of the whole sentence; else of the n-gram model and of its inverted counterpart.
        dropout_in: on the words' vectors. variational: one mask per sentence.
        embedding: tokens (B, L) -> (B, L, Q), zero at padding; None: a table with a row per word.
    """

    def __init__(
        self,
        num_words: int,
        pad: int,
        size: int,
        ngram_layers: int | None = None,
        dropout_in: float = 0.0,
        variational: bool = False,
        embedding: nn.Module | None = None,
        longest: int = LONGEST,
    ) -> None:
        super().__init__()
        self.pad, self.output_size = pad, size
        self.dropout_in, self.variational = dropout_in, variational
        self.embedding = word_table(num_words, size, pad) if embedding is None else embedding
        self.sentence: SentenceModel | None = None
        self.length: PoissonLength | None = None
        if ngram_layers is None:
            self.sentence = SentenceModel(size, longest)
        else:
            self.ngrams = NgramModel(size, ngram_layers)
            self.translate = nn.Linear(size, size, bias=False)  # T
            self.unfolded = InvertedNgramModel(size, ngram_layers)
            self.length = PoissonLength()

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Read sentences (B, L), padded on either side.

        Returns:
            states (B, L, Q), each at its word's place, zero on padding; vectors (B, M, Q): those of places 1 to M of
            the target, of which the last one stands for all behind it, too.
        """
        valid = tokens.ne(self.pad)
        lengths, before = valid.sum(1), valid.long().argmax(1)  # shape: (B,) each
        states = dropout(self.embedding(tokens), self.dropout_in, self.training, self.variational)
        states = states * valid.unsqueeze(-1)
        x = roll_rows(states, -before)
        if self.sentence is not None:
            return states, self.sentence(x, lengths).unsqueeze(1)
        assert self.length is not None
        x, columns = self.ngrams(x, lengths)
        wanted = most_probable(self.length(lengths)).clamp_min(self.unfolded.n) - self.unfolded.n + 1
        return states, self.unfolded(stretch(self.translate(x), columns, wanted), wanted)
