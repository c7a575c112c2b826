"""The automaton of a prior: round trip, rejected files, and the definitions of floors and temperatures."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import positions
import pytest
import torch
from automata import from_states

from fairseq_llrnn.automata.automaton import END, NOTHING, ROOT, Automaton
from fairseq_llrnn.backgrounds.automaton_background import AutomatonBackground
from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.prior.base_prior import plain_prior
from fairseq_llrnn.prior.parts.automaton_part import FLOOR, AutomatonPart, floored
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe

SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", "le", "la", "maison", "chat")
COUNTS = np.array([0, 0, 5, 1, 9, 8, 3, 2])
LE, LA, MAISON, CHAT = range(4, 8)
# le chat | la maison, over and over
GRAMMAR = from_states(
    [
        {LE: (math.log(0.5), 1), LA: (math.log(0.5), 2)},
        {CHAT: (0.0, 3)},
        {MAISON: (0.0, 3)},
        {END: (math.log(0.25), 0), LE: (math.log(0.5), 1), LA: (math.log(0.25), 2)},
    ],
    len(SYMBOLS),
)
# after `le`, `chat` is likely; all else as the root has it
NGRAM = from_states(
    [{}, {CHAT: (math.log(0.9), 0)}], len(SYMBOLS), fail=[ROOT, ROOT], back_off=[0.0, math.log(0.1)],
    root_next=[-1, -1, 0, 0, 1, 0, 0, 0], memory=1,
)  # fmt: skip


def prior(automaton: Automaton = GRAMMAR, kind: str = "automaton") -> Prior:
    plain = plain_prior(WordList(SYMBOLS, COUNTS), COUNTS, Lexicon(), Recipe(top_words=2))[0]
    return plain.with_part(AutomatonPart(automaton, kind, 0.5, 2.0, "skip"))


def test_counts_are_of_one_model(tmp_path: Path) -> None:
    twice = replace(
        NGRAM, starts=np.array([0, 2]), offsets=np.array([0, 0, 1, 1, 1]), fail=np.full(4, ROOT), back_off=np.zeros(4)
    )
    counts = prior(twice).counts()
    assert (counts["automaton states"], counts["automaton arcs"], counts["cross-fitted folds"]) == (2, 1, 1)


def test_the_fingerprint_knows_every_weight() -> None:
    heavier = replace(GRAMMAR, log_weights=GRAMMAR.log_weights + 0.1)
    assert prior(heavier).fingerprint != prior().fingerprint


@pytest.mark.parametrize(
    "damage, words",
    [
        ({"made_from": "magic"}, "described by something else"),
        ({"on_zero": 3}, "described by something else"),
        ({"weight": None}, "described by something else"),
        ({"memory": True}, "described by something else"),
        ({"memory": 1}, "claims a memory of 1"),
    ],
)
def test_a_damaged_description_is_refused(tmp_path: Path, damage: dict[str, object], words: str) -> None:
    prior().save(tmp_path / "prior")
    path = tmp_path / "prior" / "prior.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    described["parts"][0] |= damage
    path.write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(PriorError, match=words):
        Prior.load(tmp_path / "prior")


def test_an_unsound_automaton_is_refused(tmp_path: Path) -> None:
    prior(replace(GRAMMAR, nexts=GRAMMAR.nexts + 9)).save(tmp_path / "prior")
    with pytest.raises(PriorError, match="nexts name a state outside 0 … 3; build it again"):
        Prior.load(tmp_path / "prior")


def test_a_state_that_allows_nothing_is_refused(tmp_path: Path) -> None:
    dead = from_states([{LE: (0.0, 1), END: (0.0, 0)}, {}], len(SYMBOLS))
    prior(dead).save(tmp_path / "prior")
    with pytest.raises(PriorError, match="the automaton allows no word in state 1"):
        Prior.load(tmp_path / "prior")


def weights(automaton: Automaton, log_weights: np.ndarray) -> torch.Tensor:
    """Return b(q, x) of all states: (Q, V)."""
    class_of = torch.arange(len(log_weights))
    background = AutomatonBackground(class_of, len(log_weights), torch.from_numpy(log_weights), automaton).bind()
    return background.view(torch.arange(automaton.num_states).unsqueeze(1)).log_weights.exp()


@pytest.mark.parametrize("automaton", [GRAMMAR, NGRAM])
def test_a_temperature_is_a_power_of_every_weight(automaton: Automaton) -> None:
    root = prior().log_weights
    expected = weights(automaton, root) ** (1 / 1.5)
    torch.testing.assert_close(weights(automaton.tempered(1.5), root / 1.5), expected)


def test_a_floor_lets_everything_pass_and_changes_nothing_else() -> None:
    root = prior().log_weights
    made = floored(GRAMMAR, root)
    made.check(root)
    before, after = weights(GRAMMAR, root), weights(made, root)
    allowed = before > 0
    torch.testing.assert_close(after[:-1][allowed], before[allowed])
    expected = FLOOR * torch.from_numpy(root).exp().expand_as(before)
    torch.testing.assert_close(after[:-1][~allowed], expected[~allowed])
    torch.testing.assert_close(after[-1], torch.from_numpy(root).exp())
    # a sentence outside the grammar goes on in the state where all is as the root has it, and ends in the start
    background = AutomatonBackground(torch.arange(8), 8, torch.from_numpy(root), made).bind()
    states = torch.cat(positions.states(background, torch.tensor([[END, LE, LA, CHAT, END, LE]])))
    assert states.flatten().tolist() == [0, 1, GRAMMAR.num_states, GRAMMAR.num_states, 0, 1]
    assert (made.fail != NOTHING).all()
