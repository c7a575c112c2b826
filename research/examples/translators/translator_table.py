"""The table of the rows: perplexity, BLEU, rare words, seconds; and BLEU by the length of the source."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from translator_rows import NETWORKS, PRIORS

from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.systems.reranking.tallies import by_frequency

# Source words, </s> not counted: names of thirds of test2016 or so, and the longest of each.
LENGTHS = (("up to 9", 9), ("10 to 13", 13), ("14 and more", 1000))
RARE = ("1", "2–5")  # times that training shows a word


def lines_of(path: Path) -> list[str]:
    return [line for _, line in iter_lines(path)]


def bleu(lines: Sequence[str], reference: Sequence[str]) -> float:
    """Return BLEU of the tokens."""
    return float(BLEU(tokenize="none", force=True).corpus_score(list(lines), [list(reference)]).score)


def table(rows: Path, text: Path) -> Iterator[str]:
    """Return both tables, in Markdown. Unfinished rows are left out."""
    source, reference = lines_of(text / "test.en"), lines_of(text / "test.fr")
    counts = Counter(word for line in lines_of(text / "train.fr") for word in line.split())
    found = {
        (network, output): (json.loads((place / "facts.json").read_text(encoding="utf-8")), lines_of(place / "test.fr"))
        for network in NETWORKS
        for output in PRIORS
        if (place := rows / f"{network}-{output}").joinpath("test.fr").exists()
    }
    yield "| network | output | updates | train, s | translate, s | perplexity | BLEU | seen 1 to 5 times | unseen |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    words = [line.split() for line in reference]
    for (network, output), (facts, lines) in found.items():
        tallies = {t.label: t for t in by_frequency(words, [[line.split() for line in lines]], counts)}
        rare = sum(tallies[r].matches[0] for r in RARE) / max(1, sum(tallies[r].total for r in RARE))
        unseen = tallies["0"].matches[0] / max(1, tallies["0"].total)
        yield (
            f"| {NETWORKS[network].title} | {output} | {facts['updates']} | {facts['train_seconds']:.0f} | "
            f"{facts['translate_seconds']:.0f} | {facts['test_ppl']:.1f} | {bleu(lines, reference):.1f} | "
            f"{100 * rare:.1f} % | {100 * unseen:.1f} % |"
        )
    yield ""
    groups, below = [], 0
    for _, longest in LENGTHS:
        groups.append([i for i, line in enumerate(source) if below < len(line.split()) <= longest])
        below = longest
    sizes = " | ".join(f"{name} ({len(group)})" for (name, _), group in zip(LENGTHS, groups, strict=True))
    yield f"| network | output | {sizes} |"
    yield f"|---|---|{'---:|' * len(groups)}"
    for (network, output), (_, lines) in found.items():
        scores = [f"{bleu([lines[i] for i in group], [reference[i] for i in group]):.1f}" for group in groups]
        yield f"| {NETWORKS[network].title.partition(':')[0]} | {output} | {' | '.join(scores)} |"
