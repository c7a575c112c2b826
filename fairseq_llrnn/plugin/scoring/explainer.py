"""Explain the probabilities of our models, loaded from a checkpoint.

Sizes: T target length, L source length, both with </s>.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from fairseq import utils
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import FairseqEncoderDecoderModel, FairseqLanguageModel
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.explain.explanation import Explanation
from fairseq_llrnn.explain.source_terms import source_evidence
from fairseq_llrnn.plugin.compat.dictionaries import reads_strings, with_unk
from fairseq_llrnn.plugin.compat.loading import RECORDED, Places, encode, load_model, marker_of
from fairseq_llrnn.plugin.models.log_linear_decoder import LogLinearModel
from fairseq_llrnn.plugin.names import find_model, find_task, name_of
from fairseq_llrnn.plugin.tasks.evidence_options import counted_in_search
from fairseq_llrnn.plugin.tasks.language_modeling import LLRNNLanguageModelingTask
from fairseq_llrnn.plugin.tasks.translation import LLRNNTranslationTask

BEAM = 5  # beam size of the model's own translation; fairseq's default


class Explainer:
    """A model in evaluation mode and its task."""

    model_class: type
    task_class: type

    def __init__(self, model: Any, task: Any) -> None:
        self.model = model.eval()
        self.task = task

    def explain(self, words: Sequence[str], top: int, source: Sequence[str] | None = None) -> list[Explanation]:
        """Return one explanation per word and one for the sentence end.

        Args:
            top: number of predictions, features and source words.
            source: the words to translate. Needed by a translation model, ignored by a language model.
        """
        raise NotImplementedError

    def retokenize(self, words: Sequence[str], source: Sequence[str] | None = None) -> list[str]:
        """Return the words as the model writes them, which `explain` takes."""
        return list(words)


class LanguageModelExplainer(Explainer):
    """A language model. It reads every sentence separately, as trained with --sample-break-mode eos."""

    model_class, task_class = FairseqLanguageModel, LLRNNLanguageModelingTask
    task: LLRNNLanguageModelingTask

    @torch.inference_mode()
    def explain(self, words: Sequence[str], top: int, source: Sequence[str] | None = None) -> list[Explanation]:
        read = encode(self.task.dictionary, words)
        tokens = with_unk(read, self.task.dictionary)
        previous = read.roll(1).unsqueeze(0)  # a sentence begins with </s>, shape: (1, T)
        _, extra = self.model.decoder(previous)
        return _with_terms(self.model.decoder.head.explain_batch(extra["batch"], tokens, top), extra)


class TranslationExplainer(Explainer):
    """A translation model, whose explanations include the source."""

    model_class, task_class = FairseqEncoderDecoderModel, LLRNNTranslationTask
    task: LLRNNTranslationTask

    cells: Sequence[str] = ()  # texts after the source, separated by tabs

    def require(self, cells: Sequence[str]) -> None:
        """Set the texts after a source, separated by tabs. Raises OptionError if no system reads them."""
        if cells and marker_of(self.task.source_dictionary) is None:
            raise OptionError("--source: found a tab, but the prior has no terms; remove the text after the tab")
        self.cells = cells

    def input_words(self, source: Sequence[str]) -> list[str]:
        """Return the network's input for each source word: the word itself, or <unk>."""
        dictionary = self.task.source_dictionary
        if reads_strings(self.model.encoder):
            return list(source)
        return [dictionary[token] for token in with_unk(encode(dictionary, source), dictionary).tolist()[:-1]]

    def strings_of(self, source: Sequence[str]) -> dict[str, str]:
        """Return the source words outside the dictionary with an id in a part of the prior, and the part's name."""
        prior, words = self.task.prior, self.task.prior.session.source.word_index
        strings: dict[str, str] = {}
        for name, part in zip(prior.names, prior.parts, strict=True):
            for word in source:
                if word not in words and word not in strings and part.source_index(prior, word) is not None:
                    strings[word] = name
        return strings

    def retokenize(self, words: Sequence[str], source: Sequence[str] | None = None) -> list[str]:
        """Return the words with one token for each slot over pieces, or term of several words."""
        dictionary = self.task.target_dictionary
        tokens = encode(dictionary, words)
        if source is None:
            return list(words)
        written = self.task.retokenize(self._read(source), tokens)
        if len(written) == len(tokens):
            return list(words)
        return [dictionary[token] for token in written.tolist()[:-1]]

    @torch.inference_mode()
    def translate(self, source: Sequence[str]) -> list[str]:
        """Return the best translation of a search with BEAM hypotheses, like fairseq-interactive.

        Raises:
            OptionError: the source is longer than the model allows.
        """
        generator = self.task.build_generator([self.model], GenerationConfig(beam=BEAM))
        hypotheses = self.task.inference_step(generator, [self.model], {"net_input": _as_batch(self._read(source))})
        dictionary = self.task.target_dictionary
        return [dictionary[token] for token in hypotheses[0][0]["tokens"].tolist()[:-1]]

    @torch.inference_mode()
    def explain(self, words: Sequence[str], top: int, source: Sequence[str] | None = None) -> list[Explanation]:
        """Return one explanation per word and one for the sentence end.

        Raises:
            OptionError: the source or the translation is longer than the model allows.
        """
        if source is None:
            raise ValueError("a translation model needs a source")
        read = self._read(source)
        _check_length("translation", words, self._longest(1))
        dictionary = self.task.target_dictionary
        tokens = self.task.retokenize(read, encode(dictionary, words))
        decoder, prior = self.model.decoder, self.task.prior
        if not prior.has_source_strings:
            tokens = with_unk(tokens, dictionary)
        encoder_out = self.model.encoder(**_as_batch(read))
        with counted_in_search(self.task.cfg, prior):  # like the search that found it
            _, extra = decoder(tokens.roll(1).unsqueeze(0), encoder_out)
        explained = _with_terms(decoder.head.explain_batch(extra["batch"], tokens, top), extra)
        attention = None if extra["attn"] is None else extra["attn"][0][0]  # shape: (T, L)
        tokens = tokens[: len(explained)]  # all, unless a grammar forbids one
        offered = torch.tensor([e.token != dictionary.unk_word for e in explained])
        outside = offered & (tokens >= len(dictionary))
        source_words = with_unk(read, self.task.source_dictionary)
        lexical = prior.translations
        explained_sources = source_evidence(
            None if lexical is None else lexical.word_table, decoder.head.background.bind(), source_words,
            with_unk(tokens, dictionary), attention, top, outside,
        )  # fmt: skip
        return [replace(e, source=s) for e, s in zip(explained, explained_sources, strict=True)]

    def _read(self, source: Sequence[str]) -> Tensor:
        """Return the indices of the source's words and its end, with marks, (L,)."""
        _check_length("--source", source, self._longest(0))
        return encode(self.task.source_dictionary, source, self.cells)

    def _longest(self, side: int) -> int:
        """Return the maximum number of positions of the source (0) or the target (1)."""
        limits: tuple[int, int] = utils.resolve_max_positions(self.task.max_positions(), self.model.max_positions())
        return limits[side]


