"""Lexical translations: a background of a sentence from the words of its source (backgrounds/lexical_background.py).

A static background is mixed with translations by backgrounds/lexical_background.py. Any other one becomes

    … plus translations     with their weight λ, which is fixed or learned
    … times translations    with a grammar: both must allow a word

unless the background's expression contains `translations`.

Sizes: U source words, V target words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairseq_llrnn.alignment.aligners import choose_aligner, translation_table
from fairseq_llrnn.alignment.source_lemmas import LemmaForms, SourceLemmas
from fairseq_llrnn.alignment.translation_table import LexicalTable, is_content_word, is_word
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.lexicon.casing import is_lower
from fairseq_llrnn.lexicon.lemmas import Lemmas
from fairseq_llrnn.lexicon.lexicon_table import Table
from fairseq_llrnn.lexicon.merge_sources import gather, places
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES
from fairseq_llrnn.lexicon.unknown_word_features import TextWords
from fairseq_llrnn.prior.background_terms import is_static, named_in
from fairseq_llrnn.prior.expression import Atom, Expression, Plus, Times, atoms, required, with_atoms
from fairseq_llrnn.prior.expression_parser import parse
from fairseq_llrnn.prior.named_backgrounds import register_background
from fairseq_llrnn.prior.part import BuildContext, Facts, Part, PriorView, SavedPart, register_part
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe, TranslationOptions

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.background import Background


# the arrays of a table, in the order of LexicalTable
TABLE = {"offsets": np.int64, "targets": np.int64, "probabilities": np.float32, "links": np.float32}
# the arrays of source lemmas: their heads, and a table
LEMMAS = {"source_head_of": np.int64, **{f"source_lemma_{name}": dtype for name, dtype in TABLE.items()}}
# the arrays of the forms of lemmas, in the order of LemmaForms
FORMS = {"head_of": np.int64, "form_offsets": np.int64, "forms": np.int64, "form_counts": np.float32}
LARGEST_POWER = 1.0
SHOWN = 8  # source words for each word in `llrnn show`


TRANSLATIONS = "translations"  # the name in an expression; --lexical-translation makes the part


@register_part("lexical")
@dataclass(frozen=True)
class LexicalPart(Part):
    """Translations of the prior's source words, and their weight λ."""

    table: LexicalTable  # of words, or of lemmas if there are `forms`
    weight: float  # λ, or its initial value
    learned: bool
    aligner: str
    forms: LemmaForms | None = None
    form_power: float = 0.0  # γ: forms share their lemma's probability by their counts to this power
    source_lemmas: SourceLemmas | None = None  # back-off of rare source forms

    is_base = True
    needs_source = True
    subject = "lexical translations were"

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = dict(zip(TABLE, _arrays_of(self.table), strict=True))
        if self.forms is not None:
            arrays |= zip(FORMS, _arrays_of(self.forms), strict=True)
        if self.source_lemmas is not None:
            lemma_arrays = self.source_lemmas.head_of, *_arrays_of(self.source_lemmas.table)
            arrays |= zip(LEMMAS, lemma_arrays, strict=True)
        return arrays

    def description(self) -> dict[str, Any]:
        description = {"weight": self.weight, "learned": self.learned, "aligner": self.aligner}
        if self.forms is not None:
            description["form_power"] = self.form_power
        if self.source_lemmas is not None:
            description["source_pseudo_links"] = self.source_lemmas.pseudo_links
        return description

    @property
    def identity(self) -> str:
        form_settings = "" if self.forms is None else f" {self.form_power!r}"
        lemma_settings = "" if self.source_lemmas is None else f" back-off {self.source_lemmas.pseudo_links!r}"
        return f"{self.weight!r} {self.learned}{form_settings}{lemma_settings}"

    def word(self, prior: PriorView, index: int) -> Facts:
        table = self.word_table
        entries = np.flatnonzero(table.targets == index)
        best = entries[np.argsort(-table.probabilities[entries], kind="stable")][:SHOWN]
        sources = np.searchsorted(table.offsets, best, side="right") - 1
        facts = zip(sources.tolist(), table.probabilities[best].tolist(), strict=True)
        return {"translates": [(prior.source_symbols[s], p) for s, p in facts]}

    def source_word(self, prior: PriorView, word: str, index: int | None) -> Facts:
        row = [] if index is None else self.word_table.row(index)
        return {"translations": [(prior.symbols[x], p) for x, p in row]}

    @cached_property
    def unit_table(self) -> LexicalTable:
        """t(word | s), or t(lemma | s) if there are `forms`, including the back-off to source lemmas."""
        return self.table if self.source_lemmas is None else self.source_lemmas.mixed(self.table)

    @cached_property
    def word_table(self) -> LexicalTable:
        """t(word | s), for people."""
        if self.forms is None:
            return self.unit_table
        from fairseq_llrnn.backgrounds.source_rows import shared_table

        return shared_table(self.unit_table, self.forms, self.form_power)

    @classmethod
    def read(cls, saved: SavedPart) -> LexicalPart:
        table = LexicalTable(*(saved.array(name, dtype) for name, dtype in TABLE.items()))
        weight, learned, aligner = saved.values("the lexical translations are", weight=float, learned=bool, aligner=str)
        forms, lemmas, power = None, None, 0.0
        if "form_power" in saved.description:
            [power] = saved.values("the forms of lemmas are", form_power=float)
            forms = LemmaForms(*(saved.array(name, dtype) for name, dtype in FORMS.items()))
        if "source_pseudo_links" in saved.description:
            [pseudo_links] = saved.values("the lemmas of source words are", source_pseudo_links=float)
            head_of, *lemma_arrays = (saved.array(name, dtype) for name, dtype in LEMMAS.items())
            lemmas = SourceLemmas(head_of, LexicalTable(*lemma_arrays), pseudo_links)
        part = cls(table, weight, learned, aligner, forms, power, lemmas)
        part.check(is_word(saved.prior.source_symbols), is_word(saved.prior.symbols) & saved.prior.allowed)
        return part

    def check(self, sources: np.ndarray, possible: np.ndarray) -> None:
        """Raise ValueError unless all is sound.

        Args:
            sources: (U,) bool, the source tokens that may have translations.
            possible: (V,) bool, the target words that may be one.
        """
        self.table.check(possible)
        self.table.check_links(sources)
        if self.source_lemmas is not None:
            self.source_lemmas.check(sources, possible)
        if not (0.0 <= self.weight < 1.0 and (self.weight > 0.0 or not self.learned)):
            raise ValueError(f"the lexical translations have the invalid weight {self.weight}")
        if self.forms is not None:
            self.forms.check(possible)
            for table in (self.table, *([] if self.source_lemmas is None else [self.source_lemmas.table])):
                if not (self.forms.head_of[table.targets] == table.targets).all():
                    raise ValueError("the lexical translations contain a lemma without forms")
            if not 0.0 <= self.form_power <= LARGEST_POWER:
                raise ValueError(f"the forms of lemmas have the invalid power {self.form_power}")

    def background(self, below: Background, context: BuildContext) -> Background:
        import torch

        from fairseq_llrnn.backgrounds.lexical_background import LexicalBackground
        from fairseq_llrnn.backgrounds.source_rows import FormShares

        prior = context.prior
        words = torch.from_numpy(is_word(prior.symbols))
        counted = torch.from_numpy(is_content_word(prior.source_symbols))
        shares = None if self.forms is None else FormShares(self.forms, self.form_power, context.log_weights.dtype)
        return LexicalBackground(
            context.class_of, context.num_classes, context.log_weights, self.table, words, counted, self.weight,
            self.learned, shares, self.source_lemmas,
        )  # fmt: skip

    def counts(self) -> dict[str, int]:
        sources = int((np.diff(self.table.offsets) > 0).sum())
        counts = {"source words": sources, "translations": len(self.table.targets)}
        if self.source_lemmas is not None:
            table = self.source_lemmas.table
            counts["source lemmas"] = int((np.diff(table.offsets) > 0).sum())
            counts["translations of source lemmas"] = len(table.targets)
        if self.forms is None:
            return counts
        lemmas = int((np.diff(self.forms.offsets) > 0).sum())
        return {**counts, "lemmas": lemmas, "forms of lemmas": len(self.forms.forms)}

    def lines(self, prior: PriorView) -> list[str]:
        weight = f"learned, starting at {self.weight:g}" if self.learned else f"{self.weight:g}"
        lines = [f"translations of source words, aligned by {self.aligner}", f"weight {weight}"]
        if self.source_lemmas is not None:
            lines.append(f"rare source words back off to lemmas, weighed as {self.source_lemmas.pseudo_links:g} links")
        return lines + ([] if self.forms is None else [f"of lemmas; counts of forms to the power {self.form_power:g}"])


