"""The output of fairseq-generate and fairseq-interactive: a letter, the sentence's number, a tab, a value.

    S-12<TAB>source                          T-12, W-12, C-12: reference, time, constraint
    H-12<TAB>score<TAB>hypothesis            the hypothesis in the model's tokens, which is scored
    D-12<TAB>score<TAB>hypothesis            the same without pieces and tokenisation, which is the 1-best
    P-12<TAB>score score …                   A-12, I-12, E-12_0: alignment, steps, history
    F-12<TAB>llrnn_model=score …             ours, in reranked lists

Scores are logarithms to base 2 in the file, and nats here. fairseq-generate prints sentences in the order of its
batches, with logs in between. Other lines are skipped.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, place, shown
from fairseq_llrnn.systems.reranking.nbest.lists import (
    PREFIX,
    Hypothesis,
    Lines,
    NBest,
    Ranked,
    as_text,
    check_not_rescored,
    number_of,
)

NAME = "fairseq"
EXPECTED = "lines such as `H-12<TAB>-0.53<TAB>a hypothesis` of fairseq-generate"
LINE = re.compile(r"([A-Z])-([0-9]{1,18})(?:_[0-9]+)?\t(.*)", re.DOTALL)
OF_A_SENTENCE = "STWC"  # the other letters belong to the preceding hypothesis
LOGS = "that are not part of the list (logs)"


def belongs(line: str) -> bool:
    return LINE.fullmatch(line) is not None


def read(path: str, lines: Lines, count: ReadCount) -> Iterator[NBest]:
    """Read the format, as specified in NBestFormat.read."""
    current: NBest | None = None
    for number, line in lines:
        match = LINE.fullmatch(line)
        if match is None:
            count.left_out[LOGS] += 1
            continue
        letter, sentence, rest = match[1], int(match[2]), match[3]
        where = place(path, number)
        if current is None or current.number != sentence:
            if current is not None:
                yield current
            current = NBest(sentence, None, line=number)
        count.read += 1
        if letter == "H":
            score, text = _score_and_text(where, line, rest)
            current.hypotheses.append(Hypothesis(text, text, score))
        elif letter in OF_A_SENTENCE:
            current = _begin(current, where, letter, line, rest)
        else:
            _add(current, where, letter, line, rest)
    if current is not None:
        yield current


def _score_and_text(where: str, line: str, rest: str) -> tuple[float, str]:
    score, tab, text = rest.partition("\t")
    if not tab:
        raise DataError(f"{where}: expected {line[:1]}-N<TAB>score<TAB>text, found {shown(line)}; fix the line")
    return number_of(score, where, "score") * math.log(2), text.strip()


def _add(current: NBest, where: str, letter: str, line: str, rest: str) -> None:
    """Add a line about the preceding hypothesis."""
    if not current.hypotheses:
        raise DataError(f"{where}: expected an H- line of sentence {current.number} before {shown(line)}; fix the list")
    if letter == "F":
        check_not_rescored((pair.partition("=")[0] for pair in rest.split()), where)
    last = current.hypotheses[-1]
    if letter == "D":
        _, output = _score_and_text(where, line, rest)
        if any(raw.startswith("D-") for raw in last.raw):
            raise DataError(f"{where}: expected one D- line after each H- line, found another; fix the list")
        last = replace(last, output=output)
    current.hypotheses[-1] = replace(last, raw=(*last.raw, line))


def _begin(current: NBest, where: str, letter: str, line: str, rest: str) -> NBest:
    """Add a line about the sentence, before its hypotheses."""
    again = letter == "S" and current.source is not None
    if current.hypotheses or again:
        raise DataError(
            f"{where}: sentence {current.number} begins a second time; expected each number once (does the file "
            "have the outputs of several runs?)"
        )
    current.raw.append(line)
    return replace(current, source=rest.strip()) if letter == "S" else current


def write(nbest: NBest, ranked: Sequence[Ranked]) -> Iterator[str]:
    """Write the format, as specified in NBestFormat.write."""
    yield from nbest.raw
    for hypothesis, added, total in ranked:
        score = as_text(total / math.log(2))
        yield f"H-{nbest.number}\t{score}\t{hypothesis.text}"
        for line in hypothesis.raw:
            yield f"D-{nbest.number}\t{score}\t{hypothesis.output}" if line.startswith("D-") else line
        pairs = " ".join(f"{PREFIX}{name}={as_text(value / math.log(2))}" for name, value in added.items())
        yield f"F-{nbest.number}\t{pairs}"
