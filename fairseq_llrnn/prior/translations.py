"""The lemmas of words of either side, for translations between lemmas (translations.py).

Gives a prior its lexical translations, and says how they are combined with the background that it has.

Beside a static background, translations are mixed with it as backgrounds/lexical.py does. Beside any other,

    … plus translations     with their weight λ, which is fixed or learned
    … times translations    where a grammar says what is possible: both must allow a word

unless the background's expression names `translations` itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fairseq_llrnn.alignment.aligners import choose_aligner, translation_table
from fairseq_llrnn.alignment.source_lemmas import LemmaForms, SourceLemmas
from fairseq_llrnn.alignment.translation_table import is_word
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import WordList
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.lexicon.casing import is_lower
from fairseq_llrnn.lexicon.completion import TextWords
from fairseq_llrnn.lexicon.gather import gather, places
from fairseq_llrnn.lexicon.lemmas import Lemmas
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import READERS
from fairseq_llrnn.lexicon.table import Table
from fairseq_llrnn.prior.expression import Atom, Expression, Plus, Times, atoms, required, with_atoms
from fairseq_llrnn.prior.expression_parser import parse
from fairseq_llrnn.prior.leaves import TRANSLATIONS, kind_of, named_in
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe, TranslationOptions

OPTION = "translations.units=lemma"
SOURCE_OPTION = "translations.source_lexicon"


def check_beside(options: TranslationOptions | None, background: Expression) -> None:
    """Raise OptionError for translations that a background names and nobody gives, or whose weight changes nothing."""
    is_named = any(kind_of(atom.text)[0] == TRANSLATIONS for atom in atoms(background))
    if is_named and options is None:
        raise OptionError(
            "--background: it names `translations`, expected --lexical-translation beside it, found none; add it"
        )
    if options is not None and is_named and _mixes(background):
        for name, says in (("weight", "0.7 … plus 0.3 translations"), ("learned", "… with weights learned")):
            if (value := getattr(options, name)) != getattr(TranslationOptions, name):
                raise OptionError(
                    f"translations.{name} {value:g}: expected none beside --background {background}, which weighs the "
                    f"translations itself; leave it out, and write the weight there, as in `{says}`"
                )
    is_alone = isinstance(background, Atom) and not any(named.part.is_base for _, named in named_in(background))
    if options is not None and options.weight == 0 and not (is_named or is_alone) and _mixes(background):
        raise OptionError(
            f"translations.weight 0: expected a weight above 0 beside --background {background}, of which translations "
            "are a part; leave --lexical-translation out"
        )


def lemmas_of(options: Recipe, words: WordList, table: Table) -> list[Sequence[str]] | None:
    """The lemmas of every word (V,), guessed where no source has a word; None where translations are between words.

    Raises:
        OptionError: nothing lists lemmas.
    """
    if not options.between_lemmas:
        return None
    named = [place for name in READERS for place in places(options.words, name)]
    lemmas = Lemmas.of_table(table).check(OPTION, named)
    return [() if special else lemmas.of(word) for word, special in zip(words.symbols, words.specials, strict=True)]


def source_lemmas_of(options: Recipe, notes: Counter[str]) -> list[Sequence[str]] | None:
    """The lemmas of every source word (U,), guessed where no table has it; None where nobody asks for them.

    Args:
        notes: takes in what a user should know.

    Raises:
        OptionError: tables without lemmas. DataError: as the reader does.
    """
    if options.translations is None or not options.translations.source_lexicon:
        return None
    symbols, paths = options.translations.parallel.source_symbols, as_paths(options.translations.source_lexicon)
    asked, spelled = is_word(symbols), is_lower(symbols)  # keep_case is of the target
    lexicon = LexiconOptions(lexicon=paths, guess="off", keep_case=not spelled, normalize=options.words.normalize)
    text = TextWords(dict.fromkeys((symbol for symbol, word in zip(symbols, asked, strict=True) if word), 1))
    table = gather(lexicon, text)
    lemmas = Lemmas.of_table(table).check(SOURCE_OPTION, paths, "give tables of `llrnn lexicon`")
    notes.update(table.notes)
    return [lemmas.of(symbol) if word else () for symbol, word in zip(symbols, asked, strict=True)]


ALONE = 0.99  # λ of translations that a mixture weighs: nearly all of them is what the source says


def add_translations(
    prior: Prior, options: TranslationOptions, workers: int | None = None,
    lemmas: Sequence[Sequence[str]] | None = None, source_lemmas: Sequence[Sequence[str]] | None = None,
) -> tuple[Prior, Counter[str]]:  # fmt: skip
    """The prior with lexical translations, and what a user should know about them.

    Args:
        options: the target side of their text is in the words of the prior. workers: threads that align it.
        lemmas: of every word, where these are what is aligned. source_lemmas: of every source word, where rare ones
            fall back on these.

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
    of_source = None
    if source_lemmas is not None:
        of_source = SourceLemmas.estimate(bitext, source_lemmas, sources, lambda changed: align(changed)[0])
    # numbers from Python may be whole
    weight, power = float(options.weight), float(options.form_power)
    part = LexicalPart(table, weight, options.learned, aligner, forms, power, of_source)
    before = background_of(prior)
    if before is None:
        translated = prior.with_part(part, text.source_symbols)
    else:
        part = replace(part, weight=ALONE, learned=False) if _mixes(before) else part
        translated = prior.with_part(part, text.source_symbols)
        name = next(name for name, other in translated.by_name.items() if other is part)
        atom = Atom(TRANSLATIONS, name)
        translated = replace(translated, expression=_combined(before, atom, options))
    return replace(translated, settings={**prior.settings, "lexical_top": options.top}), notes


def background_of(prior: Prior) -> Expression | None:
    """How the background is written; None where it is static, or static with translations."""
    if prior.expression is not None:
        return prior.expression
    names = list(prior.bases)
    if not names or prior.translations is not None:
        return None
    written = str(prior.settings["background"])
    try:
        atom = parse(written)
    except OptionError:  # a path with blanks
        atom = Atom(written)
    return replace(atom, part=names[0]) if isinstance(atom, Atom) else Atom(written, names[0])


def _mixes(before: Expression) -> bool:
    """Whether it is a mixture that weighs the translations: no constraint says what is possible."""
    if any(atom.text == TRANSLATIONS for atom in atoms(before)):
        return Atom(TRANSLATIONS) not in required(before)
    return not any(named.is_constraint for each in required(before) for _, named in named_in(each))


def _combined(before: Expression, translations: Atom, options: TranslationOptions) -> Expression:
    if any(atom.text == TRANSLATIONS for atom in atoms(before)):
        return with_atoms(before, lambda atom: translations if atom.text == TRANSLATIONS else atom)
    if not _mixes(before):
        return Times((before, translations))
    weighting = "learned" if options.learned else "fixed"
    return Plus((before, translations), (1.0 - options.weight, options.weight), weighting)