def _arrays_of(arrays: LexicalTable | LemmaForms) -> Iterator[np.ndarray]:
    return (getattr(arrays, field.name) for field in fields(arrays))


# ---- how it is built -----------------------------------------------------------------------------------------------


register_background(TRANSLATIONS, LexicalPart, TRANSLATIONS, by_option=True)

OPTION = "translations.units=lemma"
SOURCE_OPTION = "translations.source_lexicon"


def check_translations(options: TranslationOptions | None, background: Expression) -> None:
    """Raise OptionError if a background names `translations` that are missing, or if their options have no effect."""
    is_named = any(atom.text == TRANSLATIONS for atom in atoms(background))
    if is_named and options is None:
        raise OptionError("--background: `translations` needs --lexical-translation; add it")
    if options is not None and is_named and _is_mixture(background):
        for name, example in (("weight", "0.7 … plus 0.3 translations"), ("learned", "… with weights learned")):
            if getattr(options, name) != getattr(TranslationOptions, name):
                raise OptionError(
                    f"translations.{name} has no effect, since --background {background} weighs the translations; "
                    f"leave it out, and write the weight there, as in `{example}`"
                )
    is_alone = isinstance(background, Atom) and (
        is_static(background.text) or not any(named.part.is_base for _, named in named_in(background))
    )
    if options is not None and options.weight == 0 and not (is_named or is_alone) and _is_mixture(background):
        raise OptionError(
            "translations.weight 0: expected a weight above 0, since translations are added to --background "
            f"{background}; leave --lexical-translation out"
        )


