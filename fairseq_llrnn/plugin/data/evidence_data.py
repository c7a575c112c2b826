"""Changes to the sentences of a data set for evidence and unknown words, in training and validation.

`WithSlots` makes the slots of a batch (evidence/slots.py), in a worker of the data loader if there are any. Its strings
outside the dictionary have their ids before, because `warn_of_lost_evidence` looks up all words of the text.

`MergedTargets` are targets in which slots replace the pieces, or words, that spell them. The slots of a source depend
only on the source. So training, validation and prefixes read a target as a search writes it. A warning is printed once
when a data set is loaded whose strings do not fit into the slots.

If the dictionaries have all words of the training text, a model would never learn to treat unknown ones. So training
changes some words. The choice depends only on the seed, the epoch and the sentence's number, so that a resumed run
equals an uninterrupted one.

With `UnknownAliases`, some of the copied source words (their string, or the string that they are mapped to, is in the
target) become their *unknown aliases* (evidence/evidence_table.py): read as <unk>, with slots of unknown words. All
occurrences of a word in a sentence change together.

With `RareWordAliases`, some tokens of a rare word (prior/parts/open_vocabulary.py) become its alias: an id beyond the
dictionary, which the network reads as <unk> and scores by the open classes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, Dictionary, FairseqDataset, data_utils
from torch import Tensor

from fairseq_llrnn.evidence.evidence_table import EvidenceTable, no_room
from fairseq_llrnn.evidence.slots import merged_target, packed, slots_of
from fairseq_llrnn.features.dictionary import plain
from fairseq_llrnn.open_vocabulary.open_table import OpenTable
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.prior.prior import Prior


class WithSlots(BaseWrapperDataset):
    """Pairs whose batches have the slots of the sources, `packed`, next to `net_input`, which searches read."""

    def __init__(self, dataset: FairseqDataset, table: EvidenceTable) -> None:
        super().__init__(dataset)
        self.table = table

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super().collater(samples)
        if not batch:
            return batch
        return batch | {"slots": packed(slots_of(self.table, batch["net_input"]["src_tokens"]))}

    @property
    def src(self) -> Any:
        """The sources, for code that reads them from fairseq's data set of pairs."""
        return self.dataset.src

    @property
    def tgt(self) -> Any:
        return self.dataset.tgt


class MergedTargets(WithSlots):
    """Pairs with merged targets. Sizes are those of the original targets, which are not shorter."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        if pair["target"] is None:
            return pair
        return pair | {"target": merged_target(self.table, pair["source"], pair["target"])}


CHUNK_SIZE = 4096  # sentences per operation, so that a million of them take seconds

logger = logging.getLogger(__name__)


def warn_of_lost_evidence(table: EvidenceTable, split: str, sources: Sequence[Tensor], unk: int, binary: bool) -> None:
    """Warn about strings that do not fit into the slots, and unknown words that a binary data set stores as <unk>.

    No slot can restore the latter. Words that training reads as unknown (`UnknownAliases`) are not counted: they change
    in every epoch.
    """
    table.left_out.mark_covered()
    widest = max(map(len, table.rules.mapping.values()), default=1)  # most strings of one word
    unknown = strings = sentences = 0
    for first in range(0, len(sources), CHUNK_SIZE):
        rows = [plain(sources[i].numpy()) for i in range(first, min(first + CHUNK_SIZE, len(sources)))]
        tokens = np.concatenate(rows)
        unknown += int((tokens == unk).sum())
        offering = np.concatenate([[0], table.offers_at(tokens).cumsum()])
        counts = np.diff(offering[np.cumsum([0, *map(len, rows)])])  # number of words with slots in each sentence
        for i in np.flatnonzero(counts * widest > table.max_slots).tolist():
            left_out = max(0, table.strings(rows[i]) - table.max_slots)
            strings += left_out
            sentences += left_out > 0
    if strings:
        logger.warning(no_room(strings, f"{sentences:,} of the {len(sources):,} {split} sources", table.max_slots))
    if unknown and binary:
        logger.warning(
            f"evidence: {unknown} unknown words of the {split} sources are stored as <unk> in the binary data set; "
            "to translate them, use `llrnn interactive` on the text, or preprocess and load it with --dataset-impl raw"
        )


class WithTextTargets(BaseWrapperDataset):
    """Batches of changed pairs, with the targets of the text, from which backgrounds were estimated.

    In training, a background leaves out the n-grams of a part of the text, or the links of a sentence pair. It finds
    these by the words of the text. The model's argument `text` is (B, T'), `</s>` first, padded on the right. T' is at
    least T, which --required-seq-len-multiple raises.
    """

    def __init__(self, dataset: FairseqDataset, text: FairseqDataset, dictionary: Dictionary) -> None:
        """text: the pairs before the changes. dictionary: of the target."""
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
    """fairseq's pairs of sentences, of which training changes a part, another one in every epoch."""

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
        # for each source id: its unknown alias, and the target word that is copied for it; −1 if there is none
        self.alias = np.full(table.source.num_words, -1)
        self.target = np.full(table.source.num_words, -1)
        for word in range(table.source.num_words):
            alias = table.alias_of(word)
            if alias is not None:
                self.alias[word], self.target[word] = alias, table.offers(alias)[0].word

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        source = pair["source"].numpy()
        words = np.where(source < len(self.alias), source, 0)  # an open id has no alias, like <s>
        copied = np.unique(source[np.isin(self.target[words], pair["target"].numpy()) & (self.target[words] >= 0)])
        if len(copied) == 0:
            return pair
        draws = np.random.default_rng((self.seed, self.epoch, int(index))).random(len(copied))
        replaced = copied[draws < self.share]
        if len(replaced) == 0:
            return pair
        return pair | {"source": torch.from_numpy(np.where(np.isin(source, replaced), self.alias[words], source))}


