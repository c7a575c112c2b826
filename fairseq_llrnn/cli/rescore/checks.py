"""What is wrong with the options of `llrnn rescore`, before anything is read."""

import argparse
import os

from fairseq_llrnn.cli.places import check_place
from fairseq_llrnn.cli.rescore.models import check_models, chosen
from fairseq_llrnn.errors import OptionError, check_least

STDIO = "-"
OF_THE_WHOLE = ("tune", "weights", "reference", "nbest_out")  # what a shard cannot do


def check(args: argparse.Namespace) -> None:
    """Raise OptionError for what makes no sense, alone or beside the others."""
    check_least("--max-tokens", args.max_tokens, 1)
    check_least("--seed", args.seed, 0)
    if args.tune and args.weights:
        raise OptionError("--tune and --weights: expected one of them; --weights takes what --tune has found earlier")
    if args.tokenize and args.metric != "bleu":
        raise OptionError(f"--tokenize {args.tokenize}: belongs to --metric bleu; {args.metric} counts characters")
    check_models(args)
    _check_shards(args)
    texts = [args.nbest, args.source, args.reference, *(args.tune or [])]
    if texts.count(STDIO) > 1:
        raise OptionError("expected at most one input from stdin (`-`), found several; give files")
    results = [path for path in (args.out, args.nbest_out) if path is not None]
    places = [STDIO if path == STDIO else os.path.realpath(path) for path in results]
    if len(set(places)) < len(places):
        raise OptionError(f"--out and --nbest-out: expected two places, found {args.out} for both")
    for path in results:
        if path != STDIO:
            check_place(path, path)
    for path in (*texts, *chosen(args).values(), args.phrase_table, args.weights, *(args.merge or [])):
        if path not in (None, STDIO) and os.path.realpath(path) in places:
            raise OptionError(f"{path}: expected another file for the result, found one that is read and would be lost")


def _check_shards(args: argparse.Namespace) -> None:
    if args.shard is None:
        return
    if args.merge:
        raise OptionError("--shard and --merge: expected one of them; --merge comes when all shards are done")
    for name in OF_THE_WHOLE:
        if getattr(args, name) is not None:
            option = "--" + name.replace("_", "-")
            raise OptionError(f"{option}: a shard is only scored; say it with --merge, when all parts are there")
    if args.out == STDIO:
        raise OptionError("--shard: expected a file for the scores as --out, found stdout")
