"""The tables of the report, in Markdown. Losses are base-e log-perplexities per token (nats)."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from agreement import Estimate, Group, accuracy, against, balanced, count_log_ratios, credits, groups, headline
from experiments import BEST_M, HONEST, MODES, PAPER, SWEEP
from pairs import Pair
from prepare import PAPER_REMARK, PAPER_TOKENS, PAPER_TYPES, Counts
from results import Result, Results

SUBSETS = {"valid": "Validation", "test1": "Test1", "test2": "Test2"}
# The paper's figures that are known to us: its best M, and how far its own softmax was.
PAPER_LOSS = {"test1": 5.08, "test2": 5.07}
PAPER_RATIO = 2.7


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose first column is text and whose other columns are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def corpus(counts: dict[str, Counts]) -> str:
    names = {"train": "Training", "valid": "Validation", "test1": "Test1", "test2": "Test2", "all": "all"}
    rows: list[list[object]] = [[names[name], *(f"{value:,}" for value in row)] for name, row in counts.items()]
    rows.append(["*the paper states*", "", f"{PAPER_TOKENS:,}", f"{PAPER_TYPES:,}", ""])
    head = ["text", "sentences", "words", "types", "types not in training"]
    return markdown(head, rows) + "\n\n" + PAPER_REMARK


def sizes(results: Results) -> str:
    """Return features, signatures and trained values by M, and of the softmax."""
    rows = []
    for name in [f"{mode}-m{top}" for mode in MODES for top in SWEEP] + ["softmax-stock", "softmax-strong"]:
        for result in results.get(name):
            found = result.facts["sizes"]
            rows.append(
                [result.model.what, result.model.mode or "-"]
                + [f"{found[key]:,}" if key in found else f"{found['words']:,}" for key in ("features", "signatures")]
                + [f"{found['parameters']:,}"]
            )
    return markdown(["model", "mode", "output features", "signatures (softmax: words)", "trained values"], rows)


def losses(result: Result) -> list[str]:
    with_ends = [f"{result.loss(subset):.3f}" for subset in SUBSETS]
    return with_ends + [f"{result.loss(subset, ends=False):.3f}" for subset in ("test1", "test2")]


LOSS_HEAD = [*SUBSETS.values(), "Test1 without ends", "Test2 without ends"]


def sweep(results: Results) -> str:
    """Return the log-perplexity by M in both modes."""
    rows: list[list[object]] = []
    for mode in MODES:
        for top in SWEEP:
            rows += [[f"{top:,}", mode, *losses(result)] for result in results.get(f"{mode}-m{top}")]
    paper = [f"{PAPER_LOSS[subset]:.2f}" if subset in PAPER_LOSS else "" for subset in SUBSETS]
    rows.append(["*the paper's best*", PAPER, *paper, "", ""])
    return markdown(["M", "mode", *LOSS_HEAD], rows)


def against_softmax(results: Results) -> str:
    """Return softmaxes and the best log-linear models, with the ratio of each perplexity to the best model's."""
    best = [result.model.name for result in map(results.best, MODES) if result is not None]
    names = [result.model.name for result in results.group("softmax")]
    names += [f"{mode}-m{BEST_M}" for mode in MODES] + best
    rows = []
    for row in results.get(*dict.fromkeys(names)):
        mode = row.model.mode
        ratios = []
        for other in MODES:
            reference = results.best(other)
            comparable = reference is not None and mode in (None, other)
            ratios.append(f"{math.exp(row.test_loss - reference.test_loss):.2f}×" if comparable and reference else "-")
        training = row.facts["training"]
        minutes = f"{training['train_seconds'] / 60:.0f}"
        rows.append([row.model.what, mode or "-", *losses(row), *ratios, training["epochs"], minutes])
    head = ["model", "mode", *LOSS_HEAD, *(f"perplexity over the best of {mode} mode" for mode in MODES)]
    note = (
        f"The ratio is of perplexities, from the mean of Test1 and Test2. The paper's own softmax is {PAPER_RATIO}× "
        "above its best log-linear model. Minutes are of one thread of a busy machine."
    )
    return markdown([*head, "epochs", "minutes"], rows) + "\n\n" + note


