"""`fairseq_llrnn.load` and `llrnn score` of folders of save_pretrained."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import fairseq_llrnn
from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.cli.main import main
from fairseq_llrnn.errors import DataError, LLRNNError, OptionError
from fairseq_llrnn.prior import EvidenceOptions, Recipe, TranslationOptions, build_prior

transformers = pytest.importorskip("transformers")
from small_transformers import byte_level, network  # noqa: E402

from fairseq_llrnn import LogLinearForCausalLM, LogLinearForSeq2SeqLM  # noqa: E402
from fairseq_llrnn.huggingface import CausalScorer  # noqa: E402

LINES = ["le chat dort .", "", "la xyzzy .", "le le"]
WITHOUT_FAIRSEQ = """
import sys
for name in ("fairseq", "fairseq_cli", "fairseq_llrnn.plugin"):
    sys.modules[name] = None
from fairseq_llrnn.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def log_linear(tmp_path: Path, **settings: Any) -> LogLinearForCausalLM:
    text = tmp_path / "train.txt"
    text.write_text("le chat dort .\nla table dort .\n", encoding="utf-8")
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *"le la chat table dort .".split()]
    prior = build_prior(symbols, Recipe(text=text, top_words="all", suffixes=2, **settings))
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=12)
    return LogLinearForCausalLM.from_config(config, prior).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log-linear model over words, with a background that depends on the context."""
    place = tmp_path_factory.mktemp("log-linear")
    log_linear(place, background="ngram:2").save_pretrained(place / "model")
    return place / "model"


def by_hand(model: LogLinearForCausalLM, line: str) -> list[float]:
    """−log p of the words of a line and of its end, by the head."""
    targets = model.head.encode([line])
    previous = model.head.previous(targets)
    with torch.inference_mode():
        hidden = model.model(input_ids=previous).last_hidden_state
        loss = model.head.loss(hidden, targets, previous=previous, reduction="none")
    return loss[0].tolist()


def test_a_log_linear_model_is_read_and_scored(folder: Path) -> None:
    model: Any = fairseq_llrnn.load(folder)
    rows = model.surprisals(LINES, unit="nats")
    assert [row.surprisal for row in rows] == pytest.approx(
        [nats for line in LINES for nats in by_hand(model.model, line)], abs=1e-5
    )
    assert [row.word for row in rows if row.is_unknown] == ["xyzzy"] and {row.is_seen for row in rows} == {None}
    total = math.fsum(row.surprisal for row in rows)
    assert model.score(LINES) == pytest.approx(total / math.log(2) / 9)
    assert model.score(LINES, per="token", unit="nats") == pytest.approx(total / 13)
    of_model = model.model  # which has the same methods
    assert of_model.surprisals(LINES, unit="nats") == rows and of_model.score(LINES) == model.score(LINES)
    pair = LINES[0], LINES[2]
    found = model.next_words("le chat", 99)
    assert found == of_model.next_words("le chat", 99)
    assert sum(word.probability for word in found) == pytest.approx(1.0, abs=1e-5)
    probability = {word.word: word.probability for word in found}["dort"]
    assert -math.log(probability) == pytest.approx(by_hand(of_model, "le chat dort")[2], abs=1e-4)
    found = of_model.minimal_pairs(*([line] for line in pair))
    assert found.pairs[0][:2] == pytest.approx([-sum(by_hand(of_model, line)) for line in pair])


def test_the_command_needs_no_fairseq(folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in LINES))
    command = [sys.executable, "-c", WITHOUT_FAIRSEQ, "score", "--path", str(folder), str(text), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts, model = json.loads(done.stdout), fairseq_llrnn.load(folder)
    for per in ("word", "character", "token"):
        assert facts[f"bits_per_{per}"] == pytest.approx(model.score(LINES, per=per))
    assert facts["prior"] == model.prior and facts["unknown_words"] == 1 and facts["empty_lines"] == 1  # type: ignore[union-attr]
    assert "Loading weights" not in done.stderr


def test_tables_of_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES))
    assert main(["score", "--path", str(folder), str(tmp_path / "text"), "--per-word"]) == 0
    assert capsys.readouterr().out == fairseq_llrnn.load(folder).surprisals(LINES).to_tsv()
    assert main(["score", "--path", str(folder), str(tmp_path / "text"), "--per-sentence"]) == 0
    table = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    bits = fairseq_llrnn.load(folder).score(LINES[:1], per="text")
    assert float(table[1][2]) == pytest.approx(bits, abs=1e-5) and len(table) == 1 + len(LINES)


def test_any_causal_model_with_its_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A softmax, and a log-linear head that starts with the same probabilities; pieces count as tokens."""
    tokenizer = byte_level()
    softmax = network(len(tokenizer)).float()
    lines = ["ab a bab", "a b", ""]
    expected = CausalScorer(softmax, tokenizer).surprisals(lines)
    for name, model in (("softmax", softmax), ("ours", LogLinearForCausalLM.wrap(softmax, tokenizer))):
        model.save_pretrained(tmp_path / name)
        message = "expected a tokenizer, since the model's tokens are not the words of .* set model.tokenizer, or"
        with pytest.raises(DataError, match=message):
            fairseq_llrnn.load(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        found = fairseq_llrnn.load(tmp_path / name).surprisals(lines)
        assert [row[:3] for row in found] == [row[:3] for row in expected]
        assert [row[3] for row in found] == pytest.approx([row[3] for row in expected], abs=1e-3)
    assert LogLinearForCausalLM.wrap(softmax, tokenizer).surprisals(lines) == found
    pieces = fairseq_llrnn.load(tmp_path / "ours").next_words("ab a", 4)
    assert len(pieces) == 4 and pieces[0].probability >= pieces[3].probability > 0.0
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    assert main(["score", "--path", str(tmp_path / "ours"), str(tmp_path / "text"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    tokens = sum(len(tokenizer(line, add_special_tokens=False).input_ids) for line in lines)
    assert facts["words"] == 5 and facts["bits_per_token"] == pytest.approx(facts["bits"] / (tokens + 3))
    assert facts["bits"] == pytest.approx(sum(row.surprisal for row in expected), abs=1e-2)


def test_forbidden_words_leave_the_others(tmp_path: Path) -> None:
    (tmp_path / "g.regex").write_text('("le" | "la") ("chat" | "table") "dort" "."', encoding="utf-8")
    log_linear(tmp_path, background=f"automaton:{tmp_path / 'g.regex'}").save_pretrained(tmp_path / "model")
    model = fairseq_llrnn.load(tmp_path / "model")
    good, bad = "le chat dort .", "le dort dort ."
    rows = model.surprisals([bad, good])
    assert [math.isinf(row.surprisal) for row in rows[:2]] == [False, True]
    assert not any(math.isinf(row.surprisal) for row in rows[5:])
    found = model.minimal_pairs([good, bad, bad], [bad, bad, good])
    assert [pair.is_correct for pair in found.pairs] == [True, False, False] and found.pairs[0].bad == -math.inf
    with pytest.raises(DataError, match="sentence 1, word 2: the model gives 'dort' no probability"):
        model.score([bad])


def test_a_translation_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("a", "the cat sleeps 7\nthe cat\n"), ("b", "le chat dort 7\nle chat\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    dictionaries = [["<s>", "<pad>", "</s>", "<unk>", *words.split()] for words in ("the cat sleeps", "le chat dort")]
    bitext = ParallelText.read(tmp_path / "a", tmp_path / "b", *dictionaries)
    translations = TranslationOptions(bitext, weight=0.5, aligner="ibm1")
    recipe = Recipe(
        text=tmp_path / "b", top_words="all", translations=translations, evidence=EvidenceOptions(("numbers",)),
        source_dictionary=dictionaries[0],
    )  # fmt: skip
    torch.manual_seed(1)
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 16}
    config = transformers.BartConfig(**sizes, **heads)
    made = LogLinearForSeq2SeqLM.from_config(config, build_prior(dictionaries[1], recipe)).eval()
    made.save_pretrained(tmp_path / "model")
    model = fairseq_llrnn.load(tmp_path / "model")
    lines, sources = ["le chat dort 8 .", "le"], ["the cat sleeps 8", "the dog"]
    rows = model.surprisals(lines, source=sources, unit="nats")
    assert [row.word for row in rows] == [*lines[0].split(), "</s>", "le", "</s>"]
    assert [row.word for row in rows if row.is_unknown] == ["8", "."]  # the source offers 8; the dictionary lacks both
    for number, (line, source) in enumerate(zip(lines, sources, strict=True), start=1):
        read = made.head.encode_source([source])
        with torch.inference_mode():
            loss = made(input_ids=read, labels=made.head.encode([line], read)).loss
        assert sum(row.surprisal for row in rows if row.sentence == number) / (len(line.split()) + 1) == pytest.approx(
            float(loss), abs=1e-5
        )
    with pytest.raises(OptionError, match="source: a translation model needs the source sentence of each line"):
        model.score(lines)
    assert main(["score", "--path", str(tmp_path / "model"), str(tmp_path / "b")]) == 2
    assert "expected a language model, found a translation model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "model.safetensors").unlink(), "expected a language model of transformers'"),
        (lambda f: (f / "model.safetensors").write_bytes(b"x" * 99), "expected a language model of"),
        (lambda f: (f / "config.json").write_text("{"), "expected a language model of transformers'"),
        (lambda f: (f / "config.json").write_text('{"model_type": "nothing"}'), "expected a language model"),
        (lambda f: shutil.rmtree(f / "prior"), "prior"),
        (lambda f: (f / "prior" / "prior.json").write_text("{}"), "prior"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "expected a language model of transformers'"),
    ],
)
def test_damaged_folders(
    folder: Path, tmp_path: Path, change: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, tmp_path / "model")
    change(tmp_path / "model")
    with pytest.raises(LLRNNError) as error:
        fairseq_llrnn.load(tmp_path / "model")
    assert message in str(error.value) and str(tmp_path / "model") in str(error.value)
    (tmp_path / "text").write_text("le\n")
    assert main(["score", "--path", str(tmp_path / "model"), str(tmp_path / "text")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "x"], "--data x: it needs a model of fairseq, but"),
        (["--prior", "x"], "is one of transformers; remove this option"),
        (["--open"], "is one of transformers, which spells no unknown words; remove --open\n"),
    ],
)
def test_options_of_other_models(
    folder: Path, tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("le\n")
    assert main(["score", "--path", str(folder), *options, str(tmp_path / "text")]) == 2
    assert message in capsys.readouterr().err
    with pytest.raises(OptionError, match="expected a model of fairseq with data or prior, found one of transformers"):
        fairseq_llrnn.load(folder, data="x")
    advice = "found another; leave it out, as models of transformers spell no unknown words$"
    loaded = fairseq_llrnn.load(folder)
    for model in (loaded, loaded.model):
        with pytest.raises(OptionError, match=advice):
            model.score(["le"], is_open=True)
