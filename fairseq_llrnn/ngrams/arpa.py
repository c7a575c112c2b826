r"""ARPA files: n-gram models in the format of SRILM, KenLM, IRSTLM and others.

Sizes: n order of an n-gram, N of the model, L n-grams of one order. Logarithms are to base 10 in files, natural in
`NGrams`. Source: the format as in SRILM's manual page ngram-format(5).

    \data\                        text before it is ignored
    ngram 1=3
    ngram 2=1

    \1-grams:
    -99<TAB><s><TAB>-0.3           log10 p, the words, and below the highest order the back-off weight, if not 0
    -0.5<TAB>euro
    …
    \end\

The reader accepts blanks for tabs. −99 or less, also −inf, is read as −99 (SRILM's zero). The probability of <s> is
ignored. A history that is no n-gram (pruned files) is added with its back-off probability and a back-off weight of 1,
which changes no probability. Suffixes need not be n-grams (ngrams.py).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import BOS
from fairseq_llrnn.files.atomic_write import whole_file
from fairseq_llrnn.files.text_lines import ReadCount, iter_lines, place, shown
from fairseq_llrnn.ngrams.ngrams import EMPTY, NGrams, trie_keys

LEAST = -99.0  # log10 of zero
LN_10 = float(np.log(10.0))
COUNT = re.compile(r"ngram\s+(\d{1,4})\s*=\s*(\d{1,18})")
SECTION = re.compile(r"\\(\d{1,4})-grams:")
WRITTEN_AT_ONCE = 100_000  # lines


def read_arpa(path: Path | str) -> NGrams:
    """Read an ARPA file, plain or gzip (recognised by its first bytes), in one pass.

    Raises:
        DataError: the file differs from the format in the module docstring; with the line.
    """
    path = Path(path)
    lines = iter(tqdm(iter_lines(path), f"reading {path.name}", unit=" lines", leave=False, disable=None))
    counts, heading = _read_counts(path, lines)
    index: dict[str, int] = {}
    model = NGrams((), np.zeros(1, np.int64), *np.zeros((2, 0), np.int64), *np.zeros((2, 0)))
    for n in range(1, len(counts) + 1):
        number, line = heading
        match = SECTION.fullmatch(line.strip())
        if match is None or int(match[1]) != n:
            raise DataError(
                f"{place(path, number)}: expected the section `\\{n}-grams:`, as in `\\data\\`, found "
                f"{shown(line) if line else 'the end of the file'}; the file is cut short or damaged"
            )
        section = _Section(path, n, index, highest=n == len(counts))
        heading = section.read(lines, number)
        if len(section.log_probs) != counts[n - 1]:
            raise DataError(
                f"{place(path, heading[0])}: expected {counts[n - 1]:,} {n}-grams, as in `\\data\\`, found "
                f"{len(section.log_probs):,}; the file is cut short, or was changed without its counts"
            )
        model = section.added_to(model)
    if heading[1].strip() != "\\end\\":
        raise DataError(
            f"{place(path, heading[0])}: expected `\\end\\`, found {shown(heading[1]) if heading[1] else 'nothing'}; "
            "the file is cut short, or has more sections than `\\data\\`"
        )
    if BOS in index:
        model.log_probs[index[BOS]] = -np.inf
    _fill_added(model)
    ReadCount(path, "n-grams", None, sum(counts), sum(counts)).done()  # the numbers of the sections were checked
    return model


def _read_counts(path: Path, lines: Iterator[tuple[int, str]]) -> tuple[list[int], tuple[int, str]]:
    r"""Return the counts of `\data\`, and the line after them."""
    number = 0
    for number, line in lines:  # noqa: B007
        if line.strip() == "\\data\\":
            break
    else:
        raise DataError(f"{path}: expected a line `\\data\\`, found none in {number:,} lines; this is no ARPA file")
    counts: list[int] = []
    heading = (number, "")
    for heading in lines:
        text = heading[1].strip()
        if text.startswith("\\"):
            break
        match = COUNT.fullmatch(text)
        if text and (match is None or int(match[1]) != len(counts) + 1):
            raise DataError(
                f"{place(path, heading[0])}: expected `ngram {len(counts) + 1}=COUNT`, found {shown(text)}; "
                "fix the counts under `\\data\\`"
            )
        if match:
            counts.append(int(match[2]))
    if not counts or counts[0] == 0:
        raise DataError(f"{place(path, heading[0])}: expected `ngram 1=COUNT` above, found no words; fix `\\data\\`")
    return counts, heading


class _Section:
    """The n-grams of one order, in the order of the file."""

    def __init__(self, path: Path, order: int, index: dict[str, int], highest: bool) -> None:
        """index: the words of the 1-grams, which the first section fills."""
        self.path, self.order, self.index, self.highest = path, order, index, highest
        self.log_probs, self.back_offs = array("d"), array("d")
        self.words = array("q")  # `order` ids for each n-gram
        self.lines = array("q")

    def read(self, lines: Iterator[tuple[int, str]], number: int) -> tuple[int, str]:
        """Read up to the next line with a backslash, and return that line, or an empty one at the end of the file."""
        order, index = self.order, self.index
        for number, line in lines:
            if line.startswith("\\"):
                return number, line
            cells = line.replace("\t", " ").split(" ")
            if "" in cells:
                cells = [cell for cell in cells if cell]
                if not cells:
                    continue
            if not order < len(cells) <= order + 2:
                raise DataError(
                    f"{place(self.path, number)}: expected log10 p, {_words(order)} and optionally a back-off weight, "
                    f"found {shown(line)}; fix the line"
                )
            if len(cells) == order + 2 and self.highest:
                raise DataError(
                    f"{place(self.path, number)}: expected log10 p and {_words(order)} without a back-off weight in "
                    f"the highest order, found {shown(line)}; remove it, or fix the words"
                )
            try:
                self.log_probs.append(float(cells[0]))
                self.back_offs.append(float(cells[order + 1]) if len(cells) == order + 2 else 0.0)
            except ValueError:
                raise DataError(
                    f"{place(self.path, number)}: expected numbers before and after {_words(order)}, found "
                    f"{shown(line)}; fix the line"
                ) from None
            if order == 1:
                index.setdefault(cells[1], len(self.lines))
            try:
                self.words.extend([index[word] for word in cells[1 : order + 1]])
            except KeyError as error:
                raise DataError(
                    f"{place(self.path, number)}: expected words that are also 1-grams, found "
                    f"{shown(error.args[0])}; add it to the 1-grams or remove this n-gram"
                ) from None
            self.lines.append(number)
        return number, ""

    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return natural log p and back-off weights, (L,), (L,)."""
        log_probs, back_offs = np.array(self.log_probs), np.array(self.back_offs)
        self._check_numbers(np.isnan(log_probs) | (log_probs > 0), "a log10 p of at most 0", log_probs)
        self._check_numbers(np.isnan(back_offs) | (back_offs == np.inf), "a finite back-off weight", back_offs)
        self._check_numbers(back_offs > -LEAST, f"a log10 back-off weight of at most {-LEAST:g}", back_offs)
        return np.maximum(log_probs, LEAST) * LN_10, np.maximum(back_offs, LEAST) * LN_10

    def _check_numbers(self, is_invalid: np.ndarray, expected: str, values: np.ndarray) -> None:
        if is_invalid.any():
            first = int(is_invalid.argmax())
            raise DataError(
                f"{place(self.path, self.lines[first])}: expected {expected}, found {values[first]:g}; "
                "fix the line, or estimate the model again"
            )

    def _check_unique(self, keys: np.ndarray, order: np.ndarray) -> None:
        """Raise DataError if sorted keys are equal. `order` (L,) gives the n-gram of each key."""
        repeated = np.flatnonzero(keys[1:] == keys[:-1])
        if len(repeated):
            lines = np.array(self.lines)
            later = repeated[lines[order[repeated + 1]].argmin()] + 1  # the first repetition in the file
            earlier, later = lines[order[later - 1]], lines[order[later]]
            raise DataError(
                f"{place(self.path, int(later))}: this {self.order}-gram was already given in line {earlier}; "
                "remove one of them"
            )

    def added_to(self, model: NGrams) -> NGrams:
        """Return the model with the n-grams of this order, the next one."""
        log_probs, back_offs = self._numbers()
        spelled = np.array(self.words, dtype=np.int64).reshape(-1, self.order)
        histories = np.full(len(spelled), EMPTY, dtype=np.int64) if self.order == 1 else spelled[:, 0]
        for k in range(1, self.order - 1):
            model = _with_histories(model, histories, spelled[:, k], k + 1)
            histories = model.find(histories, spelled[:, k])
        keys = trie_keys(histories, spelled[:, -1], len(self.index))
        order = np.argsort(keys, kind="stable")
        self._check_unique(keys[order], order)
        return NGrams(
            tuple(self.index),
            np.append(model.starts, len(model) + len(order)),
            np.concatenate([model.histories, histories[order]]),
            np.concatenate([model.last, spelled[order, -1]]),
            np.concatenate([model.log_probs, log_probs[order]]),
            np.concatenate([model.back_offs, back_offs[order]]),
        )


def _words(count: int) -> str:
    return "one word" if count == 1 else f"{count} words"


def _with_histories(model: NGrams, histories: np.ndarray, words: np.ndarray, order: int) -> NGrams:
    """Add the n-grams (L,), (L,) of an order that are missing as histories. Their log p is NaN."""
    missing = model.find(histories, words) < 0
    if not missing.any():
        return model
    size = len(model.words)
    keys = np.unique(trie_keys(histories[missing], words[missing], size))
    places = np.searchsorted(model.keys, keys)
    shifted = np.insert(model.histories, places, keys // size - 1)
    # n-grams after the first new one have moved; histories of the next orders refer to them
    inserted = np.insert(np.zeros(len(model), dtype=bool), places, True)
    moved = shifted + np.searchsorted(places, shifted, side="right")
    return replace(
        model,
        starts=model.starts + np.where(np.arange(model.order + 1) >= order, len(keys), 0),
        histories=np.where(inserted, shifted, moved),
        last=np.insert(model.last, places, keys % size),
        log_probs=np.insert(model.log_probs, places, np.nan),
        back_offs=np.insert(model.back_offs, places, 0.0),
    )


def _fill_added(model: NGrams) -> None:
    """Set the log p of n-grams without one to their back-off probability, the short ones first."""
    for n in range(2, model.order):
        begin, end = model.starts[n - 1 : n + 1]
        added = begin + np.flatnonzero(np.isnan(model.log_probs[begin:end]))
        history = model.histories[added]
        lower = model.log_prob(model.suffixes[history], model.last[added])
        model.log_probs[added] = model.back_offs[history] + lower


def write_arpa(path: Path | str, model: NGrams) -> None:
    """Write a model for other tools. Words that are never predicted are left out, except <s>.

    Raises:
        OSError: the file cannot be written.
    """
    is_written = ~np.isneginf(model.log_probs) | np.array([word == BOS for word in model.words])[model.last]
    is_written[model.starts[1] :] = True
    begins = np.cumsum([0, *is_written])[model.starts]
    words = np.array(model.words, dtype=object)
    with whole_file(Path(path)) as file:
        file.write("\\data\\\n")
        file.writelines(f"ngram {n + 1}={count}\n" for n, count in enumerate(np.diff(begins).tolist()))
        for n in range(1, model.order + 1):
            file.write(f"\n\\{n}-grams:\n")
            entries = model.starts[n - 1] + np.flatnonzero(is_written[model.starts[n - 1] : model.starts[n]])
            for begin in range(0, len(entries), WRITTEN_AT_ONCE):
                part = entries[begin : begin + WRITTEN_AT_ONCE]
                log_probs = np.maximum(model.log_probs[part] / LN_10, LEAST).tolist()
                back_offs = (model.back_offs[part] / LN_10).tolist()
                spelled = words[model.spelled(part, n)].tolist()
                for log_prob, gram, back_off in zip(log_probs, spelled, back_offs, strict=True):
                    tail = f"\t{back_off:.8g}" if n < model.order else ""
                    file.write(f"{log_prob:.8g}\t{' '.join(gram)}{tail}\n")
        file.write("\n\\end\\\n")
