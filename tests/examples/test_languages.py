"""Many languages: texts, a comparison of one, minimal pairs of agreement."""

import gzip
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from example_modules import EXAMPLES, load
from tiny_world import World

from fairseq_llrnn.comparison.rows import Row
from fairseq_llrnn.errors import DataError

texts, languages, clams, agreement_pairs = load(
    EXAMPLES / "languages", "language_texts", "languages", "clams", "agreement_pairs"
)
SWAHILI = texts.LANGUAGES["swahili"]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def test_texts_in_tokens() -> None:
    assert texts.tokens("Bwana,  akasema: «Ng'ombe wa-tano»!") == "Bwana , akasema : « Ng'ombe wa-tano » !"
    assert texts.tokens("l'e\u0301te\u0301") == "l'\xe9t\xe9"  # composed
    assert texts.first(["a b", "", "c d", "e"], 3) == ["a b", "c d"]
    assert {language.kind for language in texts.LANGUAGES.values()} <= set(texts.READERS)


def test_the_training_text_has_so_many_words(tmp_path: Path) -> None:
    for split in texts.SPLITS:
        write(tmp_path / "bible-nt" / f"swahili.{split}.tsv.gz", "b.1\tsasa hivi\nb.2\tkesho\nb.3\tleo\n")
    assert texts.texts(SWAHILI, tmp_path, 3) == {
        "train": ["sasa hivi", "kesho"], "valid": ["sasa hivi", "kesho", "leo"], "test": ["sasa hivi", "kesho", "leo"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("script", "argv", "message"),
    [
        (languages, ["{place}", "out", "--words", "0"], "--words 0: expected "),
        (languages, ["{place}", "out", "swahili"], "folder with the texts of swahili, found none; see DATA"),
        (languages, ["{place}", "out", "latin"], "there is no language 'latin' here; there are: hungarian, "),
        (clams, ["out", "--data", "{place}", "--language", "greek", "--most", "0"], "--most 0: expected "),
        (clams, ["out", "--data", "{place}", "--language", "greek"], "files named like el.simple_agrmt.txt.gz, found"),
    ],
)
def test_wrong_arguments(
    script: Any, argv: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["script", *(each.format(place=tmp_path) for each in argv)])
    assert script.main() == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_language_and_its_pairs(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for split in texts.SPLITS:
        verses = "".join(f"b.{number}\t{line}\n" for number, line in enumerate(world.text(split)[:200]))
        write(tmp_path / "bible-nt" / f"swahili.{split}.tsv.gz", verses)
    pairs = "True\tle chat voit\nFalse\tla chat voit\nTrue\tla mer tient\nFalse\tle mer tenait\n"
    write(tmp_path / "clams" / "sw.simple_agrmt.txt.gz", pairs)
    compare = languages.fairseq_llrnn.compare
    models = ["ngrams", "softmax", "pieces", "suffixes"]
    monkeypatch.setattr(
        languages.fairseq_llrnn, "compare", lambda **given: compare(**given, models=models, max_epoch=1)
    )
    argv = ["languages.py", str(tmp_path), str(tmp_path / "out"), "swahili", "--seeds", "1", "2"]
    monkeypatch.setattr(sys, "argv", argv)
    assert languages.main() == 0
    found = capsys.readouterr().out.splitlines()
    result = json.loads((tmp_path / "out/swahili/compare/result.json").read_text(encoding="utf-8"))
    ours, seeds = next((row["test"], row["seeds"]) for row in result["rows"] if row["name"] == "suffixes")
    assert seeds == [1, 2]
    assert found[-1].startswith("| swahili | ") and found[-1].endswith(f" | {ours:.3f} |")

    place = str(tmp_path / "out/swahili/compare")
    monkeypatch.setattr(sys, "argv", ["clams.py", place, "--data", str(tmp_path), "--language", "swahili"])
    assert clams.main() == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("| | pairs | softmax | softmax of BPE pieces (") and "| ours, suffixes |" in shown[0]
    assert shown[2].startswith("| simple agrmt | 2 | ") and len(shown) == 5
    folder, _ = clams.models_of(Path(place))["ours, suffixes"]
    one = json.loads((folder / "result.json").read_text(encoding="utf-8"))["test"]["tokens"]
    lines = (tmp_path / "out/swahili/text/test.txt").read_text(encoding="utf-8").splitlines()
    margins = clams.margins_of({"x": list(pairwise(lines[:3]))}, folder)["x"]
    log_probs = [sum(tokens) for tokens in one[:3]]
    assert margins == pytest.approx([a - b for a, b in pairwise(log_probs)], abs=1e-4)


def test_the_options_are_those_of_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in texts.SPLITS:
        write(tmp_path / "bible-nt" / f"swahili.{split}.tsv.gz", "b.1\tle chat voit la mer\n")
    given: dict[str, Any] = {}

    def compare(**options: Any) -> Any:
        given.update(options)
        return languages.ComparisonTable([Row("ngrams-2", "", valid=2.0, test=2.5)], Path(), "", [])

    monkeypatch.setattr(languages.fairseq_llrnn, "compare", compare)
    argv = ["languages.py", str(tmp_path), str(tmp_path / "out"), "swahili", "--words", "3", "--seeds", "1", "2"]
    monkeypatch.setattr(sys, "argv", [*argv, "--tries", "2", "--pretrained", "network"])
    assert languages.main() == 0
    assert given["seeds"] == [1, 2] and given["tries"] == 2 and given["pretrained"] == Path("network")


def test_the_summary_has_the_best_row_of_each_family() -> None:
    rows = [
        Row("ngrams-2", "", valid=2.0, test=2.5),
        Row("ngrams-3", "", valid=1.9, test=2.6),
        Row("softmax", "", failure="no space"),
        Row("mixed-ours", "", valid=1.0, test=1.25),
        Row("suffixes", "", valid=1.1, test=1.2),
    ]
    table = languages.ComparisonTable(rows, Path(), "", [])
    assert languages.summary({"x": table}).splitlines()[2:] == ["| x | 2.600 | – | – | 1.250 |"]


def test_ties_are_wrong_and_seeds_are_averaged(tmp_path: Path) -> None:
    for seed in (1, 2):
        (tmp_path / f"models/softmax/a-seed{seed}/model").mkdir(parents=True)
        (tmp_path / f"models/softmax/a-seed{seed}" / clams.CHECKPOINT).touch()
    rows = [
        {"title": "2-grams", "place": "models/ngrams-2/fixed-seed1", "seeds": [1]},
        {"title": "softmax", "place": "models/softmax/a-seed1", "seeds": [1, 2]},
        {"title": "mixed", "place": "", "seeds": [1, 2]},
    ]
    (tmp_path / "result.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    assert clams.models_of(tmp_path) == {"softmax": [tmp_path / f"models/softmax/a-seed{seed}" for seed in (1, 2)]}
    found = {"softmax": [{"x_y": [1.0, 0.0], "z": [-1.0, -1.0]}, {"x_y": [1.0, 1.0], "z": [-2.0, -2.0]}]}
    assert clams.table(found).splitlines() == [
        "| | pairs | softmax |",
        "|---|---:|---:|",
        "| x y | 2 | 75.0 |",
        "| z | 2 | 0.0 |",
        "| mean of lists | 4 | 37.5 ± 17.7 |",
        "| all | 4 | 37.5 ± 17.7 |",
    ]
    assert clams.some([("a", "b")] * 10, 4) == [("a", "b")] * 4


@pytest.mark.parametrize("preference", [0.0, 5.0, -5.0])
def test_a_preference_for_the_singular_has_no_effect(preference: float) -> None:
    knows = {"singular-near": [1.0, 0.5], "plural-near": [-0.75], "singular-far": [0.5], "plural-far": [-1.0]}
    margins = {
        kind: [margin + (preference if kind.startswith("singular") else -preference) for margin in values]
        for kind, values in knows.items()
    }
    assert clams.without_preference(margins) == pytest.approx((1 / 2 + 0) / 2)
    last = clams.table({"softmax": [margins]}).splitlines()[-1]
    assert last == "| without the preference | 5 | 25.0 |"


@pytest.mark.parametrize(
    ("rows", "message"),
    [(None, "expected the result of `llrnn compare`, found none"), ([], "expected networks with checkpoints, found")],
)
def test_what_is_no_comparison(rows: object, message: str, tmp_path: Path) -> None:
    if rows is not None:
        (tmp_path / "result.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        clams.models_of(tmp_path)


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


def test_a_treebank_without_subjects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for split in ("train", "dev", "test"):
        write(
            tmp_path / "ud-greek-gdt" / f"{split}.conllu.gz",
            "1\tλύκος\tλύκος\tNOUN" + "\t_" * 2 + "\t0\troot\t_\t_\n\n",
        )
    monkeypatch.setattr("sys.argv", ["agreement_pairs.py", "--data", str(tmp_path), "--out", str(tmp_path), "greek"])
    assert agreement_pairs.main() == 2
    assert "expected subjects and verbs in the treebank of greek, found none" in capsys.readouterr().err
