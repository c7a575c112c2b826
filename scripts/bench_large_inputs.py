#!/usr/bin/env python3
"""Measure processor time and memory to read inputs of a million lines.

    python scripts/bench_large_inputs.py [--lines 1000000] [--only NAME]

Each input is read in its own process, which reports its largest resident set (peak RSS) and its seconds. The base is
the resident set before it reads. The exit status is 1 if an input takes more than LIMIT above it.

    terms, tbx          different terms of two words: read, and found in sentences
    report              the output of fairseq-generate as a system of `llrnn report`
    nbest: FORMAT       sentences with 50 hypotheses each, in order; `shuffled`: in the order of batches
    long                the same with 20,000 hypotheses per sentence
    phrases             a phrase table, of which 1,000 sources need a part
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fairseq_llrnn.systems.terms.tsv_file import EntriesByKey, TermEntry

LIMIT = 200  # MB
EACH = 50  # hypotheses of a sentence


def terms(lines: int) -> Iterator[str]:
    return (f"source{i} word{i % 1000}\ttarget{i}\tNOUN\ttarget{i}|targets{i}\n" for i in range(lines))


def tbx(lines: int) -> Iterator[str]:
    yield '<?xml version="1.0"?><martif type="TBX"><text><body>\n'
    for i in range(lines):
        yield (
            f'<termEntry><langSet xml:lang="en"><tig><term>source{i} word</term></tig></langSet><langSet xml:lang="fr">'
            f"<tig><term>target{i}</term></tig></langSet></termEntry>\n"
        )
    yield "</body></text></martif>\n"


def moses(lines: int, hypotheses: int = EACH) -> Iterator[str]:
    rows = ((i // hypotheses, f"the hypothesis number {i} of many", i % 97) for i in range(lines))
    return (f"{sentence} ||| {text} ||| lm= -{score} tm= -1 ||| -{score}\n" for sentence, text, score in rows)


def fairseq(lines: int, step: int = 1) -> Iterator[str]:
    sentences = lines // (2 * EACH)
    for n in range(sentences):
        sentence = n * step % sentences
        yield f"S-{sentence}\tthe source {sentence}\n"
        for i in range(EACH):
            yield f"H-{sentence}\t-0.{i}\tthe hypothesis number {i} of many\n"
            yield f"P-{sentence}\t-0.1 -0.2 -0.3 -0.4 -0.5 -0.6\n"


def json_lines(lines: int) -> Iterator[str]:
    for sentence in range(lines // EACH):
        entries = ", ".join(f'{{"text": "the hypothesis number {i} of many", "score": -{i}}}' for i in range(EACH))
        yield f'{{"id": {sentence}, "source": "the source", "hypotheses": [{entries}]}}\n'


def phrases(lines: int) -> Iterator[str]:
    return (f"source {i % 5000} ||| target {i} ||| 0.5 0.25 0.5 0.25 ||| 0-0 1-1 ||| 1 1 1\n" for i in range(lines))


def read_terms_of(path: Path) -> int:
    from fairseq_llrnn.systems.terms.tsv_file import read_terms

    return found_in_sentences(read_terms(path))


def read_tbx_of(path: Path) -> int:
    from fairseq_llrnn.systems.terms.tbx_file import read_tbx

    return found_in_sentences(read_tbx(path, ("en", "fr")))


def found_in_sentences(terms: Sequence[TermEntry]) -> int:
    """Find terms in sentences like systems/terms/terms.py."""
    by_key = EntriesByKey()
    for row, entry in enumerate(terms):
        by_key.add(row, (entry.source[0], f"\t{entry.source[0]}"))
    return sum(terms[row].source[0] == f"source{i}" for i in range(1000) for row in by_key.rows(f"source{i}"))


def read_list(path: Path) -> int:
    from fairseq_llrnn.systems.reranking.nbest import open_nbest

    with tempfile.TemporaryDirectory() as scratch:
        return sum(len(nbest.hypotheses) for nbest in open_nbest(path, Path(scratch)))


def read_system(path: Path) -> int:
    from fairseq_llrnn.systems.reranking.texts import read_texts

    reference = path.with_name("reference")
    sentences = sum(line.startswith("S-") for line in path.open(encoding="utf-8"))
    reference.write_text("the reference\n" * sentences, encoding="utf-8")
    return len(read_texts(str(reference), str(reference), {"system": str(path)}))


def read_table(path: Path) -> int:
    from fairseq_llrnn.systems.reranking.phrase_table import PhraseTable

    return len(PhraseTable.read(path, [f"source {i}" for i in range(1000)]).pairs)


INPUTS: dict[str, tuple[Callable[[int], Iterator[str]], Callable[[Path], int]]] = {
    "terms": (terms, read_terms_of),
    "tbx": (tbx, read_tbx_of),
    "nbest: moses": (moses, read_list),
    "nbest: fairseq": (fairseq, read_list),
    "nbest: fairseq, shuffled": (lambda lines: fairseq(lines, 7919), read_list),
    "report": (fairseq, read_system),
    "nbest: json": (json_lines, read_list),
    "nbest: moses, long": (lambda lines: moses(lines, 20_000), read_list),
    "phrases": (phrases, read_table),
}


def peak() -> float:
    """Return the peak RSS in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def read(name: str, path: Path) -> None:
    """Read an input in its own process: first a small file, so that all modules are imported, then the large one."""
    make, reader = INPUTS[name]
    small = path.with_name("small")
    small.write_text("".join(make(2000)), encoding="utf-8")
    reader(small)
    base, start = peak(), time.process_time()
    entries = reader(path)
    print(f"{name:<26} {entries:>10,} {time.process_time() - start:>6.1f} s {base:>6.0f} MB + {peak() - base:>5.0f} MB")
    sys.exit(peak() - base > LIMIT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--only", choices=INPUTS)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        read(args.read[0], Path(args.read[1]))
    failed = 0
    for name in [args.only] if args.only else INPUTS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "input")
            with path.open("w", encoding="utf-8") as file:
                file.writelines(INPUTS[name][0](args.lines))
            failed |= subprocess.run([sys.executable, __file__, "--read", name, str(path)], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
