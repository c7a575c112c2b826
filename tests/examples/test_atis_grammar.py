"""ATIS: the grammar of types that is read off its forms, names and numbers in symbols, and the judge of forms."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from example_modules import EXAMPLES, load

from fairseq_llrnn.automata.automaton import END, Automaton
from fairseq_llrnn.automata.automaton_files import read_automaton
from fairseq_llrnn.features.dictionary import SPECIALS, WordList

FOLDER = EXAMPLES / "semantic_parsing"
atis, prepare, score, pairs = load(FOLDER, "atis_grammar", "atis_prepare", "atis_score", "funql_pairs")
FORMS = [
    "answer(_flight(intersection(_from_2(city_name(boston)),_to_2(city_name(denver)),_nonstop(_to_2(city_name(rome))))))",
    "answer(_nonstop(intersection(_day_2(day(friday)),or(_from_2(city_name(rome)),_to_2(city_name(rome))))))",
    "answer(code(f))",
]


def automaton_of(path: Path, forms: list[str]) -> tuple[Automaton, list[str]]:
    symbols = [*SPECIALS, *sorted({word for form in forms for word in atis.TOKEN.findall(form)})]
    return read_automaton(path, WordList(tuple(symbols), np.ones(len(symbols), dtype=np.int64))).automaton, symbols


def accepts(automaton: Automaton, symbols: list[str], form: str) -> bool:
    state = 0
    for token in [*(symbols.index(word) for word in atis.TOKEN.findall(form)), END]:
        row = automaton.row(state)
        if token not in row:
            return False
        state = row[token][1]
    return True


@pytest.mark.parametrize(
    ("form", "accepted"),
    [
        *((form, True) for form in FORMS),
        (FORMS[0].replace("boston", "denver"), True),
        ("answer(code(boston))", False),
        # the slots of _flight and _nonstop share two functions: each holds what the other does
        ("answer(_flight(_day_2(day(friday))))", True),
        ("answer(_flight(intersection(_day_2(day(friday)),_to_2(city_name(rome)))))", True),
        ("answer(_day_2(day(friday)))", False),  # an answer is a thing of any type, which says nothing of it
        ("answer(_flight(intersection(_to_2(city_name(rome)))))", False),  # a list has two members or more
        (
            f"answer(_flight(intersection({','.join(['_to_2(city_name(rome))'] * 4)})))",
            False,
        ),  # and at most those of training
    ],
)
def test_what_the_grammar_accepts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str, accepted: bool
) -> None:
    path = tmp_path / "forms.tsv"
    path.write_text("".join(f"a question\t{form}\n" for form in FORMS), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["atis_grammar.py", str(path)])
    atis.main()
    grammar = tmp_path / "atis.grammar"
    grammar.write_text(capsys.readouterr().out, encoding="utf-8")
    automaton, symbols = automaton_of(grammar, FORMS)
    assert accepts(automaton, symbols, form) == accepted


@pytest.mark.slow
@pytest.mark.real_data("atis-funql")
def test_atis_grammar_is_within_the_budget(shared_data: Path, tmp_path: Path) -> None:
    read = {
        split: pairs.read_pairs(shared_data / "atis-funql" / f"{split}.tsv.gz", atis.parse)
        for split in ("train", "dev")
    }
    path = tmp_path / "atis.grammar"
    path.write_text(atis.grammar_of([pair.form for pair in read["train"]]), "utf-8")
    automaton, symbols = automaton_of(path, [str(pair.form).replace(" ", "") for pair in read["train"]])
    shares = {}
    for split, several in read.items():
        forms = [str(pair.form).replace(" ", "") for pair in several]
        known = [form for form in forms if set(atis.TOKEN.findall(form)) <= set(symbols)]
        shares[split] = sum(accepts(automaton, symbols, form) for form in known) / len(forms)
    assert shares["train"] > 0.98 and shares["dev"] > 0.95


# ---- names and numbers ---------------------------------------------------------------------------------------------

PAIRS = [
    ("flights from boston to new york", "answer(f(intersection(from(city_name(boston)),to(city_name(new_york)))))"),
    ("flights from new york", "answer(f(from(city_name(new_york))))"),
    ("flights as late as 5 on flight 417", "answer(f(intersection(at(time(1700)),number(flight_number(417)))))"),
    ("what is as", "answer(airline(airline_code(as)))"),
    ("as many as possible from boston", "answer(f(from(city_name(boston))))"),
]


def written(folder: Path, **splits: list[tuple[str, str]]) -> Path:
    for split, several in splits.items():
        with gzip.open(folder / f"{split}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines("\t".join(pair) + "\n" for pair in several)
    return folder


@pytest.mark.parametrize(("held_out", "tested"), [(["--held-out"], 1), ([], 2)])
def test_the_test_is_left_alone_while_sizes_are_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_out: list[str], tested: int
) -> None:
    data = written(tmp_path, train=PAIRS, dev=PAIRS[:1], test=PAIRS[1:3])
    monkeypatch.setattr(
        "sys.argv", ["atis_prepare.py", "--data", str(data), "--out", str(tmp_path / "text"), *held_out]
    )
    prepare.main()
    text = {path.name: path.read_text("utf-8").splitlines() for path in (tmp_path / "text").iterdir()}
    assert len(text["test.question"]) == len(text["test.form"]) == tested
    assert len(text["train.form"]) == len(PAIRS) + (not held_out)
    assert {line.split()[0] for line in text["dict.form.txt"]} >= {"@cityname0", "@cityname1", "@number0", "1700"}
    automaton, symbols = automaton_of(tmp_path / "text" / "forms.grammar", text["train.form"])
    assert all(accepts(automaton, symbols, form) for form in text["train.form"])


@pytest.mark.parametrize(
    ("symbols", "judged"),
    [
        ("answer ( code ( f ) )", (True, True, True)),
        ("answer ( code ( boston ) )", (False, True, False)),
        ("answer ( code ( f , f ) )", (False, False, False)),
        ("answer ( code ( new ) )", (False, False, False)),
        ("answer ( code ( f )", (False, False, False)),
        ("answer ( _flight ( or ( _day_2 ( day ( friday ) ) , _to_2 ( city_name ( rome ) ) ) ) )", (False, True, True)),
    ],
)
def test_the_judge_of_atis(symbols: str, judged: tuple[bool, bool, bool]) -> None:
    assert score.Judge(FORMS)("answer ( code ( f ) )", symbols) == judged
