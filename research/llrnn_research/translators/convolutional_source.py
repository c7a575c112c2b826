"""Convolutional models of a source sentence, as input of a language model at each word.

Sizes: B batch, L words of the source, Q dimensions of a word's vector, C columns, M vectors of a sentence. Source:
Kalchbrenner & Blunsom 2013.

The convolutional sentence model (CSM) makes one vector of a sentence, and the convolutional n-gram model (CGM) vectors
of its n-grams, by convolutions whose widths grow from layer to layer. Every dimension has separate kernels:

    E¹ = the words' vectors       Eⁱ[c] = tanh( Σ_j Kⁱ[j] ∘ Eⁱ⁻¹[c + j] ), j < i       i = 2, 3, …: C − i + 1 columns

until one column is left. If 1 < C < i, a separate kernel for C columns, Lᶜ, makes one of them. The CGM stops after some
layers, so that each column covers n = 1 + 1 + 2 + … words.

A `ConvolutionalSource` makes one vector for all words of the target (RCTM I, M = 1), or one for each place in it (RCTM
II). The paper unfolds to the length of the target, and adds the length's probability. Here it is the most probable
length, in training and search, so that a next word does not depend on the length of its sentence.

The length m of a translation is Poisson(λ(k)), with k the length of the source (`PoissonLength`). λ(k) = α k + β, with
α and β learned.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairseq_llrnn.networks.recurrent import dropout, roll_rows, word_table

LONGEST = 100  # words for which each layer has its own kernel; longer sentences repeat the widest one


class Kernels(nn.Module):
    """Kernels of all widths from 2 to `widest`, Q numbers for each place, stacked."""

    def __init__(self, widest: int, size: int) -> None:
        super().__init__()
        self.widest = widest
        self.weight = nn.Parameter(torch.empty(_start(widest + 1), size))
        with torch.no_grad():
            for width in range(2, widest + 1):  # the scale of sums does not depend on the width
                self.of_width(width).uniform_(-1, 1).mul_(math.sqrt(3 / width))

    def of_width(self, width: int) -> Tensor:
        """Return the kernel of a width, (width, Q)."""
        return self.weight[_start(width) : _start(width + 1)]

    def fold(self, x: Tensor, width: int) -> Tensor:
        """Convolve each `width` columns to one: (B, C, Q) -> (B, C − width + 1, Q)."""
        columns, kernel = x.size(1) - width + 1, self.of_width(width)
        total = x[:, :columns] * kernel[0]
        for j in range(1, width):
            total = total + x[:, j : j + columns] * kernel[j]
        return torch.tanh(total)

    def unfold(self, x: Tensor, width: int) -> Tensor:
        """Expand each column to `width`, added where they overlap: (B, C, Q) -> (B, C + width − 1, Q)."""
        kernel, columns = self.of_width(width), x.size(1)
        out = x.new_zeros(x.size(0), columns + width - 1, x.size(2))
        for j in range(width):
            out = out + nn.functional.pad(x * kernel[j], (0, 0, j, width - 1 - j))
        return torch.tanh(out)


def _start(width: int) -> int:
    """Return the first row of a width's kernel."""
    return width * (width - 1) // 2 - 1


def words_of_column(layers: int) -> int:
    """Return n, the words covered by a column after this number of layers of an n-gram model."""
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
        """Return vectors: (B, L, Q) with lengths[i] ≥ 1 valid columns -> (B, Q)."""
        # all weights get a gradient, which torch's DistributedDataParallel requires
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
    """The CGM: sentences -> a vector for each n-gram. A sentence of fewer words counts as one n-gram."""

    def __init__(self, size: int, layers: int) -> None:
        """size: Q. layers: 1 for pairs of words, 2 for n = 4, 3 for n = 7."""
        super().__init__()
        self.n = words_of_column(layers)
        self.layers = Kernels(layers + 1, size)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, L, Q), zero after lengths[i] columns, -> (B, C, Q), and the numbers of valid columns."""
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
        """Return (B, C, Q), with columns[i] valid columns, -> (B, C + n − 1, Q), padded with the last vector."""
        place = torch.arange(x.size(1) + self.n - 1, device=x.device)
        lengths = columns
        for width in range(self.layers.widest, 1, -1):
            inside = place[: x.size(1)] < lengths.unsqueeze(1)
            x, lengths = self.layers.unfold(x * inside.unsqueeze(-1), width), lengths + width - 1
        last = torch.minimum(place, lengths.unsqueeze(1) - 1)
        return x.gather(1, last.unsqueeze(-1).expand(-1, -1, x.size(2)))


def stretch(x: Tensor, have: Tensor, want: Tensor) -> Tensor:
    """Resample columns evenly from the first to the last one, each a mean of its two neighbours.

    Args:
        x: (B, C, Q), with have[i] ≥ 1 valid columns.
        want: (B,), numbers of at least 1.

    Returns:
        (B, max want, Q), with want[i] valid columns.
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
        num_words, pad: of the source dictionary.
        size: Q.
        ngram_layers: layers of the n-gram model and of its inverted counterpart (None: one vector of the sentence).
        dropout_in: on word vectors.
        variational: one mask per sentence.
        embedding: tokens (B, L) -> (B, L, Q), zero at padding (None: a table with a row per word).
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
    ) -> None:
        super().__init__()
        self.pad, self.output_size = pad, size
        self.dropout_in, self.variational = dropout_in, variational
        self.embedding = word_table(num_words, size, pad) if embedding is None else embedding
        self.sentence: SentenceModel | None = None
        self.length: PoissonLength | None = None
        if ngram_layers is None:
            self.sentence = SentenceModel(size)
        else:
            self.ngrams = NgramModel(size, ngram_layers)
            self.translate = nn.Linear(size, size, bias=False)  # T
            self.unfolded = InvertedNgramModel(size, ngram_layers)
            self.length = PoissonLength()

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Encode sentences (B, L), padded on either side.

        Returns:
            states (B, L, Q), each at its word's place, zero on padding; vectors (B, M, Q) of places 1 to M of the
                target, the last one also for all later places.
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
    """The rate λ of the length, initially about the source length (α = 1, β near 0)."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(math.log(math.e - 1)))  # α = log(1 + exp of it)
        self.intercept = nn.Parameter(torch.tensor(-4.0))

    def forward(self, source_lengths: Tensor) -> Tensor:
        """Return λ: (B,) -> (B,), at least float32."""
        dtype = torch.promote_types(self.slope.dtype, torch.float32)
        slope, intercept = functional.softplus(self.slope.to(dtype)), functional.softplus(self.intercept.to(dtype))
        return slope * source_lengths + intercept


def most_probable(rate: Tensor) -> Tensor:
    """Return the most probable length of at least 1: ⌊λ⌋, (B,) -> (B,)."""
    return rate.detach().floor().long().clamp_min(1)


def log_prob(rate: Tensor, lengths: Tensor) -> Tensor:
    """Return log p(m): λ and m, (B,) -> (B,)."""
    m = lengths.to(rate.dtype)
    return m * rate.log() - rate - torch.lgamma(m + 1)
