"""What the options of a translation's terms name: terms of a run and of single lines, and the forms of words."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.lexicon.languages.lemmas import GROUP
from fairseq_llrnn.lexicon.word_forms import WordForms, read_word_forms
from fairseq_llrnn.plugin.tasks.evidence_options import MUST, SOURCE_LEXICON, TERM_FORMS
from fairseq_llrnn.prior.parts.evidence import evidence_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.terms.run import RunTerms
from fairseq_llrnn.systems.terms.stored import TermEntry
from fairseq_llrnn.systems.terms.tbx_file import read_tbx
from fairseq_llrnn.systems.terms.terms import Terms
from fairseq_llrnn.systems.terms.tsv_file import read_terms
from fairseq_llrnn.systems.terms.words import phrase_forms, source_words, target_shares, word_features

logger = logging.getLogger(__name__)
TBX = (".tbx", ".tbx.gz")


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
