"""Marian with a log-linear head, or with its own softmax, from text to text, with a prior's token ids.

    translate.py train OUT --prior DIR --source train.en --target train.fr [--softmax]
        [--invented-terms 0.3 --term-forms FILE]
    translate.py search OUT --prior DIR --source test.en --to test.fr [--terms FILE --term-forms FILE]
    translate.py search OUT --prior DIR --source test.question --to test.form --background DIR

A model with the head has terms and grammars in its background. A softmax has them in a logits processor: the terms of
its prior, or another prior (`--background`) of the same dictionary. If the prior has no source words, they are numbered
here, in OUT/source.txt. With `--invented-terms`, this fraction of the training sentences requires some words of their
translations, so that a model with the head learns to use terms.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from marian_training import Example, add_options, fit, generated, sizes
from torch import Tensor
from transformers import MarianConfig, MarianMTModel, set_seed

from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.evidence.slots import merged_target
from fairseq_llrnn.features.dictionary import SPECIALS, UNK, OpenWords, plain
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.head.inputs import numbers
from fairseq_llrnn.huggingface import BackgroundProcessor, LogLinearForSeq2SeqLM
from fairseq_llrnn.lexicon.merge_sources import read_word_forms
from fairseq_llrnn.plugin.compat.loading import read_checkpoint
from fairseq_llrnn.prior.parts.evidence_part import evidence_table
from fairseq_llrnn.systems.terms.invented_terms import InventedGroups, InventedTerms
from fairseq_llrnn.systems.terms.phrases import phrase_forms
from fairseq_llrnn.systems.terms.terms import Terms
from fairseq_llrnn.systems.terms.tsv_file import read_terms

SOFTMAX = "softmax"  # a file in OUT, where the model has none of our heads
SOURCE = "source.txt"  # … and one with the source's words, where the prior does not know them
# Where weights of a llrnn_transformer are, and those of Marian.
PLACES = (("decoder.head.", "head."), ("decoder.body.", "model.decoder."), ("encoder.", "model.encoder."))


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def rows(tokens: Tensor, pad: int) -> list[list[int]]:
    """Return rows without padding."""
    return [row[row != pad].tolist() for row in tokens]


class Numbers:
    """Convert sentences to ids: those of a head over the prior, or for its source those of a list of words."""

    def __init__(self, head: LogLinearHead, words: Path) -> None:
        """words: a list of source words, used if the prior has no source."""
        self.head = head
        known = head.prior.source_symbols or [*SPECIALS, *read_lines(words)]
        self.source_words, self.unk = OpenWords(known), known.index(UNK)

    def source(self, lines: list[str], terms: Terms | None = None) -> list[list[int]]:
        if self.head.prior.source_symbols:
            return rows(self.head.encode_source(lines, terms), self.head.pad)
        return rows(numbers(lines, self.source_words), self.head.pad)

    def known(self, source: Tensor) -> Tensor:
        """Replace ids that an embedding table lacks: (B, L) -> (B, L)."""
        tokens = plain(source)
        return tokens.masked_fill(tokens >= self.source_words.num_words, self.unk)


def new_model(args: argparse.Namespace, prior: Prior, source: int) -> Any:
    """Create a model. source: number of source words."""
    config = MarianConfig(vocab_size=source, **sizes(args))
    model: Any = LogLinearForSeq2SeqLM.from_config(config, prior, label_smoothing=args.label_smoothing)
    return MarianMTModel(model.config.text_config) if args.softmax else model


def train(args: argparse.Namespace) -> None:
    prior, lines = Prior.load(args.prior), (read_lines(args.source), read_lines(args.target))
    args.out.mkdir(parents=True, exist_ok=True)
    if not prior.source_symbols:
        words = sorted({word for line in lines[0] for word in line.split()})
        (args.out / SOURCE).write_text("\n".join(words) + "\n", encoding="utf-8")
    numbers = Numbers(LogLinearHead(prior, 1, source_size=1), args.out / SOURCE)
    targets = rows(numbers.head.encode(lines[1]), numbers.head.pad)
    examples: Sequence[Example]
    examples = [{"input_ids": s, "labels": t} for s, t in zip(numbers.source(lines[0]), targets, strict=True)]
    set_seed(args.seed)
    model = new_model(args, prior, numbers.source_words.num_words)
    if args.weights is not None:
        model.load_state_dict(model.state_dict() | renamed(read_checkpoint(str(args.weights))["model"]))
    if args.invented_terms:
        examples = WithTerms(examples, model.head.prior, args)
    more = {"label_smoothing_factor": args.label_smoothing} if args.softmax else {}
    fit(model, examples, args.out, args, **more)
    if args.softmax:
        (args.out / SOFTMAX).touch()
    else:
        (args.out / SOFTMAX).unlink(missing_ok=True)  # of an earlier training


def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a llrnn_transformer under their names in our model, without tables of positions."""
    found = {}
    for name, value in state.items():
        own, new = next(pair for pair in PLACES if name.startswith(pair[0]))
        if "embed_positions" not in name and not name.endswith(".version"):
            found[new + name.removeprefix(own)] = value
    return found


