"""Measure the variety of a model's unknown words: types per 1,000 of them, compared with those of real text.

    sampled_words.py --data DATA_BIN [--path CHECKPOINT] --text FILE [FILE …] [--seed 1]

Texts are continued from their first words, line by line, with --sampling, until as many words outside the dictionary
were written as the texts have; and again by beam search. A longer text has more types for its size, so that both counts
are for equal numbers of words. Without a checkpoint, words are sampled from the prior's open classes by their initial
probabilities.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what examples share

from example_parts.text_units import lines_of
from open_vocabulary import Run, run

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.open_vocabulary.spelling import draw_unknown
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart
from fairseq_llrnn.prior.prior import Prior

AT_ONCE = 20  # lines of a call
BEAM = 50  # samples of each
ROUNDS = 25


def search(data: Path, path: Path, lines: Sequence[str], options: Sequence[str], execute: Run) -> list[list[str]]:
    """Return the words that a search writes after each line, without the line itself; several texts per line."""
    command = [
        *("fairseq-interactive", str(data), "--user-dir", str(Path(fairseq_llrnn.__file__).parent), "--cpu"),
        *("--task", "llrnn_language_modeling", "--path", str(path), "--max-len-b", "60", "--log-format", "none"),
        *options,
    ]
    found = execute(command, "".join(line + "\n" for line in lines))
    texts = re.findall(r"^H-(\d+)\t\S+\t(.*)$", found, re.MULTILINE)
    return [text.split()[len(lines[int(number) % len(lines)].split()) :] for number, text in texts]


def unknown_words(words: Sequence[str], known: set[str]) -> list[str]:
    """Return the words outside the dictionary."""
    return [word for word in words if word not in known]


def sampled(
    data: Path, path: Path, first: Sequence[str], known: set[str], many: int, seed: int, execute: Run
) -> Iterator[str]:
    """Return at least `many` unknown words of samples. Raises DataError if there are too few."""
    beginnings, met = cycle(first), 0
    for number in range(ROUNDS):
        options = ["--sampling", "--beam", str(BEAM), "--nbest", str(BEAM), "--seed", str(seed + number)]
        for text in search(data, path, list(islice(beginnings, AT_ONCE)), options, execute):
            new = unknown_words(text, known)
            met += len(new)
            yield from new
        if met >= many:
            return
    raise DataError(f"{path}: expected {many:,} unknown words of its samples, found {met:,}; train it longer")


def drawn_by_shares(prior: Path, known: set[str], many: int, seed: int) -> list[str]:
    """Return words of the open classes, each class as often as its probability within <unk>."""
    part = Prior.load(prior).find(OpenVocabularyPart)
    if part is None:
        raise DataError(f"{prior}: expected a prior with an open vocabulary, found none; build one with that option")
    random = np.random.default_rng(seed)
    shares = np.exp(part.vocabulary.log_shares)
    sizes = random.multinomial(many, shares / shares.sum())
    strings = part.vocabulary.strings
    return [w for o, size in enumerate(sizes.tolist()) for w in draw_unknown(strings, o, size, known, random)]


def row(name: str, words: Sequence[str]) -> str:
    """Return a line of the table."""
    counts = Counter(words)
    frequent = ", ".join(f"{word} {count}" for word, count in counts.most_common(3))
    return f"| {name} | {len(words):,} | {1000 * len(counts) / max(1, len(words)):.0f} | {frequent} |"


def compare(data: Path, path: Path | None, texts: Sequence[Path], seed: int, execute: Run = run) -> str:
    """Return the table of real words, samples and beam search."""
    dictionary = load_dictionary(data / "dict.txt").symbols
    known, lines = set(dictionary), [line for text in texts for line in lines_of(text) if line]
    real = unknown_words(" ".join(lines).split(), known)
    if not real:
        raise DataError(f"{texts[0]}: expected words that {data / 'dict.txt'} lacks, found none; give another text")
    rows = [row("text", real)]
    if path is None:
        rows.append(row("open classes by their shares", drawn_by_shares(data / "prior", known, len(real), seed)))
    else:
        rows += _written(data, path, lines, known, len(real), seed, execute)
    return "\n".join(["| | unknown words | types per 1,000 | the most frequent |", "|---|---:|---:|---|", *rows])


def _written(
    data: Path, path: Path, lines: Sequence[str], known: set[str], many: int, seed: int, execute: Run
) -> list[str]:
    """Return the rows of samples and of beam search."""
    first = [line.split()[0] for line in lines if line.split()[0] in known]
    drawn = list(islice(sampled(data, path, first, known, many, seed, execute), many))
    best = search(data, path, first[: 3 * AT_ONCE], ["--beam", "5", "--nbest", "5", "--unkpen", "-2"], execute)
    written = unknown_words([word for text in best for word in text], known)
    return [row("samples", drawn), row("beam search, `<unk>` preferred", written)]


@one_line_errors("sampled_words.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="types per 1,000 unknown words: real text, samples, beam search")
    parser.add_argument("--data", type=Path, required=True, help="folder of fairseq-preprocess, with the prior inside")
    parser.add_argument("--path", type=Path, help="checkpoint of a model with an open vocabulary")
    parser.add_argument("--text", type=Path, nargs="+", required=True, help="texts outside the training text")
    parser.add_argument("--seed", type=int, default=1, help="of the first samples (default: 1)")
    args = parser.parse_args()
    return act(args)


def act(args: argparse.Namespace) -> int:
    """Print the table. Raises LLRNNError."""
    print(compare(args.data, args.path, args.text, args.seed))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
