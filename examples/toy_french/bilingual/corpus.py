"""The whole bilingual corpus: three sets of pairs, the French lexicon, and the unseen part of the tests."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from fairseq_llrnn.errors import OptionError
from toy_french.bilingual.clauses import sentence
from toy_french.bilingual.facts import Agreement, Copy, agreements, copies
from toy_french.bilingual.rendering import Piece, Renderer
from toy_french.bilingual.speaker import MONTH_WORDS, BilingualSpeaker
from toy_french.bilingual.stock import BilingualStock, make_bilingual_stock
from toy_french.trees import Node, Token, tokens
from toy_french.words import Word

DEFAULT_PAIRS = 6000
MINIMUM_PAIRS = 200  # below, valid and test are too small to measure anything
UNSEEN = 0.15  # chance of a withheld form wherever valid and test may hold one
UNSEEN_EVIDENCE = 0.6  # the same for numbers, codes and names
SHARES = {"train": 1.0, "valid": 0.05, "test": 0.05}  # of the training pairs


@dataclass(frozen=True)
class Pair:
    english: list[str]
    french: list[str]
    copies: list[Copy]
    agreements: list[Agreement]


@dataclass(frozen=True)
class Bitext:
    splits: dict[str, list[Pair]]
    lexicon: list[Word]  # of French: all but the numbers, codes and names that training does not show
    counts: Counter[str]  # of the French training text
    english_counts: Counter[str]  # of the English one

    def mapping(self) -> list[tuple[str, str]]:
        """English and French form of every copied word that differs between them, sorted."""
        facts = (fact for pairs in self.splits.values() for pair in pairs for fact in pair.copies)
        return sorted({(fact.english, fact.french) for fact in facts if fact.english != fact.french})


@dataclass(frozen=True)
class _Draft:
    root: Node
    pieces: list[Piece]
    french: list[Token]


def make_bitext(pairs: int = DEFAULT_PAIRS, seed: int = 1) -> Bitext:
    """Generate a bitext with so many training pairs. No sentence of either language occurs twice in the corpus."""
    if pairs < MINIMUM_PAIRS:
        raise OptionError(
            f"--sentences {pairs}: too few; the bilingual corpus needs at least {MINIMUM_PAIRS} "
            "training pairs for its validation and test sets to measure anything"
        )
    stock = make_bilingual_stock(Random(f"{seed} bilingual words"))
    renderer = Renderer(stock.glosses)
    said: set[str] = set()
    drafts = {}
    for split, share in SHARES.items():
        unseen, unseen_evidence = (0.0, 0.0) if split == "train" else (UNSEEN, UNSEEN_EVIDENCE)
        speaker = BilingualSpeaker(stock, Random(f"{seed} bilingual {split}"), unseen, unseen_evidence)
        drafts[split] = _drafts(speaker, renderer, round(share * pairs), said)
    counts = Counter(token.word.form for draft in drafts["train"] for token in draft.french)
    english_counts = Counter(text for draft in drafts["train"] for text, _ in draft.pieces)
    return Bitext(
        splits={
            split: [_pair(draft, english_counts, counts) for draft in of_split] for split, of_split in drafts.items()
        },
        lexicon=_lexicon(stock, drafts["train"]),
        counts=counts,
        english_counts=english_counts,
    )


def _drafts(speaker: BilingualSpeaker, renderer: Renderer, count: int, said: set[str]) -> list[_Draft]:
    made: list[_Draft] = []
    while len(made) < count:
        root = sentence(speaker)
        draft = _Draft(root, renderer.sentence(root), tokens(root))
        texts = {
            "en " + " ".join(text for text, _ in draft.pieces),
            "fr " + " ".join(token.word.form for token in draft.french),
        }
        if said.isdisjoint(texts):
            said |= texts
            made.append(draft)
    return made


def _pair(draft: _Draft, english_counts: Counter[str], counts: Counter[str]) -> Pair:
    return Pair(
        english=[text for text, _ in draft.pieces],
        french=[token.word.form for token in draft.french],
        copies=list(copies(draft.pieces, draft.root, draft.french, english_counts, counts)),
        agreements=list(agreements(draft.root, counts)),
    )


def _lexicon(stock: BilingualStock, train: list[_Draft]) -> list[Word]:
    """Return the stock's words, with the numbers, codes and names of the training text instead of its own."""
    words = {word for word in stock.french.words if word.upos != "PROPN" and "NumForm=Digit" not in word.feats}
    return sorted(words | {*MONTH_WORDS} | {token.word for draft in train for token in draft.french})


def summary(bitext: Bitext) -> str:
    """Return a table of counts: sizes, the words to copy, and the percentages of them outside the training text."""
    return "\n".join(_summary_lines(bitext))


def _summary_lines(bitext: Bitext) -> Iterator[str]:
    yield f"{'':6}{'pairs':>7}{'words en':>10}{'fr':>7}{'types en':>10}{'fr':>6}{'copies':>8}{'unseen %':>10}" + (
        f"{'agreements':>12}{'unseen %':>10}"
    )
    for split, pairs in bitext.splits.items():
        english = [word for pair in pairs for word in pair.english]
        french = [word for pair in pairs for word in pair.french]
        copied = [fact.seen for pair in pairs for fact in pair.copies]
        agreeing = [fact.seen for pair in pairs for fact in pair.agreements]
        yield (
            f"{split:6}{len(pairs):7}{len(english):10}{len(french):7}{len(set(english)):10}{len(set(french)):6}"
            f"{len(copied):8}{_unseen(copied):10.1f}{len(agreeing):12}{_unseen(agreeing):10.1f}"
        )
    kinds = Counter(fact.kind for pair in bitext.splits["test"] for fact in pair.copies)
    yield "to copy in test: " + ", ".join(f"{count} {kind}s" for kind, count in sorted(kinds.items()))


def _unseen(seen: list[bool]) -> float:
    return 100 * (1 - sum(seen) / max(1, len(seen)))
