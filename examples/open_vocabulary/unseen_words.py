"""Bits per unseen word, and how often a compound is among the ten most probable unknown strings.

    python examples/open_vocabulary/unseen_words.py --train train.txt --test test.txt --models MODEL … \\
        [--hunspell FILE.dic --list LIST]

MODEL is a checkpoint of `llrnn compare` (models/lexicon-…/…/model/checkpoint_best.pt), and the texts are those of
`llrnn text`. Words without letters are left out.

`--hunspell` adds compounds (extra `hunspell`): words that hunspell accepts, and that are no stem with affixes
(affix_grammar.py). So they need a second stem. `--list` counts those that a word list lacks. Each compound has a rank
by P(w | K, <unk>) among all strings outside the model's dictionary, and among those that begin with the first half of
its letters (string_ranks.py).
"""

import argparse
import logging
import math
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from hunspell_dictionaries import acceptance
from string_ranks import Ranks

from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.evaluation.texts import NATS
from fairseq_llrnn.files.text_lines import is_letter
from fairseq_llrnn.lexicon.languages.language_source import Spelling
from fairseq_llrnn.lexicon.readers.hunspell import iter_hunspell
from fairseq_llrnn.lexicon.readers.word_counts import read_word_counts
from fairseq_llrnn.open_vocabulary.affix_grammar import read_grammar
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.plugin.scoring.text_bits import TextScorer, load_text_scorer

BEST = 10
MAX_TOKENS = 2048


class Scored(NamedTuple):
    """An unseen word."""

    word: str
    bits: float
    log_classes: np.ndarray  # log r_o, (O,)


def compound_test(dictionary: Path) -> Callable[[str], bool]:
    """Return the function that returns whether a word needs a second stem."""
    accepts, grammar = acceptance(dictionary), read_grammar(dictionary, Spelling(False))

    def is_compound(word: str) -> bool:
        variants = {word, word.lower(), word.capitalize(), word[:1].lower() + word[1:]}
        return accepts(word) and not any(map(grammar.of_text, variants))

    return is_compound


@torch.inference_mode()
def unseen_words(scorer: TextScorer, table: OpenTable, seen: set[str], lines: Sequence[str]) -> Iterator[Scored]:
    """Yield the words with letters that are not in `seen`."""
    decoder = scorer.model.decoder
    for words in map(str.split, lines):
        places = [i for i, word in enumerate(words) if word not in seen and any(map(is_letter, word))]
        if not places:
            continue
        ids = torch.tensor([[scorer.eos, *map(table.words.index, words)]])
        batch = decoder(ids[:, :-1])[1]["batch"]
        log_probs = decoder.head.target_log_probs(batch, ids[:, 1:])[0].double()
        log_classes = batch.open_scores[0].double().log_softmax(-1).numpy()
        for i in places:
            yield Scored(words[i], -float(log_probs[i]) / NATS["bits"], log_classes[i])


def mean_bits(words: Sequence[Scored]) -> float:
    """Return the mean bits of words."""
    return float(np.mean([word.bits for word in words])) if words else 0.0


def row(table: OpenTable, words: Sequence[Scored], dictionary: Path, listed: Container[str]) -> dict[str, float]:
    """Return the figures of a model for compounds. listed: small words."""
    is_compound = compound_test(dictionary)
    compounds = [word for word in words if is_compound(word.word)]
    unlisted = [word for word in compounds if word.word.lower() not in listed]
    figures = {"compounds": len(compounds), "bits per compound": mean_bits(compounds)}
    figures |= {"compounds outside the list": len(unlisted), "… bits per compound": mean_bits(unlisted)}
    has_lexicon = table.vocabulary.strings.lexicon is not None
    forms = {form for _, forms in iter_hunspell(dictionary) for form in forms} if has_lexicon else ()
    ranks = Ranks(table.vocabulary, table.words.word_index, forms)
    for name, part in (("no letter", 0.0), ("its first half", 0.5)):
        found = [ranks.rank(word, math.ceil(part * len(word)), classes, BEST) for word, _, classes in compounds]
        share = sum(rank is not None and rank <= BEST for rank in found) / max(1, len(compounds))
        figures |= {f"ten best after {name}, %": 100.0 * share, f"… stopped after {name}": found.count(None)}
    return figures


@one_line_errors("unseen_words.py")
def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--train", type=Path, required=True, help="training text")
    parser.add_argument("--test", type=Path, required=True, help="test text")
    parser.add_argument("--models", required=True, nargs="+", metavar="MODEL", help="checkpoints")
    parser.add_argument("--hunspell", type=Path, metavar="FILE.dic", help="dictionary that accepts compounds")
    parser.add_argument("--list", metavar="FILE", help="with --hunspell: word list, as for --spelling-lexicon")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    seen = set(args.train.read_text(encoding="utf-8").split())
    lines = args.test.read_text(encoding="utf-8").splitlines()
    listed = read_word_counts(args.list, Spelling(True), "--list") if args.list else {}
    for path in args.models:
        scorer = load_text_scorer(path, MAX_TOKENS)
        if scorer.strings is None:
            raise DataError(f"{path}: expected a model with an open vocabulary, found another; choose its checkpoint")
        table = scorer.strings.table
        words = [*unseen_words(scorer, table, seen, lines)]
        figures = {"words": len(words), "bits per word": mean_bits(words)}
        if args.hunspell is not None:
            figures |= row(table, words, args.hunspell, listed)
        print(path)
        for name, value in figures.items():
            print(f"{name:<32}  {value:>9,.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
