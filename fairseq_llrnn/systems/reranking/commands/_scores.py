"""The output of `llrnn rescore`: notes on irregular lists and scores, and the final table."""

from collections.abc import Mapping

from fairseq_llrnn.cli.tables import note, percent, plural
from fairseq_llrnn.systems.reranking.metrics import MetricScores
from fairseq_llrnn.systems.reranking.nbest import WITHOUT_HYPOTHESES
from fairseq_llrnn.systems.reranking.rescoring import PENALTY, Job, Weighing
from fairseq_llrnn.systems.reranking.score_cache import ScoreFile


def note_list(job: Job) -> None:
    """Print notes on a list."""
    for remark in job.notes:
        note(remark)
    for remark, count in job.lists.notes.items():
        if remark != WITHOUT_HYPOTHESES:
            line = job.lists.first.get(remark)
            note(f"{job.lists.path}: {count:,} {remark}" + (f" (the first in line {line:,})" if line else ""))
    missing = job.sentences - job.lists.sentences + job.lists.notes[WITHOUT_HYPOTHESES]
    if missing:
        note(
            f"{job.lists.path}: {plural(missing, 'sentence has', 'sentences have')} no hypotheses; the best ones are "
            "empty lines there"
        )


def note_scores(job: Job, scores: ScoreFile) -> None:
    """Print notes on hypotheses that the models could not score."""
    from fairseq_llrnn.plugin.scoring.sentences import UNREAD, UNSCORED

    for model, counted in scores.notes.items():
        ends = dict.fromkeys(UNSCORED, f"they count as {PENALTY:,.0f} nats") | {UNREAD: "it read the sentence alone"}
        for remark, end in ends.items():
            if counted[remark]:
                note(
                    f"{model}: {counted[remark]:,} of {plural(job.lists.hypotheses, 'hypothesis', 'hypotheses')} of "
                    f"{job.lists.path} {remark}; {end}"
                )


def report(
    job: Job,
    scores: ScoreFile,
    weighing: Weighing,
    metric: str,
    on_dev: MetricScores | None,
    on_test: MetricScores | None,
    changed: int,
    priors: Mapping[str, str],
) -> str:
    """Return the table. `priors`: signatures by model."""
    from fairseq_llrnn.plugin.scoring.sentences import UNKNOWN, WORDS

    width = max(10, *map(len, weighing.names))
    lines = [f"{'score':<{width}} {'weight':>8}  unknown words"]
    for name, weight in zip(weighing.names, weighing.weights, strict=True):
        counted = scores.notes.get(name)
        unknown = percent(counted[UNKNOWN] / max(1, counted[WORDS])) if counted else ""
        lines.append(f"{name:<{width}} {weight:>8.4f}  {unknown:>13}".rstrip())
    compared = [(split, c) for split, c in (("dev", on_dev), ("test", on_test)) if c is not None]
    if compared:
        lines += ["", f"{metric:<10} {'before':>8} {'after':>8} {'p':>7}  signature"]
        for split, c in compared:
            (before, after), (_, p) = c.scores, c.p_values
            shown = "" if p is None else f"{p:.3f}"
            lines.append(f"{split:<10} {before:>8.2f} {after:>8.2f} {shown:>7}  {c.signature}")
    lines += [""] * bool(priors) + [f"prior of {name}  {signature}" for name, signature in priors.items()]
    lines += ["", f"{changed:,} of {plural(job.sentences, 'sentence')} with another best hypothesis than before"]
    return "\n".join(lines)
