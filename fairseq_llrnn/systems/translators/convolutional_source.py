"""What convolutions make of a source sentence, for a language model to read beside each word.

Sizes: B batch, L words of the source, Q dimensions of a word's vector, C columns, M vectors of a sentence. Source:
Kalchbrenner & Blunsom 2013.

The convolutional sentence model (CSM) makes one vector of a sentence, the convolutional n-gram model (CGM) vectors of
its n-grams, by convolutions whose widths grow from layer to layer. Every dimension has kernels of its own:

    E¹ = the words' vectors       Eⁱ[c] = tanh( Σ_j Kⁱ[j] ∘ Eⁱ⁻¹[c + j] ), j < i       i = 2, 3, …: C − i + 1 columns

until one column is left; where 1 < C < i, a kernel of its own for C columns, Lᶜ, makes one of them. The CGM stops
after some layers, each column then being one of n = 1 + 1 + 2 + … words.

A `ConvolutionalSource` makes one vector for all words of the target (RCTM I, M = 1), or one for each place in it
(RCTM II). The paper unfolds to the length that the target has, and adds the length's probability; here it is the most
probable length, in training and search alike, so that a next word never depends on how long its sentence will be.

The length m of a translation is Poisson(λ(k)), k the length of the source (`PoissonLength`). λ(k) = α k + β, α and β
learned.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.networks.recurrent import dropout, roll_rows, word_table

LONGEST = 100  # words that one kernel for each layer is meant for; longer sentences use the widest one again and again


class Kernels(nn.Module):
    """Kernels of all widths from 2 to `widest`, Q numbers for each of their places, one below the other."""

    def __init__(self, widest: int, size: int) -> None:
        super().__init__()
        self.widest = widest
        self.weight = nn.Parameter(torch.empty(_start(widest + 1), size))
        with torch.no_grad():
            for width in range(2, widest + 1):  # so that sums of many columns are about as large as those of few
                self.of_width(width).uniform_(-1, 1).mul_(math.sqrt(3 / width))

    def of_width(self, width: int) -> Tensor:
        """(width, Q)"""
        return self.weight[_start(width) : _start(width + 1)]

    def fold(self, x: Tensor, width: int) -> Tensor:
        """Each `width` columns to one: (B, C, Q) -> (B, C − width + 1, Q)."""
        columns, kernel = x.size(1) - width + 1, self.of_width(width)
        total = x[:, :columns] * kernel[0]
        for j in range(1, width):
            total = total + x[:, j : j + columns] * kernel[j]
        return torch.tanh(total)

    def unfold(self, x: Tensor, width: int) -> Tensor:
        """The other way, each column to `width`, added where they meet: (B, C, Q) -> (B, C + width − 1, Q)."""
        kernel, columns = self.of_width(width), x.size(1)
        out = x.new_zeros(x.size(0), columns + width - 1, x.size(2))
        for j in range(width):
            out = out + nn.functional.pad(x * kernel[j], (0, 0, j, width - 1 - j))
        return torch.tanh(out)


def _start(width: int) -> int:
    """Where the kernel of a width begins, below all narrower ones."""
    return width * (width - 1) // 2 - 1


def words_of_column(layers: int) -> int:
    """n, the words that a column stands for after so many layers of an n-gram model."""
    return 1 + layers * (layers + 1) // 2


class SentenceModel(nn.Module):
    """The CSM: sentences of any length -> a vector each."""

    def __init__(self, size: int, longest: int = LONGEST) -> None:
        """size: Q."""
        super().__init__()
        widest = max(3, math.ceil(math.sqrt(2 * longest)))
        self.layers = Kernels(widest, size)
        self.last = Kernels(widest - 1, size)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(B, L, Q), of which the first lengths[i] ≥ 1 columns count, -> (B, Q)."""
        # whatever the lengths, all weights have a gradient: torch's DistributedDataParallel waits for it
        result = x.new_zeros(x.size(0), x.size(2)) + 0 * (self.layers.weight[0] + self.last.weight[0])
        rows, width = torch.arange(len(x), device=x.device), 2
        while len(rows):
            for columns in sorted(set(lengths[lengths < width].tolist())):
                chosen = lengths == columns
                vectors = x[chosen, 0] if columns == 1 else self.last.fold(x[chosen, :columns], columns)[:, 0]
                result = result.index_copy(0, rows[chosen], vectors.to(result.dtype))
            rest = lengths >= width
            rows, x, lengths = rows[rest], x[rest], lengths[rest]
            if len(rows):
                x, lengths = self.layers.fold(x, width), lengths - width + 1
            width = min(width + 1, self.layers.widest)
        return result


