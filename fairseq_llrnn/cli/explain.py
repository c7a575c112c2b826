"""`llrnn explain`: why a trained model gave each word of a sentence its probability."""

import argparse
import difflib
import json
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.cli.tables import cut, labelled, left, many, note, printable, probability
from fairseq_llrnn.errors import DataError, OptionError

if TYPE_CHECKING:
    from fairseq_llrnn.core.explanation import Explanation

NAME = "explain"
HELP = "score sentences with a model: what it predicted at every word, and by which features"

UNKNOWN = "<unk>"
WORD_WIDTH = 34
HEADER = f"{'word':<{WORD_WIDTH}} {'p':>9} {'nats':>7} {'rank':>8} {'background':>12} {'log p/b':>9}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument_group(
        "the table",
        "log p/b is what the network adds to the background b: the weights of the word's features (`its features`) and "
        "-log Z (`normaliser`, the same for every word) sum to it. `expected`: how likely the next word has a feature, "
        "by the background → by the model, where they differ most. `strongest`: the largest weights of all features.",
    )
    parser.add_argument("--path", required=True, metavar="FILE", help="checkpoint, e.g. checkpoint_best.pt")
    parser.add_argument("--data", metavar="DIR", help="data folder (default: the one the checkpoint was trained with)")
    parser.add_argument("--prior", metavar="DIR", help="prior (default: the one the checkpoint was trained with)")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="predictions and features to show (default: 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, one line a sentence")
    parser.add_argument(
        "sentences", nargs="+", metavar="SENTENCE",
        help="tokenised as the training text, words separated by spaces; `-` reads sentences from stdin, one a line",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    if args.top < 1:
        raise OptionError(f"--top {args.top}: expected a number of at least 1")
    _check_sentences(args.sentences)
    logging.getLogger("fairseq").setLevel(logging.WARNING)  # before it is imported: it reports while it does
    from fairseq_llrnn.plugin.load import load_language_model

    loaded = load_language_model(args.path, args.data, args.prior)
    number, tokens, total = 0, 0, 0.0
    for sentence in _sentences(args.sentences):
        words = sentence.split()
        explained = loaded.explain(words, args.top)
        _note_unknown(words, explained, loaded.task.prior.symbols)
        if args.json:
            print(json.dumps(_as_json(words, explained), ensure_ascii=False), flush=True)
        else:
            print(("\n" if number else "") + _as_table(words, explained, args.top), flush=True)
        number += 1
        tokens += len(explained)
        total -= math.fsum(e.log_prob for e in explained)
    if not number:
        raise OptionError("expected a sentence, found none on stdin; give one sentence a line")
    if number > 1 and not args.json:
        print(f"\nall {number:,} sentences: {_totals(tokens, total, number)}")
    return 0


def _check_sentences(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if not argument.strip():
            raise OptionError("expected a sentence, found an empty one; give words separated by spaces")
        if any("\ud800" <= c <= "\udfff" for c in argument):  # how Python hands on bytes that are not UTF-8
            raise OptionError(f"sentence {argument!r}: expected UTF-8, found other bytes; convert it to UTF-8")


def _sentences(arguments: Sequence[str]) -> Iterator[str]:
    """The sentences in the order given, `-` replaced by the lines of stdin that are not blank."""
    for argument in arguments:
        if argument == "-":
            yield from _stdin_lines()
        else:
            yield argument


def _stdin_lines() -> Iterator[str]:
    for number, raw in enumerate(sys.stdin.buffer, 1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"stdin, line {number}, byte {error.start + 1}: expected UTF-8, found the byte "
                f"0x{raw[error.start]:02x}; convert the text to UTF-8"
            ) from None
        if line.strip():
            yield line


def _note_unknown(words: Sequence[str], explained: Sequence["Explanation"], symbols: Sequence[str]) -> None:
    """Say which words the dictionary lacks, once each, and what may have been meant."""
    unknown = [w for w, e in zip(words, explained, strict=False) if e.token == UNKNOWN and w != UNKNOWN]
    known: set[str] = set(symbols) if unknown else set()
    for word in dict.fromkeys(unknown):
        near = [word.lower()] if word.lower() in known else difflib.get_close_matches(word.lower(), symbols, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        note(f"{word!r} is not in the dictionary and is scored as {UNKNOWN}{hint}")


def _shown(word: str | None, token: str) -> str:
    """The word in its column; `<unk>` for a word that was scored as that always stays in sight."""
    if word is None or word == token:
        return left(printable(token), WORD_WIDTH)
    mark = f" ({token})"
    return left(cut(printable(word), WORD_WIDTH - len(mark)) + mark, WORD_WIDTH)


def _totals(tokens: int, nats: float, sentences: int) -> str:
    words = tokens - sentences
    each = nats / tokens
    end = "the end of sentence" if sentences == 1 else f"{sentences:,} ends of sentence"
    return f"{many(words, 'word')} and {end}: {each:.4f} nats per word, perplexity {_exp(each)}"


def _exp(nats: float) -> str:
    return f"{math.exp(nats):,.2f}" if nats < 700 else "infinite"


def _as_table(words: Sequence[str], explained: Sequence["Explanation"], top: int) -> str:
    lines = [HEADER]
    for word, e in zip([*words, None], explained, strict=True):
        p, b = math.exp(e.log_prob), math.exp(e.log_background)
        gain = "forbidden" if b == 0.0 else f"{e.log_prob - e.log_background:+.2f}"
        lines.append(
            f"{_shown(word, e.token)} {probability(p):>9} {-e.log_prob:>7.3f} {e.rank:>8,} "
            f"{probability(b):>12} {gain:>9}"
        )
        own = [f"{value:+.2f} {printable(name)}" for name, value in e.own_features[:top]]
        rest = math.fsum(value for _, value in e.own_features[top:])
        if len(e.own_features) > top:
            own.append(f"{rest:+.2f} in {len(e.own_features) - top} more")
        lines.append(labelled("predicted", (f"{printable(w)} {probability(math.exp(v))}" for w, v in e.predictions)))
        if e.expected:
            changes = (f"{printable(n)} {probability(b)}→{probability(p)}" for n, b, p in e.expected)
            lines.append(labelled("expected", changes))
        lines.append(labelled("its features", [*own, f"{e.normaliser:+.2f} normaliser"]))
        strongest = e.strongest or e.strongest_words
        lines.append(labelled("strongest", (f"{value:+.2f} {printable(name)}" for name, value in strongest)))
    total = -math.fsum(e.log_prob for e in explained)
    return "\n".join([*lines, "", _totals(len(explained), total, 1)])


def _as_json(words: Sequence[str], explained: Sequence["Explanation"]) -> dict[str, Any]:
    """One sentence; what is infinite (a forbidden word) is null, which JSON can say."""
    total = -math.fsum(e.log_prob for e in explained)
    each = total / len(explained)
    return {
        "sentence": " ".join(words),
        "words": [
            {
                "word": e.token if word is None else word,
                "token": e.token,
                "p": math.exp(e.log_prob),
                "nats": _finite(-e.log_prob),
                "rank": e.rank,
                "background": math.exp(e.log_background),
                "predicted": [{"word": w, "p": math.exp(v)} for w, v in e.predictions],
                "expected": {name: {"background": b, "model": p} for name, b, p in e.expected},
                "features": dict(e.own_features),
                "normaliser": e.normaliser,
                "strongest": dict(e.strongest),
                "strongest_words": dict(e.strongest_words),
            }
            for word, e in zip([*words, None], explained, strict=True)
        ],
        "tokens": len(explained),
        "nats_per_word": _finite(each),
        "perplexity": math.exp(each) if each < 700 else None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
