"""N-best lists for tests of `llrnn rescore`."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

MOSES = """\
0 ||| le chat voit la mer ||| LM= -3 ||| -2
0 ||| le chat voit le mer ||| LM= -4 ||| -1.5
0 ||| mer la voit chat le ||| LM= -5 ||| -1
1 ||| un roi tient bien ||| LM= -3 ||| -1
1 ||| un roi tient zzz ||| LM= -4 ||| -2
"""
AS_FAIRSEQ = """\
S-1\t…
H-1\t-1\tun roi tient bien
D-1\t-1\tUn roi tient bien.
H-1\t-2\tun roi tient zzz
D-1\t-2\tUn roi tient zzz.
S-0\t…
H-0\t-2\tle chat voit la mer
D-0\t-2\tLe chat voit la mer.
H-0\t-1.5\tle chat voit le mer
D-0\t-1.5\tLe chat voit le mer.
H-0\t-1\tmer la voit chat le
D-0\t-1\tMer la voit chat le.
"""
AS_JSON = """\
{"id": 0, "hypotheses": [{"text": "le chat voit la mer", "score": -2}, {"text": "le chat voit le mer", "score": -1.5}, \
{"text": "mer la voit chat le", "score": -1}]}
{"id": 1, "hypotheses": [{"text": "un roi tient bien", "score": -1}, {"text": "un roi tient zzz", "score": -2}]}
"""

Write = Callable[[str, str], Path]


def noisy(lines: list[str], seed: int, size: int = 8) -> Iterator[list[tuple[float, str]]]:
    """For each line, hypotheses with some words wrong and totals that hardly know it; best total first."""
    rng = random.Random(seed)
    words = sorted({word for line in lines for word in line.split()})
    for line in lines:
        hypotheses = []
        for _ in range(size):
            text = line.split()
            errors = rng.randint(0, 3)
            for _ in range(errors):
                text[rng.randrange(len(text))] = rng.choice(words)
            hypotheses.append((round(rng.gauss(-errors, 3), 3), " ".join(text)))
        yield sorted(hypotheses, reverse=True)


def as_moses(lists: Iterator[list[tuple[float, str]]]) -> str:
    return "".join(f"{n} ||| {text} ||| {total}\n" for n, one in enumerate(lists) for total, text in one)


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def but_counts(err: str) -> str:
    """What a command said on stderr, but for lines such as `note: list: 5 of 5 lines read`."""
    count = re.compile(r"note: .*: [\d,]+ of [\d,]+ (lines|rows|phrase pairs) read(; left out: .*)?\n")
    return "".join(line for line in err.splitlines(keepends=True) if not count.fullmatch(line))
