"""The options of a translation's terms, and what they say: terms of a run, of single lines, and of training."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional  # fairseq reads Optional[X] from its dataclasses, and not X | None

from fairseq.dataclass import FairseqDataclass

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.evidence.run_terms import RunTerms
from fairseq_llrnn.evidence.stored_terms import TermEntry
from fairseq_llrnn.evidence.terms import Terms
from fairseq_llrnn.evidence.terms_file import read_terms
from fairseq_llrnn.evidence.terms_tbx import read_tbx
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.languages.lemmas import GROUP
from fairseq_llrnn.lexicon.word_forms import WordForms, read_word_forms
from fairseq_llrnn.prior.parts.evidence import EvidencePart, evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.term_words import phrase_forms, source_words, target_shares, word_features

MUST, MAY = "must", "may"
logger = logging.getLogger(__name__)

TERM_FORMS, SOURCE_LEXICON = "--term-forms", "--source-lexicon"
TBX = (".tbx", ".tbx.gz")


@dataclass
class TermConfig(FairseqDataclass):
    """Options."""

    terms: Optional[str] = field(
        default=None,
        metadata={
            "help": "file of terms: source phrase, target lemma, part of speech, forms (TSV), or *.tbx; where a source "
            "has the phrase, a form of the lemma is required, and the model chooses which (with a prior that has "
            "`--evidence terms`)"
        },
    )
    term_strength: str = field(
        default=MUST,
        metadata={"help": "must: a translation has exactly one form of each term; may: its forms are made likely"},
    )
    term_forms: Optional[str] = field(
        default=None,
        metadata={
            "help": "tables of `llrnn lexicon` that know the forms of lemmas, several with commas (default: the "
            "prior's features Lemma:…)"
        },
    )
    source_lexicon: Optional[str] = field(
        default=None,
        metadata={
            "help": "tables of `llrnn lexicon` that know the lemmas of the source's words: phrases of --terms match "
            "by them, too (default: the features Lemma:… of --source-prior, if there are any)"
        },
    )
    invented_terms: float = field(
        default=0.3,
        metadata={
            "help": "share of the pairs in which training requires some words and phrases of the target, in any form, "
            "as if they were terms (with a prior that has `--evidence terms`)"
        },
    )


def check_term_options(cfg: Any, prior: Prior) -> None:
    """Raise OptionError for terms that the prior does not know, and values that do not exist."""
    if cfg.term_strength not in (MUST, MAY):
        raise OptionError(f"--term-strength {cfg.term_strength}: expected {MUST} or {MAY}")
    if not 0.0 <= cfg.invented_terms < 1.0:
        raise OptionError(f"--invented-terms {cfg.invented_terms}: expected a share from 0 to below 1, e.g. 0.3")
    if has_terms(prior):
        return
    given = ("--terms", cfg.terms), (TERM_FORMS, cfg.term_forms), (SOURCE_LEXICON, cfg.source_lexicon)
    for name, value in given:
        if value is not None:
            raise OptionError(
                f"{name} {value}: expected a prior that knows terms, found one that does not; build it with `llrnn "
                "prior --evidence terms`, and train with it"
            )


def has_terms(prior: Prior) -> bool:
    part = prior.find(EvidencePart)
    return part is not None and "terms" in part.rules.kinds


def word_forms(prior: Prior, places: str | None, entries: Iterable[TermEntry] = ()) -> WordForms:
    """The forms that `--term-forms` names, or those of the prior's features `Lemma:…`; raises as read_word_forms.

    Args:
        entries: whose words are asked for beside those of the prior.
    """
    if places is not None:
        asked = [*target_shares(prior), *(word for entry in entries for word in entry.target.split())]
        return _read_forms(TERM_FORMS, places, list(dict.fromkeys(asked)))
    known = word_features(prior, target_shares(prior))
    return WordForms.of_lexicon(known, known.__getitem__)


def _read_forms(option: str, places: str, words: Sequence[str]) -> WordForms:
    """option: which names the places. words: of the text."""
    named = [one.strip() for one in places.split(",") if one.strip()]
    forms = read_word_forms(named, words, option)
    for remark, count in forms.notes.items():
        logger.warning(f"{count:,} {remark}")
    return forms


def open_terms(cfg: Any, prior: Prior, source_prior: Prior | None) -> RunTerms:
    """What finds the terms of a sentence.

    Args:
        source_prior: of the source's words, whose lemmas phrases may match by.

    Raises:
        DataError: of the file.
    """
    table, must = evidence_table(prior), cfg.term_strength == MUST
    table.terms.required |= must
    entries = () if cfg.terms is None else _read(cfg.terms, (cfg.source_lang, cfg.target_lang))

    def read() -> Terms:
        lemmas = _source_lemmas(prior, cfg.source_lexicon, source_prior)
        forms = word_forms(prior, cfg.term_forms, entries)
        phrases = phrase_forms(prior, forms)
        return Terms(table, forms, entries, must=must, source_lemmas=lemmas, phrases=phrases)

    return RunTerms(read, cfg.terms or "", len(entries))


def _read(path: str, languages: Sequence[str]) -> Sequence[TermEntry]:
    return read_tbx(path, languages) if path.lower().endswith(TBX) else read_terms(path)


def _source_lemmas(prior: Prior, places: str | None, source_prior: Prior | None) -> Mapping[str, Sequence[str]]:
    """The lemmas of the source's words that have some, by the features of its prior, or from `places`.

    Raises as read_word_forms.
    """
    found: dict[str, list[str]] = {}
    if places is not None:
        forms = _read_forms(SOURCE_LEXICON, places, list(source_words(prior)))
        for lemma in forms:
            for form in forms.of(lemma):
                found.setdefault(form, []).append(lemma)
    elif source_prior is not None:
        for word, features in word_features(source_prior, frozenset(source_words(prior))).items():
            found[word] = [name.partition(":")[2] for name in features if feature_group(name) == GROUP]
    return {word: lemmas for word, lemmas in found.items() if lemmas}
