"""Phrases that training may require: runs of nouns and adjectives in its targets, with all forms in which they agree.

Two neighbours need not belong together (*psa bílý* in *vidí psa bílý muž*). So where words inflect for case or gender,
the words of a phrase agree, and all of them change with its forms; elsewhere, its last word does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain

from fairseq_llrnn.evidence.table import LEAST_GUESS, NOUNS
from fairseq_llrnn.evidence.term_phrases import PhraseForms

MOST_PHRASES = 2000  # each takes some milliseconds, and a token for each form
LONGEST = 3  # words
CONTENT = NOUNS | {"POS:ADJ"}

Forms = Mapping[str, Mapping[str, float]]  # string -> features


def invented_phrases(
    sentences: Iterable[Sequence[str]], phrases: PhraseForms, most: int = MOST_PHRASES
) -> dict[str, Forms]:
    """The first phrases that the sentences say, each with its forms; no one is a form of another."""
    names = _names(phrases)
    if NOUNS.isdisjoint(names):
        return {}
    agree = any(name.startswith(("Case:", "Gender:")) for name in names)

    @cache
    def kinds(word: str) -> frozenset[str]:
        of = (one for lemma in phrases.analyses.lemmas_of.get(word, ()) for one in phrases.forms.analyses(lemma, word))
        names = {name for one in of for name in one}
        if not any(name.startswith("POS:") for name in names):
            guessed = phrases.analyses.features.get(word, {})
            names = {name for name, value in guessed.items() if value >= LEAST_GUESS}
        return frozenset(name for name in names if name.startswith("POS:"))

    found: dict[str, Forms] = {}
    met: set[str] = set()
    for words in sentences:
        content = [bool(kinds(word)) and kinds(word) <= CONTENT for word in words]
        for begin, end in runs(len(words)):
            run, string = words[begin:end], " ".join(words[begin:end])
            if string in met or not all(content[begin:end]) or not any(kinds(word) & NOUNS for word in run):
                continue
            met.add(string)
            if agree and not phrases.agree(run):
                continue
            forms = phrases.of(run)
            if _change([form.split() for form in forms], agree):
                met.update(forms)
                found[string] = forms
                if len(found) == most:
                    return found
    return found


def _names(phrases: PhraseForms) -> set[str]:
    """All that is known of any word."""
    forms = phrases.forms
    listed = (one for lemma in forms for form in forms.of(lemma) for one in forms.analyses(lemma, form))
    return set(chain.from_iterable(chain(phrases.analyses.features.values(), listed)))


def runs(many: int) -> list[tuple[int, int]]:
    """The beginnings and ends of all runs of two words and more in a sentence."""
    return [(begin, begin + size) for size in range(2, LONGEST + 1) for begin in range(many - size + 1)]


def _change(forms: Sequence[Sequence[str]], agree: bool) -> bool:
    if not forms:
        return False
    places = list(zip(*forms, strict=True))
    return all(len(set(place)) > 1 for place in (places if agree else places[-1:]))
