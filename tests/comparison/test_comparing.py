"""A comparison of n-grams: a stop, a full disk, a moved folder, sources of features."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_llrnn.comparison import comparing
from fairseq_llrnn.comparison.comparing import compare
from fairseq_llrnn.comparison.settings import Comparison
from fairseq_llrnn.errors import LLRNNError, OptionError
from fairseq_llrnn.lexicon.options import LexiconOptions


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


def test_a_full_disk_is_an_error_before_any_training(
    files: Sequence[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing.shutil, "disk_usage", lambda place: SimpleNamespace(free=12_000_000))
    with pytest.raises(OptionError) as found:
        run(tmp_path / "out", files)
    assert str(found.value) == (
        f"--out {tmp_path / 'out'}: expected 30 MB of free space for 4 models, found 12 MB; free some, or use --out on "
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
    assert "4 models (4 of them finished)" in " ".join(run(Path("out"), moved, LexiconOptions(lexicon=lexicon.name)))
    (place / lexicon.name).write_text("word1\tword\tNOUN\tNumber=Plur\n")
    with pytest.raises(LLRNNError, match="^--out out: expected results of these sources, found those of other sources"):
        run(Path("out"), moved, LexiconOptions(lexicon=lexicon.name))


def test_sources_of_lemmas_alone_have_no_features(tmp_path: Path, files: Sequence[Path]) -> None:
    (tmp_path / "x.dic").write_text("1\nword1\n")
    (tmp_path / "x.aff").write_text("SET UTF-8\n")
    words = LexiconOptions(hunspell=str(tmp_path / "x.dic"))
    with pytest.raises(OptionError, match="--models lexicon: it needs features of words, found no source of them"):
        compare(Comparison(tmp_path / "out", None, *files, words, models=["lexicon"]), no_networks, print)
    with pytest.raises(LLRNNError, match="^--hunspell .*no.dic: expected a dictionary of hunspell"):
        run(tmp_path / "out", files, LexiconOptions(hunspell=str(tmp_path / "no.dic")))
