"""Scores of lines, and their sums."""

import math

from fairseq_llrnn.evaluation.texts import LineScore, TextScore

LINE = LineScore(3, ["le", "chat"], [False, True], [-1.0, -2.0, -0.5], [0.0, -4.0])


def test_a_line_sums_its_words_and_its_end() -> None:
    assert (LINE.log_prob, LINE.impossible) == (-7.5, None)
    total = TextScore()
    total.add(LINE)
    assert math.isclose(total.bits * math.log(2), 7.5)
    assert (total.unknown_words, total.unknown_characters, total.characters, total.empty_lines) == (1, 4, 8, 0)
    total.add(LineScore(4, [], [], [-0.25], []))
    assert (total.sentences, total.words, total.empty_lines, total.characters) == (2, 2, 1, 9)


def test_a_line_without_probability_says_where() -> None:
    nothing = -math.inf
    of_word = LineScore(1, ["le", "chat"], [False, False], [-1.0, nothing, nothing], [0.0, math.nan])
    of_string = LineScore(1, ["le", "chat"], [False, True], [-1.0, -2.0, -0.5], [0.0, nothing])
    of_end = LineScore(1, ["le"], [False], [-1.0, nothing], [0.0])
    assert [line.log_prob for line in (of_word, of_string, of_end)] == [nothing] * 3
    assert [line.word(line.impossible or 0) for line in (of_word, of_string, of_end)] == ["chat", "chat", "</s>"]


def test_of_a_line_that_is_too_long_nothing_is_known() -> None:
    assert math.isnan(LineScore(1, ["le"] * 9, too_long_for=8).log_prob)
