"""Priors on disk are untrusted: everything else is rejected."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_priors import make_priors, use
from prior_of_words import SYMBOLS, build, damage_json, replace_arrays

from fairseq_llrnn.cli.show.command import PriorView
from fairseq_llrnn.cli.show.shown_text import summary_text
from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.features.dictionary import hash_symbols
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    build().save(tmp_path / "prior")
    return tmp_path / "prior"


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a prior of every kind."""
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
    with pytest.raises(PriorError, match="expected the entries arrays_sha256, which are missing"):
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
    """Change the words, with a matching hash."""
    (saved / name).write_text("\n".join(symbols) + "\n", encoding="utf-8")
    damage_json(saved, **{entry: hash_symbols(symbols)})


WRONG_WORDS: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "another special": (lambda words: [*words[:2], "</S>", *words[3:]], "expected it to begin with .*, found '<s>' "),
    "specials exchanged": (lambda words: [words[1], words[0], *words[2:]], "expected it to begin with <s> <pad> </s> "),
    "a special missing": (lambda words: [*words[:3], *words[4:]], "expected it to begin with <s> <pad> .*, found"),
    "a special twice": (lambda words: [*words[:-1], "</s>"], "expected every symbol once, found '</s>' again"),
    "a word twice": (lambda words: [*words[:-1], words[4]], "expected every symbol once, found 'le' again"),
    "an empty word": (lambda words: [*words[:-1], ""], "expected words after <unk>, found an empty one"),
    "no words": (lambda words: words[:4], "expected words after <unk>, found none"),
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


@pytest.mark.parametrize("change", ["a word less", "a word more"])
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
    with pytest.raises(DataError, match=f"^the dictionary: {said}.*; put <s>, <pad>, </s>, <unk> first"):
        build_prior(damaged(list(SYMBOLS)))


SIZE = len(SYMBOLS)
NO_DISTRIBUTION = "log_weights: expected finite weights, some of them above 0, found others"
OUTSIDE = "the output signatures point outside their tables"


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("output_class_of", lambda x: np.zeros(SIZE), "output_class_of: expected a row of"),
        ("output_offsets", lambda x: np.zeros((2, 2), dtype=np.int64), "output_offsets: expected a row of"),
        ("log_weights", lambda x: np.zeros(SIZE, dtype=np.complex128), "log_weights: expected a row of"),
        ("log_weights", lambda x: np.array([print], dtype=object),  # pickled: not executed
         "log_weights.*: expected the header of an array of numbers.*; build it again"),
        ("log_weights", lambda x: np.zeros(3), "its arrays and its dictionary differ in size"),
        ("log_weights", lambda x: np.full(SIZE, np.nan), NO_DISTRIBUTION),
        ("log_weights", lambda x: np.full(SIZE, np.inf), NO_DISTRIBUTION),
        ("log_weights", lambda x: np.full(SIZE, -np.inf), NO_DISTRIBUTION),
        ("log_weights", lambda x: np.append(x[:-1], 99.0),
         "log_weights: expected a sum with a logarithm up to 50, found 99"),
        ("output_values", lambda x: np.append(x[:-1], np.float32(1e7)), "the output features contain values above "
         "1,000,000"),
        ("output_values", lambda x: x * np.float32("nan"), "the output features contain values that are not finite"),
        *((name, lambda x, value=value: np.append(x.dtype.type(value), x[1:]), OUTSIDE)
          for name in ("output_class_of", "output_indices") for value in (10**6, -1)),
    ],
)  # fmt: skip
def test_arrays_that_make_no_sense(
    saved: Path, name: str, change: Callable[[np.ndarray], np.ndarray], says: str
) -> None:
    with np.load(saved / "arrays.npz") as arrays:
        changed = change(arrays[name])
    replace_arrays(saved, **{name: changed})
    with pytest.raises(PriorError, match=says):
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


NESTED = json.loads("[" * 500 + "]" * 500)


@pytest.mark.parametrize("name", ["sources", "unsupported"])
@pytest.mark.parametrize("value", [5, None, True, 1.5, "x", {}, [1], [["x"]], 10**400])
def test_settings_that_are_no_lists(saved: Path, name: str, value: object) -> None:
    damage_json(saved, settings={name: value})
    with pytest.raises(PriorError, match=rf"prior\.json: settings: {name}: expected a list of texts, found.*; buil"):
        Prior.load(saved)


