"""A grammar inside a mixture: after a word that it forbids, it has no weight until the sentence ends."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.background import BoundBackground
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.testing import check_background

SYMBOLS = [*SPECIALS, "chat", "dort", "la", "le", "mer"]
GRAMMARS = {
    "s.grammar": "S -> 'le' 'chat' 'dort' | 'le' 'chat' | 'le' 'mer'\n",
    "s.regex": "le (chat dort? | mer)\n",
    "s.txt": "0 1 le\n1 2 chat\n2 3 dort\n1 3 mer\n2\n3\n",
}
WITHIN = ["{}", "{} at temperature 2", "({} times uniform)", "({} times ngram(2, folds=0))", "(cache:3 times {})"]


def build(folder: Path, expression: str) -> BoundBackground:
    for name, text in GRAMMARS.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "text.txt").write_text("le chat dort\nla mer dort\n", encoding="utf-8")
    recipe = Recipe(text=str(folder / "text.txt"), top_words="all", background=expression, workers=1)
    return build_prior(SYMBOLS, recipe).background().bind()


def weights(background: BoundBackground, history: str) -> Tensor:
    """Return b(K, x) after words: (V,)."""
    state = background.start(1)
    for word in history.split():
        state = background.advance(state, torch.tensor([SYMBOLS.index(word)]))
    return background.view(state).log_weights[0].exp()


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("name", GRAMMARS)
def test_it_has_no_weight_until_the_sentence_ends(tmp_path: Path, name: str, within: str) -> None:
    grammar = within.format(f"automaton({tmp_path / name}, on_zero=skip)")
    alone, mixed = build(tmp_path, grammar), build(tmp_path, f"0.5 {grammar} plus 0.5 uniform")
    uniform = torch.tensor([0.0 if i < 2 else 0.5 / 7 for i in range(len(SYMBOLS))], dtype=torch.float64)
    for history, inside in (
        ("le chat", True), ("la", False), ("la mer", False), ("le la", False), ("le mer chat", False), ("</s>", True),
        ("la </s>", True), ("la mer </s> le", True), ("la </s> la", False), ("le chat le le chat", False),
    ):  # fmt: skip
        found = weights(alone, history)
        assert bool(found.any()) == inside, history
        if "cache" not in within:  # which is over another b₀ in the mixture, and remembers the sentence before
            torch.testing.assert_close(found, weights(alone, history.rpartition("</s>")[2]) if inside else 0.0 * found)
            torch.testing.assert_close(weights(mixed, history).double(), uniform + 0.5 * found.double())
        elif not inside:
            torch.testing.assert_close(weights(mixed, history), uniform)
    check_background(mixed.module)
    assert mixed.most_steps < 2  # the other part can always end
    assert alone.has_dead_ends and not mixed.has_dead_ends


def test_of_two_grammars_the_one_that_goes_on_says_what_can_end(tmp_path: Path) -> None:
    (tmp_path / "long.regex").write_text("la mer mer mer mer\n", encoding="utf-8")
    files = tmp_path / "s.regex", tmp_path / "long.regex"
    both = build(tmp_path, " plus ".join(f"automaton({file}, on_zero=skip)" for file in files))
    check_background(both.module)
    assert both.has_dead_ends
    state = both.advance(both.start(1), torch.tensor([SYMBOLS.index("la")]))
    assert both.steps_to_end(both.start(1)).tolist() == [3] and both.steps_to_end(state).tolist() == [5]
    beginning = both.start(1)
    for remaining, words in ((7, {"le", "la"}), (6, {"le", "la"}), (5, {"le"}), (3, {"le"}), (2, set())):
        shares = both.view(beginning, remaining=remaining).log_shares[0]
        assert {SYMBOLS[i] for i in (~shares.isneginf()).nonzero().flatten().tolist()} == words, remaining
    for history in ("mer", "la le", "le la"):
        assert not weights(both, history).any() and weights(both, f"{history} </s>").any()
