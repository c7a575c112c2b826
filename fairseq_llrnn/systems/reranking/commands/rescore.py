"""`llrnn rescore`: rerank other systems' n-best lists with log-linear (and other) models."""

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import numpy as np

from fairseq_llrnn.cli.model_options import need_fairseq
from fairseq_llrnn.cli.places import check_text_place
from fairseq_llrnn.cli.tables import note, output_error, plural
from fairseq_llrnn.errors import DataError, OptionError, check_least, check_unused_options, did_you_mean
from fairseq_llrnn.files.atomic_write import whole_file
from fairseq_llrnn.files.reading import file_digest
from fairseq_llrnn.systems.reranking.commands._models import (
    add_models,
    check_models,
    chosen,
    files_of,
    load_models,
)
from fairseq_llrnn.systems.reranking.commands._scores import note_list, note_scores, report
from fairseq_llrnn.systems.reranking.metrics import METRICS, TOKENIZERS, CorpusMetric, MetricScores
from fairseq_llrnn.systems.reranking.rescoring import LIST, Job, Model, Weighing, open_job, score_list
from fairseq_llrnn.systems.reranking.score_cache import ScoreFile
from fairseq_llrnn.systems.reranking.tuning import read_weights_file, tune, write_weights

NAME = "rescore"
STDIO = "-"
SEED = 1
HELP = "rerank the n-best lists of another system with language and translation models"
EXAMPLES = (
    "llrnn rescore --path translator/checkpoint_best.pt --source test.en --nbest test.nbest --tune valid.en "
    "valid.nbest valid.fr --out best.fr",
    "llrnn rescore --path translator/checkpoint_best.pt --lm-path checkpoints/checkpoint_best.pt --source test.en "
    "--nbest test.nbest --reference test.fr --out better.fr",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    lists = parser.add_argument_group(
        "input",
        "An n-best list is the output of fairseq-generate or fairseq-interactive, a list of Moses, `id ||| hypothesis "
        '||| features ||| total`, or JSON lines, {"id": 0, "source": "…", "hypotheses": [{"text": "…", "score": -1.5, '
        '"features": {"lm": -3}}]}. Plain or gzip.',
    )
    lists.add_argument("--nbest", required=True, metavar="FILE", help="the n-best list; `-`: stdin")
    lists.add_argument("--source", metavar="FILE", help="its source, a sentence a line (default: the list's own)")
    lists.add_argument(
        "--features", nargs="+", metavar="NAME",
        help="features of the list to weigh, such as lm; several values of a name are NAME.1, NAME.2",
    )  # fmt: skip
    models = parser.add_argument_group("models, ours or fairseq's")
    add_models(models)
    models.add_argument("--max-tokens", type=int, default=2048, metavar="N", help="tokens in a batch (default: 2048)")
    weights = parser.add_argument_group(
        "weights",
        "Hypotheses are ranked by a weighted sum of the list's own total, the models' log-probabilities, the chosen "
        "features and the number of words. Without --tune or --weights, the number of words has the weight 0, every "
        "other score 1.",
    )
    weights.add_argument(
        "--tune", nargs=3, metavar=("SOURCE", "NBEST", "REFERENCE"),
        help="tune the weights on this development set, and write them to OUT.weights.json",
    )  # fmt: skip
    weights.add_argument("--weights", metavar="FILE", help="weights written by an earlier --tune")
    weights.add_argument("--metric", choices=METRICS, default=METRICS[0], help="metric for tuning and reporting")
    weights.add_argument(
        "--tokenize", choices=TOKENIZERS,
        help="tokenisation for BLEU (default: 13a, for running text; none: the texts are tokenised)",
    )  # fmt: skip
    weights.add_argument("--seed", type=int, metavar="N", help=f"seed of the tuning (default: {SEED})")
    results = parser.add_argument_group("results")
    results.add_argument(
        "--out", required=True, metavar="FILE",
        help="the best hypotheses, one a line (`-`: stdout). An interrupted run resumes from OUT.scores",
    )  # fmt: skip
    results.add_argument("--nbest-out", metavar="FILE", help="the reranked list with new scores, in its own format")
    results.add_argument("--reference", metavar="FILE", help="reference translation, for scores and significance")


def run(args: argparse.Namespace) -> int:
    _check(args)
    try:
        _rescore(args)
    except OSError as error:
        if output_error() is not None or (args.out == STDIO and error.filename is None):
            raise
        raise DataError(
            f"{error.filename or args.out}: {error.strerror or error}; give --out and --nbest-out in writable folders "
            "with enough disk space; the next run resumes from the scores so far"
        ) from error
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise OptionError for invalid or contradictory options."""
    check_least("--max-tokens", args.max_tokens, 1)
    check_least("--seed", args.seed, 0)
    if args.tune and args.weights:
        raise OptionError("--tune and --weights: give one of them; --weights takes the result of an earlier --tune")
    if args.tokenize and args.metric != "bleu":
        raise OptionError(f"--tokenize {args.tokenize}: belongs to --metric bleu; {args.metric} counts characters")
    if not args.tune:
        check_unused_options({"seed": args.seed}, "belongs to --tune, which is missing; give both or none")
    if not (args.tune or args.reference):
        advice = "give one of them, or leave it out"
        check_unused_options(
            {"tokenize": args.tokenize}, f"belongs to --tune or --reference, which are missing; {advice}"
        )
    check_models(args)
    texts = [args.nbest, args.source, args.reference, *(args.tune or [])]
    if texts.count(STDIO) > 1:
        raise OptionError("only one input can come from stdin (`-`), found several; give files")
    read = (*texts, *chosen(args).values(), args.weights)
    for option, path in (("--out", args.out), ("--nbest-out", args.nbest_out)):
        check_text_place(path, read, option)
    if args.nbest_out is not None and os.path.realpath(args.out) == os.path.realpath(args.nbest_out):
        raise OptionError(f"--out and --nbest-out: both are {args.out}; give two different files")


def _rescore(args: argparse.Namespace) -> None:
    job = _open(args, (args.source, args.nbest, args.reference))
    dev = _open(args, args.tune) if args.tune else None
    features = [*dict.fromkeys(args.features or ())]
    weighing = Weighing.untuned(job.lists.scored, chosen(args), features)
    if args.weights:
        weighing = replace(weighing, weights=read_weights_file(Path(args.weights), weighing.names))
    for lists in (job, *([dev] if dev else [])):
        _check_features(features, lists)
    need_fairseq()
    models = load_models(args, [job] if dev is None else [job, dev])
    priors = {name: model.scorer.prior for name, model in models.items() if model.scorer.prior is not None}
    metric = CorpusMetric(args.metric, args.tokenize or TOKENIZERS[0])
    on_dev = on_test = dev_scores = None
    with ExitStack() as held:  # open score files are locked for other runs
        begin = f"{held.enter_context(tempfile.TemporaryDirectory())}/rescore" if args.out == STDIO else args.out
        score_files = [Path(begin + end) for end in (".scores", ".dev-scores")]
        if dev is not None:
            _check_same_kind(dev, job)
            dev_scores = held.enter_context(closing(_score(args, dev, models, score_files[1])))
            weighing, on_dev = _tune(args, dev, weighing, dev_scores, metric, priors)
        scores = held.enter_context(closing(_score(args, job, models, score_files[0])))
        changed, baseline, best = _write(args, job, scores, weighing)
        if job.references is not None:
            on_test = metric.compare([baseline, best], job.references)
        table = report(job, scores, weighing, metric.name, on_dev, on_test, changed, priors)
        print(table, file=sys.stderr if STDIO in (args.out, args.nbest_out) else sys.stdout)
        scores.remove()
        if dev_scores is not None:
            dev_scores.remove()


def _open(args: argparse.Namespace, paths: Sequence[str | None]) -> Job:
    """Return a job from (source, list, reference)."""
    source, nbest, reference = ("/dev/stdin" if path == STDIO else path for path in paths)
    job = open_job(str(nbest), source, reference)
    note_list(job)
    return job


def _score(args: argparse.Namespace, job: Job, models: Mapping[str, Model], path: Path) -> ScoreFile:
    """Return all scores of a job, those that `path` holds and new ones."""
    read = {"list": job.lists.path, "source": job.source, **files_of(args, models)}
    inputs = {name: file_digest(Path(file)) for name, file in read.items() if file is not None}
    scores = ScoreFile(path, inputs)
    # raised by fairseq's Transformer
    warnings.filterwarnings("ignore", message="Support for mismatched key_padding_mask", category=UserWarning)
    if scores.sentences:
        note(f"resumed after {plural(scores.sentences, 'sentence')} of {job.sentences:,}, with the scores in {path}")
    score_list(job, models, scores)
    note_scores(job, scores)
    return scores


def _check_features(names: Sequence[str], job: Job) -> None:
    """Raise OptionError for a feature that the list lacks."""
    for name in names:
        if name not in job.lists.features:
            advice = did_you_mean(name, job.lists.features, "give another name, or a list with it")
            found = ", ".join(job.lists.features) or "none"
            raise OptionError(f"--features {name}: expected features of {job.lists.path}, found {found}; {advice}")


def _check_same_kind(dev: Job, job: Job) -> None:
    if dev.lists.scored != job.lists.scored:
        without, having = (dev, job) if job.lists.scored else (job, dev)
        raise DataError(
            f"{without.lists.path}: its hypotheses lack totals, unlike those of {having.lists.path}; give lists of the "
            "same system"
        )


def _tune(
    args: argparse.Namespace, dev: Job, weighing: Weighing, scores: ScoreFile, metric: CorpusMetric,
    priors: Mapping[str, str],
) -> tuple[Weighing, MetricScores]:  # fmt: skip
    """Return the weights that are best for the dev list, also written next to --out, and the dev scores."""
    hypotheses = weighing.dev_set(dev, scores, metric)
    start = weighing.of_the_list().weights
    positive = (LIST, *chosen(args))  # features may be costs
    signed = np.array([name not in positive for name in weighing.names])
    seed = SEED if args.seed is None else args.seed
    tuned = tune(hypotheses, metric.score, start, signed, seed)
    result = MetricScores(metric.name, metric.signature(), [tuned.before, tuned.after], [None, None])
    if args.out != STDIO:
        facts = {
            "metric": metric.name, "signature": result.signature, "seed": seed, "sentences": dev.sentences,
            "before": tuned.before, "after": tuned.after, "priors": priors,
        }  # fmt: skip
        write_weights(Path(args.out + ".weights.json"), weighing.names, tuned.weights, facts)
    return replace(weighing, weights=tuned.weights), result


def _write(
    args: argparse.Namespace, job: Job, scores: ScoreFile, weighing: Weighing
) -> tuple[int, list[str], list[str]]:
    """Write the results, and return the number of sentences with another best hypothesis than before.

    With a reference, also return the best hypotheses by the list's own totals, and by the new ones.
    """
    changed = 0
    baseline: list[str] = []
    best: list[str] = []
    as_it_was = weighing.of_the_list()
    with _writing(args.out) as out, _writing(args.nbest_out) as nbest_out:
        for nbest, by_model in zip(job, scores, strict=True):
            ranked = weighing.rank(nbest.hypotheses, by_model)
            before, after = "", ""
            if ranked:
                before = as_it_was.rank(nbest.hypotheses, by_model)[0].hypothesis.output
                after = ranked[0].hypothesis.output
            out.write(after + "\n")
            if args.nbest_out and nbest.line:
                nbest_out.writelines(line + "\n" for line in job.lists.format.write(nbest, ranked))
            changed += before != after
            if job.references is not None:
                baseline.append(before)
                best.append(after)
    return changed, baseline, best


def _writing(path: str | None) -> AbstractContextManager[TextIO]:
    """Return a file that is created atomically, or stdout for `-` and for None, to which nothing is written."""
    return nullcontext(sys.stdout) if path is None or path == STDIO else whole_file(Path(path))