class NgramModel(nn.Module):
    """The CGM: sentences -> a vector for each of their n-grams; a sentence of fewer words counts as one n-gram."""

    def __init__(self, size: int, layers: int) -> None:
        """size: Q. layers: 1 for pairs of words, 2 for n = 4, 3 for n = 7."""
        super().__init__()
        self.n = words_of_column(layers)
        self.layers = Kernels(layers + 1, size)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, L, Q), zero behind lengths[i] columns, -> (B, C, Q) and how many columns of each count."""
        x = nn.functional.pad(x, (0, 0, 0, max(0, self.n - x.size(1))))
        for width in range(2, self.layers.widest + 1):
            x = self.layers.fold(x, width)
        return x, lengths.clamp_min(self.n) - self.n + 1


class InvertedNgramModel(nn.Module):
    """The inverted CGM: vectors of n-grams -> a vector for each word of a sentence."""

    def __init__(self, size: int, layers: int) -> None:
        super().__init__()
        self.n = words_of_column(layers)
        self.layers = Kernels(layers + 1, size)

    def forward(self, x: Tensor, columns: Tensor) -> Tensor:
        """(B, C, Q), of which the first columns[i] count, -> (B, C + n − 1, Q); behind the end, its last vector."""
        place = torch.arange(x.size(1) + self.n - 1, device=x.device)
        lengths = columns
        for width in range(self.layers.widest, 1, -1):
            inside = place[: x.size(1)] < lengths.unsqueeze(1)
            x, lengths = self.layers.unfold(x * inside.unsqueeze(-1), width), lengths + width - 1
        last = torch.minimum(place, lengths.unsqueeze(1) - 1)
        return x.gather(1, last.unsqueeze(-1).expand(-1, -1, x.size(2)))


def stretch(x: Tensor, have: Tensor, want: Tensor) -> Tensor:
    """Columns at as many other places, evenly from the first to the last one, each a mean of its two neighbours.

    Args:
        x: (B, C, Q), of which the first have[i] ≥ 1 columns count. want: (B,), numbers of at least 1.

    Returns:
        (B, max want, Q), where only the first want[i] columns mean something.
    """
    place = torch.arange(int(want.max()), device=x.device)
    steps = (want - 1).clamp_min(1).unsqueeze(1)
    scaled = torch.minimum(place, want.unsqueeze(1) - 1) * (have - 1).unsqueeze(1)  # of `steps` parts each
    below = scaled // steps  # shape: (B, places), exact
    share = ((scaled - below * steps) / steps).to(x.dtype).unsqueeze(-1)
    above = torch.minimum(below + 1, have.unsqueeze(1) - 1)
    left, right = (x.gather(1, i.unsqueeze(-1).expand(-1, -1, x.size(2))) for i in (below, above))
    return left * (1 - share) + right * share


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


class PoissonLength(nn.Module):
    """α begins at 1 and β near 0: as long as the source."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(math.log(math.e - 1)))  # α = log(1 + exp of it)
        self.intercept = nn.Parameter(torch.tensor(-4.0))

    def forward(self, source_lengths: Tensor) -> Tensor:
        """λ: (B,) -> (B,), at least float32."""
        dtype = torch.promote_types(self.slope.dtype, torch.float32)
        slope, intercept = functional.softplus(self.slope.to(dtype)), functional.softplus(self.intercept.to(dtype))
        return slope * source_lengths + intercept


def most_probable(rate: Tensor) -> Tensor:
    """The most probable length of at least 1: ⌊λ⌋, (B,) -> (B,)."""
    return rate.detach().floor().long().clamp_min(1)


def log_prob(rate: Tensor, lengths: Tensor) -> Tensor:
    """log p(m): λ and m, (B,) -> (B,)."""
    m = lengths.to(rate.dtype)
    return m * rate.log() - rate - torch.lgamma(m + 1)
