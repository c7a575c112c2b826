"""Count `<unk>` in data sets, when fairseq opens the files, and in translations.

T tokens of a data set.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fairseq.data import ConcatDataset, Dictionary, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDataset

from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.text_check import TextCheck
from fairseq_llrnn.lexicon.language_check import is_warning, unknown_remark
from fairseq_llrnn.plugin.compat.data_files import check_sentences, check_text_beside
from fairseq_llrnn.plugin.compat.safe_checkpoints import replaced

logger = logging.getLogger(__name__)
CHUNK = 1 << 24  # tokens that are counted together
WRITTEN: Counter[str] = Counter()  # number of words, and of unknown ones, in the best hypotheses of this process


class Share(NamedTuple):
    """The number of unknown words and of all words in a file, without sentence ends. <unk> has no string."""

    path: str
    dictionary: Dictionary
    unknown: int
    words: int
    strings: int = 0  # words outside the dictionary with ids


@contextmanager
def counted_unknown() -> Iterator[list[Share]]:
    """Collect the counts of all files of data sets that fairseq loads inside the block.

    Raises:
        DataError: a data set without sentences, or a text beside binary data of another one.
    """
    shares: list[Share] = []

    def wrap(load: Callable[..., Any]) -> Callable[..., Any]:
        def counting(path: str, dictionary: Dictionary | None = None, *args: Any, **options: Any) -> Any:
            check_sentences(path, options.get("combine", False))
            data = load(path, dictionary, *args, **options)
            if data is not None and dictionary is not None:
                check_text_beside(path, data.sizes)
                counts = np.sum([_count(part, dictionary) for part in _tokens(data)], axis=0, dtype=np.int64)
                shares.append(Share(str(path), dictionary, *counts.tolist()))
            return data

        return counting

    with replaced(data_utils, "load_indexed_dataset", wrap):
        yield shares


def _tokens(data: Any) -> Iterator[np.ndarray]:
    """Yield all tokens of a data set, in chunks."""
    if isinstance(data, ConcatDataset):
        for part in data.datasets:
            yield from _tokens(part)
    elif isinstance(data, MMapIndexedDataset):  # in large chunks: a large text has many sentences
        tokens = np.frombuffer(data._bin_buffer, data._index.dtype)  # shape: (T,)
        yield from (tokens[start : start + CHUNK] for start in range(0, len(tokens), CHUNK))
    else:
        if data.supports_prefetch:
            data.prefetch(range(len(data)))
        yield from (data[i].numpy() for i in range(len(data)))
    yield np.zeros(0, np.int64)


def _count(tokens: np.ndarray, dictionary: Dictionary) -> tuple[int, int, int]:
    ends, unknown = (int((tokens == index).sum()) for index in (dictionary.eos(), dictionary.unk()))
    return unknown, len(tokens) - ends, int((tokens >= len(dictionary)).sum())


def report(share: Share, is_open: bool) -> None:
    """Log the ratio of unknown words in a file, as a warning if it is large.

    Args:
        is_open: whether the model spells words outside the dictionary, if it has their strings.
    """
    strings = share.strings if is_open else 0
    remarks = unknown_remark(share.path, share.unknown + strings, share.words, is_open=strings > 0)
    remark, count = next(iter(remarks.items()), ("", 0))
    if not remark:
        logger.info(f"0 of the {share.words:,} tokens of {share.path} are outside the dictionary")
    elif is_open and is_warning(remark):
        is_valid = Path(share.path).name.startswith("valid")
        copied = f", and so does training, if you copy the text to {share.path} first" if is_valid else ""
        logger.info(
            f"{share.unknown:,} of the {share.words:,} tokens of {share.path} are <unk> "
            f"({share.unknown / share.words:.1%}): binary data has no strings; `llrnn score --open` spells them{copied}"
        )
    else:
        logger.log(logging.WARNING if is_warning(remark) else logging.INFO, f"{count:,} {remark}")


def check_words(dictionary: Dictionary, path: str) -> None:
    """Log a warning if the counts of a dictionary show that its texts are not tokenised."""
    symbols = dictionary.symbols[len(SPECIALS) :]
    check = TextCheck(symbols)
    check.add((word, count) for word, count in zip(symbols, dictionary.count[len(SPECIALS) :], strict=True) if word)
    if (advice := check.advice(f"the texts of the dictionary of {path}")) is not None:
        logger.warning(advice)


def report_written() -> None:
    """Log the ratio of `<unk>` in the best hypotheses."""
    if WRITTEN["words"]:
        unknown, words = WRITTEN["unknown"], WRITTEN["words"]
        logger.info(f"{unknown:,} of the {words:,} generated words are <unk> ({unknown / words:.1%})")
