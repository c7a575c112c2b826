"""Scores of whole sentences: those of fairseq's own scorer and of `llrnn explain`, in any batches; what is refused."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import LanguagePairDataset
from shell import TRUSTING, Shell
from tiny_world import EVERY_SENTENCE, World, make_prior, read_checkpoint
from translation_world import SIZES, TranslationWorld, stock_args, train_stock_lm

from fairseq_llrnn.errors import DataError, LLRNNError, OptionError
from fairseq_llrnn.plugin.compat.loading import RECORDED, Places
from fairseq_llrnn.plugin.scoring.explainer import load_explainer
from fairseq_llrnn.plugin.scoring.sentences import (
    IMPOSSIBLE,
    TOO_LONG,
    UNKNOWN,
    UNREAD,
    WORDS,
    Scorer,
    load_scorer,
)
from fairseq_llrnn.prior.prior import Prior

STOCK = {
    "transformer": [*SIZES["llrnn_transformer"], "--max-target-positions", "9", "--max-source-positions", "9"],
    "lstm": ["--encoder-embed-dim", "8", "--decoder-embed-dim", "8", "--encoder-hidden-size", "8"],
}
LINES = ["le chat voit la mer", "une pomme verte tient bien", "", "le roi", "le chat voit la mer", "bien"]

Change = Callable[[Path, Callable[[dict[str, Any]], None]], Path]


@pytest.fixture(scope="session")
def checkpoints(shell: Shell, translation: TranslationWorld) -> dict[str, Path]:
    """Translation models, ours and fairseq's, barely trained."""
    found = {}
    for arch in SIZES:
        found[arch] = translation.place / f"scoring-{arch}"
        shell.run("fairseq-train", *translation.train_args(arch, save_dir=found[arch]), "--max-epoch", 1)
    for arch, options in STOCK.items():
        found[arch] = translation.place / f"scoring-stock-{arch}"
        more = (*options, "--max-epoch", 1, "--skip-invalid-size-inputs-valid-test")
        shell.run("fairseq-train", *stock_args(translation.data, found[arch], arch), *more)
    return {name: place / "checkpoint_last.pt" for name, place in found.items()}


