"""Read docs/results/runs.jsonl, the ledger of all measured figures, and compute figures from it.

A line of the ledger is a JSON object, a *run*, with these entries:

    key        its name on pages: `hungarian/regularised`. Lower-case letters, digits, `-` and `/`
    value      the figure, with the decimals that pages show (60.90, not 60.9)
    metric     what is measured, with its unit
    better     "higher", "lower" or "neither"
    seeds      [1, 2, 3], "none" (nothing is random) or "not recorded" (then `n` has their number if it is known)
    baseline   the key of the run that it is compared with, or "none"
    data, command
    commit     of the run, "not recorded", or "published" (a figure from a paper, which `note` names)

It may have `values` (one for each seed), `std`, `low`, `high`, `p`, `parameters`, `signatures`, `inputs`, `unseen`
(bits per unseen word) and `note`. Where `values` are present, `value`, `std`, `low` and `high` must follow from them.

An expression is a key, a key with an entry (`hungarian/regularised.low`), a number, or a function of expressions. The
entry `lead` is the distance from the baseline, above 0 if the run is better.

    fall(a, b), rise(a, b)   by how many percent b is below a, above a
    gap(a, b), ratio(a, b)   a − b and a / b
    percent(a, b)            100 a / b
    mean(…), sum(…), min(…), max(…), exp(a)
    round(a, places)         a with other decimals
"""

import json
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

LEDGER = "docs/results/runs.jsonl"
NOT_RECORDED, NONE, PUBLISHED = "not recorded", "none", "published"
MARK = "†"  # after a figure whose commit or seeds are not recorded
TEXTS = ("key", "metric", "better", "baseline", "data", "command", "commit")
NUMBERS = ("value", "std", "low", "high", "p", "n", "parameters", "signatures", "inputs", "unseen", "seconds")
ENTRIES = {*TEXTS, *NUMBERS, "seeds", "values", "note"}
KEY = re.compile(r"[a-z][a-z0-9]*(?:[/-][a-z0-9]+)*")
COMMIT = re.compile(r"[0-9a-f]{7,40}")
LITERAL = re.compile(r"[-−+]?\d+(?:,\d{3})*(?:\.\d+)*")
TOKEN = re.compile(r"\s*(?:([a-z][a-z0-9/-]*(?:\.[a-z]+)?)|([-−+]?\d[\d,.]*(?<![,.]))|([(),]))")
Run = dict[str, Any]


class LedgerError(Exception):
    """A line of the ledger or an expression is wrong."""


@dataclass(frozen=True)
class Figure:
    """A number for a page: its exact value, its decimals, and the run if it is an entry of one run.

    `metric` has the units that a page may give it. A literal has none.
    """

    value: Decimal
    places: int
    run: Run | None = None
    literal: str = ""
    metric: str = ""

    def __str__(self) -> str:
        return self.literal or f"{rounded(self.value, self.places):,f}".replace("-", "−")

    @property
    def is_marked(self) -> bool:
        return self.run is not None and NOT_RECORDED in (self.run["commit"], self.run["seeds"])


