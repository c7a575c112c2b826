"""`llrnn export`: write a trained model as one folder."""

import argparse
from pathlib import Path

from fairseq_llrnn.cli.model_options import add_places, need_fairseq, places_in

NAME = "export"
HELP = "write a trained model as one folder: weights, prior and dictionary"
EXAMPLES = ("llrnn export checkpoints/checkpoint_best.pt french-model",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{HELP}. The folder has no optimizer state, and can be moved. Pass it as --path to any command, or to "
        "fairseq_llrnn.load"
    )
    parser.add_argument("model", metavar="MODEL", help="checkpoint of a model")
    parser.add_argument("folder", metavar="DIR", help="folder to write: a free name, or an empty folder")
    add_places(parser.add_argument_group("the model"))


def run(args: argparse.Namespace) -> int:
    need_fairseq()
    from fairseq_llrnn.plugin.scoring.exporting import export

    folder = Path(args.folder)
    place = folder.absolute()  # the working directory itself may be replaced
    export(args.model, folder, places_in(args))
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    print(f"{folder}: {size / 1e6:.1f} MB; use it as --path of a command, or by fairseq_llrnn.load({str(folder)!r})")
    return 0