STREAM = 2  # separates its random numbers from those of InventedEvidence


class WithUnk(BaseWrapperDataset):
    """fairseq's samples, with <unk> for strings outside the dictionary."""

    def __init__(self, dataset: FairseqDataset, dictionary: Dictionary) -> None:
        super().__init__(dataset)
        self.dictionary = dictionary

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        return pair | {side: with_unk(pair[side], self.dictionary) for side in ("source", "target")}


class RareWordAliases(ChangedPairs):
    """fairseq's samples with rare words as unknown ones in the target, and in a language model's source."""

    def __init__(self, dataset: FairseqDataset, prior: Prior, table: OpenTable, seed: int, translates: bool) -> None:
        """
        Args:
            table: of the prior.
            translates: whether the source is another language. Otherwise it is the words before the target.
        """
        super().__init__(dataset, 1.0, seed)
        self.evidence = prior.offers() if translates else None
        self.translates = translates
        shares = table.vocabulary.word_shares
        self.shares = np.append(shares, 0.0)  # the last entry is for strings outside the dictionary
        rare = np.flatnonzero(shares > 0)
        self.alias = np.zeros(len(shares), dtype=np.int64)
        self.alias[rare] = table.aliases(rare)
        table.rows()  # computed at once

    def __getitem__(self, index: int) -> dict[str, Any]:
        pair: dict[str, Any] = self.dataset[index]
        target = pair["target"].numpy()
        random = np.random.default_rng((self.seed, self.epoch, int(index), STREAM))
        mask = random.random(len(target)) < self.shares[np.minimum(target, len(self.shares) - 1)]
        if self.evidence is not None:
            mask &= ~np.isin(target, self._offered(pair["source"].numpy()))
        if not mask.any():
            return pair
        changed = target.copy()
        changed[mask] = self.alias[target[mask]]
        pair = pair | {"target": torch.from_numpy(changed)}
        if not self.translates:
            source = pair["source"].numpy().copy()
            places = np.flatnonzero(mask[:-1])
            source[places + 1] = changed[places]
            pair["source"] = torch.from_numpy(source)
        return pair

    def _offered(self, source: np.ndarray) -> list[int]:
        """Return the target words that can be copied from a source (L,)."""
        assert self.evidence is not None
        source = plain(source)
        tokens = source[self.evidence.offers_at(source)].tolist()
        return [offer.word for token in tokens for offer in self.evidence.offers(token)]