class WithTerms(Sequence[Example]):
    """Examples of which a fraction requires words of its translation, other ones at each access."""

    def __init__(self, examples: Sequence[Example], prior: Prior, args: argparse.Namespace) -> None:
        """prior: that of the model, which counts the strings of terms."""
        self.examples, self.read = examples, Counter[int]()
        self.targets = [np.array(one["labels"]) for one in examples]
        forms = read_word_forms(args.term_forms.split(","), prior.symbols)
        groups = InventedGroups(prior, forms, len(examples), self.targets.__getitem__, args.seed)
        self.invented = InventedTerms(prior, groups, args.invented_terms, args.seed)

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, number: Any) -> Any:
        self.read[number] += 1
        source, target = np.array(self.examples[number]["input_ids"]), self.targets[number]
        made = self.invented.of(source, target, self.read[number], number)
        said = merged_target(self.invented.table, torch.from_numpy(made), torch.from_numpy(target))
        return {"input_ids": made.tolist(), "labels": said.tolist(), "text": target.tolist()}


@torch.inference_mode()
def search(args: argparse.Namespace) -> None:
    softmax, prior = (args.out / SOFTMAX).exists(), Prior.load(args.prior)
    model: Any = (MarianMTModel if softmax else LogLinearForSeq2SeqLM).from_pretrained(args.out)
    model.eval()
    numbers = Numbers(LogLinearHead(prior, 1, source_size=1) if softmax else model.head, args.out / SOURCE)
    terms = open_terms(args, numbers.head.prior) if args.term_forms else None
    other = None if args.background is None else Prior.load(args.background)
    every_word = torch.arange(len(prior.symbols))  # the model's tokens are the prior's

    def processors(source: Tensor) -> list[Any]:
        found = []
        if softmax and terms is not None:
            found.append(BackgroundProcessor(numbers.head.prior, every_word, longest=args.longest, source=source))
        if other is not None:
            found.append(BackgroundProcessor(other, every_word, longest=args.longest))
        return found

    begin, readable = time.process_time(), numbers.known if softmax else (lambda source: source)
    lines = numbers.source(read_lines(args.source), terms)
    found = dict(generated(model, lines, args.longest, args.beam, readable, processors))
    print(f"{len(lines)} sentences: {time.process_time() - begin:.0f} seconds of processor time")
    write_lines(args.to, (numbers.head.decode(found[at].unsqueeze(0))[0] for at in range(len(lines))))


def open_terms(args: argparse.Namespace, prior: Prior) -> Terms:
    forms = read_word_forms(args.term_forms.split(","), prior.symbols)
    entries = () if args.terms is None else read_terms(args.terms)
    return Terms(evidence_table(prior), forms, entries, must=True, phrases=phrase_forms(prior, forms))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Marian with a log-linear head, or with a softmax.")
    stages = parser.add_subparsers(dest="stage", required=True)
    for name, run in (("train", train), ("search", search)):
        made = stages.add_parser(name)
        made.set_defaults(run=run)
        made.add_argument("out", type=Path, help="the model's folder")
        made.add_argument("--prior", type=Path, required=True)
        made.add_argument("--source", type=Path, required=True, help="tokenised text, one sentence per line")
        made.add_argument("--term-forms", help="tables of llrnn lexicon with the forms of terms")
        if name == "train":
            made.add_argument("--target", type=Path, required=True)
            made.add_argument("--softmax", action="store_true", help="Marian's own output")
            made.add_argument("--weights", type=Path, help="of a checkpoint of llrnn_transformer, to begin with")
            made.add_argument("--invented-terms", type=float, default=0.0, help="share of sentences (default: none)")
            add_options(made)
        else:
            made.add_argument("--to", type=Path, required=True, help="file for the translations")
            made.add_argument("--terms", type=Path, help="terms that translations must have (systems/terms)")
            made.add_argument("--background", type=Path, help="a prior that a logits processor applies")
            made.add_argument("--beam", type=int, default=5)
            made.add_argument("--longest", type=int, default=60, help="tokens of a translation, the end included")
    args = parser.parse_args(argv)
    if args.stage == "train" and args.invented_terms and (args.softmax or not args.term_forms):
        parser.error("--invented-terms needs --term-forms, and excludes --softmax, which has no terms")
    args.run(args)


if __name__ == "__main__":
    main()
