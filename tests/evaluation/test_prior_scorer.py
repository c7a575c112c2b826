"""Texts under the background of a prior alone: Python, `llrnn score --prior` and `llrnn eval-lm --prior`."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from llrnn_command import llrnn as llrnn
from small_corpus import Llrnn
from small_priors import open_prior

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evaluation.prior_scorer import PriorScorer
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior import EvidenceOptions, Recipe, build_prior
from fairseq_llrnn.prior.part import Part
from fairseq_llrnn.prior.prior import Prior

TEXT = ["le chat dort", "le chat mange la pomme", "la pomme dort", "", "le chien dort le soir", "la souris mange"]
TEST = ["le chien mange la pomme", "", "la souris dort xyzzy le soir", "chat"]
GRAMMAR = "start = ('le' | 'la') ('chat' | 'pomme' | 'chien') ('dort' | 'mange');\n"
BACKGROUNDS = (
    "uniform",
    "unigram",
    "ngram:1",
    "ngram(3, folds=0)",
    "ngram(2, folds=5)",
    "cache:3",
    "0.7 ngram:2 plus 0.3 cache:2",
    "0.5 ngram:2 plus 0.5 cache:2 with weights learned",
    "ngram:2 times cache:2",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.txt").write_text("".join(f"{line}\n" for line in TEXT * 4))
    (tmp_path / "test.txt").write_text("".join(f"{line}\n" for line in TEST))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prior_of(background: str) -> Prior:
    symbols = [*SPECIALS, *sorted({word for line in TEXT for word in line.split()})]
    return build_prior(symbols, Recipe(text="train.txt", background=background))


def by_hand(prior: Prior, line: str) -> list[float]:
    """−log p of each word and the end, from the weights of all words in each state."""
    background = prior.background().bind()
    state, found = background.start(1), []
    for word in [*line.split(), "</s>"]:
        token = prior.symbols.index(word if word in prior.symbols else "<unk>")
        weights = background.view(state).log_weights.double().expand(1, -1)[0]
        found.append(float((weights.logsumexp(0) - weights[token]).detach()))
        state = background.advance(state, torch.tensor([token]))
    return found


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_its_weights_normalised(background: str, place: Path) -> None:
    """Training mode would read the folds of cross-fitted n-grams."""
    prior = prior_of(background)
    rows = PriorScorer(prior, max_tokens=14).surprisals(TEST, unit="nats")
    expected = [value for line in TEST for value in by_hand(prior, line)]
    assert [row.surprisal for row in rows] == pytest.approx(expected, abs=1e-4)
    assert [row.word for row in rows if row.is_unknown] == ["xyzzy"]


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_next_words_have_the_probabilities_of_scores(background: str, place: Path) -> None:
    scorer = PriorScorer(prior_of(background))
    found = scorer.next_words("le chien", 99)
    assert sum(word.probability for word in found) == pytest.approx(1.0, abs=1e-5)
    assert [*found] == sorted(found, key=lambda word: -word.probability)
    of_words = {word.word: word.probability for word in found}
    for word in ("dort", "xyzzy"):
        *_, row, _ = scorer.surprisals([f"le chien {word}"], unit="nats")
        assert of_words["<unk>" if row.is_unknown else word] == pytest.approx(math.exp(-row.surprisal), abs=1e-5)


def test_an_ngram_prior_is_the_ngram_model(place: Path) -> None:
    """Folds of cross-fitting are for training alone."""
    scores = [PriorScorer(prior_of(f"ngram(2, folds={folds})")).score(TEST, unit="nats") for folds in (0, 5)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    better = PriorScorer(prior_of("ngram:2")).score(TEXT), PriorScorer(prior_of("ngram:1")).score(TEXT)
    assert better[0] < better[1]


def test_every_string_of_an_open_vocabulary() -> None:
    prior = open_prior()
    scorer = PriorScorer(prior)
    spelled = [line.log_prob for line in scorer.lines(["le zzz", "le zz"], is_open=True)]
    as_unk = [line.log_prob for line in scorer.lines(["le zzz", "le zz"])]
    assert as_unk[0] == as_unk[1] and spelled[0] < spelled[1] < as_unk[1]
    table = prior.open_words
    assert table is not None
    of_classes = table.log_probs_of(["zzz"])[0] + table.vocabulary.log_shares
    assert spelled[0] - as_unk[0] == pytest.approx(np.logaddexp.reduce(of_classes), abs=1e-4)


@pytest.mark.parametrize(
    ("background", "problem"),
    [
        ("0.5 ngram:2 plus 0.5 cache:2 with weights per position", "has weights that a network chooses at each word"),
        ("ngram:2 times (cache:2 plus unigram with weights per position)", "has weights that a network chooses"),
    ],
)
def test_backgrounds_of_a_network_are_refused(background: str, problem: str, place: Path) -> None:
    with pytest.raises(OptionError, match=f"^prior: expected a background that .*, found one that {problem}.*; train"):
        PriorScorer(prior_of(background))


def test_a_trained_model_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = prior_of("ngram:2")
    monkeypatch.setattr(Part, "needs_fairseq", True)
    with pytest.raises(OptionError, match="found one that reads a trained model; train"):
        PriorScorer(prior)


def test_spelling_needs_an_open_vocabulary(place: Path) -> None:
    advice = r"leave it out, or build the prior from Recipe\(open_vocabulary=OpenOptions\(\)\)$"
    with pytest.raises(OptionError, match=advice):
        PriorScorer(prior_of("unigram")).score(["le"], is_open=True)


def test_a_source_and_a_speller_are_refused() -> None:
    symbols = [*SPECIALS, "le", "chat"]
    recipe = Recipe(
        counts=np.array([0, 0, 2, 1, 3, 2]), source_dictionary=[*SPECIALS, "the"], evidence=EvidenceOptions(("copies",))
    )
    with pytest.raises(OptionError, match="found one that depends on a source sentence; train"):
        PriorScorer(build_prior(symbols, recipe))
    with pytest.raises(OptionError, match="found one that spells unknown words by a network; train"):
        PriorScorer(open_prior("neural"))


# ---- commands -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", ["unigram", "ngram:3", "0.7 ngram:2 plus 0.3 cache:2"])
def test_commands_print_one_figure(background: str, llrnn: Llrnn, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fairseq", None)  # it is not needed
    llrnn("dictionary", "--text", "train.txt", "--out", "dict.txt")
    llrnn("prior", "--dict", "dict.txt", "--count-text", "train.txt", "--background", background, "--out", "prior")
    facts = json.loads(llrnn("score", "--prior", "prior", "--json", "test.txt").out)
    model = fairseq_llrnn.load(prior="prior")
    assert model.score(TEST) == pytest.approx(facts["bits_per_word"])
    assert model.score(TEST, per="token") == pytest.approx(facts["bits_per_token"])
    assert (facts["words"], facts["sentences"], facts["unknown_words"]) == (12, 4, 1)
    rows = llrnn("score", "--prior", "prior", "--per-word", "test.txt").out.splitlines()[1:]
    assert math.fsum(float(row.split("\t")[3]) for row in rows) == pytest.approx(facts["bits"], abs=1e-4)
    rows = llrnn("score", "--prior", "prior", "--per-sentence", "test.txt").out.splitlines()[1:]
    assert math.fsum(float(row.split("\t")[2]) for row in rows) == pytest.approx(facts["bits"], abs=1e-4)
    write_data(place, TEST)
    printed = llrnn("eval-lm", "data", "--prior", "prior").out.splitlines()
    per_token = facts["bits_per_token"]
    assert printed[0] == f"Loss (base 2): {per_token:.4f}, Perplexity: {2**per_token:.2f}"
    assert printed[1] == "Bits per character: not defined, because 1 words are <unk>; see `llrnn score --open`"
    assert printed[2] == f"prior {facts['prior']}"


def write_data(place: Path, lines: list[str], subset: str = "test") -> None:
    """A data folder as fairseq-preprocess writes it."""
    (place / "data").mkdir(exist_ok=True)
    (place / "data" / "dict.txt").write_bytes((place / "dict.txt").read_bytes())
    symbols = [*SPECIALS, *(row.split()[0] for row in (place / "dict.txt").read_text().splitlines())]
    sentences = [[*(symbols.index(word) if word in symbols else 3 for word in line.split()), 2] for line in lines]
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int32)
    tokens = np.concatenate([np.array(sentence, dtype=np.uint16) for sentence in sentences])
    tokens.tofile(place / "data" / f"{subset}.bin")
    with open(place / "data" / f"{subset}.idx", "wb") as file:
        np.array([0x4D, 0x4D, 0x49, 0x44, 0x49, 0x44, 0x58, 0, 0], dtype=np.uint8).tofile(file)
        file.write((1).to_bytes(8, "little") + bytes([8]) + len(lengths).to_bytes(8, "little"))
        lengths.tofile(file)
        (2 * (lengths.astype(np.int64).cumsum() - lengths)).tofile(file)


def test_a_prior_in_a_data_folder_has_its_training_words(llrnn: Llrnn, place: Path) -> None:
    (place / "dict.txt").write_text("le 3\nchat 2\nchien 1\n")
    write_data(place, ["le chat", "le"], "train")
    llrnn("prior", "--dict", "data/dict.txt", "--count-text", "train.txt", "--out", "data/prior")

    def seen() -> list[bool | None]:
        return [row.is_seen for row in fairseq_llrnn.load(prior="data/prior").surprisals(["chat chien xyzzy"])]

    assert seen() == [True, False, False, True]
    (place / "test.txt").write_text("chat chien xyzzy\n")
    rows = llrnn("score", "--prior", "data/prior", "--per-word", "test.txt").out.splitlines()
    assert [row.split("\t")[4] for row in rows] == ["is_seen", "True", "False", "False", "True"]
    (place / "data" / "dict.txt").write_text("le 3\nchat 2\nsoir 1\n")
    assert seen() == [None] * 4


def test_a_text_and_a_dictionary_that_the_data_lack(llrnn: Llrnn, place: Path) -> None:
    (place / "dict.txt").write_text("le 3\nchat 2\n")
    write_data(place, TEST)
    llrnn("prior", "--dict", "dict.txt", "--count-text", "train.txt", "--out", "prior")
    found = llrnn("eval-lm", "data", "--prior", "prior", "--gen-subset", "valid")
    found.refuses("data: expected the data set 'valid', found test; choose one of them (…), or preprocess it")
    write_data(place, ["le"] * 3, "valid")
    printed = llrnn("eval-lm", "data", "--prior", "prior", "--gen-subset", "valid").out
    assert "Bits per character: 1." in printed  # the other text has <unk>, so that it is not defined
    (place / "data" / "dict.txt").write_text("le 3\nchien 2\n")
    found = llrnn("eval-lm", "data", "--prior", "prior")
    found.refuses("the prior was made for another dictionary than data/dict.txt: …")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("score", "test.txt"), "expected --path MODEL, or --prior PRIOR to score by its background alone, found …"),
        (("score", "--prior", "p", "--data", "d", "test.txt"), "--data d: …no --path; add --path…"),
        (("score", "--prior", "p", "test.txt"), "--prior p: expected a prior …"),
        (("eval-lm", "data"), "without --path, expected DATA --prior PRIOR, …: …arguments are required: --prior; …"),
        (("eval-lm", "data", "--prior", "p", "--beam", "3"), "without --path, expected …: …--beam 3; correct this, …"),
    ],
)
def test_messages(args: tuple[str, ...], message: str, llrnn: Llrnn, place: Path) -> None:
    llrnn(*args).refuses(message)


def test_load_needs_one_of_them(place: Path) -> None:
    for arguments in ({}, {"data": "data"}, {"data": "data", "prior": "prior"}):
        with pytest.raises(OptionError, match=r"expected the path of a model, or a prior alone; pass load\(path\)"):
            fairseq_llrnn.load(**arguments)


@pytest.mark.slow
@pytest.mark.real_data("ud-hungarian-szeged")
def test_kneser_ney_on_hungarian(llrnn: Llrnn, place: Path) -> None:
    """The perplexities of an independent program, on the same tokens and dictionary."""
    data = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "ud-hungarian-szeged"
    for part in ("train", "dev", "test"):
        treebank = data / f"{part}.conllu.gz"
        llrnn("text", "--conllu", treebank, "--words", "surface", "--lower", "--out", f"{part}.txt")
    llrnn("dictionary", "--text", "train.txt", "dev.txt", "test.txt", "--out", "dict.txt")
    prior = ("prior", "--dict", "dict.txt", "--count-text", "train.txt")
    for order, perplexity in ((1, 1812), (2, 1233), (3, 1226)):
        llrnn(*prior, "--background", f"ngram:{order}", "--out", f"p{order}")
        facts = json.loads(llrnn("score", "--prior", f"p{order}", "--json", "test.txt").out)
        assert 2 ** facts["bits_per_token"] == pytest.approx(perplexity, abs=1)


def test_scores_that_are_not_finite_are_an_error(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = PriorScorer(prior_of("unigram"))
    monkeypatch.setattr(scorer, "predict", lambda previous: lambda target: torch.full(target.shape, math.nan))
    with pytest.raises(DataError, match="^the model: expected finite scores, found NaN or infinity; look for weights"):
        list(scorer.lines(["le chat"]))
