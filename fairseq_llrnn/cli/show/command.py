"""`llrnn show`: show a prior as a whole, or single words of it, and further views.

A view is a module of a system, or of another package, for this command (registry.py):

    OPTION = "--tree FILE"                 the option that selects it
    FURTHER = ("picture",)                 options that need it
    EXAMPLES = ("llrnn show --tree …",)
    def add_arguments(parser): …           add that option and the further ones
    def run(args) -> int: …                called if the option is given

`PriorView` computes the facts about a prior and its words.

Sizes: V words, S signatures.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from fairseq_llrnn import registry
from fairseq_llrnn.cli.show.shown_text import find, find_word, source_word_text, summary_text, word_text
from fairseq_llrnn.errors import OptionError, check_unused_options
from fairseq_llrnn.features.dictionary import EOS
from fairseq_llrnn.features.feature_table import Signatures
from fairseq_llrnn.lexicon.features import feature_group
from fairseq_llrnn.prior.part import Facts
from fairseq_llrnn.prior.parts.guesses import GuessesPart
from fairseq_llrnn.prior.prior import Prior

NAME = "show"
HELP = "show a prior, or words of it: features, signatures and background"
VIEWS = registry.load_all("show")
EXAMPLES = (
    "llrnn show data-bin/prior",
    "llrnn show data-bin/prior le la --json",
    *(example for view in VIEWS for example in view.EXAMPLES),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    selection = parser.add_argument_group("prior and words")
    selection.add_argument("folder", nargs="?", metavar="PRIOR", help="folder of `llrnn prior`")
    selection.add_argument("words", nargs="*", metavar="WORD", help="words to show (default: a summary of the prior)")
    selection.add_argument(
        "--source", action="append", default=[], metavar="WORD",
        help="word of the source language: show its translations, best first (in a prior of --lexical-translation), "
        "and what is copied for it (--evidence)",
    )  # fmt: skip
    for view in VIEWS:
        view.add_arguments(parser)
    results = parser.add_argument_group("results")
    results.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    views = {view.OPTION.split()[0]: view for view in VIEWS}
    chosen = [option for option in views if getattr(args, option[2:].replace("-", "_")) not in (None, [])]
    if len(chosen) > 1:
        raise OptionError(f"{chosen[0]} and {chosen[1]} exclude each other; use one at a time")
    if chosen:
        status: int = views[chosen[0]].run(args)
        return status
    for view in VIEWS:
        further = {option: getattr(args, option) for option in view.FURTHER}
        check_unused_options(further, f"it needs {view.OPTION}; add that, or remove this option")
    if args.folder is None:
        others = "".join(f", or {view.OPTION}" for view in VIEWS)
        raise OptionError(f"expected PRIOR, the folder of a prior{others}, found none")
    view_of_prior = PriorView(Prior.load(args.folder))
    if args.words or args.source:
        # look up all words before the first is printed, so that an error follows no half output
        shown = [view_of_prior.word(find_word(view_of_prior.prior, word, args.folder)) for word in args.words]
        translated = [view_of_prior.source_word(word, args.folder) for word in args.source]
        result: dict[str, Any] = {"prior": args.folder, "words": shown}
        if translated:
            result["translations"] = translated
        text = "\n\n".join([*(word_text(word) for word in shown), *(source_word_text(word) for word in translated)])
    else:
        result = {"prior": args.folder, **view_of_prior.summary()}
        text = summary_text(result)
    print(json.dumps(result, ensure_ascii=False) if args.json else text)
    return 0


LARGEST_SHOWN = 8
MEMBERS_SHOWN = 8
FIRST_SHOWN = 8
SOME_WORDS, LONGEST_EXAMPLE = 4, 12  # fewest and most words of the example, if the background allows it


class PriorView:
    """A prior and what is computed once for all words. Sizes: V words, S signatures."""

    def __init__(self, prior: Prior) -> None:
        self.prior = prior
        weights = np.exp(prior.log_weights - prior.log_weights.max())
        self.weights = weights / weights.sum()  # (V,) b(x)
        self.class_mass = np.bincount(prior.output.class_of, self.weights, prior.output.num_classes)  # (S,) B(σ)

    def source_word(self, word: str, folder: str) -> dict[str, Any]:
        """Return the facts about a source word. If the prior has evidence, the word may be outside the dictionary.

        Raises OptionError if the prior has no source, or lacks the word and has no evidence.
        """
        prior = self.prior
        if not any(part.needs_source for part in prior.parts):
            raise OptionError(
                f"--source {word} needs a prior with translations or copying, {folder} has neither; build it with "
                "--lexical-translation or --evidence"
            )
        index = None
        if word in prior.source_symbols or not prior.has_source_strings:
            index = find(word, prior.source_symbols, f"{folder}: expected a word of its source dictionary")
            word = prior.source_symbols[index]
        return {"source": word, "parts": _facts(part.source_word(prior, word, index) for part in prior.parts)}

    def members(self, signature: int) -> list[dict[str, Any]]:
        """Return the most probable words of an output signature, and their probabilities within it (None if it has mass
        0).
        """
        members = self.prior.output.members(signature)
        best = members[np.argsort(-self.weights[members], kind="stable")][:MEMBERS_SHOWN]
        return [{"word": self.prior.symbols[i], "share": self._share(int(i))} for i in best]

    def _share(self, word: int) -> float | None:
        mass = self.class_mass[self.prior.output.class_of[word]]
        return float(self.weights[word] / mass) if mass > 0 else None

    def word(self, i: int) -> dict[str, Any]:
        """Return the facts about word `i`."""
        prior = self.prior
        signature = int(prior.output.class_of[i])
        features = prior.output.features.row(signature)
        facts: dict[str, Any] = {
            "word": prior.symbols[i],
            "features": features,
            "guessed": [] if (guesses := prior.find(GuessesPart)) is None else guesses.guessed(i, features),
            "signature": signature,
            "signature_size": len(prior.output.members(signature)),
            "members": self.members(signature),
            "background": float(self.weights[i]),
            "signature_mass": float(self.class_mass[signature]),
            "share": self._share(i),
            "forbidden": bool(np.isneginf(prior.log_weights[i])),
            "parts": _facts(part.word(prior, i) for part in prior.parts),
        }
        if prior.input is not prior.output:
            read = int(prior.input.class_of[i])
            facts["input_features"] = prior.input.features.row(read)
            facts["input_signature"] = read
            facts["input_signature_size"] = len(prior.input.members(read))
        return facts

    def summary(self) -> dict[str, Any]:
        """Return the facts about the whole prior."""
        prior = self.prior
        sizes = np.bincount(prior.output.class_of, minlength=prior.output.num_classes)
        largest = [s for s in np.argsort(-sizes, kind="stable")[:LARGEST_SHOWN] if sizes[s] > 1]
        positive = self.weights[self.weights > 0]
        summary: dict[str, Any] = {
            "signature": prior.signature,
            "recipe": prior.recipe_text(),
            "settings": dict(prior.settings),
            "counts": prior.counts(),
            "groups": _groups(prior.output, sizes),
            "background": {
                "kind": str(prior.expression or prior.settings.get("background", "unknown")),
                "entropy": float(-(positive * np.log(positive)).sum()) + 0.0,
                "possible_words": len(positive),
                **_beginnings(prior),
            },
            "parts": [
                {"part": name, "lines": part.lines(prior), **part.description()}
                for name, part in zip(prior.names, prior.parts, strict=True)
            ],
            "words_alone_in_their_signature": int((sizes == 1).sum()),
            "largest_signatures": [
                {
                    "signature": int(s),
                    "words": int(sizes[s]),
                    "mass": float(self.class_mass[s]),
                    "features": prior.output.features.row(int(s)),
                    "members": self.members(int(s)),
                }
                for s in largest
            ],
        }
        if prior.input is not prior.output:
            input_sizes = np.bincount(prior.input.class_of, minlength=prior.input.num_classes)
            summary["input_groups"] = _groups(prior.input, input_sizes)
        return summary


def _groups(signatures: Signatures, sizes: np.ndarray) -> dict[str, dict[str, int]]:
    """Count features and words of each feature group. The group of most words is first."""
    table = signatures.features
    groups = sorted({feature_group(name) for name in table.names})
    number = {group: i for i, group in enumerate(groups)}
    group_of = np.array([number[feature_group(name)] for name in table.names], dtype=np.int64)
    row_of = np.repeat(np.arange(table.num_rows), np.diff(table.offsets))
    pairs = np.unique(np.stack([row_of, group_of[table.indices]]), axis=1)  # shape: (2, ≤ entries)
    words = np.bincount(pairs[1], weights=sizes[pairs[0]], minlength=len(groups)).astype(int)
    features = Counter(feature_group(name) for name in table.names)
    order = sorted(groups, key=lambda group: (-words[number[group]], group))
    return {group: {"features": features[group], "words": int(words[number[group]])} for group in order}


def _beginnings(prior: Prior) -> dict[str, Any]:
    """Return how sentences of the background begin, or {} if it has no context, or needs fairseq."""
    if not any(part.is_base for part in prior.parts) or any(part.needs_fairseq for part in prior.parts):
        return {}
    import torch

    with torch.no_grad():
        background, end = prior.background(has_source=False).bind(), prior.index(EOS)
        if background.is_context_independent:
            return {}
        state = background.start(1)
        shortest = int(background.steps_to_end(state)[0])
        first = background.view(state).log_weights[0].softmax(0)
        values, words = first.topk(min(FIRST_SHOWN, int((first > 0).sum())))
        best = zip(words.tolist(), values.tolist(), strict=True)
        example: list[str] = []
        for left in range(max(LONGEST_EXAMPLE + 1, shortest), 0, -1):
            limited = background.view(state, remaining=left)
            probable = limited.log_weights + torch.where(limited.log_shares.isneginf(), -torch.inf, 0.0)
            goes_on = bool((probable[0] > -torch.inf).sum() > 1)
            if left > 1 and (not example or (goes_on and len(example) < SOME_WORDS)):
                probable[0, end] = -torch.inf  # a longer sentence shows more
            token = probable.argmax(1)
            if int(token) == end or bool(probable.max() == -torch.inf):
                break
            example.append(prior.symbols[int(token)])
            state = background.advance(state, token)
        return {
            "shortest": shortest - 1,
            "start": [{"word": prior.symbols[x], "probability": p} for x, p in best],
            "example": example,
        }


def _facts(facts_of_parts: Iterable[Facts]) -> dict[str, list[Any]]:
    """Return the facts of all parts about a word as JSON values."""
    by_heading: dict[str, list[Any]] = {}
    for facts in facts_of_parts:
        for heading, items in facts.items():
            shown = [x if isinstance(x, str) else {"word": x[0], "probability": x[1]} for x in items]
            by_heading.setdefault(heading, []).extend(shown)
    return by_heading
