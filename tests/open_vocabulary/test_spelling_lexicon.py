"""Lexicons of open vocabularies: each part is a distribution, and the mixture sums to one over all strings."""

import itertools
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_strings import check_drawn

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.open_vocabulary import affix_grammar
from fairseq_llrnn.open_vocabulary.affix_grammar import Grammar, read_grammar
from fairseq_llrnn.open_vocabulary.affixed_strings import AffixedByClass, AffixedStrings
from fairseq_llrnn.open_vocabulary.alphabet import Alphabet
from fairseq_llrnn.open_vocabulary.capitalised import Capitalised, StringDistribution, capitalised
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.classes import ClassWords
from fairseq_llrnn.open_vocabulary.compounds import Compounds
from fairseq_llrnn.open_vocabulary.lexicon_weights import fit_lexicon
from fairseq_llrnn.open_vocabulary.listed_strings import ListedByClass, ListedStrings
from fairseq_llrnn.open_vocabulary.number_strings import GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.spelling import draw, spell
from fairseq_llrnn.open_vocabulary.spelling_classes import SpellingClasses
from fairseq_llrnn.open_vocabulary.spelling_lexicon import SpellingLexicon, by_class, read_spelling_lexicon
from fairseq_llrnn.open_vocabulary.stored_grammar import as_bytes
from fairseq_llrnn.open_vocabulary.stored_grammar import read_grammar as read_stored

LISTED = ListedStrings.of({"ab": 3.0, "a": 1.0, "aba": 2.0, "B": 4.0, "\u01c6a": 1.0}, 0.5)
AFFIXES = """SET UTF-8
WARN w
ONLYINCOMPOUND o
FORBIDDENWORD f
NEEDAFFIX n
CIRCUMFIX c
SFX S Y 3
SFX S 0 a [^a]
SFX S b aa/T b
SFX S 0 0/c .
SFX T Y 2
SFX T 0 b .
SFX T a 0 aa
PFX P Y 2
PFX P 0 b .
PFX P a 0/c a
SFX U N 1
SFX U 0 ba/nT .
"""
ENTRIES = "6\nab/SP\nb/S\na/nSP\nba\nab/TU\naab/PSTU\n"
LONG = 8
DEEP = ["compounds", *["capitalised"] * 5_000]  # a recursion without end


def strings_up_to(longest: int, letters: str = "ab") -> list[str]:
    return ["".join(t) for n in range(1, longest + 1) for t in itertools.product(letters, repeat=n)]


def grammar(folder: Path, affixes: str = AFFIXES, entries: str = ENTRIES) -> Grammar:
    (folder / "x.aff").write_text(affixes, encoding="utf-8")
    (folder / "x.dic").write_text(entries, encoding="utf-8")
    return read_grammar(folder / "x.dic", Spelling(False))


def affixed(folder: Path, seed: int = 0) -> AffixedStrings:
    """Return the forms of the tiny dictionary with random weights."""
    made, random = grammar(folder), np.random.default_rng(seed)
    probs = random.random(len(made.entries))
    return AffixedStrings(made, probs / probs.sum(), random.random(made.num_moves) + 0.1)


def affixed_by_class(forms: AffixedStrings, seed: int = 0) -> AffixedByClass:
    """Return forms with random classes."""
    none = np.ones(2)
    made = AffixedByClass(forms.grammar, forms.entry_probs, forms.move_weights, fits=none, totals=none)
    made = replace(made, fits=np.random.default_rng(seed).dirichlet([0.5, 0.5], made.num_fits))
    return replace(made, totals=made.sums())


CLASSES_OF_SPELLINGS = SpellingClasses(("-a", "-b", "kind:capital"), np.array([[1.0, 0], [0, 2], [0.5, 0], [0.1, 0]]))


def parts(folder: Path) -> dict[str, StringDistribution]:
    forms = affixed_by_class(affixed(folder))
    return {
        "list": LISTED,
        "capitalised": Capitalised(LISTED),
        "compounds": Compounds(LISTED),
        "affixes": affixed(folder),
        "capitalised affixes": Capitalised(affixed(folder)),
        "list by class": ListedByClass.of_list(LISTED, CLASSES_OF_SPELLINGS),
        "affixes by class": forms,
        "capitalised affixes by class": Capitalised(forms),
    }


NAMES = ["list", "capitalised", "affixes", "capitalised affixes", "list by class", "affixes by class"]
NAMES += ["capitalised affixes by class"]


