"""Forms that a text lacks, of the lemmas that it has: words for a dictionary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from fairseq_llrnn.lexicon.lemmas import Lemmas


@dataclass(frozen=True)
class MoreForms:
    """Forms that a text lacks, the most frequent ones elsewhere first, else in alphabetical order."""

    listed: tuple[str, ...]  # by a source of lemmas
    guessed: tuple[str, ...]  # words of a list of frequencies whose lemma is guessed
    unheard: int = 0  # forms that were left out because the list of frequencies lacks them

    def all(self, most: int | None = None, frequencies: Mapping[str, float] | None = None) -> list[str]:
        """Both, or the `most` frequent ones."""
        return _ranked((*self.listed, *self.guessed), frequencies)[:most]


def more_forms(shown: Collection[str], lemmas: Lemmas, frequencies: Mapping[str, float] | None = None) -> MoreForms:
    """Find the forms of all lemmas that the words of a text can be of.

    Args:
        shown: the words of the text. frequencies: of words in other texts, which no source of lemmas need have; a form
            that they lack is left out, and one that they have is of the lemma that its ending says.
    """
    known = frozenset(shown)
    wanted = {lemma for word in known for lemma in lemmas.of(word)}
    found = [f for f, its in lemmas.listed.items() if f not in known and _is_word(f) and not wanted.isdisjoint(its)]
    if frequencies is None:
        return MoreForms(tuple(sorted(found)), ())
    heard = [form for form in found if form in frequencies]
    guessed = [
        word
        for word in frequencies
        if word not in known and word not in lemmas.listed and _is_word(word) and not wanted.isdisjoint(lemmas.of(word))
    ]
    listed, others = (tuple(_ranked(forms, frequencies)) for forms in (heard, guessed))
    return MoreForms(listed, others, len(found) - len(heard))


def _is_word(form: str) -> bool:
    """Whether it is one word of letters: forms of several words, and signs, are none."""
    return form.replace("-", "").isalpha()


def _ranked(forms: Collection[str], frequencies: Mapping[str, float] | None) -> list[str]:
    known = frequencies or {}
    return sorted(forms, key=lambda form: (-known.get(form, 0.0), form))
