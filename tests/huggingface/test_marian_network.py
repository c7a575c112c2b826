"""Marian with a log-linear head: its scores in `generate` are those of whole sentences, whatever the background."""

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from thinned_grids import one_in
from torch import Tensor

from fairseq_llrnn import Prior
from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.prior import EvidenceOptions, Recipe, TranslationOptions
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence_part import evidence_table

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

from transformers import MarianConfig

from fairseq_llrnn.huggingface import LogLinearForSeq2SeqLM

SYMBOLS = (*SPECIALS, *"le la chat mer table dort voit qui .".split())
SOURCE = (*SPECIALS, *"the cat sea table sleeps sees .".split())
LANGUAGE = [f"{who} {does} ." for who, does in product(("le chat", "la mer", "la table"), ("dort", "voit le chat"))]
ENGLISH = [f"the {who} {does} ." for who, does in product(("cat", "sea", "table"), ("sleeps", "sees the cat"))]
GRAMMAR = 'S -> NP VP "."\nNP -> "le chat" | "la mer" | "la table"\nVP -> "dort" | "voit le chat"\n'
ENDLESS = '%depth 6\nS -> NP "dort ."\nNP -> "le chat" | "la mer" | "le chat qui voit" NP\n'
EVERY_EVIDENCE = EvidenceOptions(("terms", "numbers", "copies"))


def write(place: Path) -> None:
    for name, lines in (("some.grammar", GRAMMAR), ("endless.grammar", ENDLESS)):
        (place / name).write_text(lines, encoding="utf-8")
    for name, sentences in (("train.fr", LANGUAGE), ("train.en", ENGLISH)):
        (place / name).write_text("\n".join(sentences), encoding="utf-8")


def build(place: Path, background: str, translations: bool = False, evidence: EvidenceOptions | None = None) -> Prior:
    write(place)
    bitext = ParallelText.read(place / "train.en", place / "train.fr", SOURCE, SYMBOLS)
    return build_prior(
        SYMBOLS,
        Recipe(
            text=place / "train.fr", top_words=7, suffixes=2, background=background.format(place=place),
            translations=TranslationOptions(bitext, weight=0.5, aligner="ibm1") if translations else None,
            evidence=evidence, source_dictionary=None if evidence is None else SOURCE,
        ),
    )  # fmt: skip


PRIORS: dict[str, Callable[[Path], Prior]] = {
    "unigram": lambda place: build(place, "unigram"),
    "trigrams": lambda place: build(place, "ngram:3"),
    "grammar": lambda place: build(place, "automaton({place}/some.grammar, on_zero=skip)"),
    "translations and slots": lambda place: build(place, "unigram", True, EVERY_EVIDENCE),
    "grammar and slots": lambda place: build(
        place, "automaton({place}/endless.grammar, on_zero=skip)", False, EVERY_EVIDENCE
    ),
}


def made(prior: Prior, spread: float = 0.3, **options: Any) -> Any:
    """A model with weights that differ so much."""
    torch.manual_seed(2)
    both = {"layers": 1, "ffn_dim": 8, "attention_heads": 2}
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in both.items()}
    sizes = sizes | {"d_model": 8, "max_position_embeddings": 64, "vocab_size": len(SOURCE)}
    own = {"label_smoothing": options.pop("label_smoothing", 0.0)}
    model = LogLinearForSeq2SeqLM.from_config(MarianConfig(**{**sizes, **options}), prior, **own)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(spread * torch.randn_like(parameter))
    return model.eval()


def english(model: Any, *lines: str) -> Tensor:
    """The numbers of source words; a prior that knows no source has the same words."""
    if model.head.prior.source_symbols:
        return model.head.encode_source(list(lines))
    rows = [
        torch.tensor([*(SOURCE.index(word) if word in SOURCE else 3 for word in line.split()), 2]) for line in lines
    ]
    return torch.nn.utils.rnn.pad_sequence(rows, True, 1)


