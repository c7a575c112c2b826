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
from example_parts.mixtures import ORDERS, ngram_log_probs
from ngram_oracles import log_prob, table_of
from shell import Shell
from tiny_world import World

from fairseq_llrnn.comparison.mixtures import mixed
from fairseq_llrnn.features.dictionary import SPECIALS, load_dictionary
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import read_sentences
from fairseq_llrnn.plugin.scoring.text_bits import load_text_scorer
from fairseq_llrnn.prior.prior import Prior

pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install '.[pieces]'")
texts, rows, tables, mixtures, curves, languages, clams, agreement_pairs = load(
    EXAMPLES / "languages",
    *"language_texts language_rows language_table language_mixtures language_curves languages clams".split(),
    "agreement_pairs",
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


def test_texts_in_tokens() -> None:
    assert texts.tokens("Bwana,  akasema: «Ng'ombe wa-tano»!") == "Bwana , akasema : « Ng'ombe wa-tano » !"
    assert texts.tokens("l'e\u0301te\u0301") == "l'\xe9t\xe9"  # composed
    assert texts.first(["a b", "", "c d", "e"], 3) == ["a b", "c d"]
    assert {language.kind for language in texts.LANGUAGES.values()} <= set(texts.READERS)


@pytest.mark.slow
def test_all_units_are_measured_on_the_same_characters(finished: Path) -> None:
    results = languages.results_of(finished)
    assert {result["budget"] for result in results} == {1e9}
    assert len(results) == 4 and len({result["test"]["characters"] for result in results}) == 1
    for result in results:
        assert result["epochs"] == len(result["curve"]) == 2 and result["seconds"]["fairseq-train"] == 1.5
        # the best epoch of the curve is what was measured; training counts batches, and rounds
        best = result["curve"][result["best_epoch"] - 1]
        assert best == pytest.approx(result["valid"]["bits_per_character"], abs=0.02)


@pytest.mark.slow
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


def test_ngrams_alone(data: Path, shell: Shell, tmp_path: Path) -> None:
    texts.prepare(SWAHILI, data, tmp_path)
    row, place = rows.ROWS["ngrams"], tmp_path / "swahili" / "ngrams-1"
    found = languages.finish(row, SWAHILI, 1, data, tmp_path, 1.0, executed(shell), scored(shell))
    bits = {}
    for order in (2, 3, 4, 5):
        prior = place / f"ngrams-{order}"
        facts = shell.run("llrnn", "score", "--prior", str(prior), "--json", "--open", str(place / "valid.txt"))
        bits[order] = json.loads(facts.out)["bits_per_character"]
    assert found["orders"] == pytest.approx(bits)
    assert found["order"] == min(bits, key=bits.__getitem__)
    assert found["valid"]["bits_per_character"] == found["orders"][found["order"]]
    assert found["test"]["unknown_words"] > 0 and found["test"]["spelling_bits"] > 0
    assert len(list(languages.commands_of(row, SWAHILI, 1, data, tmp_path, 1.0))) == len(bits)
    shown = tables.summary({"swahili": {"ngrams": [found]}}, "test")
    assert f"| swahili | **{found['test']['bits_per_character']:.3f}** |" in shown


def mixed_row(network: str) -> object:
    """A row with the network of one that `finished` has."""
    return replace(rows.ROWS[network], name=f"{network}-mixed", network=network)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_pairs_of_agreement(data: Path, finished: Path, shell: Shell) -> None:
    chosen = [rows.ROWS[name] for name in ("spelling", "characters", "bpe-500")]
    found = clams.measure(chosen, "swahili", [1], data, finished, 10, scored(shell))
    assert all(result["simple_agrmt"].pairs == 2 for (result,) in found.values())
    assert found["spelling"][0]["simple_agrmt"].known_pairs == 1  # `tenait` is in no training text
    place = finished / "swahili" / "unk-1"
    closed = clams.measure_checkpoint(
        place / "model" / "checkpoint_best.pt", place / "dict.txt", "swahili", data, 10, scored(shell)
    )
    assert closed["model"][0]["simple_agrmt"].pairs == 2
    shown = clams.table(found).splitlines()
    assert shown[0] == "| | pairs | of known words | spelling | characters | bpe-500 |"
    assert shown[2].startswith("| simple agrmt | 2 | 1 | ")
    assert clams.some([("a", "b")] * 10, 4) == [("a", "b")] * 4


def test_ties_are_wrong_and_seeds_are_averaged() -> None:
    values = {"a": -1.0, "b": -2.0, "c": -2.0}
    pairs = [("a", "b"), ("b", "c")]
    assert clams.outcome(pairs, values, {"a", "b"}) == clams.Outcome(1, 2, 1, 1), "the second pair is a tie"
    seeds = [{"x": clams.outcome(pairs, values, set())}, {"x": clams.outcome(pairs[:1] * 2, values, set())}]
    lines = clams.table({"unk": seeds}).splitlines()
    assert lines[2:] == [
        "| x | 2 | 0 | 75.0 |",
        "| mean of lists | 2 | 0 | 75.0 ± 35.4 |",
        "| all | 2 | 0 | 75.0 ± 35.4 |",
        "| all, known words | 2 | 0 | – |",
    ]
    uneven = {"x_y": clams.Outcome(0, 1, 0, 1), "z": clams.Outcome(3, 3)}
    lines = clams.table({"unk": [uneven]}).splitlines()
    assert [line.split(" | ")[-1] for line in lines[4:]] == ["50.0 |", "75.0 |", "0.0 |"]


TREES = """
1 Ο ο DET _ Case=Nom|Number=Sing 2 det
2 λύκος λύκος NOUN _ Case=Nom|Number=Sing 3 nsubj
3 Τρέχει τρέχω VERB _ Number=Sing|VerbForm=Fin 0 root

1 λύκοι λύκος NOUN _ Case=Nom|Number=Plur 3 nsubj
2 σήμερα σήμερα ADV _ _ 3 advmod
3 τρέχουν τρέχω VERB _ Number=Plur|VerbForm=Fin 0 root

1 λύκοι λύκος NOUN _ Case=Nom|Number=Plur 3 nsubj
2 δύο δύο NUM _ _ 1 nummod
3 τρέχουν τρέχω VERB _ Number=Plur|VerbForm=Fin 0 root

1 λύκος λύκος NOUN _ Case=Nom|Number=Sing 2 nsubj
2 τρέχουν τρέχω VERB _ Number=Plur|VerbForm=Fin 0 root

1 λύκος λύκος NOUN _ Case=Nom|Number=Sing 2 nsubj
2 έχει έχω VERB _ Number=Sing|VerbForm=Fin 0 root

1 παιδί παιδί NOUN _ Case=Nom|Gender=Neut|Number=Sing 2 nsubj
2 τρέχει τρέχω VERB _ Number=Sing|VerbForm=Fin 0 root

1 λύκος λύκος NOUN _ Case=Nom|Number=Sing 2 nsubj
2 τρέχει τρέχω VERB _ Number=Sing|VerbForm=Fin 0 root
3 τρώει τρώω VERB _ Number=Sing|VerbForm=Fin 2 ccomp
"""


def test_pairs_from_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """No pair: a numeral (3rd sentence), no agreement (4th), no plural form (5th), a neuter (6th), two verbs."""
    rows_of = [line.replace(" ", "\t") + "\t_\t_" if line else "" for line in TREES.strip().splitlines()]
    for split in ("train", "dev", "test"):
        write(tmp_path / "ud-greek-gdt" / f"{split}.conllu.gz", "\n".join(rows_of) + "\n\n")
    found = agreement_pairs.pairs_by_kind(texts.LANGUAGES["greek"], tmp_path)
    assert found == {
        "plural-far": [("plural-far", "λύκοι σήμερα τρέχουν", "λύκοι σήμερα τρέχει")] * 2,
        "plural-near": [],
        "singular-far": [],
        "singular-near": [("singular-near", "Ο λύκος Τρέχει", "Ο λύκος Τρέχουν")] * 2,
    }
    for part in texts.CZECH:
        write(tmp_path / "czech-treebanks" / f"cs_{part}.conllu.gz", "\n".join(rows_of) + "\n\n")
    czech = agreement_pairs.pairs_by_kind(texts.LANGUAGES["czech"], tmp_path)
    assert czech == {kind: pairs[:1] * len(texts.CZECH) for kind, pairs in found.items()}
    for argv, status in ((["greek"], 0), (["french"], 2)):
        monkeypatch.setattr("sys.argv", ["agreement_pairs.py", "--data", str(tmp_path), "--out", str(tmp_path), *argv])
        assert agreement_pairs.main() == status
    assert (
        "LANGUAGE: expected one of hungarian, greek, czech, found 'french'; choose one of these"
        in capsys.readouterr().err
    )
    assert len(clams.read_pairs(clams.phenomena(tmp_path, "el")["plural-far"])) == 2


def test_what_pairs_and_scores_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for split in ("train", "dev", "test"):
        write(
            tmp_path / "ud-greek-gdt" / f"{split}.conllu.gz",
            "1\tλύκος\tλύκος\tNOUN" + "\t_" * 2 + "\t0\troot\t_\t_\n\n",
        )
    place = ["--data", str(tmp_path), "--out", str(tmp_path), "--language", "greek"]
    for script, argv, message in (
        (agreement_pairs, [*place[:4], "greek"], "expected subjects and verbs in the treebank of greek, found none"),
        (clams, [*place, "spelling-mixed"], "there is no row 'spelling-mixed' that is trained; there are: "),
        (clams, [*place, "--path", "a.pt", "--dict", "b", "--seeds", "1", "2"], "--seeds goes with rows; leave it out"),
    ):
        monkeypatch.setattr("sys.argv", ["script", *argv])
        assert script.main() == 2
        assert message in capsys.readouterr().err
