"""FunQL types, names in questions, the grammar beside the judge and its automaton, and the example as users run it."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from example_modules import EXAMPLES, load, run_example
from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.automata.automaton import Automaton
from fairseq_llrnn.automata.grammar import read_grammar
from fairseq_llrnn.automata.symbols import Symbols
from fairseq_llrnn.features.dictionary import WordList, load_dictionary

FOLDER = EXAMPLES / "semantic_parsing"
funql, mentions, pairs, recognise, made, prepare, score, recombine = load(
    FOLDER, *"funql funql_mentions funql_pairs funql_recognise funql_made funql_prepare funql_score recombine".split()
)
NAMES = mentions.read_names(FOLDER / "names.tsv")
RULES = recognise.read_rules(FOLDER / "funql.grammar")


# ---- forms and their types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "kinds"),
    [
        ("largest(city(loc_2(stateid('texas'))))", "city"),
        ("loc_2(countryid('usa'))", "city place river state"),
        ("state(loc_1(cityid('austin', 'tx')))", "state"),
        ("largest_one(population_1(state(all)))", "state"),
        ("most(river(loc_2(state(all))))", "state"),
        ("most(state(traverse_1(river(all))))", "river"),
        ("exclude(state(all), next_to_2(stateid('texas')))", "state"),
        ("sum(area_1(state(all)))", "number"),
        ("river(city(all))", ""),
        ("len(stateid('texas'))", ""),
        ("largest_one(count(state(all)))", ""),
        ("intersection(river(all), state(all))", ""),
        ("most(state(all))", ""),
        ("sum(count(state(all)))", ""),
        ("elevation_1(elevation_2(0))", "number"),
    ],
)
def test_what_a_form_denotes(form: str, kinds: str) -> None:
    parsed = funql.parse(form)
    assert str(parsed) == form
    assert funql.kinds(parsed) == set(kinds.split())
    assert funql.is_well_typed(funql.parse(f"answer({form})")) == bool(kinds)
    assert funql.is_well_formed(funql.parse(f"answer({form})"))


@pytest.mark.parametrize(
    "form",
    [
        "state(all)", "answer(state)", "answer(state(all, all))", "answer(exclude(state(all)))", "answer(shape(all))",
        "answer(answer(state(all)))", "answer(stateid(texas))", "answer(cityid('austin'))",
        "answer(stateid('texas', 'tx'))", "answer(state0)",
    ],
)  # fmt: skip
def test_what_is_not_well_formed(form: str) -> None:
    parsed = funql.parse(form)
    assert not funql.is_well_formed(parsed) and not funql.is_well_typed(parsed)


# ---- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "words", "form", "symbols"),
    [
        ("how many people live in seattle washington", "how many people live in city0",
         "answer(population_1(cityid('seattle', 'wa')))", "answer ( population_1 ( city0 ) )"),
        ("what states border colorado and new mexico", "what states border river0 state0 and state1",
         "answer(intersection(next_to_2(stateid('colorado')), next_to_2(stateid('new mexico'))))",
         "answer ( intersection ( next_to_2 ( state0 ) , next_to_2 ( state1 ) ) )"),
        ("what rivers are in us or in ohio", "what rivers are in us or in river0 state0",
         "answer(river(loc_2(countryid('usa'))))", "answer ( river ( loc_2 ( usa ) ) )"),
        (
            "is texas utah or maine next to vermont",  # two states at most get symbols
            "is state0 state1 or maine next to vermont",
            "answer(state(next_to_1(stateid('maine'))))",
            "answer ( state ( next_to_1 ( stateid ( 'maine' ) ) ) )",
        ),
    ],
)  # fmt: skip
def test_names_give_way_to_symbols_and_come_back(question: str, words: str, form: str, symbols: str) -> None:
    read = mentions.read_question(question, NAMES)
    said = mentions.to_symbols(funql.parse(form), read)
    assert " ".join(read.words) == words
    assert " ".join(said) == symbols
    assert str(mentions.from_symbols(said, read)) == form


def test_a_symbol_that_the_question_does_not_offer_makes_no_form() -> None:
    pair = pairs.Pair("how big is texas", funql.parse("answer(size(stateid('texas')))"))
    assert score.judge(pair, "answer ( size ( state0 ) )", NAMES) == (True, True, True)
    assert score.judge(pair, "answer ( size ( usa ) )", NAMES) == (False, True, True)
    assert score.judge(pair, "answer ( len ( state0 ) )", NAMES) == (False, True, False)
    assert score.judge(pair, "answer ( size ( state1 ) )", NAMES) == (False, False, False)
    assert score.judge(pair, "answer ( size ( state0 )", NAMES) == (False, False, False)


# ---- the grammar, the judge and the automaton ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> WordList:
    path = tmp_path_factory.mktemp("funql") / "dict.form.txt"
    path.write_text("".join(f"{word} 1\n" for word in sorted(recognise.terminals(RULES))), "utf-8")
    return load_dictionary(path)


@pytest.fixture(scope="module")
def automaton(words: WordList) -> Automaton:
    return read_grammar(FOLDER / "funql.grammar", Symbols(words))


def costs() -> Mapping[str, float]:
    """The least number of words of each symbol's strings."""
    cost = dict.fromkeys(RULES, float("inf")) | {f'"{word}': 1.0 for word in recognise.terminals(RULES)}
    for _ in RULES:
        cost |= {left: min(sum(map(cost.__getitem__, each)) for each in several) for left, several in RULES.items()}
    return cost


