"""The kinds of words by which the validation loss is split."""

from dataclasses import replace

import numpy as np
import pytest

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.plugin.criterion import word_kinds
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.part import Part
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "le", "bien", "chat", "peut-être", "deux")
COUNTS = np.array([0, 0, 5, 1, 9, 8, 3, 2, 1])


def prior() -> Prior:
    lexicon = Lexicon()
    for word, *features in (
        ("le", "POS:DET", "Number:Sing"), ("bien", "POS:ADV"), ("bien", "POS:NOUN"), ("chat", "POS:NOUN"),
        ("deux", "POS:NUM", "Number:other"),
    ):  # fmt: skip
        lexicon.add(word, features)
    return plain_prior(WordList(SYMBOLS, COUNTS), COUNTS, lexicon, Recipe(top_words=2))[0]


def kinds_of(made: Prior, group: str) -> dict[str, str]:
    names, kind_of = word_kinds(made, group)
    assert names == sorted(set(names)) and kind_of.shape == (len(made.symbols),) and kind_of.dtype == np.int64
    return {word: names[kind] for word, kind in zip(made.symbols, kind_of, strict=True) if word not in SYMBOLS[:2]}


def test_the_end_and_unknown_words_are_kinds_of_their_own() -> None:
    assert kinds_of(prior(), "POS") == {
        "</s>": "end", "<unk>": "unknown", "le": "DET", "bien": "mixed", "chat": "NOUN", "peut-être": "other",
        "deux": "NUM",
    }  # fmt: skip
    alike = dict.fromkeys(SYMBOLS[4:], "other")
    assert kinds_of(prior(), "none") == {"</s>": "end", "<unk>": "unknown", **alike}


def test_a_value_that_is_called_like_a_kind_is_no_part_of_it() -> None:
    assert kinds_of(prior(), "Number") == {
        "</s>": "end", "<unk>": "unknown", "le": "Sing", "bien": "other", "chat": "other", "peut-être": "other",
        "deux": "Number:other",
    }  # fmt: skip


def test_a_value_that_is_called_like_a_part_is_none_of_its_strings() -> None:
    """Which logs call by the part's name, too."""
    assert "Sing" in kinds_of(prior(), "Number").values()
    sing = type("Sing", (Part,), {"kind": "Sing", "class_name": "rows_of_sing"})
    assert kinds_of(prior().with_part(sing()), "Number")["le"] == "Number:Sing"


def test_special_symbols_that_share_their_features_are_told_apart() -> None:
    """As signatures of other programs might: the kind is of the word, not of its class."""
    made = prior()
    class_of = made.output.class_of.copy()
    class_of[3] = class_of[2]
    found = kinds_of(replace(made, output=replace(made.output, class_of=class_of)), "POS")
    assert (found["</s>"], found["<unk>"]) == ("end", "unknown")


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(OptionError, match="--report-group Numbre: expected a feature group .* did you mean Number"):
        word_kinds(prior(), "Numbre")
