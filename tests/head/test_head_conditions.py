"""Which background a batch or a search asks, and what it tells it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from few_words import PRIOR as EVIDENCE
from small_priors import SYMBOLS, make_prior
from torch import Tensor

from fairseq_llrnn.backgrounds.background import Background
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.head import Condition, LogLinearHead
from fairseq_llrnn.prior import EvidenceOptions, Recipe
from fairseq_llrnn.prior.building import build_prior

SOURCE, PREVIOUS = torch.tensor([[4, 5], [6, 7]]), torch.tensor([[2, 4], [2, 5]])


class Telling(Background):
    """Notes what it is asked for. A state is the number of the sentence, then all tokens so far."""

    def __init__(self, class_of: Tensor, num_classes: int, *told: tuple) -> None:
        super().__init__(class_of, num_classes)
        self.told = told

    def _with(self, *told: tuple) -> Telling:
        return Telling(self.class_of, self.num_classes, *self.told, *told)

    def bind(self, source: Tensor | None = None, text: Tensor | None = None) -> Telling:
        return self._with(("bind", *(None if each is None else each.tolist() for each in (source, text))))

    def start(self, n: int) -> Tensor:
        return torch.arange(n).unsqueeze(1)

    def advance(self, state: Tensor, tokens: Tensor) -> Tensor:
        return torch.cat([state, tokens.unsqueeze(1)], dim=1)


@pytest.fixture
def head() -> LogLinearHead:
    made = LogLinearHead(make_prior(), 3)
    made.background = Telling(made.background.class_of, made.background.num_classes)
    return made


def of_batch(condition: Condition) -> Background:
    [(_, background)] = condition.backgrounds
    return background


def told(background: Background) -> tuple:
    assert isinstance(background, Telling)
    return background.told


def test_a_batch_is_given_its_sources_and_in_training_leaves_its_own_text_out(head: LogLinearHead) -> None:
    source, previous = SOURCE.tolist(), PREVIOUS.tolist()
    head.eval()
    assert told(of_batch(head.bind(PREVIOUS))) == (("bind", None, None),)
    assert told(of_batch(head.bind(PREVIOUS, SOURCE))) == (("bind", source, None),)
    head.train()
    assert told(of_batch(head.bind(PREVIOUS))) == (("bind", None, previous),)
    assert told(of_batch(head.bind(PREVIOUS, SOURCE))) == (("bind", source, previous),)
    text = torch.tensor([[2, 4, 8], [2, 99, 5]])
    assert told(of_batch(head.bind(PREVIOUS, text=text))) == (("bind", None, [[2, 4, 8], [2, 3, 5]]),)
    head.eval()
    assert told(of_batch(head.bind(PREVIOUS, text=text))) == (("bind", None, None),)


def test_strings_are_unk_in_the_text_that_a_background_leaves_out() -> None:
    head = LogLinearHead(replace(EVIDENCE), 3, source_size=2).train()
    head.background = Telling(head.background.class_of, head.background.num_classes)
    source, tokens = head.encode_source(["Zoé dog"]), head.encode(["Zoé chien"])
    [(_, background)] = head.bind(head.previous(tokens), source).backgrounds
    assert tokens[0, 0] >= head.num_words
    assert told(background) == (("bind", source.tolist(), [[2, 3, int(tokens[0, 1])]]),)


def test_a_search_sees_each_sentence_once_and_its_states_know_theirs(head: LogLinearHead) -> None:
    state = head.start(4, source=SOURCE.repeat_interleave(2, 0))
    assert told(state.background) == (("bind", SOURCE.tolist(), None),)
    state = head.advance(state, torch.tensor([4, 5, 6, 7]))
    assert state.states.tolist() == [[0, 4], [0, 5], [1, 6], [1, 7]]
    longer = head.advance(state.select(torch.tensor([1, 1, 3, 2])), torch.tensor([8, 4, 8, 4]))
    assert longer.background is state.background
    assert longer.states.tolist() == [[0, 5, 8], [0, 5, 4], [1, 7, 8], [1, 6, 4]]
    assert state.states.tolist() == [[0, 4], [0, 5], [1, 6], [1, 7]], "records are not changed"


def test_a_search_without_sources_has_one_background_for_all(head: LogLinearHead) -> None:
    state = head.start(2)
    assert told(state.background) == (("bind", None, None),)
    assert state.states.tolist() == [[0], [1]]


def test_a_limit_counts_what_was_written(head: LogLinearHead) -> None:
    state = head.start(2)
    assert state.remaining is None
    state = state.limited(5)
    assert state.remaining == 5
    for _ in range(3):
        state = head.advance(state, torch.tensor([4, 4]))
    assert state.remaining == 2
    assert len(SYMBOLS) == head.num_words


def test_where_two_grammars_leave_nothing_no_word_has_a_probability(tmp_path: Path) -> None:
    words = (*SPECIALS, *"abxyz")
    for name, strings in (("one", "a x|b y|z"), ("other", "a y|b y|z")):
        arcs = [string.split() for string in strings.split("|")]
        lines = [f"0 {i} {first[0]}\n{i} 9 {(first + ['</s>'])[1]}\n" for i, first in enumerate(arcs, 1) if first[1:]]
        (tmp_path / name).write_text("".join(lines) + "0 9 z\n9\n", encoding="utf-8")
    (tmp_path / "text").write_text("b y\nz\n", encoding="utf-8")
    background = f"automaton:{tmp_path / 'one'} times automaton:{tmp_path / 'other'}"
    prior = build_prior(words, Recipe(text=tmp_path / "text", top_words=5, background=background))
    head = LogLinearHead(prior, 3).double().eval()
    hidden = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    state = head.advance(head.start(2), head.encode(["a", "b"])[:, 0])
    values, tokens = head.top_k(hidden, state, 4)
    assert values[0].isneginf().all() and values[1, 0] == 0 and words[tokens[1, 0]] == "y"
    log_probs = head.log_probs(hidden.unsqueeze(1), previous=torch.tensor([[4], [5]]))
    batch = head.log_probs(hidden.expand(2, 2, -1), previous=head.previous(head.encode(["a x", "b y"])[:, :2]))
    assert not log_probs.isnan().any() and batch[0, 1].isneginf().all()
    batch.masked_fill(batch.isneginf(), 0.0).sum().backward()
    assert hidden.grad is not None and hidden.grad.isfinite().all()


@pytest.mark.parametrize("source", ["a b", "37", "a 37"])
def test_a_search_takes_no_branch_that_a_forbidden_word_ends(source: str, tmp_path: Path) -> None:
    """`c 37` is in the grammar, but no number comes without evidence; an end is promised within so many words."""
    words = (*SPECIALS, "a", "b", "c", "37")
    (tmp_path / "grammar").write_text("0 1 a 2\n0 2 c\n1 3 b\n2 3 37\n3\n", encoding="utf-8")
    (tmp_path / "text").write_text("a b\nc 37\n", encoding="utf-8")
    evidence = EvidenceOptions(("numbers",), unsupported={"numbers": 0.0})
    background = f"automaton:{tmp_path / 'grammar'}"
    recipe = Recipe(
        text=tmp_path / "text", top_words=4, background=background, evidence=evidence, source_dictionary=words
    )
    head = LogLinearHead(build_prior(words, recipe), 3, source_size=2).double().eval()
    tokens = head.encode_source([source])
    states, written, longest = torch.zeros(1, tokens.size(1), 2, dtype=torch.float64), [], 6
    with torch.no_grad():
        state = head.start(1, source=tokens, source_states=states)
        while "</s>" not in written:
            values, best = head.top_k(torch.zeros(1, 3, dtype=torch.float64), state.limited(longest), k=1)
            assert values.isfinite().all()
            written.append(words[int(best)])
            state = head.advance(state, best[:, 0])
    assert written[-3:] == ["a", "b", "</s>"] and len(written) <= longest
