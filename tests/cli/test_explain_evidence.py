"""`llrnn explain --source` where the source offers strings: fairseq's figures on text, table, JSON and notes."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import positions
import pytest
import torch
from evidence_world import EvidenceWorld
from shell import Shell
from small_corpus import Done, Llrnn

from fairseq_llrnn.plugin.scoring.explainer import load_explainer
from fairseq_llrnn.prior.prior import Prior

SOURCE = "el tahc Karim tiov 12 Zoé 1,000 Zoé"
TARGET = "le chat Karim voit 12 Zoé 1 000 Zoé"
SLOTS = {  # by string, in the order of their kinds: kind, places from 1
    "1": ("mapped", [7]),
    "000": ("mapped", [7]),
    "12": ("numbers", [5]),
    "Karim": ("names", [3]),
    "Zoé": ("names", [6, 8]),
}
UNKNOWN = {"Karim", "Zoé"}

Explain = Callable[..., Done]


@pytest.fixture
def explain(as_typed: Llrnn, evidence_model: Path) -> Explain:
    """Run `llrnn explain --path …`."""
    return lambda *arguments: as_typed("explain", "--path", evidence_model, *arguments, code=None)


def sentence_of(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.err
    (line,) = done.out.splitlines()
    return json.loads(line)


# ---- the figures ----------------------------------------------------------------------------------------------------


def test_its_own_translation_has_the_strings(
    explain: Explain, shell: Shell, evidence: EvidenceWorld, evidence_model: Path
) -> None:
    sources = [*evidence.text("test", "src"), "Karim 4711", "Zoé", "88 Ngugi"]
    typed = shell.run(
        "fairseq-interactive", *evidence.task_args("lexical"), "--path", evidence_model, "--beam", 5,
        stdin="".join(source + "\n" for source in sources),
    )  # fmt: skip
    found = [(number, *some[0]) for number, some in typed.hypotheses().items()]
    unknown = set(Prior.load(evidence.data / "lexical").symbols)
    copied = [(sources[number], score, words) for number, score, words in found if set(words.split()) - unknown]
    assert copied, "no translation has a string outside the dictionary"
    for source, score, words in copied[:2]:
        sentence = sentence_of(explain("--json", "--source", source))
        assert (sentence["sentence"], sentence["own_translation"]) == (words, True)
        assert sentence["nats_per_word"] == pytest.approx(-score * math.log(2), abs=2e-3)
        assert "scored as <unk>" not in explain("--source", source).err


def test_slots_of_every_word(explain: Explain, evidence: EvidenceWorld) -> None:
    prior = Prior.load(evidence.data / "lexical")
    assert not {"Karim", "Zoé"} & {*prior.symbols, *prior.source_symbols}
    words = sentence_of(explain("--json", "--top", 99, "--source", SOURCE, TARGET))["words"]
    assert [w["token"] for w in words] == [*TARGET.split(), "</s>"]
    source = SOURCE.split()
    for w in words:
        assert {s["string"]: (s["kind"], s["positions"]) for s in w["slots"]} == SLOTS
        assert [s["string"] for s in w["slots"]] == list(SLOTS)
        assert all(s["words"] == [source[p - 1] for p in s["positions"]] for s in w["slots"])
        assert 0 < sum(s["background"] for s in w["slots"]) < 1
        terms = sum(w["features"].values()) + w["normaliser"]
        assert math.log(w["p"]) == pytest.approx(math.log(w["background"]) + terms, abs=1e-4)
        listed = {one["word"]: one["p"] for one in w["predicted"]}
        assert math.fsum(listed.values()) == pytest.approx(1.0, abs=1e-4), "words and slots are all there is"
        assert all(listed[s["string"]] == pytest.approx(s["p"], rel=1e-5) for s in w["slots"])
        assert w["rank"] == 1 + sum(p > w["p"] * 1.000001 for p in listed.values())
        if w["word"] not in SLOTS:
            assert w["slot"] is None and "Evidence:Place" not in w["features"]
            continue
        assert w["slot"] == next(s for s in w["slots"] if s["string"] == w["word"])
        assert (w["slot"]["p"], w["slot"]["background"]) == pytest.approx((w["p"], w["background"]), rel=1e-4)
        kind = {"mapped": "Mapped", "numbers": "Number", "names": "Name"}[w["slot"]["kind"]]
        assert {"Evidence:Place", f"Evidence:{kind}"} <= w["features"].keys()
        assert ("Evidence:Unknown" in w["features"]) == (w["word"] in UNKNOWN)
        if w["word"] in UNKNOWN:
            assert (w["background_without_source"], w["evidence"]) == (0.0, [])
        else:
            assert 0 < w["background_without_source"] < w["background"]


@torch.inference_mode()
def test_the_whole_of_a_slots_score(evidence_model: Path) -> None:
    """Evidence:Place is h·P s for the states of the model's own encoder; features and place are the model's score."""
    loaded = load_explainer(str(evidence_model))
    explained = loaded.explain(TARGET.split(), 3, SOURCE.split())
    task, decoder = loaded.task, loaded.model.decoder
    read = task.source_dictionary.encode_line(SOURCE, add_if_not_exist=False).long().unsqueeze(0)
    previous = task.target_dictionary.encode_line("</s> " + TARGET, add_if_not_exist=False, append_eos=False).long()
    encoder_out = loaded.model.encoder(read, read.ne(1).sum(1))
    hidden, extra = decoder(previous.unsqueeze(0), encoder_out)
    scores = positions.class_scores(extra["batch"])
    states = encoder_out["encoder_out"][0][:, 0]  # shape: (L, E)
    static, found = decoder.head.background.num_classes, 0
    for t, e in enumerate(explained):
        if e.slot is None or e.slots is None:
            continue
        mean = states[list(e.slot.places)].mean(0)
        place = float(hidden[0, t] @ (mean @ decoder.head.slot_rows.pointer.T))
        assert dict(e.own_features)["Evidence:Place"] == pytest.approx(place, abs=1e-4)
        score = float(scores[0, t, static + e.slots.index(e.slot)])
        assert math.fsum(value for _, value in e.own_features) == pytest.approx(score, abs=1e-4)
        found += 1
    assert found == 6


# ---- notes ----------------------------------------------------------------------------------------------------------


def test_which_words_are_unknown(explain: Explain) -> None:
    done = explain("--source", "el tahcs 4711 Zoé &apos; Zoé", "le Zoé 4711 88 chats </s> <unk>")
    assert done.code == 0
    assert done.err.splitlines() == [
        "note: 'tahcs' is not in the source dictionary and is read as <unk>; the prior's evidence uses it",
        "note: '4711' is not in the source dictionary and is read as <unk>; the prior's evidence uses it",
        "note: 'Zoé' is not in the source dictionary and is read as <unk>; the prior's evidence uses it",
        "note: '&apos;' is not in the source dictionary and is read as <unk>",
        "note: '88' is not in the dictionary or a string of the source, and is scored as <unk>",
        "note: 'chats' is not in the dictionary or a string of the source, and is scored as <unk>; did you mean "
        "'chat'?",
        "note: '</s>' is not in the dictionary or a string of the source, and is scored as <unk>",
    ]
    assert "\n88 (<unk>) " in done.out and "\n4711 " in done.out
