"""Pieces of words: marks, splitting and joining, and features from their words, compared with one-by-one counts."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS, WordList
from fairseq_llrnn.features.spelling_features import suffix_features
from fairseq_llrnn.features.subwords import CONVENTIONS, Convention, PieceText, expected_features, piece_features
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.recipe import Recipe

SP, BPE = CONVENTIONS["sentencepiece"], CONVENTIONS["bpe"]


def text_of(convention: Convention, lines: Sequence[str], place: Path) -> PieceText:
    file = place / "train.pieces"
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return PieceText.read([file], convention)


def word_list(*pieces: str) -> WordList:
    return WordList((*SPECIALS, *pieces), np.array([0] * len(SPECIALS) + [1] * len(pieces)))


# ---- marks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("convention", "piece", "bare", "position"),
    [
        (SP, "▁chat", "chat", "Piece:Begins"),
        (SP, "te", "te", "Piece:Inside"),
        (SP, "▁", "", "Piece:Begins"),
        (SP, "a@@", "a@@", "Piece:Inside"),
        (BPE, "chat@@", "chat", "Piece:GoesOn"),
        (BPE, "te", "te", "Piece:Ends"),
        (BPE, "@@", "@@", "Piece:Ends"),
        (BPE, "▁te", "▁te", "Piece:Ends"),
    ],
)
def test_a_mark_says_what_is_certain(convention: Convention, piece: str, bare: str, position: str) -> None:
    assert (convention.bare(piece), convention.position(piece)) == (bare, position)


def test_words_of_a_line() -> None:
    assert list(SP.split_words("▁le ▁chat te ▁ 12".split())) == [["▁le"], ["▁chat", "te"], ["▁", "12"]]
    assert list(SP.split_words(["chat", "te", "▁dort"])) == [["chat", "te"], ["▁dort"]]  # without a dummy prefix
    assert list(BPE.split_words("le chat@@ te dort".split())) == [["le"], ["chat@@", "te"], ["dort"]]
    assert list(BPE.split_words(["le", "chat@@"])) == [["le"], ["chat@@"]]  # a line that was cut
    assert list(SP.split_words([])) == list(BPE.split_words([])) == []


SPLIT_WORDS = st.lists(st.lists(st.text("aé1-", min_size=1, max_size=3), min_size=1, max_size=4), max_size=6)


@given(SPLIT_WORDS)
def test_what_is_split_and_marked_is_joined_again(words: list[list[str]]) -> None:
    written = {
        SP: [[SP.mark(word[0]), *word[1:]] for word in words],
        BPE: [[*map(BPE.mark, word[:-1]), word[-1]] for word in words],
    }
    for convention, marked in written.items():
        found = list(convention.split_words(piece for word in marked for piece in word))
        assert found == marked
        assert [convention.join(word) for word in found] == ["".join(word) for word in words]


# ---- features of words ----------------------------------------------------------------------------------------------


def lexicon() -> Lexicon:
    lexicon = Lexicon()
    lexicon.add("chat", {"POS:NOUN": 1.0, "Gender:Masc": 1.0, "Size:Log": 6.3})
    lexicon.add("chatte", {"POS:NOUN": 1.0, "Gender:Fem": 1.0, "Size:Log": 0.1})
    lexicon.add("dort", ["POS:VERB"])
    lexicon.add("petite", ["POS:ADJ", "Gender:Fem"])
    return lexicon


def test_a_piece_expects_the_features_of_its_words(tmp_path: Path) -> None:
    text = text_of(SP, ["▁chat te ▁dort ▁chat", "▁peti te ▁dort ▁chat", "▁chat ▁peti te ▁zut"], tmp_path)
    chat, te, dort, zut, unseen = expected_features(["▁chat", "te", "▁dort", "▁zut", "▁non"], text, lexicon())
    # chat 3 times, chatte once: all nouns, three quarters masculine; the size is a mean, not rounded
    assert chat == pytest.approx({"POS:NOUN": 1, "Gender:Masc": 0.75, "Gender:Fem": 0.25, "Size:Log": 4.75})
    # chatte once, petite twice: thirds, to the nearest quarter
    assert te == pytest.approx({"Gender:Fem": 1.0, "POS:NOUN": 0.25, "POS:ADJ": 0.75, "Size:Log": 0.025})
    assert dort == {"POS:VERB": 1.0}
    assert zut == unseen == {}


def test_a_share_below_an_eighth_vanishes(tmp_path: Path) -> None:
    for others, expected in ((7, {"POS:VERB": 0.25}), (8, {})):
        text = text_of(SP, ["▁dort", *["▁dort eur"] * others], tmp_path)
        assert expected_features(["▁dort"], text, lexicon()) == [expected]


def test_whole_words_have_exactly_what_their_words_have(tmp_path: Path) -> None:
    words = ["chat", "chatte", "dort", "petite"]
    known = lexicon()
    text = text_of(SP, [" ".join("▁" + word for word in words)] * 3, tmp_path)
    expected = [
        {**known.features(word), **suffixes} for word, suffixes in zip(words, suffix_features(words, 1), strict=True)
    ]
    found = expected_features(["▁" + word for word in words], text, known, floor=1)
    assert [{n: np.float32(v) for n, v in row.items()} for row in found] == [
        {n: np.float32(v) for n, v in row.items()} for row in expected
    ]


def test_suffixes_go_to_the_piece_that_ends_the_word(tmp_path: Path) -> None:
    text = text_of(BPE, ["chant@@ ées chant@@ er march@@ é@@ es ées l@@ er", "a@@ ir ir ir"], tmp_path)
    chant, ees, er, es, ir = expected_features(["chant@@", "ées", "er", "es", "ir"], text, Lexicon(), floor=1)
    assert chant == {}
    assert ees == {"Suffix:es": 1.0, "Suffix:ées": 1.0}  # every second time: the word `ées` has no stem before them
    assert er == {"Suffix:er": 1.0}  # neither has `ler`; and `ter` of `chanter` is not in the piece
    assert ir == {}
    assert es == {"Suffix:es": 1.0}
    assert expected_features(["ées"], text, Lexicon(), floor=3) == [{}]  # two words end in -ées, with a stem


Lines = list[list[list[str]]]  # a line is words, a word is pieces without marks


def by_counting(pieces: list[str], lines: Lines, known: Lexicon, floor: int) -> list[dict[str, Fraction]]:
    """Return `expected_features` by counting one occurrence after the other; features are 0 or 1."""
    types = list(dict.fromkeys("".join(word) for line in lines for word in line))
    suffixes = dict(zip(types, suffix_features(types, floor), strict=True))
    rows = []
    for piece in pieces:
        seen: list[set[str]] = []
        for word in (word for line in lines for word in line):
            joined = "".join(word)
            for place, part in enumerate(word):
                marked = part if place == len(word) - 1 else part + "@@"
                if marked == piece:
                    ends = place == len(word) - 1
                    mine = {name for name in suffixes[joined] if ends and part.endswith(name[len("Suffix:") :])}
                    seen.append({*known.features(joined), *mine})
        names = {name for names in seen for name in names}
        shares = {name: Fraction(sum(name in names for names in seen), len(seen)) for name in names}
        told = {
            name: Fraction(int(share >= Fraction(1, 2)))
            if name.startswith("Suffix:")
            else Fraction(int(share * 4 + Fraction(1, 2)), 4)
            for name, share in shares.items()
        }
        rows.append({name: value for name, value in told.items() if value})
    return rows


SPLIT = st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1, max_size=3)
LINES = st.lists(st.lists(SPLIT, max_size=5), max_size=5)


@given(LINES, st.dictionaries(st.text("ab", min_size=1, max_size=4), st.sets(st.sampled_from(["A:x", "A:y", "B:z"]))))
def test_expected_features_are_what_counting_finds(lines: Lines, entries: dict[str, set[str]]) -> None:
    known = Lexicon()
    for word, names in entries.items():
        known.add(word, names)
    pieces = ["a", "b", "ab", "ba", "a@@", "b@@", "ab@@", "ba@@"]
    counts: dict[tuple[str, ...], int] = {}
    for word in (word for line in lines for word in line):
        split = (*map(BPE.mark, word[:-1]), word[-1])
        counts[split] = counts.get(split, 0) + 1
    assert expected_features(pieces, PieceText(BPE, counts), known, floor=1) == by_counting(pieces, lines, known, 1)


# ---- the prior ------------------------------------------------------------------------------------------------------


def test_pieces_in_a_prior(tmp_path: Path) -> None:
    text = text_of(SP, ["▁Chat te ▁dort ▁12", "▁dort"], tmp_path)
    words = word_list("▁Chat", "te", "▁dort", "▁12", "▁")
    settings = Recipe(top_words=0, features=("POS",), shapes=True, suffixes=1, pieces="sentencepiece")
    prior, notes = plain_prior(words, words.counts_with_ends(), lexicon(), settings, text=text)

    def row(piece: str) -> dict[str, float]:
        return prior.output.features.row(int(prior.output.class_of[prior.symbols.index(piece)]))

    assert row("▁Chat") == {"NOTTOP": 1, "Piece:Begins": 1, "Shape:Capitalised": 1}
    assert row("te") == {"NOTTOP": 1, "Piece:Inside": 1, "Suffix:te": 1}
    assert row("▁dort") == {"NOTTOP": 1, "Piece:Begins": 1, "POS:VERB": 1, "Suffix:rt": 1}
    assert row("▁12") == pytest.approx({"NOTTOP": 1, "Piece:Begins": 1, "Shape:Number": 1, "Shape:SmallNumber": 0.88})
    assert row("▁") == {"NOTTOP": 1, "Piece:Begins": 1}
    assert prior.settings["pieces"] == "sentencepiece"
    assert dict(notes) == {
        "pieces without features of words, because the text of --count-text lacks them": 1,
        "words of the text that the lexicon lacks": 2,
    }


def test_without_a_text_a_piece_says_its_place_alone() -> None:
    assert piece_features(["▁chat", "te"], SP, None, lexicon(), None) == [{"Piece:Begins": 1}, {"Piece:Inside": 1}]


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("convention", "pieces", "message"),
    [
        (SP, ["le", "chat", "dort"], "dict.txt: expected pieces that begin with ▁ (--pieces sentencepiece), found none "
         "in 3: 'le', 'chat', 'dort'; give a text in pieces to fairseq-preprocess, or leave --pieces out"),
        (SP, ["le", "chat@@", "te"], "dict.txt: expected pieces that begin with ▁ (--pieces sentencepiece), found "
         "none, but 1 such as 'chat@@'; did you mean --pieces bpe?"),
        (SP, ["le▁", "chat", "te▁"], "dict.txt: expected pieces that begin with ▁ (--pieces sentencepiece), found ▁ at "
         "the end of pieces, such as 'le▁'; train without treat_whitespace_as_suffix"),
        (BPE, ["▁le", "▁chat", "te"], "dict.txt: expected pieces that end in @@ (--pieces bpe), found none, but 2 such "
         "as '▁le'; did you mean --pieces sentencepiece?"),
    ],
)  # fmt: skip
def test_a_dictionary_of_another_kind(convention: Convention, pieces: list[str], message: str) -> None:
    with pytest.raises(DataError) as error:
        convention.check_dictionary("dict.txt", word_list(*pieces))
    assert str(error.value) == message
    convention.check_dictionary("dict.txt", word_list(*pieces, convention.mark("a")))


def test_a_text_that_is_not_in_pieces(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        text_of(BPE, ["", "le chat dort"], tmp_path)
    assert str(error.value) == (
        f"{tmp_path / 'train.pieces'}, line 2: expected a text in pieces, with pieces that end in @@ (--pieces bpe), "
        "found none in the whole file: 'le chat dort'; give the text that fairseq-preprocess was given"
    )
    assert text_of(BPE, ["", ""], tmp_path).words() == []
