"""GPT-2 with a log-linear head: its probabilities, `generate` under grammars, round trips, and the script."""

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # read when huggingface_hub is imported; nothing is downloaded

import pytest
import torch
from example_modules import EXAMPLES, load, run_example
from torch import Tensor

from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.options import LexiconOptions
from fairseq_llrnn.prior import Recipe
from fairseq_llrnn.prior.building import build_prior
from toy_french import make_corpus, write_corpus

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

SYMBOLS = (*SPECIALS, *"le la chat mer table dort voit qui .".split())
ENDLESS = '%depth 6\nS -> NP "dort ."\nNP -> "le chat" | "la mer" | "le chat qui voit" NP\n'
LANGUAGE = [f"{who} {does} ." for who, does in product(("le chat", "la mer", "la table"), ("dort", "voit le chat"))]
GRAMMAR = 'S -> NP VP "."\nNP -> "le chat" | "la mer" | "la table"\nVP -> "dort" | "voit le chat"\n'
WIDTH, HEADS = 8, 2


@pytest.fixture(scope="module")
def modules() -> dict[str, ModuleType]:
    names = ("llrnn_gpt2", "ends_in_time", "train_gpt2", "agreement_grammar")
    return dict(zip(names, load(EXAMPLES / "huggingface", *names), strict=True))


def made(modules: dict[str, ModuleType], place: Path, grammar: str, spread: float = 0.5) -> Any:
    """A model under a grammar, with weights that differ so much, in float64."""
    (place / "some.grammar").write_text(grammar, encoding="utf-8")
    options = Recipe(
        words=LexiconOptions(lexicon={"chat": ["POS:NOUN"], "mer": ["POS:NOUN"], "table": ["POS:NOUN"]}),
        top_words=7,
        background=f"automaton:{place / 'some.grammar'}",
    )
    prior = build_prior(SYMBOLS, options)
    torch.manual_seed(2)
    gpt2 = modules["llrnn_gpt2"]
    model = gpt2.LogLinearGPT2(gpt2.LogLinearGPT2Config.of(prior, n_embd=WIDTH, n_layer=1, n_head=HEADS), prior)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return model.eval().double()


@pytest.fixture
def model(modules: dict[str, ModuleType], tmp_path: Path) -> Any:
    return made(modules, tmp_path, GRAMMAR)


def numbers(*sentences: str, end: bool = True) -> Tensor:
    """`</s>`, words and `</s>`, padded on the right."""
    rows = [torch.tensor([2, *map(SYMBOLS.index, sentence.split()), *([2] if end else [])]) for sentence in sentences]
    return torch.nn.utils.rnn.pad_sequence(rows, True, 1)


def text(row: Tensor) -> str:
    """The words of a complete sentence that `generate` wrote; `</s>` ends it and `<pad>` follows, or this fails."""
    first, *rest = row.tolist()
    assert first == 2 and 2 in rest, f"a cut sentence: {rest}"
    end = rest.index(2)
    assert set(rest[end + 1 :]) <= {1}
    return " ".join(SYMBOLS[x] for x in rest[:end])


def losses(model: Any, *sentences: str) -> Tensor:
    """−log p of each sentence, by the logits of all positions."""
    ids = numbers(*sentences)
    log_p = model(ids[:, :-1], attention_mask=ids[:, :-1].ne(1).long()).logits
    each = log_p.gather(2, ids[:, 1:].unsqueeze(2)).squeeze(2)
    return -each.masked_fill(ids[:, 1:] == 1, 0.0).sum(1)


def test_the_loss_is_of_the_words_and_padding_changes_nothing(model: Any) -> None:
    some = LANGUAGE[0], LANGUAGE[3]  # of 4 and 6 words
    ids = numbers(*some)
    labels = ids.masked_fill(ids == 1, -100)
    found = model(ids, attention_mask=ids.ne(1).long(), labels=labels)
    assert found.logits is None
    alone = torch.cat([losses(model, sentence) for sentence in some])
    torch.testing.assert_close(found.loss, alone.sum() / 12)
    torch.testing.assert_close(losses(model, *some), alone)
    found.loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    assert torch.logsumexp(-losses(model, *LANGUAGE), 0).item() == pytest.approx(0.0, abs=1e-6), "nothing else"


def test_each_step_of_generate_has_the_probabilities_of_the_whole_sentence(model: Any) -> None:
    options = {"max_new_tokens": 10, "return_dict_in_generate": True, "output_logits": True}
    for search in ({"use_cache": True}, {"use_cache": False}, {"do_sample": True}):
        torch.manual_seed(4)
        found = model.generate(numbers("la", end=False), **options, **search)
        assert text(found.sequences[0]) in LANGUAGE
        whole = model(found.sequences[:, :-1]).logits[0, 1:]
        stepwise = torch.cat(found.logits)
        torch.testing.assert_close(stepwise, whole.to(stepwise.dtype), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 4, 12])