def ablations(results: Results) -> str:
    """Return the difference of each ingredient to the paper's recipe at M = BEST_M in nats."""
    rows: list[list[object]] = []
    for mode in MODES:
        for base in results.get(f"{mode}-m{BEST_M}"):
            rows.append([f"**{base.model.what}** (the paper's recipe)", mode, *losses(base)[:3], "", ""])
            for result in results.group("ablation", mode):
                differences = [f"{result.loss(subset) - base.loss(subset):+.3f}" for subset in ("test1", "test2")]
                rows.append([result.model.what, mode, *losses(result)[:3], *differences])
    return markdown(["model", "mode", *SUBSETS.values(), "Test1 difference", "Test2 difference"], rows)


def guessed(results: Results) -> str:
    """Return models with guessed features and the best recipe without them, 256 and 400 wide."""
    rows: list[list[object]] = []
    references = results.get(f"{HONEST}-best", f"{HONEST}-wide")
    for row in [*references, *results.group("guess")]:
        gains = [f"{100 * math.expm1(row.test_loss - other.test_loss):+.1f} %" for other in references]
        rows.append([row.model.what, row.model.name, *losses(row)[:3], *gains, row.facts["training"]["epochs"]])
    against = [f"perplexity, against {other.model.name}" for other in references]
    return markdown(["model", "name", *SUBSETS.values(), *against, "epochs"], rows)


def mixtures(results: Results) -> str:
    """Return models mixed with n-grams, the models alone, and the n-grams alone."""
    rows: list[list[object]] = []
    alone: dict[int, list[object]] = {}
    for result in results.finished.values():
        if "mixture" in result.facts:
            found = result.facts["mixture"]
            mixed = [f"{found['loss'][subset]:.3f}" for subset in SUBSETS]
            name, mode = result.model.name, result.model.mode or "-"
            rows.append([name, mode, *losses(result)[:3], found["order"], f"{found['weight']:.2f}", *mixed])
            ngrams = [f"{found['ngrams'][subset]:.3f}" for subset in SUBSETS]
            alone[found["order"]] = [f"{found['order']}-grams", "-", *ngrams, found["order"], "0.00", *ngrams]
    head = [
        "model",
        "mode",
        *SUBSETS.values(),
        "n",
        "weight of the model",
        *(f"mixed, {name}" for name in SUBSETS.values()),
    ]
    return markdown(head, [*rows, *alone.values()])


def cell(estimate: Estimate) -> str:
    return str(estimate).replace(" [", "&nbsp;[")


def select(results: Results, group: Group) -> tuple[list[Pair], np.ndarray]:
    chosen = [number for number, pair in enumerate(results.pairs) if pair in group]
    return [results.pairs[number] for number in chosen], np.array(chosen, dtype=int)


def agreement_headline(results: Results) -> str:
    """Return accuracies on far pairs of rare forms: every model, balanced by the counts of both modes."""
    pairs, chosen = select(results, headline(BEST_M))
    rows: list[list[object]] = []
    for mode in MODES:
        unigram = credits(count_log_ratios(pairs, mode))
        rows.append([f"*the counts of {mode} mode alone*", mode, *figures(pairs, unigram)])
    for result in results.finished.values():
        rows.append([result.model.what, result.model.mode or "-", *figures(pairs, result.answers[chosen])])
    head = [
        "model",
        "mode",
        "all pairs",
        *(f"{what}, {mode} counts" for mode in MODES for what in ("balanced", "wrong not rarer")),
    ]
    return markdown(head, rows)


def figures(pairs: Sequence[Pair], answers: np.ndarray) -> list[str]:
    found = [accuracy(pairs, answers)]
    for mode in MODES:
        found += [balanced(pairs, answers, mode), against(pairs, answers, mode)]
    return [cell(estimate) for estimate in found]