def lemmas_of(options: Recipe, words: WordList, table: Table) -> list[Sequence[str]] | None:
    """Return the lemmas of every word (V,), guessed for words in no source, or None if translations are between words.

    Raises:
        OptionError: no source contains lemmas.
    """
    if not options.between_lemmas:
        return None
    named = [place for name in SOURCES for place in places(options.words, name)]
    lemmas = Lemmas.of_table(table).check(OPTION, named)
    return [() if special else lemmas.of(word) for word, special in zip(words.symbols, words.specials, strict=True)]


def source_lemmas_of(options: Recipe, notes: Counter[str]) -> list[Sequence[str]] | None:
    """Return the lemmas of every source word (U,), guessed for words in no table, or None without tables.

    Args:
        notes: gets notes for the user.

    Raises:
        OptionError: tables without lemmas.
        DataError: as the reader does.
    """
    if options.translations is None or not options.translations.source_lexicon:
        return None
    symbols, paths = options.translations.parallel.source_symbols, as_paths(options.translations.source_lexicon)
    are_words = is_word(symbols)
    keep_case = not is_lower(symbols)  # the recipe's keep_case applies to the target
    lexicon = LexiconOptions(lexicon=paths, guess="off", keep_case=keep_case, normalize=options.words.normalize)
    text = TextWords(dict.fromkeys((symbol for symbol, word in zip(symbols, are_words, strict=True) if word), 1))
    table = gather(lexicon, text)
    lemmas = Lemmas.of_table(table).check(SOURCE_OPTION, paths, "give tables of `llrnn lexicon`")
    notes.update(table.notes)
    return [lemmas.of(symbol) if word else () for symbol, word in zip(symbols, are_words, strict=True)]


