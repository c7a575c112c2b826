"""The options of `llrnn prior` about the source of a translation: lexical translations and evidence."""

import argparse
import difflib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairseq_llrnn import defaults
from fairseq_llrnn.alignment.aligners import ALIGNERS
from fairseq_llrnn.alignment.bitext import Bitext, BitextSide, ParallelText
from fairseq_llrnn.cli.prior.alone import refuse_alone
from fairseq_llrnn.cli.prior.numbers import number_or_learned
from fairseq_llrnn.cli.with_fairseq import need_fairseq
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.rules import DEFAULT_WEIGHT, FORMED, KINDS, check_factor
from fairseq_llrnn.features.dictionary import WordList

if TYPE_CHECKING:
    from fairseq_llrnn.prior.recipe import EvidenceOptions, TranslationOptions

# options that say how translations are estimated
ESTIMATE = (
    *("lexical_weight", "lexical_top", "lexical_units", "lexical_form_power", "aligner", "source_lexicon"),
)

_NOTHING = ParallelText(Bitext(*[BitextSide(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))] * 2), (), ())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    lexical = parser.add_argument_group("translation: lexical translations of the source")
    lexical.add_argument(
        "--lexical-translation", metavar="DIR",
        help="folder of fairseq-preprocess with a bitext (train.SRC-TGT.…), TGT being the language of --dict: the "
        "background of a sentence is mixed with the translations of its source words",
    )  # fmt: skip
    lexical.add_argument(
        "--lexical-weight", type=number_or_learned, metavar="W",
        help="share of the translations, from 0 to below 1, or `learned` (a parameter of the model; default: "
        f"{defaults.LEXICAL_WEIGHT})",
    )  # fmt: skip
    lexical.add_argument(
        "--lexical-top", type=int, metavar="K",
        help=f"translations of a source word that are kept (default: {defaults.LEXICAL_TOP})",
    )  # fmt: skip
    lexical.add_argument(
        "--lexical-units", choices=defaults.UNITS,
        help="what the bitext is aligned and counted by: words of the target, or their lemmas, so that also forms are "
        "reached that no bitext shows, and the network chooses among the forms by their features; lemmas are those of "
        "--conllu, --lexicon and --language, and guessed for words that these lack (default: "
        "word)",
    )  # fmt: skip
    lexical.add_argument(
        "--lexical-form-power", type=float, metavar="P",
        help="of --lexical-units lemma: the share of a form of its lemma is as its count to this power; 0: all forms "
        f"alike, 1: as frequent as they are (default: {defaults.FORM_POWER:g})",
    )  # fmt: skip
    lexical.add_argument(
        "--source-lexicon", nargs="+", default=[], metavar="FILE",
        help="tables of `llrnn lexicon` with the lemmas of source words, which rare words fall back on, and those that "
        "the bitext lacks take their translations from; guessed for words that these lack (default: no lemmas)",
    )  # fmt: skip
    lexical.add_argument(
        "--aligner", choices=ALIGNERS,
        help="who aligns the words: eflomal (the better one, if it is installed; it draws random numbers, so that two "
        "runs differ a little), ibm1, or auto: eflomal if it is there (default: auto)",
    )  # fmt: skip
    evidence = parser.add_argument_group("translation: evidence, strings taken from the source")
    evidence.add_argument(
        "--evidence", metavar="KINDS",
        help=f"comma list of {', '.join(KINDS)}: source words of these kinds can be written in the translation, even "
        "where no dictionary has them (patterns: those of --patterns; copies: every other unknown word, which is, over "
        "--pieces, one that the training text of --lexical-translation lacks; terms: forms that a terms file asks for; "
        "translations: words of the dictionary into which --lexical-translation translates source words, so that the "
        "network finds them by their place in the source)",
    )  # fmt: skip
    evidence.add_argument(
        "--evidence-map", metavar="FILE",
        help="what source words become (TSV: source word, target words): evidence of the kind `mapped`",
    )  # fmt: skip
    evidence.add_argument(
        "--evidence-weight", type=float, metavar="W",
        help="background of the evidence of a sentence, all together, where all words together have 1 (default: "
        f"{DEFAULT_WEIGHT})",
    )  # fmt: skip
    evidence.add_argument(
        "--unsupported", nargs="+", default=[], metavar="KIND=WEIGHT",
        help=f"background of target words that look like {', '.join(FORMED)} and are no evidence, as a multiple of "
        "what it would be: 0 forbids them",
    )  # fmt: skip
    evidence.add_argument(
        "--source-dict", metavar="FILE",
        help="dict.txt of the source (default: that of --lexical-translation, or the only other one beside --dict)",
    )  # fmt: skip


