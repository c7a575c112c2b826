"""Words that a model would know if the text were in lower case."""

from fairseq_llrnn.evaluation.texts import CapitalWords, LineScore


def counted(symbols: tuple[str, ...], words: str) -> tuple[int, str]:
    capitals = CapitalWords(symbols)
    split = words.split()
    line = LineScore(1, split, [word not in symbols for word in split])
    assert list(capitals.watch([line])) == [line]
    return capitals.count, capitals.example


def test_unknown_words_that_are_known_in_lower_case_are_counted() -> None:
    assert counted(("</s>", "le", "chat", "été"), "Le chat ÉTÉ Zoé le") == (2, "Le")
    assert counted(("</s>", "ılık", "ile"), "Ilık İLE") == (2, "Ilık")  # Turkish


def test_a_dictionary_with_capitals_has_its_own_reasons() -> None:
    assert counted(("</s>", "le", "chat", "Zoé"), "Le chat") == (0, "")