ALONE = 0.99  # λ of translations within a mixture, which has a weight for them


def add_translations(
    prior: Prior, options: TranslationOptions, workers: int | None = None,
    lemmas: Sequence[Sequence[str]] | None = None, source_lemmas: Sequence[Sequence[str]] | None = None,
) -> tuple[Prior, Counter[str]]:  # fmt: skip
    """Return the prior with lexical translations, and notes for the user with counts.

    Args:
        options: the target side of their text is in the words of the prior.
        workers: threads that align it.
        lemmas: lemmas of every word, if these are aligned.
        source_lemmas: lemmas of every source word, if rare ones back off to them.

    Raises:
        DataError: as the alignment does.
    """
    text, aligner = options.parallel, choose_aligner(options.aligner)
    possible = is_word(prior.symbols) & prior.allowed
    bitext, forms = text.bitext, None
    if lemmas is not None:
        counts = np.bincount(bitext.target.tokens, minlength=len(possible))
        forms = LemmaForms.from_lemmas(lemmas, counts, possible)
        bitext = replace(bitext, target=replace(bitext.target, tokens=forms.head_of[bitext.target.tokens]))
    sources = is_word(text.source_symbols)
    align = partial(
        translation_table, source_words=sources, target_words=possible, top=options.top, aligner=aligner,
        workers=workers,
    )  # fmt: skip
    table, notes = align(bitext)
    source_back_off = None
    if source_lemmas is not None:
        source_back_off = SourceLemmas.estimate(bitext, source_lemmas, sources, lambda changed: align(changed)[0])
    # numbers from Python may be integers
    weight, power = float(options.weight), float(options.form_power)
    part = LexicalPart(table, weight, options.learned, aligner, forms, power, source_back_off)
    before = background_of(prior)
    if before is None:
        translated = prior.with_part(part, text.source_symbols)
    else:
        part = replace(part, weight=ALONE, learned=False) if _is_mixture(before) else part
        translated = prior.with_part(part, text.source_symbols)
        name = next(name for name, other in translated.by_name.items() if other is part)
        atom = Atom(TRANSLATIONS, name)
        translated = replace(translated, expression=_combine(before, atom, options))
    return replace(translated, settings={**prior.settings, "lexical_top": options.top}), notes


def background_of(prior: Prior) -> Expression | None:
    """Return the expression of the background, or None if it is static, or static with translations."""
    if prior.expression is not None:
        return prior.expression
    names = list(prior.bases)
    if not names or prior.translations is not None:
        return None
    text = str(prior.settings["background"])
    try:
        atom = parse(text)
    except OptionError:  # a path with blanks
        atom = Atom(text)
    return replace(atom, part=names[0]) if isinstance(atom, Atom) else Atom(text, names[0])


def _is_mixture(before: Expression) -> bool:
    """Return whether the background is a mixture with a weight for translations: no constraint defines the possible
    words.
    """
    if any(atom.text == TRANSLATIONS for atom in atoms(before)):
        return Atom(TRANSLATIONS) not in required(before)
    return not any(named.is_constraint for each in required(before) for _, named in named_in(each))


def _combine(before: Expression, translations: Atom, options: TranslationOptions) -> Expression:
    if any(atom.text == TRANSLATIONS for atom in atoms(before)):
        return with_atoms(before, lambda atom: translations if atom.text == TRANSLATIONS else atom)
    if not _is_mixture(before):
        return Times((before, translations))
    weighting = "learned" if options.learned else "fixed"
    return Plus((before, translations), (1.0 - options.weight, options.weight), weighting)
