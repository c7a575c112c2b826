"""arrays.npz: round trip, mapped without copies, and rejection of other files."""

import copy
import hashlib
import io
import json
import multiprocessing
import os
import pickle
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from small_priors import make_prior

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.files.array_file import ALIGNMENT, map_file, read_arrays, write_arrays
from fairseq_llrnn.prior import Prior

ARRAYS = {
    "whole": np.arange(7, dtype=np.int64),
    "of/part": np.linspace(0, 1, 5, dtype=np.float32),
    "table": np.arange(6.0).reshape(2, 3),
    "turned": np.arange(6.0).reshape(2, 3).T,
    "no numbers": np.zeros((0, 4), dtype=np.int64),
    "a number": np.array(3.5),
    "truth": np.array([True, False]),
    "größe": np.zeros(1, dtype=np.complex64),
}


def written(path: Path, arrays: dict[str, np.ndarray] = ARRAYS) -> Path:
    with path.open("wb") as file:
        write_arrays(file, arrays)
    return path


def read(path: Path) -> dict[str, np.ndarray]:
    return read_arrays(path, map_file(path))


def lies_in_a_mapping(array: np.ndarray) -> bool:
    """Return whether the array's first byte is in a mapped file, by the kernel's list."""
    place = array.ctypes.data
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        begin, end = (int(number, 16) for number in line.split()[0].split("-"))
        if begin <= place < end:
            return line.endswith("arrays.npz")
    return False


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    make_prior().save(tmp_path / "prior")
    return tmp_path / "prior"


# ---- the same numbers -----------------------------------------------------------------------------------------------


def test_arrays_come_back(tmp_path: Path) -> None:
    found = read(written(tmp_path / "arrays.npz"))
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert np.array_equal(found[name], array), name
        assert found[name].ctypes.data % ALIGNMENT == 0 or array.size == 0


def test_numpy_reads_the_file_as_well(tmp_path: Path) -> None:
    with np.load(written(tmp_path / "arrays.npz"), allow_pickle=False) as found:
        assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items())


def test_what_numpy_wrote_is_read(tmp_path: Path) -> None:
    """Priors of earlier versions have such files. Their numbers begin anywhere, and are copied."""
    np.savez(tmp_path / "arrays.npz", **ARRAYS)
    found = read(tmp_path / "arrays.npz")
    assert all(np.array_equal(found[name], array) for name, array in ARRAYS.items())


# ---- mapped ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux says what is mapped where")
def test_a_loaded_prior_is_mapped(saved: Path) -> None:
    prior = Prior.load(saved)
    assert lies_in_a_mapping(prior.log_weights) and lies_in_a_mapping(prior.output.features.values)
    assert not lies_in_a_mapping(prior.log_weights.copy())


def test_writing_into_an_array_leaves_the_file_alone(saved: Path) -> None:
    before = (saved / "arrays.npz").read_bytes()
    Prior.load(saved).log_weights[:] = 0.0
    assert (saved / "arrays.npz").read_bytes() == before
    assert Prior.load(saved).fingerprint == make_prior().fingerprint


def test_another_prior_in_its_place_changes_nothing(saved: Path) -> None:
    """A folder is exchanged as a whole, so that readers of the earlier one keep its file."""
    prior, expected = Prior.load(saved), make_prior().log_weights
    other = make_prior()
    other.log_weights[4:6] = other.log_weights[[5, 4]]  # two words change places
    other.save(saved)
    assert np.array_equal(prior.log_weights, expected)
    assert np.array_equal(Prior.load(saved).log_weights, other.log_weights)
    shutil.rmtree(saved)
    assert prior.fingerprint == make_prior().fingerprint


