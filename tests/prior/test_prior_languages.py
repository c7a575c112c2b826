"""Priors from packages of a language: collection, pooling, weights and stored findings. The packages are artificial."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.lexicon.languages import language_source
from fairseq_llrnn.lexicon.languages.language_source import (
    LEMMA_FLOOR,
    FeatureSource,
    FrequencySource,
    Gathered,
    Spelling,
)
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.ngrams.kneser_ney import unigram_weights
from fairseq_llrnn.prior import OpenOptions, Prior, Recipe
from fairseq_llrnn.prior.building import BuildResult, build, build_prior
from fairseq_llrnn.prior.parts.guesses import GuessesPart
from fairseq_llrnn.prior.parts.languages import LanguagesPart
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart

WORDS = "ház házat házak kert kertet kertek fut ,".split()
SYMBOLS = (*SPECIALS, *WORDS)
COUNTS = np.array([0, 0, 4, 1, 5, 3, 0, 2, 0, 1, 0, 6])
FREQUENCY = {"ház": 0.01, "házat": 0.002, "házak": 0.004, "kert": 0.001}
LEAST = 1e-4
WORDLIST = WordList(SYMBOLS, COUNTS)
ASKED = Recipe(counts=COUNTS, top_words=0, words=LexiconOptions(language="Hungarian", lemma_floor=3))


def packages(built: BuildResult) -> Gathered:
    """Return the names of the packages that were used."""
    assert built.table.packages is not None
    return built.table.packages


def of_words(options: Recipe, **known: object) -> Recipe:
    """Return a recipe with other options of the lexicon."""
    return replace(options, words=replace(options.words, **known))  # type: ignore[arg-type]


class _MadeUp:
    codes = {"hu": "hu", "uk": "uk"}

    def packages(self, code: str) -> Sequence[str]:
        return ("numpy",)

    def licence(self, code: str) -> str:
        return "MIT; data: made up"


class Lemmas(_MadeUp, FeatureSource):
    name, gives, is_guessable = "stems", "lemmas", False

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        assert spelling.lowercase
        for word in words:
            if word.isalpha():
                yield word, [f"Lemma:{word[: 4 if word.startswith('k') else 3]}"]


class Analyses(_MadeUp, FeatureSource):
    name, gives = "tags", "analyses"
    asked: Sequence[str] = ()

    def read(self, words: Sequence[str], code: str, spelling: Spelling) -> Iterator[tuple[str, Iterable[str]]]:
        Analyses.asked = words
        for word in {"ház", "házat", "kertet", "kert"} & set(words):
            yield word, ["Case:Acc" if word.endswith("et") or word.endswith("at") else "Case:Nom"]


class Frequencies(_MadeUp, FrequencySource):
    name, gives, codes = "counts", "frequencies", {"hu": "hu"}

    def frequencies(self, words: Sequence[str], code: str) -> np.ndarray:
        return np.array([FREQUENCY.get(word, 0.0) for word in words])

    def all_frequencies(self, code: str) -> Mapping[str, float]:
        return FREQUENCY

    def least(self, code: str) -> float:
        return LEAST


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = (Frequencies(), Lemmas(), Analyses())
    monkeypatch.setattr(language_source, "SOURCES", {source.name: source for source in sources})


def row(prior: Prior, word: str) -> dict[str, float]:
    return prior.output.features.row(int(prior.output.class_of[prior.index(word)]))


def test_lemmas_are_features_where_enough_words_share_them() -> None:
    built = build(WORDLIST, of_words(ASKED, guess="off"))
    assert row(built.prior, "házak") == {"NOTTOP": 1, "Lemma:ház": 1}
    assert row(built.prior, "kertet") == {"NOTTOP": 1, "Lemma:kert": 1, "Case:Acc": 1}
    assert row(built.prior, "fut") == {"NOTTOP": 1}  # alone with its lemma
    assert {row.form for row in built.table.rows if row.values} == set(WORDS) - {"fut", ","}
    assert built.table.packages is not None and built.table.packages.pooled == len(WORDS) - 2
    none = build(WORDLIST, of_words(ASKED, guess="off", lemma_floor=4))
    assert none.table.packages is not None and not none.table.packages.pooled
    assert none.prior.output.num_classes < built.prior.output.num_classes
    assert "Lemma:fut" in row(build(WORDLIST, of_words(ASKED, guess="off", lemma_floor=1)).prior, "fut")


def test_how_much_is_known_is_counted_of_words_with_letters() -> None:
    found = {finding.source: finding for finding in packages(build(WORDLIST, ASKED)).findings}
    tokens = COUNTS[4:11].sum()
    assert {name: (f.known, f.words) for name, f in found.items()} == {
        "counts": (4, 7),
        "stems": (7, 7),
        "tags": (4, 7),
    }
    assert found["counts"].share == pytest.approx((5 + 3 + 2) / tokens)
    assert found["tags"].share == pytest.approx((5 + 3 + 2) / tokens)
    assert found["stems"].share == 1.0


def test_analyses_are_guessed_and_lemmas_are_not() -> None:
    built = build(WORDLIST, of_words(ASKED, guess="on"))
    part = built.prior.find(GuessesPart)
    assert part is not None and part.groups == ("Case",)
    assert "Case:Nom" in row(built.prior, "kertek") and "Lemma:kert" in row(built.prior, "kertek")


def test_an_open_vocabulary_asks_for_words_outside_the_dictionary(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("ház kert kertünk kert kertünk ház fut házunk házunk ,\n" * 3, encoding="utf-8")
    options = replace(ASKED, counts=None, text=text, workers=1, open_vocabulary=OpenOptions(floor=9, types=2))
    build(WORDLIST, options)
    assert {"kertünk", "házunk"} <= set(Analyses.asked)


def test_lemmas_make_no_open_classes(tmp_path: Path) -> None:
    """Two nouns of different lemmas are unknown words of one class."""
    text = tmp_path / "text"
    text.write_text("ház kert kertet kertek házak házat fut ,\n" * 3, encoding="utf-8")
    options = replace(ASKED, counts=None, text=text, workers=1, open_vocabulary=OpenOptions(floor=9, types=2))
    of_floors = (of_words(options, guess="off", lemma_floor=floor) for floor in (1, 9))
    with_lemmas, without = (build(WORDLIST, options).prior for options in of_floors)
    assert any(name.startswith("Lemma:") for name in with_lemmas.output.features.names)
    classes = [prior.find(OpenVocabularyPart) for prior in (with_lemmas, without)]
    assert classes[0] is not None and classes[1] is not None
    assert classes[0].vocabulary.names == classes[1].vocabulary.names


def test_the_language_s_unigram() -> None:
    """Words share the rest of the counted unigram. Other tokens keep their weight."""
    options = Recipe(counts=COUNTS, top_words=0, background="language:hun")
    b = np.exp(build_prior(SYMBOLS, options).log_weights)
    unigram = unigram_weights(COUNTS, WORDLIST.predictable)
    index = {word: i for i, word in enumerate(SYMBOLS)}
    for word in ("</s>", "<unk>", ","):
        assert b[index[word]] == pytest.approx(unigram[index[word]])
    assert b[index["<s>"]] == b[index["<pad>"]] == 0
    rest = 1 - sum(unigram[index[word]] for word in ("</s>", "<unk>", ","))
    total = sum(FREQUENCY.values()) + 3 * LEAST
    for word in WORDS[:-1]:
        assert b[index[word]] == pytest.approx(rest * FREQUENCY.get(word, LEAST) / total)
    assert b.sum() == pytest.approx(1)


def test_the_language_s_unigram_in_a_mixture() -> None:
    words, mixed = LexiconOptions(language="hu"), "0.25 unigram plus 0.75 language"
    options = Recipe(counts=COUNTS, top_words=0, words=words, background=mixed)
    mixed = build_prior(SYMBOLS, options)
    alone = [build_prior(SYMBOLS, replace(options, background=text)).log_weights for text in ("unigram", "language")]
    background = mixed.background().bind()
    weights = background.view(background.start(1)).log_weights[0].exp().numpy()
    assert weights == pytest.approx(0.25 * np.exp(alone[0]) + 0.75 * np.exp(alone[1]), rel=1e-5)
    assert str(mixed.expression) == "0.25 unigram plus 0.75 language:hu"


def test_the_sources_that_were_used_are_kept(tmp_path: Path) -> None:
    prior = build_prior(SYMBOLS, replace(ASKED, background="language"))
    prior.save(tmp_path / "prior")
    part = Prior.load(tmp_path / "prior").find(LanguagesPart)
    assert part is not None and part == prior.find(LanguagesPart)
    version = np.__version__
    assert part.lines(prior) == [
        *(f"stems {version}: lemmas of 7 words (hu)", "licence MIT", "data: made up"),
        *(f"tags {version}: analyses of 4 words (hu)", "licence MIT", "data: made up"),
        *(f"counts {version}: frequencies of 4 words (hu)", "licence MIT", "data: made up"),
    ]
    assert any(source == "--language hu, lemmas that 3 words share" for source in prior.settings["sources"])
    unweighed = build_prior(SYMBOLS, ASKED).find(LanguagesPart)
    assert unweighed is not None and [f.source for f in unweighed.findings] == ["stems", "tags"]
    assert build_prior(SYMBOLS, of_words(ASKED, language=None, lemma_floor=LEMMA_FLOOR)).find(LanguagesPart) is None


@pytest.mark.parametrize("damage", ['"known": "7"', '"known": true', '"known": 7, "more": 1', '"share": 1'])
def test_a_damaged_part_is_refused(tmp_path: Path, damage: str) -> None:
    build_prior(SYMBOLS, ASKED).save(tmp_path)
    path = tmp_path / "prior.json"
    field = damage.partition(":")[0]
    text = path.read_text(encoding="utf-8")
    value = '"known": 7' if field == '"known"' else '"share": 1.0'
    assert value in text
    path.write_text(text.replace(value, damage, 1), encoding="utf-8")
    with pytest.raises(PriorError):
        Prior.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language": "klingon"}, "--language klingon: expected a language with a package, found another; for "
         "ot"),
        ({"lemma_floor": 0}, "words.lemma_floor: expected a number of at least 1, found 0"),
        ({"language": None, "lemma_floor": LEMMA_FLOOR, "background": "language"},
         "--background language needs --language CODE; add it"),
        ({"background": "language:xx plus unigram"}, "--background language:xx: expected a language with a package"),
        ({"language": "uk", "background": "language"}, "--background language:uk: no package has word frequencies of "
         "Ukrainian; leave it out"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        of_prior = {"background": options.pop("background")} if "background" in options else {}
        build(WORDLIST, of_words(replace(ASKED, **of_prior), **options))  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)


def test_packages_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"tags"}
    monkeypatch.setattr(
        language_source.LanguageSource,
        "missing",
        lambda self, code: [] if self.name in installed else [f"{self.name}-package"],
    )
    gathered = packages(build(WORDLIST, ASKED))
    assert [finding.source for finding in gathered.findings] == ["tags"]
    assert gathered.missing == ("counts-package", "stems-package")
    pip = "install it with pip install {} (all of them: in a checkout of fairseq_llrnn: pip install '.[languages]')"
    with pytest.raises(OptionError) as caught:
        build(WORDLIST, replace(ASKED, background="language"))
    assert str(caught.value) == (
        "--background language:hu: the package counts-package is not installed; "
        + pip.format("counts-package")
    )
    installed.clear()
    with pytest.raises(OptionError) as caught:
        build(WORDLIST, ASKED)
    assert str(caught.value) == (
        "--language hu: expected an installed package for Hungarian, found none of counts-package, stems-package, "
        "tags-package; " + pip.format("counts-package stems-package tags-package")
    )
