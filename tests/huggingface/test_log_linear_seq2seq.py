"""Encoder-decoders of transformers with the head; test_marian_network.py has terms, limits and training."""

import math
import os
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from thinned_grids import one_in
from torch import Tensor

from fairseq_llrnn import Prior
from fairseq_llrnn.alignment.bitext import ParallelText
from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior import EvidenceOptions, Recipe, TranslationOptions, build_prior

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers

from fairseq_llrnn.huggingface import LogLinearForSeq2SeqLM
from fairseq_llrnn.huggingface.loading import load_scorer
from fairseq_llrnn.huggingface.scoring import Seq2SeqScorer
from fairseq_llrnn.huggingface.seq2seq import LogLinearSeq2SeqConfig

SYMBOLS = (*SPECIALS, *"le la chat mer dort voit .".split())
SOURCE = (*SPECIALS, *"the cat sea sleeps sees .".split())
FRENCH = ["le chat dort .", "la mer dort .", "le chat voit la mer ."]
ENGLISH = ["the cat sleeps .", "the sea sleeps .", "the cat sees the sea ."]
GRAMMAR = 'S -> NP VP "."\nNP -> "le chat" | "la mer"\nVP -> "dort" | "voit" NP\n'
TOKENS = ["<pad>", "<start>", "<end>", "<unk>", "le", "chat", "la", "mer", "dort"]
ROWS, PAD, START, END = 11, 0, 1, 2
SIDES = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in {"ffn_dim": 8, "attention_heads": 2, "layers": 1}.items()
}
SIZES = {"d_model": 8, "max_position_embeddings": 32, "init_std": 0.4, "dropout": 0.0, **SIDES}
NETWORKS: dict[str, dict[str, Any]] = {
    "Marian": SIZES,
    "Bart": {**SIZES, "scale_embedding": True, "decoder_layers": 2},
    "T5": {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "dropout_rate": 0.0},
    "Pegasus": SIZES,
}


def configuration(name: str, **more: Any) -> Any:
    special = {"bos_token_id": START, "eos_token_id": END, "pad_token_id": PAD, "decoder_start_token_id": PAD}
    fixed = {} if name == "T5" else {"forced_eos_token_id": None}
    kind = getattr(transformers, f"{name}Config")
    return kind(**{"vocab_size": ROWS, **special, **fixed, **NETWORKS[name], **more})


def prior_with(place: Path, kind: str) -> Prior:
    for name, lines in (("fr", "\n".join(FRENCH)), ("en", "\n".join(ENGLISH)), ("some.grammar", GRAMMAR)):
        (place / name).write_text(lines, encoding="utf-8")
    bitext = ParallelText.read(place / "en", place / "fr", SOURCE, SYMBOLS)
    own: dict[str, Any] = {"background": "ngram(2, folds=0)"}
    if kind == "grammar":
        own = {"background": f"automaton({place}/some.grammar, on_zero=skip)"}
    if kind == "slots":
        own = {"translations": TranslationOptions(bitext, weight=0.5, aligner="ibm1"),
               "evidence": EvidenceOptions(("copies", "numbers")), "source_dictionary": SOURCE}  # fmt: skip
    return build_prior(SYMBOLS, Recipe(text=place / "fr", top_words=6, suffixes=2, **own))


def made(prior: Prior, name: str, **settings: Any) -> Any:
    torch.manual_seed(2)
    config = configuration(name, vocab_size=len(SOURCE))
    model = LogLinearForSeq2SeqLM.from_config(config, prior, **settings)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def english(model: Any, *lines: str) -> Tensor:
    if model.head.prior.source_symbols:
        return model.head.encode_source(list(lines))
    rows = [torch.tensor([*map(SOURCE.index, line.split()), 2]) for line in lines]
    return torch.nn.utils.rnn.pad_sequence(rows, True, 1)


