"""A small GPT-2 with a log-linear head under a grammar: train it with `Trainer`, save and load it, and generate
sentences.

Sizes: B sentences of a batch, T their length.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import torch
from agreement_grammar import write_grammar
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GPT2Config, PrinterCallback, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

from fairseq_llrnn import LogLinearForCausalLM, Prior
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior

Sentence = dict[str, list[int]]
SEARCHES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "beam search": {"num_beams": 4, "num_return_sequences": 3},
    "sampling": {"do_sample": True, "num_return_sequences": 3},
}


def prior_of(corpus: Path, work: Path) -> Prior:
    """Return a prior with features from the corpus' lexicon, and a grammar of the same words as background."""
    grammar = work / "agreement.grammar"
    write_grammar(corpus / "lexicon.tsv", grammar)
    options = Recipe(
        text=corpus / "train.txt",
        words=LexiconOptions(lexicon=corpus / "lexicon.tsv"),
        top_words=500,
        background=f"automaton({grammar}, on_zero=skip)",
    )
    return build_prior(corpus / "vocabulary.txt", options)


def read_sentences(text: Path, model: LogLinearForCausalLM) -> list[Sentence]:
    """Return the sentences of a text that the grammar allows: `</s>`, the words, `</s>`."""
    head, lines = model.head, text.read_text(encoding="utf-8").splitlines()
    tokens = head.encode(lines)
    rows = tokens[head.possible(tokens)]
    return [{"input_ids": [head.eos, *row[row != head.pad].tolist()]} for row in rows]


def padded(sentences: list[Sentence], pad: int) -> dict[str, Tensor]:
    """Return a batch for `Trainer`: (B, T) each, padded on the right."""
    ids = pad_sequence([torch.tensor(sentence["input_ids"]) for sentence in sentences], True, pad)
    real = ids.ne(pad)
    return {"input_ids": ids, "attention_mask": real.long(), "labels": ids.masked_fill(~real, -100)}


def train(model: LogLinearForCausalLM, corpus: Path, work: Path, epochs: int) -> None:
    """Train, from the last checkpoint if there is one, and print perplexities."""
    texts = [read_sentences(corpus / f"{split}.txt", model) for split in ("train", "valid")]
    options = TrainingArguments(
        output_dir=str(work / "checkpoints"),
        num_train_epochs=epochs,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
        learning_rate=0.002,
        save_strategy="epoch",
        save_total_limit=1,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        seed=1,
    )
    pad = model.head.pad
    trainer = Trainer(
        model, options, train_dataset=texts[0], eval_dataset=texts[1], data_collator=lambda batch: padded(batch, pad)
    )
    trainer.remove_callback(PrinterCallback)
    print(f"{len(texts[0])} training sentences that the grammar has; {len(texts[1])} for validation")
    print(f"perplexity before training: {math.exp(trainer.evaluate()['eval_loss']):.2f}")
    checkpoint = get_last_checkpoint(options.output_dir) if (work / "checkpoints").exists() else None
    trainer.train(resume_from_checkpoint=checkpoint)
    print(f"perplexity after {epochs} epochs: {math.exp(trainer.evaluate()['eval_loss']):.2f}")


def sentences(model: LogLinearForCausalLM, begin: str, longest: int, **search: Any) -> list[str]:
    """Return the output of `generate` for the beginning of a sentence, complete within `longest` more tokens."""
    head = model.head
    prompt = head.previous(head.encode([begin]))  # `</s>` and the words
    return head.decode(model.generate(prompt, max_new_tokens=longest, **search))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of scripts/make_corpus.py")
    parser.add_argument("work", type=Path, help="folder for checkpoints and the model")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    args = parser.parse_args(argv)
    set_seed(1)
    prior = prior_of(args.corpus, args.work)
    config = GPT2Config(n_embd=args.width, n_layer=2, n_head=2, n_positions=64)
    model = LogLinearForCausalLM.from_config(config, prior)
    train(model, args.corpus, args.work, args.epochs)
    model.save_pretrained(args.work / "model")
    model = LogLinearForCausalLM.from_pretrained(args.work / "model")
    for name, search in SEARCHES.items():
        print(f"\n{name}:")
        print("\n".join(f"    {sentence}" for sentence in sentences(model, "les", 12, **search)))


if __name__ == "__main__":
    main()
