"""An open vocabulary in translation, alone and beside evidence."""

import copy
from typing import Any

import evidence_world
import numpy as np
import positions
import pytest
import torch
from evidence_world import EvidenceWorld
from fairseq.dataclass.configs import GenerationConfig
from few_words import SOURCE_WORDS, new_table
from shell import Shell
from tiny_world import World, build, evaluated, open_prior, randomise, randomised
from translation_world import TranslationWorld, assert_steps_agree, pairs

from fairseq_llrnn.evidence.slots import EvidenceMixture
from fairseq_llrnn.features.dictionary import SHIFT
from fairseq_llrnn.plugin.data.evidence_data import RareWordAliases
from fairseq_llrnn.prior.parts.evidence_part import evidence_table

LINES = ["le chat xyzzy voit", "une Zoé 1999 bien", "la vache verte"]
@pytest.fixture(scope="module")
def opened(shell: Shell, world: World, translation: TranslationWorld) -> str:
    """A prior with open classes in the translation world."""
    return open_prior(shell, world, translation.data, "open")


@pytest.fixture(scope="module")
def with_evidence(shell: Shell, world: World, evidence: EvidenceWorld) -> str:
    """A prior with open classes and evidence."""
    found = ("--evidence", "numbers,names,copies", "--suffixes", 2, "--shapes", "--set", "open_vocabulary.floor=100")
    return open_prior(shell, world, evidence.data, "open", *found)


def check_targets(setting: Any, sample: dict[str, Any]) -> int:
    """Every target's log p is its column's, and of strings that no slot offers, <unk>'s and the spelling; how many."""
    decoder, task = setting.model.decoder, setting.task
    output = setting.model(**sample["net_input"])
    table = setting.model.get_normalized_probs(output, log_probs=True)
    torch.testing.assert_close(table.exp().sum(-1), torch.ones(table.shape[:2]), atol=1e-5, rtol=0)
    hidden, extra = setting.model(**sample["net_input"])
    target = sample["target"]
    found = decoder.head.target_log_probs(extra["batch"], target)
    size = len(task.target_dictionary)
    columns = target.masked_fill(target >= size, decoder.dictionary.unk())
    if isinstance(extra["batch"].view.bound, EvidenceMixture):
        columns = positions.columns(extra["batch"], target)
    shares = extra["batch"].open_scores.softmax(-1)
    spelt = 0
    for row, place in (target != decoder.dictionary.pad()).nonzero().tolist():
        expected = table[row, place, columns[row, place]]
        if target[row, place] >= size and columns[row, place] == decoder.dictionary.unk():
            ids = target[row, place : place + 1].numpy()
            strings = decoder.head.open_words.string_rows(torch.from_numpy(ids))[0][0]
            expected = expected + (shares[row, place] * strings.exp()).sum().log()
            spelt += 1
        torch.testing.assert_close(found[row, place], expected, rtol=1e-4, atol=1e-4)
    return spelt


@pytest.mark.parametrize("arch", ["llrnn_lstm", "llrnn_transformer"])
def test_translations_of_any_words(arch: str, translation: TranslationWorld, opened: str) -> None:
    setting = evaluated(translation.train_args(arch, opened))
    sample = pairs(setting.task, LINES)
    assert check_targets(setting, sample) == 3
    assert_steps_agree(setting, sample)


@pytest.mark.parametrize(("arch", "sampling"), [("llrnn_lstm", False), ("llrnn_transformer", True)])
def test_unknown_words_of_translations_are_spelled(
    arch: str, sampling: bool, translation: TranslationWorld, opened: str
) -> None:
    setting = randomised(translation.train_args(arch, opened))
    decoder, task = setting.model.eval().decoder, setting.task
    with torch.no_grad():  # unknown words are likely
        decoder.head.output.bias[task.prior.output.features.index["SPECIAL:<unk>"]] += 12.0
    sample = pairs(task, LINES)
    generator = task.build_generator([setting.model], GenerationConfig(beam=3, max_len_b=5, sampling=sampling))
    found = task.inference_step(generator, [setting.model], sample)
    unk, size = task.target_dictionary.unk(), len(task.target_dictionary)
    written = torch.cat([h["tokens"] for of_sentence in found for h in of_sentence])
    assert not bool((written == unk).any()) and bool((written >= size).any())
    strings = written[written >= size].tolist()
    assert sampling == (len(set(strings)) > len(strings) / 2)
    text = task.target_dictionary.string(found[0][0]["tokens"])
    assert "<unk>" not in text and not set(text.split()) <= set(task.prior.symbols)
    # the reference's <unk> is scored, and stays what it is
    scorer = task.build_generator([setting.model], GenerationConfig(score_reference=True))
    scored = task.inference_step(scorer, [setting.model], sample)
    assert sum(int((one[0]["tokens"] == unk).sum()) for one in scored) == 3


