"""Backgrounds on softmax models of transformers: the product p·b by brute force, in steps, beams and samples."""

import os
from itertools import product
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from torch import Tensor

from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.huggingface import BackgroundProcessor
from fairseq_llrnn.lexicon.merge_sources import WordForms
from fairseq_llrnn.prior import EvidenceOptions, Recipe
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.parts.evidence_part import evidence_table

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

WORDS = "le la chat mer table dort voit qui .".split()
SYMBOLS = (*SPECIALS, *WORDS)
SOURCE = (*SPECIALS, *"the cat sea sleeps".split())
LANGUAGE = [f"{who} {does} ." for who, does in product(("le chat", "la mer", "la table"), ("dort", "voit le chat"))]
GRAMMAR = 'S -> NP VP "."\nNP -> "le chat" | "la mer" | "la table"\nVP -> "dort" | "voit le chat"\n'
ENDLESS = '%depth 6\nS -> NP "dort ."\nNP -> "le chat" | "la mer" | "le chat qui voit" NP\n'
SOME = "automaton({place}/some.grammar)"
END = 11  # the model's own numbers: words in another order, a token that no word is, one for padding, the end
TOKENS = [*range(4, 13)][::-1] + [-1, 1, 2, 3]  # the prior's word of each token
TOKEN_OF = {word: token for token, word in enumerate(TOKENS)}


def prior_with(place: Path, background: str, **options: Any) -> Prior:
    (place / "some.grammar").write_text(GRAMMAR, encoding="utf-8")
    (place / "endless.grammar").write_text(ENDLESS, encoding="utf-8")
    (place / "text").write_text("\n".join(LANGUAGE * 3), encoding="utf-8")
    named = background.format(place=place)
    own = {"text": place / "text", "background": named}
    return build_prior(SYMBOLS, Recipe(top_words=3, **own, **options))


def causal() -> Any:
    torch.manual_seed(2)
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 0.7}
    special = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": 10}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=15, **sizes, **special)).eval()


def numbers(sentence: str) -> list[int]:
    return [TOKEN_OF[SYMBOLS.index(word)] for word in sentence.split()]


def text(row: list[int]) -> str:
    end = row.index(END) if END in row else len(row)
    return " ".join(SYMBOLS[TOKENS[token]] for token in row[:end])


@torch.inference_mode()
def slow(prior: Prior, model: Any, prefix: list[int]) -> Tensor:
    """p·b / Σ p·b after a prefix of the model's tokens, the start symbol among them, word by word: (15,)."""
    p = model(torch.tensor([prefix])).logits[0, -1].softmax(0)
    background = prior.background(has_source=False).bind()
    state = background.start(1)
    for token in prefix[1:]:
        state = background.advance(state, torch.tensor([TOKENS[token]]))
    b = background.view(state).log_weights.expand(1, -1)[0].exp()
    weights = torch.tensor([float(p[k] * b[TOKENS[k]]) if k < 13 and TOKENS[k] >= 0 else 0.0 for k in range(15)])
    return weights / weights.sum()


@pytest.mark.parametrize("background", ["unigram", "ngram:3", SOME, "ngram:2 plus cache:4", f"{SOME} times ngram:2"])
def test_each_step_is_the_product_and_sums_to_one(background: str, tmp_path: Path) -> None:
    prior, model = prior_with(tmp_path, background), causal()
    processor = BackgroundProcessor(prior, torch.tensor(TOKENS))
    for sentence in LANGUAGE:
        whole = [END, *numbers(sentence)]
        for length in range(1, len(whole) + 1):
            prefix = whole[:length]
            with torch.inference_mode():
                found = processor(torch.tensor([prefix]), model(torch.tensor([prefix])).logits[:, -1])[0].exp()
            torch.testing.assert_close(found, slow(prior, model, prefix), rtol=1e-4, atol=1e-6)
            assert found.sum().item() == pytest.approx(1.0, abs=1e-5)
            assert found[[9, 13, 14]].sum() == 0, "what is no word, or behind all tokens"


@torch.inference_mode()
def log_p(prior: Prior, model: Any, sentence: str) -> float:
    """By the slow product."""
    whole = [END, *numbers(sentence), END]
    return sum(slow(prior, model, whole[:t])[whole[t]].log().item() for t in range(1, len(whole)))


