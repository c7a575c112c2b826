"""`llrnn dictionary`: the words of a text, and forms of them that it lacks, as a dictionary for fairseq-preprocess.

From a text alone it is, byte for byte, what `fairseq-preprocess --dict-only` writes.
"""

import argparse
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from fairseq_llrnn.cli.lexicon import counted
from fairseq_llrnn.cli.places import STDOUT, beside, check_text_place, text_output
from fairseq_llrnn.cli.prior import language
from fairseq_llrnn.cli.settings_options import add_options, settings_of
from fairseq_llrnn.cli.tables import note, say_notes
from fairseq_llrnn.errors import OptionError, check_least
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.files.text_lines import advice_on_form, in_other_form
from fairseq_llrnn.lexicon.languages.base import FrequencySource, Spelling, sources_of
from fairseq_llrnn.lexicon.languages.findings import listed_lemmas
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lemmas import Lemmas, MoreForms, more_forms
from fairseq_llrnn.lexicon.merge_sources import gather, places
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.table import Row
from fairseq_llrnn.lexicon.unknown_word_features import TextWords

NAME = "dictionary"
HELP = "make a dictionary of a text's words, and of forms of them that the text lacks"
EXAMPLES = (
    "llrnn dictionary --text train.txt --out dict.txt",
    "llrnn dictionary --text train.fr --lexicon lexicon.tsv --out dict.fr.txt",
    "llrnn dictionary --text train.fr --lexicon lexicon.tsv --most 50000 --out dict.fr.txt",
)

PADDED = 8  # fairseq's dictionaries have so many entries, or a multiple, with the special ones
# of LexiconOptions, where forms come from that the text lacks, and how the text spells them
FILES = ("conllu", "lexicon", "unimorph", "hunspell")
SOURCES = (*FILES, "language", "keep_case", "lower", "normalize")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = parser.add_argument_group("the text")
    text.add_argument(
        "--text", nargs="+", required=True, metavar="FILE",
        help="tokenised texts, those of the training, and of others whose words are to be known (`-`: stdin)",
    )  # fmt: skip
    text.add_argument(
        "--min-count", type=int, metavar="N", help="leave out words that the text shows less often (default: 1)"
    )
    text.add_argument(
        "--num-words", type=int, metavar="N", help="keep the N most frequent words of the text (default: all)"
    )
    add_options(parser, LexiconOptions, SOURCES)
    result = parser.add_argument_group("the dictionary")
    result.add_argument(
        "--most", type=int, metavar="N",
        help="forms that the text lacks: the N most frequent ones (where no frequencies are known, the first ones of "
        "the alphabet; default: all). Where a package of --language lists frequencies (wordfreq), forms that it lacks "
        "are left out, and words of the package without a listed lemma get one by their ending",
    )  # fmt: skip
    result.add_argument(
        "--out", required=True, metavar="FILE",
        help="where it goes (`-`: stdout); fairseq-preprocess reads it as --srcdict or --tgtdict",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if language.is_list(args.language):
        return 0
    check_least("--min-count", args.min_count, 1, "times")
    check_least("--num-words", args.num_words, 1, "words")
    check_least("--most", args.most, 0, "forms")
    options = replace(settings_of(args, LexiconOptions), guess="off", language=None)  # of packages, only their lists
    files = [place for kind in FILES for place in places(options, kind)]
    check_text_place(args.out, [*args.text, *files])
    code = None if args.language is None else language_code(args.language)
    spelling = options.spelling
    shown = counted(args.text)
    ranked = sorted(shown, key=lambda word: (-shown[word], word))[: args.num_words]
    kept = [word for word in ranked if shown[word] >= (args.min_count or 1)]
    if not kept:
        raise OptionError(
            f"--min-count {args.min_count}: expected words that the text shows so often, found {ranked[0]!r} "
            f"{shown[ranked[0]]:,} times at most; lower it"
        )
    counts = {"words of the text": len(shown)}
    if len(kept) < len(shown):
        tokens = sum(shown[word] for word in kept) / shown.total()
        counts[f"… kept: {tokens:.1%} of its tokens"] = len(kept)
    added, missing = list(_padding(kept)), MoreForms((), ())
    if files or code is not None:
        table = gather(options, TextWords(shown))
        for source in [] if code is None else sources_of(code):
            for form, lemma in {} if source.missing(str(code)) else listed_lemmas(source, str(code), spelling):
                table.add(Row(form, lemma, source=f"{source.name}:{code}"))
        lemmas = Lemmas.of_table(table).check("llrnn dictionary", files)
        say_notes(table.notes)
        frequencies = None if code is None else _frequencies(code, spelling, lemmas.listed)
        if otherwise := in_other_form(shown, lemmas.listed):
            word = min(otherwise)
            note(
                f"{len(otherwise):,} words of the text that the sources have in another Unicode form only, such as "
                f"{word!r}: {advice_on_form(word, options.normalize, '--normalize ')}"
            )
        missing = more_forms(shown, lemmas, frequencies)
        added = missing.all(args.most, frequencies)
        listed = len(set(missing.listed) & set(added))
        counts["forms that it lacks"] = len(added)
        counts["… listed with their lemmas"] = listed
        counts["… with a lemma by their ending"] = len(added) - listed
    with text_output(args.out) as file:
        file.writelines(f"{word} {shown[word]}\n" for word in kept)
        file.writelines(f"{word} 0\n" for word in added)
    for name, count in counts.items():
        print(f"{name:<30}  {count:>10,}", file=beside(args.out))
    if args.out != STDOUT:
        print(f"dictionary written to {args.out}")
    if missing.unheard:
        note(f"{missing.unheard:,} listed forms are left out: no list of frequencies has them")
    if missing.signs:
        note(f"{len(missing.signs):,} listed forms are left out: they are no words of letters ({missing.signs[0]!r})")
    return 0


def _padding(words: Sequence[str]) -> Iterator[str]:
    """Entries that fill a dictionary up to a multiple of PADDED, as fairseq does; no word of a text is meant."""
    names = (name for i in itertools.count() if (name := f"madeupword{i:04d}") not in words)
    return itertools.islice(names, -(len(SPECIALS) + len(words)) % PADDED)


def _frequencies(code: str, spelling: Spelling, forms: Collection[str]) -> Mapping[str, float] | None:
    """Frequencies of words in other texts; None where no installed package has any.

    Args:
        forms: those with listed lemmas. One that the package spells in another way, in lower case mostly, stands in the
            place of that spelling.
    """
    for source in sources_of(code):
        if isinstance(source, FrequencySource) and not source.missing(code):
            spelled: dict[str, float] = {}
            for word, frequency in source.all_frequencies(code).items():
                form = spelling.of_text(word)
                spelled[form] = max(frequency, spelled.get(form, 0.0))
            theirs = {form: spelling.of_text(source.spelled(form, code)) for form in forms if form not in spelled}
            ours = {form: spelled[word] for form, word in theirs.items() if word in spelled}
            replaced = {theirs[form] for form in ours}.difference(forms)
            return {word: frequency for word, frequency in spelled.items() if word not in replaced} | ours
    return None