@pytest.mark.parametrize(("name", "kind"), one_in(2, NETWORKS, ["bigrams", "grammar", "slots"]))
def test_losses_and_scores_of_beams_are_those_of_the_head(name: str, kind: str, tmp_path: Path) -> None:
    model = made(prior_with(tmp_path, kind), name)
    head, source = model.head, english(model, *ENGLISH)
    found = model.generate(
        source, num_beams=4, num_return_sequences=2, max_new_tokens=8, length_penalty=0.0,
        return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    for number, row in enumerate(found.sequences):
        words = row[1:][: (row[1:].tolist() + [2]).index(2) + 1].unsqueeze(0)
        one = source[number // 2 : number // 2 + 1]
        outputs = model.model(
            input_ids=one, attention_mask=one.ne(1).long(), decoder_input_ids=head.previous(words).clamp(max=10)
        )
        hidden, states = outputs.last_hidden_state, outputs.encoder_last_hidden_state
        state = head.start(1, source=one, source_states=states)
        log_p = []
        for place in range(words.size(1)):  # word by word
            log_p.append(head.step(hidden[:, place], state).log_probs_of(words[:, place : place + 1]).squeeze(1))
            state = head.advance(state, words[:, place])
        total = torch.cat(log_p).sum()
        if int(words.max()) < len(SYMBOLS):
            torch.testing.assert_close(model(input_ids=one, labels=words).loss, -total / words.numel())
            assert found.sequences_scores[number].item() == pytest.approx(total.item(), abs=1e-3)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_model_is_trained_saved_and_loaded(name: str, tmp_path: Path) -> None:
    model = made(prior_with(tmp_path, "slots"), name, label_smoothing=0.1).train()
    source, targets = english(model, *ENGLISH), model.head.encode(FRENCH)
    loss = model(input_ids=source, labels=targets.masked_fill(targets == 1, -100)).loss
    loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad), "every weight is used"
    model.eval()
    model.save_pretrained(tmp_path / "model")
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "model")
    assert type(again) is LogLinearForSeq2SeqLM
    expected = model(input_ids=source, labels=targets).loss
    torch.testing.assert_close(again(input_ids=english(again, *ENGLISH), labels=targets).loss, expected)
    names = [[n for n, p in one.named_parameters() if p.requires_grad] for one in (model, again)]
    assert names[0] == names[1]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_wrapped_model_starts_as_the_softmax(name: str, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({token: at for at, token in enumerate(TOKENS)}, "<unk>"))
    special = {"pad_token": "<pad>", "eos_token": "<end>", "unk_token": "<unk>", "bos_token": "<start>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **special)
    torch.manual_seed(4)
    softmax = transformers.AutoModelForSeq2SeqLM.from_config(configuration(name)).eval()
    if name == "Marian":
        softmax.final_logits_bias.normal_()
    source = torch.tensor([[4, 5, 8, 2], [6, 7, 2, 0]])
    labels = torch.tensor([[8, 4, 10, 2], [3, 1, 2, -100]])
    given = {"input_ids": source, "attention_mask": source.ne(0).long()}
    with torch.no_grad():
        wanted = softmax(**given, labels=labels)
        greedy = softmax.generate(**given, max_new_tokens=6)
        model = LogLinearForSeq2SeqLM.wrap(softmax, tokenizer, {"background": "unigram", "shapes": True})
        found = model(**given, labels=labels)
    torch.testing.assert_close(found.logits, wanted.logits.log_softmax(-1), atol=1e-4, rtol=0)
    torch.testing.assert_close(found.loss, wanted.loss, atol=1e-4, rtol=0)
    assert torch.equal(model.generate(**given, max_new_tokens=6), greedy)
    model.save_pretrained(tmp_path / "model")
    again = LogLinearForSeq2SeqLM.from_pretrained(tmp_path / "model")
    with torch.no_grad():
        torch.testing.assert_close(again(**given, labels=labels).logits, found.logits, rtol=0, atol=0)


def test_a_folder_of_an_earlier_version_is_an_error(tmp_path: Path) -> None:
    """Of LogLinearMarian of v0.2.0-rc1."""
    (tmp_path / "config.json").write_text('{"model_type": "llrnn_marian", "is_encoder_decoder": true, "d_model": 8}')
    with pytest.raises(DataError, match="found a model of type llrnn_marian; load .* or train one of an earlier versi"):
        LogLinearForSeq2SeqLM.from_pretrained(tmp_path)
    with pytest.raises(DataError, match=r"found a folder that cannot be read: .*`llrnn_marian` .*; save it again$"):
        load_scorer(str(tmp_path))


def test_a_subclass_of_the_configuration_stays_one(tmp_path: Path) -> None:
    class Own(LogLinearSeq2SeqConfig):
        model_type = "own"

    Own(text_config=configuration("T5"), label_smoothing=0.1).save_pretrained(tmp_path)
    for config in (Own.from_pretrained(tmp_path), Own.from_dict({"label_smoothing": 0.1})):
        assert type(config) is Own and config.label_smoothing == 0.1


def test_arguments_of_the_network_pass_through(tmp_path: Path) -> None:
    model = made(prior_with(tmp_path, "slots"), "Bart")
    model.set_attn_implementation("eager")
    source, targets = english(model, *ENGLISH), model.head.encode(FRENCH)
    found = model(input_ids=source, labels=targets, output_attentions=True, output_hidden_states=True)
    assert len(found.decoder_hidden_states) == 3 and len(found.cross_attentions) == 2
    assert len(found.encoder_hidden_states) == 2 and len(found.encoder_attentions) == 1
    embeds = model.get_input_embeddings()(source)
    mask = source.ne(1).long()
    both = model(inputs_embeds=embeds, input_ids=source, attention_mask=mask, labels=targets).loss
    torch.testing.assert_close(both, found.loss)
    read = model.head.bind(model.head.previous(targets), source).input_ids
    target_embeds = model.model.get_decoder().get_input_embeddings()(read)
    torch.testing.assert_close(
        model(input_ids=source, decoder_inputs_embeds=target_embeds, labels=targets).loss, found.loss
    )
    encoded = model.get_encoder()(source, attention_mask=mask)
    for call in (
        lambda: model(inputs_embeds=embeds, labels=targets),
        lambda: model.generate(inputs_embeds=embeds, max_new_tokens=4),
        lambda: model.generate(encoder_outputs=encoded, max_new_tokens=4),
    ):
        with pytest.raises(DataError, match="expected input_ids next to inputs_embeds or encoder_outputs, since the"):
            call()
    without_source = made(prior_with(tmp_path, "bigrams"), "Bart")
    source = english(without_source, *ENGLISH)
    mask = source.ne(1).long()
    encoded = without_source.get_encoder()(source, attention_mask=mask)
    expected = without_source.generate(source, max_new_tokens=6)
    for inputs in ({"encoder_outputs": encoded}, {"inputs_embeds": without_source.get_input_embeddings()(source)}):
        found = without_source.generate(**inputs, attention_mask=mask, max_new_tokens=6)
        assert torch.equal(found, expected)


def test_numbers_of_another_prior(tmp_path: Path) -> None:
    """Strings that a source offers have numbers in one prior object only."""
    other = made(prior_with(tmp_path, "slots"), "Bart")
    theirs = english(other, "the zebra 4071 sleeps .")
    targets = other.head.encode(["zebra 4071 dort ."])
    assert int(targets.max()) >= len(SYMBOLS)
    for kind in ("slots", "bigrams"):
        model = made(prior_with(tmp_path, kind), "T5")
        source = english(model, ENGLISH[0])
        uses = {
            "source|input_ids": [lambda m=model: m(input_ids=theirs, labels=targets[:, -2:]),
                                 lambda m=model: m.generate(theirs, max_new_tokens=4)],
            "labels": [lambda m=model, s=source: m(input_ids=s, labels=targets)],
            "decoder_input_ids": [lambda m=model, s=source: m(input_ids=s, decoder_input_ids=m.head.previous(targets))],
        }  # fmt: skip
        for name, calls in uses.items():
            for call in calls:
                with pytest.raises(DataError, match=f"({name}): expected (token ids|ids of source words,) from 0 to"):
                    call()


# ---- scores ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", NETWORKS)
def test_scores_that_are_not_finite_are_no_impossible_sentences(name: str, value: float, tmp_path: Path) -> None:
    """The vector of a source word is not finite. Sentences without this word have scores."""
    model = made(prior_with(tmp_path, "slots"), name)
    with torch.no_grad():
        model.get_input_embeddings().weight[SOURCE.index("cat")] = value
    scorer = Seq2SeqScorer(model)
    assert math.isfinite(scorer.score([FRENCH[1]], source=[ENGLISH[1]]))
    message = "expected finite scores, found NaN or infinity; look for weights and hidden states of the network"
    for numbers in ([0], [1, 0]):
        lines, source = [FRENCH[number] for number in numbers], [ENGLISH[number] for number in numbers]
        for call in (scorer.score, scorer.surprisals):
            with pytest.raises(DataError, match=f"^the model: {message}"):
                call(lines, source=source)
        with pytest.raises(DataError, match=f"^good: the model: {message}"):
            scorer.minimal_pairs(lines, lines, source=source)
    with pytest.raises(DataError, match=message):
        scorer.next_words("le", source=ENGLISH[0])


def test_a_word_without_probability_is_not_a_score_that_is_not_finite(tmp_path: Path) -> None:
    scorer = Seq2SeqScorer(made(prior_with(tmp_path, "slots"), "Marian"))
    log_p = scorer.model.head.target_log_probs
    scorer.model.head.target_log_probs = lambda *given: log_p(*given).index_fill(1, torch.tensor(1), -math.inf)
    bits = [row.surprisal for row in scorer.surprisals(FRENCH[:1], source=ENGLISH[:1])]
    assert [at for at, value in enumerate(bits) if value == math.inf] == [1]
    with pytest.raises(DataError, match="^sentence 1, word 2: the model gives 'chat' no probability"):
        scorer.score(FRENCH[:1], source=ENGLISH[:1])


def test_scores_of_other_models(tmp_path: Path) -> None:
    without_source, softmax = made(prior_with(tmp_path, "bigrams"), "Bart"), configuration("Bart")
    for model in (without_source, transformers.AutoModelForSeq2SeqLM.from_config(softmax)):
        with pytest.raises(DataError, match=(
            "^expected a translation model over the words of a prior, source and target, found "
            f"{type(model).__name__} over other tokens; use its loss$"
        )):  # fmt: skip
            Seq2SeqScorer(model)
