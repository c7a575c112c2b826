"""`llrnn encode`: compute vectors of sentences."""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
from tqdm import tqdm

from fairseq_llrnn.cli.model_options import need_fairseq
from fairseq_llrnn.cli.places import STDIN, check_place, check_text, text_lines
from fairseq_llrnn.cli.tables import plural
from fairseq_llrnn.errors import check_least
from fairseq_llrnn.files.atomic_write import whole_binary, writing

NAME = "encode"
HELP = "vectors of sentences, by a trained encoder"
EXAMPLES = (
    "llrnn encode --path checkpoints/checkpoint_best.pt --out vectors.npy < sentences.txt",
    "llrnn encode --path checkpoints/checkpoint_best.pt --out vectors.npy one.txt two.txt.gz",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{HELP}; a sentence a line, words between blanks, as in the training text"
    sentences = parser.add_argument_group("the sentences")
    sentences.add_argument("files", nargs="*", metavar="FILE", help="texts (.gz too; default, or `-`: stdin)")
    model = parser.add_argument_group("the model")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint of --arch discourse_encoder")
    model.add_argument("--data", metavar="DIR", help="data folder (default: that of the training)")
    model.add_argument(
        "--source-prior", metavar="DIR", help="prior whose features are its input (default: that of the training)"
    )
    model.add_argument("--max-tokens", type=int, default=8192, metavar="N", help="words in a batch (default: 8192)")
    result = parser.add_argument_group("the vectors")
    result.add_argument(
        "--out", required=True, metavar="FILE",
        help="a float32 matrix of numpy (.npy), a row for each sentence in order",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    check_least("--max-tokens", args.max_tokens, 1)
    texts = args.files or [STDIN]
    check_place(args.out, f"--out {args.out}", [*texts, args.path])
    for text in texts:
        check_text(text)
    need_fairseq()
    from llrnn_research.discourse.plugin.encoding import load_encoder

    encoder = load_encoder(args.path, args.data, args.source_prior, args.max_tokens)
    blocks = (block for text in texts for block in encoder.blocks(text_lines(text), "stdin" if text == STDIN else text))
    bar = tqdm(unit=" sentences", leave=False, disable=None)
    with writing(args.out, "result"), whole_binary(Path(args.out)) as file, bar:
        number = write_rows(file, _counted(blocks, bar), encoder.size)
    print(f"{plural(number, 'sentence')}, {encoder.size} numbers each, written to {args.out}")
    return 0


def _counted(blocks: Iterable[np.ndarray], bar: tqdm) -> Iterator[np.ndarray]:
    for block in blocks:
        yield block
        bar.update(len(block))


def write_rows(file: IO[bytes], blocks: Iterable[np.ndarray], size: int) -> int:
    """Write a matrix with initially unknown length as numpy.save does, and return its number of rows.

    numpy's header has room for the largest number of rows.
    """

    def header(rows: int) -> None:
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, size)})

    header(0)
    begin, rows = file.tell(), 0
    for block in blocks:
        file.write(block.astype("<f4").tobytes())
        rows += len(block)
    header(rows)
    assert file.tell() == begin
    return rows
