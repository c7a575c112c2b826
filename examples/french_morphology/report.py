"""Write the results: french.md with all tables, french-sweep.png, french.json.

    report.py --out OUT --docs OUT/results

reads the output of prepare.py, pairs.py and run.py in OUT. Unfinished models are listed.
"""

import argparse
import json
import logging
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tables
from agreement import Estimate, accuracy, balanced, groups, headline
from experiments import BEST_M, HONEST, MODES
from prepare import count
from results import Results, read_results

from fairseq_llrnn.errors import DataError, one_line_errors

TEXTS = ("train", "valid", "test1", "test2")

HOW = """\
Made by `examples/french_morphology/run.sh` from French UD (GSD, release 1.4). All models share the dictionary
of 42,503 words, the sizes of the paper (256-dimensional input, two LSTM layers of 256, unless the name has another
width) and early stopping after three epochs without progress. Figures are base-e log-perplexities per token,
sentence ends included (as in fairseq), except in marked columns. *Paper mode* takes features and unigram from all
four texts, as the paper did: the model has the words of the test and their counts. *Honest mode* takes both from the
training text. A softmax without background has only the vocabulary."""

GUESSED = """\
Honest mode. The treebank has analyses of all words of the training text and of none that only the other texts
show, so that a model learns that words without analyses never come. `--set words.guess=on` guesses theirs from their
spelling, and those of words that training shows once as well. Perplexities are from the mean of Test1 and Test2."""

MIXED = """\
p = w · p_model + (1 − w) · p_ngrams of every token: interpolated modified Kneser-Ney over the training text, in
both modes. n, of 3 and 5, and w are those with the least loss on the validation text (`run.py mix`)."""

AGREEMENT = """\
A pair is a prefix from Test1 or Test2, the adjective, participle or verb that follows, and a form of it that
is wrong in gender or number only; the word that decides stands at a distance to the left
(examples/french_morphology/pairs.py). A model is right where it gives the right form the higher probability.
*Balanced* is the mean of two accuracies: where the right form is the more frequent one, and where it is the
rarer one; a unigram scores exactly 50 there. *Wrong not rarer* are the pairs in which the wrong form is at
least as frequent. Intervals are 95 %, by bootstrap over sentences."""


def document(results: Results, out: Path) -> str:
    """Return french.md."""
    texts = {name: (out / "text" / f"{name}.txt").read_text(encoding="utf-8").splitlines() for name in TEXTS}
    parts = ["# Log-linear language models on French", HOW]
    if results.missing:
        parts.append(f"**Not finished:** {', '.join(results.missing)}.")
    parts += ["## Goals", tables.goals(results)]
    parts += ["## Table 1: the corpus", tables.corpus(count(texts))]
    parts += ["## Table 2: sizes", tables.sizes(results)]
    parts += ["## Table 3: log-perplexity by M", tables.sweep(results), "![log-perplexity by M](french-sweep.png)"]
    parts += ["## Table 4: against softmaxes", tables.against_softmax(results)]
    parts += ["## What every ingredient gives", tables.ablations(results)]
    if results.group("guess"):
        parts += ["## Unknown words with guessed features", GUESSED, tables.guessed(results)]
    if any("mixture" in result.facts for result in results.finished.values()):
        parts += ["## Mixed with n-grams", MIXED, tables.mixtures(results)]
    parts += [f"## Agreement: {headline(BEST_M).name}", AGREEMENT, tables.agreement_headline(results)]
    parts += [
        "### By distance and kind, balanced by training counts",
        tables.agreement_by_group(results),
    ]
    best = results.best(HONEST)
    if best is not None:
        title = f"## Table 5: a sentence drawn from {best.model.name}, with its features"
        parts += [title, tables.generated(best)]
    parts += ["## The settings behind every row", tables.signatures(results)]
    return "\n\n".join(parts) + "\n"


def plain(estimate: Estimate) -> dict[str, Any] | None:
    """Round an estimate to four decimals, more than the intervals allow. JSON has no NaN."""
    return {name: round(value, 4) for name, value in asdict(estimate).items()} if estimate.pairs else None


def machine_readable(results: Results) -> str:
    """Return french.json: all measured values, and accuracies by group, one model per line."""
    lines = []
    for result in results.finished.values():
        accuracies = {}
        for group in groups(BEST_M):
            pairs, chosen = tables.select(results, group)
            answers = result.answers[chosen]
            accuracies[group.name] = {
                "all": plain(accuracy(pairs, answers)),
                **{f"balanced, {mode} counts": plain(balanced(pairs, answers, mode)) for mode in MODES},
            }
        facts = {key: value for key, value in result.facts.items() if key != "generated"}
        lines.append(json.dumps(facts | {"agreement": accuracies}, ensure_ascii=False, allow_nan=False))
    missing = json.dumps(results.missing)
    return f'{{"not_finished": {missing}, "models": [\n' + ",\n".join(lines) + "\n]}\n"


def write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


@one_line_errors("report.py")
def main() -> None:
    parser = argparse.ArgumentParser(description="tables and picture of the French experiment")
    parser.add_argument("--out", type=Path, required=True, help="where prepare.py, pairs.py and run.py wrote")
    parser.add_argument("--docs", type=Path, required=True, help="folder for french.md, french.json, french-sweep.png")
    args = parser.parse_args()
    # fairseq turns the root logger up, and matplotlib has much to say about fonts.
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    from plot import draw_sweep

    results = read_results(args.out)
    if not results.finished:
        raise DataError(f"{args.out / 'models'}: expected finished models, found none; start run.py train first")
    args.docs.mkdir(parents=True, exist_ok=True)
    draw_sweep(results, args.docs / "french-sweep.png")
    write(args.docs / "french.md", document(results, args.out))
    write(args.docs / "french.json", machine_readable(results))
    print(f"{args.docs / 'french.md'}: {len(results.finished)} models, {len(results.missing)} not finished")


if __name__ == "__main__":
    raise SystemExit(main())
