"""Texts with sources and terms as token ids, and embeddings of words and strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from few_words import PRIOR as EVIDENCE
from few_words import SOURCE_WORDS, TARGET_WORDS, UNK
from small_priors import SYMBOLS, make_prior, open_prior, random_head
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SHIFT
from fairseq_llrnn.head import FeatureInput, LogLinearHead
from fairseq_llrnn.prior import Recipe

H = 3


class Terms:
    """Marks the tokens that the cells after a sentence name."""

    def marked(self, source: Sequence[int], cells: Sequence[str]) -> Sequence[int]:
        named = {SOURCE_WORDS.index(cell) for cell in cells}
        return [token + (token in named) * (1 << SHIFT) for token in source]


def test_terms_are_marked_in_sources() -> None:
    head = LogLinearHead(replace(EVIDENCE), H, source_size=2)
    two, dog, mark = SOURCE_WORDS.index("two"), SOURCE_WORDS.index("dog"), 1 << SHIFT
    found = head.encode_source(["two dog\tdog", "dog\t12\tdog", "two two dog"], Terms())
    assert found.tolist() == [[two, dog + mark, 2, 1], [dog + mark, 2, 1, 1], [two, two, dog, 2]]
    assert head.encode_source(["two dog", "dog"]).tolist() == [[two, dog, 2], [dog, 2, 1]]
    assert head.encode_source([], Terms()).shape == (0, 0)


def message(text: str) -> str:
    return f"^{re.escape(text)}$"


def test_what_a_language_model_lacks() -> None:
    head = LogLinearHead(make_prior(), H)
    with pytest.raises(DataError, match="^encode_source needs a prior with source words; build it with translations"):
        head.encode_source(["two"])
    said = "expected tokens (B, T) as a tensor, found a list; use torch.tensor"
    with pytest.raises(TypeError, match=message(said)):
        head.decode([[4]])  # type: ignore[arg-type]


def test_a_line_that_is_no_list_is_shown_in_part() -> None:
    head, line = LogLinearHead(make_prior(), H), "x" * 50
    said = f"expected a list of sentences, found the string {line[:40]!r}; put it into a list"
    with pytest.raises(TypeError, match=message(said)):
        head.encode(line)
    said = f"expected sentences as strings, found {[line] * 2!r:.60}; join the words with blanks"
    with pytest.raises(TypeError, match=message(said)):
        head.encode(["le", [line] * 2, 3])  # type: ignore[list-item]


def test_decoding_stops_at_the_end() -> None:
    head = LogLinearHead(make_prior(), H)
    assert head.decode(torch.tensor([[2, 4, 2, 5], [4, 1, 5, 1], [2, 2, 4, 4], [1, 2, 4, 4]])) == [
        "le",
        "le la",
        "",
        "",
    ]
    assert head.decode(torch.empty(1, 0, dtype=torch.long)) == [""]


# ---- embeddings -----------------------------------------------------------------------------------------------------


def phi_of(head: LogLinearHead) -> Tensor:
    """ψ of all words, (V, G), dense."""
    embedding: Any = head.embedding
    return embedding.rows.dense().double()[embedding.class_of]


def test_embeddings_and_their_rows() -> None:
    head = random_head(make_prior(), embedding=FeatureInput(2))
    embedding: Any = head.embedding
    assert sorted(head.state_dict()) == ["embedding.weight", "output.bias", "output.weight", "prior_fingerprint"]
    assert head.embed_size == 2 and embedding.num_words == 12 and embedding.weight.shape[1] == 2
    every = phi_of(head) @ embedding.weight
    tokens = torch.tensor([[4, 11, 0], [3, 12, 99]])
    expected = every[torch.tensor([[4, 11, 0], [3, 3, 3]])]
    for table in (None, head.embedding_rows()):
        torch.testing.assert_close(head.embed(tokens, table), expected)
    (dense,) = torch.autograd.grad(head.embed(tokens).square().sum(), embedding.weight)
    embedding.sparse_gradients = True
    assert head.embedding_rows() is None
    (sparse,) = torch.autograd.grad(head.embed(tokens).square().sum(), embedding.weight)
    assert sparse.is_sparse and not dense.is_sparse
    torch.testing.assert_close(sparse.to_dense(), dense)
    with torch.no_grad():
        torch.testing.assert_close(head.embedding_rows(), embedding.rows.dense().double() @ embedding.weight)
        torch.testing.assert_close(head.embed(tokens), expected)
        torch.testing.assert_close(head.embed(tokens[:, :1]), expected[:, :1])


def test_strings_of_an_open_vocabulary_are_read_by_their_features() -> None:
    head = random_head(open_prior(), embedding=FeatureInput(2))
    embedding: Any = head.embedding
    tokens = head.encode(["le zèbre ZOÉ"])
    read = head.bind(head.previous(tokens)).input_ids
    assert read[0, 1] == SYMBOLS.index("le") and read[0, 2] >= len(SYMBOLS)
    every = phi_of(head) @ embedding.weight
    torch.testing.assert_close(head.embed(read), every[read])
    assert not torch.equal(every[read[0, 2]], every[UNK]), "not as <unk>"
    state = head.start(1)
    assert torch.equal(head.to_input_ids(head.previous(tokens), state), read)
    assert torch.equal(embedding.to_input_ids(tokens[:, :1], tokens[:, :1]), tokens[:, :1])


def test_strings_of_a_source_are_read_as_unk() -> None:
    head = LogLinearHead(replace(EVIDENCE), H, source_size=2, embedding=FeatureInput(2))
    source = head.encode_source(["Zoé dog 12"])
    tokens = head.encode(["Zoé chien Ann 12"])
    state = head.start(1, source=source, source_states=torch.zeros(*source.shape, 2))
    chien, ann, twelve = (TARGET_WORDS.index(word) for word in ("chien", "Ann", "12"))
    assert tokens[0, 0] >= len(TARGET_WORDS)
    assert head.to_input_ids(tokens, state).tolist() == [[UNK, chien, ann, twelve, 2]]
    assert head.bind(head.previous(tokens), source).input_ids.tolist() == [[2, UNK, chien, ann, twelve]]
    plain_head = LogLinearHead(make_prior(), H)
    assert plain_head.to_input_ids(torch.tensor([[4, 99]]), plain_head.start(1)).tolist() == [[4, 3]]


def test_tied_embeddings_need_the_same_features() -> None:
    prior = make_prior(Recipe(top_words=2, input_top_words="all"))
    said = (
        "FeatureInput: tied: the prior has other features in the input than in the output; build it without input "
        "features, or do not tie"
    )
    with pytest.raises(OptionError, match=message(said)):
        LogLinearHead(prior, H, embedding=FeatureInput(H, tied=True))
    assert LogLinearHead(prior, H, embedding=FeatureInput(H)).embedding is not None


def test_embeddings_have_the_given_size_of_elements() -> None:
    torch.manual_seed(1)
    head = LogLinearHead(make_prior(), H, embedding=FeatureInput(40, row_rms=0.3))
    rows = head.embedding_rows()
    assert rows is not None and float(rows.detach().square().mean().sqrt()) == pytest.approx(0.3, rel=1e-3)
    head = LogLinearHead(make_prior(), H, embedding=FeatureInput(40))
    weight = head.embedding.weight  # type: ignore[union-attr]
    assert 0.09 < float(weight.detach().abs().max()) <= 0.1, "U(−0.1, 0.1)"
