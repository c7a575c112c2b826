"""Offer the dates of a source sentence to its translation: `--background "dates(weight=0.3)"`.

Sizes: B sentences, L source length, J most strings of a sentence, H hidden width, E encoder width.
"""

import contextlib
import functools
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import torch
from annotated_types import Gt
from torch import nn
from typing_extensions import Doc

from fairseq_llrnn.extend import (
    NO_WORD,
    BySource,
    ClassSource,
    ContextClasses,
    Part,
    SentenceClasses,
    Settings,
    register_background,
    register_part,
)

READ = "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%d %B %Y"  # one token, or three
WRITTEN = {"%Y-%m-%d": "Date:Dashes", "%d/%m/%Y": "Date:Slashes", "%d.%m.%Y": "Date:Points"}  # one token


@functools.lru_cache(100_000)
def date_of(text):
    for form in READ:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form)


def dates_in(words):
    """Return the dates of a sentence and the positions of each."""
    spans = (range(i, i + length) for length in (1, 3) for i in range(len(words) - length + 1))
    return [(date, places) for places in spans if (date := date_of(" ".join(words[i] for i in places)))]


class DateClasses(SentenceClasses):
    """The date strings of sentences (B, L). Together they weigh `weight`, and all words together 1."""

    def __init__(self, prior, source, weight):
        found = []
        for row in source.tolist():
            strings = {}
            for date, places in dates_in([prior.session.source.symbols[token] for token in row]):
                for form, written in enumerate(WRITTEN):
                    strings.setdefault(prior.session.target.index(date.strftime(written)), (form, places))
            found.append(strings)
        shape = len(found), max(1, *map(len, found))
        words, self.form = torch.full(shape, NO_WORD), torch.zeros(shape, dtype=torch.long)  # (B, J)
        self.places = torch.zeros(*shape, source.size(1))  # (B, J, L), weights of positions
        for i, strings in enumerate(found):
            for j, (word, (form, places)) in enumerate(strings.items()):
                words[i, j], self.form[i, j], self.places[i, j, places] = word, form, 1 / len(places)
        words, self.form, self.places = (x.to(source.device) for x in (words, self.form, self.places))
        there, unknown = words != NO_WORD, words >= len(prior.symbols)
        each = math.log(weight) - there.sum(1, keepdim=True).clamp_min(1).log()
        added, unk_factor = torch.where(there, each, -math.inf), torch.where(unknown.any(1), math.log(0.001), 0.0)
        super().__init__(words, prior.index("<unk>"), added, unk_factor, unreadable=unknown)


class DateRows(ClassSource):
    """Compute the row of a string: the weights of its feature, plus P s, s the mean encoder state at the date."""

    name, kind, needs_source_states = "dates", DateClasses, True

    def __init__(self, head):
        super().__init__()
        self.features = [head.prior.output.features.index[name] for name in WRITTEN.values()]
        self.pointer = nn.Parameter(torch.zeros(head.hidden_size, head.source_size))

    def rows(self, head, weight, layer, source_states):
        dates = layer.source
        content = dates.places.to(source_states) @ source_states @ self.pointer.T.to(source_states)
        of_form = weight[self.features, : head.hidden_size][dates.form]  # each feature has the value 1
        return of_form + content, head.output.bias[self.features][dates.form]  # (B, J, H), (B, J)


@register_part("dates")
@dataclass(frozen=True)
class Dates(Part):
    weight: float

    class_name = "dates"  # the name of DateRows
    needs_source = has_source_strings = True
    feature_names = tuple(WRITTEN.values())  # features that no word of the dictionary has

    def description(self):
        return {"weight": self.weight}

    @classmethod
    def read(cls, saved):
        weight = saved.description["weight"]
        if not (isinstance(weight, float) and 0 < weight < math.inf):
            raise ValueError("the weight of dates: expected a number above 0")
        return cls(weight)

    def source_index(self, prior, word):
        is_part = date_of(word) or word.isdecimal() or date_of(f"1 {word} 2000")  # the last: a month
        return prior.session.source.open(word) if is_part else None

    def background(self, below, context):
        def bound(base, source):
            return ContextClasses(base, DateClasses(context.prior, source, self.weight))

        return BySource(below, bound) if context.has_source else below

    def class_source(self, head):
        return DateRows(head) if head.source_size else None


@dataclass(frozen=True)
class DatesOptions(Settings):
    weight: Annotated[float, Gt(0), Doc("mass of all dates of a sentence, where all words together have 1")] = 0.3


@register_background("dates", Dates, example="dates", options=DatesOptions)
def read_dates(source, prior, inputs):
    return Dates(inputs.options.weight), {}
