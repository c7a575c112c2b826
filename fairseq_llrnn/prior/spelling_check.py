"""Notes on words that a text and a lexicon spell differently: in another case, or in another Unicode form (NFC, NFD).

Such words get no features from the lexicon, which the user would not notice. V words of the dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.text_lines import advice_on_form, in_form
from fairseq_llrnn.lexicon.casing import DOT, case_key, language_of, lower
from fairseq_llrnn.lexicon.options import LexiconOptions

CASE, UNICODE = "case", "Unicode form"


def notes_of_spelling(
    words: WordList, counts: np.ndarray, vocabulary: Collection[str], what: str, options: LexiconOptions
) -> Counter[str]:
    """Return counts of dictionary words that are missing only because of their case or Unicode form, with the option to
    set.

    Args:
        counts: (V,), of the text.
        vocabulary: words of files, read with `options`.
        what: the beginning of the notes, as in "the lexicon has".
    """
    missing = [i for i in np.flatnonzero(~words.specials).tolist() if words.symbols[i] not in vocabulary]
    if not missing or not vocabulary:
        return Counter()
    forms: dict[str, str] = {}
    for form in vocabulary:
        forms.setdefault(_key(form), form)
    places: dict[tuple[str, str], list[int]] = {}
    any_capitals = any(word != lower(word) for word in words.ordinary)
    for i in missing:
        word = words.symbols[i]
        alike = forms.get(_key(word))
        if alike is None:
            continue
        if in_form(word, "nfc") == in_form(alike, "nfc"):
            advice = advice_on_form(word, options.normalize, "--set words.normalize=")
            places.setdefault((UNICODE, advice), []).append(i)
        elif (of_case := _advice(word, alike, options, any_capitals)) is not None:
            places.setdefault((CASE, of_case), []).append(i)
    total = max(1, int(counts[~words.specials].sum()))
    return Counter(
        {
            f"dictionary words ({100 * counts[indices].sum() / total:.1f} % of the text) that {what} in another "
            f"{difference} only, such as {words.symbols[indices[0]]!r}: {advice}": len(indices)
            for (difference, advice), indices in places.items()
        }
    )


def _key(word: str) -> str:
    return in_form(case_key(in_form(word, "nfc")), "nfc")


def _advice(word: str, form: str, options: LexiconOptions, any_capitals: bool) -> str | None:
    """Return how to make `word` of the dictionary and `form` of the lexicon the same, or None.

    Args:
        any_capitals: whether the dictionary has capitals. Case then differs for reasons of the text.
    """
    language = language_of(options.lower)
    if options.keep_case:
        if any_capitals:
            return None
        turkic = lower(form, "tr") == word != lower(form)
        return "the text has no capitals; leave words.keep_case out" + (
            " and add --set words.lower=tr" if turkic else ""
        )
    if word != lower(word, language):
        return (
            "the text has capitals, and the lexicon was lower-cased; add --set words.keep_case=true, or lower-case "
            "the text with `llrnn text --lower`"
        )
    if language is None and (DOT in form or "ı" in word):
        return "the text was lower-cased by Turkish rules, the lexicon was not; add --set words.lower=tr (or az)"
    if language is not None and DOT in word:
        return (
            f"the lexicon was lower-cased by words.lower {options.lower}, the text by other rules; lower-case the "
            "text by the same rules, or leave the option out"
        )
    return None