# ---- laws -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_of_all_strings_sum_to_one(name: str, tmp_path: Path) -> None:
    short = [*strings_up_to(LONG), "B", "\u01c6a"]
    strings = [*dict.fromkeys((*short, *map(capitalised, short)))]
    assert by_class(parts(tmp_path)[name], strings).sum(0) == pytest.approx(1.0, abs=1e-12)


def test_compounds_have_the_probability_of_all_divisions() -> None:
    """The definition: a sum over sequences of parts."""
    found, probs = defaultdict[str, float](float), dict(zip(LISTED.strings, LISTED.probs.tolist(), strict=True))
    for n in (2, 3, 4):
        for sequence in itertools.product(probs, repeat=n):
            found["".join(sequence)] += 0.8 * 0.2 ** (n - 2) * float(np.prod([probs[part] for part in sequence]))
    short = [string for string in found if len(string) <= 4]
    np.testing.assert_allclose(Compounds(LISTED).string_probs(short), [found[s] for s in short], rtol=1e-12)
    assert sum(found.values()) == pytest.approx(1.0 - 0.2**3)
    assert Compounds(LISTED).string_probs(["a", "x", "", "a" * 500]).tolist() == [0.0] * 4


@pytest.mark.parametrize("name", [*NAMES, "compounds"])
@pytest.mark.parametrize("of_class", [0, 1])
def test_samples_have_the_probability_of_the_distribution(name: str, of_class: int, tmp_path: Path) -> None:
    part = parts(tmp_path)[name]
    drawn = part.draw(4_000, np.random.default_rng(1), of_class)
    strings = sorted({*drawn, *strings_up_to(3)})
    check_drawn(drawn, strings, np.broadcast_to(by_class(part, strings), (len(strings), 2))[:, of_class])
    assert part.draw(0, np.random.default_rng(1), of_class) == []


def test_words_of_a_class_are_those_of_the_definition(tmp_path: Path) -> None:
    """P(w) P(o | w) / Σ, with loops over features, and over derivations with the class of their rule or flags."""
    names, weights = CLASSES_OF_SPELLINGS.features, CLASSES_OF_SPELLINGS.weights
    for word in ("ab", "aba", "B"):
        scores = weights[-1].copy()
        for name, row in zip(names, weights, strict=False):
            if word.lower().endswith(name[1:]) or (name == "kind:capital" and word[0].isupper()):
                scores += row
        expected = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(CLASSES_OF_SPELLINGS.probs([word])[0], expected)
    fits = CLASSES_OF_SPELLINGS.probs(LISTED.strings)
    joint = LISTED.probs[:, None] * fits
    found = ListedByClass.of_list(LISTED, CLASSES_OF_SPELLINGS).string_probs([*LISTED.strings, "x"])
    np.testing.assert_allclose(found, [*(joint / joint.sum(0)), [0.0, 0.0]], rtol=1e-12)

    forms = affixed_by_class(affixed(tmp_path))
    sets_of_entries = [(flags, word[-3:]) for word, flags in forms.grammar.entries]
    sets = list(dict.fromkeys(sets_of_entries))
    slow = defaultdict[str, np.ndarray](lambda: np.zeros(2))
    for string in strings_up_to(LONG):
        for entry, steps in forms.grammar.of_text(string):
            prob = forms.entry_probs[entry]
            for chosen, possible in steps:
                prob *= forms.move_weights[chosen] / forms.move_weights[list(possible)].sum()
            first = steps[0][0]
            bare = forms.grammar.num_moves + sets.index(sets_of_entries[entry])
            slow[string] += prob * forms.fits[first if first else bare]
    total = np.sum(list(slow.values()), axis=0)
    np.testing.assert_allclose(forms.string_probs(list(slow)), [probs / total for probs in slow.values()], rtol=1e-12)


def test_next_characters_of_a_list_sum_over_its_continuations() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        words = {"".join(random.choice(list("ab\U0010ffff"), random.integers(1, 6))) for _ in range(30)}
        listed = ListedStrings.of({word: random.random() + 0.1 for word in words})
        for beginning in ["", *words, "a", "ab", "abb", "x"]:
            expected = defaultdict[str, float](float)
            for string, prob in zip(listed.strings, listed.probs.tolist(), strict=True):
                if string.startswith(beginning):
                    expected[string[len(beginning) :][:1]] += prob
            found = listed.next_probs(beginning)
            assert found.keys() == expected.keys()
            assert all(found[c] == pytest.approx(expected[c], abs=1e-12) for c in found)


