"""`llrnn classify`: label texts with a trained classifier, and convert labelled texts to training files.

A file of labelled texts has a text a line: `__label__cooking how much salt ?`, as in fastText, or `how much salt
?<TAB>cooking`, with a column for each label. fairseq-preprocess needs two files: the texts, and their labels separated
by blanks.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fairseq_llrnn.cli.model_options import PARTS, add_places, need_fairseq, places_in, value_of
from fairseq_llrnn.cli.places import STDIN, STDOUT, check_place, check_text, text_lines
from fairseq_llrnn.cli.tables import note, plural
from fairseq_llrnn.errors import DataError, OptionError, check_least, check_unused_options
from fairseq_llrnn.files.atomic_write import whole_file, writing
from fairseq_llrnn.files.text_lines import AS_HEADER, ReadCount, clean_cells, is_header, iter_lines, place, shown
from fairseq_llrnn.systems.classification.label_hits import LabelHits

if TYPE_CHECKING:
    from fairseq_llrnn.systems.classification.plugin.prediction import Answer


PREFIX = "__label__"
HEADER = ("text", "texts", "sentence", "utterance"), ("label", "labels", "class", "category", "intent")
MAX_TOKENS = 4096  # of a batch


class LabelledLine(NamedTuple):
    """A text and its labels."""

    text: str
    labels: tuple[str, ...]


def read_labelled(path: Path | str) -> Iterator[LabelledLine]:
    """Yield the texts of a file with their labels. A line with tabs has columns, unless it begins with a label.

    A header in the first line is skipped.

    Raises:
        DataError: as `iter_lines`, or a line without labels, or a label that is empty or has blanks.
    """
    count = ReadCount(path, "lines", later=True)
    for number, line in count.lines(lambda _: True):
        text, *columns = clean_cells(line)
        if count.entries == 1 and is_header((text, *columns), HEADER, place(path, number)):
            count.left_out[AS_HEADER] += 1
            continue
        labels = [column for column in columns if column]
        if not columns or line.lstrip().startswith(PREFIX):  # fastText also allows tabs between words
            words = line.split()
            labels = [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
            text = " ".join(word for word in words if not word.startswith(PREFIX))
        if not labels:
            raise DataError(
                f"{place(path, number)}: expected `{PREFIX}LABEL` words, or labels after tabs, found no label in "
                f"{shown(line)}; label the line, or leave it out"
            )
        for label in labels:
            if label.split() != [label]:
                raise DataError(
                    f"{place(path, number)}: expected a label without blanks, found {shown(label)}; replace blanks by "
                    "_, or give several labels in separate columns"
                )
        count.read += 1
        yield LabelledLine(" ".join(text.split()), tuple(labels))
    count.done(logging.INFO if count.left_out else logging.DEBUG)


NAME = "classify"
HELP = "predict the labels of texts"
EXAMPLES = (
    "llrnn classify --path labels/checkpoint_best.pt -k 5 < test.text",
    "llrnn classify --path labels/checkpoint_best.pt --labels test.labels --json < test.text > answers.jsonl",
    "llrnn classify --prepare labelled.tsv --out train",
)
PREPARED = ("text", "labels")  # the ends of the files that --prepare writes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        f"{HELP}: read a tokenised text per line from stdin, print a line `label<TAB>probability<TAB>label …`, "
        "the best label first"
    )
    model = parser.add_argument_group("the model")
    model.add_argument("--path", metavar="FILE", help="checkpoint of --task llrnn_classification")
    add_places(model)
    model.add_argument("--max-tokens", type=int, metavar="N", help=f"words in a batch (default: {MAX_TOKENS})")
    results = parser.add_argument_group("results")
    results.add_argument("-k", type=int, metavar="K", help="number of labels to print for each text (default: 1)")
    results.add_argument("--json", action="store_true", help="print one JSON object a line")
    results.add_argument(
        "--labels", metavar="FILE",
        help="the gold labels, separated by blanks, a line for each text: print P@1, P@5 and R@5 in percent to stderr, "
        "or with --json as the last line",
    )  # fmt: skip
    prepare = parser.add_argument_group("training files")
    prepare.add_argument(
        "--prepare", metavar="FILE",
        help="read lines `__label__A __label__B text`, or `text<TAB>A<TAB>B`, and write files for fairseq-preprocess",
    )  # fmt: skip
    prepare.add_argument("--out", metavar="PREFIX", help="with --prepare: write PREFIX.text and PREFIX.labels")


def run(args: argparse.Namespace) -> int:
    _check(args)
    if args.prepare is not None:
        return _prepare(args.prepare, args.out)
    if args.labels is not None:
        check_text(args.labels)
    need_fairseq()
    from fairseq_llrnn.systems.classification.plugin.prediction import load_label_predictor

    predictor = load_label_predictor(args.path, args.max_tokens, places_in(args))
    # P@5 and R@5 need five labels
    answers = predictor.answers(text_lines(STDIN), args.k if args.labels is None else max(5, args.k))
    if args.labels is None:
        _print(answers, args)
        return 0
    hits, labels, prior = LabelHits(), predictor.label_set, predictor.task.prior.signature
    _print(_counted(answers, args.labels, labels, hits), args)
    if args.json:
        print(json.dumps({**hits.facts(), "prior": prior}))
    else:
        note(
            f"{plural(hits.texts, 'text')}: P@1 {hits.p_at_1:.2f} %, P@5 {hits.p_at_5:.2f} %, R@5 {hits.r_at_5:.2f} %; "
            f"{hits.unseen:,} of {plural(hits.labels, 'right label')} are unknown to the model"
        )
        note(f"prior {prior}")
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise OptionError for options that are out of range or contradictory."""
    if (args.prepare is None) == (args.path is None):
        present = "neither" if args.path is None else "both"
        raise OptionError(f"expected --path with a checkpoint, or --prepare with a file, found {present}; give one")
    if (args.prepare is None) != (args.out is None):
        option, missing = ("--out", "--prepare") if args.prepare is None else ("--prepare", "--out")
        raise OptionError(f"{option}: it needs {missing}; add it")
    if args.prepare is not None:
        idle = {"labels": args.labels, "json": args.json or None, "max_tokens": args.max_tokens}
        idle |= {part: value_of(args, "", part) for part in PARTS}
        check_unused_options(idle, "it belongs to --path, found --prepare; leave it out")
        if args.k is not None:
            raise OptionError(f"-k {args.k}: it belongs to --path, found --prepare; leave it out")
    args.k = 1 if args.k is None else args.k
    args.max_tokens = MAX_TOKENS if args.max_tokens is None else args.max_tokens
    check_least("-k", args.k, 1)
    check_least("--max-tokens", args.max_tokens, 1)


