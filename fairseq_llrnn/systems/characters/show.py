"""`llrnn show --neighbours`: print words with similar vectors in a trained model (Jernite 2018, Table 2.6)."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.cli.model_options import PARTS, add_places, need_fairseq, places_in
from fairseq_llrnn.cli.tables import labelled, note, printable
from fairseq_llrnn.errors import DataError, OptionError

if TYPE_CHECKING:
    from fairseq_llrnn.systems.characters.neighbours import Neighbours

OPTION = "--neighbours WORD"
FURTHER = ("path", *PARTS)
EXAMPLES = ("llrnn show --neighbours le --path checkpoints/checkpoint_best.pt",)
SHOWN = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    trained = parser.add_argument_group("input vectors of a trained model (needs fairseq)")
    trained.add_argument(
        "--neighbours", action="append", default=[], metavar="WORD",
        help="print the words with the nearest vectors to WORD, for characters before and after the highway layers; if "
        "the model reads characters, WORD need not be in the dictionary",
    )  # fmt: skip
    trained.add_argument("--path", metavar="FILE", help="checkpoint of a model of this package")
    add_places(trained, of=" of the model")


def run(args: argparse.Namespace) -> int:
    if args.path is None:
        raise OptionError("--neighbours: it needs --path FILE; add it")
    if args.folder is not None or args.source:
        raise OptionError(
            "--neighbours: not possible together with PRIOR or its words; run two commands, and give the prior of a "
            "model as --prior DIR"
        )
    need_fairseq()
    from fairseq_llrnn.plugin.compat.loading import load_model
    from fairseq_llrnn.systems.characters.neighbours import FEATURES, as_json, neighbours

    head = load_model(args.path, places_in(args), _check_kind)[0].eval().decoder.head
    symbols = set(head.prior.symbols)
    shown = [(word, word in symbols, neighbours(head, word, SHOWN)) for word in args.neighbours]
    if any([kind.kind for kind in kinds] == [FEATURES] for _, _, kinds in shown):
        note("this model reads words by their features; words with the same features have the same vector")
    if args.json:
        result = {"path": args.path, "words": [as_json(*arguments) for arguments in shown]}
        print(json.dumps(result, ensure_ascii=False))
    else:
        print("\n\n".join(_text(*arguments) for arguments in shown))
    return 0


def _check_kind(path: str, cfg: Any) -> None:
    from fairseq_llrnn.plugin.names import name_of

    if not (model := name_of(cfg, "model")).startswith("llrnn_"):
        raise DataError(f"{path}: expected a model of this package (llrnn_…), found {model!r}; give another checkpoint")


def _text(word: str, in_dictionary: bool, lists: "list[Neighbours]") -> str:
    lines = [printable(word) + ("" if in_dictionary else "   (not in the dictionary)")]
    for kind in lists:
        items = [f"{printable(neighbour)} {cosine:.2f}" for neighbour, cosine in kind.words]
        lines.append(labelled(kind.kind, items or ["none"], label_width=15))
    return "\n".join(lines)
