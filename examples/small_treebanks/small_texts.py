"""Convert a Universal Dependencies folder to lower-cased text, a dictionary of all texts, and binary data.

    small_texts.py --ud FOLDER --out OUT

writes OUT/text/{train,valid,test}.txt (lower-cased syntactic words, one sentence per line; `valid` is UD's dev),
OUT/dict.txt and OUT/data-bin. The dictionary counts the words of the training text. Words only in the other texts have
count 0, so that a model can predict every word, without any other information about these.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.lexicon.readers.conllu import in_one_word, iter_conllu_words, treebank

SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def sentences(path: Path) -> list[str]:
    """Yield the lower-cased syntactic words of each sentence, separated by blanks."""
    return [" ".join(in_one_word(token.form) for token in words) for words in iter_conllu_words(path, lowercase=True)]


def dictionary(texts: dict[str, list[str]]) -> list[tuple[str, int]]:
    """Return words of the training text by falling count, then other words with count 0; ties by spelling."""
    train = Counter(word for line in texts["train"] for word in line.split())
    others = sorted({word for lines in texts.values() for line in lines for word in line.split()} - set(train))
    return [*sorted(train.items(), key=lambda entry: (-entry[1], entry[0])), *((word, 0) for word in others)]


def execute(command: Sequence[str], log: Path) -> str:
    """Run a command, append its output to `log`, and return that output."""
    program = Path(sys.executable).parent / command[0]  # of this installation, activated or not
    # fairseq reads the checkpoints of its own models only so
    own = {} if "--user-dir" in command else {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"$ {shlex.join(command)}\n")
        stream.flush()
        begin = stream.tell()
        done = subprocess.run(
            [str(program), *command[1:]], env=os.environ | own, stdout=stream, stderr=stream, check=False
        )
    said = log.read_bytes()[begin:].decode(errors="replace")
    if done.returncode:
        raise DataError(f"{command[0]} failed with status {done.returncode}; {log} ends with: {said[-1000:]}")
    return said


def prepare(ud: Path, out: Path) -> dict[str, list[str]]:
    """Write the texts, the dictionary and fairseq's data, and return the sentences of each split."""
    texts = {name: sentences(treebank(ud, split)) for name, split in SPLITS.items()}
    for name, lines in texts.items():
        write_lines(out / "text" / f"{name}.txt", lines)
    write_lines(out / "dict.txt", (f"{word} {count}" for word, count in dictionary(texts)))
    prefixes = [f"--{name}pref={out / 'text' / name}.txt" for name in texts]
    command = ["fairseq-preprocess", "--only-source", "--workers", "1", *prefixes]
    execute([*command, "--srcdict", str(out / "dict.txt"), "--destdir", str(out / "data-bin")], out / "preprocess.log")
    return texts


def table(texts: dict[str, list[str]]) -> str:
    """Return the sizes of the texts."""
    train = {word for line in texts["train"] for word in line.split()}
    rows = ["| text | sentences | words | types | words that training lacks |", "|---|---:|---:|---:|---:|"]
    for name, lines in texts.items():
        words = [word for line in lines for word in line.split()]
        unseen = sum(word not in train for word in words) / len(words)
        rows.append(f"| {name} | {len(lines):,} | {len(words):,} | {len(set(words)):,} | {unseen:.1%} |")
    return "\n".join(rows)


@one_line_errors("small_texts.py")
def main() -> None:
    parser = argparse.ArgumentParser(description="a treebank as text, dictionary and fairseq's data")
    parser.add_argument("--ud", type=Path, required=True, help="folder with train, dev and test .conllu[.gz]")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    args = parser.parse_args()
    print(table(prepare(args.ud, args.out)))


if __name__ == "__main__":
    raise SystemExit(main())
