"""Which words experts of a prior know, with evidence, an open vocabulary, and without a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from few_words import EOS, PAD, PRIOR, SOURCE_WORDS, TARGET_WORDS
from small_priors import SYMBOLS
from torch import Tensor

from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.output.context_classes import layers_of
from fairseq_llrnn.prior import OpenOptions, Recipe
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.systems.experts.expert import Expert, Firing
from fairseq_llrnn.systems.experts.features import experts_of
from fairseq_llrnn.systems.experts.loading import load_experts, open_experts
from fairseq_llrnn.testing import check_class_features


class Names(Expert):
    """Singles out the words that it is asked about, and two more."""

    looks_at_prefix = True

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        return Firing(exceptions={word: 1.0 for word in (*source, *prefix, "zèbre", "<unk>")})


def test_files_import_their_base_also_from_where_it_was(tmp_path: Path) -> None:
    for name, place in (("new", "systems.experts"), ("old", "experts")):
        text = f"from fairseq_llrnn.{place}.expert import Expert\nclass Mine(Expert):\n    pass\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    found = load_experts(f"{tmp_path}/new.py:Mine,{tmp_path}/old.py:Mine")
    assert all(isinstance(one, Expert) for one in found) and len(found) == 2


def test_words_of_the_dictionary_alone() -> None:
    panel = open_experts([Names()], replace(PRIOR))
    assert set(panel.ask((), ("deux",)).exceptions) == {TARGET_WORDS.index("deux"), 3}
    assert panel.names == ("Names",) and panel.looks_at_prefix
    assert (panel.eos, panel.pad, panel.ignored) == (EOS, PAD, frozenset())


def test_with_a_source_any_string_may_be_evidence() -> None:
    prior = replace(PRIOR)
    panel = open_experts([Names()], prior, SOURCE_WORDS.__getitem__)
    found = panel.ask(("12",), ()).exceptions
    assert set(found) == {TARGET_WORDS.index("12"), 3, prior.session.target.index("zèbre")}
    assert panel.ignored == {0, PAD, EOS}


def test_unknown_words_of_an_open_vocabulary_are_many() -> None:
    counts = np.array([0, 0, 9, 1, *range(9, 1, -1)])
    prior = build_prior(SYMBOLS, Recipe(counts=counts, top_words=2, open_vocabulary=OpenOptions(types=1)))
    assert set(open_experts([Names()], prior).ask((), ("le",)).exceptions) == {SYMBOLS.index("le")}


def a_batch(expert: Expert) -> tuple[LogLinearHead, Tensor, Tensor, Tensor]:
    """A head with that expert, hidden states, targets (1, 5), and log p of all words, which sum to one."""
    prior = build_prior(SYMBOLS, Recipe(counts=np.array([0, 0, 9, 1, *range(9, 1, -1)]), top_words=2))
    head = LogLinearHead(prior, 4, classes=[experts_of(open_experts([expert], prior))])
    torch.manual_seed(1)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    targets, hidden = head.encode(["le chat la vache"]), torch.randn(1, 5, 4)
    whole = head.eval().log_probs(hidden, previous=head.previous(targets))
    torch.testing.assert_close(whole.exp().sum(-1), torch.ones(1, 5))
    return head, hidden, targets, whole


def test_exceptions_have_the_features_of_their_words() -> None:
    head, hidden, targets, _ = a_batch(Names())
    phi = check_class_features(head.double(), hidden.double(), targets)["experts"]
    batch = head.batch(hidden.double(), head.bind(head.previous(targets)))
    (layer,) = layers_of(batch.view)
    words = layer.source.words(layer.contexts)  # shape: (T, J)
    features = head.prior.output.features
    for place, word in (words >= 0).nonzero().tolist():
        row = features.row(int(head.output.class_of[words[place, word]]))
        expected = torch.zeros(features.num_features, dtype=torch.float64)
        expected[[features.index[name] for name in row]] = torch.tensor([*row.values()], dtype=torch.float64)
        torch.testing.assert_close(phi[place, word], expected)
    assert (words >= 0).sum() > 4


def test_a_head_with_experts_trains_and_searches() -> None:
    head, hidden, targets, whole = a_batch(Names())
    nats = head.loss(hidden, targets, reduction="sum").item()
    assert abs(nats + whole[0].gather(1, targets[0].unsqueeze(1)).sum().item()) < 1e-4
    state = head.advance(head.start(1), targets[:, :2])
    values, tokens = head.top_k(hidden[:, 2], state, k=3)
    torch.testing.assert_close(values[0], whole[0, 2][tokens[0]])


class SaidBefore(Expert):
    """Has nothing to say of the first word."""

    looks_at_prefix = True

    def fires(self, source: Sequence[str], prefix: Sequence[str]) -> Firing:
        return Firing(exceptions={word: 1.0 for word in prefix[-2:]})


def test_exceptions_that_only_later_words_have() -> None:
    head, hidden, targets, whole = a_batch(SaidBefore())
    losses = head.loss(hidden, targets, reduction="none")
    torch.testing.assert_close(losses, -whole.gather(2, targets.unsqueeze(2)).squeeze(2))
