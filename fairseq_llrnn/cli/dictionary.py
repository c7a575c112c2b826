"""`llrnn dictionary`: the words of a text, and forms of them that it lacks, as a dictionary for fairseq-preprocess."""

import argparse
from collections.abc import Mapping
from dataclasses import replace

from fairseq_llrnn.cli.places import STDOUT, beside, check_not_read, check_text_place, text_output
from fairseq_llrnn.cli.tables import note
from fairseq_llrnn.cli.word_files import add_lower, add_normalize, add_word_files
from fairseq_llrnn.errors import DataError, OptionError, check_least
from fairseq_llrnn.features.casing import check_casing, language_of
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.features.languages import FrequencySource, Spelling, language_code, sources_of
from fairseq_llrnn.features.lemmas import Lemmas, LemmaSources
from fairseq_llrnn.features.more_forms import more_forms
from fairseq_llrnn.features.text_words import count_words
from fairseq_llrnn.files.unicode_forms import advice_on_form, known_otherwise

NAME = "dictionary"
HELP = "make a dictionary of a text's words and of forms of them that the text lacks"
EXAMPLES = (
    "llrnn dictionary --text train.fr --lexicon lexicon.tsv --out dict.fr.txt",
    "llrnn dictionary --text train.fr --lexicon lexicon.tsv --most 50000 --out dict.fr.txt",
)

KINDS = ("conllu", "lexicon", "unimorph", "hunspell")  # of files, as the options are called


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given = parser.add_argument_group("the text")
    given.add_argument("--text", nargs="+", required=True, metavar="FILE", help="tokenised text, that of the training")
    sources = parser.add_argument_group("where forms come from")
    add_word_files(sources)
    sources.add_argument(
        "--hunspell", nargs="+", default=[], metavar="FILE",
        help="dictionaries of hunspell: FILE.dic, with its affix rules beside it in FILE.aff",
    )  # fmt: skip
    sources.add_argument(
        "--language", metavar="CODE",
        help="forms that packages know of this language; where one lists frequencies of words (wordfreq), forms that "
        "it lacks are left out, and its words that nobody lists belong to the lemma that their ending says",
    )  # fmt: skip
    sources.add_argument(
        "--keep-case", action="store_true", help="the text has capitals: do not lower-case forms and lemmas"
    )
    add_lower(sources)
    add_normalize(sources, "the text is in this Unicode form; so are the words of these files then")
    result = parser.add_argument_group("the dictionary")
    result.add_argument(
        "--most", type=int, metavar="N",
        help="forms that the text lacks: the N most frequent ones (where no frequencies are known, the first ones of "
        "the alphabet; default: all)",
    )  # fmt: skip
    result.add_argument(
        "--out", required=True, metavar="FILE",
        help="where it goes (`-`: stdout); fairseq-preprocess reads it as --tgtdict",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    check_least("--most", args.most, 0, "forms")
    check_casing(args.lower, args.keep_case)
    check_text_place(args.out)
    check_not_read(args.out, [*args.text, *(path for kind in KINDS for path in getattr(args, kind))])
    code = None if args.language is None else language_code(args.language)
    sources = _sources(args, code)
    shown, _ = count_words(args.text)
    for special in SPECIALS:
        shown.pop(special, None)
    if not shown:
        raise DataError(f"{', '.join(args.text)}: expected words, found none; give a tokenised text")
    lemmas = Lemmas.read(replace(sources, words=frozenset(shown)), "llrnn dictionary")
    frequencies = None if code is None else _frequencies(code, sources)
    if otherwise := known_otherwise(shown, lemmas.listed):
        word = min(otherwise)
        note(
            f"{len(otherwise):,} words of the text that the sources have in another Unicode form only, such as "
            f"{word!r}: {advice_on_form(word, args.normalize)}"
        )
    found = more_forms(shown, lemmas, frequencies)
    forms = found.all(args.most, frequencies)
    with text_output(args.out) as file:
        file.writelines(f"{word} {shown[word]}\n" for word in sorted(shown, key=lambda w: (-shown[w], w)))
        file.writelines(f"{form} 0\n" for form in forms)
    listed = len(set(found.listed) & set(forms))
    for name, count in (
        ("words of the text", len(shown)),
        ("forms that it lacks", len(forms)),
        ("… listed with their lemmas", listed),
        ("… with a lemma by their ending", len(forms) - listed),
    ):
        print(f"{name:<30}  {count:>10,}", file=beside(args.out))
    if args.out != STDOUT:
        print(f"dictionary written to {args.out}")
    if found.unheard:
        note(f"{found.unheard:,} listed forms are left out: no list of frequencies has them")
    return 0


def _sources(args: argparse.Namespace, code: str | None) -> LemmaSources:
    files = [(kind, path) for kind in KINDS for path in getattr(args, kind)]
    if not files and code is None:
        raise OptionError(
            "llrnn dictionary: expected a source of forms, found none; give --conllu, --lexicon, --unimorph, "
            "--hunspell or --language"
        )
    return LemmaSources(files, code, not args.keep_case, language_of(args.lower), args.normalize)


def _frequencies(code: str, sources: LemmaSources) -> Mapping[str, float] | None:
    """Of the words of other texts; None where no installed package knows them."""
    for source in sources_of(code):
        if isinstance(source, FrequencySource) and not source.missing(code):
            known = source.known(code)
            spelling = Spelling(sources.lowercase, sources.rules, sources.form)
            spelled: dict[str, float] = {}
            for word, frequency in known.items():
                form = spelling.of_text(word)
                spelled[form] = max(frequency, spelled.get(form, 0.0))
            return spelled
    return None
