"""The prior on disk: round trip, same bytes, and refusal of everything that is not it."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.core.build import PriorSettings, build_prior
from fairseq_llrnn.core.dictionary import WordList
from fairseq_llrnn.core.lexicon import Lexicon
from fairseq_llrnn.core.prior import Prior, load_prior
from fairseq_llrnn.errors import DataError, OptionError, PriorError

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "le", "la", "maison", "fenêtre", "chat", "12", "madeupword0000")
COUNTS = np.array([0, 0, 5, 1, 9, 8, 3, 2, 2, 1, 0])


def lexicon() -> Lexicon:
    made = Lexicon()
    made.add("la", ["POS:DET", "Gender:Fem"])
    made.add("le", ["POS:DET", "Gender:Masc"])
    for word in ("maison", "fenêtre"):
        made.add(word, ["POS:NOUN", "Gender:Fem"])
    made.add("chat", ["POS:NOUN", "Gender:Masc"])
    return made


def build(settings: PriorSettings | None = None, counts: np.ndarray = COUNTS) -> Prior:
    settings = settings or PriorSettings(top_words=2)
    return build_prior(WordList(SYMBOLS, counts), counts, lexicon(), settings)[0]


def tree(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(directory.iterdir())}


def test_signatures_and_background() -> None:
    prior = build()
    assert prior.output.class_of[6] == prior.output.class_of[7] != prior.output.class_of[8]
    assert prior.output.features.row(prior.output.class_of[6]) == {"NOTTOP": 1, "POS:NOUN": 1, "Gender:Fem": 1}
    assert prior.output.features.row(prior.output.class_of[4]) == {"TOPFORM:le": 1, "POS:DET": 1, "Gender:Masc": 1}
    assert np.isneginf(prior.log_weights[[0, 1, 10]]).all()
    assert np.exp(prior.log_weights).sum() == pytest.approx(1.0)
    assert np.exp(prior.log_weights[4]) == pytest.approx(9 / 31)


def test_notes_count_what_the_lexicon_lacks() -> None:
    _, notes = build_prior(WordList(SYMBOLS, COUNTS), COUNTS, lexicon(), PriorSettings(top_words=2))
    assert notes["dictionary words that the lexicon lacks"] == 1


def test_round_trip(tmp_path: Path) -> None:
    other = PriorSettings(top_words=1, input_top_words=3, input_features=("POS",))
    for settings in (PriorSettings(top_words=2), other):
        prior = build(settings)
        prior.save(tmp_path / "prior")
        loaded = load_prior(tmp_path / "prior")
        assert loaded.symbols == prior.symbols
        assert loaded.fingerprint == prior.fingerprint
        assert loaded.counts() == prior.counts()
        assert loaded.settings["top_words"] == settings.top_words
        assert (loaded.input is loaded.output) == (settings.input_features is None)
        for one, other in ((loaded.output, prior.output), (loaded.input, prior.input)):
            assert one.features.names == other.features.names
            assert np.array_equal(one.class_of, other.class_of)
            assert np.array_equal(one.features.values, other.features.values)


def test_same_input_same_bytes(tmp_path: Path) -> None:
    build().save(tmp_path / "one")
    build().save(tmp_path / "other")
    assert tree(tmp_path / "one") == tree(tmp_path / "other")
    assert sorted(tree(tmp_path / "one")) == ["arrays.npz", "dictionary.txt", "prior.json"]


def test_fingerprint_knows_the_background() -> None:
    counts = COUNTS.copy()
    counts[8] += 1
    assert build(counts=counts).fingerprint != build().fingerprint


def test_saving_again_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    build().save(tmp_path / "prior")
    build(PriorSettings(top_words=3)).save(tmp_path / "prior")
    assert load_prior(tmp_path / "prior").settings["top_words"] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["prior"]


def test_other_peoples_directories_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("…", encoding="utf-8")
    with pytest.raises(PriorError, match="expected a free name or an earlier prior, found something else"):
        build().save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()
    build().save(tmp_path / "prior")
    (tmp_path / "prior" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(PriorError, match="expected a free name or an earlier prior, found something else"):
        build().save(tmp_path / "prior")
    assert (tmp_path / "prior" / "notes.txt").exists()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    build().save(tmp_path / "prior")
    before = tree(tmp_path / "prior")
    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(PriorError, match=r"cannot be written \(No space left on device\); check the rights"):
        build(PriorSettings(top_words=3)).save(tmp_path / "prior")
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


def damage_json(directory: Path, **changes: object) -> None:
    path = directory / "prior.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    build().save(tmp_path / "prior")
    return tmp_path / "prior"


def test_not_a_prior(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(PriorError, match="expected a prior .*found none; make one with `llrnn prior`"):
        load_prior(tmp_path / "nowhere")
    (saved / "prior.json").write_text('{"format": "something"}', encoding="utf-8")
    with pytest.raises(PriorError, match="expected the description of a fairseq_llrnn prior"):
        load_prior(saved)
    (saved / "prior.json").write_text('{"format": ', encoding="utf-8")
    with pytest.raises(PriorError, match="expected JSON, found damage"):
        load_prior(saved)


def test_another_version(saved: Path) -> None:
    damage_json(saved, version=99)
    with pytest.raises(PriorError, match="expected version 1, found 99; build it again"):
        load_prior(saved)


def test_missing_entries(saved: Path) -> None:
    description = json.loads((saved / "prior.json").read_text(encoding="utf-8"))
    del description["arrays_sha256"]
    (saved / "prior.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(PriorError, match="expected the entries arrays_sha256, found none"):
        load_prior(saved)


@pytest.mark.parametrize("keep", [0, 10, 500])
def test_truncated_arrays(saved: Path, keep: int) -> None:
    path = saved / "arrays.npz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(PriorError, match=rf"found {keep} other bytes \(truncated or changed\); copy it again"):
        load_prior(saved)


def test_changed_or_missing_words(saved: Path) -> None:
    (saved / "dictionary.txt").write_text("<s>\nx\n", encoding="utf-8")
    with pytest.raises(PriorError, match="expected the words the prior was made for, found others"):
        load_prior(saved)
    (saved / "dictionary.txt").unlink()
    with pytest.raises(PriorError, match="a file of the prior cannot be read"):
        load_prior(saved)


def replace_arrays(directory: Path, **changes: np.ndarray) -> None:
    """A stranger's arrays with a hash that fits."""
    with np.load(directory / "arrays.npz") as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    kept |= changes
    np.savez(directory / "arrays.npz", **{n: a for n, a in kept.items() if a is not None})
    digest = hashlib.sha256((directory / "arrays.npz").read_bytes()).hexdigest()
    damage_json(directory, arrays_sha256=digest)


