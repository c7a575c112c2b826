#!/usr/bin/env python3
"""Measure the memory of the commands of the README and the guides.

    python scripts/bench/bench_memory.py [--quick] [--only TEXT]

Each command runs in its own process, on the CPU, with the options of the pages and default batches. The figure is the
largest resident set of that process (peak RSS, from the operating system). Texts:

    embedded   scripts/make_corpus.py: 5,849 words, 6,000 sentences for training, suffixes and a treebank
    large      sampled from a Zipf distribution over 50,000 words: 40,000 sentences, 1,000,000 words, shapes and
    suffixes

each with a unigram and with a trigram background, and a third text with the commands of the guide on translation:

    bilingual  scripts/make_corpus.py --bilingual, with lexical translations (IBM Model 1) and evidence

Training stops after a few updates and then validates, because later updates take no more. If a command fails, or takes
more than the limit of its text (2 GB, 4 GB), the exit status is 1. --quick runs only the commands of evaluation, with
trigrams on the embedded corpus. --only runs one of the texts.

The last line is one JSON object: megabytes by text, background and command.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS, SENTENCES, LENGTH = 50_000, 40_000, 25
LIMITS = {"embedded": 2000, "large": 4000, "bilingual": 2000}  # MB
BACKGROUNDS = {"unigram": "unigram", "trigram": "ngram:3"}
LEXICAL = {"lexical": "unigram"}
UPDATES = 8
QUICK = ("prior", "train", "eval-lm")

PREPROCESS = (
    "fairseq-preprocess --only-source --srcdict vocabulary.txt "
    "--trainpref train.txt --validpref valid.txt --testpref test.txt"
)
PRIOR = "llrnn prior --dict data-bin/dict.txt --count-text train.txt {lexicon} --suffixes --top-words 2500"
MODEL = "--user-dir {user_dir} --task llrnn_language_modeling --prior data-bin/{name} --cpu"
TRAIN = (
    "--arch llrnn_lm --criterion log_linear --decoder-embed-dim 256 --decoder-hidden-size 256 --decoder-layers 2 "
    "--dropout 0.3 --sample-break-mode eos --tokens-per-sample 512 --max-tokens 2048 --optimizer adam --lr 0.002 "
    "--clip-norm 1.0 --patience 3 --max-epoch 30 --no-epoch-checkpoints --required-batch-size-multiple 1 "
    f"--num-workers 0 --save-dir {{name}} --max-update {UPDATES}"
)


@dataclass(frozen=True)
class Command:
    """A command line of a page."""

    name: str
    line: str  # with {name}, the background's
    stdin: str = ""


CHECKPOINT = "--path {name}/checkpoint_last.pt"
COMMANDS = (
    Command("prior", f"{PRIOR} --background {{background}} --out data-bin/{{name}}"),
    Command("train", f"fairseq-train data-bin {MODEL} {TRAIN}"),
    Command("eval-lm", f"fairseq-eval-lm data-bin {MODEL} {CHECKPOINT} --gen-subset test --sample-break-mode eos"),
    Command("interactive", f"fairseq-interactive data-bin {MODEL} {CHECKPOINT} --beam 5 --max-len-b 20", "{words}"),
    Command(
        "sampling",
        f"fairseq-interactive data-bin {MODEL} {CHECKPOINT} --sampling --beam 5 --nbest 5 --max-len-b 20",
        "{words}",
    ),
    Command("score-reference", f"fairseq-generate data-bin {MODEL} {CHECKPOINT} --gen-subset test --score-reference"),
    Command("explain", f"llrnn explain {CHECKPOINT} --prior data-bin/{{name}} -", "{words}"),
    Command("score", f"llrnn score {CHECKPOINT} --prior data-bin/{{name}}", "{text}"),
)

TRANSLATE = "--user-dir {user_dir} --task llrnn_translation --prior bitext/prior --cpu"
TRANSLATION = (
    Command(
        "prior",
        "llrnn prior --dict bitext/dict.fr.txt --count-text train.fr --lexicon lexicon.tsv --suffixes --shapes "
        "--background unigram --lexical-translation bitext --set translations.aligner=ibm1 --evidence "
        "numbers,names,copies "
        "--out bitext/prior",
    ),
    Command(
        "train",
        f"fairseq-train bitext {TRANSLATE} --arch llrnn_lstm_multi30k --criterion log_linear --label-smoothing 0.1 "
        "--max-tokens 2000 --optimizer adam --lr 0.001 --clip-norm 1.0 --patience 3 --max-epoch 30 "
        "--no-epoch-checkpoints --required-batch-size-multiple 1 --num-workers 0 --save-dir translator "
        f"--max-update {UPDATES}",
    ),
    Command(
        "generate",
        f"fairseq-generate bitext {TRANSLATE} --path translator/checkpoint_last.pt --gen-subset test --beam 5 "
        "--max-len-b 50 --required-batch-size-multiple 1 --scoring sacrebleu",
    ),
    Command(
        "score-reference",
        f"fairseq-generate bitext {TRANSLATE} --path translator/checkpoint_last.pt --gen-subset test --score-reference",
    ),
)


def peak(line: str, place: Path, stdin: str = "") -> int:
    """Run a command in a folder and return the largest resident set of its process in MB. Exit if the command fails.

    Linux also counts the memory of this process when it started the command, so that nothing large is imported here.
    """
    program, *arguments = shlex.split(line)
    path = Path(sys.executable).parent / program
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    (place / "stdin").write_text(stdin, encoding="utf-8")
    with open(place / "stdin", encoding="utf-8") as given, open(place / "log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [str(path), *arguments], cwd=place, env=environment, stdin=given, stdout=log, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        ends = (place / "log").read_text(encoding="utf-8").splitlines()[-15:]
        raise SystemExit("\n".join([f"failed with status {process.returncode}: {line}", *ends]))
    return int(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6)


def write_embedded(place: Path) -> None:
    """Write the embedded corpus, and its binary data."""
    made = [sys.executable, str(ROOT / "scripts" / "make_corpus.py"), "--out", str(place)]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    peak(PREPROCESS, place)


def write_large(place: Path) -> None:
    """Write a text of Zipf's words, in which each word of the dictionary occurs, and its binary data."""
    draw = random.Random(1)
    steps = list(accumulate(1.0 / rank for rank in range(1, WORDS + 1)))
    # endings that are shared, as suffixes are
    words = [f"w{i}{'aeiou'[i % 5]}{'nrst'[i % 4]}" for i in range(WORDS)]
    for split, number in (("train", SENTENCES), ("valid", 500), ("test", 1500)):
        with open(place / f"{split}.txt", "w", encoding="utf-8") as file:
            for _ in range(number):
                file.write(" ".join(draw.choices(words, cum_weights=steps, k=LENGTH)) + "\n")
    (place / "vocabulary.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    peak(PREPROCESS, place)


def write_bilingual(place: Path) -> None:
    """Write the embedded bitext, and its binary data."""
    made = [sys.executable, str(ROOT / "scripts" / "make_corpus.py"), "--bilingual", "--out", str(place)]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    split = "fairseq-preprocess -s en -t fr --trainpref train --validpref valid --testpref test --destdir bitext"
    peak(split, place)


WRITERS = {"embedded": write_embedded, "large": write_large, "bilingual": write_bilingual}


def measured(text: str, place: Path, names: list[str], backgrounds: list[str]) -> Iterator[tuple[str, str, int]]:
    """Measure the commands on a text: background, command, MB."""
    WRITERS[text](place)
    test = place / ("test.fr" if text == "bilingual" else "test.txt")
    lines = test.read_text(encoding="utf-8").splitlines(keepends=True)
    given = {"words": " ".join(lines[0].split()[:2]) + "\n", "text": "".join(lines)}
    for name in LEXICAL if text == "bilingual" else backgrounds:
        known = {
            "name": name,
            "background": (BACKGROUNDS | LEXICAL)[name],
            "user_dir": str(ROOT / "fairseq_llrnn"),
            "lexicon": "--conllu train.conllu" if text == "embedded" else "--shapes",
        }
        for command in TRANSLATION if text == "bilingual" else COMMANDS:
            if command.name in names:
                yield name, command.name, peak(command.line.format(**known), place, command.stdin.format(**given))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="evaluation with trigrams, on the embedded corpus alone")
    names = [command.name for command in COMMANDS]
    parser.add_argument("--only", nargs="+", metavar="TEXT", choices=list(WRITERS), help="one of the texts")
    args = parser.parse_args()
    texts = ["embedded"] if args.quick else args.only or list(WRITERS)
    backgrounds = ["trigram"] if args.quick else list(BACKGROUNDS)
    result: dict[str, dict[str, dict[str, int]]] = {}
    too_much = []
    for text in texts:
        result[text] = {}
        with tempfile.TemporaryDirectory() as temporary:
            selected = list(QUICK) if args.quick else [*names, "generate"]
            for background, name, megabytes in measured(text, Path(temporary), selected, backgrounds):
                result[text].setdefault(background, {})[name] = megabytes
                print(f"{text:<10}{background:<10}{name:<18}{megabytes:>7,} MB", flush=True)
                if megabytes > LIMITS[text]:
                    too_much.append(f"{text}, {background}, {name}: {megabytes:,} MB of {LIMITS[text]:,}")
    for line in too_much:
        print(f"too much: {line}", file=sys.stderr)
    print(json.dumps(result))
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
