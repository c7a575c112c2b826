"""Priors on disk are untrusted: everything that is not one is refused."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hostile_priors import make_priors
from prior_of_words import SYMBOLS, build, damage_json, replace_arrays

from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.features.dictionary import hash_symbols
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    build().save(tmp_path / "prior")
    return tmp_path / "prior"


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of every kind."""
    return make_priors(tmp_path_factory.mktemp("priors"))


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


def damage_words(saved: Path, name: str, entry: str, symbols: list[str]) -> None:
    """Other words, with a hash that fits."""
    (saved / name).write_text("\n".join(symbols) + "\n", encoding="utf-8")
    damage_json(saved, **{entry: hash_symbols(symbols)})


WRONG_WORDS: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "another special": (lambda words: [*words[:2], "</S>", *words[3:]], "expected it to begin with .*, found '<s>' "),
    "specials exchanged": (lambda words: [words[1], words[0], *words[2:]], "expected it to begin with <s> <pad> </s> "),
    "a special missing": (lambda words: [*words[:3], *words[4:]], "expected it to begin with <s> <pad> .*, found"),
    "a special twice": (lambda words: [*words[:-1], "</s>"], "expected every symbol once, found '</s>' again"),
    "a word twice": (lambda words: [*words[:-1], words[4]], "expected every symbol once, found 'le' again"),
    "an empty word": (lambda words: [*words[:-1], ""], "expected words behind <unk>, found an empty one"),
    "no words": (lambda words: words[:4], "expected words behind <unk>, found none"),
    "nothing": (lambda words: [""], "expected it to begin with"),
    "a word less": (lambda words: words[:-1], "its arrays and its dictionary differ in size|of \\d+ words"),
    "a word more": (lambda words: [*words, "autre"], "its arrays and its dictionary differ in size|of \\d+ words"),
}


@pytest.mark.parametrize("change", WRONG_WORDS)
def test_words_that_are_no_dictionary_and_have_a_hash_that_fits(saved: Path, change: str) -> None:
    damaged, said = WRONG_WORDS[change]
    damage_words(saved, "dictionary.txt", "dictionary_sha256", damaged(list(SYMBOLS)))
    with pytest.raises(PriorError, match=f"{said}.*; build it again"):
        Prior.load(saved)


@pytest.mark.parametrize("change", [name for name in WRONG_WORDS if not name.startswith("a word ")] + ["a word twice"])
@pytest.mark.parametrize("kind", ["lexical", "evidence"])
def test_source_words_that_are_no_dictionary(priors: dict[str, Path], kind: str, change: str, tmp_path: Path) -> None:
    place = Path(shutil.copytree(priors[kind], tmp_path / "prior"))
    damaged, said = WRONG_WORDS[change]
    words = (place / "source.txt").read_text(encoding="utf-8").splitlines()
    damage_words(place, "source.txt", "source_dictionary_sha256", damaged(words))
    with pytest.raises(PriorError, match=f"{said}.*; build it again"):
        Prior.load(place)


@pytest.mark.parametrize("change", WRONG_WORDS)
def test_every_kind_of_prior_says_so_as_it_is_read(priors: dict[str, Path], change: str, tmp_path: Path) -> None:
    damaged, _ = WRONG_WORDS[change]
    for kind, prior in priors.items():
        place = Path(shutil.copytree(prior, tmp_path / kind))
        words = (place / "dictionary.txt").read_text(encoding="utf-8").splitlines()
        damage_words(place, "dictionary.txt", "dictionary_sha256", damaged(words))
        with pytest.raises(PriorError, match="; build it again"):
            Prior.load(place)


@pytest.mark.parametrize("change", [name for name in WRONG_WORDS if name not in ("a word less", "a word more")])
def test_a_prior_is_not_built_for_what_is_no_dictionary(change: str) -> None:
    damaged, said = WRONG_WORDS[change]
    with pytest.raises(DataError, match=f"^the dictionary: {said}.*; run fairseq-preprocess again"):
        Prior.build(damaged(list(SYMBOLS)))


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
