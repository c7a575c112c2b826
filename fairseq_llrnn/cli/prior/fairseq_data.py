"""Trained models as inputs of `llrnn prior`."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairseq_llrnn.prior.model_files import SharedWords
    from fairseq_llrnn.prior.part import PriorView
    from fairseq_llrnn.prior.parts.model import ModelOptions, ModelPart

FEW = 0.5  # if the model has a smaller ratio of the words, it is probably for another kind of text


def open_model(checkpoint: str, prior: "PriorView", options: "ModelOptions") -> "tuple[ModelPart, Mapping[str, int]]":
    """Return the part of a prior for a checkpoint, and notes for the user. Call `need_fairseq` first."""
    from fairseq_llrnn.plugin.compat.loading import Places
    from fairseq_llrnn.plugin.models.frozen_lm import build_general_model, find_model_files
    from fairseq_llrnn.prior.parts.model import ModelPart

    places = Places(
        None if options.data is None else str(options.data), None if options.prior is None else str(options.prior),
        options="{} of --background model(…)",
    )  # fmt: skip
    files = find_model_files(checkpoint, places, options.weight, options.temperature)
    return ModelPart(files), _notes(build_general_model(files, prior.symbols, prior.allowed).shared)


def _notes(shared: "SharedWords") -> dict[str, int]:
    """Return notes on the words of a model, and warn on stderr if it shares few of them."""
    ordinary = shared.in_both + shared.lacking
    if shared.in_both < FEW * ordinary:
        print(
            f"warning: the background's model has {shared.in_both:,} of the {ordinary:,} words of --dict, and "
            f"{shared.dropped:,} other words; check that its language and tokenisation are the same",
            file=sys.stderr,
        )
    counts = {
        "words that the background's model lacks: they share the probability of its <unk>": shared.lacking,
        "words of the background's model that --dict lacks: they are dropped": shared.dropped,
    }
    return {note: count for note, count in counts.items() if count}
