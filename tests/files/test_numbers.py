"""Finite but absurd numbers are rejected with file and line, by every reader of numbers."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lexicons import read_values

from fairseq_llrnn.automata.grammar import read_grammar
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.automata.text_format import read_text
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.text_lines import ReadCount
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.readers.values import read_weights
from fairseq_llrnn.ngrams.arpa import read_arpa
from fairseq_llrnn.prior.arrays import check_log_weights
from fairseq_llrnn.systems.reranking.nbest import json_lines, moses
from fairseq_llrnn.systems.reranking.tuning import read_weights_file

WORDS = WordList(("<s>", "<pad>", "</s>", "<unk>", "le", "la"), np.zeros(6, dtype=np.int64))
ARPA = "\\data\\\nngram 1=2\nngram 2=1\n\n\\1-grams:\n-1 le\t{}\n-1\t</s>\n\n\\2-grams:\n-1\tle </s>\n\n\\end\\\n"


def values(path: Path) -> object:
    return read_values(path, lowercase=False)


def weights(path: Path) -> object:
    return read_weights(path, {"le": 4, "la": 5}, 6)


def automaton(path: Path) -> object:
    return read_text(path, Symbols(WORDS))


def grammar(path: Path) -> object:
    return read_grammar(path, Symbols(WORDS))


def moses_list(path: Path) -> object:
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    return list(moses.read(str(path), iter(lines), ReadCount(path)))


def json_list(path: Path) -> object:
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    return list(json_lines.read(str(path), iter(lines), ReadCount(path)))


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (values, "le\tSize:Log\t6.3\nla\tSize:Log\t1e18\n", ", line 2: .*finite number of at most 1,000,000"),
        (values, "le\tSize:Log\t-1e7\n", ", line 1: .*finite number of at most 1,000,000"),
        (weights, "le\t1e300\nla\t1\n", ", line 1: .* 0, or a weight between 1e-99 and 1e.99, for 'le', found 1e300"),
        (weights, "le\t1\nla\t1e-200\n", ", line 2: expected 0, or a weight between 1e-99 and 1e.99, for 'la'"),
        (automaton, "0 1 le 1e30\n1\n", ", line 1: expected a −log weight between −1,000 and 1,000, found '1e30'"),
        (automaton, "0 1 le\n1 -1e30\n", ", line 2: expected a −log weight between −1,000 and 1,000"),
        (automaton, "weights probabilities\n0 1 le 1e-200\n1\n", ", line 2: expected a weight between 1e-99 and 1e.99"),
        (grammar, "S -> 'le' [1e200]\n", ", line 1: expected a weight > 0 in brackets, from 1e-99 to 1e.99"),
        (read_arpa, ARPA.format("1e30"), ", line 6: expected a log10 back-off weight of at most 99, found 1e.30"),
        (moses_list, "0 ||| le ||| LM= -1 ||| -1e200\n", ", line 1: expected a number of at most 1e.12 as total"),
        (json_list, '{"id": 0, "hypotheses": [{"text": "le", "score": -1, "features": {"lm": 1e200}}]}\n',
         r", line 1: expected lines such as .*features\.lm: Input should be less than or equal to 1000000000000"),
        (lambda path: read_weights_file(path, ["model"]), '{"weights": {"model": 1e200}}',
         ": expected finite weights, found .*the limit is 1e.12"),
    ],
)  # fmt: skip
def test_absurd_numbers_are_refused(read: Callable[[Path], object], text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"^{path}{said}"):
        read(path)


def test_large_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for read, text in ((values, "le\tSize:Log\t-999999\n"), (weights, "le\t1e90\nla\t1e-90\n"),
                       (automaton, "0 1 le -900\n1\n"), (read_arpa, ARPA.format("98.5"))):  # fmt: skip
        path.write_text(text, encoding="utf-8")
        read(path)
    Lexicon().add("le", {"Size:Log": 1e6})


@pytest.mark.parametrize("value", [1e30, -1e30, 1_000_001.0])
def test_absurd_log_weights_of_a_prior_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="log_weights: expected logarithms up to 1,000,000, found larger ones"):
        check_log_weights(np.array([0.0, -math.inf, value]), 3)
    check_log_weights(np.array([0.0, -math.inf, 900_000.0]), 3)
