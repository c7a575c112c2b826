"""`llrnn lexicon`: write the words of files and packages with their analyses as one table."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_llrnn.cli.places import STDIN, STDOUT, check_text_place, report_stream, text_lines, text_output
from fairseq_llrnn.cli.prior import language
from fairseq_llrnn.cli.settings_options import add_options, settings_of
from fairseq_llrnn.cli.tables import note, say_notes
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS, count_words, load_dictionary
from fairseq_llrnn.files.text_lines import in_form
from fairseq_llrnn.lexicon.merge_sources import gather, places
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.lexicon.readers import SOURCES
from fairseq_llrnn.lexicon.unknown_word_features import TextWords
from fairseq_llrnn.settings import keys

NAME = "lexicon"
HELP = "merge the analyses of words from files and packages into one table, to edit and pass to --lexicon"
EXAMPLES = (
    "llrnn lexicon --conllu train.conllu --language cs --out words.tsv",
    "llrnn lexicon --lexicon words.tsv lexicon.tsv --dict data-bin/dict.txt --count-text train.txt --out both.tsv",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser, LexiconOptions, [key.name for key in keys(LexiconOptions)])
    text = parser.add_argument_group("words to write (default: all words of the files; packages add their analyses)")
    text.add_argument(
        "--dict", metavar="FILE",
        help="write only the words of this dict.txt of fairseq-preprocess and of --count-text, and forms of their "
        "lemmas. Features of words that no source has are guessed (--guess). Rows without a count in their source get "
        "that of the word",
    )  # fmt: skip
    text.add_argument(
        "--count-text", nargs="+", default=[], metavar="FILE",
        help="tokenised texts in which words are counted (`-`: stdin); without --dict, write only their words",
    )  # fmt: skip
    result = parser.add_argument_group("result")
    result.add_argument("--out", metavar="FILE", help="table to write, a TSV file, or .tsv.gz (`-`: stdout)")


def run(args: argparse.Namespace) -> int:
    if language.is_list(args.language):
        return 0
    options = settings_of(args, LexiconOptions)
    if args.out is None:
        raise OptionError("--out is missing: add --out FILE, the table to write")
    files = [place for name in SOURCES for place in places(options, name)]
    check_text_place(args.out, [*files, *args.count_text, args.dict, args.morphemes])
    if not files and options.language is None and options.morphemes is None:
        raise OptionError(
            "llrnn lexicon: expected a source of words, found none; add "
            f"{', '.join(f'--{name}' for name in SOURCES)}, --morphemes or --language"
        )
    text, counts = _text(args)
    if text is None and args.guess is not None:
        raise OptionError(f"--guess {args.guess} needs --dict or --count-text; add one of them, or remove --guess")
    table = gather(options, text, all_lemmas=True)
    if text is not None:
        table.keep_words(counts)
    with text_output(args.out) as file:
        table.write(file)
    say_notes(table.notes)
    if odd := sum(row.form != in_form(row.form, "nfc") for row in table.rows):
        note(f"{odd:,} rows have forms that are not in NFC; --normalize nfc converts them")
    forms = {row.form for row in table.rows}
    figures = {
        "rows": len(table), "forms": len(forms), "… with features": len({r.form for r in table.rows if r.features}),
        "… with a lemma": len({row.form for row in table.rows if row.lemma}),
        "… with guessed features or lemma": len({row.form for row in table.rows if row.guessed}),
    }  # fmt: skip
    if text is not None:
        figures["words of the text without a row"] = sum(word not in forms for word in counts)
    for name, count in figures.items():
        print(f"{name:<38}  {count:>10,}", file=report_stream(args.out))
    if args.out != STDOUT:
        print(f"table written to {Path(args.out)}")
    return 0


def counted(paths: Sequence[str]) -> Counter[str]:
    """Count the words of texts. `-` is stdin. Raises DataError if they have no words."""
    counts, _ = count_words([path for path in paths if path != STDIN])
    if STDIN in paths:
        counts.update(word for line in text_lines(STDIN) for word in line.split())
    for special in SPECIALS:
        counts.pop(special, None)
    if not counts:
        raise DataError(f"{', '.join(paths)}: expected words, found none; give a tokenised text")
    return counts


def _text(args: argparse.Namespace) -> tuple[TextWords | None, Mapping[str, int]]:
    """Return the words of the dictionary and the texts (None without either), and their counts."""
    counts = counted(args.count_text) if args.count_text else Counter[str]()
    if args.dict is None:
        return TextWords(counts) if args.count_text else None, counts
    words = load_dictionary(args.dict)
    shown = dict(zip(words.symbols, words.counts.tolist(), strict=True)) if not args.count_text else counts
    ordinary = {word: shown.get(word, 0) for word in words.ordinary}
    return TextWords(ordinary, [word for word in counts if word not in ordinary]), {**counts, **ordinary}