# ---- forms of hunspell ----------------------------------------------------------------------------------------------


def test_derivable_forms_are_those_of_the_reader(tmp_path: Path) -> None:
    made = grammar(tmp_path)
    forms = {form for word, flags in made.entries for form in made.affixes.forms(word, flags)}
    derivable = {string for string in strings_up_to(LONG) if made.of_text(string)}
    assert derivable == forms and len(forms) > 10


@pytest.mark.parametrize("seed", range(20))
def test_random_dictionaries_sum_to_one(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)

    def text(longest: int) -> str:
        return "".join(random.choice(list("ab"), random.integers(1, longest + 1)))

    lines = ["SET UTF-8", "NEEDAFFIX n", "CIRCUMFIX c", *["FULLSTRIP"] * (seed % 2)]
    for kind, flag in (("SFX", "S"), ("SFX", "T"), ("PFX", "P")):
        rules = [
            f"{kind} {flag} {strip} {random.choice(['0', text(2)])}"
            f"{random.choice(['', '/T', '/n', '/c', '/nT', '/P'])} {random.choice(['.', 'a', '[^a]', '[ab]b'])}"
            for strip in random.choice(["0", "a", "b"], 3)
        ]
        lines += [f"{kind} {flag} {random.choice(['Y', 'N'])} 3", *rules]
    words = dict.fromkeys(text(3) for _ in range(6))
    entries = [f"{word}/{''.join(random.choice(list('STPn'), random.integers(1, 4)))}" for word in words]
    made = grammar(tmp_path, "\n".join(lines), "\n".join(["6", *entries]))
    model = AffixedStrings(made, np.full(len(made.entries), 1 / len(made.entries)), random.random(made.num_moves) + 0.1)
    assert model.string_probs(strings_up_to(10)).sum() == pytest.approx(1.0, abs=1e-12)
    forms = affixed_by_class(model, seed)
    assert forms.string_probs(strings_up_to(10)).sum(0) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("affixes", "entries", "message"),
    [
        ("SET UTF-8\n", "0\n", "x.dic: expected words, found none; is the file empty"),
        ("SET UTF-8\nSFX S Y 2\nSFX S 0 s .\n", "1\nab/S\n", "x.aff, line 2: expected 2 lines `SFX S …` below"),
        ("SET UTF-8\n", "ab\n", "x.dic, line 1: expected the number of words, found 'ab'"),
        ("SET UTF-8\n", "3\na\nb\nab\n", "x.dic, line 4: expected at most 2 words, found more; take a smaller"),
    ],
)
def test_damaged_dictionaries_are_refused(
    affixes: str, entries: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affix_grammar, "MOST_ENTRIES", 2)
    with pytest.raises(DataError, match=message):
        grammar(tmp_path, affixes, entries)


def test_a_dictionary_learns_from_words(tmp_path: Path) -> None:
    made = grammar(tmp_path)
    uniform = AffixedStrings.fit(made, {})
    learned = AffixedStrings.fit(made, {"aba": 5.0, "ba": 1.0})
    assert uniform.entry_probs == pytest.approx(1 / len(made.entries))
    assert learned.string_probs(["aba"])[0] > 2 * uniform.string_probs(["aba"])[0]
    assert learned.string_probs(["b"])[0] < uniform.string_probs(["b"])[0]


def test_spellings_of_texts_are_converted(tmp_path: Path) -> None:
    """OCONV spells b as B; the form x keeps its spelling, because ICONV does not convert it back."""
    made = grammar(tmp_path, "SET UTF-8\nICONV 1\nICONV B b\nOCONV 2\nOCONV b B\nOCONV x a\n", "3\nab\nbb\nx\n")
    model = AffixedStrings.fit(made, {})
    assert model.string_probs(["aB", "BB", "x", "ab", "bb", "a"]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0, 0])


# ---- mixture and estimates ------------------------------------------------------------------------------------------

RARE = "aab ab abba b ba bab abab bbb aa bba".split()
CLASSES = np.array([0, 0, 1, 0, 1, 1, 0, 1, 0, 1])


def strings_of(lexicon: SpellingLexicon | None = None) -> StringDistributions:
    alphabet = Alphabet(np.array([ord("a"), ord("b")]), num_characters=2)
    characters = CharacterNGrams.train(RARE, CLASSES, 2, 3, alphabet)
    return StringDistributions(characters, GeometricNumbers.train([]), np.zeros(2), lexicon)


