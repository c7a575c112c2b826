"""Priors with guessed features: for which words, when, and with which record."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairseq_llrnn.errors import OptionError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages.language_source import SOURCES
from fairseq_llrnn.lexicon.lexicon_table import Completed, Row, Table, as_features
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.unknown_word_features import KINDS, LEFT_OUT, UNITED, TextWords, complete
from fairseq_llrnn.prior import OpenOptions, Prior, Recipe
from fairseq_llrnn.prior.building import build, build_prior
from fairseq_llrnn.prior.parts.guesses import GuessesPart
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart

NOUNS = [f"{stem}ek" for stem in ("hal", "szem", "kert", "h", "r", "t", "b", "l")]
VERBS = [f"{stem}ott" for stem in ("lát", "vár", "ad", "tud", "kap", "ír", "m", "n")]
UNSEEN = ["gyerek", "futott", "egyéb"]
SYMBOLS = (*SPECIALS, *NOUNS, *VERBS, *UNSEEN)
COUNTS = np.array([0, 0, 9, 1, *[1, 1, 1, 2] * 4, 0, 0, 0])
LEXICON = {**dict.fromkeys(NOUNS, ["POS:NOUN"]), **dict.fromkeys(VERBS, ["POS:VERB"])}
OPTIONS = Recipe(counts=COUNTS, words=LexiconOptions(lexicon=LEXICON), top_words=0)


def of_words(options: Recipe = OPTIONS, **known: object) -> Recipe:
    """Return a recipe with other options of the lexicon."""
    return replace(options, words=replace(options.words, **known))  # type: ignore[arg-type]


def morphology(prior: Prior, word: str) -> dict[str, float]:
    row = prior.output.features.row(int(prior.output.class_of[prior.index(word)]))
    return {name: value for name, value in row.items() if name.startswith("POS:")}


def guessed(prior: Prior) -> set[str]:
    part = prior.find(GuessesPart)
    return set() if part is None else {prior.symbols[i] for i in part.words}


def test_unseen_words_and_those_seen_once_are_guessed() -> None:
    prior = build_prior(SYMBOLS, OPTIONS)
    once = {word for word, count in zip(SYMBOLS, COUNTS, strict=True) if count == 1 and word not in SPECIALS}
    assert guessed(prior) == once | set(UNSEEN)
    assert morphology(prior, "gyerek") == {"POS:NOUN": 1.0} and morphology(prior, "futott") == {"POS:VERB": 1.0}
    assert set(morphology(prior, "egyéb")) == {"POS:NOUN", "POS:VERB"}
    assert prior.settings["lexicon_entries"] == len(LEXICON)
    part = prior.find(GuessesPart)
    assert part is not None and part.accuracy["POS"] == 1.0 and part.groups == ("POS",)


def test_a_word_that_training_shows_once_is_guessed_without_its_own_analysis() -> None:
    strange = {**LEXICON, NOUNS[0]: ["POS:ADV"]}
    options = of_words(lexicon=strange)
    assert morphology(build_prior(SYMBOLS, options), NOUNS[0]) == {"POS:NOUN": 1.0}
    assert morphology(build_prior(SYMBOLS, of_words(options, guess="off")), NOUNS[0]) == {"POS:ADV": 1.0}


def test_a_guess_of_nothing_takes_the_place_of_an_analysis_too() -> None:
    """Every word has a unique feature, so that an ending with many words determines nothing."""
    table = table_of({word: [f"Lemma:{word}"] for word in (*NOUNS, *VERBS)})
    complete(table, TEXT)
    assert table.completed is not None and "szemek" in table.completed.guessed
    assert not table.lexicon().features("szemek")


def test_values_do_not_change_the_lexicon_that_they_join(tmp_path: Path) -> None:
    values = tmp_path / "values.tsv"
    values.write_text("halek\tSize:Log\t0.5\n", encoding="utf-8")
    lexicon = Lexicon()
    lexicon.add("halek", ["POS:NOUN"])
    united = gather(LexiconOptions(values=values, lexicon=lexicon)).lexicon()
    assert dict(united.features("halek")) == {"POS:NOUN": 1.0, "Size:Log": 0.5}
    assert dict(lexicon.features("halek")) == {"POS:NOUN": 1.0}


def test_words_of_the_lexicon_keep_their_analyses_if_training_lacks_them() -> None:
    more = {**LEXICON, "gyerek": ["POS:PROPN"]}
    prior = build_prior(SYMBOLS, of_words(lexicon=more))
    assert morphology(prior, "gyerek") == {"POS:PROPN": 1.0}
    # a third of the unseen words is known, and so is a third of those seen once
    assert len(guessed(prior)) == 2 + 12 - 4
    reordered = [*SPECIALS, *reversed(SYMBOLS[len(SPECIALS) :])]
    counts = np.array([COUNTS[SYMBOLS.index(word)] for word in reordered])
    assert guessed(build_prior(reordered, of_words(replace(OPTIONS, counts=counts), lexicon=more))) == guessed(prior)


def test_when_guesses_are_made() -> None:
    everything = {**LEXICON, **dict.fromkeys(UNSEEN, ["POS:X"])}
    assert guessed(build_prior(SYMBOLS, of_words(lexicon=everything))) == set()
    assert guessed(build_prior(SYMBOLS, of_words(guess="off"))) == set()
    assert guessed(build_prior(SYMBOLS, of_words(lexicon={}, guess="on"))) == set()
    all_seen = COUNTS + 2
    assert guessed(build_prior(SYMBOLS, replace(OPTIONS, counts=all_seen))) == set()
    assert guessed(build_prior(SYMBOLS, of_words(replace(OPTIONS, counts=all_seen), guess="on"))) == set(UNSEEN)
    worse = dict.fromkeys(UNSEEN, ["POS:X"])
    assert guessed(build_prior(SYMBOLS, of_words(lexicon=worse))) == set()
    with pytest.raises(OptionError, match="words.guess: expected auto, on or off, found 'maybe'"):
        build_prior(SYMBOLS, of_words(guess="maybe"))


def table_of(known: Mapping[str, Iterable[str]], source: str = "python") -> Table:
    return Table((Row(word, features=as_features(names), source=source), 0) for word, names in known.items())


TEXT = TextWords({word: int(count) for word, count in zip(SYMBOLS, COUNTS, strict=True) if word not in SPECIALS})


ALIKE = [f"{letter}ato" for letter in "bcdfghjklmnprstvwxyz"]  # an ending of nouns and verbs
NEW = {"zzzato": "noun", "wwwato": "verb"}
RIGHT = {word: "noun" if i % 2 else "verb" for i, word in enumerate(ALIKE) if i}  # one word less than the treebank


def completed(kinds: Mapping[str, str], mode: str = "auto") -> tuple[Completed, Lexicon]:
    """Complete a treebank of ALIKE, every other one a noun, with a package of all readings that determine the words'
    kinds.
    """
    table = table_of({word: ["POS:NOUN"] if i % 2 else ["POS:VERB"] for i, word in enumerate(ALIKE)})
    package = {word: ["POS:NOUN", "POS:VERB", f"Kind:{kind}"] for word, kind in kinds.items()}
    for row in table_of(package, f"{next(iter(SOURCES))}:xx").rows:
        table.add(row)
    complete(table, TextWords({**dict.fromkeys(ALIKE, 2), **dict.fromkeys(NEW, 0)}), mode)
    assert table.completed is not None
    return table.completed, table.lexicon()


def test_a_package_beside_a_treebank_says_what_kinds_words_are_of() -> None:
    done, lexicon = completed({**RIGHT, **NEW})
    assert done.package == KINDS and done.accuracy["POS"] >= 0.9 and done.without is not None and done.without < 0.1
    assert dict(lexicon.features("zzzato")) == {"POS:NOUN": 1.0}
    assert dict(lexicon.features("wwwato")) == {"POS:VERB": 1.0}
    assert dict(lexicon.features(ALIKE[1])) == {"POS:NOUN": 1.0}  # without the package's readings


def test_a_package_that_makes_guesses_no_better_is_left_out() -> None:
    done, lexicon = completed(dict.fromkeys(ALIKE[1:], "word"))
    assert done.package == LEFT_OUT and done.without is not None and done.without <= done.accuracy["whole analysis"]
    assert not any(name.startswith("Kind:") for word in lexicon for name in lexicon.features(word))


def test_a_package_is_united_where_it_knows_more_or_nothing_is_guessed() -> None:
    for done, lexicon in (completed({**RIGHT, **NEW, ALIKE[0]: "verb"}), completed({ALIKE[1]: "noun"}, "off")):
        assert done.package == UNITED and lexicon.features(ALIKE[1])["Kind:noun"] == 1.0
    assert completed({})[0].package is None


def test_analyses_stand_beside_guesses_and_remarks_stay() -> None:
    table = table_of(LEXICON)
    table.notes["remark"] = 2
    before = dict(table.rows)
    complete(table, replace(TEXT, others=["valahol", "halek"]))
    done = table.completed
    assert done is not None and done.entries == 16 and before.items() <= table.rows.items()
    assert table.lexicon().features("valahol") and table.notes == {"remark": 2}
    assert (done.coverage.text, done.coverage.others) == ((16, 16), (0, 3))
    assert (done.crossed, done.added) == (12, 4)
    assert {row.guessed for row in table.rows.keys() - before.keys()} == {True}
    same = table_of(LEXICON)
    complete(same, TEXT, "off")
    assert same.completed is not None and same.rows == before and same.completed.coverage.differs
    assert not same.completed.guessed


def test_guesses_of_a_table_are_taken_as_they_are() -> None:
    """Listed words are not guessed again. `on` guesses the rest, `off` leaves all guesses out."""
    table, lacking = table_of(LEXICON), Row("gyerek", source="guess", guessed=True, features=(("POS:X", 0.5),))
    complete(table, TEXT)
    first, rows = table.completed, dict(table.rows)
    complete(table, TEXT)
    assert first is not None and table.rows == rows
    assert table.completed == replace(first, groups=("POS",), accuracy={})
    table = table_of(LEXICON)
    table.add(lacking)
    complete(table, TEXT, "on")
    assert dict(table.lexicon().features("gyerek")) == {"POS:X": 0.5} and table.lexicon().features("futott")
    assert table.completed is not None and table.completed.guessed == set(UNSEEN)
    complete(table, TEXT, "off")
    assert lacking not in table.rows and table.rows == table_of(LEXICON).rows


def test_numbers_of_users_are_no_guesses(tmp_path: Path) -> None:
    (tmp_path / "values.tsv").write_text("gyerek\tAge:Years\t7.0\n", encoding="utf-8")
    prior = build_prior(SYMBOLS, of_words(values=tmp_path / "values.tsv"))
    assert morphology(prior, "gyerek") == {"POS:NOUN": 1.0}
    part = prior.find(GuessesPart)
    row = prior.output.features.row(int(prior.output.class_of[prior.index("gyerek")]))
    assert part is not None and part.guessed(prior.index("gyerek"), row) == ["POS:NOUN"] and row["Age:Years"] == 7.0


def test_pieces_have_the_guesses_of_their_words_if_asked_for(tmp_path: Path) -> None:
    """The text has all pieces of the dictionary, so that `auto` guesses nothing."""
    text = tmp_path / "train.pieces"
    text.write_text("".join(f"▁{word[:2]} {word[2:]}\n" for word in LEXICON if len(word) > 2) + "▁gy erek\n", "utf-8")
    pieces = list(dict.fromkeys(text.read_text(encoding="utf-8").split()))
    options = Recipe(text=text, words=LexiconOptions(lexicon=LEXICON), top_words=0, pieces="sentencepiece")
    for mode, expected in (("auto", {}), ("on", {"POS:NOUN": 1.0})):
        prior = build_prior([*SPECIALS, *pieces], of_words(options, guess=mode))
        assert morphology(prior, "erek") == expected and prior.find(GuessesPart) is None


def test_open_classes_are_of_what_words_probably_are() -> None:
    """Rare words with guessed quarters form no classes of their own."""
    lexicon = {**LEXICON, **{f"{stem}al": ["POS:NOUN"] if i % 4 else ["POS:VERB"] for i, stem in enumerate("bdfghjkl")}}
    rare = [word for word in lexicon if word.endswith("al")]
    symbols, counts = (*SYMBOLS, *rare), np.array([*COUNTS, *[1] * len(rare)])
    options = of_words(replace(OPTIONS, counts=counts, open_vocabulary=OpenOptions(types=2)), lexicon=lexicon)
    prior = build_prior(symbols, options)
    assert {morphology(prior, word).get("POS:NOUN") for word in rare} - {0.0, 1.0, None}
    part = prior.find(OpenVocabularyPart)
    assert part is not None and {"NOUN", "VERB"} <= set(part.vocabulary.names) <= {"NOUN", "VERB", "number", "other"}


@pytest.mark.parametrize("pieces", [False, True])
def test_nothing_is_guessed_of_a_symbol_of_fairseq_in_a_text(tmp_path: Path, pieces: bool) -> None:
    lines = ("▁hal ek ▁lát ott", "▁gy erek") if pieces else ("halek látott szemek várott", "gyerek")
    for special in ("", *SPECIALS):
        text = tmp_path / "train.txt"
        text.write_text("".join(f"{line} {special}\n{special} {special}\n" for line in lines), "utf-8")
        symbols = [*SPECIALS, *lines[0].split()]
        opened = None if pieces else OpenOptions("neural" if special == "</s>" else "characters")
        options = Recipe(text=text, words=LexiconOptions(lexicon=LEXICON, guess="on"), top_words=0)
        built = build(symbols, replace(options, pieces="sentencepiece" if pieces else None, open_vocabulary=opened))
        forms = {row.form for row in built.table.rows if row.guessed}
        assert forms and forms.isdisjoint(SPECIALS) and not any("<" in form for form in forms if not pieces)


def test_it_is_saved_checked_and_no_part_of_the_model(tmp_path: Path) -> None:
    prior = build_prior(SYMBOLS, OPTIONS)
    prior.save(tmp_path / "prior")
    again = Prior.load(tmp_path / "prior")
    assert guessed(again) == guessed(prior) and again.fingerprint == prior.fingerprint
    assert "guessed words" in again.counts()
    for words in ([3, 2], [-1], [len(SYMBOLS)], [2, 2]):
        part = prior.find(GuessesPart)
        assert part is not None
        prior.without(GuessesPart).with_part(replace(part, words=np.array(words))).save(tmp_path / "broken")
        with pytest.raises(PriorError, match="guesses: expected numbers of words, rising"):
            Prior.load(tmp_path / "broken")
    broken: list[tuple[dict[str, Any], str]] = [
        ({"accuracy": {"POS": 2.0}}, "expected the accuracy of each group"),
        ({"groups": (1,)}, "expected the names of feature groups"),
    ]
    for change, message in broken:
        prior.without(GuessesPart).with_part(replace(part, **change)).save(tmp_path / "broken")
        with pytest.raises(PriorError, match=message):
            Prior.load(tmp_path / "broken")
