"""N-best lists as JSON lines: one object and sentence per line.

    {"id": 12, "source": "two men", "hypotheses": [{"text": "deux hommes", "score": -0.5, "features": {"lm": -3.2}}]}

id: the sentence's number, from 0. source: optional. hypotheses: may be empty. score: the system's total, higher is
better, for all hypotheses or none. features: optional numbers by name, with the same names for all. Other keys are
kept.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast

from annotated_types import Ge, Le, Lt
from pydantic import BaseModel, StringConstraints, ValidationError

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.files.numbers import LARGEST_SCORE
from fairseq_llrnn.files.text_lines import ReadCount, place, shown
from fairseq_llrnn.systems.reranking.nbest.lists import PREFIX, Hypothesis, Lines, NBest, Ranked, check_not_rescored

NAME = "json"
EXPECTED = 'lines such as `{"id": 12, "hypotheses": [{"text": "a hypothesis", "score": -0.5}]}`'

Number = Annotated[float, Ge(-LARGEST_SCORE), Le(LARGEST_SCORE)]


class ListedHypothesis(BaseModel):
    """A hypothesis of a line."""

    text: Annotated[str, StringConstraints(pattern=r"^[^\r\n]*$")]
    score: Number | None = None
    features: dict[str, Number] = {}

    def contents(self) -> str:
        """Return what the hypothesis has besides its text."""
        features = (f"feature {name!r}" for name in sorted(self.features))
        return ", ".join([*(["score"] if self.score is not None else []), *features]) or "text alone"


class ListedSentence(BaseModel):
    """A line."""

    id: Annotated[int, Ge(0), Lt(10**18)]
    source: str | None = None
    hypotheses: list[ListedHypothesis]


def belongs(line: str) -> bool:
    return line.lstrip().startswith("{")


def read(path: str, lines: Lines, count: ReadCount) -> Iterator[NBest]:
    """Read the format, as specified in NBestFormat.read."""
    first: str | None = None  # contents of the first hypothesis
    for number, line in lines:
        where = place(path, number)
        try:
            sentence = ListedSentence.model_validate_json(line, strict=True)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            key, reason = ".".join(map(str, problem["loc"])), problem["msg"].replace("at line 1 column", "at column")
            raise DataError(
                f"{where}: expected {EXPECTED}, found {shown(line)} ({f'{key}: ' * bool(key)}{reason}); fix the line"
            ) from None
        nbest = NBest(sentence.id, sentence.source, raw=[line], line=number)
        for index, hypothesis in enumerate(sentence.hypotheses):
            check_not_rescored(hypothesis.features, where)
            contents = hypothesis.contents()
            first = first or contents
            if contents != first:
                raise DataError(
                    f"{where}: expected hypotheses with {first}, like the first one, found one with {contents}; give "
                    "the same ones to every hypothesis"
                )
            text = hypothesis.text.strip()
            nbest.hypotheses.append(Hypothesis(text, text, hypothesis.score, [str(index)], hypothesis.features))
        count.read += 1
        yield nbest


def write(nbest: NBest, ranked: Sequence[Ranked]) -> Iterator[str]:
    """Write the format, as specified in NBestFormat.write."""
    record = cast(dict[str, Any], json.loads(nbest.raw[0]))
    items, record["hypotheses"] = record["hypotheses"], []
    for hypothesis, added, total in ranked:
        item = items[int(hypothesis.raw[0])]
        ours = {f"{PREFIX}{name}": round(value, 6) for name, value in added.items()}
        scores = {"score": round(total, 6), "features": {**item.get("features", {}), **ours}}
        record["hypotheses"].append({**item, "text": hypothesis.text, **scores})
    yield json.dumps(record, ensure_ascii=False)