def test_a_class_mixes_its_lexicon_with_its_characters(tmp_path: Path) -> None:
    listed, forms = ListedStrings.of({"ab": 1.0, "abab": 2.0, "b": 1.0}), affixed(tmp_path)
    shares = np.array([[0.2, 0.0], [0.5, 0.1]])
    mixed, plain = strings_of(SpellingLexicon((listed, forms), shares)), strings_of()
    strings = strings_up_to(12)
    by_part = np.stack([listed.string_probs(strings), forms.string_probs(strings)], axis=1)
    expected = np.exp(plain.log_probs(strings)) * (1.0 - shares.sum(0)) + by_part @ shares
    np.testing.assert_allclose(np.exp(mixed.log_probs(strings)), expected, rtol=1e-12)
    rest = 1.0 - np.exp(plain.log_probs(strings)).sum(0)  # of longer strings, which the lexicon has not
    assert np.exp(mixed.log_probs(strings)).sum(0) + rest * (1.0 - shares.sum(0)) == pytest.approx(1.0, abs=1e-9)
    known = ["ab", "b", "aabb"]
    assert np.exp(mixed.log_outside(known)) == pytest.approx(1.0 - np.exp(mixed.log_probs(known)).sum(0))
    assert mixed.log_probs(["", "\ud800"]).tolist() == [[-np.inf] * 2] * 2
    for of_class in range(2):
        drawn = draw(mixed, of_class, 3_000, np.random.default_rng(of_class))
        check_drawn(drawn, strings, np.exp(mixed.log_probs(strings)[:, of_class]))
    assert spell(mixed, 0, {*known}) not in known


def fitted(sources: list[Any], held_out: np.ndarray | None = None) -> SpellingLexicon | None:
    plain = strings_of()
    rare = ClassWords.of(RARE, CLASSES, plain, RARE)
    chosen = np.ones(len(RARE), dtype=bool) if held_out is None else held_out
    return fit_lexicon(sources, plain, rare, chosen, {*RARE}, frozenset())


def test_a_list_with_the_held_out_words_gets_most_of_a_class(tmp_path: Path) -> None:
    useful = dict.fromkeys([word for word, o in zip(RARE, CLASSES, strict=True) if o == 0] + ["abb", "aaaa"], 1.0)
    lexicon = fitted([useful])
    assert lexicon is not None
    conditional = np.exp(strings_of(lexicon).log_probs(RARE)) / np.exp(strings_of(lexicon).log_outside(RARE))
    plain = np.exp(strings_of().log_probs(RARE)) / np.exp(strings_of().log_outside(RARE))
    assert np.log(conditional / plain)[CLASSES == 0, 0].mean() > np.log(1.5)
    assert lexicon.shares[:, 0].sum() > lexicon.shares[:, 1].sum()


def test_shares_are_those_of_strings_outside_the_dictionary() -> None:
    """EM's shares are conditional; the stored ones give the same mixture after renormalisation."""
    lexicon = fitted([dict.fromkeys(["ab", "abab", "abb", "bbbb", "a"], 1.0)])
    assert lexicon is not None
    mixed, plain = strings_of(lexicon), strings_of()
    new = [string for string in strings_up_to(10) if string not in RARE]
    of_parts = np.stack([np.broadcast_to(by_class(part, new), (len(new), 2)) for part in lexicon.parts])
    outside = of_parts.sum(1)
    effective = lexicon.shares * outside
    of_characters = np.exp(lexicon.log_rest) * np.exp(plain.log_outside(RARE))
    effective = effective / (effective.sum(0) + of_characters)
    expected = (of_parts / outside[:, None] * effective[:, None]).sum(0)
    expected += (1 - effective.sum(0)) * np.exp(plain.log_probs(new) - plain.log_outside(RARE))
    np.testing.assert_allclose(np.exp(mixed.log_probs(new) - mixed.log_outside(RARE)), expected, rtol=1e-9)


@pytest.mark.parametrize("words", [["b"], ["xyz"], ["zzz", "zzzz"]])
def test_a_list_without_new_words_is_left_out(words: list[str]) -> None:
    """All words are in the dictionary, or have characters that no rare word has."""
    assert fitted([dict.fromkeys(words, 1.0)]) is None


