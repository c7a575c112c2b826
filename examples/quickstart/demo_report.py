"""Compare the models of the demo: a table, a picture, and the sentence to explain.

    python examples/quickstart/demo_report.py --corpus DIR --data DATA-BIN \\
        --model softmax=DIR --model log-linear=DIR --out DIR

Each model is a folder of fairseq-train (--save-dir). Any language model of fairseq works. All are scored by the same
code, from the full distribution over the vocabulary.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # if the package is not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))  # the embedded corpus
logging.getLogger("fairseq").setLevel(logging.WARNING)  # before the imports, which log
logging.getLogger("matplotlib").setLevel(logging.WARNING)

from fairseq_llrnn.errors import DataError, OptionError, one_line_errors  # noqa: E402
from toy_french.evaluation import (  # noqa: E402
    DISTANCES,
    KINDS,
    Exam,
    Grades,
    grade,
    read_exam,
    sentence_to_explain,
)

BATCH = 64  # sentences scored at once
EXAMPLE = "le prix était de", "37", "grenoble"  # paper, section 3
COLOURS = ("#b0b0b0", "#d9a441", "#2a6fb0")


@dataclass(frozen=True)
class Entry:
    """A model in the table."""

    name: str
    grades: Grades
    example: tuple[float, float]  # log p of the two words of EXAMPLE
    parameters: int
    seconds: float  # of training


class FairseqScorer:
    """log p of every word of a sentence and of its end, by any language model of fairseq."""

    def __init__(self, checkpoint: Path, data: Path) -> None:
        if not checkpoint.is_file():
            raise DataError(f"{checkpoint}: expected a checkpoint of fairseq-train, found none; train the model")
        from fairseq import checkpoint_utils

        from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading

        with safe_loading():  # the softmax's, too: fairseq alone refuses its own
            models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data)})
        self.model = models[0].eval()
        self.dictionary = task.source_dictionary

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[list[float]]:
        scores: list[list[float]] = []
        for start in range(0, len(sentences), BATCH):
            scores += self._batch(sentences[start : start + BATCH])
        return scores

    def _batch(self, sentences: Sequence[Sequence[str]]) -> list[list[float]]:
        import torch

        words, end = self.dictionary, self.dictionary.eos()
        rows = [torch.tensor([words.index(word) for word in sentence] + [end]) for sentence in sentences]
        target = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=words.pad())  # shape: (B, T)
        previous = torch.cat([torch.full_like(target[:, :1], end), target[:, :-1]], dim=1)
        with torch.inference_mode():
            output = self.model(previous, src_lengths=torch.tensor([len(row) for row in rows]))
            log_probs = self.model.get_normalized_probs(output, log_probs=True)
        chosen = log_probs.gather(2, target.unsqueeze(2)).squeeze(2)
        return [chosen[i, : len(row)].tolist() for i, row in enumerate(rows)]


def make_entry(name: str, folder: Path, data: Path, exam: Exam) -> Entry:
    import torch

    from fairseq_llrnn.plugin.compat.safe_checkpoints import safe_loading

    score = FairseqScorer(folder / "checkpoint_best.pt", data)
    prefix, right, wrong = EXAMPLE
    answers = score([[*prefix.split(), word] for word in (right, wrong)])
    with safe_loading():
        state = torch.load(folder / "checkpoint_last.pt", map_location="cpu", weights_only=True)
    return Entry(
        name,
        grade(exam, score),
        (answers[0][-2], answers[1][-2]),
        sum(p.numel() for p in score.model.parameters()),
        state["extra_state"]["previous_training_time"],
    )


def table(entries: Sequence[Entry]) -> str:
    """Return a table with a row per figure and a column per model."""
    rows: list[tuple[str, list[str]]] = [
        ("parameters", [f"{entry.parameters:,}" for entry in entries]),
        ("training, seconds", [f"{entry.seconds:.0f}" for entry in entries]),
        ("test perplexity", [f"{entry.grades.perplexity:.1f}" for entry in entries]),
    ]
    for label, prefix in (("  words of train", "seen"), ("  words not in train", "unseen")):
        rows.append((label, [_short(entry.grades.perplexity_of(prefix)) for entry in entries]))
    rows.append(("agreement of unseen forms", [_percent(entry.grades, 0, 99) for entry in entries]))
    for first, last in DISTANCES:
        name = f"{first} to {last}" if last < 99 else f"{first} and more"
        rows.append((f"  {name} words in between", [_percent(entry.grades, first, last) for entry in entries]))
    rows.append(("price: p(number) / p(place)", [_short(entry.grades.ratio("number")) for entry in entries]))
    rows.append(("travel: p(place) / p(number)", [_short(entry.grades.ratio("place")) for entry in entries]))
    for place, word in enumerate(EXAMPLE[1:]):
        rows.append((f"p({word} | {EXAMPLE[0]})", [f"{_exp(entry.example[place]):.1e}" for entry in entries]))
    width = max(len(label) for label, _ in rows)
    column = 2 + max(12, *(len(entry.name) for entry in entries))
    lines = [" " * width + "".join(f"{entry.name:>{column}}" for entry in entries)]
    lines += [f"{label:<{width}}" + "".join(f"{cell:>{column}}" for cell in cells) for label, cells in rows]
    return "\n".join(lines)


def _exp(log_prob: float) -> float:
    return float(2.718281828459045**log_prob)


def _percent(grades: Grades, first: int, last: int) -> str:
    return f"{100 * grades.accuracy(first, last)[0]:.1f} %"


def _short(value: float) -> str:
    return f"{value:,.1f}" if value < 100_000 else f"{value:.1e}"


def draw(entries: Sequence[Entry], path: Path) -> None:
    """Draw three panels: loss by kind of word, agreement by distance, and probability of numbers and places."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (losses, agreement, ratios) = pyplot.subplots(1, 3, figsize=(15, 4.5), width_ratios=(3, 2, 2))
    width = 0.8 / len(entries)
    kinds = [kind for kind in KINDS if kind in entries[0].grades.nats]
    buckets = [f"{first}–{last}" if last < 99 else f"{first}+" for first, last in DISTANCES]
    contexts = {"number": "number,\nnot place,\nas a price", "place": "place,\nnot number,\nafter a travel"}
    for index, entry in enumerate(entries):
        colour, grades = COLOURS[index % len(COLOURS)], entry.grades
        shift = (index - (len(entries) - 1) / 2) * width
        nats = [grades.nats[kind] for kind in kinds]
        losses.bar([x + shift for x in range(len(kinds))], nats, width, color=colour, label=entry.name)
        accuracies = [100 * grades.accuracy(*bucket)[0] for bucket in DISTANCES]
        agreement.bar([x + shift for x in range(len(buckets))], accuracies, width, color=colour)
        values = [[r / 2.302585 for p, r in grades.log_ratios if p.kind == kind] for kind in contexts]
        boxes = ratios.boxplot(
            values, positions=[x + shift for x in range(len(contexts))], widths=0.8 * width, patch_artist=True,
            medianprops={"color": "black"}, flierprops={"markersize": 2},
        )  # fmt: skip
        for box in boxes["boxes"]:
            box.set_facecolor(colour)
    counts = entries[0].grades.counts
    losses.set_xticks(range(len(kinds)), [f"{kind.replace(' ', chr(10))}\n({counts[kind]:,})" for kind in kinds])
    losses.set(title="loss by kind of word in the test text", ylabel="nats per word")
    losses.legend(loc="upper left")
    agreement.set_xticks(range(len(buckets)), buckets)
    agreement.set(title="right agreement of forms unseen in train", ylabel="%", xlabel="words between noun and form")
    agreement.set_ylim(0, 105)
    agreement.axhline(50, color="black", linewidth=0.8, linestyle=":")
    ratios.set_xticks(range(len(contexts)), list(contexts.values()))
    ratios.set(title="words never seen there in train", ylabel="log10 p(right) / p(wrong)")
    ratios.axhline(0, color="black", linewidth=0.8, linestyle=":")
    figure.tight_layout()
    temporary = path.with_name(path.name + ".tmp")
    figure.savefig(temporary, format="png", dpi=110)
    pyplot.close(figure)
    os.replace(temporary, path)


