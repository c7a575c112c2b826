"""The options of `llrnn prior`, and what they say as options of a prior (fairseq_llrnn/prior/recipe.py)."""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from fairseq_llrnn.cli.prior import guessing as prior_guessing
from fairseq_llrnn.cli.prior import language as prior_language
from fairseq_llrnn.cli.prior import morphemes as prior_morphemes
from fairseq_llrnn.cli.prior import open as prior_open
from fairseq_llrnn.cli.prior import source as prior_source
from fairseq_llrnn.cli.word_files import add_lower, add_normalize, add_word_files
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.features.identities import AUTO, IDENTITY_FLOOR, TopWords
from fairseq_llrnn.features.spelling import DEFAULT_SUFFIX_FLOOR
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.files.processes import MOST_BY_DEFAULT

if TYPE_CHECKING:
    from fairseq_llrnn.prior.recipe import Recipe

OF_A_SOFTMAX = ("softmax", "dict", "out", "workers", "labels")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument_group("dictionary, counts and result")
    files.add_argument("--dict", required=True, metavar="FILE", help="dict.txt of fairseq-preprocess")
    files.add_argument("--out", required=True, metavar="DIR", help="where the prior goes, e.g. data-bin/prior")
    files.add_argument(
        "--count-text", nargs="+", default=[], metavar="FILE",
        help="tokenised text that ranks the words and makes the unigram (default: the counts in --dict, where the end "
        "of sentence is not counted and is taken to come after every 25 words)",
    )  # fmt: skip
    files.add_argument(
        "--workers", type=int, metavar="N",
        help="processes that read texts and align words; the prior does not depend on it (default: one for each core, "
        f"at most {MOST_BY_DEFAULT})",
    )  # fmt: skip
    sources = parser.add_argument_group("where features of words come from")
    add_word_files(sources)
    prior_language.add_arguments(sources)
    sources.add_argument("--patterns", metavar="FILE", help="TOML file with your own regular expressions")
    sources.add_argument("--shapes", action="store_true", help="add surface shapes: numbers, years, capitals, hyphens")
    sources.add_argument(
        "--suffixes", type=int, nargs="?", const=DEFAULT_SUFFIX_FLOOR, metavar="FLOOR",
        help=f"add suffixes of length 2-4 that at least FLOOR word types share (default FLOOR: {DEFAULT_SUFFIX_FLOOR})",
    )  # fmt: skip
    prior_morphemes.add_arguments(sources)
    sources.add_argument(
        "--keep-case", action="store_true",
        help="the text has capitals: do not lower-case the forms of treebanks and lexicons (those of tables stay as "
        "they are)",
    )  # fmt: skip
    add_lower(sources)
    add_normalize(sources, "the text is in this Unicode form; so are the words of these files then")
    sources.add_argument(
        "--pieces", choices=list(CONVENTIONS),
        help="--dict holds pieces of words: of sentencepiece (`▁` begins a word), or of subword-nmt's bpe (`@@`: the "
        "word goes on); a piece has the features of the words that hold it, by their shares in --count-text, which "
        "must be in pieces, too; the shares are rounded to quarters",
    )  # fmt: skip
    prior_guessing.add_arguments(sources)
    features = parser.add_argument_group("which features the model has")
    features.add_argument(
        "--top-words", type=_top_words, metavar="M",
        help="words with an identity of their own: the M most frequent ones; `all`; or `auto`, those that the counted "
        "text shows at least --identity-floor times (default: auto)",
    )  # fmt: skip
    features.add_argument(
        "--identity-floor", type=int, metavar="N",
        help=f"how often the text has to show a word that gets an identity by `auto` (default: {IDENTITY_FLOOR})",
    )  # fmt: skip
    features.add_argument(
        "--features", type=_names, metavar="GROUPS",
        help="comma list of the lexicon's feature groups, e.g. POS,Gender (default: all)",
    )  # fmt: skip
    features.add_argument(
        "--input-features", type=_names, metavar="GROUPS", help="feature groups the network reads (ψ; default: as φ)"
    )
    features.add_argument(
        "--input-top-words", type=_top_words, metavar="M", help="identities the network reads (default: --top-words)"
    )
    features.add_argument(
        "--softmax", action="store_true",
        help="the special case: every word its own and only feature, uniform background (a plain softmax, to compare)",
    )  # fmt: skip
    features.add_argument(
        "--labels", action="store_true",
        help="the dictionary's words are labels of texts, for --task llrnn_classification: each has an identity "
        "(unless --top-words says otherwise), and neither the end of a sentence nor <unk> has any mass",
    )  # fmt: skip
    background = parser.add_argument_group("background")
    background.add_argument(
        "--background", metavar="EXPRESSION",
        help="unigram (default); uniform; language or language:CODE, the frequencies of words in the texts of others "
        "(docs/guides/languages.md); a TSV of `word<TAB>weight`; ngram:FILE, an ARPA file (.gz too); ngram:N, n-grams "
        "of order N estimated from --count-text; automaton:FILE, a grammar, regular expression or "
        "weighted automaton over the words (docs/guides/grammars.md); model:FILE, the checkpoint of "
        "a trained language model; cache:N, the last N words (up to 100,000). Parentheses have options, as in "
        "`ngram(3, folds=10)`, `cache(500, weight=0.9)`, `automaton(FILE, on_zero=skip)` or "
        "`unigram(smoothing=additive)` (docs/options.md has all). Several are combined as in "
        "`automaton:FILE times ngram:3` (both must allow a word), `0.7 ngram:3 plus 0.3 cache:500`, "
        "`ngram:3 plus model:FILE with weights learned` (or `with weights per position`: the network chooses), "
        "`ngram:3 at temperature 2`, with parentheses",
    )  # fmt: skip
    prior_open.add_arguments(parser)
    prior_source.add_arguments(parser)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _top_words(text: str) -> TopWords:
    if text == "all":
        return "all"
    if text == AUTO:
        return AUTO
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number of words, `all` or `auto`, found {text!r}") from None


