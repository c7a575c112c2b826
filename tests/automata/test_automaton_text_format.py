"""Automata as text: what lines mean, determinisation, trimming, finite mass, every bad line."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from automata import string_weights

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

NAMES = "le la chat table dort 3".split()
WORDS = WordList((*SPECIALS, *NAMES, "madeupword0000"), np.array([0] * 4 + [5] * 6 + [0]))
INDEX = {name: i for i, name in enumerate(WORDS.symbols)}


def read(tmp_path: Path, text: str, unknown: str = "error") -> Automaton:
    file = tmp_path / "a.txt"
    file.write_text(text, encoding="utf-8")
    return read_automaton(file, WORDS, unknown).automaton


def language(automaton: Automaton, longest: int) -> dict[str, float]:
    return string_weights(automaton, NAMES, 4, longest)


def test_what_fstprint_writes(tmp_path: Path) -> None:
    automaton = read(tmp_path, "0\t1\tle\t0.5\n0\t1\tla\n1\t2\tchat\t1\n2\t0.25\n")
    assert language(automaton, 3) == pytest.approx({"le chat": math.exp(-1.75), "la chat": math.exp(-1.25)})
    both = read(tmp_path, "0 1 le le 0.5\n0 1 la la\n1 2 chat chat 1\n2 0.25\n")
    assert language(both, 3) == pytest.approx(language(automaton, 3))
    numbers = read(tmp_path, "0 1 3 3\n1\n")
    assert language(numbers, 2) == {"3": 1.0}
    mixed = read(tmp_path, "0 1 3 3\n0 1 le 1\n1\n")
    assert language(mixed, 2) == pytest.approx({"3": math.exp(-3), "le": math.exp(-1)})


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_binary_file_of_openfst_is_an_error(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "a.fst"
    file.write_bytes(pack(b"\xd6\xfd\xb2\x7e\x06\0\0\0vector\x08\0\0\0standard\x02\0\0\0"))
    with pytest.raises(DataError, match="a.fst: expected text, found a binary file of OpenFst; write it as text"):
        read_automaton(file, WORDS)


@pytest.mark.parametrize(
    "text",
    [
        "0\t1\tle\tle\n1\t2\t\t\n2\t3\tchat\tchat\n3\n",  # as pyfoma writes the empty symbol
        "0\t1\tle\tle\t0\n1\t2\t\t\t0\n2\t3\tchat\tchat\t0\n3\t0\n",
        "0\t1\tle\n1\t2\t\t0\n2\t3\tchat\n3\t\n",
        "0\t1\tle\tle\t\n1\t2\t<eps>\t<eps>\t\t\n2\t3\tchat\tchat\t\n3\t\n",  # with tabs at the ends
        "0 1 le\t\n1 2 chat\t\n2\n",  # fields between blanks, a tab at the end
        "0 1 le le\n1\t2\t@0@\t@0@\n2 3\tchat chat\n3 \n",  # as foma writes it; blanks and tabs
    ],
)
def test_empty_fields_are_the_empty_symbol(text: str, tmp_path: Path) -> None:
    assert language(read(tmp_path, text), 3) == pytest.approx({"le chat": 1.0})


def test_probabilities_comments_and_names(tmp_path: Path) -> None:
    automaton = read(tmp_path, "# a start\nweights probabilities\n\nbegin noun le 0.5\nnoun end chat 0.25\nend 0.5\n")
    assert language(automaton, 3) == pytest.approx({"le chat": 0.0625})


def test_paths_with_the_same_words_are_one(tmp_path: Path) -> None:
    text = "weights probabilities\n0 1 le 0.5\n0 2 le 0.25\n1 3 chat 0.5\n2 3 chat 1\n2 4 table 0.5\n3 1\n4 0.5\n"
    automaton = read(tmp_path, text)
    assert language(automaton, 3) == pytest.approx({"le chat": 0.5, "le table": 0.0625})
    # a set of strings has no weights, however many ways there are to a string
    automaton = read(tmp_path, "0 1 le\n0 2 le\n1 3 chat\n2 3 chat\n3\n3 0 <eps>\n0 3 <epsilon>\n")
    assert language(automaton, 4) == {"": 1, "le chat": 1, "le chat le chat": 1}


def test_empty_arcs_have_weights(tmp_path: Path) -> None:
    empty = "0 1 <eps> 0.5\n0 2 <eps> 0.25\n1 2 <eps> 0.5\n3 0 <eps> 0.5\n"
    found = language(read(tmp_path, f"weights probabilities\n{empty}2 3 le 0.5\n1 3 la 0.5\n3\n"), 2)
    le, la = (0.25 + 0.25) * 0.5, 0.25
    assert found == pytest.approx(
        {"le": le, "la": la, "le le": le * le / 2, "le la": le * la / 2, "la le": le * la / 2, "la la": la * la / 2}
    )
    with pytest.raises(DataError, match="a cycle of empty arcs .<eps>. with weights; remove it"):
        read(tmp_path, "0 1 <eps> 0.5\n1 0 <eps> 0.5\n1 2 le\n2\n")


def test_failures(tmp_path: Path) -> None:
    automaton = read(tmp_path, "0 1 le 1\nfail 0 root 0.5\nfail 1 0 0.25\n1 0 chat\n")
    assert automaton.fail.tolist() == [ROOT, 0]
    assert automaton.back_off.tolist() == [-0.5, -0.25]
    assert (automaton.root_next == 0).all()
    flat = read(tmp_path, "0 1 le 1\n0 0.5\nfail 1 0 0.25\n1 0 chat 9\n")
    assert flat.fail.tolist() == [NOTHING, NOTHING]
    assert flat.row(1) == {END: (-0.75, 0), INDEX["le"]: (-1.25, 1), INDEX["chat"]: (-9.0, 0)}


def test_failures_may_come_first_and_name_no_start(tmp_path: Path) -> None:
    arcs, failures = "0 1 le 1\n0 0.5\n1 0 chat 9\n", "fail 1 0 0.25\n"
    early, late = read(tmp_path, failures + arcs), read(tmp_path, arcs + failures)
    assert early.num_states == late.num_states == 2
    assert [early.row(state) for state in (0, 1)] == [late.row(state) for state in (0, 1)]
    alone = read(tmp_path, "fail free root\n")  # all strings, as the prior has them
    assert alone.fail.tolist() == [ROOT] and alone.num_arcs == 0


def test_dead_ends_go(tmp_path: Path) -> None:
    automaton = read(tmp_path, "0 1 le\n1 2 chat\n0 3 la\n3 3 table\n4 2 le\n2\n")
    assert automaton.num_states == 3 and automaton.num_arcs == 3
    assert language(automaton, 3) == {"le chat": 1}


def test_unknown_symbols(tmp_path: Path) -> None:
    text = "0 1 le\n0 1 chien\n0 1 loup\n1\n"
    with pytest.raises(DataError, match=r"a.txt, line 2: symbol 'chien' is not in the dictionary, nor is 'loup' .2"):
        read(tmp_path, text)
    assert language(read(tmp_path, text, "drop"), 2) == {"le": 1}
    notes = read_automaton(tmp_path / "a.txt", WORDS, "drop").notes
    assert notes == {"arcs on symbols that the dictionary lacks, dropped": 2}
    with pytest.raises(DataError, match="no string: no path from its start ends .1 of its symbols were unknown and"):
        read(tmp_path, "0 1 chien\n1\n", "drop")
    with pytest.raises(OptionError, match="unknown symbols: expected one of error, drop, found 'skip'"):
        read(tmp_path, text, "skip")


def test_words_without_a_weight_below(tmp_path: Path) -> None:
    root = np.zeros(len(WORDS))
    root[[0, 1, INDEX["le"]]] = -np.inf
    (tmp_path / "a.txt").write_text("0 1 le\n1\n")
    message = "line 1: symbol 'le' has no weight in the static background below the automaton"
    with pytest.raises(DataError, match=message):
        read_automaton(tmp_path / "a.txt", WORDS, log_weights=root)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected lines `from to symbol`, found none"),
        ("# only words\n", "expected lines `from to symbol`, found none"),
        ("le 12\nla 7\n", "expected lines `from to symbol`, found none; is it the right file?"),
        ("0 1 le 1 2 3\n", r"line 1: expected `from to symbol \[weight\]`, found 6 fields"),
        ("0 1 le x1\n", "line 1: expected a number as weight, found 'x1'"),
        ("0 1 le\n1 inf\n", "line 2: expected a finite −log weight, found 'inf'"),
        ("0 1 le nan\n", "line 1: expected a finite −log weight, found 'nan'"),
        ("weights probabilities\n0 1 le 0\n", "line 2: expected a weight > 0, found '0'"),
        ("weights counts\n", "line 1: expected `weights probabilities`, found 'weights counts'"),
        ("0 1 le la 0.5\n1\n", "line 1: expected an acceptor, found 'le' on one side and 'la' on the other"),
        ("0 1 </s>\n1\n", "line 1: arcs cannot have </s>, which final states add; make the state final"),
        ("0 1 <pad>\n1\n", "line 1: symbol '<pad>' is never predicted"),
        ("0 1 madeupword0000\n1\n", "line 1: symbol 'madeupword0000' is never predicted"),
        ("0 1 le\n1\n1 0.5\n", "line 3: state '1' is final already"),
        ("fail 0\n", r"line 1: expected `fail from to \[weight\]`, found 2 fields"),
        ("fail 0 1\nfail 0 root\n", "line 2: state '0' already fails to another"),
        ("0 1 le\n0 0 le\n1\nfail 1 0\n", "line 2: expected a deterministic automaton where states fail"),
        ("0 1 <eps>\n1\nfail 1 0\n", "line 1: expected a deterministic automaton where states fail"),
        ("0 1 le\n1\nfail 1 0\nfail 0 1\n", "chains of at most 64 failures, found a longer one from state 0"),
        ("0 1 le\n", "accepts no string: no path from its start ends; fix the file"),
        ("2\n0 1 le\n1\n", "expected strings of words, found the empty string alone"),  # the first state is the start
        ("0 1 le\n1\n--\n0 1 la\n1\n", "line 3: expected the name of a state, found '--'; give one automaton"),
        ("0 -1 le\n-1\n", "line 1: expected the name of a state, found '-1'"),
        ("0 1 le\n1\nfail -1 0\n", "line 3: expected the name of a state, found '-1'"),
        ("\t1\tle\n1\n", "line 1: expected the name of a state, found ''"),
        ("0\t\tle\n1\n", "line 1: expected the name of a state, found ''"),
        ("0\t1\t\n1\n", "line 1: expected a symbol, found an empty field; write <eps>, or remove the tab"),
        ("0\t1\tle\tle\n1\t2\tla\t\n2\n", "line 2: expected an acceptor, found 'la' on one side and '' on"),
        ("0\t1\tle\t\n1\n", "line 1: expected an acceptor, found 'le' on one side and '' on the other"),
        ("0\t1\t\tle\t2\n1\n", "line 1: expected an acceptor, found '<eps>' on one side and 'le' on the other"),
        ("0\t1\tle\n1\tInfinity\n", "line 2: expected a finite −log weight, found 'Infinity'"),
    ],
)
def test_bad_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize(("alone", "rest"), [("2\n", ""), ("2 0.5\n3\n", ""), ("2\n", "fail 1 0\n")])
def test_final_states_that_no_arc_leads_to_change_nothing(tmp_path: Path, alone: str, rest: str) -> None:
    found, expected = (read(tmp_path, f"0 1 le 1\n1 0.5\n{more}{rest}") for more in (alone, ""))
    assert (found.num_states, found.tokens.tolist()) == (expected.num_states, expected.tokens.tolist())


@pytest.mark.parametrize(("leak", "finite"), [(0.001, True), (1e-7, True), (0.0, False), (-0.001, False)])
def test_long_cycles_near_one_are_decided(tmp_path: Path, leak: float, finite: bool) -> None:
    """700 words round, all of weight 1 but one: power iteration alone would take for ever."""
    arcs = "".join(f"{i} {i + 1} le 1\n" for i in range(699))
    text = f"weights probabilities\n{arcs}699 0 le {1 - leak!r}\n0 0.5\n"
    if finite:
        assert read(tmp_path, text).num_states == 700
        return
    with pytest.raises(DataError, match="found the cycle `le le .* …` of weight 1"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "cycle"),
    [
        ("0 0 le 1\n0 0.5\n", "`le` of weight 1,"),
        ("0 0 le 0.6\n0 0 la 0.5\n0 0.1\n", "`le` of weight 0.6,"),
        ("0 1 le 0.5\n1 2 chat 4\n2 1 dort 0.5\n2 1\n", "`(chat dort|dort chat)` of weight 2,"),
        ("0 1 le 5\n1 2 la 5\n2 0 chat 0.05\n0 1\n2 2 le 0.5\n", "`(le|la|chat) .*` of weight 1.25,"),
        ("0 0 le 1e90\n0 0.5\n", r"`le` of weight 1e\+90,"),
        ("0 0 le 0.5\n0 0 la 0.49\n0 0.01\n", None),
        ("0 1 le 0.9\n1 0 la 1\n0 1\n", None),
        ("0 1 le 5\n1 2 la 5\n2 0 chat 0.01\n0 1\n2 2 le 0.5\n", None),
    ],
)
def test_infinite_masses_are_refused_with_a_cycle(tmp_path: Path, text: str, cycle: str | None) -> None:
    text = f"weights probabilities\n{text}"
    if cycle is None:
        read(tmp_path, text)
        return
    with pytest.raises(DataError, match=f"finite, found the cycle {cycle}.*leave all weights out"):
        read(tmp_path, text)


def test_a_set_of_strings_may_go_round(tmp_path: Path) -> None:
    assert len(language(read(tmp_path, "0 0 le\n0 0 la\n0\n"), 3)) == 15


def test_what_has_too_many_states_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The 20th word from the end is `le`: every subset of the last 20 words is a state."""
    chain = "".join(f"{i} {i + 1} {w}\n" for i in range(1, 20) for w in ("le", "la"))
    monkeypatch.setattr("fairseq_llrnn.automata.limits.MOST_STEPS", 10_000)
    with pytest.raises(DataError, match="more than 10,000 steps .*: of 21 states, .* make it deterministic first"):
        read(tmp_path, f"0 0 le\n0 0 la\n0 1 le\n{chain}20\n")