@pytest.mark.parametrize("name", ["output_class_of", "output_indices"])
@pytest.mark.parametrize("value", [10**6, -1])
def test_indices_that_point_outside(saved: Path, name: str, value: int) -> None:
    with np.load(saved / "arrays.npz") as arrays:
        changed = arrays[name].copy()
    changed[0] = value
    replace_arrays(saved, **{name: changed})
    with pytest.raises(PriorError, match="the output signatures point outside their tables"):
        load_prior(saved)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("output_class_of", np.zeros(len(SYMBOLS))),
        ("output_offsets", np.zeros((2, 2), dtype=np.int64)),
        ("log_weights", np.zeros(len(SYMBOLS), dtype=np.complex128)),
    ],
)
def test_arrays_of_another_kind(saved: Path, name: str, array: np.ndarray) -> None:
    replace_arrays(saved, **{name: array})
    with pytest.raises(PriorError, match=f"not the arrays of a prior .{name}: expected a row of"):
        load_prior(saved)


def test_feature_values_that_are_not_finite(saved: Path) -> None:
    with np.load(saved / "arrays.npz") as arrays:
        changed = arrays["output_values"] * np.float32("nan")
    replace_arrays(saved, output_values=changed)
    with pytest.raises(PriorError, match="the output features hold values that are not finite"):
        load_prior(saved)