@pytest.mark.parametrize(
    "background",
    ["automaton({place}/some.grammar, on_zero=skip)", "automaton({place}/some.grammar, on_zero=skip) times ngram:2"],
)
def test_beam_search_finds_the_best_strings_of_the_product_with_their_scores(background: str, tmp_path: Path) -> None:
    prior, model = prior_with(tmp_path, background), causal()
    of = {sentence: log_p(prior, model, sentence) for sentence in LANGUAGE}
    assert sum(torch.tensor(list(of.values())).exp()).item() == pytest.approx(1.0, abs=1e-5), "nothing else"
    processor = BackgroundProcessor(prior, torch.tensor(TOKENS), longest=10)
    search = {"max_new_tokens": 10, "num_beams": 12, "num_return_sequences": 4, "length_penalty": 0.0}
    found = model.generate(
        torch.tensor([[END]]), logits_processor=[processor], return_dict_in_generate=True, output_scores=True, **search
    )
    best = sorted(of, key=lambda sentence: -of[sentence])[:4]
    assert [text(row) for row in found.sequences[:, 1:].tolist()] == best
    torch.testing.assert_close(found.sequences_scores, torch.tensor([of[s] for s in best]), rtol=1e-4, atol=1e-4)
    assert processor.states.full_reads == 1, "the states follow the beams"


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"do_sample": True}, {"do_sample": True, "num_beams": 3}])
def test_strings_end_within_the_limit(search: dict[str, Any], tmp_path: Path) -> None:
    """Sentences of 5, 9, 13, … tokens behind a prompt of two that the grammar does not read."""
    prior, model = prior_with(tmp_path, "automaton({place}/endless.grammar, on_zero=skip)"), causal()
    torch.manual_seed(5)
    prompt = torch.tensor([[END, 9], [END, 3]] * 20)
    processor = BackgroundProcessor(prior, torch.tensor(TOKENS), unread=2, longest=10)
    found = model.generate(prompt, max_new_tokens=10, logits_processor=[processor], **search)[:, 2:].tolist()
    ends = ["le chat dort .", "la mer dort ."]
    assert {text(row) for row in found} <= {*ends, *(f"le chat qui voit {end}" for end in ends)}
    assert all(END in row for row in found)


def test_a_source_with_terms_and_a_batch_of_beams(tmp_path: Path) -> None:
    """Each sentence has what its own source requires, exactly once; an encoder-decoder, by its own softmax."""
    prior = prior_with(tmp_path, "ngram:2", source_dictionary=SOURCE, evidence=EvidenceOptions(("terms", "copies")))
    reader = LogLinearHead(prior, 1, source_size=1)
    forms = WordForms()
    for word in ("chat", "mer", "chien"):
        forms.add(word, word)
    of_system = pytest.importorskip("fairseq_llrnn.systems.terms.terms")
    terms = of_system.Terms(evidence_table(prior), forms, must=True)
    source = reader.encode_source(
        ["the cat sleeps\tchat", "the sea sleeps\tsea => mer", "the cat sea\tmer\tchat"], terms
    )
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        vocab_size=15, decoder_vocab_size=15, share_encoder_decoder_embeddings=False, d_model=8, encoder_layers=1,
        decoder_layers=1, encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2,
        eos_token_id=END, pad_token_id=10, decoder_start_token_id=END, forced_eos_token_id=None, init_std=0.5,
        max_position_embeddings=32, bos_token_id=END,
    )  # fmt: skip
    model = transformers.MarianMTModel(config).eval()
    read = (source & 0xFFFFFFFF).clamp(max=7)
    uniform = prior_with(tmp_path, "uniform")
    for search, has_product in product(({"num_beams": 4}, {"do_sample": True}), (False, True)):
        processor = BackgroundProcessor(prior, torch.tensor(TOKENS), longest=7, source=source)
        if has_product:  # the sources are those of the second part
            processor = BackgroundProcessor(uniform, torch.tensor(TOKENS)) * processor
        found = model.generate(
            read, attention_mask=(read != 1).long(), max_new_tokens=7, logits_processor=[processor], **search
        )
        written = [text(row) for row in found[:, 1:].tolist()]
        for sentence, required in zip(written, ({"chat"}, {"mer"}, {"mer", "chat"}), strict=True):
            words = sentence.split()
            assert all(words.count(word) == 1 for word in required), written
    pair = BackgroundProcessor(prior, torch.tensor(TOKENS), source=source[:2])
    with pytest.raises(DataError, match="product: expected processors for one batch, found sources of 2 and 3 sent"):
        processor * pair
    with pytest.raises(DataError, match="expected as many hypotheses of each of the 3 sources or constraints, found 4"):
        processor(torch.full((4, 1), END), torch.zeros(4, 15))
    unsayable = reader.encode_source(["the cat\tchien"], terms)
    with pytest.raises(DataError, match="none of 'chien' .source 1.; give a form that is one token"):
        BackgroundProcessor(prior, torch.tensor(TOKENS), source=unsayable)


def left_padded(*prompts: list[int]) -> Tensor:
    longest = max(map(len, prompts))
    return torch.tensor([[10] * (longest - len(prompt)) + prompt for prompt in prompts])


