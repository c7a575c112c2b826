"""The table of languages: texts, rows end to end on a tiny text, bits of the same characters, the page's tables."""

import gzip
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from example_modules import EXAMPLES, load
from example_parts.mixtures import ORDERS, mixed, ngram_log_probs
from ngram_oracles import log_prob, table_of
from shell import Shell
from tiny_world import World

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS, load_dictionary
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import read_sentences
from fairseq_llrnn.plugin.scoring.text import load_text_scorer
from fairseq_llrnn.prior.prior import Prior

pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install '.[pieces]'")
texts, rows, tables, mixtures, curves, languages, clams = load(
    EXAMPLES / "languages",
    *"language_texts language_rows language_table language_mixtures language_curves languages clams".split(),
)
SWAHILI = texts.LANGUAGES["swahili"]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture(scope="module")
def data(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Verses in the tiny language, with words and a letter that training lacks, and minimal pairs."""
    folder = tmp_path_factory.mktemp("languages-data")
    for split in texts.SPLITS:
        lines = [*world.text(split)[:60], *([] if split == "train" else ["Le chateau, été 𝄞!"])]
        verses = "".join(f"b.{number}\t{line}\n" for number, line in enumerate(lines))
        write(folder / "bible-nt" / f"swahili.{split}.tsv.gz", verses)
    pairs = "True\tle chat voit\nFalse\tla chat voit\nTrue\tla mer tient\nFalse\tle mer tenait\n"
    write(folder / "clams" / "sw.simple_agrmt.txt.gz", pairs)
    return folder


@pytest.fixture(scope="module")
def finished(data: Path, shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after one row of each kind of units."""
    out = tmp_path_factory.mktemp("languages-out")
    texts.prepare(SWAHILI, data, out)
    for name in ("spelling", "unk", "bpe-500", "characters"):
        row = replace(rows.ROWS[name], width=8, layers=1, pieces=300, most_epochs=2, batch=256)
        found = languages.finish(row, SWAHILI, 1, data, out, 1e9, executed(shell), scored(shell))
        (out / "swahili" / f"{name}-1" / "result.json").write_text(json.dumps(found), encoding="utf-8")
    return out


def executed(shell: Shell) -> object:
    def execute(command: Sequence[str], log: Path) -> float:
        done = shell.run(command[0], *command[1:])
        log.parent.mkdir(exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(done.out + done.err)
        return 1.5

    return execute


def scored(shell: Shell) -> object:
    return lambda command, text: shell.run(command[0], *command[1:], stdin=text).out


@pytest.mark.parametrize(
    "line",
    ["unk spelling --languages german greek --out OUT", "--languages german greek --out OUT unk spelling",
     "unk --languages german greek --out OUT spelling"],
)  # fmt: skip
def test_rows_may_follow_options(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["languages.py", "list", *line.split()])
    assert languages.main() == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()] == ["spelling", "unk"]


def test_texts_in_tokens() -> None:
    assert texts.tokens("Bwana,  akasema: «Ng'ombe wa-tano»!") == "Bwana , akasema : « Ng'ombe wa-tano » !"
    assert texts.tokens("l'e\u0301te\u0301") == "l'\xe9t\xe9"  # composed
    assert texts.first(["a b", "", "c d", "e"], 3) == ["a b", "c d"]
    assert {language.kind for language in texts.LANGUAGES.values()} <= set(texts.READERS)


def test_the_row_of_a_text(data: Path) -> None:
    found = texts.texts(SWAHILI, data)
    assert found["test"][-1] == "Le chateau , été 𝄞 !"
    line = texts.row("swahili", {"train": ["a b", "a"], "valid": ["a c"], "test": ["a"]})
    assert line == "| swahili | 3 | 2 | 1 | 2 | 50.0% | 0.0% |"


@pytest.mark.parametrize("kind", ["captions", "novels", "treebank"])
def test_readers_of_other_texts(kind: str, tmp_path: Path) -> None:
    language = texts.Language("x", "x", kind, "folder", "x", treebanks=("*", "other/a.conllu.gz"))
    names = {"captions": "val.raw.x.gz", "novels": "valid.txt.gz", "treebank": "x-ud-dev.conllu.gz"}
    conllu = "".join(f"{n}\t{w}\t_\tX\t_\t_\t0\t_\t_\t_\n" for n, w in ((1, "Le"), (2, "chat"), (3, "."))) + "\n"
    write(tmp_path / "folder" / names[kind], conllu if kind == "treebank" else "Le chat .\n")
    assert list(texts.READERS[kind](language, tmp_path, "valid")) == ["Le chat ."]
    write(tmp_path / "folder" / "x-ud-train.conllu.gz", conllu)
    assert texts.analysed(language, tmp_path) == [
        str(tmp_path / "folder" / "x-ud-train.conllu.gz"),
        str(tmp_path / "other" / "a.conllu.gz"),
    ]


def test_results_of_another_budget_are_not_taken_for_these(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "swahili" / "spelling-1"
    place.mkdir(parents=True)
    (place / "result.json").write_text('{"budget": 55.0}', encoding="utf-8")
    asked = [rows.ROWS["spelling"]], [SWAHILI], [1], tmp_path, tmp_path
    assert languages.work(*asked, 55.0) == 0 and languages.work(*asked, 85.0) == 2
    said = "expected results of --budget 85, found those of --budget 55; give another --out"
    assert capsys.readouterr().err == f"languages.py: error: swahili spelling-1: {said}\n"


def test_all_units_are_measured_on_the_same_characters(finished: Path) -> None:
    results = languages.results_of(finished)
    assert {result["budget"] for result in results} == {1e9}
    assert len(results) == 4 and len({result["test"]["characters"] for result in results}) == 1
    for result in results:
        assert result["epochs"] == len(result["curve"]) == 2 and result["seconds"]["fairseq-train"] == 1.5
        # the best epoch of the curve is what was measured; training counts batches, and rounds
        best = result["curve"][result["best_epoch"] - 1]
        assert best == pytest.approx(result["valid"]["bits_per_character"], abs=0.02)


def test_table_and_picture(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, picture = tmp_path / "all.json", tmp_path / "all.png"
    monkeypatch.setattr(sys, "argv", ["languages.py", "collect", "--out", str(finished), "--results", str(file)])
    assert languages.main() == 0
    found = tables.by_language(languages.read_results(file))
    assert list(found) == ["swahili"] and tables.best(found["swahili"], ["d"]) == "spelling"
    shown = tables.tables(languages.read_results(file))
    ours = found["swahili"]["spelling"][0]
    assert f"{ours['test']['bits_per_character']:.3f}" in tables.summary(found, "test")
    assert f"{ours['test']['bits_per_character']:.3f}" in shown
    monkeypatch.setattr(sys, "argv", ["languages.py", "rows", "--results", str(file)])
    capsys.readouterr()
    assert languages.main() == 0
    assert "| swahili | `unk` | (c) word softmax, `<unk>` spelled | 1 |" in capsys.readouterr().out
    bits = {
        name: [found["swahili"][name][0][split]["bits_per_character"] for split in ("valid", "test")]
        for name in ("unk", "bpe-500", "characters")
    }
    less = ours["test"]["bits_per_character"] - min(bits.values())[1]  # the best on the validation text
    assert tables.difference(found["swahili"], "test") == pytest.approx(less)
    found["swahili"]["unk-long-mixed"] = [{**found["swahili"]["unk"][0], "curve": []}]  # is not in the picture
    curves.draw(found, picture)
    assert picture.read_bytes()[1:4] == b"PNG"


def test_several_seeds_are_a_mean_with_its_range() -> None:
    def result(row: str, seed: int, bits: float) -> dict[str, object]:
        parts = {f"{part}_bits": 1.0 for part in ("known", "unknown", "spelling", "end")}
        facts = {"bits_per_character": bits, "characters": 10, "unknown_words": 1, **parts}
        held = {split: facts for split in ("valid", "test")}
        training = {"epochs": 2, "best_epoch": 1, "parameters": 5, "seconds": {"fairseq-train": 9.0}, "curve": [2.0]}
        return {"language": "basque", "row": row, "seed": seed, **training, **held}

    found = tables.by_language([result("spelling", 1, 1.5), result("spelling", 2, 1.7), result("bpe-500", 1, 1.8)])
    assert tables.difference(found["basque"], "valid") == pytest.approx(-0.2)
    assert "both texts: none." in tables.tables([result("spelling", 1, 1.5), result("unk", 1, 2.0)])  # (a), (b) lack
    every = [result(name, 1, 2.0) for name in ("bpe-500", "characters", "unk")]
    assert "both texts: basque." in tables.tables([*every, result("spelling", 1, 1.9)])
    assert "both texts: none." in tables.tables([*every, result("spelling", 1, 1.99)])
    assert "1.6000 (1.5000–1.7000)" in tables.details(found)
    assert "| basque | 1.800 | **1.600** | −0.200 |" in tables.summary(found, "test")
    assert tables.difference(tables.by_language([result("spelling", 1, 1.5)])["basque"], "valid") is None
    assert "to their end" not in tables.tables(every)
    longer = [*every, result("unk-long", 1, 1.9), result("neural-long", 1, 1.8), result("spelling", 1, 1.7)]
    end = tables.tables(longer).partition("Trained to their end:")[2]
    assert "Mixed with n-grams" not in end
    both = {**result("unk-long-mixed", 1, 1.85), "order": 5, "weight": 0.8, "curve": []}
    assert "| basque | `unk-long` | 1.9000 | 1.9000 | 5 | 0.80 | 1.8500 | 1.8500 |" in tables.all_rows([*longer, both])
    assert "| basque | 1.850 | **1.800** | −0.050 |" in tables.tables([*longer, both])
    ours = {**result("neural-long-mixed", 1, 1.76), "order": 5, "weight": 0.8, "curve": []}
    mixing = "| basque | **−0.100** | **−0.100** | −0.030 | −0.030 | **−0.070** | **−0.070** |"
    theirs = {**both, **{split: {**both[split], "bits_per_character": 1.83} for split in ("valid", "test")}}
    assert mixing in tables.tables([*longer, theirs, ours])
    tuned = [*longer, result("unk-long-dropout0.2", 1, 1.0)]  # is no row of the table, but told
    assert "| basque | 1.900 | **1.800** | −0.100 |" in tables.tables(tuned)
    assert "(tuning) word softmax" in tables.all_rows(tuned)
    assert "| basque | 1.900 | **1.800** | −0.100 |" in end and "**1.700**" not in end  # the short row is not there


def mixed_row(network: str) -> object:
    """A row with the network of one that `finished` has."""
    return replace(rows.ROWS[network], name=f"{network}-mixed", network=network)


@pytest.mark.parametrize("network", ["unk", "bpe-500"])
def test_a_network_is_mixed_with_ngrams(finished: Path, data: Path, shell: Shell, network: str) -> None:
    place = finished / "swahili" / f"{network}-1"
    found = languages.finish(mixed_row(network), SWAHILI, 1, data, finished, 1.0, executed(shell), pytest.fail)
    alone = json.loads((place / "result.json").read_text(encoding="utf-8"))
    assert found["row"] == f"{network}-mixed" and found["epochs"] == 2 and not found["curve"]
    assert found["seconds"] == {**alone["seconds"], "llrnn": 1.5 * len(ORDERS)}
    assert found["valid"]["bits"] < alone["valid"]["bits"]  # for 0 < w < 1
    words, order, weight = load_dictionary(place / "dict.txt"), found["order"], found["weight"]
    ngrams = table_of(estimate(read_sentences([place / "train.txt"], words, 1), words, order))
    scorer = load_text_scorer(str(place / "model" / "checkpoint_best.pt"), 500)
    for split in ("valid", "test"):
        bits = 0.0
        for line in scorer.lines((place / f"{split}.txt").read_text(encoding="utf-8").splitlines()):
            text = ["<s>", *(word if word in words.symbols else "<unk>" for word in line.words), "</s>"]
            for at, log_p in enumerate(line.log_probs, 1):
                ngram = math.exp(log_prob(ngrams, tuple(text[max(0, at - order + 1) : at]), text[at]))
                bits -= math.log2(weight * math.exp(log_p) + (1 - weight) * ngram)
        measured = found[split]["bits"] - found[split].get("spelling_bits", 0.0)
        assert measured == pytest.approx(bits, rel=1e-5)
        assert found[split]["characters"] == alone[split]["characters"]


@pytest.mark.parametrize("network", ["unk", "spelling"])
def test_a_mixture_is_a_distribution(finished: Path, shell: Shell, tmp_path: Path, network: str) -> None:
    place = finished / "swahili" / f"{network}-1"
    folder, command = next(iter(mixtures.ngram_commands(mixed_row(network), place, tmp_path / "own").items()))
    executed(shell)(command, tmp_path / "log")
    prior, history = Prior.load(folder), ["le", "chat", "Xyzzy"]
    next_words = [word for word in prior.symbols if word not in SPECIALS] + ["Xyzzyx"]  # unknown: <unk>
    texts_of = [[*history, word] for word in next_words]
    scorer = load_text_scorer(str(place / "model" / "checkpoint_best.pt"), 500)
    first = np.array([line.log_probs for line in scorer.lines(map(" ".join, texts_of))])
    second = ngram_log_probs(prior, texts_of).reshape(first.shape)
    for at in (0, 1, 2):  # each is the same in all texts
        assert np.ptp(first[:, at]) < 1e-4 and np.ptp(second[:, at]) < 1e-4
    (end,) = scorer.lines([" ".join(history)])
    ends = end.log_probs[3], ngram_log_probs(prior, [history])[3]
    total = np.exp(mixed(first[:, 3], second[:, 3], 0.3)).sum() + 0.3 * np.exp(ends[0]) + 0.7 * np.exp(ends[1])
    assert total == pytest.approx(1.0, abs=1e-5)


def test_a_mixture_needs_its_network(
    data: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match="unk-long-1: expected a row .* finished, found none; train `unk-long` first"):
        languages.finish(rows.ROWS["unk-long-mixed"], SWAHILI, 1, data, finished, 1.0, pytest.fail, pytest.fail)
    options = ["commands", "unk-long-mixed", "--languages", "swahili", "--out", str(finished)]
    monkeypatch.setattr(sys, "argv", ["languages.py", *options])
    assert languages.main() == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(ORDERS)
    assert "unk-long-1/train.txt --background 'ngram(3, folds=0)'" in printed[0]


def test_commands_of_a_row(data: Path, finished: Path) -> None:
    place = finished / "swahili" / "spelling-1"
    czech = replace(SWAHILI, treebanks=("czech/a.conllu.gz", "czech/b.conllu.gz"))
    _, prior, train = rows.commands(rows.ROWS["treebank"], czech, data, place, "dir", 3, 1e9)
    assert [str(data / "czech" / name) for name in ("a.conllu.gz", "b.conllu.gz")] == list(
        prior[prior.index("--conllu") + 1 :][:2]
    )
    assert train[train.index("--seed") + 1] == "3" and "--bf16-products" in train
    assert rows.fits(rows.ROWS["treebank"], czech) and not rows.fits(rows.ROWS["treebank"], SWAHILI)
    assert rows.epochs_of(replace(rows.ROWS["spelling"], speed=100.0), 1000, 55.0) == 5
    assert [rows.batch_of(rows.ROWS["spelling"], size) for size in (3_000, 90_000, 900_000)] == [341, 600, 1024]
    assert rows.falling(0.004, 4) == "0.004000,0.003000,0.002000,0.001000"


def test_pairs_of_agreement(data: Path, finished: Path, shell: Shell) -> None:
    chosen = [rows.ROWS[name] for name in ("spelling", "characters", "bpe-500")]
    found = clams.measure(chosen, "swahili", data, finished, 10, scored(shell))
    assert all(result["simple_agrmt"].pairs == 2 for result in found.values())
    assert found["spelling"]["simple_agrmt"].known_pairs == 1  # `tenait` is in no training text
    place = finished / "swahili" / "unk-1"
    closed = clams.measure_checkpoint(
        place / "model" / "checkpoint_best.pt", place / "dict.txt", "swahili", data, 10, scored(shell)
    )
    assert closed["model"]["simple_agrmt"].pairs == 2
    shown = clams.table(found).splitlines()
    assert shown[0] == "| | pairs | of known words | spelling | characters | bpe-500 |"
    assert shown[2].startswith("| simple agrmt | 2 | 1 | ")
    assert clams.some([("a", "b")] * 10, 4) == [("a", "b")] * 4
    values = {"a": -1.0, "b": -2.0, "c": -2.0}
    assert clams.outcome([("a", "b"), ("b", "c")], values, {"a", "b"}) == clams.Outcome(1.5, 2, 1, 1), "a tie is half"
    unknown = {"x": clams.outcome([("b", "c")] * 4, values, set())}
    assert clams.table({"unk": unknown}).splitlines()[2] == "| x | 4 | 0 | 50.0 |", "as much as by chance"


def test_pairs_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("True\ta b\nTrue\ta c\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"x, line 2: expected False, a tab and a sentence, found 'True'"):
        clams.read_pairs(tmp_path / "x")
    (tmp_path / "x").write_text("True\ta b\n", encoding="utf-8")
    with pytest.raises(DataError, match="expected pairs of lines, found 1 lines"):
        clams.read_pairs(tmp_path / "x")
    with pytest.raises(DataError, match=r"clams: expected files named like fr\.simple_agrmt"):
        clams.phenomena(tmp_path, "fr")


def test_verses_that_are_none(tmp_path: Path) -> None:
    write(tmp_path / "bible-nt" / "swahili.train.tsv.gz", "no tab here\n")
    with pytest.raises(DataError, match="line 1: expected a verse's id, a tab and its text, found 'no tab here'"):
        texts.texts(SWAHILI, tmp_path)
    for split in texts.SPLITS:
        write(tmp_path / "bible-nt" / f"swahili.{split}.tsv.gz", "b.1\t \n")
    with pytest.raises(DataError, match="expected a train text of swahili, found no words"):
        texts.texts(SWAHILI, tmp_path)


@pytest.mark.parametrize(
    "module, options, said",
    [
        (texts, ("klingon",), "there is no language 'klingon' here; there are: hungarian, "),
        (texts, ("greek",), "ud-greek-gdt: expected the folder with the texts of greek, found none; see --data"),
        (languages, ("train", "nothing"), "there is no row 'nothing'; there are: bpe-500, "),
        (languages, ("train", "--languages", "greek"), "greek: expected the texts that language_texts.py writes"),
        (languages, ("collect",), "expected results of `languages.py train`, found none"),
        (languages, ("table",), "languages.json: expected what `languages.py collect` writes, found: "),
        (clams, ("unk", "--language", "french"), "there is no row 'unk' that spells every word; there are: bpe-500"),
        (clams, ("--language", "french"), "expected either rows or --path and --dict; give one of them"),
        (clams, ("--language", "french", "--path", "x"), "expected either rows or --path and --dict"),
        (clams, ("spelling", "--language", "french", "--most", "0"), "--most 0: expected a number of pairs"),
        (clams, ("spelling", "--language", "x"), "--language x: expected one of hungarian, "),
        (clams, ("spelling", "--language", "french"), "clams: expected files named like fr.simple_agrmt.txt.gz"),
    ],
)
def test_what_a_user_can_get_wrong(
    module: object, options: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    name = f"{module.__name__}.py"
    own = ["--results", str(tmp_path / "languages.json")] if module is languages else []
    paths = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), *own]
    monkeypatch.setattr(sys, "argv", [name, *options, *paths])
    assert module.main() == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"{name}: error: ") and said in printed


def test_a_row_that_is_not_finished(data: Path, finished: Path) -> None:
    with pytest.raises(DataError, match="treebank-1: expected a row that `languages.py train` has finished"):
        clams.measure([rows.ROWS["treebank"]], "swahili", data, finished, 2)


def test_unknown_words_need_a_speller(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="that spells <unk>, found none; train `spelling` too"):
        languages.finish(rows.ROWS["unk"], SWAHILI, 1, data, tmp_path, 1.0, pytest.fail, pytest.fail)


def test_rows_that_a_language_can_have() -> None:
    def names(language: str) -> set[str]:
        return {row.name for row in rows.chosen(["g", "h"]) if rows.fits(row, texts.LANGUAGES[language])}

    assert names("hungarian") == {"language", "frequencies", "words", "treebank", "all"}
    assert names("swahili") == {"language"} and names("wolof") == set()


def test_more_words_than_the_text_has(finished: Path, tmp_path: Path) -> None:
    pytest.importorskip("wordfreq", reason="wordfreq is not installed: pip install '.[languages]'")
    french = replace(SWAHILI, code="fr")
    rows.write_units(replace(rows.ROWS["words"], more_words=30), french, finished / "swahili" / "text", tmp_path)
    entries = [line.split() for line in (tmp_path / "dict.txt").read_text(encoding="utf-8").splitlines()]
    known = {word for word, count in entries if count != "0"}
    more = [word for word, count in entries if count == "0"]
    assert len(more) == 30 and "est" in more and not known & set(more)


def test_more_words_need_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(OptionError, match=r"found none; pip install '\.\[languages\]'"):
        rows.more_words("fr", 3, set())
    assert rows.more_words("fr", 0, set()) == []


def test_names_of_rows() -> None:
    assert [row.name for row in rows.chosen(["e"])] == ["morphemes"]
    assert all(row.group != "tuning" for row in rows.chosen([])) and len(rows.chosen(["tuning"])) > 5
    with pytest.raises(OptionError, match="there is no language 'x'"):
        texts.chosen(["x"])
