"""The grammar that is read off ATIS' forms accepts them, and what can be put together from their arguments."""

from pathlib import Path

import numpy as np
import pytest
from example_modules import EXAMPLES, load

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.reading import read_automaton
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

(atis,) = load(EXAMPLES / "semantic_parsing", "atis_grammar")
FORMS = ["answer(_flight(intersection(_from_2(city_name(boston)),_to_2(city_name(denver)))))", "answer(code(f))"]


def accepts(automaton: Automaton, symbols: list[str], form: str) -> bool:
    state = 0
    for token in [*(symbols.index(word) for word in atis.TOKEN.findall(form)), END]:
        row = automaton.row(state)
        if token not in row:
            return False
        state = row[token][1]
    return True


def test_forms_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "forms.tsv"
    path.write_text("".join(f"a question\t{form}\n" for form in FORMS), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["atis_grammar.py", str(path), "--depth", "7"])
    assert atis.main() == 0
    grammar = tmp_path / "atis.grammar"
    grammar.write_text(capsys.readouterr().out, encoding="utf-8")
    symbols = [*SPECIALS, *sorted({word for form in FORMS for word in atis.TOKEN.findall(form)})]
    automaton = read_automaton(grammar, WordList(tuple(symbols), np.ones(len(symbols), dtype=np.int64))).automaton
    assert all(accepts(automaton, symbols, form) for form in FORMS)
    assert accepts(automaton, symbols, FORMS[0].replace("boston", "denver"))
    assert not accepts(automaton, symbols, "answer(code(boston))")


def test_what_is_no_form() -> None:
    with pytest.raises(ValueError, match="expected one form"):
        atis.parse("answer(a))")
