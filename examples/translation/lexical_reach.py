#!/usr/bin/env python3
"""Count the unseen words of a reference that lexical translations reach, and the reasons for the others.

    python examples/translation/lexical_reach.py --prior data/prior --source val.en --reference val.cs --train train.cs
        --train-source train.en

For the reference's words that the training text lacks, the table has: how many are in the dictionary; for how many of
these some word of the source sentence has t(u | s) of at least 0.01, 0.1, 0.3, with u the word, or its lemma if
translations are between lemmas; and for how many no source word has any, by the first reason that holds:

    the lemma is in no table        no source word at all translates into it
    of a source word unknown        a source word that is not in training and not in the table
    no link                         all source words are in the table, and none translates into it

If translations are slots (`--evidence translations`): how many words are a slot of their sentence. The table also has
the costs: translations per source token, and different ones per sentence. Texts are in the words of the prior's
dictionaries. No model is needed.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from translated_texts import Pairs, read_pairs

from fairseq_llrnn.alignment.source_lemmas import LemmaForms
from fairseq_llrnn.errors import OptionError, one_line_errors
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.output.context_classes import strings_in
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

LEAST = (0.01, 0.1, 0.3)
REASONS = ("… the lemma is in no table", "… of a source word unknown", "… no link")
SLOT = "… a slot of the sentence"


def translations_of(prior: Prior) -> LexicalPart:
    """Return the translations of a prior. Raises OptionError if it has none."""
    lexical = prior.find(LexicalPart)
    if lexical is None:
        raise OptionError("--prior: expected a prior with lexical translations, found none; see --lexical-translation")
    return lexical


def units_of(forms: LemmaForms | None, num_words: int) -> list[set[int]]:
    """Return the units of each word (V,): itself, or the heads of its lemmas."""
    if forms is None:
        return [{word} for word in range(num_words)]
    found: list[set[int]] = [set() for _ in range(num_words)]
    heads = np.repeat(np.arange(num_words), np.diff(forms.offsets))
    for head, form in zip(heads.tolist(), forms.forms.tolist(), strict=True):
        found[form].add(head)
    return found


def slots_of(prior: Prior, sources: Sequence[Sequence[int]]) -> list[set[int]] | None:
    """Return the slots of each sentence, or None if translations are no slots."""
    evidence = prior.find(EvidencePart)
    if evidence is None or "translations" not in evidence.rules.kinds:
        return None
    background, found = prior.background(), []
    for source in sources:
        layer = strings_in(background.bind(torch.tensor([source], dtype=torch.long)))
        found.append(set() if layer is None else set(layer.source.words(torch.tensor(0)).tolist()))
    return found


def reach(prior: Prior, pairs: Pairs, shown: set[str], shown_in_source: set[str]) -> str:
    """Return a table with a row for each count. Raises OptionError for a prior without translations."""
    lexical = translations_of(prior)
    table = lexical.unit_table
    sources = {word: i for i, word in enumerate(prior.source_symbols)}
    targets = {word: i for i, word in enumerate(prior.symbols)}
    units, in_table = units_of(lexical.forms, len(prior.symbols)), set(table.targets.tolist())
    counts: Counter[str] = Counter()
    offered, of_sentences = 0, 0
    numbers = [[sources.get(word, sources[UNK]) for word in source] for source, _ in pairs]
    slots = slots_of(prior, numbers)
    for sentence, (source, reference) in enumerate(pairs):
        ids = numbers[sentence]
        rows = [dict(table.row(i)) for i in ids]
        offered += sum(map(len, rows))
        of_sentences += len({unit for row in rows for unit in row})
        unknown = any(word not in shown_in_source and not row for word, row in zip(source, rows, strict=True))
        for word in reference:
            if word in shown:
                continue
            counts["lacking"] += 1
            if word not in targets:
                continue
            own = units[targets[word]]
            best = max((row[unit] for row in rows for unit in own if unit in row), default=0.0)
            counts["known"] += 1
            counts.update(f"{least:g}" for least in LEAST if best >= least)
            counts[SLOT] += slots is not None and targets[word] in slots[sentence]
            if best == 0.0:
                counts["none"] += 1
                counts[REASONS[0 if own.isdisjoint(in_table) else 1 if unknown else 2]] += 1
    lines = [("words of the reference that training lacks", counts["lacking"]), ("in the dictionary", counts["known"])]
    lines += [(f"… t of some source word at least {least:g}", counts[f"{least:g}"]) for least in LEAST]
    lines += [] if slots is None else [(SLOT, counts[SLOT])]
    lines += [("t of all source words 0", counts["none"]), *((reason, counts[reason]) for reason in REASONS)]
    tokens = max(1, sum(len(source) for source, _ in pairs))
    shares = [
        ("translations of a source token", offered / tokens),
        ("different ones of a sentence", of_sentences / len(pairs)),
    ]
    return "\n".join(
        [f"{name:<44} {number:>7,}" for name, number in lines] + [f"{name:<44} {mean:>7.1f}" for name, mean in shares]
    )


def _words(path: str) -> set[str]:
    return {word for _, line in iter_lines(path) for word in line.split()}


@one_line_errors("lexical_reach")
def main() -> None:
    parser = argparse.ArgumentParser(description="How many unseen words of a reference lexical translations reach.")
    for option, what in (
        ("prior", "folder of `llrnn prior --lexical-translation`"),
        ("source", "sentences, in the words or pieces of the prior"),
        ("reference", "their translations"),
        ("train", "the target side of the training text"),
        ("train-source", "its source side"),
    ):
        parser.add_argument(f"--{option}", required=True, help=what)
    args = parser.parse_args()
    pairs = read_pairs(args.source, args.reference)
    print(reach(Prior.load(args.prior), pairs, _words(args.train), _words(args.train_source)))


if __name__ == "__main__":
    sys.exit(main())
