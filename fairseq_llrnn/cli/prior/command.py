"""`llrnn prior`: treebanks, lexicons and counts -> the prior directory that training needs."""

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from fairseq_llrnn.cli.prior import contextual as prior_contextual
from fairseq_llrnn.cli.prior import model as prior_model
from fairseq_llrnn.cli.prior import open as prior_open
from fairseq_llrnn.cli.prior import source as prior_source
from fairseq_llrnn.cli.show.source import kinds_text
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList, load_dictionary
from fairseq_llrnn.features.lexicon import Lexicon
from fairseq_llrnn.features.readers import read_apertium, read_conllu, read_tsv_lexicon, read_values
from fairseq_llrnn.features.spelling import DEFAULT_SUFFIX_FLOOR
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText
from fairseq_llrnn.features.user_patterns import UserPatterns
from fairseq_llrnn.ngrams.unigram import SMOOTHINGS
from fairseq_llrnn.prior.build import PriorSettings, add_translations, build_prior
from fairseq_llrnn.prior.evidence import add_evidence, discount, source_words
from fairseq_llrnn.prior.parts import CopiedWordsPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.sequence_background import add_contextual

NAME = "prior"
HELP = "build the prior: features, signatures and background for a dictionary"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("dictionary, counts and result")
    files.add_argument("--dict", required=True, metavar="FILE", help="dict.txt of fairseq-preprocess")
    files.add_argument("--out", required=True, metavar="DIR", help="where the prior goes, e.g. data-bin/prior")
    files.add_argument(
        "--count-text", nargs="+", default=[], metavar="FILE",
        help="tokenised text that ranks the words and makes the unigram (default: the counts in --dict, where the end "
        "of sentence is not counted and is taken to come after every 25 words)",
    )  # fmt: skip
    sources = parser.add_argument_group("where features of words come from")
    sources.add_argument(
        "--conllu", nargs="+", default=[], metavar="FILE", help="treebanks (CoNLL-U, .gz too): features"
    )
    sources.add_argument(
        "--lexicon", nargs="+", default=[], metavar="FILE", help="lexicons: form, lemma, UPOS, FEATS (TSV, .gz too)"
    )
    sources.add_argument(
        "--apertium", metavar="MODE_OR_FILE",
        help="a morphological analyser for the words of --dict, through lt-proc: an installed mode, e.g. fra-cat, or "
        "the path of an *.automorf.bin",
    )  # fmt: skip
    sources.add_argument(
        "--values", nargs="+", default=[], metavar="FILE",
        help="real-valued features of words (TSV: word, Group:Value, number)",
    )  # fmt: skip
    sources.add_argument("--patterns", metavar="FILE", help="TOML file with your own regular expressions")
    sources.add_argument(
        "--shapes", action="store_true", help="add surface shapes: numbers, years, capitals, hyphens"
    )
    sources.add_argument(
        "--suffixes", type=int, nargs="?", const=DEFAULT_SUFFIX_FLOOR, metavar="FLOOR",
        help=f"add suffixes of length 2-4 that at least FLOOR word types share (default FLOOR: {DEFAULT_SUFFIX_FLOOR})",
    )  # fmt: skip
    sources.add_argument(
        "--keep-case", action="store_true",
        help="the text has capitals: do not lower-case the forms of treebanks and lexicons, and give Apertium the "
        "words as they are (without this, `lyon` is looked up as Lyon and LYON, too)",
    )  # fmt: skip
    sources.add_argument(
        "--pieces", choices=list(CONVENTIONS),
        help="--dict holds pieces of words: of sentencepiece (`▁` begins a word), or of subword-nmt's bpe (`@@`: the "
        "word goes on); a piece has the features of the words that hold it, by their shares in --count-text, which "
        "must be in pieces, too; the shares are rounded to quarters",
    )  # fmt: skip
    features = parser.add_argument_group("which features the model has")
    features.add_argument(
        "--top-words", type=_words_or_all, metavar="M",
        help="words with an identity of their own, the most frequent ones; `all` for every word (default: 2500)",
    )  # fmt: skip
    features.add_argument(
        "--features", type=_names, metavar="GROUPS",
        help="comma list of the lexicon's feature groups, e.g. POS,Gender (default: all)",
    )  # fmt: skip
    features.add_argument(
        "--input-features", type=_names, metavar="GROUPS", help="feature groups the network reads (ψ; default: as φ)"
    )
    features.add_argument(
        "--input-top-words", type=_words_or_all, metavar="M", help="identities the network reads (default: --top-words)"
    )
    features.add_argument(
        "--softmax", action="store_true",
        help="the special case: every word its own and only feature, uniform background (a plain softmax, to compare)",
    )  # fmt: skip
    background = parser.add_argument_group("background")
    background.add_argument(
        "--background", metavar="KIND",
        help="unigram (default); uniform; a TSV of `word<TAB>weight`; ngram:FILE, an ARPA file (.gz too); ngram:N, "
        "n-grams of order N estimated from --count-text; automaton:FILE, a grammar, regular expression or "
        "weighted automaton over the words (docs/guides/grammars.md); or model:FILE, the checkpoint of "
        "a trained language model",
    )  # fmt: skip
    background.add_argument(
        "--smoothing", choices=SMOOTHINGS, help="unigram mass of unseen words (default: absolute)"
    )
    background.add_argument(
        "--pseudo-count", type=float, metavar="A", help="what additive smoothing adds (default: 1)"
    )
    prior_contextual.add_arguments(parser)
    prior_model.add_arguments(parser)
    prior_open.add_arguments(parser)
    prior_source.add_arguments(parser)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _words_or_all(text: str) -> int | Literal["all"]:
    if text == "all":
        return "all"
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number of words or `all`, found {text!r}") from None


