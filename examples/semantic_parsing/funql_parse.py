#!/usr/bin/env python3
"""Parse questions in symbols to forms in symbols with a model of fairseq-train, optionally only forms of a background.

    funql_parse.py --path checkpoint_last.pt --data data-bin --prior data-bin/plain --questions test.question --out FILE
    funql_parse.py … --mask data-bin/grammar

--mask PRIOR sets words that the background of PRIOR forbids to −inf in the final distribution of each step, and also
the symbols of names that the question does not have. The scores of all other words are unchanged and not normalised
again. A model whose own prior is PRIOR follows its grammar without --mask, which then only excludes names.

fairseq-interactive does the same for a model and its own background. This is a separate command because a background is
a part of the trained model (a checkpoint has its prior), and a mask is not.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from fairseq.tasks import FairseqTask
from funql_mentions import kind_of_name
from torch import Tensor

from fairseq_llrnn.errors import DataError, one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.plugin.compat.loading import Places, build_model, encode, read_checkpoint, take_places
from fairseq_llrnn.prior.prior import Prior

BATCH = 40  # questions that are parsed together
LONGEST = 120  # symbols of a form
SPARE = 10  # of them, kept for what is longer without a name: `river ( all )`


class Mask:
    """The allowed next words: those of a background, without names outside the question.

    Args:
        prior: the folder of the background's prior.
        source, target: dictionaries of the model.
    """

    def __init__(self, prior: Path, source: Dictionary, target: Dictionary) -> None:
        loaded = Prior.load(str(prior))
        loaded.check_dictionary(target.symbols, "the model's dictionary")
        self.background = loaded.background(has_source=True).bind()
        # no question offers a name that no training question had: that reads as <unk>, like other unknown words
        self.names = [
            (source.indices.get(name, -1), target.index(name)) for name in target.symbols if kind_of_name(name)
        ]
        self.words_after = cache(self._words_after)
        self.state = cache(self._state)

    def _state(self, prefix: tuple[int, ...]) -> Tensor:
        if not prefix:
            return self.background.start(1)
        return self.background.advance(self.state(prefix[:-1]), torch.tensor(prefix[-1:]))

    def _words_after(self, prefix: tuple[int, ...]) -> Tensor:
        """Return 0 for the next words from which a form can be completed in time, −inf for others: (V,)."""
        if prefix and torch.isneginf(self.words_after(prefix[:-1])[prefix[-1]]):
            return self.words_after(prefix[:-1]).clone().fill_(float("-inf"))  # a beam of few forms, filled up
        view = self.background.view(self.state(prefix), remaining=LONGEST + 1 - SPARE - len(prefix))
        forbidden = torch.isneginf(view.log_shares[0])
        return torch.zeros(len(forbidden)).masked_fill(forbidden, float("-inf"))

    def __call__(self, prefix: Sequence[int], question: Sequence[int]) -> Tensor:
        """Return the addend for the log-probabilities of the word after `prefix`: (V,)."""
        mask = self.words_after(tuple(prefix)).clone()
        offered = set(question)
        mask[[target for source, target in self.names if source not in offered]] = float("-inf")
        return mask


class MaskedModel(EnsembleModel):
    """The mean of several models, with a mask of forbidden words."""

    def __init__(self, models: Sequence[BaseFairseqModel], mask: Mask) -> None:
        super().__init__(list(models))
        self.mask = mask

    def forward_decoder(
        self, tokens: Tensor, encoder_outs: list[Any], incremental_states: list[Any], temperature: float = 1.0
    ) -> tuple[Tensor, Tensor | None]:
        """Return log-probabilities of the words after `tokens` (N, t), whose first one is outside the form: (N, V)."""
        log_probs, attention = super().forward_decoder(tokens, encoder_outs, incremental_states, temperature)
        questions = encoder_outs[0]["src_tokens"][0]  # shape: (N, L)
        rows = zip(tokens[:, 1:].tolist(), questions.tolist(), strict=True)
        return log_probs + torch.stack([self.mask(prefix, question) for prefix, question in rows]), attention


def parse_questions(
    models: Sequence[BaseFairseqModel],
    task: FairseqTask,
    questions: Sequence[Sequence[str]],
    mask: Mask | None,
    beam: int,
) -> list[str]:
    """Return the best form of each question, its symbols separated by blanks. Raises DataError: no form was found."""
    for model in models:
        model.eval()
    cfg = GenerationConfig(beam=beam, max_len_a=0.0, max_len_b=LONGEST)

    def masked(models: Sequence[BaseFairseqModel], *args: Any, **options: Any) -> SequenceGenerator:
        assert mask is not None
        generator = SequenceGenerator(MaskedModel(models, mask), *args, **options)
        generator.search.stop_on_max_len = True  # with what was found by then, where forms are few
        return generator

    generator = task.build_generator(list(models), cfg, seq_gen_cls=None if mask is None else masked)
    ids = [encode(task.source_dictionary, words) for words in questions]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    found: dict[int, str] = {}
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        data = task.build_dataset_for_inference([ids[i] for i in chosen], [len(ids[i]) for i in chosen])
        sample = data.collater([data[i] for i in range(len(chosen))])
        with torch.no_grad():
            hypotheses = task.inference_step(generator, list(models), sample)
        for row, several in zip(sample["id"].tolist(), hypotheses, strict=True):
            if not several:
                raise DataError(f"question {chosen[row] + 1}: expected a form within {LONGEST} symbols, found none")
            found[chosen[row]] = task.target_dictionary.string(several[0]["tokens"])
    return [found[i] for i in range(len(ids))]


@one_line_errors("funql_parse.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--path", required=True, nargs="+", help="checkpoint; several: the mean of their distributions")
    parser.add_argument("--data", required=True, help="folder of fairseq-preprocess")
    parser.add_argument("--prior", required=True, help="prior of the checkpoint's training")
    parser.add_argument("--questions", type=Path, required=True, help="questions in symbols, one per line")
    parser.add_argument("--out", type=Path, required=True, help="forms in symbols, one per line")
    parser.add_argument("--mask", type=Path, metavar="PRIOR", help="allow only what this prior's background allows")
    parser.add_argument("--beam", type=int, default=5)
    args = parser.parse_args()
    models = []
    for path in args.path:
        state = read_checkpoint(path)
        take_places(path, state["cfg"]["task"], Places(args.data, args.prior), state)
        model, task = build_model(path, state)
        models.append(model)
    mask = None if args.mask is None else Mask(args.mask, task.source_dictionary, task.target_dictionary)
    questions = [line.split() for _, line in iter_lines(args.questions)]
    write_lines(args.out, parse_questions(models, task, questions, mask, args.beam))


if __name__ == "__main__":
    sys.exit(main())
