"""A comparison of n-grams: a stop, a full disk, a moved folder, sources of features."""

import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairseq_llrnn.comparison import comparing
from fairseq_llrnn.comparison.comparing import compare
from fairseq_llrnn.comparison.inputs import digests
from fairseq_llrnn.comparison.jobs import EARLY_STOP, read_result, run_job
from fairseq_llrnn.comparison.models import trials_of
from fairseq_llrnn.comparison.processes import LOG
from fairseq_llrnn.comparison.settings import Comparison
from fairseq_llrnn.comparison.texts import read_texts
from fairseq_llrnn.errors import LLRNNError, OptionError
from fairseq_llrnn.evaluation.prior_scorer import PriorScorer
from fairseq_llrnn.evaluation.texts import LineScore
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.lexicon_table import Row, Table, as_features
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def files(tmp_path: Path) -> Sequence[Path]:
    """A training, a validation and a test text."""
    places = [tmp_path / f"{name}.txt" for name in ("train", "valid", "test")]
    for place, begin, size in zip(places, (0, 500, 700), (110, 12, 12), strict=True):
        lines = (f"word{n % 7} of word{n % 11} number{n}" for n in range(begin, begin + size))
        place.write_text("".join(f"{line}\n" for line in lines))
    return places


def no_networks() -> comparing.Networks:
    raise OptionError("no fairseq")


def run(out: Path, files: Sequence[Path], words: LexiconOptions | None = None) -> list[str]:
    """Compare n-grams, and return the printed lines."""
    lines: list[str] = []
    compare(Comparison(out, None, *files, words or LexiconOptions(), models=["ngrams"]), no_networks, lines.append)
    return lines


