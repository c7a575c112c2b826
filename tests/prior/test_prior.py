"""The prior: its contents, and its files: round trip, same bytes, complete or absent."""

from pathlib import Path

import numpy as np
import pytest
from killed_at_steps import killed_before
from prior_of_words import COUNTS, SYMBOLS, build, lexicon, tree

from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.array_file import write_arrays
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.parts.static import check_static
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe


def test_signatures_and_background() -> None:
    prior = build()
    assert prior.output.class_of[6] == prior.output.class_of[7] != prior.output.class_of[8]
    assert prior.output.features.row(prior.output.class_of[6]) == {"NOTTOP": 1, "POS:NOUN": 1, "Gender:Fem": 1}
    assert prior.output.features.row(prior.output.class_of[4]) == {"TOPFORM:le": 1, "POS:DET": 1, "Gender:Masc": 1}
    assert np.isneginf(prior.log_weights[[0, 1, 10]]).all()
    assert np.exp(prior.log_weights).sum() == pytest.approx(1.0)
    assert np.exp(prior.log_weights[4]) == pytest.approx(9 / 31)


def test_notes_count_what_the_lexicon_lacks() -> None:
    _, notes = plain_prior(WordList(SYMBOLS, COUNTS), COUNTS, lexicon(), Recipe(top_words=2))
    assert notes["dictionary words that the lexicon lacks"] == 1


def test_round_trip(tmp_path: Path) -> None:
    other = Recipe(top_words=1, input_top_words=3, input_features=("POS",))
    for settings in (Recipe(top_words=2), other):
        prior = build(settings)
        prior.save(tmp_path / "prior")
        loaded = Prior.load(tmp_path / "prior")
        assert loaded.symbols == prior.symbols
        assert loaded.fingerprint == prior.fingerprint
        assert loaded.counts() == prior.counts()
        assert loaded.settings["top_words"] == settings.top_words
        assert (loaded.input is loaded.output) == (settings.input_features is None)
        for one, other in ((loaded.output, prior.output), (loaded.input, prior.input)):
            assert one.features.names == other.features.names
            assert np.array_equal(one.class_of, other.class_of)
            assert np.array_equal(one.features.values, other.features.values)


def test_fingerprint_knows_the_background() -> None:
    counts = COUNTS.copy()
    counts[8] += 1
    assert build(counts=counts).fingerprint != build().fingerprint


def test_saving_again_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    build().save(tmp_path / "prior")
    build(Recipe(top_words=3)).save(tmp_path / "prior")
    assert Prior.load(tmp_path / "prior").settings["top_words"] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["prior"]


def test_other_peoples_directories_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("…", encoding="utf-8")
    with pytest.raises(PriorError, match="expected a free name or an earlier prior, found something else there; give"):
        build().save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()
    (tmp_path / "mine" / "thesis.tex").rename(tmp_path / "mine" / "dictionary.txt")  # a file of priors has this name
    with pytest.raises(PriorError, match="expected a free name or an earlier prior, found something else there; give"):
        build().save(tmp_path / "mine")
    build().save(tmp_path / "prior")
    (tmp_path / "prior" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(PriorError, match="expected a free name or an earlier prior, found something else"):
        build().save(tmp_path / "prior")
    assert (tmp_path / "prior" / "notes.txt").exists()


@pytest.mark.filterwarnings("error")  # a file that nobody closed would complain a second time
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object, arrays: dict[str, np.ndarray]) -> None:
        with open("/dev/full", "wb") as file:
            write_arrays(file, arrays)

    build().save(tmp_path / "prior")
    before = tree(tmp_path / "prior")
    monkeypatch.setattr("fairseq_llrnn.prior.directory.write_arrays", full)
    with pytest.raises(PriorError, match=r"cannot be written \(No space left on device\); check the rights"):
        build(Recipe(top_words=3)).save(tmp_path / "prior")
    assert [p.name for p in tmp_path.iterdir()] == ["prior"] and tree(tmp_path / "prior") == before


def test_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(PriorError, match="the prior cannot be written"):
        build().save(tmp_path / "file" / "prior")


def test_another_dictionary(tmp_path: Path) -> None:
    prior = build()
    prior.check_dictionary(SYMBOLS, "data-bin/dict.txt")
    changed = (*SYMBOLS[:8], "chien", *SYMBOLS[9:])
    with pytest.raises(PriorError, match=r"another dictionary than d.txt.*index 8 \('chat' in the prior, 'chien' in"):
        prior.check_dictionary(changed, "d.txt")
    with pytest.raises(PriorError, match=r"sizes 11 and 12, first difference at index 11 \('nothing' in the prior"):
        prior.check_dictionary((*SYMBOLS, "plus"), "d.txt")


def test_a_kill_at_any_moment_leaves_a_whole_prior_in_its_place(tmp_path: Path) -> None:
    """An earlier version lost it between two renames."""
    place = tmp_path / "prior"
    old, new = build(), build(Recipe(top_words=3))
    old.save(place)
    step = 1
    while killed_before(step, lambda: new.save(place)):
        try:
            found = Prior.load(place).settings["top_words"]
        except PriorError as error:  # no exchange of names here
            assert f"a process that replaced it was killed; it is now in {tmp_path}/.prior." in str(error)
        else:
            assert found in (3, old.settings["top_words"])
        step += 3
    Prior.load(place)
    assert [found.name for found in tmp_path.iterdir()] == ["prior"]


def test_backgrounds(tmp_path: Path) -> None:
    uniform = build(Recipe(top_words=2, background="uniform"))
    assert np.exp(uniform.log_weights[[2, 3, 4]]).tolist() == pytest.approx([1 / 8] * 3)
    path = tmp_path / "weights.tsv"
    path.write_text("le\t3\n\n</s>\t1\n", encoding="utf-8")
    given = build(Recipe(top_words=2, background=str(path)))
    assert np.exp(given.log_weights[[2, 4, 5]]).tolist() == pytest.approx([0.25, 0.75, 0.0])
    path.write_text("le\t1e99\nla\t1e99\n", encoding="utf-8")
    large = build(Recipe(top_words=2, background=str(path)))
    assert np.exp(large.log_weights[[4, 5]]).tolist() == pytest.approx([0.5, 0.5])
    message = "--background unigrm: expected unigram, uniform, language:CODE, automaton:.* or the path of a TSV"
    with pytest.raises(OptionError, match=message):
        check_static("unigrm", "--background")
    for background in ("unigram:x", "uniform:x"):  # once taken for the part before the colon
        with pytest.raises(OptionError, match=f"--background {background}: expected unigram"):
            check_static(background, "--background")


def test_softmax_prior_has_one_signature_per_word() -> None:
    prior, _ = plain_prior(WordList(SYMBOLS, COUNTS), COUNTS, Lexicon(), Recipe(top_words="all", background="uniform"))
    assert prior.output.num_classes == len(SYMBOLS)
