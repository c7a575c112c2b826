"""`llrnn dictionary`: write the words of a text, and further forms of them, as a dictionary for fairseq-preprocess.

From a text alone, the file is byte-identical to that of `fairseq-preprocess --dict-only`.
"""

import argparse
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from fairseq_llrnn.cli.lexicon import counted
from fairseq_llrnn.cli.places import STDOUT, check_text_place, report_stream, text_output
from fairseq_llrnn.cli.prior import language
from fairseq_llrnn.cli.settings_options import add_options, settings_of
from fairseq_llrnn.cli.tables import note, say_notes
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.files.text_lines import advice_on_form, in_other_form
from fairseq_llrnn.lexicon.languages.findings import listed_lemmas
from fairseq_llrnn.lexicon.languages.language_source import FrequencySource, Spelling, sources_of
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lemmas import Lemmas, MoreForms, more_forms
from fairseq_llrnn.lexicon.lexicon_table import Row
from fairseq_llrnn.lexicon.merge_sources import gather, places
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.unknown_word_features import TextWords

NAME = "dictionary"
HELP = "write the dictionary of a text, with further forms of its words from a lexicon"
EXAMPLES = (
    "llrnn dictionary --text train.txt --out dict.txt",
    "llrnn dictionary --text train.fr --lexicon lexicon.tsv --out dict.fr.txt",
    "llrnn dictionary --text train.fr --lexicon lexicon.tsv --most 50000 --out dict.fr.txt",
)

PADDED = 8  # the size of fairseq's dictionaries, with the special symbols, is a multiple of this
# keys of LexiconOptions: sources of further forms, and the spelling of the text
FILES = ("conllu", "lexicon", "unimorph", "hunspell")
SOURCES = (*FILES, "language", "keep_case", "lower", "normalize")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = parser.add_argument_group("the text")
    text.add_argument(
        "--text", nargs="+", required=True, metavar="FILE",
        help="tokenised texts: the training text, and other texts whose words the dictionary needs (`-`: stdin)",
    )  # fmt: skip
    text.add_argument(
        "--min-count", type=int, metavar="N", help="leave out words with fewer than N occurrences (default: 1)"
    )
    text.add_argument(
        "--num-words", type=int, metavar="N", help="keep the N most frequent words of the text (default: all)"
    )
    add_options(parser, LexiconOptions, SOURCES)
    result = parser.add_argument_group("the dictionary")
    result.add_argument(
        "--most", type=int, metavar="N",
        help="add at most N forms that the text lacks, the most frequent ones first, or in alphabetical order if there "
        "are no frequencies (default: all). If a package of --language has frequencies (wordfreq), only its words are "
        "added; a word without a listed lemma gets one by its ending",
    )  # fmt: skip
    result.add_argument(
        "--out", required=True, metavar="FILE",
        help="file to write (`-`: stdout); pass it to fairseq-preprocess as --srcdict or --tgtdict",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if language.is_list(args.language):
        return 0
    check_least("--min-count", args.min_count, 1, "times")
    check_least("--num-words", args.num_words, 1, "words")
    check_least("--most", args.most, 0, "forms")
    options = replace(settings_of(args, LexiconOptions), guess="off", language=None)  # packages: only their lists
    files = [place for kind in FILES for place in places(options, kind)]
    check_text_place(args.out, [*args.text, *files])
    code = None if args.language is None else language_code(args.language)
    spelling = options.spelling
    shown = counted(args.text)
    ranked = sorted(shown, key=lambda word: (-shown[word], word))[: args.num_words]
    frequent = [word for word in ranked if shown[word] >= (args.min_count or 1)]
    if not frequent:
        raise OptionError(
            f"--min-count {args.min_count}: no word occurs so often; the most frequent one, {ranked[0]!r}, occurs "
            f"{shown[ranked[0]]:,} times; lower --min-count"
        )
    counts = {"words of the text": len(shown)}
    if len(frequent) < len(shown):
        tokens = sum(shown[word] for word in frequent) / shown.total()
        counts[f"… kept: {tokens:.1%} of its tokens"] = len(frequent)
    added, missing = list(_padding(frequent)), MoreForms((), ())
    if files or code is not None:
        table = gather(options, TextWords(shown))
        for source in [] if code is None else sources_of(code):
            for form, lemma in {} if source.missing(str(code)) else listed_lemmas(source, str(code), spelling):
                table.add(Row(form, lemma, source=f"{source.name}:{code}"))
        lemmas = Lemmas.of_table(table).check("llrnn dictionary", files)
        say_notes(table.notes)
        frequencies = None if code is None else _frequencies(code, spelling, lemmas.listed)
        if differing := in_other_form(shown, lemmas.listed):
            word = min(differing)
            note(
                f"{len(differing):,} words of the text are in the sources in another Unicode form only, such as "
                f"{word!r}: {advice_on_form(word, options.normalize, '--normalize ')}"
            )
        missing = more_forms(shown, lemmas, frequencies)
        added = missing.all(args.most, frequencies)
        listed = len(set(missing.listed) & set(added))
        counts["forms that it lacks"] = len(added)
        counts["… listed with their lemmas"] = listed
        counts["… with a lemma by their ending"] = len(added) - listed
    with text_output(args.out) as file:
        file.writelines(f"{word} {shown[word]}\n" for word in frequent)
        file.writelines(f"{word} 0\n" for word in added)
    for name, count in counts.items():
        print(f"{name:<30}  {count:>10,}", file=report_stream(args.out))
    if args.out != STDOUT:
        print(f"dictionary written to {args.out}")
    if missing.unheard:
        note(f"{missing.unheard:,} listed forms are left out: the list of frequencies lacks them")
    if missing.signs:
        example = missing.signs[0]
        note(f"{len(missing.signs):,} listed forms are left out: they are not single words of letters ({example!r})")
    return 0


def _padding(words: Sequence[str]) -> Iterator[str]:
    """Yield the entries that fill a dictionary up to a multiple of PADDED, as fairseq does. No word of the text is
    used.
    """
    names = (name for i in itertools.count() if (name := f"madeupword{i:04d}") not in words)
    return itertools.islice(names, -(len(SPECIALS) + len(words)) % PADDED)


def _frequencies(code: str, spelling: Spelling, forms: Collection[str]) -> Mapping[str, float] | None:
    """Return the frequencies of words in other texts, or None if no installed package has any.

    Args:
        forms: forms with listed lemmas. If the package has only another spelling of a form (mostly lower case), the
            form replaces that spelling.
    """
    for source in sources_of(code):
        if isinstance(source, FrequencySource) and not source.missing(code):
            spelled: dict[str, float] = {}
            for word, frequency in source.all_frequencies(code).items():
                form = spelling.of_text(word)
                spelled[form] = max(frequency, spelled.get(form, 0.0))
            spellings = {form: spelling.of_text(source.spelled(form, code)) for form in forms if form not in spelled}
            frequent_forms = {form: spelled[word] for form, word in spellings.items() if word in spelled}
            replaced = {spellings[form] for form in frequent_forms}.difference(forms)
            return {word: frequency for word, frequency in spelled.items() if word not in replaced} | frequent_forms
    return None
