"""Scores, surprisals and minimal pairs, of a model whose probabilities are in a table."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evaluation.scoring_model import ScoringModel
from fairseq_llrnn.evaluation.texts import LineScore
from fairseq_llrnn.features.subwords import CONVENTIONS

LOG_P = {"le": -1.0, "chat": -3.5, "ch@@": -2.0, "at": -1.25, "</s>": -0.75, "never": -math.inf}


class TableModel(ScoringModel):
    """Words are independent of each other; all others have log p = −9."""

    vocabulary = frozenset(LOG_P)

    def __init__(self, pieces: str | None = None, tokens: int = 1) -> None:
        self._convention = None if pieces is None else CONVENTIONS[pieces]
        self.tokens = tokens

    @property
    def _training_words(self) -> frozenset[str]:
        return frozenset({"le"})

    def _next_log_probs(self, prefix: str, source: str | None) -> tuple[torch.Tensor, Callable[[int], str]]:
        return torch.tensor([*LOG_P.values()]), [*LOG_P].__getitem__

    def _line_scores(self, lines: Sequence[str], source: Sequence[str] | None, is_open: bool) -> Iterator[LineScore]:
        for number, line in enumerate(lines, start=1):
            words = line.split()
            log_probs = [LOG_P.get(word, -9.0) for word in [*words, "</s>"]]
            unknown, zeros = [word not in LOG_P for word in words], [0.0] * len(words)
            too_long = 9 if len(words) > 9 else None
            yield LineScore(number, words, unknown, log_probs, zeros, [self.tokens] * len(words), too_long)


LINES = ["le chat", "", "le dog le"]
NATS = 1.0 + 3.5 + 0.75 + 0.75 + 1.0 + 9.0 + 1.0 + 0.75


@pytest.mark.parametrize(
    ("per", "count"),
    # characters: "le chat\n", "\n", "le dog le\n"
    [("text", 1), ("word", 5), ("token", 13), ("sentence", 3), ("character", 8 + 1 + 10)],
)
@pytest.mark.parametrize(("unit", "size"), [("nats", 1.0), ("bits", math.log(2))])
def test_a_score_is_the_sum_over_its_parts(per: str, count: int, unit: str, size: float) -> None:
    model = TableModel(tokens=2)
    assert model.score(LINES, unit=unit, per=per) == pytest.approx(NATS / size / count)
    rows = model.surprisals(LINES, unit=unit)
    assert math.fsum(row.surprisal for row in rows) == pytest.approx(NATS / size)


def test_rows_are_a_table() -> None:
    rows = TableModel().surprisals(["le dog", "never"], unit="nats")
    assert rows == [
        (1, 1, "le", 1.0, True, False),
        (1, 2, "dog", 9.0, False, True),
        (1, 3, "</s>", 0.75, True, False),
        (2, 1, "never", math.inf, False, False),
        (2, 2, "</s>", 0.75, True, False),
    ]
    first, second, *_ = rows.to_tsv().splitlines()
    assert first.split("\t") == ["sentence", "position", "word", "surprisal", "is_seen", "is_unknown"]
    assert second.split("\t") == ["1", "1", "le", "1.000000", "True", "False"]


def test_pieces_are_one_word_and_several_tokens() -> None:
    model = TableModel("bpe")
    assert [row[2:4] for row in model.surprisals(["ch@@ at le"], unit="nats")] == [
        ("chat", 3.25), ("le", 1.0), ("</s>", 0.75)
    ]  # fmt: skip
    assert model.score(["ch@@ at le"], unit="nats") == pytest.approx(5.0 / 2)
    assert model.score(["ch@@ at le"], unit="nats", per="token") == pytest.approx(5.0 / 4)
    assert model.score(["ch@@ at le"], unit="nats", per="character") == pytest.approx(5.0 / len("chat le\n"))


def test_a_word_that_looks_like_the_end_is_a_word() -> None:
    assert TableModel().score(["</s> le"], unit="nats", per="sentence") == pytest.approx(0.75 + 1.0 + 0.75)


def test_pairs_with_ties_and_impossible_sentences() -> None:
    """The better sentence is found by hand; equal sums in another order of words are a tie."""
    lines = ["le", "chat", "never", "dog", "le chat dog", "dog chat le"]
    pairs = list(itertools.product(lines, lines))
    found = TableModel().minimal_pairs(*zip(*pairs, strict=True))
    sums = {line: math.fsum(LOG_P.get(word, -9.0) for word in [*line.split(), "</s>"]) for line in lines}
    expected = [(sums[good], sums[bad], sums[good] > sums[bad]) for good, bad in pairs]
    assert found.pairs == expected
    assert found.accuracy == sum(row[2] for row in expected) / len(pairs)


@pytest.mark.parametrize(("difference", "is_correct"), [(1e-9, False), (1e-7, False), (1e-4, True), (-1e-4, False)])
def test_differences_below_float32_are_ties(
    difference: float, is_correct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LOG_P, "chat", -8.0 + difference)
    monkeypatch.setitem(LOG_P, "le", -8.0)
    assert TableModel().minimal_pairs(["chat"], ["le"]).pairs[0].is_correct is is_correct


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.score(["le"], unit="bit"), "unit='bit': expected one of bits, nats; did you mean 'bits'?"),
        (lambda m: m.score(["le"], unit=2), "unit=2: expected one of bits, nats; give one of them"),
        (lambda m: m.surprisals(["le"], unit="nat"), "did you mean 'nats'?"),
        (lambda m: m.score(["le"], per="words"), "word, token, character, sentence, text; did you mean 'word'?"),
        (lambda m: m.score(["le"], per="char"), "did you mean 'character'?"),
        (lambda m: m.score(["", ""]), "per='word': expected a word, found empty lines; give lines with words"),
        (lambda m: m.score(["le never"]), "sentence 1, word 2: the model gives 'never' no probability"),
        (lambda m: m.score(["le", ["le"]]), "expected sentences, found ['le']; join the words of each by blanks"),
        (lambda m: m.score(["le " * 10]), "line 1: expected at most 9 words"),
        (lambda m: m.minimal_pairs("le", "le"), "expected a list of sentences, found a text"),
        (lambda m: m.minimal_pairs([], []), "expected as many good sentences as bad ones, found 0 and 0"),
        (lambda m: m.minimal_pairs(["le"], ["le"], source=["a"]), "a language model reads no source"),
        (lambda m: m.minimal_pairs(["le", "le"], ["le", "le " * 10]), "bad: line 2: expected at most 9 words"),
        (lambda m: m.minimal_pairs(["le", "le " * 10], ["le", "le"]), "good: line 2: expected at most 9 words"),
        (lambda m: m.score(["le"], is_open=True), "with an open vocabulary, found another; leave it out, or train"),
        (lambda m: m.surprisals(["# text = le", "1\tle" + 8 * "\t_"]), "expected a tokenised text, found a treebank"),
        (lambda m: m.next_words("le", 0), "k 0: expected a number of at least 1"),
        (lambda m: m.next_words(["le"]), "expected sentences, found ['le']; join the words of each by blanks"),
    ],
)  # fmt: skip
def test_messages(call: Callable[[ScoringModel], object], message: str) -> None:
    with pytest.raises((DataError, OptionError)) as error:
        call(TableModel())
    assert message in str(error.value)


def test_next_words_are_sorted_and_possible() -> None:
    found = TableModel().next_words("le", 3)
    assert [next_word.word for next_word in found] == ["</s>", "le", "at"]
    assert [next_word.probability for next_word in found] == pytest.approx([math.exp(-p) for p in (0.75, 1.0, 1.25)])
    assert len(TableModel().next_words("", 99)) == len(LOG_P) - 1  # never is impossible


def test_a_byte_order_mark_is_no_part_of_a_word() -> None:
    model = TableModel()
    assert model.surprisals(["\ufeffle chat", "\ufeffle"])[0].word == "le"
    assert model.score(["\ufeffle chat"]) == model.score(["le chat"])


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        ("Le CHAT", "lines: 2 of 2 words are in the dictionary only in another case, such as 'Le': lower-case it"),
        ("le chat. chat, le", "lines: punctuation is glued to 2 of 4 words, such as 'chat.': tokenise it .sacre"),
    ],
)
def test_spelling_makes_words_unknown(line: str, warning: str) -> None:
    for call in (TableModel().score, TableModel().surprisals):
        with pytest.warns(UserWarning, match=f"^{warning}"):
            call([line])