def test_a_stop_loses_nothing(files: Sequence[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, lines, usual = tmp_path / "out", list[str](), comparing.run_all

    def stop(works: dict[Path, object], *others: object) -> None:
        first = next(iter(works))
        usual({first: works[first]}, *others)  # type: ignore[arg-type, dict-item]
        raise KeyboardInterrupt

    monkeypatch.setattr(comparing, "run_all", stop)
    with pytest.raises(KeyboardInterrupt):
        compare(Comparison(out, None, *files, models=["ngrams"]), no_networks, lines.append)
    assert lines[-1] == f"stopped; the same command continues with the results in {out}"
    assert not (out / "table.md").exists()
    monkeypatch.setattr(comparing, "run_all", usual)
    assert any("4 models (1 of them finished)" in line for line in run(out, files)) and (out / "table.md").exists()


def test_a_training_may_be_stopped_after_its_best_epoch(files: Sequence[Path], tmp_path: Path) -> None:
    """Its log has no best epoch: that was in the run before."""
    settings = Comparison(tmp_path / "out", None, *files, models=["characters"])
    job = trials_of("characters", settings, 1)[0]
    place = tmp_path / "out" / job.place

    class Resumed:
        def train(self, arguments: Sequence[str]) -> int:
            (place / "model").mkdir()
            (place / LOG).write_text(f"{EARLY_STOP} hasn't improved\nbest epoch  in an earlier run\n")
            return 0

        def scored_lines(self, checkpoint: str, lines: Sequence[str], is_open: bool) -> list[LineScore]:
            return [*PriorScorer(Prior.load(place / "data" / "prior")).lines(lines, is_open)]

    run_job(job, read_texts(settings), settings, Resumed())
    result = read_result(settings.out, job)
    assert result is not None and result["is_converged"]


def test_a_full_disk_is_an_error_before_any_training(
    files: Sequence[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing.shutil, "disk_usage", lambda place: SimpleNamespace(free=12_000_000))
    with pytest.raises(OptionError) as found:
        run(tmp_path / "out", files)
    assert str(found.value) == (
        f"out {tmp_path / 'out'}: expected 30 MB of free space for 4 models, found 12 MB; free some, or use out on "
        "another disk. Finished models are kept"
    )
    assert not (tmp_path / "out" / "models").exists()
    monkeypatch.undo()
    run(tmp_path / "out", files)
    monkeypatch.setattr(comparing.shutil, "disk_usage", lambda place: SimpleNamespace(free=0))
    run(tmp_path / "out", files)  # no model is left


def test_results_belong_to_the_content_of_files(
    files: Sequence[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lexicon, place = tmp_path / "lexicon.tsv", tmp_path / "elsewhere"
    lexicon.write_text("word1\tword\tNOUN\tNumber=Sing\n")
    words = LexiconOptions(lexicon=str(lexicon))
    run(tmp_path / "out", files, words)
    place.mkdir()
    for file in (*files, lexicon, tmp_path / "out"):
        file.rename(place / file.name)
    monkeypatch.chdir(place)
    moved = [Path(file.name) for file in files]
    assert "4 models, all finished" in " ".join(run(Path("out"), moved, LexiconOptions(lexicon=lexicon.name)))
    assert "4 models, all finished" in " ".join(run(Path("out"), moved))  # n-grams read no lexicon


def place_of_lexicon(files: Sequence[Path], **words: Any) -> str:
    """Return the folder of the model with a lexicon."""
    return digests(["lexicon"], settings := Comparison(Path("o"), None, *files, LexiconOptions(**words)),
                   read_texts(settings))["lexicon"]  # fmt: skip


def test_a_lexicon_model_belongs_to_all_values_of_its_sources(files: Sequence[Path], tmp_path: Path) -> None:
    file, renamed = tmp_path / "lexicon.tsv", tmp_path / "more" / "lexicon.tsv"
    renamed.parent.mkdir()
    file.write_text("word1\tword\tNOUN\tNumber=Sing\n")
    renamed.write_text(file.read_text())
    cut = tmp_path / "cut.tsv"
    cut.write_text("word1\tword 1\n")
    one, two = {"word1": ["Number:Sing"]}, {"word1": ["Number:Plur"]}
    table = Table([(Row("word1", features=as_features({"Number:Sing": 1.0})), 1)])
    other_table = Table([(Row("word1", features=as_features({"Number:Plur": 1.0})), 1)])
    assert place_of_lexicon(files, lexicon=str(file)) == place_of_lexicon(files, lexicon=[renamed])
    assert place_of_lexicon(files, lexicon=one) == place_of_lexicon(files, lexicon={**one})
    choices: list[dict[str, Any]] = [
        {"lexicon": str(file)}, {"lexicon": one}, {"lexicon": two}, {"lexicon": table}, {"lexicon": other_table},
        {"lexicon": Lexicon(one)}, {"lexicon": Lexicon(two)}, {"morphemes": {"word1": ["word", "1"]}},
        {"morphemes": {"word1": ["wor", "d1"]}}, {"morphemes": str(cut)}, {"morphemes": str(cut), "morpheme_floor": 9},
        {"lexicon": one, "guess": "off"}, {"lexicon": one, "normalize": "nfd"},
        {"lexicon": one, "morphemes": str(cut)},
    ]  # fmt: skip
    assert len({place_of_lexicon(files, **choice) for choice in choices}) == len(choices)
    file.write_text("word1\tword\tNOUN\tNumber=Plur\n")
    assert place_of_lexicon(files, lexicon=str(file)) != place_of_lexicon(files, lexicon=str(renamed))


def test_a_pretrained_network_is_known_by_its_content(files: Sequence[Path], tmp_path: Path) -> None:
    names = ("config.json", "tokenizer.json", "model.safetensors")
    folders = [tmp_path / parent / "gpt" for parent in ("a", "b", *names)]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text("other" if name == folder.parent.name else "same")
    settings = [Comparison(Path("o"), None, *files, pretrained=folder) for folder in folders]
    found = [digests(["pretrained"], one, read_texts(one))["pretrained"] for one in settings]
    assert found[0] == found[1] and len(set(found)) == 4


def test_a_malformed_lexicon_is_an_error_before_any_training(files: Sequence[Path], tmp_path: Path) -> None:
    lexicon, words = tmp_path / "lexicon.tsv", LexiconOptions(lexicon=str(tmp_path / "lexicon.tsv"))
    lexicon.write_text("one cell\n")
    for models in (["lexicon"], ["ngrams", "lexicon"]):
        settings = Comparison(tmp_path / "out", None, *files, words, models=models)
        with pytest.raises(LLRNNError, match="lexicon.tsv, line 1"):
            compare(settings, SimpleNamespace, print)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"lower": ""}, "with lower, found those without lower; use another out"),
        ({"lower": "tr"}, {"lower": ""}, "with lower, found those with lower tr;"),
        ({"lower": "tr"}, {}, "without lower, found those with lower tr;"),
        ({"max_epoch": 2}, {"max_epoch": 3}, "of these texts, found those of other texts;"),
    ],
)
def test_results_of_other_choices(
    before: dict[str, Any], after: dict[str, Any], message: str, files: Sequence[Path], tmp_path: Path
) -> None:
    out, choices = tmp_path / "out", {"models": ["ngrams"]}
    compare(Comparison(out, None, *files, **choices, **before), no_networks, print)
    files[0].write_text(files[0].read_text().replace("of", "Of"))
    with pytest.raises(OptionError) as found:
        compare(Comparison(out, None, *files, **choices, **after), no_networks, print)
    assert str(found.value).startswith(f"out {out}: expected results {message}")


def test_sources_of_lemmas_alone_have_no_features(tmp_path: Path, files: Sequence[Path]) -> None:
    (tmp_path / "x.dic").write_text("1\nword1\n")
    (tmp_path / "x.aff").write_text("SET UTF-8\n")
    words = LexiconOptions(hunspell=str(tmp_path / "x.dic"))
    with pytest.raises(OptionError, match="models lexicon: it needs features of words, found no source of them"):
        compare(Comparison(tmp_path / "out", None, *files, words, models=["lexicon"]), no_networks, print)
    with pytest.raises(LLRNNError, match="^words.hunspell .*no.dic: expected a dictionary of hunspell"):
        run(tmp_path / "out", files, LexiconOptions(hunspell=str(tmp_path / "no.dic")))


def test_a_spelling_lexicon_is_of_all_word_models(tmp_path: Path) -> None:
    draw = random.Random(1)
    listed = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(400)]
    texts = [tmp_path / f"{name}.txt" for name in ("train", "valid", "test")]
    for text, begin, end in zip(texts, (0, 200, 240), (200, 240, 280), strict=True):
        lines = (f"{listed[n]} {listed[n % 200]} {listed[n % 150]}\n" for n in range(begin, end))
        text.write_text("".join(lines), encoding="utf-8")
    words = tmp_path / "words.txt"
    words.write_text("".join(f"{word}\n" for word in listed), encoding="utf-8")

    def best(lexicons: Sequence[Path]) -> float:
        settings = Comparison(tmp_path / "out", None, *texts, models=["ngrams"], spelling_lexicon=lexicons)
        return min(row.test for row in compare(settings, no_networks, lambda line: None).rows)

    without = best([])
    assert best([words]) < without - 0.5
    assert best([]) == without, "results without a lexicon stay"

    def of_models() -> dict[str, str]:
        settings = Comparison(tmp_path / "out", None, *texts, spelling_lexicon=[words])
        return digests(["ngrams", "softmax", "pieces"], settings, read_texts(settings))

    before = of_models()
    words.write_text("one more\n", encoding="utf-8")
    assert before.keys() == {"ngrams", "softmax"} and not set(before.values()) & set(of_models().values())
    with pytest.raises(LLRNNError, match=r"spelling_lexicon .*gone\.txt: cannot be read: No such file"):
        best([tmp_path / "gone.txt"])
    places = {path.name for path in (tmp_path / "out" / "models").iterdir()}
    with pytest.raises(LLRNNError, match=r"^.*train\.txt: expected a word in each line, found none; is the file"):
        best([texts[0]])
    assert {path.name for path in (tmp_path / "out" / "models").iterdir()} == places, "before a model starts"