KINDS: tuple[type[Explainer], ...] = (LanguageModelExplainer, TranslationExplainer)


def _with_terms(explained: list[Explanation], extra: dict[str, Any]) -> list[Explanation]:
    """Add the network's terms of each word. They are computed when the word is read, one step after its prediction."""
    for term in extra["terms"]:
        if term.detail is not None:  # none for the end, which is not read
            details = [term.detail(value) for value in term.values[0][1:].tolist()]
            read = [replace(e, details=(*e.details, detail)) for e, detail in zip(explained, details, strict=False)]
            explained = [*read, *explained[len(read) :]]
    return explained


def _as_batch(source: Tensor) -> dict[str, Tensor]:
    return {"src_tokens": source.unsqueeze(0), "src_lengths": torch.tensor([len(source)])}


def _check_length(place: str, words: Sequence[str], limit: int) -> None:
    """Raise OptionError for more than `limit` words, the sentence end included."""
    if len(words) >= limit:
        raise OptionError(
            f"{place} {' '.join(words[:4])!r} …: expected at most {limit - 1:,} words (limit of the model), found "
            f"{len(words):,}; shorten it"
        )


def load_explainer(path: str, places: Places = RECORDED) -> Explainer:
    """Load a checkpoint of one of our models.

    Raises:
        DataError: no such file, or a checkpoint that is damaged, holds code, or is of another model.
        OptionError: the data or the prior is not found. PriorError: the prior does not fit.
    """
    model, task, _ = load_model(path, places, _check_kind)
    return next(kind(model, task) for kind in KINDS if isinstance(model, kind.model_class))


def _check_kind(path: str, cfg: Any) -> None:
    """Raise DataError for models that cannot be explained, by the names in the options."""
    model, task = name_of(cfg, "model"), name_of(cfg, "task")
    model_class, task_class = find_model(model) or object, find_task(task) or object
    is_ours = issubclass(model_class, LogLinearModel)
    if is_ours and any(issubclass(model_class, k.model_class) and issubclass(task_class, k.task_class) for k in KINDS):
        return
    others = "models of other tasks, such as classifiers, cannot be explained"
    raise DataError(
        f"{path}: expected a log-linear model (llrnn_… of the task llrnn_language_modeling or llrnn_translation), "
        f"found {model!r} of task {task!r}; {others if is_ours else 'only a log-linear model has features to explain'}"
    )
