"""The whole corpus: three texts, the probes, and the number of unseen words in them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from fairseq_llrnn.errors import OptionError
from toy_french.clauses import sentence
from toy_french.phrases import Speaker
from toy_french.probes import Probe, make_probes
from toy_french.stock import Stock, make_stock
from toy_french.trees import Token, tokens
from toy_french.words import Word

DEFAULT_SENTENCES = 6000
MINIMUM_SENTENCES = 100  # below, valid and test are too small to measure anything
UNSEEN = 0.4  # chance of a withheld form wherever valid and test may hold one
# share of the training sentences that the other texts get on top
SHARES = {"train": 1.0, "valid": 0.08, "test": 0.2}

Sentence = list[Token]


@dataclass(frozen=True)
class Corpus:
    stock: Stock
    splits: dict[str, list[Sentence]]
    probes: list[Probe]
    counts: Counter[str]  # of the training text


def make_corpus(sentences: int = DEFAULT_SENTENCES, seed: int = 1) -> Corpus:
    """Generate a corpus. `sentences` counts the training text. No sentence occurs twice in the corpus."""
    if sentences < MINIMUM_SENTENCES:
        raise OptionError(
            f"--sentences {sentences}: too few; the corpus needs at least {MINIMUM_SENTENCES} "
            "training sentences for its validation and test texts to measure anything"
        )
    stock = make_stock(Random(f"{seed} words"))
    said: set[str] = set()
    splits = {
        split: _sentences(
            Speaker(stock, Random(f"{seed} {split}"), 0.0 if split == "train" else UNSEEN),
            round(share * sentences),
            said,
        )
        for split, share in SHARES.items()
    }
    counts = Counter(token.word.form for tokens_ in splits["train"] for token in tokens_)
    return Corpus(stock, splits, make_probes(stock, Random(f"{seed} probes"), counts), counts)


def text_of(sentence_: Sentence) -> str:
    return " ".join(token.word.form for token in sentence_)


def _sentences(speaker: Speaker, count: int, said: set[str]) -> list[Sentence]:
    made: list[Sentence] = []
    while len(made) < count:
        new = tokens(sentence(speaker))
        if (text := text_of(new)) not in said:
            said.add(text)
            made.append(new)
    return made


def kind_of_unseen(word: Word) -> str:
    """Return the column of the table for an unseen word."""
    if word.upos == "ADJ" or word.feature("VerbForm") == "Part":
        return "agreeing"
    if word.upos == "NUM":
        return "number"
    return "place" if word.feature("NameType") == "Geo" else "other"


def summary(corpus: Corpus) -> str:
    """Return a table of counts: the size of each text, and the percentage of its words outside the training text."""
    return "\n".join(_summary_lines(corpus))


def _summary_lines(corpus: Corpus) -> Iterator[str]:
    kinds = ("agreeing", "number", "place", "other")
    yield f"{'':6}{'sentences':>10}{'words':>8}{'types':>7}   unseen in train, % of words"
    yield f"{'':31}   {'all':>6}" + "".join(f"{kind:>10}" for kind in kinds)
    for split, sentences in corpus.splits.items():
        words = [token.word for tokens_ in sentences for token in tokens_]
        types = len({word.form for word in words})
        unseen = Counter(kind_of_unseen(word) for word in words if word.form not in corpus.counts)
        shares = "".join(f"{100 * unseen[kind] / len(words):10.2f}" for kind in kinds)
        share = 100 * unseen.total() / len(words)
        yield f"{split:6}{len(sentences):10}{len(words):8}{types:7}   {share:6.2f}{shares}"
    forms = {word.form for word in corpus.stock.words}
    yield f"vocabulary: {len(forms)} forms, {len(forms - corpus.counts.keys())} of them unseen in train"
    probes = Counter(probe.kind for probe in corpus.probes)
    yield "probes: " + ", ".join(f"{count} {kind}" for kind, count in probes.items())
