"""N-best lists as JSON lines: one object and sentence per line.

    {"id": 12, "source": "two men", "hypotheses": [{"text": "deux hommes", "score": -0.5, "features": {"lm": -3.2}}]}

id: the sentence's number, from 0. source: optional. hypotheses: may be empty. score: the system's total, higher is
better, for all hypotheses or none. features: optional numbers by name, with the same names for all. Other keys are
kept.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.text_lines import ReadCount, place, shown
from fairseq_llrnn.systems.reranking.nbest.lists import (
    PREFIX,
    Hypothesis,
    Lines,
    NBest,
    Ranked,
    check_not_rescored,
    number_of,
)

NAME = "json"
EXPECTED = 'lines such as `{"id": 12, "hypotheses": [{"text": "a hypothesis", "score": -0.5}]}`'


def belongs(line: str) -> bool:
    return line.lstrip().startswith("{")


def read(path: str, lines: Lines, count: ReadCount) -> Iterator[NBest]:
    """Read the format, as specified in NBestFormat.read."""
    first: list[str] | None = None  # contents of the first hypothesis: "score", names of features
    for number, line in lines:
        where = place(path, number)
        record = _object(line, where)
        sentence, source = record.get("id"), record.get("source")
        if isinstance(sentence, bool) or not isinstance(sentence, int) or not 0 <= sentence < 10**18:
            raise DataError(f"{where}: expected a sentence's number (0, 1, …) as id, found {_shown(sentence)}; fix it")
        if source is not None and not isinstance(source, str):
            raise DataError(f"{where}: expected a text as source, found {_shown(source)}; fix it")
        hypotheses = record.get("hypotheses")
        if not isinstance(hypotheses, list):
            raise DataError(f"{where}: expected a list as hypotheses, found {_shown(hypotheses)}; fix it")
        nbest = NBest(sentence, source, raw=[line], line=number)
        for item in hypotheses:
            hypothesis, has = _hypothesis(item, where)
            first = has if first is None else first
            if has != first:
                raise DataError(
                    f"{where}: expected hypotheses with {_listed(first)}, like the first one, found one with "
                    f"{_listed(has)}; give the same ones to every hypothesis"
                )
            nbest.hypotheses.append(hypothesis)
        count.read += 1
        yield nbest


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
        if "\\u" in line:
            json.dumps(record, ensure_ascii=False).encode()  # raises for lone surrogates
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: expected a JSON object, found {shown(line)} ({error}); fix the line") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object, found {shown(line)}; fix the line")
    return record


def _hypothesis(item: Any, where: str) -> tuple[Hypothesis, list[str]]:
    """Return the hypothesis and the list of its contents."""
    text = item.get("text") if isinstance(item, dict) else None
    if not isinstance(text, str) or "\n" in text or "\r" in text:
        raise DataError(f'{where}: expected hypotheses {{"text": "a line of text", …}}, found {_shown(item)}; fix it')
    features = item.get("features", {})
    if not isinstance(features, dict):
        raise DataError(f"{where}: expected numbers by name as features, found {_shown(features)}; fix it")
    check_not_rescored(features, where)
    score = item.get("score")
    for name, value in [("score", score)] * (score is not None) + list(features.items()):
        number_of(json.dumps(value), where, name)
    has = ["score"] * (score is not None) + [f"feature {name!r}" for name in sorted(features)]
    text = text.strip()
    return Hypothesis(text, text, None if score is None else float(score), (json.dumps(item, ensure_ascii=False),)), has


def _shown(value: Any) -> str:
    return "nothing" if value is None else shown(json.dumps(value, ensure_ascii=False))


def _listed(has: list[str]) -> str:
    return ", ".join(has) or "text alone"


def write(nbest: NBest, ranked: Sequence[Ranked]) -> Iterator[str]:
    """Write the format, as specified in NBestFormat.write."""
    record = cast(dict[str, Any], json.loads(nbest.raw[0]))
    record["hypotheses"] = []
    for hypothesis, added, total in ranked:
        item = cast(dict[str, Any], json.loads(hypothesis.raw[0]))
        ours = {f"{PREFIX}{name}": round(value, 6) for name, value in added.items()}
        scores = {"score": round(total, 6), "features": {**item.get("features", {}), **ours}}
        record["hypotheses"].append({**item, "text": hypothesis.text, **scores})
    yield json.dumps(record, ensure_ascii=False)
