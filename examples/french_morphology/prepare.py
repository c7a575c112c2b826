"""Convert a Universal Dependencies folder to text, a train-only treebank and fairseq's binary data.

Words are lower-cased syntactic words (CoNLL-U rows with a whole-number ID), one sentence per line. As in Dymetman &
Xiao (2016, section 5), UD's `train` is split into training and validation, `test` is Test1 and `dev` is Test2. All
models share one dictionary over all four texts, so that perplexities can be compared and no word is unknown.

    prepare.py --ud FOLDER --out OUT

writes OUT/text/{train,valid,test1,test2,all}.txt, OUT/train.conllu (only the training sentences, without validation,
for the honest mode) and OUT/data-bin.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.lexicon.readers.conllu import in_one_word, iter_conllu_words, treebank

# The last twentieth of UD's train is the validation text: 728 of 14,554 sentences in French GSD 1.4.
VALID_PART = 20
# UD's name -> the paper's.
SPLITS = {"test": "test1", "dev": "test2"}
PAPER_TOKENS, PAPER_TYPES = 463_069, 42_894
PAPER_REMARK = (
    "The paper's 463,069 tokens are the number of lines of the French files of UD release 1.3, comments and empty "
    "lines included; that corpus has about 402 thousand words."
)


def sentence_text(words: Iterable[str]) -> str:
    return " ".join(map(in_one_word, words))


def sentences(path: Path) -> list[str]:
    return [sentence_text(token.form for token in words) for words in iter_conllu_words(path, lowercase=True)]


def first_sentences(path: Path, count: int) -> Iterator[str]:
    """Return the lines of the first `count` sentences of a CoNLL-U file, unchanged."""
    has_rows = False
    for _, line in iter_lines(path):
        if not count:
            return
        yield line
        if line.strip():
            has_rows = has_rows or not line.startswith("#")
        elif has_rows:
            count, has_rows = count - 1, False


def write_texts(ud: Path, out: Path) -> dict[str, list[str]]:
    """Write the texts and the train-only treebank, and return the sentences of each split."""
    train = sentences(treebank(ud, "train"))
    valid_size = max(1, round(len(train) / VALID_PART))
    if len(train) <= valid_size:
        raise DataError(f"{ud}: expected at least two training sentences, found {len(train)}")
    texts = {"train": train[:-valid_size], "valid": train[-valid_size:]}
    texts |= {name: sentences(treebank(ud, split)) for split, name in SPLITS.items()}
    for name, lines in texts.items():
        write_lines(out / "text" / f"{name}.txt", lines)
    write_lines(out / "text" / "all.txt", (line for lines in texts.values() for line in lines))
    write_lines(out / "train.conllu", first_sentences(treebank(ud, "train"), len(texts["train"])))
    return texts


def preprocess(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--only-source", "--workers", "1", *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise DataError(f"fairseq-preprocess failed ({' '.join(command)}):\n{finished.stderr[-2000:]}")


def write_data_bin(out: Path) -> None:
    """Write OUT/data-bin: one dictionary over all texts, and the subsets train, valid, test (= test1), test1, test2."""
    text = out / "text"
    (out / "data-bin").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="data-bin-") as temporary:
        dictionary = Path(temporary) / "dictionary"
        preprocess(["--trainpref", str(text / "all.txt"), "--dict-only", "--destdir", str(dictionary)])
        data = Path(temporary) / "data-bin"
        # fairseq names several test texts test, test1, test2, …: with Test1 given twice, test1 and test2 are
        # right.
        tests = ",".join(str(text / f"{name}.txt") for name in ("test1", "test1", "test2"))
        preprocess(
            ["--srcdict", str(dictionary / "dict.txt"), "--destdir", str(data)]
            + [
                "--trainpref",
                str(text / "train.txt"),
                "--validpref",
                str(text / "valid.txt"),
                "--testpref",
                tests,
            ]
        )
        for path in sorted(data.iterdir()):
            os.replace(path, out / "data-bin" / path.name)


class Counts(NamedTuple):
    sentences: int
    words: int
    types: int
    new_types: int  # of these, not in the training text


def count(texts: dict[str, list[str]]) -> dict[str, Counts]:
    """Return the sizes of the corpus, by text and in total."""
    train_types = {word for line in texts["train"] for word in line.split()}
    found = {}
    everything = [line for lines in texts.values() for line in lines]
    for name, lines in (texts | {"all": everything}).items():
        words = [word for line in lines for word in line.split()]
        types = set(words)
        found[name] = Counts(len(lines), len(words), len(types), len(types - train_types))
    return found


def table(counts: dict[str, Counts]) -> str:
    """Return the counts next to the paper's."""
    rows = [f"{'':8}{'sentences':>12}{'words':>12}{'types':>10}{'of these not in train':>24}"]
    for name, row in counts.items():
        rows.append(f"{name:8}{row.sentences:12,}{row.words:12,}{row.types:10,}{row.new_types:24,}")
    rows.append(f"{'paper':8}{'':12}{PAPER_TOKENS:12,}{PAPER_TYPES:10,}")
    return "\n".join([*rows, PAPER_REMARK])


@one_line_errors("prepare.py")
def main() -> None:
    parser = argparse.ArgumentParser(description="Universal Dependencies to text, treebank and fairseq data")
    parser.add_argument("--ud", type=Path, required=True, help="folder with train, dev and test .conllu[.gz]")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    args = parser.parse_args()
    texts = write_texts(args.ud, args.out)
    write_data_bin(args.out)
    print(table(count(texts)))


if __name__ == "__main__":
    raise SystemExit(main())