def test_counts_are_tempered() -> None:
    """The held-out words are the less frequent ones of the list."""
    counts = {**dict.fromkeys(RARE, 1.0), **{"a" * n: 1e6 for n in range(3, 9)}, "abb": 1.0}
    lexicon = fitted([counts])
    assert lexicon is not None
    listed = lexicon.parts[0]
    assert isinstance(listed, ListedStrings)
    probs = dict(zip(listed.strings, listed.probs.tolist(), strict=True))
    assert probs["aaa"] / probs["abb"] == pytest.approx(1.0)


def test_a_dictionary_is_a_source_of_its_own(tmp_path: Path) -> None:
    lexicon = fitted([grammar(tmp_path)])
    assert lexicon is not None and lexicon.kinds()[0] == "affixes by class"


@pytest.mark.parametrize("kind", ["list", "dictionary", "dictionary without affixes"])
def test_a_class_has_the_words_that_fit(kind: str, tmp_path: Path) -> None:
    """Words on -ra are in class 0, and those on -ik in class 1. The lexicon has new ones of both."""
    random = np.random.default_rng(0)
    stems = sorted({"".join(random.choice(list("abdeg"), 4)) for _ in range(150)})
    rare = sorted(stem + random.choice(["ra", "ik"]) for stem in stems[::2])
    classes = np.array([word.endswith("ik") for word in rare], dtype=np.int64)
    alphabet = Alphabet(np.array(sorted({ord(c) for word in rare for c in word})), num_characters=100)
    plain = StringDistributions(
        CharacterNGrams.train(rare, classes, 2, 3, alphabet), GeometricNumbers.train([]), np.zeros(2)
    )
    source: Any = dict.fromkeys((stem + end for stem in stems for end in ("ra", "ik")), 1.0)
    if kind == "dictionary":
        lines = "SET UTF-8\nNEEDAFFIX n\nSFX S Y 2\nSFX S 0 ra .\nSFX S 0 ik .\n"
        source = grammar(tmp_path, lines, f"{len(stems)}\n" + "".join(f"{stem}/Sn\n" for stem in stems))
    if kind == "dictionary without affixes":
        source = grammar(tmp_path, "SET UTF-8\n", f"{len(source)}\n" + "\n".join(source))
    known = ClassWords.of(rare, classes, plain, rare)
    held_out = np.arange(len(rare)) % 2 == 0
    lexicon = fit_lexicon([source], plain, known, held_out, {*rare}, frozenset())
    assert lexicon is not None
    probs = lexicon.probs([stems[1] + "ra", stems[1] + "ik"])
    assert probs[0, 0] > 5 * probs[0, 1] and probs[1, 1] > 5 * probs[1, 0]
    drawn = draw(replace(plain, lexicon=lexicon), 1, 100, np.random.default_rng(0))
    assert sum(word.endswith("ik") for word in drawn) > 80


# ---- storing --------------------------------------------------------------------------------------------------------


def stored(folder: Path) -> SpellingLexicon:
    made = parts(folder)
    compounds = made["compounds"], Capitalised(made["compounds"])
    by_class = made["list by class"], made["affixes by class"], made["capitalised affixes by class"]
    return SpellingLexicon((*compounds, *by_class), np.full((5, 2), 0.18))


def read(arrays: dict[str, np.ndarray], kinds: object) -> SpellingLexicon:
    def row(name: str, dtype: type, size: int | None) -> np.ndarray:
        array = arrays[name]
        if array.dtype != dtype or (size is not None and len(array) != size):
            raise ValueError("type or size")
        return array

    return read_spelling_lexicon(row, kinds, 2)


