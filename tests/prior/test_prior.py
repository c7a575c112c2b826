"""The prior on disk: round trip, same bytes, and refusal of everything that is not it."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from killed_at_steps import killed_before

from fairseq_llrnn.alignment.bitext import Bitext, Sentences
from fairseq_llrnn.alignment.parallel_text import ParallelText
from fairseq_llrnn.backgrounds.lexical import LexicalBackground
from fairseq_llrnn.backgrounds.static import StaticBackground
from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.features.lexicon import Lexicon
from fairseq_llrnn.files.array_file import write_arrays
from fairseq_llrnn.prior.build import PriorSettings, build_prior
from fairseq_llrnn.prior.options import TranslationOptions
from fairseq_llrnn.prior.parts import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.translations import add_translations

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
    assert Prior.load(tmp_path / "prior").settings["top_words"] == 3
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


@pytest.mark.filterwarnings("error")  # a file that nobody closed would complain a second time
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object, arrays: dict[str, np.ndarray]) -> None:
        with open("/dev/full", "wb") as file:
            write_arrays(file, arrays)

    build().save(tmp_path / "prior")
    before = tree(tmp_path / "prior")
    monkeypatch.setattr("fairseq_llrnn.prior.directory.write_arrays", full)
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
        Prior.load(tmp_path / "nowhere")
    (saved / "prior.json").write_text('{"format": "something"}', encoding="utf-8")
    with pytest.raises(PriorError, match="expected the description of a fairseq_llrnn prior"):
        Prior.load(saved)
    (saved / "prior.json").write_text('{"format": ', encoding="utf-8")
    with pytest.raises(PriorError, match="expected JSON, found damage"):
        Prior.load(saved)


def test_another_version(saved: Path) -> None:
    old = "build it again with `llrnn prior` of this version"
    for version, fix in ((99, "comes from a newer fairseq_llrnn"), (3, old), ("4", old)):
        damage_json(saved, version=version)
        with pytest.raises(PriorError, match=f"expected version 4, found {version}; .*{fix}"):
            Prior.load(saved)


def test_missing_entries(saved: Path) -> None:
    description = json.loads((saved / "prior.json").read_text(encoding="utf-8"))
    del description["arrays_sha256"]
    (saved / "prior.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(PriorError, match="expected the entries arrays_sha256, found none"):
        Prior.load(saved)


@pytest.mark.parametrize("keep", [0, 10, 500])
def test_truncated_arrays(saved: Path, keep: int) -> None:
    path = saved / "arrays.npz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(PriorError, match=rf"found {keep} other bytes \(truncated or changed\); copy it again"):
        Prior.load(saved)


def test_changed_or_missing_words(saved: Path) -> None:
    (saved / "dictionary.txt").write_text("<s>\nx\n", encoding="utf-8")
    with pytest.raises(PriorError, match="expected the words the prior was made for, found others"):
        Prior.load(saved)
    (saved / "dictionary.txt").unlink()
    with pytest.raises(PriorError, match="a file of the prior cannot be read"):
        Prior.load(saved)


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
        Prior.load(saved)


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
    with pytest.raises(PriorError, match=f"{name}: expected a row of"):
        Prior.load(saved)


def test_feature_values_that_are_not_finite(saved: Path) -> None:
    with np.load(saved / "arrays.npz") as arrays:
        changed = arrays["output_values"] * np.float32("nan")
    replace_arrays(saved, output_values=changed)
    with pytest.raises(PriorError, match="the output features hold values that are not finite"):
        Prior.load(saved)


def test_a_single_array_is_no_prior(saved: Path) -> None:
    with (saved / "arrays.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    damage_json(saved, arrays_sha256=hashlib.sha256((saved / "arrays.npz").read_bytes()).hexdigest())
    with pytest.raises(PriorError, match="; build it again"):
        Prior.load(saved)


@pytest.mark.parametrize("entry", [{"settings": 3}, {"output_features": "POS"}, {"output_features": [1]}])
def test_descriptions_of_another_kind(saved: Path, entry: dict[str, object]) -> None:
    damage_json(saved, **entry)
    with pytest.raises(PriorError, match="expected settings and lists of feature names, found something else"):
        Prior.load(saved)


def test_pickled_arrays_are_not_executed(saved: Path) -> None:
    replace_arrays(saved, log_weights=np.array([print], dtype=object))
    with pytest.raises(PriorError, match="log_weights.*: expected the header of an array of numbers.*; build it again"):
        Prior.load(saved)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_make_no_distribution(saved: Path, value: float) -> None:
    weights = np.full(len(SYMBOLS), value)
    replace_arrays(saved, log_weights=weights)
    with pytest.raises(PriorError, match="expected weights of which some are positive and all are finite"):
        Prior.load(saved)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("log_weights", 99.0, "log_weights: expected a sum with a logarithm up to 50, found 99"),
        ("output_values", 1e7, "the output features hold values above 1,000,000"),
    ],
)
def test_numbers_that_are_too_large_to_compute_with(saved: Path, name: str, value: float, said: str) -> None:
    with np.load(saved / "arrays.npz") as arrays:
        changed = arrays[name].copy()
    changed[-1] = value
    replace_arrays(saved, **{name: changed})
    with pytest.raises(PriorError, match=said):
        Prior.load(saved)


def test_arrays_of_another_size(saved: Path) -> None:
    replace_arrays(saved, log_weights=np.zeros(3))
    with pytest.raises(PriorError, match="its arrays and its dictionary differ in size"):
        Prior.load(saved)


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
    path.write_text("le\t1e99\nla\t1e99\n", encoding="utf-8")
    large = build(PriorSettings(top_words=2, background=str(path)))
    assert np.exp(large.log_weights[[4, 5]]).tolist() == pytest.approx([0.5, 0.5])
    message = "--background unigrm: expected unigram, uniform, language:CODE, ngram:FILE, .* or the path of a TSV"
    with pytest.raises(OptionError, match=message):
        build(PriorSettings(top_words=2, background="unigrm"))
    for background in ("ngram", "model", "unigram:x", "uniform:x"):  # once taken for the part before the colon
        with pytest.raises(OptionError, match=f"--background {background}: expected unigram"):
            build(PriorSettings(top_words=2, background=background))


def test_softmax_prior_has_one_signature_per_word() -> None:
    prior, _ = build_prior(
        WordList(SYMBOLS, COUNTS), COUNTS, Lexicon(), PriorSettings(top_words="all", background="uniform")
    )
    assert prior.output.num_classes == len(SYMBOLS)


# ---- lexical translations -------------------------------------------------------------------------------------------

SOURCE_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "the", "house", "cat", "window", "12")


def sentences(*rows: list[int]) -> Sentences:
    return Sentences(np.concatenate(rows).astype(np.int64), np.cumsum([0, *(len(row) for row in rows)]))


def translating(prior: Prior | None = None, **options: object) -> Prior:
    """The house, the cat, the window; le chat, la maison, la fenêtre."""
    bitext = Bitext(
        sentences([4, 5, 2], [4, 6, 2], [4, 7, 2], [8, 3, 2]), sentences([5, 6, 2], [4, 8, 2], [5, 7, 2], [9, 3, 2])
    )
    text = ParallelText(bitext, SOURCE_SYMBOLS, ())
    return add_translations(prior or build(), TranslationOptions(text, aligner="ibm1", **options))[0]


def test_a_prior_without_translations_is_what_it_was() -> None:
    """Checkpoints remember the fingerprint of their prior."""
    rounded = replace(build(), log_weights=np.round(build().log_weights))  # logarithms differ by machine
    assert rounded.fingerprint == "938a233dbc0acccbe3a124db14ff0f970cbaf48f88d56befdc8b069aac30c107"
    assert type(build().background()) is StaticBackground
    build().check_source_dictionary(("any", "words"), "dict.en.txt")


def test_translations_make_the_background() -> None:
    prior = translating(weight=0.25)
    background = prior.background()
    assert isinstance(background, LexicalBackground)
    house = background.given(torch.tensor([[SOURCE_SYMBOLS.index("house"), 2]]))
    weights = house.log_weights(house.start(1)).exp()[0]
    assert weights.sum().item() == pytest.approx(1.0)
    base = np.exp(prior.log_weights)
    assert weights[[2, 3]].tolist() == pytest.approx(base[[2, 3]].tolist())
    words = base[4:].sum()
    maison = SYMBOLS.index("maison")
    says = dict(prior.find(LexicalPart).table.row(SOURCE_SYMBOLS.index("house")))[maison]
    assert weights[maison].item() == pytest.approx(0.75 * base[maison] + 0.25 * words * says)
    assert torch.isneginf(house.log_weights(house.start(1))[0, [0, 1, 10]]).all()
    assert list(background.parameters()) == []


def test_a_learned_weight_is_a_parameter() -> None:
    background = translating(weight=0.25, learned=True).background()
    assert [p.sigmoid().item() for p in background.parameters()] == pytest.approx([0.25])


def test_translations_round_trip(tmp_path: Path) -> None:
    prior = translating(weight=0.25, learned=True, top=2)
    prior.save(tmp_path / "prior")
    assert sorted(tree(tmp_path / "prior")) == ["arrays.npz", "dictionary.txt", "prior.json", "source.txt"]
    loaded = Prior.load(tmp_path / "prior")
    assert loaded.fingerprint == prior.fingerprint
    assert loaded.source_symbols == SOURCE_SYMBOLS
    part = loaded.find(LexicalPart)
    assert (part.weight, part.learned, part.aligner) == (0.25, True, "ibm1")
    assert np.array_equal(part.table.targets, prior.find(LexicalPart).table.targets)
    assert loaded.counts() == prior.counts()
    assert loaded.counts()["source words"] == 5
    assert loaded.settings["lexical_top"] == 2
    build().save(tmp_path / "prior")  # a prior replaces a prior
    assert sorted(tree(tmp_path / "prior")) == ["arrays.npz", "dictionary.txt", "prior.json"]
    translating().save(tmp_path / "other")
    translating().save(tmp_path / "prior")
    assert tree(tmp_path / "prior") == tree(tmp_path / "other")


def test_translations_between_lemmas_by_whole_numbers_round_trip(tmp_path: Path) -> None:
    options = TranslationOptions(
        ParallelText(Bitext(sentences([4, 5, 2]), sentences([5, 6, 2])), SOURCE_SYMBOLS, ()),
        weight=0, aligner="ibm1", units="lemma", form_power=1,
    )  # fmt: skip
    prior = add_translations(build(), options, lemmas=[()] * len(SYMBOLS))[0]
    prior.save(tmp_path / "prior")
    part = Prior.load(tmp_path / "prior").find(LexicalPart)
    assert part is not None and (part.weight, part.form_power) == (0.0, 1.0) and part.forms is not None


def test_the_fingerprint_knows_the_translations() -> None:
    priors = [build(), translating(), translating(top=1), translating(weight=0.25)]
    priors.append(translating(learned=True))
    assert len({prior.fingerprint for prior in priors}) == 5


def test_a_word_that_the_background_forbids_is_no_translation(tmp_path: Path) -> None:
    path = tmp_path / "weights.tsv"
    path.write_text("le\t3\nla\t3\n</s>\t1\n", encoding="utf-8")
    prior = translating(prior=build(PriorSettings(top_words=2, background=str(path))))
    assert set(prior.find(LexicalPart).table.targets) == {4, 5}
    weights = prior.background().given(torch.tensor([[5, 8, 2]])).log_weights(torch.tensor([[0]])).exp()
    assert weights.sum().item() == pytest.approx(1.0) and weights[0, 6] == 0


def test_another_source_dictionary() -> None:
    prior = translating()
    prior.check_source_dictionary(SOURCE_SYMBOLS, "data/dict.en.txt")
    with pytest.raises(PriorError) as caught:
        prior.check_source_dictionary((*SOURCE_SYMBOLS[:5], "home", *SOURCE_SYMBOLS[6:]), "data/dict.en.txt")
    assert str(caught.value) == (
        "the prior's lexical translations were made for another source dictionary than data/dict.en.txt: sizes 9 and "
        "9, first difference at index 5 ('house' in the prior, 'home' in the dictionary); build it again with `llrnn "
        "prior` --lexical-translation data"
    )


@pytest.fixture
def translated(tmp_path: Path) -> Path:
    translating().save(tmp_path / "prior")
    return tmp_path / "prior"


TABLE = translating().find(LexicalPart).table


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"targets": np.full_like(TABLE.targets, 11)}, "point outside their tables"),
        ({"targets": np.full_like(TABLE.targets, -1)}, "point outside their tables"),
        ({"targets": TABLE.targets[1:]}, "point outside their tables"),
        ({"offsets": TABLE.offsets[::-1].copy()}, "point outside their tables"),
        ({"offsets": TABLE.offsets[:0]}, "point outside their tables"),
        ({"offsets": TABLE.offsets + 1}, "point outside their tables"),
        ({"offsets": np.append(TABLE.offsets, TABLE.offsets[-1])}, "and the source words differ in number"),
        ({"targets": np.full_like(TABLE.targets, 2)}, "hold a word that the background forbids, or no word at all"),
        ({"targets": np.full_like(TABLE.targets, 10)}, "hold a word that the background forbids, or no word at all"),
        ({"targets": np.full_like(TABLE.targets, 4)}, "hold a pair of words twice"),
        ({"probabilities": TABLE.probabilities * 2}, "are no probabilities"),
        ({"probabilities": -TABLE.probabilities}, "are no probabilities"),
        ({"probabilities": TABLE.probabilities * np.float32("nan")}, "are no probabilities"),
        ({"probabilities": np.full_like(TABLE.probabilities, np.inf)}, "are no probabilities"),
        ({"probabilities": TABLE.probabilities.astype(np.float64)}, "expected a row of float32, found float64"),
        ({"probabilities": None}, "expected 'probabilities' in the prior, found none"),
        ({"links": TABLE.links[1:]}, "estimated from numbers of links that are none"),
        ({"links": -TABLE.links}, "estimated from numbers of links that are none"),
        ({"links": TABLE.links * np.float32("nan")}, "estimated from numbers of links that are none"),
    ],
)
def test_untrusted_translations(translated: Path, changes: dict[str, np.ndarray], says: str) -> None:
    replace_arrays(translated, **{f"lexical/{name}": array for name, array in changes.items()})
    with pytest.raises(PriorError, match=f"{says}.*; build it again"):
        Prior.load(translated)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"weight": 1.0}, "the lexical translations have the weight 1.0, which is none"),
        ({"weight": -0.1}, "the lexical translations have the weight -0.1, which is none"),
        ({"weight": float("nan")}, "the lexical translations have the weight nan, which is none"),
        ({"weight": 0.0, "learned": True}, "the lexical translations have the weight 0.0, which is none"),
        ({"weight": "0.5"}, "described by something else than weight, learned, aligner"),
        ({"learned": 1}, "described by something else than weight, learned, aligner"),
        ({"aligner": None}, "described by something else than weight, learned, aligner"),
        ({"source_pseudo_links": "5"}, "described by something else than a number of links"),
        ({"part": "lexical.2"}, "its parts are not called as they would be"),
        (None, "expected a list of parts with their names"),
        ([], "expected a list of parts with their names"),
        ({}, "expected a list of parts with their names"),
    ],
)
def test_an_untrusted_description_of_translations(translated: Path, entry: object, says: str) -> None:
    [described] = json.loads((translated / "prior.json").read_text(encoding="utf-8"))["parts"]
    damage_json(translated, parts=[{**described, **entry} if isinstance(entry, dict) and entry else entry])
    with pytest.raises(PriorError, match=f"{says}.*; build it again"):
        Prior.load(translated)


def test_translations_of_special_symbols(translated: Path) -> None:
    offsets = TABLE.offsets.copy()
    offsets[3:5] = offsets[5]  # those of `the` become those of </s>
    replace_arrays(translated, **{"lexical/offsets": offsets})
    with pytest.raises(PriorError, match="the lexical translations hold some of a special symbol; build it again"):
        Prior.load(translated)


def test_source_words_that_are_missing_or_others(translated: Path) -> None:
    (translated / "source.txt").write_text("<s>\nx\n", encoding="utf-8")
    with pytest.raises(PriorError, match=r"source\.txt: expected the words the prior was made for.*; build it again"):
        Prior.load(translated)
    (translated / "source.txt").unlink()
    with pytest.raises(PriorError, match="a file of the prior cannot be read"):
        Prior.load(translated)


def test_a_kill_at_any_moment_leaves_a_whole_prior_in_its_place(tmp_path: Path) -> None:
    """Between two renames, an earlier version lost it."""
    place = tmp_path / "prior"
    old, new = build(), build(PriorSettings(top_words=3))
    old.save(place)
    step = 1
    while killed_before(step, lambda: new.save(place)):
        try:
            found = Prior.load(place).settings["top_words"]
        except PriorError as error:  # no exchange of names here
            assert f"a process that was to replace it was killed; it is in {tmp_path}/.prior." in str(error)
        else:
            assert found in (3, old.settings["top_words"])
        step += 3
    Prior.load(place)
    assert [found.name for found in tmp_path.iterdir()] == ["prior"]


@pytest.mark.parametrize("place", ["settings", "output_features"])
def test_halves_of_characters_in_the_description(place: str, saved: Path) -> None:
    """JSON can write a lone surrogate, which no terminal and no file can take."""
    path = saved / "prior.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    if place == "settings":
        description["settings"]["\ud800"] = 1
    else:
        description["output_features"][0] = "POS:\udfff"
    path.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(PriorError, match=r"prior\.json: expected JSON, found damage \(.*surrogates not allowed"):
        Prior.load(saved)