def test_strings_are_slots_or_open(evidence: EvidenceWorld, with_evidence: str) -> None:
    """What the source offers is a slot; any other unknown word is spelled by the open classes."""
    setting = evidence_world.make(evidence, "llrnn_lstm", with_evidence)
    sample = evidence_world.batch(setting.task, evidence_world.SENTENCES, evidence_world.PREFIXES)
    assert check_targets(setting, sample) >= 1
    sample = evidence_world.batch(setting.task, ["el tahc Zoé", "el tahc"], ["le Zoé Karimov", "le Zoé chat"])
    assert check_targets(setting, sample) == 2  # Karimov; and Zoé where the source does not have it


@pytest.mark.parametrize("sampling", [False, True])
def test_beside_evidence_unknown_words_are_spelled(sampling: bool, evidence: EvidenceWorld, with_evidence: str) -> None:
    """Two models; what their sources offer keeps its own string."""
    setting = evidence_world.make(evidence, "llrnn_lstm", with_evidence)
    models, task = [setting.model, copy.deepcopy(setting.model)], setting.task
    randomise(models[1], scale=0.4, seed=8)
    for model in models:
        with torch.no_grad():  # unknown words are likely
            model.decoder.head.output.bias[task.prior.output.features.index["SPECIAL:<unk>"]] += 12.0
    sample = evidence_world.batch(task, ["el tahc Zoé", "el tahc", "enu emmop"])
    generator = task.build_generator(models, GenerationConfig(beam=2, max_len_b=5, sampling=sampling))
    found = task.inference_step(generator, models, sample)
    texts = [task.target_dictionary.string(h["tokens"]) for of_sentence in found for h in of_sentence]
    new = [word for text in texts for word in text.split() if word not in task.prior.symbols and word != "Zoé"]
    assert new and "<unk>" not in " ".join(texts)
    assert sampling == (len(set(new)) > len(new) / 2)


def test_copied_words_are_no_unknown_ones_in_training(evidence: EvidenceWorld, with_evidence: str) -> None:
    task = build([*evidence.train_args("llrnn_lstm", with_evidence), "--evidence-dropout", "0.5"]).task
    task.load_dataset("train", combine=True)
    data, table = task.dataset("train").dataset, evidence_table(task.prior)
    assert isinstance(data, RareWordAliases)
    size, changed, kept = len(task.target_dictionary), 0, 0
    for epoch in range(1, 4):
        data.set_epoch(epoch)
        for index in range(len(data)):
            plain, pair = data.dataset[index], data[index]
            places = (pair["target"] != plain["target"]).nonzero().squeeze(1)
            offered = {offer.word for token in pair["source"].tolist() for offer in table.offers(token)}
            assert not offered & set(plain["target"][places].tolist())
            assert bool((pair["target"][places] >= size).all())
            changed += len(places)
            rare = plain["target"][plain["target"] < size].numpy()
            kept += sum(1 for word in rare[data.shares[rare] > 0].tolist() if word in offered)
    assert changed > 0 and kept > 0


def test_a_source_with_marks_of_terms_offers_what_it_does_without() -> None:
    data, source = object.__new__(RareWordAliases), np.array([SOURCE_WORDS.index(word) for word in ("12", "Ann")])
    data.evidence = new_table()
    assert data._offered(source | (1 << SHIFT)) == data._offered(source) != []