def test_a_stored_lexicon_is_the_same(tmp_path: Path) -> None:
    lexicon = stored(tmp_path)
    assert lexicon.kinds() == ["compounds", "capitalised", "list by class", "affixes by class", "capitalised"]
    again = read(lexicon.arrays(), lexicon.kinds())
    strings = strings_up_to(5, "abB")
    np.testing.assert_array_equal(again.probs(strings), lexicon.probs(strings))
    assert again.arrays().keys() == lexicon.arrays().keys()
    for name, array in again.arrays().items():  # so that the prior's fingerprint is the same in every process
        np.testing.assert_array_equal(array, lexicon.arrays()[name])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("lexicon_shares", lambda x: x - 1.0, "shares outside"),
        ("lexicon_shares", lambda x: x * np.nan, "shares outside"),
        ("lexicon_shares", lambda x: x + 0.1, "shares outside"),
        ("lexicon_2_totals", lambda x: x * 0.0, "shares of the classes"),
        ("lexicon_2_totals", lambda x: x * np.nan, "shares of the classes"),
        ("lexicon_2_totals", lambda x: x[:-1], "type or size"),
        ("lexicon_2_totals", lambda x: x * 1e-310, "shares of the classes"),
        ("lexicon_3_totals", lambda x: x * 1e-310, "shares of the classes"),
        ("lexicon_3_fits", lambda x: np.tile([5e-324, 1.0], len(x) // 2), "do not add up to one"),
        ("lexicon_features", lambda x: np.where(x == ord("b"), np.uint8(ord("a")), x), "a feature twice"),
        ("lexicon_features", lambda x: x * 0 + ord("\n"), "type or size"),
        ("lexicon_features", lambda x: x[:0], "type or size"),
        ("lexicon_weights", lambda x: x + 1e3, "weights outside"),
        ("lexicon_weights", lambda x: x * np.nan, "weights outside"),
        ("lexicon_3_totals", lambda x: -x, "shares of the classes"),
        ("lexicon_2_totals", lambda x: x * 0.5, "shares of the classes.*add up to one"),
        ("lexicon_2_totals", lambda x: x * np.array([1.0, 0.9]), "shares of the classes.*add up to one"),
        ("lexicon_3_totals", lambda x: x * np.array([0.9, 1.0]), "shares of the classes.*add up to one"),
        ("lexicon_3_fits", lambda x: x * 2.0, "do not add up to one"),
        ("lexicon_3_fits", lambda x: x * np.nan, "do not add up to one"),
        ("lexicon_3_fits", lambda x: x[:-1], "type or size"),
        ("lexicon_shares", lambda x: x[:-1], "type or size"),
        ("lexicon_0_text", lambda x: x[::-1].copy(), "ascending|codec"),
        ("lexicon_0_text", lambda x: x[:0], "ascending"),
        ("lexicon_0_probs", lambda x: x * 2.0, "do not add up to one"),
        ("lexicon_0_probs", lambda x: x[:-1], "one for each probability"),
        ("lexicon_3_entries", lambda x: -x, "do not add up to one"),
        ("lexicon_3_moves", lambda x: x * 0.0, "weights outside"),
        ("lexicon_3_moves", lambda x: x * np.inf, "weights outside"),
        ("lexicon_3_grammar", lambda x: x[:-1], "delimiter|Expecting"),
        ("lexicon_3_grammar", lambda x: np.frombuffer(b"[" * 100_000, dtype=np.uint8), "too many brackets"),
        ("lexicon_3_grammar", lambda x: np.frombuffer(b"[]", dtype=np.uint8), "no object"),
    ],
)
def test_damaged_lexicons_are_refused(name: str, change, message: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    lexicon = stored(tmp_path)
    arrays = lexicon.arrays()
    with pytest.raises(ValueError, match=message):
        read(arrays | {name: change(arrays[name])}, lexicon.kinds())


@pytest.mark.parametrize("kinds", [[], "compounds", ["capitalised"], ["list"], [1], None, DEEP])
def test_unknown_kinds_are_refused(kinds: object, tmp_path: Path) -> None:
    shares = np.full(2 * max(1, len(kinds)) if isinstance(kinds, list) else 2, 1e-6)
    arrays = {**stored(tmp_path).arrays(), "lexicon_shares": shares}
    with pytest.raises(ValueError, match="the spelling lexicon has"):
        read(arrays, kinds)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ('"flags":[', '"flags":[7,'),
        ('"rules":[', '"rules":[[true,"S",true,"","a",[],99,1],'),
        ('"rules":[', '"rules":[[true,"S",true,"","a",[],-1,1],'),
        ('"rules":[', '"rules":[[true,7,true,"","a",[],0,1],'),
        ('"rules":[', '"rules":[[true],'),
        ('"entry_flags":[', '"entry_flags":[0,'),
        ('"entries":"', '"entries":"\\n'),
        ('"conversions":[', '"conversions":[[["a"]],'),
        ('"ignored":[', '"ignored":["a",'),
        ('"special":{', '"special":{"bare":7,"x":'),
    ],
)
def test_damaged_grammars_are_refused(part: str, value: str, tmp_path: Path) -> None:
    text = as_bytes(grammar(tmp_path)).tobytes().decode()
    assert part in text
    with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
        read_stored(np.frombuffer(text.replace(part, value, 1).encode(), dtype=np.uint8))
