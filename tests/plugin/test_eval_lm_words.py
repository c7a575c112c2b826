"""The lines that `llrnn eval-lm` prints beside fairseq's: seen and unseen words, bits per character."""

import json
import math
import re
from pathlib import Path

import pytest
from shell import Shell
from small_corpus import Llrnn
from tiny_world import World

from fairseq_llrnn.evaluation.tally import Tally
from fairseq_llrnn.features.subwords import CONVENTIONS

SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", "le", "chat", "\u2581le", "ch@@", "at"]
LOG2 = math.log(2)


def test_sums_over_a_text_by_hand() -> None:
    """Three lines, the second one empty, in two blocks; one word that has no probability."""
    tally = Tally(SYMBOLS, None, frozenset({"le"}))
    tally.add([4, 5, 2, 2], [-LOG2, -3 * LOG2, -LOG2, -2 * LOG2])
    tally.add([4, 2], [-math.inf, -LOG2])
    assert tally.characters == len("le chat\n\nle\n")
    assert list(tally.lines()) == [
        "seen words: 1, loss 1.0000; unseen words: 1, loss 3.0000; ends of sentences: 3, loss 1.3333",
        f"Bits per character: {8 / 12:.4f}",
    ]


@pytest.mark.parametrize(
    ("name", "tokens", "text"), [("sentencepiece", [6, 8, 2], "leat\n"), ("bpe", [4, 7, 8, 2], "le chat\n")]
)
def test_pieces_have_the_characters_of_their_words(name: str, tokens: list[int], text: str) -> None:
    tally = Tally(SYMBOLS, CONVENTIONS[name], None)
    tally.add(tokens, [-LOG2] * len(tokens))
    assert tally.characters == len(text)
    assert list(tally.lines()) == [f"Bits per character: {len(tokens) / len(text):.4f}"]


def test_characters_of_unknown_words_are_not_known() -> None:
    tally = Tally(SYMBOLS, None, None)
    tally.add([3, 2], [-1.0, -1.0])
    assert list(tally.lines()) == [
        "Bits per character: not defined, because 1 words are <unk>; see `llrnn score --open`"
    ]


def test_the_command_prints_what_score_prints(shell: Shell, as_typed: Llrnn, world: World, trained: Path) -> None:
    path = ("--path", trained / "checkpoint_best.pt")
    done = shell.run("llrnn", "eval-lm", world.data, *path, "--gen-subset", "valid", "--cpu")
    (perplexity,) = re.findall(r"Loss \(base 2\): ([\d.]+)", done.out)
    text = "".join(f"{line}\n" for line in world.text("valid"))
    facts = json.loads(as_typed("score", *path, "--json", stdin=text).out)
    if not facts["unknown_words"]:
        (per_character,) = re.findall(r"Bits per character: ([\d.]+)", done.out)
        assert float(per_character) == pytest.approx(facts["bits_per_character"], abs=2e-4)
    parts = re.findall(r"(seen words|unseen words|ends of sentences): ([\d,]+), loss ([\d.]+)", done.out)
    tokens = sum(int(count.replace(",", "")) for _, count, _ in parts)
    assert tokens == facts["words"] + facts["sentences"]
    bits = sum(int(count.replace(",", "")) * float(loss) for _, count, loss in parts)
    assert bits / tokens == pytest.approx(float(perplexity), abs=2e-3)
