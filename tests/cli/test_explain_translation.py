"""`llrnn explain --source`: the figures of fairseq-generate and of the prior, what the source said, clear errors."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from shell import Shell
from small_corpus import Done, Llrnn
from tiny_world import EVERY_SENTENCE, read_checkpoint
from translation_world import TranslationWorld, pairs

from fairseq_llrnn.cli.tables import WIDTH, columns
from fairseq_llrnn.plugin.scoring.explainer import load_explainer
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

TARGET = "le chat vert voit la mer"
SOURCE = "el tahc trev tiov al rem"  # as source_of spells it
TWICE = "el tahc tiov el rum"

MODELS = {
    "lexical": ("llrnn_lstm", "lexical", ["--encoder-bidirectional"]),
    "transformer": ("llrnn_transformer", "prior", []),
    "no attention": ("llrnn_lstm", "separate", ["--attention", "none", "--reverse-source"]),
}

Explain = Callable[..., Done]
Change = Callable[..., Path]


@pytest.fixture(scope="session")
def translators(shell: Shell, translation: TranslationWorld) -> dict[str, Path]:
    """Models that hardly trained."""
    found = {}
    for name, (arch, prior, options) in MODELS.items():
        place = translation.place / f"explain-{name.replace(' ', '-')}"
        shell.run("fairseq-train", *translation.train_args(arch, prior, place), *options, "--max-epoch", 2)
        found[name] = place / "checkpoint_last.pt"
    return found


@pytest.fixture
def explain(as_typed: Llrnn, translators: dict[str, Path]) -> Explain:
    """Run `llrnn explain --path …` on a model of MODELS; another `path` wins."""

    def run(*arguments: object, model: str = "lexical", stdin: str = "", path: Path | None = None) -> Done:
        return as_typed("explain", "--path", path or translators[model], *arguments, stdin=stdin, code=None)

    return run


@pytest.fixture
def changed(translators: dict[str, Path], tmp_path: Path) -> Change:
    """A copy of a checkpoint in which something was changed."""

    def run(change: Callable[[dict[str, Any]], None], model: str = "lexical") -> Path:
        state = read_checkpoint(translators[model])
        change(state)
        torch.save(state, tmp_path / "changed.pt")
        return tmp_path / "changed.pt"

    return run


@pytest.fixture(scope="module")
def prior(translation: TranslationWorld) -> Prior:
    return Prior.load(translation.data / "lexical")


def objects(done: Done) -> list[dict[str, Any]]:
    """The JSON lines."""
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def words_of(done: Done) -> list[dict[str, Any]]:
    (sentence,) = objects(done)
    return sentence["words"]


# ---- the figures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_the_same_as_fairseqs_scorer(
    model: str, explain: Explain, shell: Shell, translation: TranslationWorld, translators: dict[str, Path]
) -> None:
    scored = shell.run(
        "fairseq-generate", *translation.task_args(MODELS[model][1]), "--path", translators[model], "--gen-subset",
        "test", "--score-reference", "--num-workers", 0, "--batch-size", 5, *EVERY_SENTENCE,
    )  # fmt: skip
    for number in (0, 1):
        source, target = translation.source("test")[number], translation.world.text("test")[number]
        expected = [score * math.log(2) for score in scored.positional()[number]]
        (sentence,) = objects(explain("--json", "--source", source, target, model=model))
        assert (sentence["source"], sentence["sentence"], sentence["own_translation"]) == (source, target, False)
        assert [-w["nats"] for w in sentence["words"]] == pytest.approx(expected, abs=2e-3)


def test_the_background_and_who_speaks_for_a_word(explain: Explain, prior: Prior, translators: dict[str, Path]) -> None:
    """b(C; x) = (1−λ) b₀(x) + λ/n Σ_s t'(x | s), summed up word by word."""
    logit = float(read_checkpoint(translators["lexical"])["model"]["decoder.head.background.weight_logit"])
    share = 1 / (1 + math.exp(-logit))
    words = words_of(explain("--json", "--top", 99, "--source", SOURCE, TARGET))
    base = np.exp(prior.log_weights)
    special = [prior.symbols.index(name) for name in ("</s>", "<unk>")]
    word_mass = base.sum() - base[special].sum()
    lexical = prior.find(LexicalPart)
    assert lexical is not None
    source = SOURCE.split()
    rows = [dict(lexical.table.row(prior.source_symbols.index(s))) for s in source]
    assert all(rows), "every source word has translations"
    for w in words:
        token = prior.symbols.index(w["word"])
        said = [row.get(token, 0.0) for row in rows]
        translated = [base[token] if w["word"] == "</s>" else word_mass * t for t in said]
        mixed = (1 - share) * base[token] + share * sum(translated) / len(rows)
        assert w["background"] == pytest.approx(mixed, rel=1e-4)
        assert w["background_without_source"] == pytest.approx(base[token], rel=1e-4)
        assert math.log(w["p"]) == pytest.approx(
            math.log(w["background"]) + sum(w["features"].values()) + w["normaliser"], abs=1e-4
        )
        assert {one["position"]: one["p"] for one in w["evidence"]} == pytest.approx(
            {s + 1: t for s, t in enumerate(said) if t > 0}
        )
        assert [one["p"] for one in w["evidence"]] == sorted((t for t in said if t > 0), reverse=True)
        assert all(one["word"] == source[one["position"] - 1] for one in w["evidence"])
    assert any(w["evidence"] for w in words) and words[-1]["evidence"] == []


