"""The texts of the experiment: a general one, and domains, from treebanks or from the embedded grammar.

In the toy pair, both texts are in the language of toy_french with the same words. The general text is about actions,
places and persons, the domain about prices, towns and numbered things.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_words
from toy_french.clauses import action, clause, finished, numbered, price, saying, state, town, travel
from toy_french.phrases import Speaker
from toy_french.stock import make_stock
from toy_french.trees import Node, tokens

SPLITS = ("train", "dev", "test")
GENERAL = "general"


class Word(NamedTuple):
    """A word of a sentence with its analysis, in the form of a lexicon (`Gender=Fem|Number=Sing`)."""

    form: str
    lemma: str
    upos: str
    feats: str


Sentence = list[Word]


@dataclass(frozen=True)
class Sizes:
    """Settings that depend on the size of the text."""

    dev: int  # sentences that trainings, recipes and weights are chosen by: of a larger dev set, a sample
    least_count: int  # rarer words of all training texts together are <unk>
    top_words: int  # M, words with an identity in log-linear models
    width: int  # of embeddings and recurrent layer
    batch: int  # tokens; of the general model, four times as many
    max_epoch: int  # of the general model; of the others, so many times the epochs of forty updates
    seed: int = 1  # of trainings


REAL = Sizes(dev=300, least_count=3, top_words=2500, width=256, batch=512, max_epoch=60)
TOY = Sizes(dev=60, least_count=2, top_words=150, width=32, batch=128, max_epoch=8)


@dataclass(frozen=True)
class Corpora:
    """`texts[name][split]`, with the name GENERAL, or that of a domain. The general text has no test."""

    texts: dict[str, dict[str, list[Sentence]]]
    sizes: Sizes

    @property
    def domains(self) -> list[str]:
        return [name for name in self.texts if name != GENERAL]


def read_treebanks(general: Path, domains: Path) -> Corpora:
    """Read a folder with train.conllu[.gz] and dev.conllu[.gz], and one whose sub-folders also have a test.

    Raises:
        OptionError: no such folders. DataError: a treebank that is missing or no CoNLL-U.
    """
    for folder in (general, domains):
        if not folder.is_dir():
            raise OptionError(f"{folder}: expected a folder with treebanks, found none; see --general and --domains")
    texts = {GENERAL: {split: _treebank(general, split) for split in ("train", "dev")}}
    for folder in sorted(path for path in domains.iterdir() if path.is_dir()):
        texts[folder.name] = {split: _treebank(folder, split) for split in SPLITS}
    if len(texts) == 1:
        raise OptionError(f"{domains}: expected a sub-folder for each domain, found none")
    return Corpora(texts, REAL)


def _treebank(folder: Path, split: str) -> list[Sentence]:
    for name in (f"{split}.conllu", f"{split}.conllu.gz"):
        if (folder / name).exists():
            sentences = iter_conllu_words(folder / name, lowercase=True)
            return [[Word(t.form, t.lemma, t.upos or "_", _feats(t.feats)) for t in words] for words in sentences]
    raise DataError(f"{folder}: expected {split}.conllu or {split}.conllu.gz, found neither")


def _feats(names: Iterable[str]) -> str:
    return "|".join(name.replace(":", "=", 1) for name in names) or "_"


def toy(seed: int = 1) -> Corpora:
    """Return the embedded pair, determined by the seed."""
    kinds: dict[str, tuple[Callable[[Speaker], Node], ...]] = {
        GENERAL: (state, action, travel, saying),
        "prices": (price, numbered, town),
    }
    sizes = {GENERAL: {"train": 1200, "dev": 60}, "prices": {"train": 400, "dev": 60, "test": 120}}
    stock = make_stock(Random(f"{seed} words"))
    texts: dict[str, dict[str, list[Sentence]]] = {}
    for name, said in kinds.items():
        texts[name] = {}
        for split, size in sizes[name].items():
            speaker = Speaker(stock, Random(f"{seed} {name} {split}"), 0.0)
            texts[name][split] = [_spoken(finished(speaker, clause(speaker, said))) for _ in range(size)]
    return Corpora(texts, TOY)


def _spoken(root: Node) -> Sentence:
    words = (token.word for token in tokens(root))
    return [Word(word.form, word.lemma, word.upos, word.feats or "_") for word in words]


def shuffled(sentences: Sequence[Sentence], seed: str) -> list[Sentence]:
    """Shuffle sentences by `seed`. Beginnings of the result are nested samples."""
    order = list(range(len(sentences)))
    Random(seed).shuffle(order)
    return [sentences[i] for i in order]


def share(sentences: Sequence[Sentence], percent: int) -> list[Sentence]:
    """Return the first sentences, so many per cent, at least one."""
    return list(sentences[: max(1, round(len(sentences) * percent / 100))])