def run(args: argparse.Namespace) -> int:
    started = time.perf_counter()
    words = load_dictionary(args.dict)
    prior_open.check(args)
    settings, lexical = _settings(args), prior_source.lexical_settings(args)
    contextual, model = prior_contextual.contextual_settings(args), prior_model.model_files(args)
    patterns = UserPatterns.load(args.patterns) if args.patterns else None
    evidence = prior_source.evidence_settings(args, patterns)
    text = _piece_text(args, words)
    bitext = prior_source.read_bitext(args, words) if lexical is not None else None
    copies = contextual is not None and contextual.copies
    source_symbols = prior_source.source_symbols(args, bitext) if evidence is not None or copies else ()
    counts = words.count_text(args.count_text) if args.count_text else words.counts_with_ends()
    lexicon = _lexicon(args, words, text)
    sources = _sources(args, bitext.files if bitext else ())
    for_source = evidence is not None and "patterns" in evidence.rules.kinds
    prior, notes = build_prior(words, counts, lexicon, settings, patterns, sources, text, unused_patterns=for_source)
    if contextual is not None:
        prior, more = add_contextual(prior, words, contextual, args.count_text)
        prior = prior.with_part(CopiedWordsPart(), source_symbols) if copies else prior
        notes.update(more)
    if model is not None:
        prior, more = prior_model.add_model(prior, words, model)
        notes.update(more)
    prior = prior_open.open_vocabulary(args, prior, words, lexicon)
    if evidence is not None and evidence.unsupported:
        prior, more = discount(prior, words, evidence.unsupported)
        notes.update(more)
    if lexical is not None and bitext is not None:
        prior, more = add_translations(prior, bitext.bitext, bitext.source_symbols, lexical)
        notes.update(more)
    if evidence is not None:
        prior = add_evidence(prior, evidence.rules, source_symbols)
    counted = source_words(prior)  # before anything is written: a pattern can take too long
    prior.save(args.out)
    for note, count in sorted(notes.items()):
        print(f"note: {count:,} {note}", file=sys.stderr)
    if counted.get("names") == 0:
        print("note: no word of the source dictionary is a name: names need a text with capitals", file=sys.stderr)
    _print_table(prior, words, counted, args.out, time.perf_counter() - started)
    return 0


