"""Words in runs of pieces, and slots in the place of the runs that spell them, beside a slow version of the same."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn.evidence.evidence_table import WordSpans
from fairseq_llrnn.evidence.slots import merged
from fairseq_llrnn.features.dictionary import SPECIALS, OpenWords
from fairseq_llrnn.features.subwords import CONVENTIONS

PIECES = {
    "sentencepiece": ["▁a", "▁b", "▁ab", "▁4", "a", "b", "4", "0"],
    "bpe": ["a@@", "b@@", "ab", "4@@", "a", "b", "4", "0"],
    None: ["a", "b", "ab", "40"],
}
STRINGS = ["a", "ab", "ba", "40", "a b", "ab a", "b a b"]  # of slots


def spans_of(convention: str | None) -> WordSpans:
    return WordSpans(OpenWords([*SPECIALS, *PIECES[convention]]), CONVENTIONS.get(str(convention)))


def slot(words: WordSpans, string: str) -> int:
    """The token of a slot's string."""
    written = string.split() if words.convention is None else map(words.convention.whole, string.split())
    return words.tokens.index(" ".join(written))


def numbers(words: WordSpans, text: str) -> np.ndarray:
    return np.array([words.tokens.index(token) for token in text.split()], dtype=np.int64)


def text(words: WordSpans, tokens: Sequence[int]) -> str:
    return " ".join(words.tokens.symbols[token] for token in tokens)


@pytest.mark.parametrize(
    "convention, sentence, expected",
    [
        ("sentencepiece", "▁a ▁4 0 ▁a b </s>", "▁a ▁40 ▁ab </s>"),  # `▁ab` is a piece, `▁40` is none
        ("sentencepiece", "▁a ▁4 0 0 ▁4", "▁a ▁4 0 0 ▁4"),  # 400 and 4 are other words
        ("sentencepiece", "4 0 ▁4 0", "▁40 ▁40"),  # the first piece begins a word, marked or not
        ("sentencepiece", "▁4 0 <unk> ▁4 0 </s>", "▁4 0 <unk> ▁40 </s>"),  # <unk> may go on with a word
        ("bpe", "a 4@@ 0 a@@ b </s>", "a 40 ab </s>"),
        ("bpe", "a b@@ 4@@ 0 4@@ </s>", "a b@@ 4@@ 0 4@@ </s>"),
        ("bpe", "<unk> 4@@ 0 <unk> a@@ b", "<unk> 4@@ 0 <unk> a@@ b"),
        (None, "a 40 <unk> ab b </s>", "a 40 <unk> ab b </s>"),
    ],
)
def test_sentences_by_hand(convention: str | None, sentence: str, expected: str) -> None:
    words = spans_of(convention)
    found = merged(numbers(words, sentence), [slot(words, "40"), slot(words, "ab")], words)
    assert text(words, found.tolist()) == expected


def test_several_words_are_one_slot_and_the_longest_wins() -> None:
    for convention, sentence, expected in (
        ("sentencepiece", "▁b ▁a ▁a b ▁a ▁a", "▁b ▁a ▁ab ▁a ▁a"),
        ("bpe", "b a ab a a", "b a ab a a"),
        (None, "b a ab a a", "b a ab a a"),
    ):
        words = spans_of(convention)
        found = merged(numbers(words, sentence), [slot(words, "ab"), slot(words, "ab a")], words).tolist()
        assert text(words, found) == expected and len(found) == 4 and found[2] == slot(words, "ab a")


def test_a_slot_of_several_words_may_be_written_in_pieces() -> None:
    sentencepiece, bpe = CONVENTIONS["sentencepiece"], CONVENTIONS["bpe"]
    assert sentencepiece.words_of("▁New ▁Yo rk") == sentencepiece.words_of("▁New▁York") == ("New", "York")
    assert bpe.words_of("New Yo@@ rk") == ("New", "York") and bpe.words_of("4071") == ("4071",)


def test_without_slots_nothing_changes() -> None:
    words = spans_of("bpe")
    for sentence in (np.zeros(0, dtype=np.int64), np.array([2])):
        assert merged(sentence, [], words) is sentence
        assert merged(sentence, [slot(words, "ab")], words).tolist() == sentence.tolist()


# ---- slow and obvious -----------------------------------------------------------------------------------------------


def written_words(words: WordSpans, tokens: Sequence[int]) -> list[list[str]]:
    """The tokens' symbols, word by word, no two of which are joined; a special symbol is alone."""
    symbols = [words.tokens.symbols[token] for token in tokens]
    if words.convention is None:
        return [[symbol] for symbol in symbols]
    found: list[list[str]] = []
    run: list[str] = []
    for symbol in [*symbols, "</s>"]:
        if symbol in SPECIALS and symbol != "<unk>":
            found += words.convention.split_words(run)
            found.append([symbol])
            run = []
        else:
            run.append(symbol)
    return found[:-1]


def slowly(words: WordSpans, tokens: Sequence[int], slots: Sequence[int]) -> list[int]:
    """Of all ways to cut the sentence into slots and words, the one with the longest first parts."""
    written = written_words(words, tokens)
    joined = [word[0] if words.convention is None else words.convention.join(word) for word in written]
    ways: list[tuple[list[int], list[int], int]] = [([], [], 0)]  # lengths, tokens, and where it goes on
    complete: list[tuple[list[int], list[int]]] = []
    while ways:
        lengths, made, at = ways.pop()
        if at == len(written):
            complete.append((lengths, made))
            continue
        ways.append(([*lengths, 0], made + [words.tokens.index(piece) for piece in written[at]], at + 1))
        for token in slots:
            said = list(words.words_of(token))
            if joined[at : at + len(said)] == said:
                ways.append(([*lengths, len(said)], [*made, token], at + len(said)))
    return max(complete)[1]


@given(
    convention=st.sampled_from(["sentencepiece", "bpe", None]),
    places=st.lists(st.integers(0, 7), max_size=7),
    strings=st.sets(st.sampled_from(STRINGS), max_size=4),
    ends=st.booleans(),
)
def test_it_is_the_slow_version_and_the_words_stay(
    convention: str | None, places: list[int], strings: set[str], ends: bool
) -> None:
    words = spans_of(convention)
    slots = [slot(words, string) for string in sorted(strings)]
    known = PIECES[convention]
    tokens = [words.tokens.index(known[place % len(known)]) for place in places] + ([2] if ends else [])
    sentence = np.array(tokens, dtype=np.int64)
    found = merged(sentence, slots, words)
    assert found.tolist() == slowly(words, tokens, slots)
    assert merged(found, slots, words).tolist() == found.tolist()
    assert _all_words(words, found.tolist()) == _all_words(words, tokens)


def _all_words(words: WordSpans, tokens: Sequence[int]) -> list[str]:
    """What is read where pieces are put together."""
    written = written_words(words, tokens)
    if words.convention is None:
        return [word for [symbol] in written for word in symbol.split()]
    return [word for parts in written for word in words.convention.words_of(" ".join(parts))]