@pytest.mark.parametrize("model", ["lexical", "transformer"])
def test_attention_is_the_models(model: str, explain: Explain, translators: dict[str, Path]) -> None:
    loaded = load_explainer(str(translators[model]))
    sample = pairs(loaded.task, [TARGET])
    with torch.inference_mode():
        _, extra = loaded.model(**sample["net_input"])
    expected = extra["attn"][0][0]  # shape: (T, L)
    words = words_of(explain("--json", "--top", 99, "--source", SOURCE, TARGET, model=model))
    source = [*SOURCE.split(), "</s>"]
    for w, row in zip(words, expected.tolist(), strict=True):
        assert sum(one["weight"] for one in w["attention"]) == pytest.approx(1.0, abs=1e-4)
        found = sorted(w["attention"], key=lambda one: one["position"])
        assert [one["word"] for one in found] == source
        assert [one["weight"] for one in found] == pytest.approx(row, abs=1e-5)
        assert w["attention"] == sorted(w["attention"], key=lambda one: -one["weight"])


def test_what_a_model_does_not_have_is_null(explain: Explain) -> None:
    words = words_of(explain("--json", "--source", SOURCE, TARGET, model="no attention"))
    for w in words:
        assert (w["attention"], w["evidence"]) == (None, None)
        assert w["background_without_source"] == pytest.approx(w["background"], rel=1e-5)
    text = explain("--source", SOURCE, TARGET, model="no attention").out
    assert "attends to" not in text and "evidence" not in text


# ---- the models' own translations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["lexical", "transformer"])
def test_its_own_translation(
    model: str, explain: Explain, shell: Shell, translation: TranslationWorld, translators: dict[str, Path]
) -> None:
    typed = shell.run(
        "fairseq-interactive", *translation.task_args(MODELS[model][1]), "--path", translators[model], "--beam", 5,
        stdin=SOURCE + "\n",
    )  # fmt: skip
    ((score, words),) = typed.hypotheses()[0]
    (sentence,) = objects(explain("--json", "--source", SOURCE, model=model))
    assert (sentence["source"], sentence["sentence"], sentence["own_translation"]) == (SOURCE, words, True)
    assert sentence["nats_per_word"] == pytest.approx(-score * math.log(2), abs=2e-3)
    done = explain("--source", SOURCE, model=model)
    header, table = done.out.split("\n\n", 1)
    assert " ".join(header.split()) == f"translation (beam 5): {words}"
    assert table == explain("--source", SOURCE, words, model=model).out
    assert max(columns(line) for line in done.out.splitlines()) <= WIDTH


# ---- the table ------------------------------------------------------------------------------------------------------


def test_the_table(explain: Explain) -> None:
    done = explain("--top", 2, "--source", SOURCE, TARGET)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    at = lines.index(next(line for line in lines if line.startswith("chat ")))
    labels = [line.split("  ")[1] for line in lines[at + 1 :] if line.startswith("  ") and line[2] != " "][:6]
    assert labels == ["attends to", "evidence", "predicted", "expected", "its features", "strongest"]
    words = words_of(explain("--json", "--top", 2, "--source", SOURCE, TARGET))
    rows = [line.split()[1:] for line in lines if line.startswith("  evidence ")]
    for w, row in zip(words, rows, strict=True):
        assert row[-2] == "background"
        said, shares = (row[:-2:2], row[1:-2:2]) if w["evidence"] else (row[1:-2], [])
        assert said == [one["word"] for one in w["evidence"]] and (said or row[0] == "none")
        assert [float(p) for p in shares] == pytest.approx([one["p"] for one in w["evidence"]], rel=0.006)
        before, after = map(float, row[-1].split("→"))
        assert before == pytest.approx(w["background_without_source"], rel=0.006)
        assert after == pytest.approx(w["background"], rel=0.006)
    looked = [line.split()[2:] for line in lines if line.startswith("  attends to ")]
    for w, row in zip(words, looked, strict=True):
        assert row[::2] == [one["word"] for one in w["attention"]]
        assert [float(p) for p in row[1::2]] == pytest.approx([one["weight"] for one in w["attention"]], rel=0.006)
    assert max(columns(line) for line in lines) <= WIDTH


