"""`llrnn explain`: explain the probability of each word of a sentence or a translation.

A view is a module of a system, or of another package, that adds to the output (registry.py):

    def add_arguments(parser): …           add its options, and help on its part of the table
    def begin(args) -> view | None         None: nothing to do. Called before the model is loaded. May raise OptionError

The view gets the model, `view.opened(loaded)`, then each sentence with its explanations, `view.add(words, explained)`,
and at the end `view.end()`.
"""

import argparse
import difflib
import json
import math
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairseq_llrnn import registry
from fairseq_llrnn.cli.explain.explained_text import LEGEND, Source, as_json, as_table, totals
from fairseq_llrnn.cli.model_options import add_places, need_fairseq, places_in
from fairseq_llrnn.cli.places import STDIN, text_lines
from fairseq_llrnn.cli.tables import labelled, note, printable
from fairseq_llrnn.errors import OptionError, check_least

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.scoring.explainer import Explainer

NAME = "explain"
HELP = "explain a model's probability of each word of a sentence: predictions, features and background"
EXAMPLES = (
    'llrnn explain --path checkpoints/checkpoint_best.pt "le petit chat voit la table"',
    "llrnn explain --path checkpoints/checkpoint_best.pt --top 3 --json - < test.txt",
    'llrnn explain --path translator/checkpoint_best.pt --source "the little cat sees the table"',
)

UNKNOWN = "<unk>"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("the model")
    model.add_argument("--path", required=True, metavar="FILE", help="checkpoint, e.g. checkpoint_best.pt")
    add_places(model)
    sentences = parser.add_argument_group("sentences")
    sentences.add_argument(
        "sentences", nargs="*", metavar="SENTENCE",
        help="sentence in quotes, tokenised as the training text; `-` reads sentences from stdin, one per line, empty "
        "ones included",
    )  # fmt: skip
    sentences.add_argument(
        "--source", metavar="SENTENCE",
        help="source sentence of a translation model; each SENTENCE is explained as its translation (default: the "
        "model's own best translation)",
    )  # fmt: skip
    results = parser.add_argument_group("results")
    results.add_argument("--top", type=int, default=5, metavar="N", help="predictions and features shown (default: 5)")
    results.add_argument("--json", action="store_true", help="print one JSON object per sentence, each on one line")
    parser.add_argument_group(
        "how to read the table",
        "log p/b is the network's contribution to log p, next to the background b. It is the sum of the weights of the "
        "word's features (`its features`) and of -log Z (`normaliser`, the same for every word). `expected`: "
        "probability that the next word has a feature, background → model, for the largest differences. `strongest`: "
        "the largest weights of all features. Background:Power, in `its features`: contribution of a learned "
        "temperature.",
    )
    parser.add_argument_group(
        "how to read it for translations",
        "`attends to`: source words and their attention weights (last layer of a Transformer, mean of its heads). "
        "`evidence`: source words s with this word x among their translations, t(x | s), and the word's background "
        "without the source → with it. `slots`: strings that can be copied from the source or are its terms or "
        "translations, in the dictionary or not: place, kind, and probability, background → model (of translations, "
        "the --top most probable). `slot`: the slot of this word. Evidence:Place, a feature of a slot: the encoder's "
        "state at its place. `le #4`: the fourth source word, if `le` occurs more than once. `xyz (<unk>)`: a word "
        "outside the dictionary.",
    )
    for view in registry.load_all("explain"):
        view.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    check_least("--top", args.top, 1)
    views = [view for module in registry.load_all("explain") if (view := module.begin(args)) is not None]
    if args.source == "-":
        raise OptionError("--source -: expected a sentence, found the sign for stdin; write the sentence in quotes")
    if args.source is not None:
        _check_sentence(args.source, "--source: expected a sentence, found an empty one; write the words to translate")
    for sentence in args.sentences:
        _check_sentence(sentence, "expected a sentence, found an empty one; write words separated by spaces")
    _note_no_sentences(args.sentences, args.source)
    need_fairseq()
    from fairseq_llrnn.plugin.scoring.explainer import load_explainer

    loaded = load_explainer(args.path, places_in(args))
    for view in views:
        view.opened(loaded)
    source = _source(args, loaded)
    offered = "" if source is None or not loaded.task.prior.has_source_strings else " or a string of the source,"
    number, tokens, total = 0, 0, 0.0
    for words, header in _targets(args, loaded, source):
        source_words = source.words if source else None
        words = loaded.retokenize(words, source_words)
        explained = loaded.explain(words, args.top, source_words)
        for view in views:
            view.add(words, explained)
        symbols = loaded.task.target_dictionary.symbols
        _note_unknown(words, [e.token for e in explained], symbols, f"dictionary{offered} and is scored as")
        if len(explained) <= len(words):
            note(
                f"word {len(explained)}, {explained[-1].token!r}, is forbidden at this position and no word can follow "
                "it; the explanation ends there"
            )
        if args.json:
            facts = {**as_json(words, explained, source), "prior": loaded.task.prior.signature}
            if source is not None:
                facts["own_translation"] = header is not None
            print(json.dumps(facts, ensure_ascii=False), flush=True)
        else:
            table = as_table(words, explained, args.top, source)
            print(("\n" if number else "") + (f"{header}\n\n" if header else "") + table, flush=True)
        number += 1
        tokens += len(explained)
        total -= math.fsum(e.log_prob for e in explained)
    if not number:
        raise OptionError("expected a sentence, found none on stdin; write one sentence per line")
    if number > 1 and not args.json:
        print(f"\nall {number:,} sentences: {totals(tokens, total, number)}")
    if not args.json:
        print(f"\n{LEGEND}")
    for view in views:
        view.end()
    return 0


