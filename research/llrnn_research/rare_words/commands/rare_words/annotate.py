"""`llrnn rare-words annotate`: replace rare words of texts by unknown words that mark their source words."""

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.alignment.aligners import ALIGNERS, choose_aligner
from fairseq_llrnn.alignment.bitext import Links, TextBitext, bitext_of
from fairseq_llrnn.alignment.translation_table import LexicalTable
from fairseq_llrnn.alignment.word_links import directed_links
from fairseq_llrnn.cli.tables import percent, plural
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.files.atomic_write import may_replace, whole_folder, writing
from fairseq_llrnn.files.text_lines import check_as_long, is_blank, iter_sentences
from llrnn_research.rare_words.annotations import SCHEMES, annotated_source, annotated_target, frequent_words
from llrnn_research.rare_words.commands.rare_words import SOURCE_WORDS, TRANSLATIONS

NAME = "rare-words annotate"
HELP = "replace rare words of a bitext by unknown words that mark their source words, for training any model"
EXAMPLES = (
    "llrnn rare-words annotate --scheme positional --words 1000 -s en -t fr --trainpref train --validpref valid "
    "--testpref test --destdir annotated",
)
Lines = list[list[str]]  # sentences in words
FILE_NAMES = re.compile(rf"{re.escape(SOURCE_WORDS)}|{re.escape(TRANSLATIONS)}|(train|valid|test)\d*\.[^.]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    texts = parser.add_argument_group("the texts, named as for fairseq-preprocess")
    texts.add_argument("-s", "--source-lang", required=True, metavar="SRC", help="source language")
    texts.add_argument("-t", "--target-lang", required=True, metavar="TGT", help="target language")
    texts.add_argument("--trainpref", required=True, metavar="FP", help="training text: FP.SRC and FP.TGT, tokenised")
    texts.add_argument("--validpref", metavar="FP", help="the same for validation (several, separated by commas)")
    texts.add_argument("--testpref", metavar="FP", help="the same for tests; only the source is read")
    annotations = parser.add_argument_group("annotations (Luong et al. 2015)")
    annotations.add_argument(
        "--scheme", required=True, choices=SCHEMES,
        help="copyable: number unknown words, <unk1>, and give their translations the same numbers; positional: mark "
        "unknown target words with the distance of their source word, <unkpos-1>; positional-all: add the distance "
        "after every target word, as a separate word, <pos-1>",
    )  # fmt: skip
    annotations.add_argument(
        "--words", type=int, required=True, metavar="N", help="number of most frequent words of each language to keep"
    )
    annotations.add_argument(
        "--aligner", choices=ALIGNERS, default="auto",
        help="word aligner for training and validation: eflomal, ibm1, or auto: eflomal if it is installed "
        "(default: auto)",
    )  # fmt: skip
    result = parser.add_argument_group("the result")
    result.add_argument(
        "--destdir", required=True, metavar="DIR",
        help=f"folder for train, valid and test, with {SOURCE_WORDS} and {TRANSLATIONS}, the input of `llrnn "
        "rare-words restore`. The latter has the most probable translation of every source word, and can be an "
        "evidence.mapping",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    out = Path(os.path.abspath(args.destdir))
    _check(args, out)
    aligner = choose_aligner(args.aligner)
    languages = args.source_lang, args.target_lang
    names = {"train": args.trainpref} | _names("valid", args.validpref)
    pairs = {name: _read_pair(prefix, languages) for name, prefix in names.items()}
    tests = {name: _read(f"{prefix}.{languages[0]}") for name, prefix in _names("test", args.testpref).items()}
    of_source, of_target = (frequent_words(side, args.words) for side in pairs["train"])
    read = bitext_of(*([line for pair in pairs.values() for line in pair[side]] for side in (0, 1)))
    (links,) = directed_links(read.bitext, len(read.source_words), len(read.target_words), aligner, ("fwd",))
    sources = iter(_sources(read, links))
    with writing(args.destdir, "result"), whole_folder(out) as folder:
        for name, (source, target) in pairs.items():
            _write(folder / f"{name}.{languages[0]}", (annotated_source(s, of_source, args.scheme) for s in source))
            annotated = (
                annotated_target(t, of_target, s, of_source, next(sources), args.scheme)
                for s, t in zip(source, target, strict=True)
            )
            _write(folder / f"{name}.{languages[1]}", annotated)
        for name, source in tests.items():
            _write(folder / f"{name}.{languages[0]}", (annotated_source(s, of_source, args.scheme) for s in source))
        _write(folder / SOURCE_WORDS, ([word] for word in sorted(of_source)))
        translations = _translations(read, links, len(pairs["train"][0]))
        _write(folder / TRANSLATIONS, (["\t".join(row)] for row in translations.items()))
    for language, side, words in zip(languages, (0, 1), (of_source, of_target), strict=True):
        lines = pairs["train"][side]
        unknown, total = sum(word not in words for line in lines for word in line), sum(map(len, lines))
        share = percent(unknown / max(1, total))
        print(f"{language}: {plural(len(words), 'word')} kept, {share} of the training text unknown")
    return 0


def _check(args: argparse.Namespace, out: Path) -> None:
    check_least("--words", args.words, 1)
    if args.source_lang == args.target_lang:
        raise OptionError(f"--target-lang {args.target_lang}: expected another language than --source-lang")
    if not os.path.isdir(out.parent):
        raise OptionError(
            f"--destdir {args.destdir}: expected a place in a folder, but there is no such folder; make it first"
        )
    replaceable = os.path.isfile(out / SOURCE_WORDS) and may_replace(out, FILE_NAMES.fullmatch)
    if os.path.lexists(out) and not replaceable:
        raise OptionError(
            f"--destdir {args.destdir}: expected a new folder, or one of an earlier run, found something else, which "
            "would be lost; give another name"
        )


def _names(split: str, prefixes: str | None) -> dict[str, str]:
    """Return `valid`, `valid1`, … with the prefixes of their files, as fairseq-preprocess names them."""
    listed = prefixes.split(",") if prefixes else []
    return {f"{split}{number or ''}": prefix for number, prefix in enumerate(listed)}


def _read_pair(prefix: str, languages: Sequence[str]) -> tuple[Lines, Lines]:
    paths = [f"{prefix}.{language}" for language in languages]
    source, target = map(_read, paths)
    check_as_long(paths[0], paths[1], len(source), len(target))
    return source, target


def _read(path: str) -> Lines:
    return [line.split() for _, line in iter_sentences(path)]


def _sources(read: TextBitext, links: Links) -> list[dict[int, int]]:
    """Return, for every sentence pair, the place of the source word by the place of the target word."""
    source, target = read.bitext.source, read.bitext.target
    place_of: list[dict[int, int]] = [{} for _ in range(len(source))]
    sentence = np.searchsorted(source.offsets, links.source, side="right") - 1
    i, j = links.source - source.offsets[sentence], links.target - target.offsets[sentence]
    for n, a, b in zip(sentence.tolist(), i.tolist(), j.tolist(), strict=True):
        place_of[n][b] = a
    return place_of


def _translations(read: TextBitext, links: Links, num_train: int) -> dict[str, str]:
    """Return the most frequently linked target word of each source word in the training text, if both are printable."""
    in_training = links.source < read.bitext.source.offsets[num_train]
    source = read.bitext.source.tokens[links.source[in_training]]
    target = read.bitext.target.tokens[links.target[in_training]]
    keys, counts = np.unique(source * len(read.target_words) + target, return_counts=True)
    size = len(read.target_words)
    table = LexicalTable.from_pairs(keys // size, keys % size, counts.astype(np.float64), len(read.source_words), 1)
    rows = {word: table.row(number) for number, word in enumerate(read.source_words)}
    pairs = {word: read.target_words[row[0][0]] for word, row in sorted(rows.items()) if row}
    return {s: t for s, t in pairs.items() if not any(word in SPECIALS or is_blank(word) for word in (s, t))}


def _write(path: Path, lines: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(" ".join(line) + "\n" for line in lines)
