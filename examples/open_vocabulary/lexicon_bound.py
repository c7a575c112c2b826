"""Bounds of what a lexicon can gain in the spelling of unknown words, without a model: bits per word.

    python examples/open_vocabulary/lexicon_bound.py --text OUT/hungarian/text --list language:hu --hunspell hu_HU.dic

OUT/LANGUAGE/text is written by examples/languages/languages.py. The unseen words of the test text with letters
are spelled by character n-grams of the rare words of the training text, and then under three assumptions for those in
the list: its frequencies among words that the training text lacks, the entropy of their case, and membership alone (the
n-grams, renormalised on the list). The gain of frequencies is that of all unseen words. `--hunspell` counts the words
that hunspell accepts (extra `hunspell`), and the gain of membership in its words from samples of the n-grams.
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from hunspell_dictionaries import acceptance

from fairseq_llrnn.files.text_lines import is_letter
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.readers.word_counts import read_word_counts
from fairseq_llrnn.open_vocabulary.characters import CharacterNGrams
from fairseq_llrnn.open_vocabulary.classes import kind_of
from fairseq_llrnn.open_vocabulary.number_strings import GeometricNumbers, StringDistributions
from fairseq_llrnn.open_vocabulary.spelling import draw

FLOOR = 5  # largest count of a rare word
SAMPLES = 5_000  # strings


def probs(model: CharacterNGrams, words: list[str]) -> np.ndarray:
    """Return P of each word: (n,)."""
    parts = [np.exp(model.log_probs(words[i : i + 20_000])[:, 0]) for i in range(0, len(words), 20_000)]
    return np.concatenate(parts)


def bounds(text: Path, listed: str, dictionary: Path | None) -> dict[str, float]:
    """Return the row of a text."""
    train = Counter((text / "train.txt").read_text(encoding="utf-8").split())
    test = (text / "test.txt").read_text(encoding="utf-8").split()
    unseen = [word for word in test if word not in train and any(map(is_letter, word))]
    rare = [word for word, count in train.items() if count <= FLOOR]
    model = CharacterNGrams.train(rare, np.zeros(len(rare), dtype=np.int64), 1)
    outside = 1.0 - probs(model, list(train)).sum()
    seen = {*train, *(word.lower() for word in train)}
    counts = {word: n for word, n in read_word_counts(listed, Spelling(True), "--list").items() if word not in seen}
    total = sum(counts.values())
    found = [word for word in unseen if word.lower() in counts]
    shares = np.array([*Counter(map(kind_of, found)).values()]) / len(found)
    row = {
        "unseen": len([word for word in test if word not in train]) / len(test),
        "words with letters": len(unseen),
        "in the list": len(found) / len(unseen),
        "bits by characters": -np.log2(probs(model, unseen) / outside).mean(),
        "… of those in the list": -np.log2(probs(model, found) / outside).mean(),
        "… by frequency": -np.log2([counts[word.lower()] / total for word in found]).mean(),
        "… bits of the case": -(shares * np.log2(shares)).sum(),
        "… gain of membership": -np.log2(probs(model, list(counts)).sum() / outside),
    }
    spared = row["… of those in the list"] - row["… by frequency"] - row["… bits of the case"]
    row["gain of frequencies"] = row["in the list"] * spared
    if dictionary is not None:
        accepts = acceptance(dictionary)
        strings = StringDistributions(model, GeometricNumbers.train([]), np.zeros(1))
        drawn = [word for word in draw(strings, 0, SAMPLES, np.random.default_rng(1)) if word not in train]
        row["accepted by hunspell"] = sum(map(accepts, unseen)) / len(unseen)
        row["gain of membership"] = -row["accepted by hunspell"] * np.log2(sum(map(accepts, drawn)) / len(drawn))
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="folder with train.txt and test.txt")
    parser.add_argument("--list", required=True, help="word list, as for --spelling-lexicon")
    parser.add_argument("--hunspell", type=Path, help="FILE.dic")
    args = parser.parse_args()
    for name, value in bounds(args.text, args.list, args.hunspell).items():
        print(f"{name:<24}  {value:>10,.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
