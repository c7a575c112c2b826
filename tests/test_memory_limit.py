"""The tests' own limit of memory: what they, or commands that they start, allocate beyond it fails a test."""

import subprocess
import sys

import pytest

TOO_MUCH = 7 << 30  # bytes


def test_a_leak_fails_a_test() -> None:
    with pytest.raises(MemoryError):
        bytearray(TOO_MUCH)


def test_a_leak_of_a_command_fails_it() -> None:
    found = subprocess.run([sys.executable, "-c", f"bytearray({TOO_MUCH})"], capture_output=True, text=True)
    assert found.returncode == 1 and "MemoryError" in found.stderr