@pytest.fixture
def changed(tmp_path: Path) -> Change:
    """A copy of a checkpoint in which something was changed."""

    def run(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
        state = read_checkpoint(path)
        change(state)
        torch.save(state, tmp_path / "changed.pt")
        return tmp_path / "changed.pt"

    return run


# ---- the figures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SIZES, *STOCK])
def test_the_same_as_fairseqs_scorer(
    name: str, shell: Shell, translation: TranslationWorld, checkpoints: dict[str, Path]
) -> None:
    ours = name in SIZES
    task = translation.task_args() if ours else [str(translation.data), "--task", "translation", "--cpu"]
    scored = shell.run(
        "fairseq-generate", *task, "--path", checkpoints[name], "--gen-subset", "test", "--score-reference",
        "--num-workers", 0, "--batch-size", 5, *EVERY_SENTENCE, variables=TRUSTING,
    )  # fmt: skip
    expected = scored.nats()
    sources, targets = translation.source("test"), translation.world.text("test")
    assert len(expected) == len(targets)
    scorer = load_scorer(str(checkpoints[name]), 200)
    assert scorer.languages == ("src", "tgt")
    found = scorer.score(sources, targets)
    assert found == pytest.approx([expected[i] for i in range(len(targets))], abs=2e-3)
    words = sum(len(line.split()) for line in [*sources, *targets])
    assert scorer.notes == {WORDS: words, UNKNOWN: 0, TOO_LONG: 0}


@pytest.mark.parametrize("name", [*SIZES, *STOCK])
@pytest.mark.parametrize("max_tokens", [1, 12, 10_000])
def test_batches_make_no_difference(name: str, max_tokens: int, checkpoints: dict[str, Path]) -> None:
    scorer = load_scorer(str(checkpoints[name]), max_tokens)
    sources = ["rem al", "el tahc", "", "ior el tiov ehcop", "reih", "neib"]
    one_by_one = [scorer.score([s], [h])[0] for s, h in zip(sources, LINES, strict=True)]
    assert scorer.score(sources, LINES) == pytest.approx(one_by_one, abs=1e-4)
    assert len(set(one_by_one)) == len(LINES), "the source counts"
    assert scorer.score([], []) == []
    with pytest.raises(ValueError):
        scorer.score(None, LINES)


def test_terms_behind_a_source_are_no_words_of_it(checkpoints: dict[str, Path]) -> None:
    for name in ("llrnn_lstm", "transformer"):
        scorer = load_scorer(str(checkpoints[name]), 200)
        with_term, alone = scorer.score(["el tahc\ttahc => chat", "el tahc"], ["le chat", "le chat"])
        assert with_term == alone and scorer.notes == {WORDS: 8, UNKNOWN: 0, TOO_LONG: 0, UNREAD: 1}


def plainly(scorer: Scorer, source: str, hypothesis: str) -> float:
    """The model's probabilities of all words, for one pair by itself, as fairseq batches it."""
    task = scorer.task
    encoded = [
        dictionary.encode_line(text, add_if_not_exist=False).long()
        for dictionary, text in ((task.source_dictionary, source), (task.target_dictionary, hypothesis))
    ]
    dataset = LanguagePairDataset(
        encoded[:1], [len(encoded[0])], task.source_dictionary, encoded[1:], [len(encoded[1])], task.target_dictionary
    )
    sample = dataset.collater([dataset[0]])
    with torch.inference_mode():
        log_probs = scorer.model.get_normalized_probs(scorer.model(**sample["net_input"]), log_probs=True)
    return float(log_probs.gather(2, sample["target"].unsqueeze(2)).double().sum())


@pytest.mark.parametrize("name", [*SIZES, *STOCK])
@pytest.mark.parametrize("max_tokens", [60, 10_000])
def test_a_source_is_encoded_once(
    name: str, max_tokens: int, checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = load_scorer(str(checkpoints[name]), max_tokens)
    sources = ["rem al", "el tahc tiov al rem", "neib"]
    pairs = [(source, line) for line in [*LINES, *(line + " vert" for line in LINES)] for source in sources]
    seen: list[int] = []
    encode = scorer.model.encoder.forward_torchscript

    def counting(net_input: dict[str, torch.Tensor]) -> Any:
        seen.append(len(net_input["src_tokens"]))
        return encode(net_input)

    monkeypatch.setattr(scorer.model.encoder, "forward_torchscript", counting)
    found = scorer.score([source for source, _ in pairs], [line for _, line in pairs])
    assert sum(seen) == len(sources)
    assert found == pytest.approx([plainly(scorer, *pair) for pair in pairs], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("max_tokens", [1, 12, 10_000])
def test_a_language_model_scores_as_explain_does(trained: Path, max_tokens: int) -> None:
    path = str(trained / "checkpoint_best.pt")
    scorer = load_scorer(path, max_tokens)
    assert scorer.languages is None
    loaded = load_explainer(path)
    expected = [sum(e.log_prob for e in loaded.explain(line.split(), 1)) for line in LINES]
    assert scorer.score(None, LINES) == pytest.approx(expected, abs=1e-4)
    assert scorer.score(["whatever"] * len(LINES), LINES) == pytest.approx(expected, abs=1e-4)
    assert scorer.notes == {WORDS: 2 * sum(len(line.split()) for line in LINES), UNKNOWN: 0, TOO_LONG: 0}


def test_a_stock_language_model(shell: Shell, world: World, tmp_path: Path) -> None:
    more = ("--sample-break-mode", "eos", "--tokens-per-sample", 16, "--max-epoch", 1, "--max-update", 0)
    path = train_stock_lm(shell, world.data, tmp_path, *more, width=16)
    evaluated = shell.run(
        "fairseq-eval-lm", world.data, "--path", path, "--gen-subset", "test1", "--sample-break-mode", "eos", "--cpu",
        "--max-tokens", 100,
    )  # fmt: skip
    base_2 = float((evaluated.out + evaluated.err).rpartition("Loss (base 2): ")[2].split(",")[0])
    lines = world.text("test1")
    scorer = load_scorer(str(path), 50)
    tokens = sum(len(line.split()) + 1 for line in lines)
    assert -sum(scorer.score(None, lines)) / tokens == pytest.approx(base_2 * math.log(2), abs=1e-3)
    assert scorer.score(None, ["le chat " * 8 + "voit"]) == [-math.inf]
    assert scorer.notes[TOO_LONG] == 1


# ---- what cannot be scored ------------------------------------------------------------------------------------------


def test_unknown_words_and_symbols_that_are_no_words(checkpoints: dict[str, Path]) -> None:
    scorer = load_scorer(str(checkpoints["llrnn_lstm"]), 100)
    scores = scorer.score(["el tahc"] * 5, [f"le {word}" for word in ("zzz", "<unk>", "<pad>", "</s>", "<s>")])
    assert scores == pytest.approx([scores[0]] * 5, abs=1e-5)
    assert math.isfinite(scores[0])
    assert scorer.notes[UNKNOWN] == 4  # <unk> itself is what the system wrote
    assert scorer.notes[WORDS] == 20


@pytest.mark.parametrize(("source", "target"), [(8, 9), (9, 8)])
def test_sentences_that_are_too_long(checkpoints: dict[str, Path], source: int, target: int) -> None:
    scorer = load_scorer(str(checkpoints["transformer"]), 100)
    scores = scorer.score(["el " * source, "el " * 8], ["le " * target, "le " * 8])
    assert scores[0] == -math.inf and math.isfinite(scores[1])
    assert (scorer.notes[TOO_LONG], scorer.notes[IMPOSSIBLE]) == (1, 0)


def test_words_that_the_background_forbids(
    shell: Shell, world: World, trained: Path, changed: Change, tmp_path: Path
) -> None:
    prior = Prior.load(world.prior("prior"))
    rows = [f"{w}\t1\n" for w, b in zip(prior.symbols, prior.log_weights, strict=True) if b > -math.inf and w != "mer"]
    (tmp_path / "weights.tsv").write_text("".join(rows), encoding="utf-8")
    out = tmp_path / "without_mer"
    make_prior(shell, world, world.data, out, "--background", tmp_path / "weights.tsv")
    fingerprint = torch.tensor(list(bytes.fromhex(Prior.load(out).fingerprint)), dtype=torch.uint8)

    def change(state: dict[str, Any]) -> None:
        state["model"]["decoder.head.prior_fingerprint"] = fingerprint
        state["cfg"]["task"]["prior"] = str(out)

    scorer = load_scorer(str(changed(trained / "checkpoint_best.pt", change)), 100)
    scores = scorer.score(None, ["le chat voit la mer", "le chat voit la tour"])
    assert scores[0] == -math.inf and math.isfinite(scores[1])
    assert (scorer.notes[TOO_LONG], scorer.notes[IMPOSSIBLE]) == (0, 1)


@pytest.mark.parametrize("name", [*SIZES, *STOCK])
def test_scores_that_are_not_finite_are_no_impossible_sentences(name: str, checkpoints: dict[str, Path]) -> None:
    """The vector of a source word is NaN. Sentences without this word have scores."""
    scorer = load_scorer(str(checkpoints[name]), 200)
    words = scorer.task.source_dictionary
    table = next(
        part for part in scorer.model.encoder.modules()
        if isinstance(part, torch.nn.Embedding) and part.num_embeddings == len(words)
    )  # fmt: skip
    with torch.no_grad():
        table.weight[words.index("tahc")] = math.nan
    assert math.isfinite(scorer.score(["rem al"], ["la mer"])[0])
    message = (
        "^the model: expected finite scores, found NaN or infinity; look for weights and hidden states of the network "
        "that are not finite, or compute in float32, as float16 overflows$"
    )
    for sources in (["el tahc"], ["rem al", "el tahc"]):
        with pytest.raises(DataError, match=message):
            scorer.score(sources, ["la mer"] * len(sources))
        with pytest.raises(DataError, match=message):
            list(scorer.token_scores(sources, ["la mer"] * len(sources)))
    assert scorer.notes[IMPOSSIBLE] == 0


# ---- checkpoints ----------------------------------------------------------------------------------------------------


def failure(path: Path, places: Places = RECORDED) -> LLRNNError:
    with pytest.raises(LLRNNError) as error:
        load_scorer(str(path), 100, places)
    return error.value


def test_a_checkpoint_of_another_task(checkpoints: dict[str, Path], changed: Change) -> None:
    def change(state: dict[str, Any]) -> None:
        state["cfg"]["task"]["_name"] = "masked_lm"

    path = changed(checkpoints["llrnn_lstm"], change)
    assert str(failure(path)) == (
        f"{path}: expected a language or translation model of the task language_modeling or llrnn_language_modeling or "
        "translation or llrnn_translation, found 'llrnn_lstm' of task 'masked_lm'; only these give the probability of "
        "a sentence"
    )


def test_a_model_that_begins_with_bos(trained: Path, changed: Change) -> None:
    def change(state: dict[str, Any]) -> None:
        state["cfg"]["task"]["add_bos_token"] = True

    path = changed(trained / "checkpoint_best.pt", change)
    assert "a model that was trained with --add-bos-token cannot score; use another one" in str(failure(path))


def test_a_prior_for_a_model_that_takes_none(checkpoints: dict[str, Path], translation: TranslationWorld) -> None:
    path = checkpoints["transformer"]
    error = failure(path, Places(prior="somewhere"))
    assert isinstance(error, OptionError) and str(error) == (
        f"--prior somewhere: expected a model that was trained with a prior, found {path}, which was not; remove "
        "--prior"
    )