def test_a_single_array_is_no_prior(saved: Path) -> None:
    with (saved / "arrays.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    damage_json(saved, arrays_sha256=hashlib.sha256((saved / "arrays.npz").read_bytes()).hexdigest())
    with pytest.raises(PriorError, match="not the arrays of a prior"):
        load_prior(saved)


@pytest.mark.parametrize("entry", [{"settings": 3}, {"output_features": "POS"}, {"output_features": [1]}])
def test_descriptions_of_another_kind(saved: Path, entry: dict[str, object]) -> None:
    damage_json(saved, **entry)
    with pytest.raises(PriorError, match="expected settings and lists of feature names, found something else"):
        load_prior(saved)


def test_pickled_arrays_are_not_executed(saved: Path) -> None:
    replace_arrays(saved, log_weights=np.array([print], dtype=object))
    with pytest.raises(PriorError, match="not the arrays of a prior"):
        load_prior(saved)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_make_no_distribution(saved: Path, value: float) -> None:
    weights = np.full(len(SYMBOLS), value)
    replace_arrays(saved, log_weights=weights)
    with pytest.raises(PriorError, match="expected weights of which some are positive and all are finite"):
        load_prior(saved)


def test_arrays_of_another_size(saved: Path) -> None:
    replace_arrays(saved, log_weights=np.zeros(3))
    with pytest.raises(PriorError, match="its arrays and its dictionary differ in size"):
        load_prior(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("le\t1\t2\n", "line 1: expected `word<TAB>weight`, found 3 columns"),
        ("le\t1\nla\n", "line 2: expected `word<TAB>weight`, found 1 columns"),
        ("chien\t1\n", "line 1: word 'chien' is not in the dictionary"),
        ("<pad>\t1\n", "line 1: word '<pad>' is not in the dictionary"),
        ("le\t1\nla\t2\nle\t3\n", "line 3: word 'le' was already given in line 1"),
        ("le\tviel\n", "line 1: expected a number as weight of 'le', found 'viel'"),
        ("le\tnan\n", "line 1: expected a finite weight ≥ 0 for 'le', found nan"),
        ("le\tinf\n", "line 1: expected a finite weight ≥ 0 for 'le', found inf"),
        ("le\t-1\n", "line 1: expected a finite weight ≥ 0 for 'le', found -1"),
        ("le\t0\n", "expected at least one positive weight, found none"),
    ],
)
def test_bad_weights(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "weights.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        build(PriorSettings(top_words=2, background=str(path)))
    assert message in str(caught.value)


def test_backgrounds(tmp_path: Path) -> None:
    uniform = build(PriorSettings(top_words=2, background="uniform"))
    assert np.exp(uniform.log_weights[[2, 3, 4]]).tolist() == pytest.approx([1 / 8] * 3)
    path = tmp_path / "weights.tsv"
    path.write_text("le\t3\n\n</s>\t1\n", encoding="utf-8")
    given = build(PriorSettings(top_words=2, background=str(path)))
    assert np.exp(given.log_weights[[2, 4, 5]]).tolist() == pytest.approx([0.25, 0.75, 0.0])
    path.write_text("le\t1e308\nla\t1e308\n", encoding="utf-8")
    large = build(PriorSettings(top_words=2, background=str(path)))
    assert np.exp(large.log_weights[[4, 5]]).tolist() == pytest.approx([0.5, 0.5])
    with pytest.raises(OptionError, match="--background unigrm: expected unigram, uniform or the path of a TSV"):
        build(PriorSettings(top_words=2, background="unigrm"))


def test_softmax_prior_has_one_signature_per_word() -> None:
    prior, _ = build_prior(
        WordList(SYMBOLS, COUNTS), COUNTS, Lexicon(), PriorSettings(top_words="all", background="uniform")
    )
    assert prior.output.num_classes == len(SYMBOLS)
