"""A field as the background of a prior: laws, files, `llrnn prior --background mrf:DIR`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import positions
import pytest
import torch
from field_oracles import random_potentials

from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.testing import check_background
from llrnn_research.markov_field.background import MarkovBackground
from llrnn_research.markov_field.model import MarkovField
from llrnn_research.markov_field.part import MarkovFieldPart

SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", *"le la un une chat mer voit vert licorne".split()]


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("order", [1, 2])
def test_it_obeys_the_laws_of_backgrounds(order: int, width: int) -> None:
    field = random_potentials(4, order, width=width)
    row_of, share = torch.tensor([0, 0, 1, 2, 2, 3]), torch.tensor([-0.7, -0.7, 0.0, -0.7, -0.7, -torch.inf]).double()
    check_background(MarkovBackground(torch.tensor([0, 1, 1, 2, 2, 3]), 4, row_of, share, field, 0))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_sentence_begins_anew_behind_the_end_of_another(order: int) -> None:
    """The field is trained with as many separators between sentences."""
    row_of, share = torch.tensor([0, 0, 1, 2, 2, 3]), torch.zeros(6).double()
    background = MarkovBackground(row_of, 4, row_of, share, random_potentials(4, order), 1)
    state = background.start(1)
    for token in (3, 5, 4):
        state = background.advance(state, torch.tensor([token]))
    assert torch.equal(background.advance(state, torch.tensor([2])), background.start(1))


def built(field_folder: Path, expression: str) -> Prior:
    return build_prior(SYMBOLS, Recipe(counts=np.arange(1, len(SYMBOLS) + 1), background=expression))


def test_it_says_what_the_field_says_from_left_to_right(field_folder: Path) -> None:
    field = MarkovField.load(str(field_folder))
    background = built(field_folder, f"mrf:{field_folder}").background()
    words = ["le", "chat", "voit"]
    tokens = torch.tensor([[2, *map(SYMBOLS.index, words)]])
    states = positions.states(background, tokens)
    found = [background.view(states[i]).log_weights[0, SYMBOLS.index(word)].item() for i, word in enumerate(words)]
    found.append(background.view(states[3]).log_weights[0, 2].item())
    score = field.score(field.words.text_of([words]))
    assert sum(found) == pytest.approx(score.left_to_right, abs=1e-4)


def test_words_that_the_field_lacks_share_with_unk(field_folder: Path) -> None:
    background = built(field_folder, f"mrf:{field_folder}").background()
    weights = background.view(background.start(1)).log_weights[0]
    known = set(MarkovField.load(str(field_folder)).words.symbols)
    lacking = [i for i, symbol in enumerate(SYMBOLS) if i > 1 and (symbol not in known or symbol == "<unk>")]
    assert SYMBOLS.index("licorne") in lacking
    torch.testing.assert_close(weights[lacking], weights[lacking[0]].expand(len(lacking)))
    assert weights[:2].isneginf().all()
    assert float(weights.exp().sum()) <= 1.0 + 1e-5


def test_a_damaged_part_is_refused(field_folder: Path, tmp_path: Path) -> None:
    prior = built(field_folder, f"mrf:{field_folder}")
    part = prior.find(MarkovFieldPart)
    assert part is not None
    for name, change in (("row_of", lambda a: a + 99), ("left", lambda a: a * np.nan), ("unary", lambda a: a[1:])):
        broken = MarkovFieldPart(**{**vars(part), name: change(getattr(part, name))})
        prior.without(MarkovFieldPart).with_part(broken).save(tmp_path / name)
        with pytest.raises(PriorError):
            Prior.load(tmp_path / name)


def test_nothing_behind_the_colon_and_no_field(llrnn: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "dict.txt").write_text("le 3\nchat 2\n", encoding="utf-8")
    start = ("prior", "--dict", tmp_path / "dict.txt", "--top-words", 1, "--out", tmp_path / "prior", "--background")
    code, _, said = llrnn(*start, "mrf:")
    assert (code, "expected a value after the name, found none; write e.g. mrf:field" in said) == (2, True)
    code, _, said = llrnn(*start, f"mrf:{tmp_path}/nowhere")
    assert (code, "expected a field (a folder with field.json), found none" in said) == (2, True)
