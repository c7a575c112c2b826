"""A background and a reader of words for another package: a list of words that weigh more until they have been used.

    b(K, x)  =  w(x) · u(x)   for a word x of the list that the sentence does not contain yet
                u(x)          for all other words; u is the unigram

Sizes: N hypotheses, M words of the list, V words of the dictionary.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from annotated_types import Gt
from typing_extensions import Doc

from fairseq_llrnn.extend import (
    END,  # the number of </s>
    DataError,
    ExplicitBackground,
    ExplicitWeights,
    Lexicon,
    Part,
    Settings,
    a_file,
    check_log_weights,
    is_weight,
    iter_lines,
    lower,
    place,
    register_background,
    register_part,
    shown,
)


class UntilSaid(ExplicitBackground):
    """State (N, M), bool: which words of the list the sentence contains."""

    def __init__(self, class_of, num_classes, log_unigram, words, log_weights):
        super().__init__(class_of, num_classes, log_unigram.index_add(0, words, log_weights))  # the root
        place_of = torch.full_like(class_of, len(words)).index_copy(0, words, torch.arange(len(words)))
        for name, value in (("words", words), ("plain", log_unigram[words]), ("place_of", place_of)):
            self.register_buffer(name, value, persistent=False)  # not stored in checkpoints

    def start(self, n):
        return self.words.new_zeros((n, len(self.words)), dtype=torch.bool)

    def advance(self, state, tokens):
        more = torch.nn.functional.pad(state, (0, 1))  # a column for other words
        said = more.scatter(1, self.place_of[tokens].unsqueeze(1), True)[:, :-1]
        return said & (tokens != END).unsqueeze(1)  # a new sentence

    def sparse_weights(self, state):
        rows, places = state.nonzero(as_tuple=True)
        return ExplicitWeights(
            num_words=len(self.class_of),
            keys=rows * len(self.class_of) + self.words[places],  # row · V + word, rising, unique
            log_weights=self.plain[places],
            constant=self.plain.new_zeros(len(state)),  # other words keep the root's weight
            rooted=None,
        )


@register_part("until_said")
@dataclass(frozen=True)
class UntilSaidPart(Part):
    words: np.ndarray  # (M,) int64, rising
    weights: np.ndarray  # (M,) float64
    log_unigram: np.ndarray  # (V,) float64

    is_base = True  # expressions can combine it

    def arrays(self):
        return {"words": self.words, "weights": self.weights, "log_unigram": self.log_unigram}

    @classmethod
    def read(cls, saved):  # a prior on disk is untrusted input
        words, weights = saved.array("words", np.int64), saved.array("weights", np.float64)
        log_unigram, size = saved.array("log_unigram", np.float64), len(saved.prior.symbols)
        check_log_weights(log_unigram, size)
        if not 0 < len(words) == len(weights) or words[0] < 0 or words[-1] >= size or (np.diff(words) <= 0).any():
            raise ValueError("until_said: expected rising numbers of words, and a weight for each")
        if not all(map(is_weight, weights)):
            raise ValueError("until_said: expected weights above 0")
        return cls(words, weights, log_unigram)

    def background(self, below, context):
        arrays = (torch.from_numpy(array.copy()) for array in (self.log_unigram, self.words, np.log(self.weights)))
        return UntilSaid(context.class_of, context.num_classes, *arrays)

    def reweighed(self, change):  # an open vocabulary moves weight from rare words to <unk>
        return replace(self, log_unigram=change(self.log_unigram))

    def counts(self):  # `llrnn show`
        return {"words of the list": len(self.words)}


@dataclass(frozen=True)
class UntilSaidOptions(Settings):
    factor: Annotated[float, Gt(0), Doc("multiplies all weights of the list")] = 1.0


@register_background(
    "until_said",
    UntilSaidPart,
    example="until_said:words.tsv",
    is_file=a_file,
    options=UntilSaidOptions,
)
def read_list(source, prior, inputs):
    index = {word: i for i, word in enumerate(inputs.words.symbols) if not inputs.words.specials[i]}
    weights, unknown = {}, 0
    for number, line in iter_lines(source):
        word, _, text = line.partition("\t")
        try:
            weight = float(text) * inputs.options.factor
        except ValueError:
            weight = 0.0
        if not is_weight(weight) or index.get(word) in weights:
            raise DataError(f"{place(source, number)}: expected a new word and its weight above 0, found {shown(line)}")
        if word in index:
            weights[index[word]] = weight
        else:
            unknown += 1
    if not weights:
        raise DataError(f"{source}: expected words of the dictionary, found none; check case and spelling")
    words = np.array(sorted(weights), dtype=np.int64)
    part = UntilSaidPart(words, np.array([weights[i] for i in words.tolist()]), prior.log_weights.copy())
    return part, {"words of the list that the dictionary lacks": unknown}


def read_tags(path, lowercase, language):
    """`word|tag|tag` -> features."""
    lexicon = Lexicon()
    for number, line in iter_lines(path):
        word, *tags = line.split("|")
        try:
            lexicon.add(lower(word, language) if lowercase else word, [f"Tag:{tag}" for tag in tags])
        except DataError as error:
            raise DataError(f"{place(path, number)}: {error}") from None
    return lexicon
