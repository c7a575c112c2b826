#!/usr/bin/env python3
"""Measure the packages of a language on its texts: words covered, signatures by words.lemma_floor, and the unigram.

    python examples/languages/language_texts.py --data ../shared/data --out runs/languages ukrainian
    python examples/languages/language_packages.py runs/languages/ukrainian/text uk

Words covered and signatures are for a dictionary with the words of train.txt, valid.txt and test.txt. The unigram is
over the words of train.txt and the 50,000 most frequent words of the language: nats per token of valid.txt and test.txt
by b alone, as a mixture of the counted unigram and the language's, by the weight of the first.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairseq_llrnn.cli.prior.language import lines
from fairseq_llrnn.errors import one_line_errors
from fairseq_llrnn.features.dictionary import SPECIALS, UNK, WordList
from fairseq_llrnn.lexicon.languages.language_source import sources_of
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import BuildResult, build
from fairseq_llrnn.prior.recipe import Recipe

NO_LEMMAS = 10**9
FLOORS = (NO_LEMMAS, 16, 8, 4, 2)
SHARES = (1.0, 0.9, 0.8, 0.5, 0.0)  # of the counted unigram
HELD_OUT = ("valid", "test")
LARGE = 50_000
CASED = LexiconOptions(keep_case=True)


def count(path: Path) -> Counter[str]:
    """Count each word, and `</s>` for each line."""
    text = path.read_text(encoding="utf-8")
    return Counter({**Counter(text.split()), "</s>": text.count("\n")})


def built(counts: Counter[str], further: list[str], known: LexiconOptions, **asked: object) -> BuildResult:
    """Return a prior over the words of a text and further ones."""
    words = [word for word, _ in counts.most_common() if word != "</s>"]
    symbols = (*SPECIALS, *words, *(word for word in dict.fromkeys(further) if word not in counts))
    numbers = np.array([counts[symbol] for symbol in symbols], dtype=np.int64)
    options = Recipe(counts=numbers, words=known, **asked)  # type: ignore[arg-type]
    return build(WordList(symbols, numbers), options)


def signatures(counts: Counter[str], words: list[str], code: str) -> Iterator[str]:
    """Print the coverage, then a row for each floor."""
    plain = built(counts, words, CASED, suffixes=20)
    yield f"signatures with suffixes: {plain.prior.output.num_classes:,} of {len(plain.words):,} words"
    for floor in FLOORS:
        found = built(counts, words, replace(CASED, language=code, lemma_floor=floor), suffixes=20)
        if floor == NO_LEMMAS:
            yield "\n".join(line for line in lines(found.table.packages) if "have a lemma" not in line)
        pooled = 0 if found.table.packages is None else found.table.packages.pooled
        said = "analyses, no lemmas" if floor == NO_LEMMAS else f"lemmas that {floor} words share"
        yield f"  and {said}: {found.prior.output.num_classes:,} ({pooled:,} words with a lemma)"


def mixtures(counts: Counter[str], held_out: dict[str, Counter[str]], code: str) -> Iterator[str]:
    """Print nats per token, and of the words that the counted text lacks."""
    import wordfreq

    # a language's most frequent words, in the case of the text where it has them
    further = wordfreq.top_n_list(code, LARGE)
    both = [built(counts, further, CASED, background=kind, top_words=0) for kind in ("unigram", f"language:{code}")]
    own, other = (np.exp(found.prior.log_weights) for found in both)
    place = {word: i for i, word in enumerate(both[0].prior.symbols)}
    yield f"the unigram over {len(place):,} words, mixed with the language's: nats per token (of new words)"
    for name, text in held_out.items():
        at = np.array([place.get(word, place[UNK]) for word in text])
        tokens = np.array(list(text.values()))
        new = np.array([word in place and word not in counts for word in text])
        cells = []
        for share in SHARES:
            nats = -np.log(share * own[at] + (1 - share) * other[at]) * tokens
            of_new = f" ({nats[new].sum() / tokens[new].sum():.2f})" if new.any() else ""
            cells.append(f"{share:g}: {nats.sum() / tokens.sum():.3f}{of_new}")
        yield f"  {name}, {tokens[new].sum() / tokens.sum():.1%} new: {'  '.join(cells)}"


@one_line_errors("language_packages")
def main() -> None:
    parser = argparse.ArgumentParser(description="measure the packages of a language on its texts")
    parser.add_argument("texts", type=Path, help="folder of train.txt, valid.txt and test.txt")
    parser.add_argument("language", metavar="CODE", help="e.g. uk")
    args = parser.parse_args()
    counts = count(args.texts / "train.txt")
    held_out = {name: count(args.texts / f"{name}.txt") for name in HELD_OUT}
    for line in signatures(counts, [word for text in held_out.values() for word in text], args.language):
        print(line, flush=True)
    if any(source.gives == "frequencies" for source in sources_of(args.language)):
        for line in mixtures(counts, held_out, args.language):
            print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