@pytest.mark.parametrize("search", [{}, {"num_beams": 4}, {"do_sample": True}, {"use_cache": False}])
def test_prompts_are_not_read(search: dict[str, Any], tmp_path: Path) -> None:
    """One processor for prompts of other lengths and batches of other sizes, one after the other."""
    prior, model = prior_with(tmp_path, "automaton({place}/some.grammar, on_zero=skip)"), causal()
    processor, again = BackgroundProcessor(prior, torch.tensor(TOKENS), longest=10), [END, 9]
    voit = numbers("voit voit")
    batches = [
        left_padded([END]),
        left_padded([END, *voit], [END], [END, voit[0]]),
        left_padded([END, voit[0]], [END]),  # a beginning of a prompt before
        left_padded(again),
        left_padded(again),
        left_padded([*again, *voit]),
    ]
    for prompts in batches:
        mask = (prompts != 10).long()
        found = model.generate(prompts, attention_mask=mask, max_new_tokens=10, logits_processor=[processor], **search)
        assert {text(row) for row in found[:, prompts.size(1) :].tolist()} <= set(LANGUAGE)


def test_a_prompt_that_the_background_reads(tmp_path: Path) -> None:
    prior, model = prior_with(tmp_path, "automaton({place}/some.grammar, on_zero=skip)"), causal()
    processor = BackgroundProcessor(prior, torch.tensor(TOKENS), unread=1, longest=10)
    found = model.generate(torch.tensor([[END, *numbers("la mer")]]), max_new_tokens=10, logits_processor=[processor])
    assert text(found[0, 1:].tolist()) in LANGUAGE
    for words, place in (("mer la", 1), ("la mer la", 3)):
        prompt = torch.tensor([[END, *numbers(words)]])
        expected = f"the background allows, found token {prompt[0, place]}, which it forbids, at place {place}; leave"
        with pytest.raises(DataError, match=expected):
            model.generate(prompt, max_new_tokens=10, logits_processor=[processor])


def test_a_search_that_goes_back_needs_the_length_of_its_prompt(tmp_path: Path) -> None:
    prior, scores = prior_with(tmp_path, SOME), torch.zeros(1, 15)
    processor = BackgroundProcessor(prior, torch.tensor(TOKENS))
    written = torch.tensor([[END, *numbers("la mer dort")]])
    for length in (1, 2, 3, 4):
        processor(written[:, :length], scores)
    with pytest.raises(DataError, match="expected a longer text at each step, found 3 tokens that, without"):
        processor(written[:, :3], scores)
    other = torch.cat([written[:, :2], torch.full_like(written[:, :1], numbers("chat")[0])], dim=1)
    with pytest.raises(DataError, match="expected a longer text at each step"):  # a candidate that was rejected
        processor(other, scores)
    fixed = BackgroundProcessor(prior, torch.tensor(TOKENS), unread=1)
    for length in (1, 2, 3, 4, 3):
        last = fixed(written[:, :length], scores)
    torch.testing.assert_close(last, BackgroundProcessor(prior, torch.tensor(TOKENS), unread=1)(written[:, :3], scores))


def test_sources_of_another_prior(tmp_path: Path) -> None:
    """Strings that sources offer have numbers in one prior object only."""
    options = {"source_dictionary": SOURCE, "evidence": EvidenceOptions(("copies",))}
    one, other = (prior_with(tmp_path, "unigram", **options) for _ in range(2))
    source = LogLinearHead(one, 1, source_size=1).encode_source(["the zebra sleeps"])
    head, states = LogLinearHead(other, 1, source_size=1), torch.zeros(1, 3, 1)
    hidden, targets = torch.zeros(1, 2, 1), torch.tensor([[4, 2]])
    for use in (
        lambda: BackgroundProcessor(other, torch.tensor(TOKENS), source=source),
        lambda: head.loss(hidden, targets, source=source, source_states=states),
        lambda: head.log_probs(hidden, previous=head.previous(targets), source=source, source_states=states),
        lambda: head.start(1, source=source, source_states=states),
        lambda: head.possible(targets, source),
    ):
        with pytest.raises(DataError, match="source: expected ids of source words, from 0 to 7, found 8; encode s"):
            use()
    with pytest.raises(DataError, match="word of each token, `</s>` among them, found others; give words_of_tokens"):
        BackgroundProcessor(other, torch.tensor([*TOKENS, len(SYMBOLS)]))


def test_what_it_is_made_of(tmp_path: Path) -> None:
    prior, words = prior_with(tmp_path, SOME), torch.tensor(TOKENS)
    endless = words[words != prior.index("</s>")]
    for other, name in ((list(TOKENS), "a list"), (endless, "others"), (words + 99, "others")):
        with pytest.raises(DataError, match=f"word of each token, `</s>` among them, found {name}; give"):
            BackgroundProcessor(prior, other)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="unread -1: expected a number of at least 0"):
        BackgroundProcessor(prior, words, unread=-1)
    with pytest.raises(DataError, match="the 5 tokens that are not read, found 1 written; give `unread`, the l"):
        BackgroundProcessor(prior, words, unread=5)(torch.zeros(1, 1, dtype=torch.long), torch.zeros(1, len(words)))


def test_a_limit_that_is_too_short(tmp_path: Path) -> None:
    prior = prior_with(tmp_path, SOME)
    with pytest.raises(DataError, match="`longest` of at least 5, within which a string can be completed, found 4"):
        BackgroundProcessor(prior, torch.tensor(TOKENS), longest=4)
