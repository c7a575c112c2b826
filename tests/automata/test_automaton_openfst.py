"""OpenFst's binary files: symbols, weights, the same as its text, every bad file."""

import itertools
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from automata import string_weights

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.automaton_files import is_openfst, read_automaton
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

pynini = pytest.importorskip("pynini", reason="pynini is not installed: pip install '.[automata]'")
pywrapfst = pytest.importorskip("pywrapfst", reason="pynini is not installed")

NAMES = ("a", "b", "c")
WORDS = WordList((*SPECIALS, *NAMES), np.array([0] * 4 + [5] * 3))


def table(names: tuple[str, ...] = NAMES) -> "pynini.SymbolTable":
    symbols = pynini.SymbolTable()
    for name in ("<eps>", *names):
        symbols.add_symbol(name)
    return symbols


def compiled(text: str, symbols: "pynini.SymbolTable | None", arc_type: str = "standard") -> "pywrapfst.Fst":
    compiler = pywrapfst.Compiler(
        arc_type=arc_type, isymbols=symbols, osymbols=symbols, acceptor=True, keep_isymbols=symbols is not None
    )
    compiler.write(text)
    return compiler.compile()


def read(path: Path, unknown: str = "error") -> Automaton:
    return read_automaton(path, WORDS, unknown).automaton


TEXT = "0 1 a 0.5\n0 2 a 1.5\n1 3 b\n2 3 b 0.25\n0 3 <eps> 2\n3 0.125\n"


@pytest.mark.parametrize("arc_type", ["standard", "log", "log64"])
@pytest.mark.parametrize("kind", ["vector", "const"])
def test_reads_what_its_text_says(tmp_path: Path, arc_type: str, kind: str) -> None:
    pywrapfst.convert(compiled(TEXT, table(), arc_type), kind).write(str(tmp_path / "a.fst"))
    (tmp_path / "a.txt").write_text(TEXT)
    assert is_openfst(tmp_path / "a.fst") and not is_openfst(tmp_path / "a.txt")
    binary, text = read(tmp_path / "a.fst"), read(tmp_path / "a.txt")
    expected = string_weights(text, NAMES, 4, 3)
    assert set(expected) == {"", "a b"}
    assert string_weights(binary, NAMES, 4, 3) == pytest.approx(expected, rel=1e-6)


def test_labels_are_ids_where_there_is_no_table(tmp_path: Path) -> None:
    compiled("0 1 4\n1 2 6\n2\n", None).write(str(tmp_path / "a.fst"))
    assert string_weights(read(tmp_path / "a.fst"), NAMES, 4, 3) == {"a c": 1}
    compiled("0 1 4\n1 2 9\n2\n", None).write(str(tmp_path / "a.fst"))
    with pytest.raises(DataError, match="a.fst, state 1: label 9 is in no table of symbols; give the file one"):
        read(tmp_path / "a.fst")


def test_weights_that_are_finite_but_absurd(tmp_path: Path) -> None:
    compiled("0 1 4 1e30\n1\n", None).write(str(tmp_path / "a.fst"))
    with pytest.raises(DataError, match=r"state 0: expected a −log weight between −1,000 and 1,000, found 1e\+30"):
        read(tmp_path / "a.fst")


def test_reads_what_pynini_makes(tmp_path: Path) -> None:
    """A union, a closure and a difference, as a set of strings."""
    symbols = table()

    def words(text: str) -> "pynini.Fst":
        return pynini.accep(text, token_type=symbols)

    either = pynini.union(words("a b"), words("c"), words("a c b")).closure()
    fst = pynini.difference(either, words("c")).optimize()
    fst.set_input_symbols(symbols)
    fst.write(str(tmp_path / "a.fst"))
    found = string_weights(read(tmp_path / "a.fst"), NAMES, 4, 4)
    expected = set()
    for n in range(5):
        for parts in itertools.product(("a b", "c", "a c b"), repeat=n):
            if parts != ("c",) and len(" ".join(parts).split()) <= 4:
                expected.add(" ".join(parts))
    assert found == dict.fromkeys(expected, 1.0)


def test_unknown_symbols(tmp_path: Path) -> None:
    compiled("0 1 a\n0 1 z\n1\n", table((*NAMES, "z"))).write(str(tmp_path / "a.fst"))
    with pytest.raises(DataError, match="a.fst, state 0: symbol 'z' is not in the dictionary"):
        read(tmp_path / "a.fst")
    assert string_weights(read(tmp_path / "a.fst", "drop"), NAMES, 4, 2) == {"a": 1}


def test_infinite_mass(tmp_path: Path) -> None:
    compiled("0 0 a 0.1\n0 0 b 0.1\n0\n", table()).write(str(tmp_path / "a.fst"))
    with pytest.raises(DataError, match="expected weights whose sum over all strings is finite, found the cycle `"):
        read(tmp_path / "a.fst")


def test_bad_files(tmp_path: Path) -> None:
    file = tmp_path / "a.fst"
    fst = pynini.cross("a", "b")
    fst.write(str(file))
    with pytest.raises(DataError, match="expected an acceptor, found an arc that reads .* and writes .*fstproject"):
        read(file)
    compiled(TEXT, table()).write(str(file))
    whole = file.read_bytes()
    for length in (4, 8, 30, len(whole) - 3):
        file.write_bytes(whole[:length])
        with pytest.raises(DataError, match="expected a whole file of OpenFst, found"):
            read(file)
    file.write_bytes(whole.replace(b"vector", b"../../", 1))
    with pytest.raises(DataError, match="expected a vector or const automaton, found b'../../'"):
        read(file)
    file.write_bytes(whole.replace(b"standard", b"gallicxx", 1))
    with pytest.raises(DataError, match="expected standard, log or log64 weights, found b'gallicxx'"):
        read(file)
    states = whole.index(struct.pack("<q", 4))
    file.write_bytes(whole[:states] + struct.pack("<q", 1 << 40) + whole[states + 8 :])
    with pytest.raises(DataError, match="expected a whole file of OpenFst, found 1,099,511,627,776 states in"):
        read(file)
    compiled("0 1 4\n1\n", None).write(str(file))
    whole = file.read_bytes()
    arc = whole.index(struct.pack("<iif", 4, 4, 0.0))  # labels and weight; the next state follows
    file.write_bytes(whole[: arc + 12] + struct.pack("<i", 9) + whole[arc + 16 :])
    with pytest.raises(DataError, match="expected arcs between its states, found others; write it again"):
        read(file)
    compiled("", table()).write(str(file))
    with pytest.raises(DataError, match="accepts no string: it has no start"):
        read(file)


def test_without_pynini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(TEXT, table()).write(str(tmp_path / "a.fst"))
    monkeypatch.setitem(sys.modules, "pywrapfst", None)
    with pytest.raises(DataError, match=r"a.fst: expected pynini, .*\[automata\].*fstprint"):
        read(tmp_path / "a.fst")
