"""Damaged files of fields and taggers are read or refused, never more (tests/torture, for this system's files)."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fuzzing import fuzz, reader_target
from hostile_readers import Reader

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.array_file import map_file, read_arrays, write_arrays
from llrnn_research.markov_field import training
from llrnn_research.markov_field.folder import ARRAYS_FILE, JSON_FILE, TAGS, TRAINING_FILE, write_folder
from llrnn_research.markov_field.learning import Progress
from llrnn_research.markov_field.model import MarkovField
from llrnn_research.markov_field.tagger_training import Tagger, TaggerOptions, train_tagger
from llrnn_research.markov_field.training import FieldOptions, train

INPUTS = 40
ROWS = [("le", "DET"), ("chat", "NOUN"), ("dort", "VERB"), ("ici", "ADV")]


class Stop(Exception):
    pass


@pytest.fixture
def stopped(field_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FieldOptions, Path]:
    """A training that can go on for one step."""
    monkeypatch.setattr(training, "SAVE_EVERY", 0.0)
    options = FieldOptions([str(field_text)], width=2, words=6, iterations=4, penalty=0.01)

    def stop(progress: Progress) -> None:
        if progress.iteration == 4:
            raise Stop

    with pytest.raises(Stop):
        train(options, str(tmp_path / "stopped"), stop)
    return options, tmp_path / "stopped"


@pytest.fixture
def tagger(tmp_path: Path) -> Path:
    rows = [f"{i}\t{word}\t_\t{tag}\t_\t_\t0\t_\t_\t_" for i, (word, tag) in enumerate(ROWS, 1)]
    (tmp_path / "train.conllu").write_text(("\n".join(rows) + "\n\n") * 3, encoding="utf-8")
    out = tmp_path / "tagger"
    train_tagger(TaggerOptions([str(tmp_path / "train.conllu")], 1, 1, iterations=3), str(out))
    return out


def reading(folder: Path, read: Callable[[str], object]) -> Callable[[Path], object]:
    """Reads a copy of the folder in which a file is another one; what the description says of the arrays is true."""

    def act(path: Path) -> object:
        place = path.parent / "folder"
        shutil.copytree(folder, place)
        shutil.copy(path, place / path.name)
        if path.name == ARRAYS_FILE:
            description = json.loads((place / JSON_FILE).read_text(encoding="utf-8"))
            description["arrays_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
            (place / JSON_FILE).write_text(json.dumps(description), encoding="utf-8")
        return read(str(place))

    return act


def check(name: str, folder: Path, file: str, read: Callable[[str], object], place: Path) -> None:
    reader = Reader(name, file, ((folder / file).read_bytes(),), reading(folder, read), names_file=False)
    for part in ("sound", "inputs"):
        (place / part).mkdir()
    (place / "sound" / file).write_bytes(reader.samples[0])
    reader.read(place / "sound" / file)
    found = fuzz(reader_target(reader), name, INPUTS, 1, place / "inputs")
    assert not found.faults, found.faults[:3]
    assert found.counts["refused"]


@pytest.mark.parametrize("file", [JSON_FILE, ARRAYS_FILE])
def test_a_damaged_field(file: str, field_folder: Path, tmp_path: Path) -> None:
    check(f"field {file}", field_folder, file, lambda folder: MarkovField.load(folder).potentials, tmp_path)


@pytest.mark.parametrize("file", [JSON_FILE, ARRAYS_FILE])
def test_a_damaged_tagger(file: str, tagger: Path, tmp_path: Path) -> None:
    check(f"tagger {file}", tagger, file, lambda folder: Tagger.load(folder).tag(["le", "chat"]), tmp_path)


@pytest.mark.parametrize(
    ("name", "changed"), [("tags", []), ("tags", ["</s>"]), ("tags", ["</s>", "X", "X"]), ("features", ["Any", "Any"])]
)
def test_a_tagger_without_tags_or_with_names_that_come_twice(name: str, changed: list[str], tmp_path: Path) -> None:
    names = {"tags": ["</s>", "X"], "features": ["Any"], name: changed}
    size, many = len(names["tags"]), len(names["features"])
    arrays = {"tags": np.zeros(size), "pairs": np.zeros((1, size, size)), "words": np.zeros((1, size, many))}
    write_folder(str(tmp_path / "tagger"), TAGS, {"order": 1, "offsets": [0], **names}, arrays)
    with pytest.raises(DataError, match="each tag and feature once, found others; train it again"):
        Tagger.load(str(tmp_path / "tagger"))


def test_a_damaged_training(stopped: tuple[FieldOptions, Path], tmp_path: Path) -> None:
    options, folder = stopped
    check("field training", folder, TRAINING_FILE, lambda copy: train(options, copy), tmp_path)


def test_the_state_of_another_training(stopped: tuple[FieldOptions, Path]) -> None:
    options, folder = stopped
    mapped = read_arrays(folder / TRAINING_FILE, map_file(folder / TRAINING_FILE))
    arrays = {name: array.copy() for name, array in mapped.items()}
    many, steps = len(arrays["search_x"]), "search_steps"
    for name, changed in (
        ("search_x", arrays["search_x"][:-1]),
        ("scales", arrays["delta"]),
        ("scales", np.zeros(many)),
        ("history", None),
        (steps, np.zeros((3, 2, 0))),
        (steps, np.zeros((3, 0, 5))),
    ):
        state = {key: value for key, value in arrays.items() if key != name}
        with (folder / TRAINING_FILE).open("wb") as file:
            write_arrays(file, state if changed is None else state | {name: changed})
        with pytest.raises(DataError, match=r"training.npz: expected the state of this training, found another one"):
            train(options, str(folder))


HUGE = 10**400  # more than a float holds


def test_entries_of_another_kind(field_folder: Path, tmp_path: Path) -> None:
    whole = json.loads((field_folder / JSON_FILE).read_text(encoding="utf-8"))
    shutil.copytree(field_folder, tmp_path / "field")
    entries = {"order", "width", "form", "symbols", "features", "version", "kind", "format", "arrays_sha256"}
    assert entries < whole.keys()
    for entry in entries:
        for value in (HUGE, -HUGE, float("inf"), float("nan"), 2**63, -1, [[]], {"a": 1}, "x"):
            (tmp_path / "field" / JSON_FILE).write_text(json.dumps({**whole, entry: value}), encoding="utf-8")
            with pytest.raises(DataError, match="; train it again|; give another folder"):
                MarkovField.load(str(tmp_path / "field"))


@pytest.mark.parametrize("many", [HUGE, float("inf"), float("nan"), 2**63, 2**62, -1, 0, True, "3", [], {}])
def test_a_number_of_features_that_is_none(many: object, field_folder: Path, tmp_path: Path) -> None:
    refuse_features(many, [[0, 1], [0, 1]], field_folder, tmp_path)


@pytest.mark.parametrize("places", [[[0, 10**6], [0, 1]], [[0, -1], [0, 1]], [[0, 1], [0, 3]], [[0, 1], [0, 2**62]]])
def test_features_outside_their_table(places: list[list[int]], field_folder: Path, tmp_path: Path) -> None:
    refuse_features(3, places, field_folder, tmp_path)


def refuse_features(many: object, places: list[list[int]], field_folder: Path, tmp_path: Path) -> None:
    """Of a field with these features, whose hash fits."""
    arrays = dict(read_arrays(field_folder / ARRAYS_FILE, map_file(field_folder / ARRAYS_FILE)))
    arrays |= {"feature_places": np.array(places, dtype=np.int64), "feature_values": np.ones(2)}
    description = json.loads((field_folder / JSON_FILE).read_text(encoding="utf-8")) | {"features": many}
    with (tmp_path / ARRAYS_FILE).open("wb") as file:
        write_arrays(file, arrays)
    description["arrays_sha256"] = hashlib.sha256((tmp_path / ARRAYS_FILE).read_bytes()).hexdigest()
    (tmp_path / JSON_FILE).write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(DataError, match="invalid content .features that point outside their table.; train it again"):
        MarkovField.load(str(tmp_path))


def test_numbers_that_are_none_and_places_that_cannot_be_written(field_folder: Path, tmp_path: Path) -> None:
    field = MarkovField.load(str(field_folder))
    field.parameters["unary"][1] = float("nan")
    field.save(str(tmp_path / "field"))
    with pytest.raises(DataError, match="parameter/unary: expected finite numbers, found others; train it again"):
        MarkovField.load(str(tmp_path / "field"))
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"the field cannot be written .*; check the rights"):
        field.save(str(tmp_path / "file" / "field"))


def test_a_treebank_without_sentences(tmp_path: Path) -> None:
    (tmp_path / "empty.conllu").write_text("# no sentence\n\n", encoding="utf-8")
    with pytest.raises(DataError, match="empty.conllu: expected CoNLL-U sentences, found none"):
        train_tagger(TaggerOptions([str(tmp_path / "empty.conllu")], 1, 1))
