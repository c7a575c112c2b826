"""Text as numbers, and back: known words, `<unk>`, and strings that an open vocabulary or evidence numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from few_words import PRIOR as EVIDENCE
from few_words import SOURCE_WORDS, TARGET_WORDS
from small_priors import make_prior, open_prior
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.head import LogLinearHead

H = 3


def test_words_of_the_dictionary_and_padding() -> None:
    head = LogLinearHead(make_prior(), H)
    tokens = head.encode(["le chat", "", "la zèbre maison"])
    assert tokens.tolist() == [[4, 8, 2, 1], [2, 1, 1, 1], [5, 3, 6, 2]]
    assert head.decode(tokens) == ["le chat", "", "la <unk> maison"]
    assert head.decode(head.previous(tokens)) == ["le chat", "", "la <unk> maison"], "the first </s> is none of them"
    assert head.decode(torch.tensor([[4, 8], [2, 4]])) == ["le chat", "le"], "cut off"
    assert head.encode([]).shape == (0, 0)
    assert head.encode(line for line in ["le", "la"]).tolist() == [[4, 2], [5, 2]]
    assert head.double().encode(["le"]).dtype == torch.int64


def test_one_sentence_is_no_list_of_sentences() -> None:
    head = LogLinearHead(replace(EVIDENCE), H, source_size=2)
    for encode in (head.encode, head.encode_source):
        with pytest.raises(TypeError, match="expected a list of sentences, found the string 'le chat'; put it"):
            encode("le chat")
    with pytest.raises(DataError, match=r"expected tokens \(B, T\), found \(2,\); for one sentence pass tokens"):
        head.decode(torch.tensor([4, 2]))


def test_what_another_loss_or_search_would_take() -> None:
    """torch's losses leave −100 out, where an index of −100 would be a word from the end."""
    head, hidden = LogLinearHead(make_prior(), H), torch.randn(1, 3, H)
    with pytest.raises(DataError, match=r"targets: expected token ids .* found -100; .* head.pad \(1\)"):
        head.loss(hidden, torch.tensor([[4, 2, -100]]))
    assert head.loss(hidden, torch.tensor([[4, 2, head.pad]])).isfinite()
    known, own = torch.tensor([[4, 2, 1]]), r"from 0 to 11, found 50,256; encode texts with head.encode"
    other = torch.tensor([[4, 50256, 2]])  # of another dictionary
    for name, ask in (
        ("targets", lambda: head.loss(hidden, other)),
        ("previous", lambda: head.loss(hidden, known, previous=other)),
        ("previous", lambda: head.log_probs(hidden, previous=other)),
        ("tokens", lambda: head.decode(other)),
    ):
        with pytest.raises(DataError, match=rf"{name}: expected token ids {own}"):
            ask()
    with pytest.raises(DataError, match="tokens: expected token ids from 0 to 11, found -1"):
        head.decode(torch.tensor([[4, -1]]))
    states = torch.nn.LSTM(2, H, batch_first=True)(torch.randn(1, 3, 2))
    for ask in (lambda: head.loss(states, known), lambda: head.log_probs(states)):  # type: ignore[arg-type]
        with pytest.raises(DataError, match=r"expected hidden states \(B, T, 3\), found a tuple; .*torch's LSTM"):
            ask()
    with pytest.raises(DataError, match=rf"top_k: expected .* \(N, {H}\), found \(1, 3, {H}\); .* hidden\[:, -1\]"):
        head.top_k(hidden, head.start(1), k=2)
    row, two = "a row for each of the 1 hypotheses of the state, found 2; .* head.start", hidden[0, :2]
    for name, ask in (
        ("step", lambda: head.top_k(two, head.start(1), k=2)),
        ("step", lambda: head.step(two, head.start(1))),
        ("advance", lambda: head.advance(head.start(1), torch.tensor([4, 5]))),
    ):
        with pytest.raises(DataError, match=f"{name}: expected {row}"):
            ask()
    with pytest.raises(OptionError, match="k 0: expected a number of at least 1"):
        head.top_k(hidden[:, -1], head.start(1), k=0)
    with pytest.raises(OptionError, match=r"k 2\.5: expected a whole number of at least 1"):
        head.top_k(hidden[:, -1], head.start(1), k=2.5)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"expected at least one of hypotheses \(N,\), found \(-1,\)"):
        head.start(-1)
    for states, tokens, said in (
        (hidden[0], known[0], rf"expected hidden states \(B, T, {H}\), found \(3, {H}\)"),
        (hidden, known[0, :2], r"expected tokens \(B, T\) = \(1, 3\), .* found \(1, 2\)"),
    ):
        with pytest.raises(DataError, match=said):
            head.explain(states, tokens)
    for size in (0, -3, 2.5, "8"):
        with pytest.raises(OptionError, match=f"hidden_size {size!r}: expected a whole number of at least 1"):
            LogLinearHead(make_prior(), size)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="found the path 'my-prior'; read it with Prior.load"):
        LogLinearHead("my-prior", H)  # type: ignore[arg-type]
    for option, wrong in (("embedding", torch.nn.Embedding(12, H)), ("mass_change", True), ("normaliser", "sampled")):
        with pytest.raises(TypeError, match=f"{option}: expected a function that makes a module for the head"):
            LogLinearHead(make_prior(), H, **{option: wrong})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected sentences as strings, found \['le', 'chat'\]; join"):
        head.encode([["le", "chat"]])  # type: ignore[list-item]