COSTS = costs()


def draw(source: random.Random, depth: int, symbol: str = "Query") -> list[str]:
    """A string of the grammar; below `depth` by the shortest rules."""
    if symbol.startswith('"'):
        return [symbol[1:]]
    choices = RULES[symbol]
    if depth <= 0:
        least = min(sum(map(COSTS.__getitem__, each)) for each in choices)
        choices = [each for each in choices if sum(map(COSTS.__getitem__, each)) == least]
    return [word for part in source.choice(choices) for word in draw(source, depth - 1, part)]


def accepts(automaton: Automaton, words: WordList, string: Sequence[str]) -> bool:
    state = int(automaton.starts[0])
    for word in [*string, "</s>"]:
        arcs = slice(automaton.offsets[state], automaton.offsets[state + 1])
        found = np.flatnonzero(automaton.tokens[arcs] == words.symbols.index(word))
        if len(found) == 0:
            return False
        state = int(automaton.nexts[arcs][found[0]])
    return True


EVERY_NAME = mentions.Question(
    (), {"usa": mentions.COUNTRY_FORM} | {name: mentions._form(name[:-1], name) for name in mentions.SYMBOLS}
)


def test_what_the_grammar_derives_is_well_typed(automaton: Automaton, words: WordList) -> None:
    source = random.Random(1)
    drawn = {tuple(draw(source, source.randrange(2, 16))) for _ in range(3000)}
    assert len(drawn) > 1000
    for string in drawn:
        assert funql.is_well_typed(mentions.from_symbols(string, EVERY_NAME)), string
    for string in random.Random(2).sample(sorted(drawn), 200):
        assert accepts(automaton, words, string)


def test_the_automaton_is_the_grammar(automaton: Automaton, words: WordList) -> None:
    """On strings with a word replaced, left out or said twice; most are no forms, some are."""
    source, choices = random.Random(3), sorted(recognise.terminals(RULES))
    counts = {True: 0, False: 0}
    for _ in range(1500):
        string = draw(source, source.randrange(2, 9))
        place, change = source.randrange(len(string)), source.randrange(4)
        string[place : place + 1] = [[], [string[place]] * 2, *[[source.choice(choices)]] * 2][change]
        derived = recognise.derives(RULES, string)
        assert accepts(automaton, words, string) == derived, string
        counts[derived] += 1
    assert counts[True] > 20


@pytest.mark.real_data("geoquery")
def test_geoquery_is_well_typed_and_of_the_grammar(shared_data: Path, automaton: Automaton, words: WordList) -> None:
    for split, number in (("train", 600), ("test", 280)):
        read = pairs.read_pairs(shared_data / "geoquery" / f"funql_{split}.tsv")
        assert len(read) == number
        for pair in read:
            assert funql.is_well_typed(pair.form)
            question = mentions.read_question(pair.question, NAMES)
            symbols = mentions.to_symbols(pair.form, question)
            assert recognise.derives(RULES, symbols) and accepts(automaton, words, symbols)
            assert mentions.from_symbols(symbols, question) == pair.form