def _chosen_top_words(args: argparse.Namespace) -> TopWords:
    if args.top_words is not None:
        return cast(TopWords, args.top_words)
    from fairseq_llrnn.prior.recipe import Recipe

    return "all" if args.labels else Recipe.top_words


def _identity_floor(args: argparse.Namespace) -> int:
    if args.identity_floor is None:
        return IDENTITY_FLOOR
    top_words = _chosen_top_words(args)
    if AUTO not in (top_words, args.input_top_words):
        raise OptionError(
            f"--identity-floor {args.identity_floor}: expected --top-words auto, to which it belongs, found "
            f"--top-words {top_words}; leave one of them out"
        )
    return int(args.identity_floor)


def options(args: argparse.Namespace) -> "Recipe":
    """What the command line says. Raises OptionError, DataError: it is wrong, or does not go together."""
    from fairseq_llrnn.lexicon.options import LexiconOptions
    from fairseq_llrnn.prior.recipe import Recipe

    check_least("--workers", args.workers, 1, "processes")
    words = load_dictionary(args.dict)
    opened = prior_open.open_options(args)
    if args.softmax:
        _refuse_beside_softmax(args)
        return replace(Recipe.softmax(), labels=args.labels)
    evidence = prior_source.evidence_options(args)
    return Recipe(
        text=args.count_text,
        words=LexiconOptions(
            conllu=args.conllu,
            lexicon=args.lexicon,
            language=args.language,
            lemma_floor=prior_language.floor(args),
            morphemes=args.morphemes,
            morpheme_floor=prior_morphemes.floor(args),
            guess=args.guess or LexiconOptions.guess,
            keep_case=args.keep_case,
            lower=args.lower,
            normalize=args.normalize,
        ),
        patterns=args.patterns,
        shapes=args.shapes,
        suffixes=args.suffixes,
        pieces=args.pieces,
        top_words=_chosen_top_words(args),
        identity_floor=_identity_floor(args),
        features=args.features,
        input_features=args.input_features,
        input_top_words=args.input_top_words,
        background=args.background or Recipe.background,
        source_dictionary=args.source_dict,
        translations=prior_source.translation_options(args, words),
        evidence=evidence,
        open_vocabulary=opened,
        labels=args.labels,
        workers=args.workers,
    )


def _refuse_beside_softmax(args: argparse.Namespace) -> None:
    for name, value in vars(args).items():
        if name not in OF_A_SOFTMAX and value not in (None, False, []):
            raise OptionError(
                f"--softmax: a softmax takes no other option, found --{name.replace('_', '-')} beside it; "
                "leave one of them out"
            )
