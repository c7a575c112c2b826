"""Dictionaries that are open, and training pairs with unknown aliases."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from evidence_world import KNOWN, MAPPED, EvidenceWorld, make
from shell import Shell
from tiny_world import build

from fairseq_llrnn.backgrounds.automaton_background import BoundAutomaton
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.head.checks import check_allowed
from fairseq_llrnn.ngrams.folds import folds_of
from fairseq_llrnn.ngrams.ngrams import Sentences
from fairseq_llrnn.plugin.compat.dictionaries import with_unk
from fairseq_llrnn.plugin.data.evidence_data import ChangedPairs, UnknownAliases
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart, evidence_table
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture(scope="module")
def task(evidence: EvidenceWorld) -> Any:
    return build(evidence.train_args()).task


# ---- dictionaries ---------------------------------------------------------------------------------------------------


def test_strings_outside_a_dictionary_have_an_id_that_says_them(task: Any) -> None:
    source, target = task.source_dictionary, task.target_dictionary
    sizes = len(source), len(target)
    line = "el tahc Zoé 4711 %§ quark"
    read = source.encode_line(line, add_if_not_exist=False)
    assert source.string(read) == "el tahc Zoé 4711 <unk> quark"  # %§ is no evidence
    assert (read >= len(source)).tolist() == [False, False, True, True, False, True, False]
    written = target.encode_line("chat Zoé %§ Zoé", add_if_not_exist=True)  # as fairseq looks up what it printed
    assert target.string(written, escape_unk=True) == "chat Zoé %§ Zoé"
    assert written[1] == written[3] >= len(target) and target.index("Zoé") == written[1]
    assert target.add_symbol("brand-new") == target.index("brand-new")
    assert (len(source), len(target)) == sizes and source.index("%§") == source.unk()
    assert target[10**6] == "<unk>"


# ---- unknown aliases ------------------------------------------------------------------------------------------------


def aliases(evidence: EvidenceWorld, share: float, seed: int = 1, epoch: int = 1) -> tuple[Any, UnknownAliases]:
    task = build([*evidence.train_args(), "--evidence-dropout", str(share), "--seed", str(seed)]).task
    task.load_dataset("train", combine=True)
    data = task.dataset("train").dataset
    assert isinstance(data, UnknownAliases)
    data.set_epoch(epoch)
    return task, data


def words(task: Any, data: Any, side: str) -> list[list[tuple[str, bool]]]:
    """Every sentence's words, and whether each is read as <unk>."""
    dictionary = task.source_dictionary
    return [[(dictionary[i], i >= len(dictionary)) for i in data[n][side].tolist()] for n in range(len(data))]


def test_a_share_of_what_is_copied_is_read_as_unknown(evidence: EvidenceWorld) -> None:
    task, data = aliases(evidence, 0.4)
    texts = evidence.text("train", "src"), evidence.text("train", "tgt")
    counted: Counter[bool] = Counter()
    for found, source, target in zip(words(task, data, "source"), *texts, strict=True):
        assert [word for word, _ in found] == [*source.split(), "</s>"]
        for word, unknown in found:
            copied = word in KNOWN and MAPPED.get(word, word).split()[0] in target.split()
            assert not unknown or copied
            counted[unknown] += copied
        for word in {word for word, unknown in found if unknown}:
            assert (word, False) not in found, "all places of a word go together"
    assert counted[True] / counted.total() == pytest.approx(0.4, abs=0.08)
    kinds = {word for sentence in words(task, data, "source") for word, unknown in sentence if unknown}
    assert kinds == set(KNOWN)


def test_aliases_depend_on_the_seed_the_epoch_and_the_sentence(evidence: EvidenceWorld) -> None:
    def drawn(**options: int) -> list[Any]:
        task, data = aliases(evidence, 0.5, **options)
        return words(task, data, "source")

    first = drawn()
    assert drawn() == first
    assert drawn(epoch=2) != first != drawn(seed=2)
    assert drawn(epoch=2) != drawn(seed=2)


def test_a_target_that_needs_evidence_and_has_none(evidence: EvidenceWorld) -> None:
    """The advice is about evidence.unsupported, where the prior was built with it."""
    needed = r"evidence.unsupported.numbers=0\) and is not in its source, build the prior with a small weight instead"
    cases = ({}, "--background unigram"), ({"numbers": 0.01}, r"batch\); build"), ({"numbers": 0.0}, needed)
    for factors, says in cases:
        prior = Prior.load(evidence.data / "static")
        part = prior.find(EvidencePart)
        assert part is not None
        needing = replace(part, rules=replace(part.rules, unsupported=factors))
        prior = replace(prior, parts=tuple(needing if other is part else other for other in prior.parts))
        decoder = make(evidence, "llrnn_lstm", "static", loaded=prior).model.decoder
        with pytest.raises(DataError, match=says):
            check_allowed(decoder.head, torch.tensor([[-torch.inf]]), torch.tensor([[5]]), None, decoder.fix_zero_mass)


def test_only_training_has_aliases(evidence: EvidenceWorld, task: Any) -> None:
    task.load_dataset("valid")
    assert not isinstance(task.dataset("valid").dataset, UnknownAliases)
    task.load_dataset("valid", combine=True)  # as --combine-valid-subsets does
    assert not isinstance(task.dataset("valid").dataset, ChangedPairs)
    assert not isinstance(aliases_of_nothing(evidence), UnknownAliases)


