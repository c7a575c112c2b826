#!/usr/bin/env python3
"""English to French, Czech or German on Multi30k: the experiments of docs/results/translation.md, one command each.

    multi30k.py prepare --data PATH-TO-multi30k-en-fr --out OUT      texts, BPE, data folders, priors
    multi30k.py prepare --target cs --data PATH-TO-multi30k-en-fr PATH-TO-multi30k-en-cs-de --out OUT-OF-CZECH
    multi30k.py list                                                 the models
    multi30k.py train ll-word --out OUT [--seed 2] [-- OPTIONS]      hours; the same command resumes after a stop;
                                                                     --gpu: on a GPU, minutes
    multi30k.py average ll-word --out OUT                            of the last five epochs; translate does it, too
    multi30k.py translate ll-word softmax-word --out OUT [--set test copy] [--nbest 50]
    multi30k.py copy --out OUT                                       the test of unseen numbers and names
    multi30k.py score softmax-word ll-word --out OUT [--set valid]   BLEU, tokenised and detokenised
    multi30k.py unseen softmax-word ll-word-forms --out OUT          reference words that training lacks
    multi30k.py report softmax-word ll-word --out OUT [--set copy]   significance against the first; rare words; copies
    multi30k.py rescore ll-word --of softmax-word --out OUT          its 50-best lists; dev and test before and after
    multi30k.py keep softmax-word ll-word --out OUT                  logs' key lines and translations, for docs/results

Finished steps are skipped; delete their results in OUT to repeat them (multi30k_recipes.py lists the files). Every
command is in a log next to its results. For a model trained elsewhere, link OUT/models/NAME to the folder of its
checkpoints, or use --checkpoint. If NAME is not in the list, --recipe sets its data and prior.
"""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import multi30k_recipes as recipes
from multi30k_pairs import PAIRS, Pair
from multi30k_recipes import RECIPES, TEXTS
from multi30k_stages import average, execute, keep, lines_of, list_best, prepare, train, translate

from fairseq_llrnn.errors import OptionError, one_line_errors


def run_prepare(args: argparse.Namespace) -> None:
    known = PAIRS[args.target]
    lexicons = [args.data[0].parent / name for name in known.lexicons] if args.lexicon is None else args.lexicon
    args.out.mkdir(parents=True, exist_ok=True)
    prepare(args.out, args.data, replace(known, lexicons=tuple(path.name for path in lexicons)), lexicons)


def run_list(_: argparse.Namespace) -> None:
    print("\n".join(f"{name:18} {recipe.what}" for name, recipe in RECIPES.items()))


def run_train(args: argparse.Namespace) -> None:
    name = args.name if args.seed == 1 else f"{args.name}-seed{args.seed}"
    train(args.out, name, args.seed, args.extra, args.gpu)


def run_average(args: argparse.Namespace) -> None:
    for name in args.names:
        average(args.out, name)


def run_translate(args: argparse.Namespace) -> None:
    if args.checkpoint and len(args.names) > 1:
        raise OptionError("--checkpoint: expected one name with it, found several")
    given = ":".join(map(os.path.abspath, (args.checkpoint or "").split(":")))
    for name in args.names:
        recipe = recipes.find(args.recipe or name)
        (args.out / "results" / name).mkdir(parents=True, exist_ok=True)
        path = given if args.checkpoint else average(args.out, name)
        for which in args.set:
            if args.nbest:
                list_best(args.out, name, which, recipe, path, args.nbest, args.extra, args.gpu)
            else:
                translate(args.out, name, which, recipe, path, args.extra, args.gpu)


def run_copy(args: argparse.Namespace) -> None:
    if (target := Pair.of(args.out).target) != "fr":
        raise OptionError(f"copy: expected French as target, found {target}; its rules are for French only")
    command = ["python", str(Path(__file__).resolve().with_name("make_copy_test.py")), "--source", "text/test2016.en"]
    command += ["--reference", "text/test2016.fr", "--train", "text/train.en", "text/train.fr", "--out", "copy"]
    (args.out / "copy").mkdir(exist_ok=True)
    execute(args.out, command, "copy/log", "copy/table.txt")
    print((args.out / "copy" / "table.txt").read_text(encoding="utf-8"), end="")


def translations(out: Path, name: str, which: str) -> str:
    """Return the path of a system's translations. Raises OptionError if there are none."""
    place = f"results/{name}/{which}.{Pair.of(out).target}"
    if not (out / place).exists():
        raise OptionError(f"{out / place}: expected translations, found none; `translate` makes them")
    return place


def run_score(args: argparse.Namespace) -> None:
    from multi30k_scores import table

    systems = {name: lines_of(args.out / translations(args.out, name, args.set)) for name in args.names}
    text, target = Path(TEXTS[args.set]), Pair.of(args.out).target
    reference, raw = (lines_of(args.out / folder / f"{text.name}.{target}") for folder in (text.parent, "raw"))
    made = table(systems, reference, raw, target)
    print(f"{text.name}\n{made}")


def run_report(args: argparse.Namespace) -> None:
    text, pair = TEXTS[args.set], Pair.of(args.out)
    command = ["llrnn", "report", "--tokenize", "none", "--source", f"{text}.en"]
    command += ["--reference", f"{text}.{pair.target}", "--train", f"text/train.{pair.target}"]
    command += ["--lexicon", pair.lexicon] if pair.lexicon else []
    command += ["--out", f"report-{args.set}.html", "--system"]
    for given in args.names:
        name = given.rpartition("=")[2]
        command.append(f"{given.rpartition('=')[0] or name}={translations(args.out, name, args.set)}")
    command += ["--facts", f"{text}.facts.jsonl"] if args.set == "copy" else []
    execute(args.out, command, "report.log", f"report-{args.set}.txt")
    print((args.out / f"report-{args.set}.txt").read_text(encoding="utf-8"), end="")


