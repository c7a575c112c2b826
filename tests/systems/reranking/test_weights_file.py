"""Tuned weights on disk."""

from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.reranking.tuning import read_weights_file, write_weights

NAMES = ("list", "model", "words")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    weights = np.array([0.5, 1 / 3, -1 / 6])
    write_weights(path, NAMES, weights, {"metric": "BLEU"})
    assert read_weights_file(path, NAMES).tolist() == weights.tolist()
    assert read_weights_file(path, ("words", "list", "model")).tolist() == [-1 / 6, 0.5, 1 / 3]
    assert [p.name for p in tmp_path.iterdir()] == ["weights.json"]


def failure(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_weights_file(path, NAMES)
    return str(error.value)


HUGE = "1" + "0" * 400  # more than a float holds
OTHERS = ["", "[]", "{}", '{"weights": [1]}', '{"weights": {"list": "x"}}', "[" * 100_000, "1" * 5_000]
OTHERS += [f'{{"weights": {{"list": {number}}}}}' for number in (HUGE, f"-{HUGE}", "1" * 5_000, "null", "[]")]


@pytest.mark.parametrize("text", OTHERS)
def test_another_kind_of_file(tmp_path: Path, text: str) -> None:
    assert failure(tmp_path / "w", text).endswith("found something else; tune again")


def test_weights_of_other_models(tmp_path: Path) -> None:
    assert failure(tmp_path / "w", '{"weights": {"list": 1, "lm": 2}}') == (
        f"{tmp_path / 'w'}: expected weights of list, model, words, found those of list, lm; give the models, "
        "--features and the kind of list used in tuning"
    )


def test_weights_that_are_no_numbers(tmp_path: Path) -> None:
    said = failure(tmp_path / "w", '{"weights": {"list": 1, "model": NaN, "words": 0}}')
    assert "expected finite weights, found {" in said


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent: cannot be read: No such file"):
        read_weights_file(tmp_path / "absent", NAMES)