def translation_options(args: argparse.Namespace, words: WordList) -> "TranslationOptions | None":
    """None where no translations are asked for."""
    if args.lexical_translation is None:
        refuse_alone(args, ESTIMATE, "--lexical-translation")
        return None
    if args.lexical_units != "lemma":
        refuse_alone(args, ("lexical_form_power",), "--lexical-units lemma")
    learned = args.lexical_weight == "learned"
    given = {
        "weight": None if learned else args.lexical_weight,
        "learned": learned or None,
        "top": args.lexical_top,
        "aligner": args.aligner,
        "units": args.lexical_units,
        "form_power": args.lexical_form_power,
        "source_lexicon": tuple(args.source_lexicon) or None,
    }
    from fairseq_llrnn.prior.recipe import TranslationOptions

    options = TranslationOptions(_NOTHING, **{name: value for name, value in given.items() if value is not None})
    options.check()  # before anything is read
    return replace(options, text=_read_bitext(args, words))


def _read_bitext(args: argparse.Namespace, words: WordList) -> ParallelText:
    need_fairseq()
    from fairseq_llrnn.plugin.data import binarized_bitext as bitext

    return bitext.read_bitext(args.lexical_translation, args.dict, words)


def evidence_options(args: argparse.Namespace) -> "EvidenceOptions | None":
    """None where no evidence is asked for.

    Raises:
        OptionError: options that are wrong or do not go together.
    """
    if args.evidence is None and args.evidence_map is None:
        refuse_alone(args, ("evidence_weight", "unsupported", "source_dict"), "--evidence")
        return None
    chosen = _kinds(args.evidence or "")
    if not chosen and args.evidence_map is None:
        raise OptionError(f"--evidence {args.evidence!r}: expected some of {', '.join(KINDS)}, found none; name one")
    weight = DEFAULT_WEIGHT if args.evidence_weight is None else args.evidence_weight
    from fairseq_llrnn.prior.recipe import EvidenceOptions

    return EvidenceOptions(tuple(chosen), args.evidence_map, weight, _factors(args.unsupported))


def _kinds(text: str) -> list[str]:
    """The kinds that a comma list names."""
    kinds = [kind.strip() for kind in text.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in KINDS:
            raise OptionError(f"--evidence {kind}: expected some of {', '.join(KINDS)}{_nearest(kind, KINDS)}")
    return kinds


def _factors(given: Sequence[str]) -> dict[str, float]:
    """KIND=WEIGHT … as numbers by kind."""
    factors: dict[str, float] = {}
    for text in given:
        kind, equals, number = text.partition("=")
        if not equals or kind not in FORMED:
            raise OptionError(
                f"--unsupported {text}: expected KIND=WEIGHT with a kind of {', '.join(FORMED)}{_nearest(kind, FORMED)}"
            )
        try:
            factor = float(number)
        except ValueError:
            factor = math.nan
        check_factor(text, kind, factor)
        if kind in factors:
            raise OptionError(f"--unsupported {text}: {kind} was already given; leave one out")
        factors[kind] = factor
    return factors


def _nearest(found: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(found, names, n=1)
    return f"; did you mean {near[0]}?" if near else "; correct the spelling"