def test_p_of_two_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Two seeds of each, over 40 questions, of which one system has 20 right, the other 30 and 32."""
    gold = ["answer(state(all))"] * 40
    (tmp_path / "gold.tsv").write_text("".join(f"what\t{form}\n" for form in gold), "utf-8")
    for name, right in (("a1", 20), ("a2", 20), ("b1", 30), ("b2", 32)):
        forms = ["answer ( state ( all ) )"] * right + ["answer ( city ( all ) )"] * (40 - right)
        (tmp_path / name).write_text("\n".join(forms) + "\n", "utf-8")
    files = [f"a={tmp_path}/a1", f"a={tmp_path}/a2", f"b={tmp_path}/b1", f"b={tmp_path}/b2", f"c={tmp_path}/a1"]
    monkeypatch.setattr("sys.argv", ["funql_score.py", "--gold", str(tmp_path / "gold.tsv"), *files])
    score.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[1] for row in rows] == ["50.0", "77.5", "50.0"] and len(rows[0]) == 10
    assert float(rows[1][-1]) < 0.01 and float(rows[2][-1]) == 1.0


def test_wrong_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--train", str(tmp_path), "--test", str(tmp_path), "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["funql_prepare.py", *files, "--pairs", "0"])
    assert prepare.main() == 2
    assert "--pairs 0: expected a number of at least 1" in capsys.readouterr().err
    (tmp_path / "gold.tsv").write_text("what\tanswer(state(all))\n", "utf-8")
    (tmp_path / "forms").write_text("a\nb\n", "utf-8")
    monkeypatch.setattr("sys.argv", ["funql_score.py", "--gold", str(tmp_path / "gold.tsv"), f"a={tmp_path}/forms"])
    assert score.main() == 2
    assert "forms: expected 1 forms, one for each question, found 2; parse again" in capsys.readouterr().err


def test_pairs_are_chosen_by_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["funql_made.py", "--out", str(tmp_path)])
    made.main()
    files = ["--train", str(tmp_path / "funql_train.tsv"), "--test", str(tmp_path / "funql_test.tsv")]

    def forms(*options: str) -> list[str]:
        monkeypatch.setattr("sys.argv", ["funql_prepare.py", *files, "--out", str(tmp_path / "text"), *options])
        prepare.main()
        return (tmp_path / "text" / "train.form").read_text("utf-8").splitlines()

    whole, ten = forms(), forms("--pairs", "10", "--seed", "2")
    assert len(ten) == 10 and set(ten) <= set(whole) and ten != whole[:10]
    assert forms("--pairs", "15", "--seed", "2")[:10] == ten != forms("--pairs", "10", "--seed", "3")


# ---- the example ---------------------------------------------------------------------------------------------------


QUICK = {"EPOCHS": "1", "RECOMBINED": "100", "COPIES": "1", "SEEDS": "1 2", "PAIRS": "60"}


@pytest.mark.slow
def test_the_example_runs_and_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a few of the pairs that it makes where there are none."""
    monkeypatch.setattr("sys.argv", ["funql_made.py", "--out", str(tmp_path / "work" / "made")])
    made.main()
    for split, kept in (("train", 80), ("test", 12)):
        path = tmp_path / "work" / "made" / f"funql_{split}.tsv"
        path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:kept]), "utf-8")
    tables = []
    for _ in range(2):
        result = run_example("semantic_parsing/run.sh", tmp_path / "work", variables=QUICK)
        tables.append([line.split() for line in result.out.partition("== 6/6")[2].splitlines()])
    assert tables[0] == tables[1] and "trained already" in result.out
    assert len((tmp_path / "work" / "text" / "train.form").read_text("utf-8").splitlines()) == 60
    rows = {row[0]: row[1:] for row in tables[0] if row}
    # an epoch teaches next to nothing, and still: name, exact, (each, seed), well-formed, …
    for name in ("both", "search"):
        assert rows[name][3:9] == ["100.0", "(100.0,", "100.0)"] * 2
        assert rows[f"{name}-together"][2:6] == ["100.0", "(100.0)"] * 2
    assert float(rows["without"][3]) < 100.0


def test_some_pairs_of_atis_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.tsv.gz").touch()
    work = tmp_path / "work"
    result = run_example("semantic_parsing/run.sh", work, tmp_path, code=2, variables={"PAIRS": "3"})
    assert result.err == (
        f"run.sh: error: PAIRS=3: expected GeoQuery, found ATIS in {tmp_path}, which is used as a whole; unset it\n"
    )


@pytest.mark.slow
def test_a_network_of_transformers_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random one learns next to nothing. Under the grammar, it writes forms of the grammar."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    (parser,) = load(FOLDER, "pretrained_parser")
    monkeypatch.setattr("sys.argv", ["funql_made.py", "--out", str(tmp_path)])
    made.main()
    argv = ["--train", str(tmp_path / "funql_train.tsv"), "--test", str(tmp_path / "funql_test.tsv"), "--out"]
    monkeypatch.setattr("sys.argv", ["funql_prepare.py", *argv, str(tmp_path / "text"), "--pairs", "20", "--seed", "2"])
    prepare.main()
    for path in (tmp_path / "text").glob("test.*"):
        path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:6]), "utf-8")
    tokenizer = tiny_tokenizer("byte_level", 400, parser.GRAMMAR.read_text("utf-8").splitlines())
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    for side in ("question", "form"):
        (tmp_path / "text" / f"train.{side}").rename(tmp_path / "text" / f"mixed.{side}")
    for more in (["--train", "mixed"], ["--train", "mixed", "--grammar"]):
        argv = [str(tmp_path / "model"), "--text", str(tmp_path / "text"), "--out", str(tmp_path)]
        argv += ["--epochs", "1", "--lr", "0.001", "--seed", "2", *more]
        monkeypatch.setattr("sys.argv", ["pretrained_parser.py", *argv])
        parser.main()
    for name in ("search", "both"):
        forms = (tmp_path / f"20-2-{name}.forms").read_text("utf-8").splitlines()
        assert len(forms) == 6 and all(recognise.derives(RULES, form.split()) for form in forms)
    assert len((tmp_path / "20-2-without.forms").read_text("utf-8").splitlines()) == 6
