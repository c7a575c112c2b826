"""Errors of a head's inputs and weights: what they find, and every part of their messages."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from few_words import PRIOR as EVIDENCE
from few_words import SOURCE_WORDS
from small_priors import make_prior
from torch import Tensor

from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import SHIFT
from fairseq_llrnn.files.numbers import LARGEST_PARAMETER
from fairseq_llrnn.head import FeatureInput, LogLinearHead, checks
from fairseq_llrnn.output.sampled import Sampled
from fairseq_llrnn.prior import Recipe

PAD, EOS = 1, 2
MARK = 3 << SHIFT


def raises(error: type[Exception], message: str) -> Any:
    """Expect an error with exactly this message."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize(
    ("weight", "expected", "found"),
    [
        ([1.0, -2 * LARGEST_PARAMETER], f"weights up to {LARGEST_PARAMETER:,.0f}", f"{2 * LARGEST_PARAMETER:.3g}"),
        ([1.0, torch.nan], "finite weights", "NaN or infinity"),
        ([-torch.inf, 1.0], "finite weights", "NaN or infinity"),
    ],
)
def test_weights_that_diverged(weight: list[float], expected: str, found: str) -> None:
    weights = {"fine": torch.tensor([LARGEST_PARAMETER, -1.0]), "bad": torch.tensor(weight)}
    message = (
        f"expected {expected}, found {found} in bad: the training diverged; use an earlier checkpoint, and train with "
        "a smaller --lr or with --clip-norm"
    )
    with raises(DataError, f"the checkpoint: {message}"):
        checks.check_numbers(weights)
    with raises(DataError, f"c.pt: {message}"):
        checks.check_numbers(weights, "c.pt")


def test_weights_that_are_no_numbers_are_left_to_torch() -> None:
    many = torch.tensor([10**12])
    checks.check_numbers({"absent": None, "empty": torch.empty(0), "whole": many, "text": "x", "fine": torch.ones(2)})


class TestNames:
    """Modules of the checkpoint, and of the head."""

    plain = LogLinearHead(make_prior(), 3)
    tempered = LogLinearHead(make_prior(Recipe(top_words=2)), 3)
    tempered._modules["temperature"] = torch.nn.Linear(2, 2)

    @staticmethod
    def weights_of(head: LogLinearHead, *more: str) -> dict[str, Tensor]:
        return {f"head.{name}": torch.zeros(1) for name in (*head.state_dict(), *more)}

    def check(self, head: LogLinearHead, weights: dict[str, Tensor], **options: str) -> None:
        checks.check_names(head, ["temperature", "embedding"], weights, "head.", options)

    def test_equal_ones_pass(self) -> None:
        for head in (self.plain, self.tempered):
            self.check(head, self.weights_of(head))
            self.check(head, {**self.weights_of(head), "decoder.temperature.weight": torch.zeros(1)})
        self.check(self.tempered, {}), self.check(self.tempered, {"decoder.weight": torch.zeros(1)})

    def test_a_missing_one_is_named_by_its_option(self) -> None:
        weights = self.weights_of(self.plain, "temperature.weight", "temperature.bias")
        message = "with which the checkpoint was trained; add it, with the same sizes"
        with raises(OptionError, f"temperature: expected this option, {message}"):
            self.check(self.plain, weights)
        with raises(OptionError, f"--t: expected X, {message}"):
            self.check(self.plain, weights, temperature="--t: expected X")

    def test_one_too_many_is_named_by_its_option(self) -> None:
        message = "expected none, as the checkpoint was trained without it; leave it out"
        with raises(OptionError, f"temperature: {message}"):
            self.check(self.tempered, self.weights_of(self.plain))
        with raises(OptionError, f"--t: {message}"):
            self.check(self.tempered, self.weights_of(self.plain), temperature="--t: expected X")

    def test_embeddings_may_have_no_weights(self) -> None:
        self.check(self.plain, self.weights_of(self.plain, "embedding.weight"))
        own = LogLinearHead(make_prior(), 3, embedding=FeatureInput(2))
        self.check(own, self.weights_of(self.plain))

    def test_one_of_a_deleted_system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checks, "lost", lambda name: f"{name} was deleted" if name == "tree" else None)
        with raises(OptionError, "the checkpoint was trained with `tree`: tree was deleted"):
            self.check(self.plain, self.weights_of(self.plain, "tree.weight"), tree="--tree: expected X")


def test_fingerprints() -> None:
    prior = make_prior()
    own = checks.fingerprint_of(prior)
    assert own.dtype == torch.float32 and own.shape == (32,) and checks.in_hex(own) == prior.fingerprint
    assert checks.in_hex(torch.tensor([0.0, 9.6, 255.0])) == "000aff", "an average that was rounded"
    assert checks.in_hex(torch.zeros(checks.MOST_BYTES)) == "00" * 64
    checks.check_fingerprint(own, None, "place")
    checks.check_fingerprint(own, own.double(), "place")
    other = own.flip(0)
    for folder, option, given in (("place", "prior", "place"), (None, "source prior", "the one given")):
        message = (
            f"the checkpoint was trained with another {option} than {given} (fingerprints {checks.in_hex(other)[:12]}… "
            f"and {prior.fingerprint[:12]}…); to train from scratch, set another --save-dir; to use the checkpoint, "
            f"pass the {option} of its training with --{option.replace(' ', '-')}"
        )
        with raises(PriorError, message):
            checks.check_fingerprint(own, other, folder, option)
    for saved, shown in (
        ("text", "str"),
        (torch.zeros(2, 3), "the shape (2, 3)"),
        (torch.zeros(65), "the shape (65,)"),
    ):
        message = f"the checkpoint: expected up to 64 numbers as the fingerprint of its prior, found {shown}; use a "
        with raises(DataError, f"{message}checkpoint that fairseq saved"):
            checks.in_hex(saved)


