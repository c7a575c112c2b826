"""`llrnn mrf train`, `score` and `neighbours`: on the command line, stopped and resumed, with bad input."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.recipe import Recipe
from llrnn_research.markov_field import training
from llrnn_research.markov_field.folder import JSON_FILE, TRAINING_FILE
from llrnn_research.markov_field.learning import Progress
from llrnn_research.markov_field.model import MarkovField
from llrnn_research.markov_field.training import FieldOptions, train

Llrnn = Callable[..., tuple[int, str, str]]


def test_train_score_neighbours(llrnn: Llrnn, field_text: Path, tmp_path: Path) -> None:
    out = tmp_path / "field"
    valid = tmp_path / "valid.txt"
    valid.write_text("le chat vert\n", encoding="utf-8")
    code, shown, said = llrnn(
        "mrf", "train", "--text", field_text, "--valid", valid, "--words", 7, "--width", 3, "--iterations", 5, "--out",
        out,
    )  # fmt: skip
    assert code == 0, said
    assert shown == f"written to {out}\n"
    assert "   5  " in said and "nats a token, valid -" in said
    assert "note: --text: 1 lines without words, which are left out" in said
    code, shown, _ = llrnn("mrf", "score", "--model", out, "--json", stdin="le chat voit\n\nune licorne\n")
    assert code == 0
    facts = json.loads(shown)
    assert (facts["words"], facts["unknown_words"], facts["sentences"], facts["tokens"]) == (5, 1, 2, 9)
    assert facts["conditional_bits_per_word"] < facts["bound_bits_per_word"]
    code, shown, said = llrnn("mrf", "score", "--model", out, stdin="le chat voit\n\n")
    assert "perplexity, left to right, with ends" in shown
    assert said == "note: 1 line without words, which are left out\n"
    idle = llrnn("mrf", "score", "--model", out, "--per-word", "--json", stdin="le chat\n")
    assert idle[0] == 2 and "--json: --per-word prints a tab-separated table; remove --per-word or --json" in idle[2]
    code, shown, _ = llrnn("mrf", "score", "--model", out, "--per-word", stdin="le chat\nmer\n")
    rows = [line.split("\t") for line in shown.splitlines()]
    assert [row[:3] for row in rows] == [
        ["line", "place", "word"],
        ["1", "1", "le"],
        ["1", "2", "chat"],
        ["2", "1", "mer"],
    ]
    code, shown, _ = llrnn("mrf", "neighbours", "--model", out, "--number", 2, "le", "chat")
    assert [line.split("\t")[0] for line in shown.splitlines()] == ["le", "chat"]
    assert all(len(line.split("\t")) == 3 for line in shown.splitlines())


def test_scores_are_those_of_the_model(field_folder: Path) -> None:
    """Sums over words against p(word | neighbours) one at a time; the bound against both."""
    field = MarkovField.load(str(field_folder))
    text = field.words.text_of([["le", "chat"], ["mer"]])
    score = field.score(text)
    assert score.conditionals == pytest.approx(float(field.conditionals(text).sum()))
    assert score.bound < score.left_to_right + 1.0
    assert score.tokens == 3 + 2 * 2
    whole = field.score(field.words.text_of([["le", "chat"], [], ["mer"]]))
    assert whole == score


@pytest.mark.parametrize("form", ["explicit", "urw", "uvw"])
def test_every_form_trains_and_is_read_again(form: str, llrnn: Llrnn, field_text: Path, tmp_path: Path) -> None:
    out = tmp_path / "field"
    code, _, said = llrnn(
        "mrf", "train", "--text", field_text, "--form", form, "--order", 1, "--iterations", 3, "--out", out
    )
    assert code == 0, said
    assert llrnn("mrf", "score", "--model", out, stdin="le chat\n")[0] == 0
    code, _, said = llrnn("mrf", "neighbours", "--model", out, "chat")
    assert (code == 2) == (form == "explicit")
    assert form != "explicit" or "explicit potentials; give one of low rank, trained e.g. with --form uw" in said


def test_nested_and_pseudo_likelihood(llrnn: Llrnn, field_text: Path, tmp_path: Path) -> None:
    for name, options in (("nested", ("--method", "nested")), ("pseudo", ("--objective", "pseudo-likelihood"))):
        code, _, said = llrnn(
            "mrf", "train", "--text", field_text, *options, "--width", 2, "--iterations", 2, "--out", tmp_path / name
        )
        assert code == 0, said


# ---- stopped, and resumed -----------------------------------------------------------------------------------------


class Stop(Exception):
    pass


def test_a_stopped_training_goes_on(field_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SAVE_EVERY", 0.0)
    options = FieldOptions([str(field_text)], width=2, words=6, iterations=8, penalty=0.01)
    whole, _ = train(options, str(tmp_path / "whole"))
    seen: list[int] = []

    def stop(progress: Progress) -> None:
        if progress.iteration == 5:
            raise Stop

    with pytest.raises(Stop):
        train(options, str(tmp_path / "stopped"), stop)
    assert (tmp_path / "stopped" / TRAINING_FILE).exists()
    assert MarkovField.load(str(tmp_path / "stopped")).rho is None  # it can be used as it is
    made, _ = train(options, str(tmp_path / "stopped"), lambda progress: seen.append(progress.iteration))
    assert seen == [5, 6, 7, 8]
    assert all(torch.equal(made.parameters[name], whole.parameters[name]) for name in whole.parameters)
    assert not (tmp_path / "stopped" / TRAINING_FILE).exists()


def test_another_training_in_its_place_is_refused(llrnn: Llrnn, field_text: Path, tmp_path: Path) -> None:
    out, start = tmp_path / "field", ("mrf", "train", "--text", field_text, "--iterations", 2, "--width")
    assert llrnn(*start, 2, "--out", out)[0] == 0
    assert "found one with another --width; give another --out" in llrnn(*start, 3, "--out", out)[2]
    assert "this training has ended; give another --out" in llrnn(*start, 2, "--out", out)[2]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    assert "expected a free name or a field" in llrnn(*start, 2, "--out", tmp_path / "mine")[2]
    (out / "thesis.txt").write_text("all of it")
    assert "expected a free name or a field" in llrnn(*start, 3, "--out", out)[2]
    assert (tmp_path / "mine" / "thesis.txt").exists() and (out / "thesis.txt").exists()


# ---- rows of features ---------------------------------------------------------------------------------------------


def test_a_field_of_a_priors_features(llrnn: Llrnn, field_text: Path, tmp_path: Path) -> None:
    """Words of one signature differ by their share of it."""
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *"le la un une chat mer voit vert verte".split()]
    lexicon = {"le": {"P:D": 1.0}, "la": {"P:D": 1.0}, "chat": {"P:N": 1.0}, "mer": {"P:N": 1.0}, "voit": {"P:V": 1.0}}
    prior = build_prior(symbols, Recipe(text=str(field_text), words=LexiconOptions(lexicon=lexicon), top_words=0))
    prior.save(tmp_path / "prior")
    out = tmp_path / "field"
    code, _, said = llrnn(
        "mrf", "train", "--text", field_text, "--prior", tmp_path / "prior", "--width", 2, "--iterations", 5, "--out",
        out,
    )  # fmt: skip
    assert code == 0, said
    field = MarkovField.load(str(out))
    assert field.form.size < len(symbols) - 2
    le, la = (field.words.index[word] for word in ("le", "la"))
    assert field.words.row_of[le] == field.words.row_of[la]
    text = field.words.text_of([["le", "chat"], ["la", "chat"]])
    found = field.conditionals(text).tolist()
    weights = prior.log_weights
    assert found[0] - found[2] == pytest.approx(weights[le] - weights[la])
    assert llrnn("mrf", "neighbours", "--model", out, "--number", 1, "le")[1] == "le\tla\n"


def test_a_prior_without_mass_for_ends_says_so(llrnn: Llrnn, field_text: Path, tmp_path: Path) -> None:
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "le", "chat"]
    weights = tmp_path / "weights.tsv"
    weights.write_text("le\t1\nchat\t1\n", encoding="utf-8")
    prior = build_prior(symbols, Recipe(background=str(weights), top_words=0))
    prior.save(tmp_path / "prior")
    code, _, said = llrnn(
        "mrf", "train", "--text", field_text, "--prior", tmp_path / "prior", "--out", tmp_path / "out"
    )
    assert code == 2
    assert "expected a background with a weight for </s>, found none" in said


# ---- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--order", 0), "--order 0: expected a number of at least 1"),
        (("--width", 0), "--width 0: expected a number of at least 1"),
        (("--words", 0), "--words 0: expected a number of at least 1"),
        (("--iterations", 0), "--iterations 0: expected a number of at least 1"),
        (("--penalty", -1), "--penalty -1.0: expected a number from 0 to 1,000,000, e.g. 0.1"),
        (("--memory", 0), "--memory 0: expected a number of GiB above 0"),
        (("--seed", 2**63), "--seed 9223372036854775808: expected a number from 0 to 9,223,372,036,854,775,807"),
        (("--form", "explicit", "--width", 50), "--width 50: it is for rows, and --form explicit has none"),
        (("--form", "explicit", "--seed", 7), "--seed 7: it is for rows, and --form explicit has none"),
        (("--objective", "pseudo-likelihood", "--method", "both"), "--method both: it belongs to --objective bound"),
        (("--near", 3), "--near: it needs --conllu; use --conllu instead of --text"),
        (("--conllu", "x"), "expected --text for a field of words, or --conllu for a tagger, found both"),
        (("--prior", "p", "--words", 3), "--words: not possible with --prior, which defines the words"),
        (("--form", "explicit", "--prior", "p"), "p: expected a prior"),
    ],
)
def test_options_that_make_no_sense(
    options: tuple[object, ...], message: str, llrnn: Llrnn, field_text: Path, tmp_path: Path
) -> None:
    code, _, said = llrnn("mrf", "train", "--text", field_text, "--out", tmp_path / "out", *options)
    assert code == 2
    assert said.startswith("llrnn: error: ") and message in said
    assert len(said.splitlines()) == 1


def test_too_many_words_for_pairs_of_them_say_what_memory_they_take(
    llrnn: Llrnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "many.txt"
    text.write_text("\n".join(f"word{number}" for number in range(3000)) + "\n", encoding="utf-8")
    monkeypatch.setattr(training, "_free_memory", lambda: 1 << 30)
    code, _, said = llrnn(
        "mrf", "train", "--text", text, "--words", 3000, "--form", "explicit", "--out", tmp_path / "out"
    )
    assert code == 2
    assert "potentials of 3,002 words and order 2, their gradients and 7 steps of L-BFGS take 2.7 GiB" in said
    assert "found 1.0 GiB free; choose fewer --words, or a form of low rank (uw)" in said


def test_a_text_without_words(llrnn: Llrnn, field_folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n", encoding="utf-8")
    code, _, said = llrnn("mrf", "train", "--text", empty, "--out", tmp_path / "out")
    assert (code, "expected a sentence a line, found no words" in said) == (2, True)
    code, _, said = llrnn("mrf", "score", "--model", field_folder, stdin="\n\n")
    assert (code, "expected a text on stdin, a sentence a line, found no word" in said) == (2, True)


def test_words_that_the_field_does_not_know(llrnn: Llrnn, field_folder: Path) -> None:
    code, _, said = llrnn("mrf", "neighbours", "--model", field_folder, "licorne")
    assert (code, "expected words of the field, found 'licorne'; give other words" in said) == (2, True)
    assert "--number 0: expected" in llrnn("mrf", "neighbours", "--model", field_folder, "--number", 0, "le")[2]


def damaged(folder: Path, place: Path, change: Callable[[dict], None]) -> str:  # type: ignore[type-arg]
    """A copy whose field.json is changed."""
    shutil.copytree(folder, place)
    description = json.loads((place / JSON_FILE).read_text(encoding="utf-8"))
    change(description)
    (place / JSON_FILE).write_text(json.dumps(description), encoding="utf-8")
    return str(place)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=9), "expected version 1, found 9"),
        (lambda d: d.update(kind="tags"), "expected a field of words, found one of 'tags'"),
        (lambda d: d.update(format="x"), "expected the description of a field, found something else"),
        (lambda d: d.update(arrays_sha256="0"), "found damage \\(checksum mismatch\\)"),
        (lambda d: d.update(width=4), "parameter/U: expected float64, 9 × 4, found float64 of the shape \\(9, 3\\)"),
        (lambda d: d.update(order="two"), "invalid content \\(the order 'two'"),
        (lambda d: d.pop("form"), "invalid content"),
        (lambda d: d.update(symbols=["le"] * 9), "invalid content \\(repeated words"),
        (lambda d: d.update(form="dense"), "invalid content \\(--form dense"),
    ],
)
def test_a_broken_folder(field_folder: Path, tmp_path: Path, change: Callable[[dict], None], message: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(DataError, match=message):
        MarkovField.load(damaged(field_folder, tmp_path / "field", change))


def test_no_folder_and_cut_files(field_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected a field .a folder with field.json., found none; make one with"):
        MarkovField.load(str(tmp_path / "nowhere"))
    place = tmp_path / "cut"
    shutil.copytree(field_folder, place)
    whole = (place / "arrays.npz").read_bytes()
    (place / "arrays.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="arrays.npz: expected the arrays of a field, found damage"):
        MarkovField.load(str(place))
    (place / JSON_FILE).write_text("{")
    with pytest.raises(DataError, match="expected JSON, found damage"):
        MarkovField.load(str(place))


def test_what_is_saved_is_what_is_read(field_folder: Path, tmp_path: Path) -> None:
    field = MarkovField.load(str(field_folder))
    field.save(str(tmp_path / "again"))
    assert (tmp_path / "again" / "arrays.npz").read_bytes() == (field_folder / "arrays.npz").read_bytes()
    assert field.rho is not None and np.isfinite(field.rho.numpy()).all()
