"""Log-linear RNNs (Dymetman & Xiao 2016): features and backgrounds as prior knowledge of an output layer.

Importing this package changes nothing elsewhere and imports neither torch nor fairseq. Public names are loaded at their
first use, and `register` adds the package's tasks, models and criterion to fairseq.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.errors import OptionError, from_checkout, need_library
from fairseq_llrnn.files.reading import is_of_transformers
from fairseq_llrnn.version import __version__ as __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fairseq_llrnn.comparison.results import ComparisonTable
    from fairseq_llrnn.evaluation.prior_scorer import PriorScorer
    from fairseq_llrnn.head import LogLinearHead
    from fairseq_llrnn.huggingface import LogLinearForCausalLM, LogLinearForSeq2SeqLM
    from fairseq_llrnn.huggingface.scoring import CausalScorer, Seq2SeqScorer
    from fairseq_llrnn.lexicon.options import LexiconOptions
    from fairseq_llrnn.plugin.scoring.trained_model import TrainedModel
    from fairseq_llrnn.prior.prior import Prior
    from fairseq_llrnn.source_embedding import SourceEmbedding

__all__ = [
    "LogLinearForCausalLM",
    "LogLinearForSeq2SeqLM",
    "LogLinearHead",
    "Prior",
    "SourceEmbedding",
    "__version__",
    "compare",
    "load",
    "register",
]

_MODULES = {  # public name -> module
    "LogLinearForCausalLM": "fairseq_llrnn.huggingface",
    "LogLinearForSeq2SeqLM": "fairseq_llrnn.huggingface",
    "LogLinearHead": "fairseq_llrnn.head",
    "Prior": "fairseq_llrnn.prior.prior",
    "SourceEmbedding": "fairseq_llrnn.source_embedding",
}


def register() -> None:
    """Register the tasks, models and criterion of this package in fairseq, like --user-dir in its commands.

    Calling it again does nothing.

    Raises:
        OptionError: fairseq is not installed.
    """
    if importlib.util.find_spec("fairseq") is None:
        raise OptionError(f"this needs fairseq, which is not installed; {from_checkout('fairseq')}")
    importlib.import_module("fairseq_llrnn.plugin").register()


def load(
    path: str | os.PathLike[str] | None = None, data: str | None = None, prior: str | None = None
) -> TrainedModel | CausalScorer | Seq2SeqScorer | PriorScorer:
    """Load a trained model of fairseq or transformers, or the background of a prior, to score texts.

    Args:
        path: a checkpoint of fairseq, a folder of `llrnn export`, or a folder of save_pretrained. The first two return
            a TrainedModel, the last a CausalScorer, or a Seq2SeqScorer if the model translates. None: return a
            PriorScorer, the background of `prior` without a network.
        data, prior: folders instead of those that the training recorded, for a model of fairseq.

    Raises:
        OptionError: fairseq or transformers is not installed, or the data or the prior is not found. Without a `path`:
            no prior, or one whose background needs a network.
        DataError: no such file, or a checkpoint that is damaged, contains code, or is of another kind.
        PriorError: the prior does not match the checkpoint, or cannot be read.
    """
    if path is None:
        if prior is None or data is not None:
            raise OptionError("load: expected the path of a model, or a prior alone; pass load(path) or load(prior=…)")
        prior_class = importlib.import_module("fairseq_llrnn.prior.prior").Prior
        of_prior: PriorScorer = importlib.import_module("fairseq_llrnn.evaluation.prior_scorer").PriorScorer(
            prior_class.load(prior)
        )
        return of_prior
    path = os.fspath(path)
    if is_of_transformers(path):
        if data is not None or prior is not None:
            raise OptionError(
                f"{path}: expected a model of fairseq with data or prior, found one of transformers; leave them out"
            )
        need_library(path, "transformers", "hf")
        loading = importlib.import_module("fairseq_llrnn.huggingface.loading")
        scorer: CausalScorer | Seq2SeqScorer = loading.load_scorer(path)
        return scorer
    root, disabled = logging.getLogger(), logging.root.manager.disable
    handlers, level = root.handlers[:], root.level
    logging.disable(max(disabled, logging.INFO))  # fairseq logs during its import, and changes the root logger
    try:
        register()
        module = importlib.import_module("fairseq_llrnn.plugin.scoring.trained_model")
        model: TrainedModel = module.TrainedModel(path, data, prior)
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers
        root.setLevel(level)
    return model


def compare(
    folder: str | Path | None = None,
    *,
    out: str | Path,
    train: str | Path | None = None,
    valid: str | Path | None = None,
    test: str | Path | None = None,
    words: LexiconOptions | Mapping[str, Any] | None = None,
    lower: str | None = None,
    models: Sequence[str] | None = None,
    tries: int | None = None,
    seeds: Sequence[int] = (1,),
    pretrained: str | Path | None = None,
    closed: bool = False,
    quick: bool = False,
    max_epoch: int | None = None,
    jobs: int = 1,
    spelling_lexicon: str | Path | Sequence[str | Path] = (),
    is_verbose: bool = False,
) -> ComparisonTable:
    """Compare language models on a text, as `llrnn compare`, and return the table.

    Args:
        folder: of a treebank of Universal Dependencies, or None with `train` and `test`.
        out: folder of the results. The same call continues a stopped comparison.
        train, valid, test: texts, one tokenised sentence per line, or treebanks.
        words: sources of word features, also as a table of keys.
        spelling_lexicon: word lists and dictionaries that spell the unknown words of all word models.
        lower: None keeps the case. A language, or "" for no language, lower-cases all texts.
        models: names from `llrnn compare --help` (None: all that are possible).
        tries: settings of each neural model. seeds: of the chosen setting.
        pretrained: folder of a causal network of transformers, to fine-tune with its own tokenizer.
        closed: also report perplexities over a closed dictionary, which contains the words of all texts.
        quick: one setting and one number of pieces. max_epoch: of a training. jobs: models trained at the same time.
        is_verbose: print the sizes of the texts, and an estimate of the time.

    Raises:
        OptionError: choices that exclude each other, results of other choices in `out`, or no fairseq for a model
            that needs it.
        DataError: a text that cannot be read, or is unsuitable.
    """
    settings_module = importlib.import_module("fairseq_llrnn.comparison.settings")
    comparing = importlib.import_module("fairseq_llrnn.comparison.comparing")
    choices = {
        "folder": folder, "out": out, "train": train, "valid": valid, "test": test, "words": words or {},
        "lower": lower, "models": models, "tries": tries, "seeds": seeds, "pretrained": pretrained, "closed": closed,
        "quick": quick, "max_epoch": max_epoch, "jobs": jobs, "spelling_lexicon": spelling_lexicon,
    }  # fmt: skip
    checked = importlib.import_module("fairseq_llrnn.settings").checked
    settings = checked(settings_module.Comparison, choices, lambda name: name or "compare")
    say = functools.partial(print, flush=True) if is_verbose else lambda line: None
    table: ComparisonTable = comparing.compare(settings, import_networks, say)
    return table


def import_networks() -> Any:
    """Import what trains networks in `compare`. Raises OptionError without fairseq."""
    register()
    return importlib.import_module("fairseq_llrnn.plugin.comparison")


class _Folders(list[str]):
    """This package's __path__, which registers the package when fairseq looks up its --user-dir.

    fairseq scans a --user-dir for tasks when it imports it. If the package was imported before, fairseq only checks
    whether the folder is in __path__, and would miss the package's tasks.
    """

    def __contains__(self, folder: object) -> bool:
        contains = isinstance(folder, str) and os.path.realpath(folder) in map(os.path.realpath, self)
        if contains and "fairseq.tasks" in sys.modules:
            register()
        return contains


__path__ = _Folders(__path__)
_user_dirs = getattr(getattr(sys.modules.get("fairseq.utils"), "import_user_module", None), "memo", ())
if any(folder in __path__ for folder in _user_dirs):  # fairseq is importing it as its --user-dir
    register()


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