def test_the_first_forbidden_word() -> None:
    words = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 4, 5, 6, 7, EOS], [4, 5, EOS, *[PAD] * 9]])
    log_prob = torch.zeros(words.shape)
    log_prob[1, 3:] = -torch.inf  # padding
    assert checks.first_forbidden(log_prob, words, PAD) is None
    log_prob[1, 1] = log_prob[1, 2] = -torch.inf
    found = checks.first_forbidden(log_prob, words, PAD)
    assert found is not None
    assert (found.row, found.position, found.token, found.count) == (1, 2, 5, 2)
    assert found.around.tolist() == [4, 5, EOS]
    log_prob[0, 6] = -torch.inf
    found = checks.first_forbidden(log_prob, words, PAD)
    assert found is not None
    assert (found.row, found.position, found.token, found.count) == (0, 7, 11, 3)
    assert found.around.tolist() == [6, 7, 8, 9, 10, 11, 4, 5, 6], "five before, three after"


@pytest.mark.parametrize("ids", [None, torch.tensor([40, 41]), torch.tensor([40])])
def test_a_forbidden_target_is_named_with_its_place(ids: Tensor | None) -> None:
    head = LogLinearHead(make_prior(), 3)
    targets, log_prob = torch.tensor([[4, 8, EOS], [5, 99, EOS]]), torch.zeros(2, 3)
    checks.check_allowed(head, log_prob, targets, ids)
    log_prob[1, 1] = log_prob[0, 2] = -torch.inf
    for row, word, text in ((1, "<unk>", "la <unk>"), (0, "</s>", "le chat")):
        only = log_prob.clone()
        only[1 - row] = 0.0
        place = "" if ids is None or len(ids) == 1 else f"at position {3 - row} of sample {41 + row}, "
        message = f"the background gives word {word!r} no mass, but it is the target {place}in {text!r} (1 such "
        for arguments, fix in (((), checks.FIX_ZERO_MASS), (("fix it",), "fix it")):
            with raises(DataError, f"{message}targets in this batch); {fix}"):
                checks.check_allowed(head, only, targets, ids, *arguments)


def test_token_ids() -> None:
    head = LogLinearHead(make_prior(), 3)
    checks.check_token_ids(head, tokens=torch.tensor([0, 11]), others=torch.tensor([], dtype=torch.long))
    with raises(DataError, "others: expected token ids from 0 to 11, found 12; encode texts with head.encode, or with "
                           "the dictionary of the prior"):  # fmt: skip
        checks.check_token_ids(head, tokens=torch.tensor([0]), others=torch.tensor([4, 12, -1]))
    for token in (-1, -100):
        with raises(DataError, f"tokens: expected token ids from 0 to 11, found {token}; to leave positions out of the "
                               "loss, set their targets to padding, head.pad (1)"):  # fmt: skip
            checks.check_token_ids(head, tokens=torch.tensor([0, token, 12]))


def test_source_ids() -> None:
    prior = replace(EVIDENCE)
    end = len(SOURCE_WORDS)
    checks.check_source_ids(prior, torch.tensor([[0, end - 1, MARK + 5]]))
    for wrong, shown in ((end, end), (-1, -1), (MARK + end, end)):
        with raises(DataError, f"source: expected ids of source words, from 0 to {end - 1}, found {shown}; encode "
                               "sources with encode_source of a head that has this prior object"):  # fmt: skip
            checks.check_source_ids(prior, torch.tensor([[0, wrong, 77]]))


def test_rows() -> None:
    checks.check_rows((1, 1), "tokens", "sentences", source=None, states=torch.zeros(1, 4))
    for shape in ((0, 2), (2, 0)):
        with raises(DataError, f"LogLinearHead: expected at least one of tokens (B, T), found {shape}; leave empty "
                               "batches out (an empty sentence is `</s>` alone)"):  # fmt: skip
            checks.check_rows(shape, "tokens (B, T)", "sentences")
    with raises(DataError, "states: expected a row for each of 2,000 sentences, found 3,000; repeat or select its rows "
                           "like these"):  # fmt: skip
        checks.check_rows((2000, 1), "tokens", "sentences", source=torch.zeros(2000), states=torch.zeros(3000))


@pytest.mark.parametrize("options", [{}, {"normaliser": Sampled(3)}])
def test_a_head_checks_all_of_these_when_it_is_loaded(options: dict[str, Any]) -> None:
    prior = make_prior(Recipe(top_words=2))
    head = LogLinearHead(prior, 3, **options)
    saved = head.state_dict()
    with raises(DataError, "the checkpoint: expected finite weights, found NaN or infinity in output.bias: the "
                           "training diverged; use an earlier checkpoint, and train with a smaller --lr or with "
                           "--clip-norm"):  # fmt: skip
        head.load_state_dict(saved | {"output.bias": saved["output.bias"] + torch.nan})
    with raises(OptionError, "--x: expected X, with which the checkpoint was trained; add it, with the same sizes"):
        head.check_weights(saved | {"x.weight": torch.zeros(1)}, "", {"x": "--x: expected X"})