def rounded(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def places_of(value: Decimal | int) -> int:
    return max(0, -int(Decimal(value).as_tuple().exponent))


def problems_of(run: Run) -> Iterator[str]:
    """Yield what is wrong with a line, other runs aside."""
    for name in TEXTS:
        if not isinstance(run.get(name), str) or not run[name]:
            yield f"expected {name}, a text, found {json.dumps(run.get(name), default=str)}"
    for name in NUMBERS:
        if name in run and (isinstance(run[name], bool) or not isinstance(run[name], Decimal | int)):
            yield f"expected a number for {name}, found {json.dumps(run[name], default=str)}"
    if "value" not in run:
        yield "expected a value, found none"
    if unknown := sorted({*run} - ENTRIES):
        yield f"expected entries of the list in scripts/ledger.py, found {', '.join(unknown)}"
    seeds = run.get("seeds")
    if seeds not in (NONE, NOT_RECORDED) and not (seeds and isinstance(seeds, list)):
        yield f'expected seeds, a list of them, "{NONE}" or "{NOT_RECORDED}", found {json.dumps(seeds, default=str)}'


def problems_of_meaning(run: Run) -> Iterator[str]:
    """Yield what is wrong with the entries of a line that has all of them."""
    if not KEY.fullmatch(run["key"]):
        yield "expected a key of lower-case letters, digits, single - and /; rename it"
    if run["better"] not in ("higher", "lower", "neither"):
        yield f'expected better "higher", "lower" or "neither", found "{run["better"]}"'
    if run["commit"] not in (NOT_RECORDED, PUBLISHED) and not COMMIT.fullmatch(run["commit"]):
        yield f'expected a commit, "{NOT_RECORDED}" or "{PUBLISHED}", found "{run["commit"]}"'
    if isinstance(run["seeds"], list) and "n" in run:
        yield "expected n only if the seeds are not recorded; remove it"
    values = run.get("values")
    if values is None:
        return
    if isinstance(run["seeds"], list) and len(values) != len(run["seeds"]):
        yield f"expected a value for each of {len(run['seeds'])} seeds, found {len(values)}"
    computed = {"value": sum(values) / Decimal(len(values)), "low": min(values), "high": max(values)}
    computed |= {"std": Decimal(statistics.stdev(values))} if len(values) > 1 else {}
    for name, value in computed.items():
        if name in run and abs(run[name] - value) > Decimal("0.5001").scaleb(-places_of(run[name])) + slack(values):
            yield f"expected {name} {rounded(value, places_of(run[name]))} (of its values), found {run[name]}"


def slack(values: list[Decimal]) -> Decimal:
    """Return how far a mean may be from that of the unrounded values."""
    return Decimal("0.5").scaleb(-max(map(places_of, values)))


def read_ledger(path: Path) -> dict[str, Run]:
    """Return the runs by key. It raises one LedgerError for all wrong lines."""
    runs: dict[str, Run] = {}
    wrong = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        place = f"{LEDGER}:{number}"
        try:
            run = json.loads(line, parse_float=Decimal)
        except json.JSONDecodeError as error:
            wrong.append(f"{place}: expected a JSON object, found {error.msg} at character {error.pos + 1}")
            continue
        found = list(problems_of(run)) or list(problems_of_meaning(run))
        place += f": {run.get('key')}"
        if run.get("key") in runs:
            found.append("expected one line for each key, found a second one")
        wrong += [f"{place}: {what}" for what in found]
        runs[run.get("key", place)] = run
    for run in runs.values():
        if run.get("baseline", NONE) != NONE and run["baseline"] not in runs:
            wrong.append(f"{LEDGER}: {run['key']}: expected the key of a run as its baseline, found {run['baseline']}")
    if wrong:
        raise LedgerError("\n".join(wrong))
    return runs


def relative(change: int) -> Callable[..., tuple[Decimal, int]]:
    """Return the function that gives by how many percent its second argument is below (-1) or above (1) the first."""

    def percent(first: Figure, second: Figure) -> tuple[Decimal, int]:
        return not_negative(100 * change * (second.value / first.value - 1), first, second), 0

    return percent


def not_negative(value: Decimal, *arguments: Figure) -> Decimal:
    if value < 0:
        shown = ", ".join(f"{argument.value.normalize():f}"[:12] for argument in arguments)
        raise LedgerError(f"expected a difference in the other direction, found ({shown}); correct the sentence")
    return value


def over_all(function: Callable[[list[Decimal]], Decimal]) -> Callable[..., tuple[Decimal, int]]:
    return lambda *figures: (function([figure.value for figure in figures]), max(each.places for each in figures))


FUNCTIONS: Mapping[str, Callable[..., tuple[Decimal, int]]] = {
    "fall": relative(-1),
    "rise": relative(1),
    "gap": lambda a, b: (not_negative(a.value - b.value, a, b), max(a.places, b.places)),
    "ratio": lambda a, b: (a.value / b.value, 2),
    "percent": lambda a, b: (100 * a.value / b.value, 0),
    "exp": lambda a: (a.value.exp(), 2),
    "round": lambda a, places: (a.value, int(places.value)),
    "mean": over_all(lambda values: sum(values, Decimal()) / len(values)),
    "sum": over_all(lambda values: sum(values, Decimal())),
    "min": over_all(min),
    "max": over_all(max),
}
# of functions whose figures have another metric than their arguments
METRICS = {"fall": "%", "rise": "%", "percent": "%", "ratio": "ratio", "exp": "perplexity, ratio"}


def evaluate(expression: str, runs: Mapping[str, Run]) -> Figure:
    """Return the figure of an expression."""
    figure, rest = parsed(expression, runs)
    if rest.strip():
        raise LedgerError(f"expected one expression, found {rest.strip()} after it")
    return figure


def parsed(text: str, runs: Mapping[str, Run]) -> tuple[Figure, str]:
    """Return the figure of the expression with which a text begins, and the rest of the text."""
    token = TOKEN.match(text)
    if not token or token[3]:
        raise LedgerError(f"expected a key, a number or a function, found {text.strip() or 'nothing'}")
    rest = text[token.end() :]
    if token[2]:
        if not LITERAL.fullmatch(token[2]):
            raise LedgerError(f"expected a number, found {token[2]}")
        plain = token[2].replace(",", "").replace("−", "-")
        value = Decimal(plain) if plain.count(".") < 2 else Decimal()  # 2.13.0 is a version
        return Figure(value, places_of(value), literal=token[2]), rest
    if not rest.startswith("("):
        return entry(token[1], runs), rest
    if token[1] not in FUNCTIONS:
        raise LedgerError(f"expected one of the functions {', '.join(FUNCTIONS)}, found {token[1]}")
    arguments: list[Figure] = []
    while not arguments or rest.startswith(","):
        argument, rest = parsed(rest[1:], runs)
        arguments.append(argument)
        rest = rest.lstrip()
    if not rest.startswith(")"):
        raise LedgerError(f"expected ) after the arguments of {token[1]}, found {rest or 'nothing'}")
    return called(token[1], arguments), rest[1:]


def called(name: str, arguments: list[Figure]) -> Figure:
    try:
        value, places = FUNCTIONS[name](*arguments)
    except (TypeError, ArithmeticError) as error:
        raise LedgerError(f"expected other arguments of {name}, found {len(arguments)} ({error})") from error
    metric = METRICS.get(name, " ".join(argument.metric for argument in arguments))
    if name == "gap":
        metric += " points"
    return Figure(value, places, arguments[0].run if name == "round" else None, metric=metric)


def entry(name: str, runs: Mapping[str, Run]) -> Figure:
    """Return the value of a run, or the entry that is named after a point."""
    key, _, field = name.partition(".")
    if key not in runs:
        raise LedgerError(f"expected a key of {LEDGER}, found {key}; correct it, or add its line")
    run, field = runs[key], field or "value"
    if field == "lead":
        other = entry(run["baseline"], runs)
        value = (run["value"] - other.value) * (1 if run["better"] == "higher" else -1)
        return Figure(value, places_of(value), metric=f"{run['metric']} points")
    found = len(run["seeds"]) if field == "n" and isinstance(run["seeds"], list) else run.get(field)
    if field not in NUMBERS or found is None:
        raise LedgerError(f"expected a numeric entry of {key}, found none named {field}")
    if field == "unseen":
        return Figure(Decimal(found), places_of(found), metric="bits per word")
    metric = run["metric"] if field in ("value", "std", "low", "high") else ""
    return Figure(Decimal(found), places_of(found), run, metric=metric)
