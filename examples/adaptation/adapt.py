"""Adapt a general language model to a domain (README.md).

    adapt.py prepare --out OUT [--general FOLDER --domains FOLDER]      texts, dictionary, data, n-gram
    adapt.py general --out OUT [--general …]                            the general model
    adapt.py train   --out OUT [--general …] [--only DOMAIN …] [--systems NAME …]     all models of the domains
    adapt.py report  --out OUT [--results FOLDER]                       table and picture

Finished stages are skipped, and an unfinished model is trained again. Without folders of treebanks, the experiment uses
a small pair of texts that the project generates. Another seed (--seed 2 in each stage) needs another OUT. If
OUT/models/general is a copy, the general model stays the same.
"""

import argparse
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what examples share, and the embedded corpus

from fairseq_llrnn.errors import OptionError, one_line_errors

STAGES = ("prepare", "general", "train", "report")


@one_line_errors("adapt.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="adaptation of a language model, compared")
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--general", type=Path, help="folder with train and dev .conllu[.gz]: the general text")
    parser.add_argument("--domains", type=Path, help="folder with a sub-folder for each domain: train, dev, test")
    parser.add_argument("--only", nargs="+", metavar="DOMAIN", help="train on these domains only")
    parser.add_argument("--systems", nargs="+", metavar="NAME", help="train these systems only (systems.py)")
    parser.add_argument("--seed", type=int, default=1, help="of trainings (default: %(default)s)")
    parser.add_argument("--results", type=Path, help="folder for table and picture (default: OUT)")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for library in ("fairseq", "matplotlib"):
        logging.getLogger(library).setLevel(logging.WARNING)  # before it is imported: it reports while it does
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Run a stage. Raises LLRNNError."""
    if (args.general is None) != (args.domains is None):
        raise OptionError("--general and --domains: expected both or none, found one")
    if args.stage == "report":
        from curves import write_report

        write_report(args.out, args.results or args.out)
        return 0
    import stages
    from corpora import read_treebanks, toy
    from example_parts.processes import alone
    from systems import Place

    place = Place(args.out.resolve())
    corpora = toy() if args.general is None else read_treebanks(args.general, args.domains)
    domains = corpora.domains
    if args.only:
        unknown = sorted(set(args.only) - set(domains))
        if unknown:
            raise OptionError(f"--only {unknown[0]}: expected some of {', '.join(domains)}")
        domains = args.only
    trained = stages.trained(args.systems)
    sizes = replace(corpora.sizes, seed=args.seed)
    if args.stage != "prepare" and not (place.out / "texts.json").exists():
        raise OptionError(f"{args.out}: expected what `adapt.py prepare` wrote, found none; run that first")
    with alone(place.out):
        if args.stage == "prepare":
            stages.prepare(place, corpora)
        elif args.stage == "general":
            stages.train_general(place, sizes, corpora.domains)
        else:
            if not (place.model("general") / "trained.json").exists():
                raise OptionError(f"{args.out}: expected the general model, found none; run `adapt.py general` first")
            for domain in domains:
                stages.train_domain(place, sizes, domain, trained)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
