"""Translations between lemmas, through the real commands: training, a stop, search, explanation, invented evidence."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from shell import Shell
from small_corpus import Llrnn
from translation_world import TranslationWorld

from fairseq_llrnn.evidence.rules import EvidenceRules
from fairseq_llrnn.plugin.data.invented_evidence import certain_translations
from fairseq_llrnn.prior.parts.evidence_part import add_evidence
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture(scope="module")
def lemmas(shell: Shell, translation: TranslationWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prior in which all words that begin with the same two letters are forms of one lemma, on either side."""
    place = tmp_path_factory.mktemp("lemmas")
    for side in ("src", "tgt"):
        dictionary = (translation.data / f"dict.{side}.txt").read_text(encoding="utf-8")
        words = [line.split()[0] for line in dictionary.splitlines()]
        rows = (f"{word}\t{word[:2]}\tX\t_\n" for word in words if "madeupword" not in word)
        (place / f"{side}.tsv").write_text("".join(rows), encoding="utf-8")
    shell.run(
        "llrnn", "prior", "--dict", translation.data / "dict.tgt.txt", "--lexicon", place / "tgt.tsv",
        "--top-words", 20, "--lexical-translation", translation.data, "--set", "translations.learned=true", "--set",
        "translations.aligner=ibm1", "--set", "translations.units=lemma", "--set",
        f"translations.source_lexicon={place / 'src.tsv'}",
        "--out", translation.data / "lemmas",
    )  # fmt: skip
    return translation.data / "lemmas"


def test_training_goes_on_and_the_model_translates(
    shell: Shell, as_typed: Llrnn, translation: TranslationWorld, lemmas: Path, tmp_path: Path
) -> None:
    training = translation.train_args(prior=lemmas.name, save_dir=tmp_path)
    shell.run("fairseq-train", *training, "--max-tokens", 256, "--max-epoch", 2)
    checkpoint = tmp_path / "checkpoint_last.pt"
    generated = shell.run(
        "fairseq-generate", *translation.task_args(lemmas.name), "--path", checkpoint, "--gen-subset", "test"
    ).out
    assert sum(line.startswith("H-") for line in generated.splitlines()) == len(translation.source("test"))
    source, target = translation.source("test")[0], translation.world.text("test")[0]
    said = as_typed("explain", "--path", checkpoint, "--json", "--source", source, target).out
    assert any(word["evidence"] for word in json.loads(said)["words"])


def test_any_form_of_a_certain_lemma_gives_way_to_an_invented_word(lemmas: Path) -> None:
    from fairseq_llrnn.plugin.data.invented_evidence import InventedEvidence

    loaded = Prior.load(lemmas)
    prior = add_evidence(loaded, EvidenceRules(("copies",), {}, {}), loaded.source_symbols)
    part = prior.find(LexicalPart)
    assert part is not None and part.forms is not None
    best = certain_translations(part.unit_table, prior.source_symbols, prior.symbols, prior.log_weights)
    forms = part.forms
    source, form = next(
        (s, x)
        for s in np.flatnonzero(best >= 0).tolist()
        for x in forms.forms[forms.offsets[best[s]] : forms.offsets[best[s] + 1]].tolist()
        if x != best[s]
    )
    pair = {"source": torch.tensor([source, 2]), "target": torch.tensor([form, 2])}
    data = InventedEvidence([pair] * 20, prior, 0.999, seed=3)  # type: ignore[arg-type]
    changed = [data[i] for i in range(20)]
    assert all(pair["source"][0] != source and pair["target"][0] != form for pair in changed)
