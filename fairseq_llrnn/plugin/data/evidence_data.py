"""What evidence and unknown words change of the sentences of a data set, for training and for validation.

`MergedTargets` are targets in which slots stand for the pieces, or words, that spell them (evidence/slots.py). What a
source offers depends on the source alone, so that training, validation and forced beginnings read a target as a
search writes it. What a data set loses of its evidence gets one warning when it is loaded.

Where all words of the training text are in the dictionaries, a model would never see what it has to do with unknown
ones. So training changes a share of them. Which ones depends on the seed, the epoch and the sentence's number alone,
so that a resumed run sees what an unbroken one does.

With `UnknownAliases`, a share of the known source words that are copied (their string, or what it is mapped to, is in
the target) become their *unknown aliases* (evidence/table.py): read as <unk>, offered as slots of unknown words. All
places of a word go together.

With `RareWordAliases`, a share of a rare word's tokens (prior/parts/open_vocabulary.py) become its alias: an id beyond
the dictionary, which the network reads as <unk> and scores by the open classes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, Dictionary, FairseqDataset, data_utils
from torch import Tensor

from fairseq_llrnn.evidence.slots import merged_target
from fairseq_llrnn.evidence.table import EvidenceTable, no_room
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.open_vocabulary.table import OpenTable
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.prior.prior import Prior


class MergedTargets(BaseWrapperDataset):
    """Pairs with merged targets. Lengths are those before, which are no shorter."""

    def __init__(self, dataset: FairseqDataset, table: EvidenceTable) -> None:
        super().__init__(dataset)
        self.table = table

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        if pair["target"] is None:
            return pair
        return pair | {"target": merged_target(self.table, pair["source"], pair["target"])}

    @property
    def src(self) -> Any:
        """The sources, for what asks fairseq's data set of pairs for them."""
        return self.dataset.src

    @property
    def tgt(self) -> Any:
        return self.dataset.tgt


AT_ONCE = 4096  # sentences: one operation for many, so that a look at a million of them takes seconds

logger = logging.getLogger(__name__)


def warn_of_lost_evidence(
    table: EvidenceTable, split: str, sources: Sequence[Tensor], unk: int, binary: bool
) -> None:
    """Warn of strings that find no room in the slots, and of unknown words that a binary data set has as <unk>.

    No slot can bring back the latter. Words that training reads as unknown (plugin/data/evidence_data.py) are not
    counted: they are others in every epoch.
    """
    table.left_out.mark_covered()
    widest = max(map(len, table.rules.mapping.values()), default=1)  # strings that one word offers, at most
    unknown = strings = sentences = 0
    for first in range(0, len(sources), AT_ONCE):
        rows = [plain(sources[i].numpy()) for i in range(first, min(first + AT_ONCE, len(sources)))]
        tokens = np.concatenate(rows)
        unknown += int((tokens == unk).sum())
        offering = np.concatenate([[0], table.offers_at(tokens).cumsum()])
        many = np.diff(offering[np.cumsum([0, *map(len, rows)])])  # words that offer something, of each sentence
        for i in np.flatnonzero(many * widest > table.max_slots).tolist():
            left_out = max(0, table.strings(rows[i]) - table.max_slots)
            strings += left_out
            sentences += left_out > 0
    if strings:
        logger.warning(no_room(strings, f"{sentences:,} of the {len(sources):,} {split} sources", table.max_slots))
    if unknown and binary:
        logger.warning(
            f"evidence: {unknown} unknown words of the {split} sources are stored as <unk> in the binary data set; "
            "to translate them, give the text to fairseq-interactive, or preprocess and load it with "
            "--dataset-impl raw"
        )


class TextBeside(BaseWrapperDataset):
    """Batches of changed pairs with the targets as the text has them, of which backgrounds were estimated.

    What a background leaves out in training, n-grams of a part of the text or links of a sentence pair, it finds by the
    words of the text. The model's argument `text` is (B, T'), `</s>` first, padded on the right; T' is at least T,
    which --required-seq-len-multiple raises.
    """

    def __init__(self, dataset: FairseqDataset, text: FairseqDataset, dictionary: Dictionary) -> None:
        """text: the pairs before they were changed. dictionary: of the target."""
        super().__init__(dataset)
        self.text, self.dictionary = text, dictionary

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super().collater(samples)
        if not batch:
            return batch
        targets = [self.text[index]["target"] for index in batch["id"].tolist()]
        pad, eos = self.dictionary.pad(), self.dictionary.eos()
        text = data_utils.collate_tokens(
            targets, pad, eos, move_eos_to_beginning=True, pad_to_length=batch["target"].size(1)
        )
        return batch | {"net_input": batch["net_input"] | {"text": text}}