def report(corpus: Path, data: Path, models: Sequence[str], out: Path) -> None:
    folders: dict[str, Path] = {}
    for model in models:
        name, equals, folder = model.partition("=")
        if not (name and equals and folder):
            raise OptionError(f"--model {model}: expected NAME=DIR, the folder of a trained model")
        folders[name] = Path(folder)
    exam = read_exam(corpus)
    entries = [make_entry(name, folder, data, exam) for name, folder in folders.items()]
    out.mkdir(parents=True, exist_ok=True)
    print(table(entries))
    draw(entries, out / "demo.png")
    print(f"\npicture: {out / 'demo.png'}")
    (out / "sentence.txt").write_text(sentence_to_explain(exam) + "\n", encoding="utf-8")


@one_line_errors("demo_report")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, metavar="DIR", help="what make_corpus.py wrote")
    parser.add_argument("--data", type=Path, required=True, metavar="DATA-BIN", help="what fairseq-preprocess wrote")
    parser.add_argument("--model", action="append", required=True, metavar="NAME=DIR", help="a trained model; repeat")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the picture")
    args = parser.parse_args()
    logging.getLogger("fairseq_llrnn").setLevel(logging.WARNING)
    report(args.corpus, args.data, args.model, args.out)


if __name__ == "__main__":
    sys.exit(main())