def test_beam_search_finds_the_best_sentences(model: Any, beam: int) -> None:
    options = {"max_new_tokens": 10, "length_penalty": 0.0, "num_beams": beam, "num_return_sequences": min(beam, 4)}
    found = model.generate(numbers("", end=False), **options)
    written = [text(row) for row in found]
    assert set(written) <= set(LANGUAGE) and len(set(written)) == len(written)
    if beam == 12:
        best = losses(model, *LANGUAGE).argsort()[:4]
        assert written == [LANGUAGE[i] for i in best.tolist()]


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"do_sample": True}, {"do_sample": True, "num_beams": 3}])
def test_nothing_but_the_language_is_written_whole_sentences_of_any_length(
    modules: dict[str, ModuleType], tmp_path: Path, search: dict[str, Any]
) -> None:
    """Sentences of 5, 9, 13, … tokens; 10 fit two kinds of them."""
    model = made(modules, tmp_path, ENDLESS, spread=0.1)
    torch.manual_seed(5)
    prompt = numbers(*[""] * 80, end=False)
    limit = modules["ends_in_time"].EndsInTime(model.lm_head, prompt, 10)
    written = [text(row) for row in model.generate(prompt, max_new_tokens=10, logits_processor=[limit], **search)]
    ends = ["le chat dort .", "la mer dort ."]
    assert set(written) <= {*ends, *(f"le chat qui voit {end}" for end in ends)}
    if search == {"do_sample": True}:
        assert len(set(written)) > 1
        cut = model.generate(prompt, max_new_tokens=10, do_sample=True)
        assert any(2 not in row for row in cut[:, 1:].tolist()), "without the limit some are cut"


def test_a_limit_that_is_too_short_and_prompts_that_cannot_be(modules: dict[str, ModuleType], model: Any) -> None:
    prompt = numbers("le chat", end=False)
    with pytest.raises(DataError, match="expected max_new_tokens of at least 3, .* found 2; give more"):
        modules["ends_in_time"].EndsInTime(model.lm_head, prompt, 2)
    with pytest.raises(DataError, match="expected prompts that begin with </s> and are of one length"):
        model.generate(prompt.flip(1), max_new_tokens=4)
    with pytest.raises(DataError, match="prompts that begin with </s> and are of one length, found padding"):
        model.generate(torch.cat([prompt, torch.ones_like(prompt[:, :1])], 1), max_new_tokens=4)
    with pytest.raises(DataError, match="assisted generation is not supported"):
        model.generate(prompt, assistant_model=model, max_new_tokens=4)
    cache = model(prompt, use_cache=True).past_key_values
    with pytest.raises(DataError, match="expected `written`, all tokens so far, beside a cache, found None"):
        model(prompt[:, -1:], past_key_values=cache)


def test_a_model_comes_back_with_its_prior(modules: dict[str, ModuleType], model: Any, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model, folder = model.float(), tmp_path / "saved"
    model.save_pretrained(folder)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert names == {
        *("config.json", "generation_config.json", "model.safetensors"),
        *(f"prior/{name}" for name in ("prior.json", "arrays.npz", "dictionary.txt", "recipe.toml")),
    }
    gpt2 = modules["llrnn_gpt2"].LogLinearGPT2
    for cls in (gpt2, AutoModelForCausalLM):
        again = cls.from_pretrained(folder)
        assert type(again) is gpt2 and again.transformer.wte.weight is again.lm_head.output.weight
        assert again.lm_head.prior.fingerprint == model.lm_head.prior.fingerprint
        torch.testing.assert_close(losses(again, *LANGUAGE), losses(model, *LANGUAGE), rtol=0, atol=0)
        search = {"max_new_tokens": 10, "num_beams": 4}
        start = numbers("", end=False)
        assert torch.equal(again.generate(start, **search), model.generate(start, **search))
    made(modules, tmp_path, GRAMMAR.replace(' | "la table"', "")).lm_head.prior.save(folder / "prior")
    with pytest.raises(PriorError, match="the checkpoint was trained with another prior than"):
        gpt2.from_pretrained(folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(make_corpus(400, seed=1), folder)
    yield folder


@pytest.mark.slow
def test_the_script_trains_goes_on_and_writes_sentences_that_agree(
    modules: dict[str, ModuleType], corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {"CORPUS": str(corpus), "EPOCHS": "1", "WIDTH": "16"}
    first = run_example("huggingface/run.sh", tmp_path, variables=variables).out
    modules["train_gpt2"].main([str(corpus), str(tmp_path), "--epochs", "3", "--width", "16"])
    then = capsys.readouterr().out
    ppl = [float(line.split()[-1]) for line in (first + then).splitlines() if line.startswith("perplexity")]
    assert ppl[0] == ppl[2] > ppl[1] > ppl[3], "before, after one epoch; before, after two more"
    steps = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert len(steps) == 1, "the last one is kept"
    model = modules["llrnn_gpt2"].LogLinearGPT2.from_pretrained(tmp_path / "model")
    written = [line.strip() for line in then.splitlines() if line.startswith("    ")]
    assert len(written) == 7 and all(line.startswith("les ") for line in written)
    (tmp_path / "written").write_text("\n".join(written), encoding="utf-8")
    assert len(modules["train_gpt2"].read_sentences(tmp_path / "written", model)) == 7


def test_the_grammar_knows_agreement(modules: dict[str, ModuleType], corpus: Path, tmp_path: Path) -> None:
    prior = modules["train_gpt2"].prior_of(corpus, tmp_path)
    gpt2 = modules["llrnn_gpt2"]
    model = gpt2.LogLinearGPT2(gpt2.LogLinearGPT2Config.of(prior, n_embd=4, n_layer=1, n_head=1), prior)
    agrees = ["les tables ne sont pas vertes .", "alors , il retourne à la maison .", "ce jardin est très vert ."]
    others = ["les tables ne sont pas verts .", "le table est verte .", "elle sont verte .", "ce jardin est vert"]
    (tmp_path / "text").write_text("\n".join(agrees + others), encoding="utf-8")
    found = modules["train_gpt2"].read_sentences(tmp_path / "text", model)
    words = [" ".join(prior.symbols[x] for x in sentence["input_ids"][1:-1]) for sentence in found]
    assert words == agrees
