"""The options of `llrnn prior` about the source of a translation: lexical translations and evidence."""

import argparse
import difflib
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fairseq_llrnn.alignment.aligners import ALIGNERS, choose_aligner
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.mapping_file import read_evidence_map
from fairseq_llrnn.evidence.rules import DEFAULT_WEIGHT, FORMED, KINDS, EvidenceRules
from fairseq_llrnn.features.dictionary import WordList, load_dictionary
from fairseq_llrnn.features.user_patterns import UserPatterns
from fairseq_llrnn.prior.build import LexicalSettings

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.data.binarized_bitext import BinarisedBitext

NAMES = (
    *("lexical_translation", "lexical_weight", "lexical_top", "aligner"),
    *("evidence", "evidence_map", "evidence_weight", "unsupported", "source_dict"),
)


@dataclass(frozen=True)
class EvidenceSettings:
    """What `llrnn prior --evidence` was told."""

    rules: EvidenceRules
    unsupported: dict[str, float]  # factors by kind, for target words that need evidence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    lexical = parser.add_argument_group("translation: lexical translations of the source")
    lexical.add_argument(
        "--lexical-translation", metavar="DIR",
        help="folder of fairseq-preprocess with a bitext (train.SRC-TGT.…), TGT being the language of --dict: the "
        "background of a sentence is mixed with the translations of its source words",
    )  # fmt: skip
    lexical.add_argument(
        "--lexical-weight", type=_weight, metavar="W",
        help="share of the translations, from 0 to below 1, or `learned` (a parameter of the model; default: "
        f"{LexicalSettings.weight})",
    )  # fmt: skip
    lexical.add_argument(
        "--lexical-top", type=int, metavar="K",
        help=f"translations of a source word that are kept (default: {LexicalSettings.top})",
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
        "where no dictionary has them (patterns: those of --patterns; copies: every other unknown word)",
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


def _weight(text: str) -> float | Literal["learned"]:
    if text == "learned":
        return "learned"
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or `learned`, found {text!r}") from None


def lexical_settings(args: argparse.Namespace) -> LexicalSettings | None:
    """None where no translations are asked for."""
    if args.lexical_translation is None:
        _refuse_alone(args, ("lexical_weight", "lexical_top", "aligner"), "--lexical-translation")
        return None
    settings = LexicalSettings(aligner=choose_aligner(args.aligner or "auto"))
    if args.lexical_weight == "learned":
        settings = replace(settings, learned=True)
    elif args.lexical_weight is not None:
        settings = replace(settings, weight=args.lexical_weight)
    settings = settings if args.lexical_top is None else replace(settings, top=args.lexical_top)
    settings.check()
    return settings


def _refuse_alone(args: argparse.Namespace, names: Sequence[str], needed: str) -> None:
    for name in names:
        if getattr(args, name) not in (None, []):
            option = "--" + name.replace("_", "-")
            raise OptionError(f"{option}: it has no say without {needed}; add that, or leave it out")


def read_bitext(args: argparse.Namespace, words: WordList) -> "BinarisedBitext":
    for talkative in ("fairseq", "eflomal"):  # before they are imported: they report while they are
        logging.getLogger(talkative).setLevel(logging.WARNING)
    from fairseq_llrnn.plugin.data import binarized_bitext as bitext

    return bitext.read_bitext(args.lexical_translation, args.dict, words)


def evidence_settings(args: argparse.Namespace, patterns: UserPatterns | None) -> EvidenceSettings | None:
    """None where no evidence is asked for.

    Raises:
        OptionError, DataError: options that are wrong or do not go together; a table that is.
    """
    if args.evidence is None and args.evidence_map is None:
        _refuse_alone(args, ("evidence_weight", "unsupported"), "--evidence")
        if not args.copy_source_words:
            _refuse_alone(args, ("source_dict",), "--evidence or --copy-source-words")
        return None
    if args.copy_source_words:
        raise OptionError(
            "--evidence: evidence is of whole words, and --copy-source-words spells them; leave one of them out"
        )
    if args.pieces is not None:
        raise OptionError(
            f"--evidence: evidence is of whole words, found --pieces {args.pieces} beside it; preprocess words, or "
            "leave one of them out"
        )
    chosen = _kinds(args.evidence or "")
    if "mapped" in chosen and args.evidence_map is None:
        raise OptionError("--evidence mapped: expected --evidence-map with what is mapped, found none; add it")
    if "patterns" in chosen and patterns is None:
        raise OptionError("--evidence patterns: expected --patterns with your expressions, found none; add it")
    if not chosen and args.evidence_map is None:
        raise OptionError(f"--evidence {args.evidence!r}: expected some of {', '.join(KINDS)}, found none; name one")
    weight = DEFAULT_WEIGHT if args.evidence_weight is None else args.evidence_weight
    if not (math.isfinite(weight) and weight > 0):
        raise OptionError(f"--evidence-weight {weight}: expected a number above 0; {DEFAULT_WEIGHT} is a good start")
    mapping = {} if args.evidence_map is None else read_evidence_map(args.evidence_map)
    kinds = tuple(kind for kind in KINDS if kind in chosen or (kind == "mapped" and mapping))
    rules = EvidenceRules(kinds, mapping, {} if patterns is None else patterns.expressions, weight)
    return EvidenceSettings(rules, _factors(args.unsupported))


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
        if not 0.0 <= factor <= 1.0:
            raise OptionError(f"--unsupported {text}: expected a weight from 0 (forbidden) to 1, such as {kind}=0.1")
        if kind in factors:
            raise OptionError(f"--unsupported {text}: {kind} was already given; leave one out")
        factors[kind] = factor
    return factors


def _nearest(found: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(found, names, n=1)
    return f"; did you mean {near[0]}?" if near else "; correct the spelling"


def source_symbols(args: argparse.Namespace, bitext: "BinarisedBitext | None") -> tuple[str, ...]:
    """The source dictionary's words: of --source-dict, of the bitext, or of the only other dictionary beside --dict.

    Raises:
        OptionError: none or several; one that is not the bitext's.
    """
    if args.source_dict is not None:
        symbols = load_dictionary(args.source_dict).symbols
        if bitext is not None and symbols != bitext.source_symbols:
            raise OptionError(
                f"--source-dict {args.source_dict}: expected the words of the source side of --lexical-translation "
                f"{args.lexical_translation}, found others; leave it out"
            )
        return symbols
    if bitext is not None:
        return bitext.source_symbols
    own = Path(args.dict)
    others = sorted(path for path in own.parent.glob("dict.*.txt") if path.name != own.name)
    if len(others) != 1:
        option = "--copy-source-words" if args.copy_source_words else "--evidence"
        found = ", ".join(path.name for path in others) or "none"
        raise OptionError(
            f"{option}: expected one other dict.*.txt beside --dict {own}, the source's, found {found}; give it as "
            "--source-dict"
        )
    return load_dictionary(others[0]).symbols
