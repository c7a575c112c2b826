"""Expert features in the decoder: --expert opens them; here is what they add to a batch or to a step of a search.

Sizes: B batch (in a search, hypotheses), T time, H hidden width, H' = H + G + E with the columns and weights of experts
(experts/features.py), J₁ slots of evidence, J exceptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from fairseq_llrnn.backgrounds.base import Background
from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.experts.loading import load_experts
from fairseq_llrnn.experts.mixture import ExpertMixture
from fairseq_llrnn.experts.panel import Panel
from fairseq_llrnn.features.dictionary import PAD
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.plugin.compat.open_dictionary import OpenDictionary
from fairseq_llrnn.prior.manifest import REBUILD
from fairseq_llrnn.prior.parts import EvidencePart, OpenVocabularyPart
from fairseq_llrnn.prior.prior import Prior

Rows = tuple[Tensor, Tensor]  # rows of the output layer, and their biases
Keep = Callable[[str, Callable[[], Any]], Any]  # what a search makes once and uses in all its steps, by name


def open_panel(names: str | None, prior: Prior, target: Dictionary, source: Dictionary | None = None) -> Panel | None:
    """The experts of --expert, opened. None where there are none.

    Raises:
        OptionError: no such file or class. DataError: one cannot be opened. PriorError: <pad> shares its signature, and
        so has no class to itself for what no exception writes (experts/mixture.py).
    """
    if not names:
        return None
    class_of = prior.output.class_of
    if (sharing := int((class_of == class_of[target.pad()]).sum())) > 1:
        raise PriorError(
            f"--expert: expected a prior with {PAD} alone in its signature, found one where {sharing} words share it; "
            f"{REBUILD}"
        )

    known: Callable[[str], int | None] = target.indices.get

    def token_of(word: str) -> int | None:
        if word == target.unk_word and prior.find(OpenVocabularyPart) is not None:
            return None  # it stands for many words
        offers = prior.find(EvidencePart) is not None and isinstance(target, OpenDictionary)
        return target.index(word) if offers else known(word)

    return Panel(
        load_experts(names),
        prior,
        target.__getitem__,
        token_of,
        None if source is None else source.__getitem__,
        eos=target.eos(),
        pad=target.pad(),
        ignored=frozenset() if source is None else frozenset((source.bos(), source.pad(), source.eos())),
    )


def attach(decoder: Any, panel: Panel, prior: Prior) -> None:
    """Give a decoder of ours weights for the experts. Raises OptionError for one that cannot have any."""
    if not isinstance(getattr(decoder, "output", None), LogLinearOutput):
        raise OptionError("--expert: expected a log-linear model, found another one; use --arch llrnn_…")
    if decoder.output.formula == "plain":
        raise OptionError("--output-formula plain: not supported with --expert; use signature")
    if decoder.temperature is not None:
        raise OptionError("--learn-background-temperature: not supported with --expert; leave out one of them")
    decoder.experts = ExpertFeatures(panel, prior.output.features, decoder.output.weight.size(1))


def check_experts(experts: ExpertFeatures | None, saved: Tensor | None) -> None:
    """Raise OptionError where a checkpoint's weights (E, H) are of other experts than those of --expert."""
    refuse_other_experts("--expert", "the checkpoint", saved, 0 if experts is None else len(experts.panel.experts))


def refuse_other_experts(option: str, checkpoint: str, saved: Any, given: int) -> None:
    """Raise OptionError where not as many experts are `given` as a checkpoint has weights for, (E, H) or None."""
    trained = len(saved) if isinstance(saved, Tensor) and saved.dim() else 0
    if trained != given:
        mend = f"give those of its training, in their order, as {option} FILE:Class" if trained else "leave it out"
        raise OptionError(
            f"{option}: expected as many experts as {checkpoint} was trained with, which are {trained}, found {given}; "
            f"{mend}"
        )


def listen(
    experts: ExpertFeatures,
    hidden: Tensor,
    previous: Tensor,
    state: Tensor | None,
    extra: dict[str, Any],
    opened: OpenMixture | None,
    keep: Keep,
) -> Tensor:
    """Hidden states that know what the experts say: (B, T, H) -> (B, T, H').

    `extra` is the second element of the decoder's output. Its rows, "composed", "slots" and "open", are widened, and it
    gets "exceptions": rows (B, T, J, H') and biases (B, T, J), T = 1 where all positions share them, or None.

    Args:
        previous: (B, T). state: of a search, (B, …).
    """
    bound = extra["background"]
    assert isinstance(bound, ExpertMixture)
    contexts = bound.contexts.along(previous) if state is None else bound.contexts_of(state).unsqueeze(1)
    wide = experts.widen(hidden, contexts, bound)
    columns = len(experts.panel.columns)  # a later step of a search may know more of them
    rows, bias = extra["composed"]
    extra["composed"] = keep(f"output rows, {columns}", lambda: experts.widen_rows(rows)), bias
    slots: Rows | None = None
    if bound.evidence is not None:
        of_slots, slot_bias = extra["slots"]
        evidence = bound.evidence
        widened = keep(f"slot rows, {columns}", lambda: experts.widen_slot_rows(of_slots, evidence.slots))
        slots = extra["slots"] = widened, slot_bias
    if opened is not None:
        of_open, open_bias = extra["open"]
        extra["open"] = experts.widen_other_rows(of_open, opened.rows), open_bias
    extra["exceptions"] = None
    if not bound.contexts.width:
        return wide
    if state is not None:
        classes = bound.former_classes(state).unsqueeze(1)  # shape: (B, 1, J)
        if slots is not None:
            sentence = bound.below(state)[:, 0]
            slots = slots[0][sentence], slots[1][sentence]
    else:
        read = previous if experts.panel.looks_at_prefix else previous[:, :1]
        contexts = contexts[:, : read.size(1)]
        classes = bound.former_classes(bound.flat_states(read)).view(*read.shape, -1)
    extra["exceptions"] = experts.exception_rows(extra["composed"], slots, classes, contexts, bound)
    return wide


def most_of_evidence(background: Background) -> int:
    """Where the classes of evidence end, which begin behind the prior's: those of experts' exceptions come then."""
    return background.num_below if isinstance(background, ExpertMixture) else background.num_classes


def without_experts(background: Background, state: Tensor) -> tuple[Background, Tensor]:
    """The background that experts know of, and the state in it."""
    if isinstance(background, ExpertMixture):
        return background.base, background.below(state)
    return background, state


def exception_scores(hidden: Tensor, exceptions: Rows) -> Tensor:
    """Scores of the exceptions: (B, T, H') -> (B, T, J), at least float32."""
    rows, bias = exceptions
    if rows.size(1) == 1:
        return (hidden @ rows.squeeze(1).to(hidden.dtype).transpose(1, 2)).to(bias.dtype) + bias
    return (hidden.unsqueeze(2) * rows.to(hidden.dtype)).sum(3).to(bias.dtype) + bias