def test_strings_of_an_open_vocabulary_keep_their_numbers() -> None:
    head = LogLinearHead(open_prior(), H)
    first = head.encode(["le zèbre", "zoé le zèbre"])
    assert first.tolist() == [[4, 12, 2, 1], [13, 4, 12, 2]]
    assert head.encode(["zoé"]).tolist() == [[13, 2]]
    assert head.decode(first) == ["le zèbre", "zoé le zèbre"]
    assert head.eval().loss(torch.randn(2, 4, H), first).isfinite()


class _Encoded(Dataset[Tensor]):
    def __init__(self, encode: Callable[[list[str]], Tensor], lines: list[str]) -> None:
        self.encode, self.lines = encode, lines

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, place: int) -> Tensor:
        return self.encode([self.lines[place]])[0]


def test_a_string_gets_no_number_in_a_worker_of_a_loader() -> None:
    """It would be known there alone, and stand for another string here."""
    head = LogLinearHead(open_prior(), H)
    other = LogLinearHead(replace(EVIDENCE), H, source_size=2)
    for encode, line in ((head.encode, "le zèbre"), (other.encode_source, "dog 4072"), (other.encode, "chien 4073")):
        loader = DataLoader(_Encoded(encode, [line]), num_workers=1, batch_size=None)
        with pytest.raises(DataError, match=f"'{line.split()[1]}' would get a token id in a worker of a DataLoader"):
            list(loader)
        encode([line])
        assert [tokens.tolist() for tokens in loader] == [encode([line])[0].tolist()]


def test_source_words_are_numbered_where_they_are_evidence() -> None:
    prior = replace(EVIDENCE)  # no string has a number yet
    head = LogLinearHead(prior, H, source_size=2).eval()
    source, target = head.encode_source(["dog 4071 ,", "Zoé"]), head.encode(["chien 4071", "Zoé"])
    known = len(SOURCE_WORDS)
    assert source[0, 0] == SOURCE_WORDS.index("dog") and source[0, 1] >= known and source[1, 0] >= known
    assert source[0, 2] == SOURCE_WORDS.index("<unk>"), "no evidence"
    assert target[0, 1] >= len(TARGET_WORDS) and head.decode(target) == ["chien 4071", "Zoé"]
    state = head.start(2, source=source, source_states=torch.zeros(*source.shape, 2))
    _, best = head.top_k(torch.zeros(2, H), state, k=len(TARGET_WORDS))
    assert target[0, 1] in best[0] and target[1, 0] in best[1] and target[0, 1] not in best[1]
    plain = LogLinearHead(prior, H)  # a language model has no use for them
    assert plain.encode(["Zoé"]).tolist() == [[3, 2]]