def test_a_source_word_that_comes_twice_has_a_number(explain: Explain) -> None:
    text = explain("--top", 99, "--source", TWICE, "le chat voit le mur").out
    assert "el #1 " in text and "el #4 " in text and "el 0" not in text
    assert "tahc #" not in text
    assert max(columns(line) for line in text.splitlines()) <= WIDTH


# ---- words ----------------------------------------------------------------------------------------------------------


def test_words_outside_either_dictionary(explain: Explain) -> None:
    done = explain("--source", "El tahcs </s> el qqqqqqq", "Le chat")
    assert done.code == 0
    assert done.err.splitlines() == [
        "note: 'El' is not in the source dictionary and is read as <unk>; did you mean 'el'?",
        "note: 'tahcs' is not in the source dictionary and is read as <unk>; did you mean 'tahc'?",
        "note: '</s>' is not in the source dictionary and is read as <unk>",
        "note: 'qqqqqqq' is not in the source dictionary and is read as <unk>",
        "note: 'Le' is not in the dictionary and is scored as <unk>; did you mean 'le'?",
    ]
    assert "\nLe (<unk>) " in done.out
    words = words_of(explain("--json", "--top", 99, "--source", "El tahc El", "le"))
    looked = sorted((one["position"], one["word"], one["token"]) for one in words[0]["attention"])
    assert looked == [(1, "El", "<unk>"), (2, "tahc", "tahc"), (3, "El", "<unk>"), (4, "</s>", "</s>")]
    text = explain("--top", 99, "--source", "El tahc El", "le").out
    assert "El #1 (<unk>) 0." in text and "El #3 (<unk>) 0." in text and "tahc 0." in text


# ---- what makes no sense --------------------------------------------------------------------------------------------


def test_a_translation_model_without_a_source(explain: Explain, translators: dict[str, Path]) -> None:
    for arguments in ((), (TARGET,)):
        assert explain(*arguments).error == (
            f"{translators['lexical']} is a translation model and needs --source SENTENCE; add the sentence to "
            "translate"
        )


@pytest.mark.parametrize("source", ["", " \t"])
def test_an_empty_source(explain: Explain, source: str) -> None:
    assert explain("--source", source, TARGET).error == (
        "--source: expected a sentence, found an empty one; write the words to translate"
    )
    assert explain("--source", "-", TARGET).error == (
        "--source -: expected a sentence, found the sign for stdin; write the sentence in quotes"
    )


@pytest.mark.parametrize("model", ["lexical", "transformer"])
def test_more_words_than_the_model_takes(explain: Explain, model: str) -> None:
    for arguments in (("el " * 1024,), ("el " * 1024, TARGET)):
        assert explain("--source", *arguments, model=model).error == (
            "--source 'el el el el' …: expected at most 1,023 words (limit of the model), found 1,024; shorten it"
        )
    assert explain("--source", SOURCE, "le chat " * 600, model=model).error == (
        "translation 'le chat le chat' …: expected at most 1,023 words (limit of the model), found 1,200; shorten it"
    )


NOT_EXPLAINED = "models of other tasks, such as classifiers, cannot be explained"


def test_a_file_or_folder_as_source_is_said(explain: Explain, tmp_path: Path) -> None:
    (path := tmp_path / "text").write_text("el\n", encoding="utf-8")
    said = "the source sentence, but it is also a file; pass its lines one by one, in quotes"
    assert explain("--source", path).err.splitlines()[0] == f"note: {str(path)!r} is explained as {said}"
    said = "a sentence, but it is also a folder; folders belong to --data and --prior"
    assert explain("--source", tmp_path).err.splitlines()[0] == f"note: {str(tmp_path)!r} is explained as {said}"


@pytest.mark.parametrize(
    "part, name", [("model", "lstm"), ("task", "translation"), ("task", "llrnn_language_modeling")]
)
def test_stock_models_and_other_tasks(explain: Explain, changed: Change, part: str, name: str) -> None:
    path = changed(lambda state: state["cfg"][part].update(_name=name))
    found = {"model": "llrnn_lstm", "task": "llrnn_translation"} | {part: name}
    assert explain("--source", SOURCE, path=path).error == (
        f"{path}: expected a log-linear model (llrnn_… of the task llrnn_language_modeling or llrnn_translation), "
        f"found {found['model']!r} of task {found['task']!r}; "
        + ("only a log-linear model has features to explain" if name == "lstm" else NOT_EXPLAINED)
    )