def _settings(args: argparse.Namespace) -> PriorSettings:
    if args.softmax:
        _refuse_beside_softmax(args)
        return PriorSettings(top_words="all", background="uniform")
    if args.suffixes is not None and args.suffixes < 1:
        raise OptionError(f"--suffixes {args.suffixes}: expected a number of word types of at least 1")
    if args.pseudo_count is not None and args.smoothing != "additive":
        raise OptionError(
            "--pseudo-count: only additive smoothing adds something; say --smoothing additive, or leave it out"
        )
    smoothed = args.background in (None, "unigram") or args.background.startswith(("automaton:", "model:"))
    if args.smoothing is not None and not (smoothed or args.ngram_text):
        raise OptionError(
            f"--smoothing: only a unigram is smoothed, found --background {args.background}; leave one out"
        )
    given: dict[str, Any] = {
        "top_words": args.top_words,
        "background": args.background,
        "smoothing": args.smoothing,
        "pseudo_count": args.pseudo_count,
    }
    settings = PriorSettings(
        features=args.features,
        input_features=args.input_features,
        input_top_words=args.input_top_words,
        shapes=args.shapes,
        suffix_floor=args.suffixes,
        pieces=args.pieces,
    )
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _refuse_beside_softmax(args: argparse.Namespace) -> None:
    others = (
        *("conllu", "lexicon", "values", "apertium", "count_text", "keep_case", "features", "input_features"),
        *("top_words", "input_top_words", "patterns", "shapes", "suffixes", "background", "smoothing", "pseudo_count"),
        *("pieces", *prior_contextual.NAMES, *prior_model.NAMES, *prior_source.NAMES, *prior_open.NAMES),
    )
    for name in others:
        if getattr(args, name) not in (None, False, []):
            raise OptionError(
                f"--softmax: a softmax takes no other option, found --{name.replace('_', '-')} beside it; "
                "leave one of them out"
            )


def _piece_text(args: argparse.Namespace, words: WordList) -> PieceText | None:
    """The text that says which words a piece is part of; None where words are words, or nothing is said of them."""
    if args.pieces is None:
        return None
    convention = CONVENTIONS[args.pieces]
    convention.check_dictionary(args.dict, words)
    of_words = [name for name in ("conllu", "lexicon", "apertium", "values", "suffixes") if getattr(args, name)]
    if of_words and not args.count_text:
        raise OptionError(
            f"--pieces {args.pieces}: expected --count-text beside --{of_words[0]}, found none; add the training text "
            f"in pieces, which shows what words hold a piece, or leave --{' and --'.join(of_words)} out: a piece then "
            "has the features that it shows itself"
        )
    return PieceText.read(args.count_text, convention) if of_words else None


def _lexicon(args: argparse.Namespace, words: WordList, text: PieceText | None) -> Lexicon:
    lexicon = Lexicon()
    readers: list[tuple[Callable[..., Lexicon], list[str]]] = [
        (read_conllu, args.conllu),
        (read_tsv_lexicon, args.lexicon),
        (read_values, args.values),
    ]
    for read, paths in readers:
        for path in paths:
            lexicon.update(read(path, lowercase=not args.keep_case))
    if args.apertium is not None:
        ordinary = [word for word, special in zip(words.symbols, words.specials, strict=True) if not special]
        looked_up = ordinary if text is None else text.words()
        lexicon.update(read_apertium(looked_up, analyser=args.apertium, lowercase=not args.keep_case))
    return lexicon


def _sources(args: argparse.Namespace, bitext: Sequence[Path]) -> list[str]:
    """What the prior was made from: option, file name, and the beginning of the content's SHA-256."""
    files = [
        *(("--conllu", path) for path in args.conllu),
        *(("--lexicon", path) for path in args.lexicon),
        *(("--values", path) for path in args.values),
        *(("--count-text", path) for path in args.count_text),
        *(("--patterns", path) for path in [args.patterns] if path is not None),
        *(("--background", path) for path in (*prior_contextual.files(args), *prior_model.files(args))),
        *(("--lexical-translation", path) for path in bitext),
        *(("--evidence-map", path) for path in [args.evidence_map] if path is not None),
    ]
    described = []
    for option, path in files:
        with open(path, "rb") as stream:
            described.append(f"{option} {Path(path).name} {hashlib.file_digest(stream, 'sha256').hexdigest()[:16]}")
    return described + ([] if args.apertium is None else [f"--apertium {Path(args.apertium).name}"])


def _print_table(prior: Prior, words: WordList, evidence: dict[str, int], out: str, seconds: float) -> None:
    counts = {**prior.counts(), "ordinary words": int((~words.specials).sum())}
    width = max(len(name) for name in counts)
    for name, value in counts.items():
        print(f"{name:<{width}}  {value:>10,}")
    print(f"{'seconds':<{width}}  {seconds:>10.1f}")
    if evidence:
        print(f"evidence among the source words: {kinds_text(evidence)}")
    print(f"prior written to {Path(out)}")