def test_validation_on_the_training_data_has_no_aliases(evidence: EvidenceWorld) -> None:
    """As --valid-subset valid,train loads and asks; its batches are none of an epoch."""
    task = build([*evidence.train_args(), "--evidence-dropout", "0.5"]).task
    for combine in (False, True, True):  # the last one as of a second folder
        task.load_dataset("train", combine=combine)
    data = task.dataset("train")
    training = task.get_batch_iterator(dataset=data, max_tokens=100, grouped_shuffling=False)
    validation = task.get_batch_iterator(dataset=data, max_tokens=1000)
    assert isinstance(training.dataset.dataset, UnknownAliases)
    assert not isinstance(validation.dataset.dataset, ChangedPairs)
    assert len(validation) < len(training) == task.batches_per_epoch
    with pytest.raises(DataError, match="sentence 1 of the train data"):
        task.get_batch_iterator(dataset=data, max_tokens=1000, max_positions=(1, 1))


def aliases_of_nothing(evidence: EvidenceWorld) -> Any:
    task = build([*evidence.train_args(), "--evidence-dropout", "0"]).task
    task.load_dataset("train", combine=True)
    return task.dataset("train").dataset


def ngrams_of(batch: dict[str, Any], head: Any, shorter: int = 0) -> BoundAutomaton:
    """Those by which a batch is trained, whose targets are so many words shorter than they are in the text."""
    net_input = batch["net_input"]
    previous = net_input["prev_output_tokens"]
    previous = previous[:, : previous.size(1) - shorter]
    (_, background), *_ = head.bind(previous, net_input["src_tokens"], net_input["text"]).backgrounds
    return next(part for part in background.base.parts if isinstance(part, BoundAutomaton))


FOLDS = 3


@pytest.fixture(scope="module")
def cross_fitted(shell: Shell, evidence: EvidenceWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prior with n-grams that lack a part of the text each."""
    place = tmp_path_factory.mktemp("cross-fitted")
    bitext = ("--lexical-translation", evidence.data, "--set", "translations.aligner=ibm1")
    text = ("--dict", evidence.data / "dict.tgt.txt", "--count-text", evidence.place / "train.tgt")
    shell.run(
        "llrnn", "prior", *text, *bitext, "--evidence", "numbers,names,copies", "--background",
        f"ngram(3, folds={FOLDS}) plus translations", "--out", place / "prior",
    )  # fmt: skip
    return place / "prior"


def test_a_text_is_as_wide_as_its_batch(evidence: EvidenceWorld, cross_fitted: Path) -> None:
    """That --required-seq-len-multiple makes wider: the loss is that of the batch as it was."""
    losses = []
    for multiple in (1, 7):
        arguments = [*evidence.train_args(), "--prior", cross_fitted, "--required-seq-len-multiple", multiple]
        setting = build([*arguments, "--invented-evidence", "0.9"])
        setting.task.load_dataset("train", combine=True)
        data = setting.task.dataset("train")
        batch = data.collater([data[i] for i in range(5)])
        width = batch["target"].size(1)
        assert width % multiple == 0 and batch["net_input"]["text"].size(1) >= width
        losses.append(setting.criterion(setting.model.train(), batch)[0].item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_changed_targets_are_trained_by_the_n_grams_that_lack_their_text(
    evidence: EvidenceWorld, cross_fitted: Path
) -> None:
    """Invented words have taken the place of words by which a sentence would be found in the text."""
    setting = build([*evidence.train_args(), "--prior", cross_fitted, "--invented-evidence", "0.9"])
    setting.task.load_dataset("train", combine=True)
    data = setting.task.dataset("train")
    changed = [i for i in range(len(data)) if not torch.equal(data[i]["target"], data.text[i]["target"])]
    assert len(changed) > 30
    batch, head = data.collater([data[i] for i in changed]), setting.model.decoder.head.train()
    sentences = Sentences.of([data.text[i]["target"][:-1].tolist() for i in batch["id"].tolist()])
    folds = folds_of(sentences, FOLDS)
    assert len({*folds.tolist()}) == FOLDS
    for shorter in (0, 2):
        ngrams = ngrams_of(batch, head, shorter)
        starts = ngrams.start(len(changed))
        assert starts.squeeze(1).tolist() == ngrams.tables.starts[1 + torch.from_numpy(folds)].tolist()
        read = with_unk(batch["net_input"]["prev_output_tokens"], setting.task.target_dictionary)
        read = read[:, : read.size(1) - shorter]
        states = [starts]
        for tokens in read[:, 1:].unbind(1):
            states.append(ngrams.advance(states[-1], tokens))
        words = read.ne(head.pad)
        assert ngrams.flat_states(read).view_as(read)[words].tolist() == torch.cat(states, 1)[words].tolist()


def test_an_alias_offers_what_an_unknown_word_would(evidence: EvidenceWorld) -> None:
    """The same strings as the known word, as slots of an unknown one."""
    task, data = aliases(evidence, 0.99)
    table = evidence_table(task.prior)
    for word in KNOWN:
        known = task.source_dictionary.index(word)
        alias = table.alias_of(known)
        assert alias is not None and alias >= table.source.num_words and table.source.symbols[alias] == word
        of_known, of_alias = table.offers(known), table.offers(alias)
        assert [offer.word for offer in of_known] == [offer.word for offer in of_alias]
        assert not any(offer.unknown for offer in of_known) and all(offer.unknown for offer in of_alias)
    pair = data[0]
    assert pair["source"].dtype == torch.int64 and isinstance(data.sizes, np.ndarray)
    batch = data.collater([data[i] for i in range(4)])
    assert batch["net_input"]["src_tokens"].shape[0] == 4