@torch.inference_mode()
def log_p(model: Any, source: Tensor, written: Tensor) -> float:
    """The sum over the words of one sentence, (1, L) and (T,): read at once, as in training, but for what was said."""
    words = written[1:]
    words = words[: (words.tolist() + [2]).index(2) + 1].unsqueeze(0)  # without a grammar, some are cut
    prior = model.head.prior
    if model.head.has_source_strings:
        evidence_table(prior).once = True
    try:
        return -model(input_ids=source, labels=words).loss.item() * words.numel()
    finally:
        if model.head.has_source_strings:
            evidence_table(prior).once = False


SOURCES = ["the cat sleeps .", "the 4071 sees the cat .", "the zebra sleeps ."]


SEARCHES = [{"num_beams": 4, "num_return_sequences": 3}, {"num_beams": 1}, {"use_cache": False, "num_beams": 2}]


@pytest.mark.parametrize(("kind", "search"), one_in(2, PRIORS, SEARCHES))
def test_scores_of_beams_are_those_of_whole_sentences(kind: str, search: dict[str, Any], tmp_path: Path) -> None:
    model = made(PRIORS[kind](tmp_path))
    source = english(model, *SOURCES)
    found = model.generate(
        source, max_new_tokens=10, length_penalty=0.0, return_dict_in_generate=True, output_logits=True,
        output_scores=True, **search,
    )  # fmt: skip
    each = search.get("num_return_sequences", 1)
    for number, row in enumerate(found.sequences):
        assert 2 in row[1:] or "grammar" not in kind, "a cut sentence"
        expected = log_p(model, source[number // each : number // each + 1], row)
        if search["num_beams"] > 1:
            assert found.sequences_scores[number].item() == pytest.approx(expected, abs=1e-3)
        else:
            steps = torch.stack(found.logits, 1)[number].gather(1, row[1:, None].long())
            ended = (row[1:] == 1).unsqueeze(1)
            assert steps.masked_fill(ended, 0.0).sum().item() == pytest.approx(expected, abs=1e-3)
    for logits in found.logits:
        assert logits.exp().sum(1).amax().item() == pytest.approx(1.0, abs=1e-4), "they sum to one"


def test_a_wide_beam_finds_the_best_sentences_of_a_grammar(tmp_path: Path) -> None:
    model = made(PRIORS["grammar"](tmp_path))
    source = english(model, SOURCES[0])
    options = {"max_new_tokens": 10, "length_penalty": 0.0, "num_beams": 12, "num_return_sequences": 6}
    found = model.head.decode(model.generate(source, **options))
    rows = {sentence: torch.cat([torch.tensor([2]), model.head.encode([sentence])[0]]) for sentence in LANGUAGE}
    of = {sentence: log_p(model, source, row) for sentence, row in rows.items()}
    assert torch.tensor(list(of.values())).logsumexp(0).item() == pytest.approx(0.0, abs=1e-4), "nothing else"
    assert found == sorted(of, key=lambda sentence: -of[sentence])


@pytest.mark.parametrize("search", [{"num_beams": 4}, {"do_sample": True, "num_return_sequences": 5}, {}])
def test_required_terms_are_said_once_and_sentences_end_in_time(search: dict[str, Any], tmp_path: Path) -> None:
    model = made(PRIORS["translations and slots"](tmp_path))
    forms = WordForms()
    for lemma, form in (("chien", "chien"), ("chien", "chiens"), ("mer", "mer"), ("vélo", "vélos")):
        forms.add(lemma, form)
    of_system = pytest.importorskip("fairseq_llrnn.systems.terms.terms")
    terms = of_system.Terms(evidence_table(model.head.prior), forms, must=True)
    source = model.head.encode_source(
        ["the cat sleeps .\tcat => chien", "the sea .\tmer\tthe => vélo", "the table ."], terms
    )
    torch.manual_seed(4)
    found = model.generate(source, max_new_tokens=6, **search)
    each = len(found) // 3
    for number, line in enumerate(model.head.decode(found)):
        for group in ((("chien", "chiens"),), (("mer",), ("vélo", "vélos")), ())[number // each]:
            assert sum(f" {line} ".count(f" {form} ") for form in group) == 1, line
    assert all(2 in row for row in found[:, 1:].tolist())
    with pytest.raises(DataError, match="expected max_new_tokens of at least 3, .* found 2; give more"):
        model.generate(source, max_new_tokens=2)
    mer = model.head.prior.index("mer")
    with pytest.raises(DataError, match=rf"^generate: expected a constraint .* one that requires token {mer}"):
        model.generate(source, max_new_tokens=6, eos_token_id=[2, mer], **search)


def test_sentences_of_an_endless_grammar_end_in_time(tmp_path: Path) -> None:
    model = made(build(tmp_path, "automaton({place}/endless.grammar, on_zero=skip)"), spread=0.1)
    torch.manual_seed(5)
    source = english(model, *SOURCES * 10)
    ends = ["le chat dort .", "la mer dort ."]
    for search in ({"num_beams": 3}, {"do_sample": True}):
        written = model.head.decode(model.generate(source, max_new_tokens=10, **search))
        assert set(written) <= {*ends, *(f"le chat qui voit {end}" for end in ends)}


def test_the_loss_is_of_the_words_with_and_without_padding_and_smoothing(tmp_path: Path) -> None:
    model = made(PRIORS["translations and slots"](tmp_path), label_smoothing=0.1, dropout=0.0)
    source, targets = english(model, *SOURCES[:2]), model.head.encode(["le chat dort .", "le 4071 voit le chat ."])
    labels = targets.masked_fill(targets == 1, -100)
    model.head.eval()
    each = [(source[i : i + 1], row[row != 1].unsqueeze(0)) for i, row in enumerate(targets)]
    alone = torch.stack([model(input_ids=one, labels=words).loss * words.numel() for one, words in each])
    torch.testing.assert_close(model(input_ids=source, labels=labels).loss, alone.sum() / (targets != 1).sum())
    model.train()
    loss = model(input_ids=source, labels=labels).loss
    hidden_of = model.head.loss  # the head's own, in one line, of the same hidden states
    with torch.no_grad():
        previous = model.head.previous(targets)
        read = model.model.encoder(input_ids=source, attention_mask=(source != 1).long())[0]
        state = model.model.decoder(
            input_ids=model.head.bind(previous, source).input_ids, encoder_hidden_states=read,
            encoder_attention_mask=(source != 1).long(),
        )[0]  # fmt: skip
        expected = hidden_of(state, targets, source=source, source_states=read, label_smoothing=0.1)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)


def test_training_leaves_out_what_n_grams_know_of_the_text_and_not_of_changed_labels(tmp_path: Path) -> None:
    """A slot stands in the place of two words, by which the sentence is found in the text."""
    model = made(build(tmp_path, "ngram(3, folds=3)"), dropout=0.0)
    for lines in zip(LANGUAGE, LANGUAGE[1:], strict=False):
        source, text = english(model, *ENGLISH[:2]), model.head.encode(list(lines))
        labels = torch.cat([text[:, :1], text[:, 2:]], dim=1)
        model.eval()
        asked = {"input_ids": source, "labels": labels.masked_fill(labels == 1, -100)}
        beside = {"text": text.masked_fill(text == 1, -100)}
        torch.testing.assert_close(model(**asked, **beside).loss, model(**asked).loss)
        model.train()
        mask = (source != 1).long()
        previous = model.head.previous(labels)
        read = model.model.encoder(input_ids=source, attention_mask=mask)[0]
        state = model.model.decoder(previous, encoder_hidden_states=read, encoder_attention_mask=mask)[0]
        condition = model.head.bind(previous, source, model.head.previous(text))
        expected = model.head.loss_of(model.head.batch(state, condition, read), labels)
        torch.testing.assert_close(model(**asked, **beside).loss, expected)
        assert not torch.isclose(model(**asked).loss, expected)


@pytest.mark.parametrize("tied", [True, False])
def test_a_model_comes_back_with_its_prior_and_nothing_is_pickled(tied: bool, tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM

    model, folder = made(PRIORS["translations and slots"](tmp_path), tie_word_embeddings=tied), tmp_path / "saved"
    model.save_pretrained(folder)
    suffixes = {path.suffix for path in folder.rglob("*") if path.is_file()}
    assert suffixes == {".json", ".safetensors", ".npz", ".txt", ".toml"}
    source = english(model, *SOURCES)
    for cls in (LogLinearForSeq2SeqLM, AutoModelForSeq2SeqLM):
        again = cls.from_pretrained(folder)
        assert type(again) is LogLinearForSeq2SeqLM
        trained = [[name for name, p in one.named_parameters() if p.requires_grad] for one in (model, again)]
        assert trained[0] == trained[1]
        assert (again.head.embedding.weight is again.head.output.weight) is tied
        search = {"max_new_tokens": 8, "num_beams": 4}
        assert again.head.decode(again.generate(again.head.encode_source(SOURCES), **search)) == model.head.decode(
            model.generate(source, **search)
        )
    build(tmp_path, "uniform", True, EVERY_EVIDENCE).save(folder / "prior")
    with pytest.raises(PriorError, match="the checkpoint was trained with another prior than"):
        LogLinearForSeq2SeqLM.from_pretrained(folder)


def test_what_the_model_is_not_told(tmp_path: Path) -> None:
    prior = build(tmp_path, "unigram")
    model = made(prior)
    source = english(model, SOURCES[0])
    with pytest.raises(
        DataError,
        match="expected input_ids, the source, next to labels or decoder_input_ids, found None; give both .labels are "
        "smoothed by label_smoothing of the model's configuration, not of a Trainer",
    ):
        model(input_ids=source)
    with pytest.raises(DataError, match=r"labels: expected token ids from 0 to \d+, found -1;"):
        model(input_ids=source, labels=torch.tensor([[4, -1, 2]]))
    with pytest.raises(DataError, match="resize_token_embeddings: not supported, as the words are those of the prior"):
        model.resize_token_embeddings(100)
    with pytest.raises(ValueError, match="max_newtokens"):
        model.generate(source, max_newtokens=5)
    cache = model.model(input_ids=source, decoder_input_ids=torch.tensor([[2]]), use_cache=True).past_key_values
    with pytest.raises(DataError, match="past_key_values without the tokens that they are of"):
        model(input_ids=source, decoder_input_ids=torch.tensor([[2]]), past_key_values=cache)


@pytest.mark.parametrize("kind", ["unigram", "translations and slots", "grammar"])
def test_label_smoothing_of_a_trainer(kind: str, tmp_path: Path) -> None:
    """It keeps the labels back, and smooths logits over all words, some of which are forbidden."""
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    for decoder_inputs in (False, True):
        model = made(PRIORS[kind](tmp_path))
        sources, targets = english(model, *ENGLISH), model.head.encode(LANGUAGE)
        rows = [{"input_ids": s, "labels": t.masked_fill(t == 1, -100)} for s, t in zip(sources, targets, strict=True)]
        if decoder_inputs:
            rows = [row | {"decoder_input_ids": p} for row, p in zip(rows, model.head.previous(targets), strict=True)]
        options = Seq2SeqTrainingArguments(
            output_dir=str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=2, label_smoothing_factor=0.1,
            save_strategy="no", report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
        )  # fmt: skip
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with pytest.raises((DataError, OptionError), match="label_smoothing.* of the model's configuration") as error:
            Seq2SeqTrainer(model, options, train_dataset=rows).train()
        assert "\n" not in str(error.value)
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()), "nothing is trained"


def test_a_loss_of_our_own_from_log_p(tmp_path: Path) -> None:
    model = made(PRIORS["grammar"](tmp_path), dropout=0.0)
    model.head.eval()
    source, targets = english(model, *ENGLISH[:2]), model.head.encode(LANGUAGE[:2])
    wanted = model(input_ids=source, labels=targets).loss
    logits = model(input_ids=source, decoder_input_ids=model.head.previous(targets)).logits
    found = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=1)
    torch.testing.assert_close(found, wanted)
    found.backward()
    assert model.head.output.weight.grad.isfinite().all()


def test_another_first_token_than_in_training(tmp_path: Path) -> None:
    model = made(PRIORS["translations and slots"](tmp_path)).eval()
    source, targets = english(model, *ENGLISH[:2]), model.head.encode(LANGUAGE[:2])
    same = model.generate(source, max_new_tokens=4)
    assert torch.equal(model.generate(source, max_new_tokens=4, decoder_start_token_id=2, bos_token_id=5), same)
    for options in ({"decoder_start_token_id": 5}, {"decoder_input_ids": torch.tensor([[5], [5]])}):
        expected = "generate: expected decoder_start_token_id to be 2, as in training, found 5; give 2"
        if "decoder_input_ids" in options:  # transformers puts the start symbol before them
            assert (model.generate(source, max_new_tokens=4, **options)[:, :2] == torch.tensor([2, 5])).all()
            continue
        with pytest.raises(DataError, match=expected):
            model.generate(source, max_new_tokens=4, **options)
    with pytest.raises(DataError, match="expected no forced_bos_token_id, since training forces no .*, found 5; set"):
        model.generate(source, max_new_tokens=4, forced_bos_token_id=5)
    previous = model.head.previous(targets)
    labels = targets.masked_fill(targets == 1, -100)
    loss = model(input_ids=source, labels=labels).loss
    torch.testing.assert_close(model(input_ids=source, labels=labels, decoder_input_ids=previous).loss, loss)
    for other in (targets, previous.where(previous != 2, 5), previous[:, 1:]):
        with pytest.raises(DataError, match="expected decoder_input_ids that are `</s>` and the labels, found others"):
            model(input_ids=source, labels=labels, decoder_input_ids=other)
    with pytest.raises(DataError, match="expected the first of decoder_input_ids to be 2, as in training, found 4"):
        model(input_ids=source, decoder_input_ids=targets)


def test_the_trainer_goes_on_from_its_checkpoints_and_generates_in_evaluations(tmp_path: Path) -> None:
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    model = made(PRIORS["translations and slots"](tmp_path), dropout=0.0)
    source, targets = (
        encode(list(lines)) for encode, lines in ((model.head.encode_source, ENGLISH), (model.head.encode, LANGUAGE))
    )
    rows = [{"input_ids": s, "labels": t.masked_fill(t == 1, -100)} for s, t in zip(source, targets, strict=True)]

    def trainer(model: Any, steps: int) -> Any:
        options = Seq2SeqTrainingArguments(
            output_dir=str(tmp_path / "checkpoints"), max_steps=steps, per_device_train_batch_size=2, save_steps=2,
            save_strategy="steps", predict_with_generate=True, generation_max_length=9,
            report_to="none", disable_tqdm=True, learning_rate=0.05, lr_scheduler_type="constant",
            dataloader_pin_memory=False,
        )  # fmt: skip
        return Seq2SeqTrainer(model, options, train_dataset=rows, eval_dataset=rows)

    first = trainer(model, 2)
    before = first.evaluate()["eval_loss"]
    first.train()
    saved = tmp_path / "checkpoints" / "checkpoint-2"
    assert (saved / "prior" / "prior.json").exists() and (saved / "model.safetensors").exists()
    again = trainer(LogLinearForSeq2SeqLM.from_pretrained(saved), 6)
    again.train(resume_from_checkpoint=str(saved))
    assert again.state.global_step == 6
    written = again.predict(rows)
    assert written.metrics["test_loss"] < before
    assert len(model.head.decode(torch.tensor(written.predictions))) == len(rows)