def test_a_file_system_without_mappings(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise OSError(19, "No such device")

    monkeypatch.setattr("mmap.mmap", refuses)
    assert Prior.load(saved).fingerprint == make_prior().fingerprint


def fingerprint_of(prior: Prior) -> str:
    return prior.fingerprint


def test_a_forked_process_gets_the_prior(saved: Path) -> None:
    """Data-loading workers are forked. Spawned ones get a pickle."""
    prior = Prior.load(saved)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(fingerprint_of, (prior,)) == prior.fingerprint


def test_copies(saved: Path) -> None:
    prior = Prior.load(saved)
    for other in (pickle.loads(pickle.dumps(prior)), copy.deepcopy(prior)):
        assert other.fingerprint == prior.fingerprint


# ---- untrusted ------------------------------------------------------------------------------------------------------


def npy(description: str, numbers: bytes) -> bytes:
    header = (description + " " * (-(len(description) + 11) % 64) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + numbers


def described(shape: str = "(2,)", kind: str = "<f8") -> str:
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy(described(), b"x" * 15), "expected 15 bytes of numbers, found those of the shape (2,)"),
        (npy(described("(1099511627776,)"), b"x" * 16), "expected 16 bytes of numbers, found those of the shape (1099"),
        (npy(described("(999999999999999999, 999999999999999999)"), b""), "expected 0 bytes of numbers"),
        (npy(described("(-1,)"), b"x" * 16), "expected the header of an array of numbers"),
        (npy(described("(2.0,)"), b"x" * 16), "expected the header of an array of numbers"),
        (npy(described(kind="|O"), b"x" * 16), "expected the header of an array of numbers"),
        (npy(described(kind="<f3"), b"x" * 6), "f3"),
        (npy("[" * 900, b""), "expected the header of an array of numbers"),
        (npy(described(), b"x" * 16)[:40], "expected the header of an array of numbers"),
        (b"", "expected the header of an array of numbers"),
    ],
)
def test_members_that_are_no_arrays(saved: Path, member: bytes, message: str) -> None:
    with zipfile.ZipFile(saved / "arrays.npz", "w") as archive:
        archive.writestr("log_weights.npy", member)
    refused(saved, message)


def test_compressed_members(saved: Path) -> None:
    """A few compressed bytes could need any number of bytes in memory."""
    np.savez_compressed(saved / "arrays.npz", log_weights=np.zeros(10**6))
    refused(saved, "log_weights.npy: expected plain bytes, found compressed or encrypted ones")


@pytest.mark.parametrize("field", ["header_offset", "file_size"])
def test_members_outside_of_the_file(saved: Path, field: str) -> None:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("log_weights.npy", npy(described(), b"x" * 16))
    directory = raw.getvalue().rindex(b"PK\1\2")
    place = directory + {"header_offset": 42, "file_size": 24}[field]
    damaged = bytearray(raw.getvalue())
    damaged[place : place + 4] = (10**9).to_bytes(4, "little")
    (saved / "arrays.npz").write_bytes(damaged)
    refused(saved, "expected")


def test_members_that_overlap(saved: Path) -> None:
    """A short file would fill the memory with copies of one member."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("log_weights.npy", npy(described("(5000,)"), bytes(40_000)))
        [first] = archive.infolist()
        for number in range(20):
            again = copy.copy(first)
            again.filename = f"log_weights{number}.npy"
            archive.filelist.append(again)
    (saved / "arrays.npz").write_bytes(raw.getvalue())
    refused(saved, "arrays.npz: expected members of")


def refused(saved: Path, message: str) -> None:
    """Read arrays with a matching hash, and return the PriorError."""
    path = saved / "prior.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    description["arrays_sha256"] = hashlib.sha256((saved / "arrays.npz").read_bytes()).hexdigest()
    path.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(PriorError, match=f"{re.escape(str(saved))}.*{re.escape(message)}.*build it again"):
        Prior.load(saved)


def test_damage_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    """Change every byte of a small file: only errors that callers catch are raised."""
    path = written(tmp_path / "arrays.npz", {"one": np.arange(3.0), "two": np.arange(2)})
    whole = path.read_bytes()
    for place in range(len(whole)):
        raw = bytearray(whole)
        raw[place] ^= 1 << place % 8
        path.write_bytes(raw)
        try:
            found = read(path)
        except (ValueError, TypeError, KeyError, OSError, zipfile.BadZipFile):
            continue
        assert sum(array.nbytes for array in found.values()) <= len(whole), place
    os.truncate(path, 0)
    with pytest.raises(zipfile.BadZipFile):
        read(path)