class ChangedPairs(BaseWrapperDataset):
    """fairseq's pairs of sentences, a share of which training changes, in every epoch others."""

    def __init__(self, dataset: FairseqDataset, share: float, seed: int) -> None:
        super().__init__(dataset)
        self.share, self.seed, self.epoch = share, seed, 1

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self.epoch = epoch


class UnknownAliases(ChangedPairs):
    """Pairs with unknown aliases in the source."""

    def __init__(self, dataset: FairseqDataset, table: EvidenceTable, share: float, seed: int) -> None:
        super().__init__(dataset, share, seed)
        # by source id: the unknown alias, and the target word that it is evidence for; −1 where there is none
        self.alias = np.full(table.source.num_words, -1)
        self.target = np.full(table.source.num_words, -1)
        for word in range(table.source.num_words):
            alias = table.alias_of(word)
            if alias is not None:
                self.alias[word], self.target[word] = alias, table.offers(alias)[0].word

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        source = pair["source"].numpy()
        words = np.where(source < len(self.alias), source, 0)  # an open id has no alias, and neither has <s>
        copied = np.unique(source[np.isin(self.target[words], pair["target"].numpy()) & (self.target[words] >= 0)])
        if len(copied) == 0:
            return pair
        draws = np.random.default_rng((self.seed, self.epoch, int(index))).random(len(copied))
        chosen = copied[draws < self.share]
        if len(chosen) == 0:
            return pair
        return pair | {"source": torch.from_numpy(np.where(np.isin(source, chosen), self.alias[words], source))}


STREAM = 2  # its random numbers are others than those of the evidence's data


class WithUnk(BaseWrapperDataset):
    """fairseq's samples with <unk> for strings beyond the dictionary."""

    def __init__(self, dataset: FairseqDataset, dictionary: Dictionary) -> None:
        super().__init__(dataset)
        self.dictionary = dictionary

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        return pair | {side: with_unk(pair[side], self.dictionary) for side in ("source", "target")}


class RareWordAliases(ChangedPairs):
    """fairseq's samples with rare words as unknown ones in the target; in a language model's source as well."""

    def __init__(self, dataset: FairseqDataset, prior: Prior, table: OpenTable, seed: int, translates: bool) -> None:
        """
        Args:
            table: of the prior.
            translates: whether the source is of another language, and not the words before the target.
        """
        super().__init__(dataset, 1.0, seed)
        self.evidence = prior.offers() if translates else None
        self.translates = translates
        shares = table.vocabulary.word_shares
        self.shares = np.append(shares, 0.0)  # the last one is of strings beyond the dictionary
        rare = np.flatnonzero(shares > 0)
        self.alias = np.zeros(len(shares), dtype=np.int64)
        self.alias[rare] = table.aliases(rare)
        table.log_probs(self.alias[rare])  # computed at once

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        target = pair["target"].numpy()
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        chosen = random.random(len(target)) < self.shares[np.minimum(target, len(self.shares) - 1)]
        if self.evidence is not None:
            chosen &= ~np.isin(target, self._offered(pair["source"].numpy()))
        if not chosen.any():
            return pair
        changed = target.copy()
        changed[chosen] = self.alias[target[chosen]]
        pair = pair | {"target": torch.from_numpy(changed)}
        if not self.translates:
            source = pair["source"].numpy().copy()
            read = np.flatnonzero(chosen[:-1])
            source[read + 1] = changed[read]
            pair["source"] = torch.from_numpy(source)
        return pair

    def _offered(self, source: np.ndarray) -> list[int]:
        """The target words that a source (L,) offers as evidence: these are to be copied."""
        assert self.evidence is not None
        source = plain(source)
        some = source[self.evidence.offers_at(source)].tolist()
        return [offer.word for token in some for offer in self.evidence.offers(token)]