@pytest.mark.parametrize("name", ["background", "pieces", "top_words", "features", "labels", "another"])
@pytest.mark.parametrize("value", [{"a": 1}, [[]], [1], NESTED])
def test_settings_of_another_kind(saved: Path, name: str, value: object) -> None:
    damage_json(saved, settings={name: value})
    with pytest.raises(PriorError, match=rf"prior\.json: settings: {name}: expected a text, a number, a list of text"):
        Prior.load(saved)


@pytest.mark.parametrize("value", [5, -1.5, True, None, "x", ["x"], [], 10**400, float("inf")])
def test_other_settings_say_nothing_to_a_model(saved: Path, value: object) -> None:
    for name in ("background", "pieces", "top_words", "labels", "another"):
        damage_json(saved, settings={name: value})
        prior = Prior.load(saved)
        assert prior.fingerprint and prior.signature and summary_text({"prior": "", **PriorView(prior).summary()})


HUGE = 10**400  # more than a float holds
NUMBERS = (HUGE, -HUGE, 10**4_000, float("inf"), float("nan"), NESTED)


KINDS = ["combined", "product", "automaton", "ngram and lexical", "evidence", "open", "languages"]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_no_float_holds(priors: dict[str, Path], kind: str, tmp_path: Path) -> None:
    """Each number of the description is read or rejected, and then used."""
    place = Path(shutil.copytree(priors[kind], tmp_path / "prior"))
    whole = json.loads((place / "prior.json").read_text(encoding="utf-8"))
    found = numbers_in({name: whole[name] for name in ("parts", "background", "version") if name in whole})
    assert len(found) > 1
    for path in found:
        for value in NUMBERS:
            changed = json.loads(json.dumps(whole))
            node = changed
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
            (place / "prior.json").write_text(json.dumps(changed), encoding="utf-8")
            use(place)


def numbers_in(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Yield the places of numbers in JSON."""
    if isinstance(node, (dict, list)):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        return [place for key, inside in items for place in numbers_in(inside, (*path, key))]
    return [path] if isinstance(node, (int, float)) and not isinstance(node, bool) else []


@pytest.mark.parametrize(
    "background",
    [
        {"tempered": "ATOM", "temperature": HUGE},
        {"tempered": "ATOM", "temperature": -HUGE},
        {"mixture": ["ATOM", "ATOM"], "weights": [HUGE, 1], "weighting": "fixed"},
        {"mixture": ["ATOM", "ATOM"], "weights": [0.5, 10**309], "weighting": "learned"},
        {"product": [HUGE, HUGE]},
        {"part": HUGE, "text": "x"},
        {"part": "ngram", "text": "ngram:2", "options": {"a": HUGE}},
    ],
)
def test_backgrounds_with_numbers_that_no_float_holds(
    priors: dict[str, Path], background: dict[str, Any], tmp_path: Path
) -> None:
    place = Path(shutil.copytree(priors["combined"], tmp_path / "prior"))
    whole = json.loads((place / "prior.json").read_text(encoding="utf-8"))
    atom = whole["background"]["mixture"][0]
    text = json.dumps({**whole, "background": background}).replace('"ATOM"', json.dumps(atom))
    (place / "prior.json").write_text(text, encoding="utf-8")
    with pytest.raises(PriorError, match="its background (is|has) .*; build it again"):
        Prior.load(place)


@pytest.mark.parametrize("place", ["settings", "output_features"])
def test_halves_of_characters_in_the_description(place: str, saved: Path) -> None:
    """JSON can contain a lone surrogate, which no terminal or file can represent."""
    path = saved / "prior.json"
    description = json.loads(path.read_text(encoding="utf-8"))
    if place == "settings":
        description["settings"]["\ud800"] = 1
    else:
        description["output_features"][0] = "POS:\udfff"
    path.write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(PriorError, match=r"prior\.json: expected JSON, found damage \(.*surrogates not allowed"):
        Prior.load(saved)
