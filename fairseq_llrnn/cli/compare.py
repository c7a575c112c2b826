"""`llrnn compare`: from a treebank or texts to a table of language models in bits per character."""

import argparse
from dataclasses import fields
from functools import partial
from pathlib import Path

import fairseq_llrnn
from fairseq_llrnn.cli.prior import language
from fairseq_llrnn.cli.settings_options import add_options, settings_of
from fairseq_llrnn.comparison.settings import EPOCHS, MODELS, QUICK_TRIES, TRIALS, TRIES, Comparison
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES
from fairseq_llrnn.settings import checked

FEATURES = (*SOURCES, "language")  # keys of LexiconOptions
NAME = "compare"
HELP = "compare language models on your text: n-grams, softmax, pieces and ours, in bits per character"
EXAMPLES = (
    "llrnn compare UD_Welsh-CCG --out welsh --jobs 2 --quick",
    "llrnn compare --train train.txt --valid valid.txt --test test.txt --conllu my.conllu --out mine --seeds 1 2 3",
    "llrnn compare UD_Welsh-CCG --out welsh-ngrams --models ngrams",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    models = "; ".join(f"{name}: {title}" for name, title in MODELS.items())
    parser.description = (
        f"{HELP}. All models give a probability to every string. The table has bits per character first. The same "
        "command continues a stopped comparison"
    )
    text = parser.add_argument_group("the texts")
    text.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER",
        help="treebank of Universal Dependencies, with files such as cy_ccg-ud-train.conllu. Without a dev file, the "
        "last tenth of the training sentences becomes the validation text",
    )  # fmt: skip
    text.add_argument(
        "--train", type=Path, metavar="FILE",
        help="instead of FOLDER: training text, tokenised with one sentence per line, or a treebank (.conllu, .gz too)",
    )  # fmt: skip
    text.add_argument("--valid", type=Path, metavar="FILE", help="validation text (default: as for FOLDER)")
    text.add_argument("--test", type=Path, metavar="FILE", help="test text")
    text.add_argument(
        "--lower", dest="casing", nargs="?", const="", metavar="LANG",
        help="lower-case all texts, by the rules of LANG if it is tr, az or lt (default: keep the case)",
    )  # fmt: skip
    add_options(parser, LexiconOptions, FEATURES)
    choices = parser.add_argument_group("the models")
    choices.add_argument(
        "--spelling-lexicon", nargs="+", default=(), metavar="FILE",
        help="word lists, frequencies and dictionaries of hunspell (FILE.dic), or language:CODE. They spell "
        "the unknown words of all word models, as in llrnn prior",
    )  # fmt: skip
    choices.add_argument(
        "--models", nargs="+", metavar="NAME", help=f"models to compare (default: all that are possible): {models}"
    )
    choices.add_argument(
        "--tries", type=int, metavar="N",
        help="settings of dropout, width and learning rate to try for each neural model, and for each number of pieces,"
        f" at most {len(TRIALS)}; the validation text chooses (default: {TRIES}, or {QUICK_TRIES} with --quick)",
    )  # fmt: skip
    choices.add_argument(
        "--seeds", type=int, nargs="+", default=[1], metavar="N",
        help="train the chosen setting of each neural model with each of these seeds (default: 1)",
    )  # fmt: skip
    choices.add_argument(
        "--max-epoch", type=int, metavar="N",
        help="most epochs of a training; it stops earlier after five epochs without improvement, more for small texts "
        f"(default: {EPOCHS})",
    )  # fmt: skip
    choices.add_argument(
        "--pretrained", type=Path, metavar="FOLDER",
        help="also fine-tune this causal network of transformers (a folder of save_pretrained) with its own tokenizer. "
        "--tries is the number of learning rates",
    )  # fmt: skip
    choices.add_argument(
        "--closed", action="store_true",
        help="also train the chosen settings of word models over a closed dictionary of the words of all texts, and "
        "print the perplexity of the test text",
    )  # fmt: skip
    choices.add_argument(
        "--quick", action="store_true", help="one setting and one number of pieces, for a first impression"
    )
    result = parser.add_argument_group("the result")
    result.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the table and the models")
    result.add_argument("--jobs", type=int, default=1, metavar="N", help="models trained at the same time (default: 1)")


def _option_name(name: str) -> str:
    return "FOLDER" if name == "folder" else f"--{name.rpartition('.')[2].replace('_', '-')}"


def run(args: argparse.Namespace) -> int:
    from fairseq_llrnn.comparison.comparing import compare  # other commands do not wait for it

    if language.is_list(args.language):
        return 0
    names = {field.name for field in fields(Comparison)} & vars(args).keys()
    choices = {name: getattr(args, name) for name in names} | {"lower": args.casing, "name_of": _option_name}
    words = settings_of(args, LexiconOptions)
    settings = checked(Comparison, choices | {"words": words}, _option_name)
    table = compare(settings, fairseq_llrnn.import_networks, partial(print, flush=True))
    print("\n".join(["", str(table), *(["", table.paragraph] if table.paragraph else [])]))
    print(f"written to {args.out}: table.md, table.tsv, table.tex, picture.svg, paragraph.txt, result.json")
    if table.commands:
        print("with the best single model of words on the validation text:", *table.commands, sep="\n  ")
    return 0 if any(row.failure is None for row in table.rows) else 1
