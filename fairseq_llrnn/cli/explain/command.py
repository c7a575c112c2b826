"""`llrnn explain`: why a trained model gave each word of a sentence, or of a translation, its probability.

A view is a module that a system, or another package, has for this command (registry.py):

    def add_arguments(parser): …           options, and how to read what is added to the table
    def begin(args) -> view | None         None: it has nothing to do; OptionError, before the model is loaded

What it begins is given the model, `view.opened(loaded)`, then each sentence with its explanations, `view.add(words,
explained)`, and `view.end()` is last.
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
from fairseq_llrnn.cli.explain.text import LEGEND, Source, as_json, as_table, totals
from fairseq_llrnn.cli.model_options import add_places, need_fairseq, places_in
from fairseq_llrnn.cli.places import stdin_lines
from fairseq_llrnn.cli.tables import labelled, note, printable
from fairseq_llrnn.errors import OptionError, check_least

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.scoring.explainer import Explainer

NAME = "explain"
HELP = "score sentences or translations with a model: what it predicted at every word, and by which features"
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
    asked = parser.add_argument_group("what is explained")
    asked.add_argument(
        "sentences", nargs="*", metavar="SENTENCE",
        help="tokenised as the training text, words separated by spaces; `-` reads sentences from stdin, one a line, "
        "also empty ones",
    )  # fmt: skip
    asked.add_argument(
        "--source", metavar="SENTENCE",
        help="what a translation model translates; each SENTENCE is explained as a translation of it (default: the "
        "model's own best one)",
    )  # fmt: skip
    results = parser.add_argument_group("results")
    results.add_argument("--top", type=int, default=5, metavar="N", help="predictions and features shown (default: 5)")
    results.add_argument("--json", action="store_true", help="print one JSON object a line, one line a sentence")
    parser.add_argument_group(
        "how to read the table",
        "log p/b is what the network adds to the background b: the weights of the word's features (`its features`) and "
        "-log Z (`normaliser`, the same for every word) sum to it. `expected`: how likely the next word has a feature, "
        "by the background → by the model, where they differ most. `strongest`: the largest weights of all features. "
        "Background:Power, among `its features`, is what a learned temperature adds.",
    )
    parser.add_argument_group(
        "how to read it for translations",
        "`attends to`: the source words that the model looked at before it chose, and their weights (a Transformer's "
        "last layer, its heads averaged). `evidence`: the source words s that have this word x among their "
        "translations, with t(x | s), and what the word's background is without the source → with it. `slots`: the "
        "strings that a source with evidence offers, in the dictionary or not: the place and the kind of each, and its "
        "probability by the background → by the model (of translations, the --top most probable); `slot`: the one that "
        "the word is. The state of the encoder at a "
        "slot's place counts among its features, as Evidence:Place. `le #4` is the fourth source word, where `le` "
        "comes more than once; `xyz (<unk>)` one that the dictionary lacks.",
    )
    for view in registry.load_all("explain"):
        view.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    check_least("--top", args.top, 1)
    views = [view for module in registry.load_all("explain") if (view := module.begin(args)) is not None]
    if args.source == "-":
        raise OptionError("--source -: expected a sentence, found the sign for stdin; give the sentence in quotes")
    if args.source is not None:
        _check_sentence(args.source, "--source: expected a sentence, found an empty one; give the words to translate")
    for sentence in args.sentences:
        _check_sentence(sentence, "expected a sentence, found an empty one; give words separated by spaces")
    _note_no_sentences(args.sentences, args.source)
    need_fairseq()
    from fairseq_llrnn.plugin.scoring.explainer import load_explainer

    loaded = load_explainer(args.path, places_in(args))
    for view in views:
        view.opened(loaded)
    source = _source(args, loaded)
    offered = "" if source is None or not loaded.task.prior.has_source_strings else ", nor offered by the source,"
    number, tokens, total = 0, 0, 0.0
    for words, header in _targets(args, loaded, source):
        read_from = source.words if source else None
        words = loaded.retokenize(words, read_from)
        explained = loaded.explain(words, args.top, read_from)
        for view in views:
            view.add(words, explained)
        symbols = loaded.task.target_dictionary.symbols
        _note_unknown(words, [e.token for e in explained], symbols, f"dictionary{offered} and is scored as")
        if len(explained) <= len(words):
            note(
                f"word {len(explained)}, {explained[-1].token!r}, is forbidden where it stands, and nothing can follow "
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
        raise OptionError("expected a sentence, found none on stdin; give one sentence a line")
    if number > 1 and not args.json:
        print(f"\nall {number:,} sentences: {totals(tokens, total, number)}")
    if not args.json:
        print(f"\n{LEGEND}")
    for view in views:
        view.end()
    return 0


def _source(args: argparse.Namespace, loaded: "Explainer") -> Source | None:
    """What --source says; None for a language model. Raises OptionError where the model wants it the other way."""
    from fairseq_llrnn.plugin.scoring.explainer import TranslationExplainer

    if not isinstance(loaded, TranslationExplainer):
        if args.source is not None:
            raise OptionError(
                f"--source: expected a translation model, found a language model in {args.path}; leave --source out"
            )
        if not args.sentences:
            raise OptionError("expected a sentence, found none; give its words, or `-` for sentences on stdin")
        return None
    if args.source is None:
        raise OptionError(
            f"{args.path} is a translation model: expected --source SENTENCE, found none; give what it translates"
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
    """The words of every sentence; and a header where the model chose them itself."""
    from fairseq_llrnn.plugin.scoring.explainer import BEAM, TranslationExplainer

    if source is None or args.sentences or not isinstance(loaded, TranslationExplainer):
        for argument in args.sentences:
            yield from ((sentence.split(), None) for sentence in (stdin_lines() if argument == "-" else [argument]))
    else:
        words = loaded.translate(source.words)
        label = f"translation (beam {BEAM}):"
        yield words, labelled(label, map(printable, words), indent=0, label_width=len(label), gap=" ")


def _check_sentence(text: str, if_empty: str) -> None:
    if not text.strip():
        raise OptionError(if_empty)
    if any("\ud800" <= c <= "\udfff" for c in text):  # how Python hands on bytes that are not UTF-8
        raise OptionError(f"sentence {text!r}: expected UTF-8, found other bytes; convert it to UTF-8")


def _note_no_sentences(arguments: Sequence[str], source: str | None) -> None:
    """Say what was likely meant by names of files and folders, and by words without quotes around them."""
    for argument in (*arguments, source or ""):
        if argument in ("-", ".", "..") or not os.path.exists(argument):  # a full stop is a word
            continue
        if os.path.isdir(argument):
            what = "a sentence, though it is a folder; --data and --prior name folders"
        elif argument == source:
            what = "the words to translate, though it is a file; give its lines one by one, in quotes"
        else:
            what = f"a sentence; for the lines of that file give - < {shlex.quote(argument)}"
        note(f"{argument!r} is explained as {what}")
        return
    if len(arguments) > 1 and not any(map(str.isspace, "".join(arguments))):
        note(f"{len(arguments):,} sentences of one word each; put quotes around the words of a sentence")


def _note_unknown(
    words: Sequence[str], tokens: Sequence[str], symbols: Sequence[str], how: str,
    strings: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Say which words the dictionary lacks, once each, and what may have been meant, or which part knows it."""
    unknown = [w for w, token in zip(words, tokens, strict=False) if token == UNKNOWN and w != UNKNOWN]
    vocabulary: set[str] = set(symbols) if unknown else set()
    for word in dict.fromkeys(unknown):
        part = (strings or {}).get(word)
        hint = _suggestion(word, symbols, vocabulary) if part is None else f"; the prior's {part} uses it"
        note(f"{word!r} is not in the {how} {UNKNOWN}{hint}")


def _suggestion(word: str, symbols: Sequence[str], vocabulary: Collection[str]) -> str:
    near = [word.lower()] if word.lower() in vocabulary else difflib.get_close_matches(word.lower(), symbols, n=1)
    return f"; did you mean {near[0]!r}?" if near and near[0] != word else ""  # a symbol such as </s> is in it
