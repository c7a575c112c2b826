"""Select the best sentences of an n-best list, and score them.

A system generates many hypotheses for an act. The best five are kept: those with the fewest slot errors, and of these
those with the highest mean log-probability per token. Slots are counted in the act and in the hypothesis, without a
reference. RNNLG does the same (generator/net.py) with 20 hypotheses, and counts only errors in literal values
(`keywords=False` here).

Hypotheses with `<unk>` go last, and duplicates are removed: two token sequences may be one sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dialog_acts import Act
from dialog_prepare import SLOT_OF, TAG, numbered, offered, read_back
from dialog_scores import SlotErrors, bleu, slot_errors
from dialog_words import MARK, carry, mark, normalise, unmark

from fairseq_llrnn.errors import DataError

KEPT = 5  # of the hypotheses


@dataclass(frozen=True)
class Hypothesis:
    """A sentence of a system for an act."""

    score: float  # the higher the better
    marked: str  # as dialog_words.mark has it


@dataclass(frozen=True)
class Scores:
    """The scores of a system on a test set."""

    bleu: float  # of the best five
    errors: SlotErrors  # of the best five
    first_bleu: float  # of the best one
    first_errors: SlotErrors
    unsupported: int  # words of the best five that say a value, or speak of a slot, that the act lacks


def read_hypotheses(path: Path) -> dict[int, list[tuple[float, list[str]]]]:
    """Read fairseq's output: the number of a sentence -> its hypotheses' scores and tokens, best first.

    Raises:
        DataError: a line `H-…` of another form, or none at all.
    """
    found: dict[int, list[tuple[float, list[str]]]] = defaultdict(list)
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.startswith("H-"):
                continue
            cells = line.rstrip("\n").split("\t")
            try:
                found[int(cells[0][2:])].append((float(cells[1]), cells[2].split()))
            except (ValueError, IndexError):
                raise DataError(
                    f"{path}, line {number}: expected `H-number<TAB>score<TAB>sentence` of fairseq-interactive, found "
                    f"{line[:60]!r}; write the list again"
                ) from None
    if not found:
        raise DataError(f"{path}: expected lines `H-…` of fairseq-interactive, found none; see its log")
    return dict(found)


def hypotheses_of(act: Act, found: Sequence[tuple[float, Sequence[str]]]) -> list[Hypothesis]:
    """Return a system's sentences for an act, with the values of their tokens."""
    values = {name: value for value, name in numbered(act).items()}  # for a system over delexicalised text
    sentences: dict[str, Hypothesis] = {}
    for score, words in found:
        marked = read_back(values.get(word, word) for word in words)
        sentences.setdefault(unmark(marked, act), Hypothesis(score, marked))
    return list(sentences.values())


def best(act: Act, hypotheses: Sequence[Hypothesis], keywords: bool = True) -> list[Hypothesis]:
    """Return the best five, best first.

    Args:
        keywords: also count the errors in slots with words of their own (dialog_scores.KEYWORDS).
    """

    def cost(one: Hypothesis) -> tuple[bool, int, float]:
        errors = slot_errors(act, one.marked)
        return "<unk>" in one.marked.split(), errors.errors if keywords else errors.of_texts, -one.score

    return sorted(hypotheses, key=cost)[:KEPT]


def references(acts: Sequence[Act], sentences: Sequence[str]) -> list[list[str]]:
    """Return all references of every act: the sentences of all acts that are alike, with its values."""
    alike: dict[tuple[str, ...], list[tuple[Act, str]]] = defaultdict(list)
    for act, sentence in zip(acts, sentences, strict=True):
        alike[act.alike].append((act, mark(normalise(sentence), act)))
    return [[unmark(carry(marked, of, act), act) for of, marked in alike[act.alike]] for act in acts]


def score(acts: Sequence[Act], sentences: Sequence[str], found: Sequence[Sequence[Hypothesis]]) -> Scores:
    """Return the scores of a system.

    Args:
        acts, sentences: of the test set, with repetitions.
        found: hypotheses for each of them, best first.
    """
    texts = [[unmark(one.marked, act) for one in some] for act, some in zip(acts, found, strict=True)]
    counted = [[slot_errors(act, one.marked) for one in some] for act, some in zip(acts, found, strict=True)]
    answers = list(zip(texts, references(acts, sentences), strict=True))
    return Scores(
        bleu(answers),
        sum((errors for some in counted for errors in some), SlotErrors()),
        bleu([(some[:1], those) for some, those in answers]),
        sum((some[0] for some in counted), SlotErrors()),
        sum(_unsupported(act, one) for act, some in zip(acts, found, strict=True) for one in some),
    )


def _unsupported(act: Act, hypothesis: Hypothesis) -> int:
    """Count the words of a hypothesis with a value or slot outside the act."""
    words = [f"{TAG}{word}" if word in SLOT_OF else word for word in hypothesis.marked.split()]
    return sum(word[0] in (MARK, TAG) and word not in offered(act) for word in words)


def reference_errors(acts: Sequence[Act], sentences: Sequence[str]) -> SlotErrors:
    """Return the errors of the references: slots that people left out, added, or wrote in another way."""
    counted = (slot_errors(act, mark(normalise(text), act)) for act, text in zip(acts, sentences, strict=True))
    return sum(counted, SlotErrors())