def agreement_by_group(results: Results) -> str:
    """Return selected models at every distance, then on the far and rare pairs by kind, balanced by honest counts."""
    shown = shown_in_agreement(results)
    rows = []
    for group in groups(BEST_M):
        pairs, chosen = select(results, group)
        cells = [cell(balanced(pairs, result.answers[chosen], HONEST)) for result in shown]
        rows.append([group.name, f"{len(pairs):,}", *cells])
    return markdown(["", "pairs", *(result.model.name for result in shown)], rows)


def shown_in_agreement(results: Results) -> list[Result]:
    """Return the strongest softmax, the softmax over our background, the paper's recipe and the best of each mode."""
    names = [result.model.name for result in [results.strongest_softmax()] if result is not None]
    for mode in MODES:
        names += [f"{mode}-softmax-unigram", f"{mode}-m{BEST_M}"]
        names += [result.model.name for result in [results.best(mode)] if result is not None]
    return results.get(*dict.fromkeys(names))


def agreement_gain(results: Results, mode: str) -> tuple[Estimate, Estimate] | None:
    """Return the best model of a mode minus the strongest softmax on the headline's pairs, on all and balanced."""
    ours, softmax = results.best(mode), results.strongest_softmax()
    if ours is None or softmax is None:
        return None
    pairs, chosen = select(results, headline(BEST_M))
    difference = ours.answers[chosen] - softmax.answers[chosen]
    return accuracy(pairs, difference), balanced(pairs, difference, mode)


def goals(results: Results) -> str:
    """Return the goals, and the measured values."""
    rows: list[list[object]] = []
    plain = [*results.group("sweep", PAPER), *results.get(f"{PAPER}-m5000-small")]
    swept = min(plain, key=lambda result: result.loss("valid"), default=None)
    for what, result, goal in (
        ("paper mode, the paper's recipe, best M", swept, "≤ 5.08 / ≤ 5.07"),
        ("paper mode, best recipe", results.best(PAPER), "≤ 4.95 / ≤ 4.95"),
    ):
        measured = f"{result.loss('test1'):.3f} / {result.loss('test2'):.3f} ({result.model.name})" if result else "-"
        rows.append([what, goal, measured])
    softmax = results.strongest_softmax()
    for mode in MODES:
        ours = results.best(mode)
        if ours and softmax:
            ratio = math.exp(softmax.test_loss - ours.test_loss)
            rows.append([f"perplexity of {softmax.model.name} over {ours.model.name}", "≥ 2.0×", f"{ratio:.2f}×"])
        for with_background in results.get(f"{mode}-softmax-unigram"):
            if ours:
                ratio = math.exp(with_background.test_loss - ours.test_loss)
                rows.append(
                    [f"perplexity of {with_background.model.name} over {ours.model.name}", "> 1×", f"{ratio:.2f}×"]
                )
        gain = agreement_gain(results, mode)
        if gain and ours and softmax:
            what = f"agreement, {headline(BEST_M).name}: {ours.model.name} minus {softmax.model.name}"
            rows.append([what, "≥ 10 points", f"{cell(gain[0])} (balanced {cell(gain[1])})"])
    note = "The best M, the best recipe and the strongest softmax are those with the lowest loss on Validation."
    return markdown(["", "goal", "measured"], rows) + "\n\n" + note


def generated(result: Result) -> str:
    """Return a sentence sampled from the model, each word with its features (Table 5 of the paper)."""
    rows = [[word, ", ".join(f"`{name}`" for name in features)] for word, features in result.facts["generated"]]
    return "\n".join(["| word | features |", "| --- | --- |", *(f"| {word} | {names} |" for word, names in rows)])


def signatures(results: Results) -> str:
    rows = [f"- `{result.model.signature()}`" for result in results.finished.values()]
    versions = {", ".join(map(" ".join, result.facts["versions"].items())) for result in results.finished.values()}
    return "\n".join([*rows, "", *(f"Versions: {line}." for line in sorted(versions))])
