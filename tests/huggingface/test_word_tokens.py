"""Which token of a tokenizer is which word of a prior, and what is said where they do not fit."""

import os
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface import dictionary_of, words_of_tokens
from fairseq_llrnn.prior import EvidenceOptions, Recipe
from fairseq_llrnn.prior.building import build_prior

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

TOKENS = ["[PAD]", "le", "chat", "[UNK]", "[END]", "dort", "4071"]
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "[END]"}


def tokenizer(special: dict[str, str] = SPECIAL) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({token: at for at, token in enumerate(TOKENS)}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special)


def test_words_have_the_tokens_of_their_spelling_and_special_symbols_those_of_their_use() -> None:
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "chat", "dort", "le", "madeupword0000"]
    prior = build_prior(symbols, Recipe(top_words=2))
    assert words_of_tokens(tokenizer(), prior).tolist() == [1, 6, 4, 3, 2, 5, -1]
    pads_with_the_end = tokenizer({**SPECIAL, "pad_token": "[END]"})
    assert words_of_tokens(pads_with_the_end, prior).tolist() == [-1, 6, 4, 3, 2, 5, -1]


def test_a_prior_over_the_tokens_of_a_tokenizer() -> None:
    symbols = dictionary_of(tokenizer())
    assert symbols == ["<s>", "<pad>", "</s>", "<unk>", "le", "chat", "dort", "4071"]
    prior = build_prior(symbols, Recipe(top_words=2))
    assert words_of_tokens(tokenizer(), prior).tolist() == [1, 4, 5, 3, 2, 6, 7]


def test_strings_that_a_source_has_offered_are_words(tmp_path: Path) -> None:
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "chat", "le"]
    prior = build_prior(symbols, Recipe(top_words=2, source_dictionary=symbols, evidence=EvidenceOptions(("numbers",))))
    assert words_of_tokens(tokenizer(), prior).tolist()[-1] == -1
    alias = prior.session.target.index("4071")
    assert words_of_tokens(tokenizer(), prior).tolist()[-1] == alias == 6


def test_what_does_not_fit_is_said_in_one_line() -> None:
    prior = build_prior(["<s>", "<pad>", "</s>", "<unk>", "le", "chien", "mange"], Recipe(top_words=2))
    with pytest.raises(DataError, match=r"found 2 that are none: 'chien', 'mange'; build the prior over dictionary_of"):
        words_of_tokens(tokenizer(), prior)
    with pytest.raises(DataError, match="expected a tokenizer with an end of sentence, .* set its eos_token"):
        words_of_tokens(tokenizer({"unk_token": "[UNK]"}), prior)
