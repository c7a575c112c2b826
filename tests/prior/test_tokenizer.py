"""`Prior.tokenizer`: the ids of `LogLinearHead.encode`, in a tokenizer of transformers."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_llrnn import LogLinearHead, Prior, errors
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior import Recipe, build_prior

transformers = pytest.importorskip("transformers")
WORDS = ["e\u0301", *"le chat ch@@ at ▁le ##s Ġc <0x0A> A</w> . é [CLS] <|endoftext|>".split()]
PRIOR = build_prior(["<s>", "<pad>", "</s>", "<unk>", *WORDS], Recipe(top_words="all"))
HEAD, TOKENIZER = LogLinearHead(PRIOR, 4), PRIOR.tokenizer()
BLANKS = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
PARTS = [*WORDS, *BLANKS, "<unk>", "<pad>", "<s>", "xyzzy", "LE", "▁", "@@", "\u200b", "\u180e", "\ufeff", "\x00"]


def words_of(line: str) -> list[int]:
    return HEAD.encode([line])[0, :-1].tolist()


@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=8).map("".join))
def test_ids_are_those_of_the_head(line: str) -> None:
    line = line.replace("</s>", "")
    assert TOKENIZER(line).input_ids == [HEAD.eos, *words_of(line)]
    assert TOKENIZER(line, add_special_tokens=False).input_ids == words_of(line)


def test_ids_with_an_end_are_those_of_a_training_text() -> None:
    """`</s>`, the words, `</s>`: contains both the previous tokens and the targets of the head."""
    lines = ["le chat .", "", "le", "<unk>-le </s> ."]
    targets = HEAD.encode(lines)
    batch = PRIOR.tokenizer(add_eos_token=True)(lines, padding=True, return_tensors="pt")
    assert batch.input_ids[:, 1:].equal(targets) and (batch.input_ids[:, 0] == HEAD.eos).all()
    assert batch.attention_mask.sum(1).equal((targets != HEAD.pad).sum(1) + 1)
    assert TOKENIZER.batch_decode(batch.input_ids, skip_special_tokens=True)[0] == "le chat ."


def test_symbols_and_special_tokens() -> None:
    assert TOKENIZER.convert_ids_to_tokens(range(len(TOKENIZER))) == list(PRIOR.symbols)
    special = [TOKENIZER.bos_token, TOKENIZER.eos_token, TOKENIZER.pad_token, TOKENIZER.unk_token]
    assert special == ["</s>", "</s>", "<pad>", "<unk>"] and TOKENIZER.is_fast


@pytest.mark.parametrize("ends", [False, True])
def test_it_is_saved_and_read(ends: bool, tmp_path: Path) -> None:
    made = PRIOR.tokenizer(ends)
    made.save_pretrained(tmp_path)
    read = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for line in ("le chat xyzzy .", "a<unk>b\x1cle", "", "▁le ##s Ġc ch@@ at </s>"):
        assert read(line).input_ids == made(line).input_ids
        assert read.decode(made(line).input_ids) == made.decode(made(line).input_ids)
    assert read.bos_token_id == read.eos_token_id == HEAD.eos and read.pad_token_id == HEAD.pad


@pytest.mark.parametrize("words", [[], ["madeupword0000"], ["\u2028".join("ab")]])
def test_small_and_odd_dictionaries(words: list[str]) -> None:
    prior: Prior = build_prior(["<s>", "<pad>", "</s>", "<unk>", "a", *words], Recipe(top_words="all"))
    assert prior.tokenizer()("a b a").input_ids == [2, 4, 3, 4]


def test_without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, *arguments: Any) -> ModuleType:
        if name == "transformers":
            raise ModuleNotFoundError(name)
        return import_module(name, *arguments)

    monkeypatch.setattr(errors, "import_module", absent)
    with pytest.raises(OptionError, match="Prior.tokenizer: expected the library transformers, found none; in"):
        PRIOR.tokenizer()