def _source(args: argparse.Namespace, loaded: "Explainer") -> Source | None:
    """Return the sentence of --source, or None for a language model. Raises OptionError if the model and --source do
    not fit.
    """
    from fairseq_llrnn.plugin.scoring.explainer import TranslationExplainer

    if not isinstance(loaded, TranslationExplainer):
        if args.source is not None:
            raise OptionError(
                f"--source needs a translation model, but {args.path} is a language model; remove --source"
            )
        if not args.sentences:
            raise OptionError("expected a sentence, found none; write it in quotes, or `-` for sentences on stdin")
        return None
    if args.source is None:
        raise OptionError(
            f"{args.path} is a translation model and needs --source SENTENCE; add the sentence to translate"
        )
    text, *cells = args.source.split("\t")
    loaded.require(cells)
    words = text.split()
    source = Source(words, loaded.input_words(words))
    symbols, strings = loaded.task.source_dictionary.symbols, loaded.strings_of(words)
    _note_unknown(words, source.tokens, symbols, "source dictionary and is read as", strings)
    return source


def _targets(
    args: argparse.Namespace, loaded: "Explainer", source: Source | None
) -> Iterator[tuple[list[str], str | None]]:
    """Yield the words of each sentence, and a header if the model chose them."""
    from fairseq_llrnn.plugin.scoring.explainer import BEAM, TranslationExplainer

    if source is None or args.sentences or not isinstance(loaded, TranslationExplainer):
        for argument in args.sentences:
            yield from ((sentence.split(), None) for sentence in (text_lines(STDIN) if argument == "-" else [argument]))
    else:
        words = loaded.translate(source.words)
        label = f"translation (beam {BEAM}):"
        yield words, labelled(label, map(printable, words), indent=0, label_width=len(label), gap=" ")


def _check_sentence(text: str, if_empty: str) -> None:
    if not text.strip():
        raise OptionError(if_empty)
    if any("\ud800" <= c <= "\udfff" for c in text):  # Python's escapes of bytes that are not UTF-8
        raise OptionError(f"sentence {text!r}: expected UTF-8, found other bytes; convert it to UTF-8")


def _note_no_sentences(arguments: Sequence[str], source: str | None) -> None:
    """Print a note on likely mistakes: names of files and folders, and words without quotes."""
    for argument in (*arguments, source or ""):
        if argument in ("-", ".", "..") or not os.path.exists(argument):  # a full stop is a word
            continue
        if os.path.isdir(argument):
            reading = "a sentence, but it is also a folder; folders belong to --data and --prior"
        elif argument == source:
            reading = "the source sentence, but it is also a file; pass its lines one by one, in quotes"
        else:
            reading = f"a sentence; to explain the lines of this file, write - < {shlex.quote(argument)}"
        note(f"{argument!r} is explained as {reading}")
        return
    if len(arguments) > 1 and not any(map(str.isspace, "".join(arguments))):
        note(f"{len(arguments):,} sentences of one word each; put quotes around each sentence")


def _note_unknown(
    words: Sequence[str], tokens: Sequence[str], symbols: Sequence[str], reading: str,
    strings: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Print a note for each word that the dictionary lacks, with a similar word, or with the part of the prior that
    uses it.
    """
    unknown = [w for w, token in zip(words, tokens, strict=False) if token == UNKNOWN and w != UNKNOWN]
    vocabulary: set[str] = set(symbols) if unknown else set()
    for word in dict.fromkeys(unknown):
        part = (strings or {}).get(word)
        hint = _suggestion(word, symbols, vocabulary) if part is None else f"; the prior's {part} uses it"
        note(f"{word!r} is not in the {reading} {UNKNOWN}{hint}")


def _suggestion(word: str, symbols: Sequence[str], vocabulary: Collection[str]) -> str:
    near = [word.lower()] if word.lower() in vocabulary else difflib.get_close_matches(word.lower(), symbols, n=1)
    return f"; did you mean {near[0]!r}?" if near and near[0] != word else ""  # equal for a symbol such as </s>