def run_unseen(args: argparse.Namespace) -> None:
    from multi30k_scores import unseen_table

    systems = {name: lines_of(args.out / translations(args.out, name, args.set)) for name in args.names}
    text, target = TEXTS[args.set], Pair.of(args.out).target
    shown = {word for line in lines_of(args.out / f"text/train.{target}") for word in line.split()}
    listed = {line.rpartition(" ")[0] for line in lines_of(args.out / f"dictionary.{target}.txt")}
    print(unseen_table(systems, lines_of(args.out / f"{text}.{target}"), shown, listed))


def run_rescore(args: argparse.Namespace) -> None:
    out = f"results/{args.of}+{args.name}"
    (args.out / out).mkdir(parents=True, exist_ok=True)
    average(args.out, args.name)
    for which in ("valid", "test"):
        if not (args.out / f"results/{args.of}/{which}.nbest").exists():
            raise OptionError(f"expected a list {args.of}/{which}.nbest, found none; `translate {args.of} --nbest 50`")
    for which in ("test", "valid"):  # the test first: with it the weights are tuned
        command = recipes.rescore(Pair.of(args.out), args.name, args.of, which, out)
        execute(args.out, command, f"{out}/log", f"{out}/{which}.txt")
        print(f"{which}\n{(args.out / out / f'{which}.txt').read_text(encoding='utf-8')}")


def run_keep(args: argparse.Namespace) -> None:
    for name in args.names:
        keep(args.out, name, args.docs)


def parsers() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="English to French, Czech or German on Multi30k, stage by stage.")
    stages = parser.add_subparsers(dest="stage", required=True, metavar="STAGE")

    def stage(name: str, run: Callable[[argparse.Namespace], None], what: str) -> argparse.ArgumentParser:
        made = stages.add_parser(name, help=what, description=what)
        made.set_defaults(run=run)
        made.add_argument("--out", type=Path, default=Path("runs/multi30k"), help="(default: runs/multi30k)")
        return made

    gpu = "use the GPU (default: one thread of a CPU)"
    made = stage("prepare", run_prepare, "texts, pieces, data folders, priors")
    made.add_argument("--data", type=Path, nargs="+", required=True, help="folders of train.tok.en.gz and its sisters")
    made.add_argument("--target", choices=PAIRS, default="fr", help="target language (default: fr)")
    made.add_argument(
        "--lexicon", type=Path, nargs="*", metavar="FILE",
        help="of the target: treebanks (.conllu.gz), or form, lemma, UPOS, FEATS (.tsv.gz) (default: the files next "
        "to --data in multi30k_pairs.py)",
    )  # fmt: skip
    stage("list", run_list, "the models")
    made = stage("train", run_train, "train a model, or resume; OPTIONS after -- are fairseq-train's")
    made.add_argument("name", choices=RECIPES, metavar="NAME")
    made.add_argument("--seed", type=int, default=1, help="others than 1 make the model NAME-seedN")
    made.add_argument("--gpu", action="store_true", help=gpu)
    made = stage("average", run_average, "the mean of the last five epochs")
    made.add_argument("names", nargs="+", metavar="NAME")
    made = stage("translate", run_translate, "with beam 5, or n-best lists; OPTIONS after -- are fairseq-generate's")
    made.add_argument("names", nargs="+", metavar="NAME")
    made.add_argument("--set", nargs="+", choices=TEXTS, default=["valid", "test"], help="(default: valid test)")
    made.add_argument("--nbest", type=int, metavar="N", help="lists of the N best instead of translations")
    made.add_argument("--recipe", choices=RECIPES, help="recipe with the model's data and prior (default: by its name)")
    made.add_argument("--gpu", action="store_true", help=gpu)
    made.add_argument(
        "--checkpoint", metavar="FILE", help="instead of the mean of the last five epochs; A:B for an ensemble"
    )
    stage("copy", run_copy, "a test of numbers and names that training lacks")
    for name, run, what, form in (
        ("score", run_score, "BLEU, tokenised and detokenised", "NAME"),
        ("unseen", run_unseen, "count words of the reference that training lacks", "NAME"),
        ("report", run_report, "llrnn report: the first system against the others", "[LABEL=]NAME"),
    ):
        made = stage(name, run, what)
        made.add_argument("names", nargs="+", metavar=form, help="a folder of OUT/results")
        sets = [which for which in TEXTS if which != "copy" or name == "report"]  # there is no running text of copy
        made.add_argument("--set", choices=sets, default="test", help="(default: test)")
    made = stage("rescore", run_rescore, "rerank a system's n-best lists with a model")
    made.add_argument("name", metavar="NAME")
    made.add_argument("--of", default="softmax-word", metavar="NAME", help="whose lists (default: softmax-word)")
    made = stage("keep", run_keep, "copy key lines of logs, translations and reports to a folder")
    made.add_argument("names", nargs="+", metavar="NAME")
    made.add_argument("--docs", type=Path, default=Path("docs/results/multi30k-runs"), metavar="DIR")
    return parser


@one_line_errors("multi30k")
def main() -> None:
    given = sys.argv[1:]
    cut = given.index("--") if "--" in given else len(given)
    args = parsers().parse_args(given[:cut])
    args.extra = given[cut + 1 :]
    if args.extra and args.stage not in ("train", "translate"):
        raise OptionError(f"{args.stage}: takes no options after --")
    if args.stage not in ("prepare", "list") and not (args.out / "text").is_dir():
        raise OptionError(f"{args.out}: expected a folder of `multi30k.py prepare`, found none; see --out")
    args.out = args.out.resolve()
    args.run(args)


if __name__ == "__main__":
    sys.exit(main())
