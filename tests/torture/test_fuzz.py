"""Damaged inputs are read or refused, never more: the short form of scripts/torture.py fuzz."""

from pathlib import Path

import pytest
from fuzzing import AT_ONCE, Outcome, fuzz, grouped, reader_target, reader_targets
from hostile_priors import make_priors, prior_targets
from hostile_readers import Reader, readers

from fairseq_llrnn.errors import DataError

INPUTS = 40


def explained(name: str, found: Outcome) -> list[str]:
    return [f"{name}, input {number}: {what}" for _, _, number, what in grouped({name: found})]


@pytest.mark.parametrize("reader", readers(), ids=lambda reader: reader.name)
def test_the_sound_files_are_accepted(reader: Reader, tmp_path: Path) -> None:
    """Otherwise most damaged ones would be refused for another reason than their damage."""
    for sample in reader.samples:
        path = tmp_path / reader.file
        path.write_bytes(sample)
        reader.read(path)


@pytest.mark.parametrize("name", reader_targets())
def test_a_damaged_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    found = fuzz(reader_targets()[name], name, INPUTS, 1, tmp_path)
    assert not found.faults, explained(name, found)
    assert found.counts.total() == INPUTS and found.counts["refused"]


def test_a_damaged_prior_of_any_kind_is_used_or_refused(tmp_path: Path) -> None:
    targets = prior_targets(make_priors(tmp_path))
    faults = []
    for name, target in targets.items():
        found = fuzz(target, name, INPUTS // 2, 1, tmp_path)
        faults += explained(name, found)
        assert found.counts["accepted"] and found.counts["refused"]
    assert not faults


# ---- the fuzzer itself ----------------------------------------------------------------------------------------------


def read_badly(path: Path) -> None:
    """A reader with every fault."""
    data = path.read_bytes()
    if data.startswith(b"memory"):
        bytearray(1 << 40)
    if data.startswith(b"bug"):
        raise KeyError("bug")
    if data.startswith(b"death"):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGSEGV)
    if data.startswith(b"vague"):
        raise DataError("something is wrong")
    raise DataError(f"{path}: refused")


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (b"memory", "MemoryError"),
        (b"bug", "KeyError at test_fuzz.py"),
        (b"death", "the process died: -11"),
        (b"vague", "does not name the file"),
    ],
)
def test_the_fuzzer_finds(sample: bytes, said: str, tmp_path: Path) -> None:
    """Each kind of fault, and goes on after it."""
    target = reader_target(Reader("bad", "file", (sample * 50,), read_badly))
    found = fuzz(target, "bad", 20, 1, tmp_path)
    assert found.counts.total() == 20 <= AT_ONCE
    assert any(said in what for _, what in found.faults)
    assert found.counts["refused"] or sample == b"vague"


def test_an_input_can_be_made_again(tmp_path: Path) -> None:
    kept = []

    def target(place: Path, rng: object) -> str:
        kept.append(rng.random())  # type: ignore[attr-defined]
        return "accepted"

    from fuzzing import again

    assert again(target, "name", 7, 1, tmp_path) == "accepted"
    again(target, "name", 7, 1, tmp_path)
    again(target, "name", 8, 1, tmp_path)
    assert kept[0] == kept[1] != kept[2]