def _prepare(source: str, prefix: str) -> int:
    places = [f"{prefix}.{end}" for end in PREPARED]
    for name in [STDOUT] if prefix == STDOUT else places:
        check_place(name, f"--out {name}", [source])
    texts, labels = 0, 0
    with writing(prefix, "result"), ExitStack() as files:
        of_texts, has_labels = (files.enter_context(whole_file(Path(name))) for name in places)
        for line in read_labelled(source):
            of_texts.write(line.text + "\n")
            has_labels.write(" ".join(line.labels) + "\n")
            texts, labels = texts + 1, labels + len(line.labels)
        if not texts:
            raise DataError(f"{source}: expected texts with labels, found an empty file; give another one")
    print(f"{plural(texts, 'text')} with {plural(labels, 'label')} written to {' and '.join(places)}")
    return 0


def _counted(answers: Iterable[Answer], path: str, of_model: frozenset[str], hits: LabelHits) -> Iterator[Answer]:
    """Yield the answers, and compare them with the gold labels."""
    gold = iter_lines(path)
    number = 0
    for number, answer in enumerate(answers, 1):
        line = next(gold, None)
        if line is None:
            raise DataError(f"{path}: expected a line of labels for each text, found {number - 1:,} lines, more texts")
        labels = set(line[1].split())
        if not labels:
            raise DataError(f"{path}, line {number}: expected labels, found none; label the text, or remove it")
        hits.add([label for label, _ in answer.labels], labels & of_model, len(labels - of_model))
        yield answer
    if next(gold, None) is not None:
        raise DataError(f"{path}: expected a line of labels for each text, found {number:,} texts, more lines")


def _print(answers: Iterable[Answer], args: argparse.Namespace) -> None:
    texts, empty, unknown, words, too_long = 0, 0, 0, 0, 0
    for answer in answers:
        texts += 1
        empty, words, unknown = empty + (not answer.words), words + len(answer.words), unknown + answer.unknown
        too_long += answer.too_long_for is not None
        best = answer.labels[: args.k]
        if args.json:
            facts = {"labels": best, "words": len(answer.words), "unknown_words": answer.unknown}
            if answer.too_long_for is not None:
                facts["problem"] = f"more than {answer.too_long_for} words"
            print(json.dumps(facts, ensure_ascii=False))
        else:
            print("\t".join(f"{label}\t{p:.6g}" for label, p in best))
    if not texts:
        raise OptionError("expected texts, found none on stdin; give one a line")
    if too_long:
        note(f"{plural(too_long, 'text')} without an answer: longer than --max-source-positions of the training")
    if empty:
        note(f"{plural(empty, 'text')} without words: the answer depends on the frequency of labels only")
    if unknown:
        note(f"{unknown:,} of {plural(words, 'word')} are unknown to the model")
