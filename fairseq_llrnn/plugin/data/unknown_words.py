"""How many words of data sets and of translations are `<unk>`, counted where fairseq opens the files.

T tokens of a data set.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from fairseq.data import ConcatDataset, Dictionary, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDataset

from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.text_check import TextCheck
from fairseq_llrnn.lexicon.language_check import is_warning, unknown_remark
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced

logger = logging.getLogger(__name__)
CHUNK = 1 << 24  # tokens that are looked at together
WRITTEN: Counter[str] = Counter()  # words of the best hypotheses of this process, and how many of them are unknown


class Share(NamedTuple):
    """Unknown words of a file, without sentence ends."""

    path: str
    dictionary: Dictionary
    unknown: int
    words: int


@contextmanager
def counted_unknown() -> Iterator[list[Share]]:
    """While fairseq loads data sets, list the shares of their files."""
    shares: list[Share] = []

    def wrap(load: Callable[..., Any]) -> Callable[..., Any]:
        def counting(path: str, dictionary: Dictionary | None = None, *args: Any, **options: Any) -> Any:
            data = load(path, dictionary, *args, **options)
            if data is not None and dictionary is not None:
                unknown, words = np.sum([_count(part, dictionary) for part in _tokens(data)], axis=0, dtype=np.int64)
                shares.append(Share(str(path), dictionary, int(unknown), int(words)))
            return data

        return counting

    with replaced(data_utils, "load_indexed_dataset", wrap):
        yield shares


def _tokens(data: Any) -> Iterator[np.ndarray]:
    """All tokens of a data set, in parts."""
    if isinstance(data, ConcatDataset):
        for part in data.datasets:
            yield from _tokens(part)
    elif isinstance(data, MMapIndexedDataset):  # at once: a large text has many sentences
        tokens = np.frombuffer(data._bin_buffer, data._index.dtype)  # shape: (T,)
        yield from (tokens[start : start + CHUNK] for start in range(0, len(tokens), CHUNK))
    else:
        if data.supports_prefetch:
            data.prefetch(range(len(data)))
        yield from (data[i].numpy() for i in range(len(data)))
    yield np.zeros(0, np.int64)


def _count(tokens: np.ndarray, dictionary: Dictionary) -> tuple[int, int]:
    ends, unknown = (int((tokens == index).sum()) for index in (dictionary.eos(), dictionary.unk()))
    return unknown, len(tokens) - ends


def report(share: Share, is_open: bool) -> None:
    """Log the share of a file, as a warning if it is large.

    Args:
        is_open: whether the model spells words outside the dictionary, if it has their strings.
    """
    remark, count = next(iter(unknown_remark(share.path, share.unknown, share.words).items()), ("", 0))
    if not remark:
        logger.info(f"0 of the {share.words:,} tokens of {share.path} are outside the dictionary")
    elif is_open and is_warning(remark):
        logger.info(
            f"{share.unknown:,} of the {share.words:,} tokens of {share.path} are <unk> "
            f"({share.unknown / share.words:.1%}): binary data has no strings; `llrnn score --open` spells them"
        )
    else:
        logger.log(logging.WARNING if is_warning(remark) else logging.INFO, f"{count:,} {remark}")


def check_words(dictionary: Dictionary, path: str) -> None:
    """Log a warning if the texts of a dictionary are not tokenised, by its counts."""
    symbols = dictionary.symbols[len(SPECIALS) :]
    check = TextCheck(symbols)
    check.add((word, count) for word, count in zip(symbols, dictionary.count[len(SPECIALS) :], strict=True) if word)
    if (advice := check.advice(f"the texts of the dictionary of {path}")) is not None:
        logger.warning(advice)


def report_written() -> None:
    """Log how many words of the best hypotheses are `<unk>`."""
    if WRITTEN["words"]:
        unknown, words = WRITTEN["unknown"], WRITTEN["words"]
        logger.info(f"{unknown:,} of the {words:,} generated words are <unk> ({unknown / words:.1%})")
