"""What is wrong with the options of `llrnn rescore`, before anything is read."""

import argparse
import os

from fairseq_llrnn.cli.places import check_place
from fairseq_llrnn.cli.rescore.models import check_models, chosen
from fairseq_llrnn.errors import OptionError, check_least

STDIO = "-"


def check(args: argparse.Namespace) -> None:
    """Raise OptionError for what makes no sense, alone or beside the others."""
    check_least("--max-tokens", args.max_tokens, 1)
    check_least("--seed", args.seed, 0)
    if args.tune and args.weights:
        raise OptionError("--tune and --weights: expected one of them; --weights takes what --tune has found earlier")
    if args.tokenize and args.metric != "bleu":
        raise OptionError(f"--tokenize {args.tokenize}: belongs to --metric bleu; {args.metric} counts characters")
    check_models(args)
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
    for path in (*texts, *chosen(args).values(), args.phrase_table, args.weights):
        if path not in (None, STDIO) and os.path.realpath(path) in places:
            raise OptionError(f"{path}: expected another file for the result, found one that is read and would be lost")
