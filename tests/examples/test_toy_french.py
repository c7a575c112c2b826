"""The embedded corpus: same seed same bytes, gold trees, right agreement, withheld words unseen."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import conllu
import pytest
from agreement_errors import agreement_errors

from fairseq_llrnn.errors import OptionError
from toy_french import Corpus, make_corpus, summary, write_corpus

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "make_corpus.py"
SPLITS = ("train", "valid", "test")
# of 150 sentences with seed 3, on any machine; a wanted change of the language needs a new one
DIGEST = "27533ce0199e5af75bb4479034c7bde974165b395b3392ed5c4e2b943ec824f0"
PRICE_NOUNS = {"prix", "coût", "montant", "tarif", "loyer"}
MONEY = {"euro", "franc"}
TRAVEL = {"arriver", "rentrer", "retourner", "aller"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(sentences=2000, seed=7)


@pytest.fixture(scope="module")
def folder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "new" / "folder"
    write_corpus(corpus, path)
    return path


@pytest.fixture(scope="module")
def trees(folder: Path) -> dict[str, list[conllu.TokenList]]:
    return {split: conllu.parse((folder / f"{split}.conllu").read_text("utf-8")) for split in SPLITS}


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def run_script(*arguments: str, hash_seed: int = 0) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def digest(folder: Path) -> str:
    content = b"".join(path.name.encode() + path.read_bytes() for path in sorted(folder.iterdir()))
    return hashlib.sha256(content).hexdigest()


# -- the files as a whole ---------------------------------------------------------------------------


def test_same_seed_gives_same_bytes_in_another_process(tmp_path: Path) -> None:
    table = summary(make_corpus(150, seed=3))
    for hash_seed, name in enumerate("ab", start=1):  # the order of sets differs between these two processes
        result = run_script("--out", str(tmp_path / name), "--sentences", "150", "--seed", "3", hash_seed=hash_seed)
        assert result.stdout == table + "\n", result.stderr
    write_corpus(make_corpus(150, seed=4), tmp_path / "c")
    assert digest(tmp_path / "a") == digest(tmp_path / "b") == DIGEST != digest(tmp_path / "c")
    assert not list(tmp_path.glob("*/*.tmp"))


def test_conllu_is_well_formed(trees: dict[str, list[conllu.TokenList]], folder: Path) -> None:
    assert [len(trees[split]) for split in SPLITS] == [2000, 160, 400]
    texts: list[str] = []
    for split in SPLITS:
        text = lines(folder / f"{split}.txt")
        texts += text
        for number, (tree, line) in enumerate(zip(trees[split], text, strict=True), start=1):
            assert tree.metadata["sent_id"] == f"{split}-{number}"
            assert tree.metadata["text"] == line == " ".join(token["form"] for token in tree)
            assert line == line.lower()
            assert [token["id"] for token in tree] == list(range(1, len(tree) + 1))
            assert all(token["upos"] and token["lemma"] and token["deprel"] for token in tree)
            for token in tree:
                names = list(token["feats"] or {})
                assert names == sorted(names, key=str.lower)
    assert len(set(texts)) == len(texts)


# -- grammar ----------------------------------------------------------------------------------------


def test_every_agreement_agrees(trees: dict[str, list[conllu.TokenList]]) -> None:
    results = [agreement_errors(tree) for split in SPLITS for tree in trees[split]]
    assert [error for _, errors in results for error in errors] == []
    assert sum(checked for checked, _ in results) > 3 * len(results)


def test_the_agreement_check_sees_an_error(trees: dict[str, list[conllu.TokenList]]) -> None:
    text = (
        "1\tla\tle\tDET\t_\tGender=Fem|Number=Sing\t2\tdet\t_\t_\n"
        "2\tporte\tporte\tNOUN\t_\tGender=Fem|Number=Sing\t4\tnsubj:pass\t_\t_\n"
        "3\test\têtre\tAUX\t_\tNumber=Sing|Person=3|VerbForm=Fin\t4\taux:pass\t_\t_\n"
        "4\tfermé\tfermer\tVERB\t_\tGender=Masc|Number=Sing\t0\troot\t_\t_\n"
    )
    (tree,) = conllu.parse("# text = la porte est fermé\n" + text)
    assert agreement_errors(tree) == (3, ["fermé / porte in: la porte est fermé"])


# -- what is withheld, and the probes ---------------------------------------------------------------


def prices_and_goals(trees: list[conllu.TokenList]) -> tuple[Counter[str], Counter[str]]:
    """Numbers said as a price, places said as the goal of a travel."""
    prices: Counter[str] = Counter()
    goals: Counter[str] = Counter()
    for tree in trees:
        lemmas = {token["id"]: token["lemma"] for token in tree}
        for token in tree:
            if token["upos"] == "NUM" and lemmas[token["head"]] in MONEY:
                prices[token["form"]] += 1
            if (token["feats"] or {}).get("NameType") == "Geo" and lemmas[token["head"]] in TRAVEL:
                goals[token["form"]] += 1
    return prices, goals


def probes_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines(folder / "probes.jsonl")]


def test_withheld_words_are_unseen_in_training(
    corpus: Corpus, folder: Path, trees: dict[str, list[conllu.TokenList]]
) -> None:
    train = Counter(word for line in lines(folder / "train.txt") for word in line.split())
    prices, goals = prices_and_goals(trees["train"])
    assert prices.total() > 100 and goals.total() > 100
    assert len(corpus.stock.unseen_forms) > 200
    assert corpus.stock.unseen_forms.isdisjoint(train)
    for split, seen in ((corpus.stock.numbers, prices), (corpus.stock.places, goals)):
        assert {word.form for word in split.withheld}.isdisjoint(seen)
        assert {word.form for word in split.nowhere}.isdisjoint(train)
        assert sum(word.form in train for word in split.elsewhere) > len(split.elsewhere) / 2
        assert {word.form for word in split.open.items}.isdisjoint(word.form for word in split.withheld)
    assert "37" in {word.form for word in corpus.stock.numbers.elsewhere}
    assert "grenoble" in {word.form for word in corpus.stock.places.elsewhere}


def test_agreement_probes_are_fair_and_balanced(folder: Path) -> None:
    train = Counter(word for line in lines(folder / "train.txt") for word in line.split())
    analyses: dict[str, list[list[str]]] = {}
    for line in lines(folder / "lexicon.tsv"):
        form, *analysis = line.split("\t")
        analyses.setdefault(form, []).append(analysis)
    contrasts: Counter[tuple[str, str, str]] = Counter()
    probes = [probe for probe in probes_of(folder) if probe["kind"] == "agreement"]
    assert len({(probe["prefix"], probe["right"]) for probe in probes}) == len(probes)
    for probe in probes:
        right, wrong = str(probe["right"]), str(probe["wrong"])
        assert train[right] == train[wrong] == 0
        ((lemma, upos, feats),), ((wrong_lemma, wrong_upos, wrong_feats),) = analyses[right], analyses[wrong]
        assert (lemma, upos) == (wrong_lemma, wrong_upos)
        ours, theirs = (dict(pair.split("=") for pair in text.split("|")) for text in (feats, wrong_feats))
        (contrast,) = (name for name in ours if ours[name] != theirs[name])
        contrasts[contrast, ours["Gender"], ours["Number"]] += 1
        prefix = str(probe["prefix"]).split()
        assert set(prefix) <= analyses.keys()
        # the word that `distance` points at is the noun that decides, and it agrees with the right form
        noun_feats = [row[2] for row in analyses[prefix[-1 - int(str(probe["distance"]))]] if row[1] == "NOUN"]
        assert noun_feats == [f"Gender={ours['Gender']}|Number={ours['Number']}"]
    assert len(contrasts) == 8 and set(contrasts.values()) == {60}
    distances = Counter(int(str(probe["distance"])) for probe in probes)
    assert sum(count for distance, count in distances.items() if distance >= 4) > len(probes) / 2


def test_number_and_place_probes_ask_for_words_unseen_there(
    folder: Path, trees: dict[str, list[conllu.TokenList]]
) -> None:
    prices, goals = prices_and_goals(trees["train"])
    train = Counter(word for line in lines(folder / "train.txt") for word in line.split())
    lemma_of = {row[0]: row[1] for row in (line.split("\t") for line in lines(folder / "lexicon.tsv"))}
    differences = []
    for probe in probes_of(folder):
        if probe["kind"] == "agreement":
            continue
        number, place = str(probe["right"]), str(probe["wrong"])
        cues = PRICE_NOUNS | {"coûter", "payer"}
        if probe["kind"] == "place":
            number, place = place, number
            cues = TRAVEL
        assert prices[number] == 0 and goals[place] == 0
        differences.append(abs(train[number] - train[place]))
        assert lemma_of[str(probe["prefix"]).split()[-1 - int(str(probe["distance"]))]] in cues
    assert len(differences) == 240
    assert sorted(differences)[len(differences) // 2] <= 1


# -- errors -----------------------------------------------------------------------------------------


def test_too_few_sentences_are_refused() -> None:
    with pytest.raises(OptionError, match="--sentences 99: too few; the corpus needs at least 100 training sentences"):
        make_corpus(sentences=99)


def test_script_writes_the_bilingual_corpus(tmp_path: Path) -> None:
    options = ("--bilingual", "--sentences", "200", "--seed", "3")
    for hash_seed, name in enumerate("ab", start=1):
        result = run_script("--out", str(tmp_path / name), *options, hash_seed=hash_seed)
        assert result.returncode == 0 and result.stdout.count("\n") == 5, result.stderr
        assert "to copy in test: " in result.stdout
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    assert len(lines(tmp_path / "a" / "train.en")) == len(lines(tmp_path / "a" / "train.fr")) == 200
