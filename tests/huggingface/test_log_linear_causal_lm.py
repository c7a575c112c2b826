"""Language models of transformers with the log-linear head: wrapped softmaxes, losses, searches, padding, and files."""

import math
import os
from itertools import product
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from thinned_grids import one_in
from tiny_tokenizers import tiny_tokenizer
from torch import Tensor

from fairseq_llrnn import LogLinearHead, Prior
from fairseq_llrnn.backgrounds.language_model import ModelBackground
from fairseq_llrnn.errors import DataError, OptionError, PriorError
from fairseq_llrnn.features.dictionary import SPECIALS
from fairseq_llrnn.prior import EvidenceOptions, Recipe, build_prior

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

import transformers

from fairseq_llrnn.huggingface import BackgroundProcessor, LogLinearForCausalLM, LogLinearForSeq2SeqLM

WORDS = "le la chat mer table dort voit qui .".split()
SYMBOLS = (*SPECIALS, *WORDS)
LANGUAGE = [f"{who} {does} ." for who, does in product(("le chat", "la mer", "la table"), ("dort", "voit le chat"))]
GRAMMAR = 'S -> NP VP "."\nNP -> "le chat" | "la mer" | "la table"\nVP -> "dort" | "voit le chat"\n'
ENDLESS = '%depth 6\nS -> NP "dort ."\nNP -> "le chat" | "la mer" | "le chat qui voit" NP\n'
TOKENS = ["<pad>", "<start>", "<end>", "<unk>", *WORDS, "a b"]  # of a tokenizer, and a token with a blank
ROWS = len(TOKENS) + 2  # of the softmax: two more than tokens
START, END = 1, 2

HIDDEN = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
NETWORKS = {
    "GPT2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "Llama": HIDDEN,
    "Mamba": {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4},
    "Rwkv": {"hidden_size": 16, "num_hidden_layers": 2, "attention_hidden_size": 16},
    "OPT": {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "ffn_dim": 8,
        "word_embed_proj_dim": 8,
    },
    "GPTJ": {"n_embd": 16, "n_layer": 1, "n_head": 2, "rotary_dim": 4},
    "Cohere": HIDDEN,
    "FalconH1": {**HIDDEN, "num_key_value_heads": 2, "mamba_d_ssm": 16, "mamba_n_heads": 2, "mamba_d_state": 4},
    "RecurrentGemma": {**HIDDEN, "num_hidden_layers": 3, "lru_width": 16, "logits_soft_cap": 1e7},
}
MAIN = ["GPT2", "Llama", "Mamba"]


def configuration(name: str, **more: Any) -> Any:
    special = {"bos_token_id": START, "eos_token_id": END, "pad_token_id": 0}
    kind = getattr(transformers, f"{name}Config")
    return kind(**{"vocab_size": ROWS, "initializer_range": 0.4, **special, **NETWORKS.get(name, HIDDEN), **more})


def tokenizer(**special: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({token: at for at, token in enumerate(TOKENS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = special or {"pad_token": "<pad>", "eos_token": "<end>", "unk_token": "<unk>", "bos_token": "<start>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, padding_side="left", **special)


def softmax(name: str, **more: Any) -> Any:
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(configuration(name, **more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def prior_with(place: Path, background: str = "unigram", **options: Any) -> Prior:
    for name, lines in (("some.grammar", GRAMMAR), ("endless.grammar", ENDLESS), ("text", "\n".join(LANGUAGE * 3))):
        (place / name).write_text(lines, encoding="utf-8")
    own = {"text": place / "text", "background": background.format(place=place), "top_words": 7, "suffixes": 2}
    return build_prior(SYMBOLS, Recipe(**{**own, **options}))


def made(prior: Prior, name: str = "GPT2", **settings: Any) -> Any:
    """A model of the prior's words, whose weights differ."""
    torch.manual_seed(2)
    dropout = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0} if name == "GPT2" else {}
    model = LogLinearForCausalLM.from_config(configuration(name, **dropout), prior, **settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


GRAMMAR_OF = "automaton({place}/some.grammar, on_zero=skip)"
BACKGROUNDS = ["unigram", "ngram(3, folds=2)", GRAMMAR_OF, "ngram:2 plus cache:4"]


def rows(*sentences: str, pad: int = 1, left: bool = False, end: bool = True) -> tuple[Tensor, Tensor]:
    """`</s>`, words and `</s>` of each sentence, and the mask."""
    tokens = [torch.tensor([2, *map(SYMBOLS.index, line.split()), *([2] if end else [])]) for line in sentences]
    longest = max(map(len, tokens))
    padded = [[pad] * (longest - len(row)) for row in tokens]
    both = [(p + r.tolist()) if left else (r.tolist() + p) for p, r in zip(padded, tokens, strict=True)]
    ids = torch.tensor(both)
    real = [([0] * len(p), [1] * len(r)) for p, r in zip(padded, tokens, strict=True)]
    return ids, torch.tensor([p + r if left else r + p for p, r in real])


# ---- mistakes -------------------------------------------------------------------------------------------------------


def small_bart() -> Any:
    sizes = {f"{side}_{what}": 1 for side in ("encoder", "decoder") for what in ("layers", "attention_heads")}
    return transformers.BartConfig(vocab_size=ROWS, d_model=16, **sizes)


@pytest.mark.parametrize(
    ("arguments", "settings", "kind", "message"),
    [
        ((small_bart(), None), {}, OptionError, "a network without an encoder, found bart; use LogLinearForSeq2SeqLM"),
        ((transformers.BertConfig(), None), {}, OptionError, "found bert, which also sees .*; set is_decoder=True"),
        ((transformers.BertGenerationConfig(), None), {}, OptionError, "found bert-generation, .*set is_decoder=True"),
        ((transformers.AlbertConfig(), None), {}, OptionError, "left to right, found albert, .*; use another"),
        ((transformers.XLNetConfig(), None), {}, OptionError, "left to right, found xlnet, .*; use another"),
        ((None, configuration("GPT2")), {}, TypeError, "the configuration of a network, such as GPT2.*, found a Prior"),
        ((configuration("GPT2"), "prior"), {}, TypeError, "expected a prior, found 'prior'; read it with Prior.load"),
        ((configuration("GPT2"), None), {"label_smoting": 0.1}, OptionError, "did you mean 'label_smoothing'"),
        ((configuration("GPT2"), None), {"label_smoothing": 2.0}, OptionError, "label_smoothing 2.0: expected"),
    ],
)
def test_mistakes_of_from_config(
    tmp_path: Path, arguments: tuple[Any, ...], settings: dict[str, Any], kind: type[Exception], message: str
) -> None:
    prior = prior_with(tmp_path)
    config, given = (prior if each is None else each for each in arguments)
    with pytest.raises(kind, match=message):
        LogLinearForCausalLM.from_config(config, given, **settings)


def test_the_class_fits_the_network_and_the_folder(tmp_path: Path) -> None:
    LogLinearForCausalLM.from_config(transformers.BertConfig(**HIDDEN, is_decoder=True), prior_with(tmp_path))
    with pytest.raises(OptionError, match="LogLinearForSeq2SeqLM: expected an encoder-decoder, found gpt2; use"):
        LogLinearForSeq2SeqLM.from_config(configuration("GPT2"), prior_with(tmp_path))
    with pytest.raises(OptionError, match="found gpt2; use LogLinearForCausalLM"):
        LogLinearForSeq2SeqLM.wrap(softmax("GPT2"), tokenizer())
    with pytest.raises(OptionError, match="found bart; use LogLinearForSeq2SeqLM"):
        LogLinearForCausalLM.wrap(transformers.BartForConditionalGeneration(small_bart()), tokenizer())
    made(prior_with(tmp_path)).save_pretrained(tmp_path / "ours")
    softmax("GPT2").save_pretrained(tmp_path / "softmax")
    for cls, folder, found in (
        (LogLinearForSeq2SeqLM, "ours", "llrnn_causal_lm"),
        (LogLinearForCausalLM, "softmax", "gpt2"),
    ):
        with pytest.raises(DataError, match=rf"of {cls.__name__}.save_pretrained, found a model of type {found}"):
            cls.from_pretrained(tmp_path / folder)
    with pytest.raises(DataError, match="expected a folder, found none at ./nope; a model of the Hub"):
        LogLinearForCausalLM.from_pretrained("./nope")


def test_more_tokens_than_rows() -> None:
    more = tokenizer()
    more.add_tokens(["maison", "jardin", "rouge"])
    with pytest.raises(DataError, match=f"found {ROWS + 1} tokens and {ROWS} rows; call model.resize_token_embeddings"):
        LogLinearForCausalLM.wrap(softmax("GPT2"), more)


# ---- a wrapped softmax ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_a_wrapped_model_starts_as_the_softmax(name: str, tmp_path: Path) -> None:
    tokens = torch.tensor([[START, 5, 9, 4, 12, 15, 0], [8, 13, 14, 3, 1, 2, 6]])
    for recipe in (None, {"background": "unigram", "shapes": True, "suffixes": 1}):
        model = softmax(name)
        with torch.no_grad():
            wanted = model(tokens).logits.log_softmax(-1)
            greedy = model.generate(tokens[:, :2], max_new_tokens=6, use_cache=name != "Rwkv")
        ours = LogLinearForCausalLM.wrap(model, tokenizer(), recipe)
        torch.testing.assert_close(ours(tokens).logits, wanted, atol=1e-4, rtol=0)
        assert torch.equal(ours.generate(tokens[:, :2], max_new_tokens=6), greedy)
        (tmp_path / "model").mkdir(exist_ok=True)
        ours.save_pretrained(tmp_path / "model")
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
        assert type(again) is LogLinearForCausalLM
        torch.testing.assert_close(again(tokens).logits, ours(tokens).logits, rtol=0, atol=0)


def test_a_background_that_depends_on_the_context_multiplies_the_softmax(tmp_path: Path) -> None:
    """As a BackgroundProcessor does; the tokenizer splits the text."""
    (tmp_path / "text").write_text("\n".join(LANGUAGE * 3), encoding="utf-8")
    model, tokens = softmax("Llama"), torch.tensor([[START, 4, 6, 9]])
    with torch.no_grad():
        logits = model(tokens).logits
    ours = LogLinearForCausalLM.wrap(model, tokenizer(), Recipe(text=tmp_path / "text", background="ngram:3"))
    prior = ours.head.prior
    assert prior.symbols[4:8] == ("<token:0>", "<start>", "le", "la") and "<token:13>" in prior.symbols
    processor = BackgroundProcessor(prior, ours.words, unread=1)
    for length in range(1, 5):
        expected = processor(tokens[:, :length], logits[:, length - 1])
        torch.testing.assert_close(ours(tokens).logits[:, length - 1], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["byte_level", "wordpiece"])
@pytest.mark.parametrize("recipe", [None, {"background": "uniform times ngram:2"}, {"background": "ngram:2"}])
def test_a_constraint_multiplies_the_softmax_also_in_training(
    kind: str, recipe: dict[str, str] | None, tmp_path: Path
) -> None:
    split = tiny_tokenizer(kind, lines=[*LANGUAGE, "12 21"])
    constraint = BackgroundProcessor.from_regex("(la mer|le chat|la table)( dort| voit)* [.0-9]{1,3}", split)
    if recipe is not None:
        (tmp_path / "text").write_text("\n".join(LANGUAGE * 3), encoding="utf-8")
        recipe = {"text": str(tmp_path / "text"), **recipe}
    plain = softmax("GPT2", vocab_size=len(split) + 3, bos_token_id=1, eos_token_id=1)
    multiplied = softmax("GPT2", vocab_size=len(split) + 3, bos_token_id=1, eos_token_id=1)
    free = LogLinearForCausalLM.wrap(plain, split, recipe)
    ours = LogLinearForCausalLM.wrap(multiplied, split, recipe, constraint)
    tokens = torch.tensor([[1, *split.encode("le chat voit 1", add_special_tokens=False), 1]])
    wanted = torch.cat(
        [
            BackgroundProcessor.product([constraint], unread=1)(tokens[:, :length], free(tokens).logits[:, length - 1])
            for length in range(1, tokens.size(1))
        ]
    )
    torch.testing.assert_close(ours(tokens).logits[0, :-1], wanted, atol=1e-4, rtol=1e-4)
    loss = ours.train()(input_ids=tokens, labels=tokens.masked_fill(tokens.cumsum(1) == 1, -100)).loss
    loss.backward()
    picked = -wanted.gather(1, tokens[0, 1:, None])
    assert loss.isfinite() and loss < free(input_ids=tokens, labels=tokens).loss
    torch.testing.assert_close(ours.eval()(input_ids=tokens, labels=tokens).loss, picked.mean(), atol=1e-4, rtol=0)
    written = ours.generate(tokens[:, :1], max_new_tokens=12, do_sample=True, num_return_sequences=4)
    assert all(text[-1] in ".0123456789" for text in split.batch_decode(written, skip_special_tokens=True))
    ours.save_pretrained(tmp_path / "model")
    again = LogLinearForCausalLM.from_pretrained(tmp_path / "model")
    torch.testing.assert_close(again(tokens).logits, ours(tokens).logits, rtol=0, atol=0)


def test_a_constraint_that_is_no_automaton_over_the_tokens() -> None:
    split, other = tiny_tokenizer("byte_level"), tiny_tokenizer("wordpiece")
    model = softmax("GPT2", vocab_size=len(split))
    others = [BackgroundProcessor.from_words(["no"], split, **option) for option in ({"longest": 9}, {"unread": 2})]
    for processor in (BackgroundProcessor.from_terms(["yes"], split), *others):
        with pytest.raises(OptionError, match="an automaton over tokens, of from_regex.* found another"):
            LogLinearForCausalLM.wrap(model, split, constraint=processor)
    with pytest.raises(OptionError, match="on the model's tokenizer.* make it with this tokenizer"):
        LogLinearForCausalLM.wrap(model, split, constraint=BackgroundProcessor.from_words(["no"], other))


def test_tokens_are_counted_without_advice_on_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The counts are those of the text in tokens. `Ġ.` is a token, not a word with punctuation glued to it."""
    caplog.set_level("WARNING")  # fairseq, once a test has imported it, logs more
    lines = ["la mer est calme .", "le chat dort ."] * 4
    (tmp_path / "text").write_text("\n".join(lines), encoding="utf-8")
    split = tiny_tokenizer("byte_level", lines=lines)
    config = configuration("GPT2", vocab_size=len(split))
    model = transformers.AutoModelForCausalLM.from_config(config)
    prior = LogLinearForCausalLM.wrap(model, split, Recipe(text=tmp_path / "text", shapes=True)).head.prior
    assert "Ġ." in prior.symbols and not caplog.records
    (tmp_path / "tokens").write_text("\n".join(" ".join(split.tokenize(line)) for line in lines), encoding="utf-8")
    of_tokens = build_prior(prior.symbols, Recipe(text=tmp_path / "tokens", shapes=True, top_words="all"))
    assert prior.fingerprint == of_tokens.fingerprint and "punctuation is glued" in caplog.text


def test_a_wrapped_model_is_fine_tuned_and_features_learn(tmp_path: Path) -> None:
    model = LogLinearForCausalLM.wrap(softmax("GPT2"), tokenizer(), {"shapes": True, "background": "uniform"})
    tokens = torch.tensor([[START, 4, 6, 9, 12, END]] * 2)
    step = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for _ in range(4):
        loss = model(input_ids=tokens, labels=tokens).loss
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    index = model.head.prior.output.features.index
    shapes = [number for feature, number in index.items() if feature.startswith("Shape")]
    assert model.head.output.weight[shapes].abs().sum() > 0


def test_what_cannot_be_wrapped() -> None:
    with pytest.raises(OptionError, match="top_words 3: expected all, since each token keeps its row of the softmax"):
        LogLinearForCausalLM.wrap(softmax("GPT2"), tokenizer(), {"top_words": 3})
    with pytest.raises(OptionError, match="wrap: recipe: .*backgruond"):
        LogLinearForCausalLM.wrap(softmax("GPT2"), tokenizer(), {"backgruond": "unigram"})
    with pytest.raises(DataError, match="with an end of sentence among the model's .* tokens, found none; set its eos"):
        LogLinearForCausalLM.wrap(softmax("GPT2"), tokenizer(unk_token="<unk>"))
    with pytest.raises(OptionError, match="a softmax over tokens, found GPT2Model; load it with AutoModelForCausalLM"):
        LogLinearForCausalLM.wrap(softmax("GPT2").transformer, tokenizer())
    sizes = {"d_model": 16, "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 16}
    decoder = transformers.BartForCausalLM(transformers.BartConfig(vocab_size=ROWS, **sizes))
    with pytest.raises(OptionError, match="network is a BartModel, found BartForCausalLM; load a whole"):
        LogLinearForCausalLM.wrap(decoder, tokenizer())


CAPPED = {
    "Gemma2": {"final_logit_softcapping": 30.0, "num_key_value_heads": 2},
    "NanoChat": {"final_logit_softcapping": 15.0},
    "RecurrentGemma": {"logits_soft_cap": 30.0},
    "VaultGemma": {"final_logit_softcapping": 30.0, "num_key_value_heads": 2},
}


@pytest.mark.parametrize("name", CAPPED)
@pytest.mark.parametrize("initializer_range", [0.4, 1e-4])
def test_capped_logits_are_an_error_also_if_they_are_small(name: str, initializer_range: float) -> None:
    ((setting, cap), *_) = CAPPED[name].items()
    capped = softmax(name, **CAPPED[name], initializer_range=initializer_range)
    with pytest.raises(
        OptionError, match=rf"linear in .*, found others in {name}ForCausalLM \(.* %, {setting}={cap}\); a"
    ):
        LogLinearForCausalLM.wrap(capped, tokenizer())
    assert not capped.get_output_embeddings()._forward_hooks


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Cohere", {"logit_scale": 0.3}),
        ("Granite", {"logits_scaling": 13.0}),
        ("GraniteMoe", {"logits_scaling": 2.0, "num_local_experts": 2, "num_experts_per_tok": 1}),
        ("Mpt", {"d_model": 16, "n_heads": 2, "n_layers": 1, "logit_scale": 0.3}),
        ("Gemma2", {"final_logit_softcapping": None, "num_key_value_heads": 2}),
        ("FalconH1", {"lm_head_multiplier": 0.1}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scales_of_logits_are_those_of_the_model(name: str, settings: dict[str, Any], dtype: torch.dtype) -> None:
    model, tokens = softmax(name, **settings).to(dtype), torch.tensor([[START, 5, 9, 4]])
    with torch.no_grad():
        wanted = model(tokens).logits.float().log_softmax(-1)
    found = LogLinearForCausalLM.wrap(model, tokenizer())(tokens).logits
    close = 1e-4 if dtype == torch.float32 else 0.02 * float(wanted.abs().max())
    torch.testing.assert_close(found.float(), wanted, atol=close, rtol=0)


class Packed(torch.Tensor):
    """A tensor of a quantisation library: its operations fail."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("__get__", "size", "dim", "detach", "requires_grad_"):
            return super().__torch_function__(func, types, args, kwargs or {})
        raise AssertionError("not implemented")


@pytest.mark.parametrize(
    ("weight", "found"),
    [
        (lambda rows: rows.as_subclass(Packed), "a Packed of torch.float32"),  # torchao, quanto, bitsandbytes
        (lambda rows: rows.to(torch.int8), "a Parameter of torch.int8"),
        (lambda rows: rows.to(torch.float8_e4m3fn), "a Parameter of torch.float8_e4m3fn"),
        (lambda rows: rows.flatten(), "a Parameter of torch.float32"),
        (None, "no weight"),  # optimum and HQQ: qweight, W_q
    ],
)
def test_quantised_output_embeddings_are_an_error(weight: Any, found: str) -> None:
    model = softmax("Llama")
    rows = model.lm_head.weight.detach()
    model.lm_head = type("QuantLinear", (torch.nn.Module,), {})()
    if weight is not None:
        model.lm_head.weight = torch.nn.Parameter(weight(rows), requires_grad=False)
    with pytest.raises(
        OptionError, match=rf"rows of the softmax as one .*, found {found} in QuantLinear; load .*lm_head"
    ):
        LogLinearForCausalLM.wrap(model, tokenizer())


STATIC = ["unigram", "unigram(smoothing=none)", "uniform", "all.tsv", "few.tsv", "few.tsv times unigram",
          "0.5 all.tsv plus 0.5 few.tsv", "few.tsv at temperature 2"]  # fmt: skip


@pytest.mark.parametrize("background", STATIC)
def test_each_static_background_is_divided_out(
    background: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("le chat dort .\n" * 30, encoding="utf-8")
    Path("all.tsv").write_text("".join(f"{word}\t{at}\n" for at, word in enumerate([*WORDS, "</s>", "<unk>"], 1)))
    Path("few.tsv").write_text("le\t3\nchat\t0\nmer\t1\n")
    model, tokens = softmax("GPT2"), torch.tensor([[START, 5, 9, 4, 12, 15, 0]])
    with torch.no_grad():
        wanted = model(tokens).logits.log_softmax(-1)
    ours = LogLinearForCausalLM.wrap(model, tokenizer(), Recipe(text="text", background=background))
    torch.testing.assert_close(ours(tokens).logits, wanted, atol=1e-4, rtol=0)
    ours.save_pretrained("model")
    again = LogLinearForCausalLM.from_pretrained("model")
    torch.testing.assert_close(again(tokens).logits, wanted, atol=1e-4, rtol=0)


def test_a_token_that_looks_like_a_padding_entry_keeps_its_row() -> None:
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"<end>": 0, "<unk>": 1, "a": 2, "madeupword0000": 3}, "<unk>"))
    split = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>", unk_token="<unk>")
    model, tokens = softmax("GPT2", vocab_size=4), torch.tensor([[0, 3, 2]])
    with torch.no_grad():
        wanted = model(tokens).logits.log_softmax(-1)
    torch.testing.assert_close(LogLinearForCausalLM.wrap(model, split)(tokens).logits, wanted, atol=1e-4, rtol=0)


# ---- losses and scores ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_the_loss_is_the_mean_of_log_p_word_by_word(background: str, tmp_path: Path) -> None:
    """In float64, with its gradient: by the head's own search, one word after the other, whatever the padding."""
    model = made(prior_with(tmp_path, background)).double()
    head, some = model.head, (LANGUAGE[0], LANGUAGE[3])
    wanted = []
    for sentence in some:
        ids, _ = rows(sentence)
        hidden = model.model(inputs_embeds=model.get_input_embeddings()(ids)).last_hidden_state
        state = head.start(1)
        for place in range(ids.size(1) - 1):
            wanted.append(head.step(hidden[:, place], state).word_log_probs()[0, ids[0, place + 1]])
            state = head.advance(state, ids[:, place + 1])
    oracle = -torch.stack(wanted).mean()
    parameters = [p for p in model.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(oracle, parameters, allow_unused=True)
    for left in (False, True):
        ids, mask = rows(*some, left=left)
        loss = model(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
        torch.testing.assert_close(loss, oracle, rtol=1e-10, atol=1e-10)
        found = torch.autograd.grad(loss, parameters, allow_unused=True)
        for a, b in zip(found, gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)
    with torch.no_grad():
        beside = model(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))
        halves = model(input_ids=ids, attention_mask=mask, labels=ids, num_items_in_batch=24)
    torch.testing.assert_close(beside.loss, oracle.detach())
    torch.testing.assert_close(halves.loss, oracle.detach() * len(wanted) / 24)
    assert beside.logits.shape[:2] == ids.shape


@pytest.mark.parametrize(("name", "background"), one_in(3, MAIN, BACKGROUNDS))
def test_padding_on_the_left_changes_nothing(name: str, background: str, tmp_path: Path) -> None:
    model = made(prior_with(tmp_path, background), name)
    some = ("la mer", "le chat voit", "")
    ids, mask = rows(*some, left=True, end=False)
    with torch.no_grad():
        together = model(input_ids=ids, attention_mask=mask).logits
    options = {"max_new_tokens": 8, "num_beams": 3, "length_penalty": 0.0}
    scored = {"return_dict_in_generate": True, "output_scores": True}
    found = model.generate(ids, attention_mask=mask, **options, **scored)
    for number, sentence in enumerate(some):
        alone, _ = rows(sentence, end=False)
        with torch.no_grad():
            logits = model(input_ids=alone).logits[0]
        torch.testing.assert_close(together[number, -len(logits) :], logits, atol=1e-4, rtol=1e-4)
        one = model.generate(alone, **options, **scored)
        new = found.sequences[number, ids.size(1) :]
        expected = one.sequences[0, alone.size(1) :]
        assert new[: len(expected)].tolist() == expected.tolist()
        assert found.sequences_scores[number].item() == pytest.approx(one.sequences_scores[0].item(), abs=1e-4)


SEARCHES = [{"num_beams": 4, "num_return_sequences": 2}, {"num_beams": 2, "use_cache": False}]


@pytest.mark.parametrize(("name", "search", "background"), one_in(5, MAIN, SEARCHES, BACKGROUNDS))
def test_scores_of_beams_are_those_of_whole_texts(
    name: str, search: dict[str, Any], background: str, tmp_path: Path
) -> None:
    model = made(prior_with(tmp_path, background), name)
    ids, mask = rows("la", "le chat", left=True, end=False)
    found = model.generate(
        ids, attention_mask=mask, max_new_tokens=8, length_penalty=0.0, return_dict_in_generate=True,
        output_scores=True, **search,
    )  # fmt: skip
    each = search.get("num_return_sequences", 1)
    for number, row in enumerate(found.sequences):
        begin = ids.size(1)
        prompt = ids[number // each][mask[number // each] == 1]
        new = row[begin:]
        new = new[: (new.tolist() + [2]).index(2) + 1].unsqueeze(0)
        whole = torch.cat([prompt.unsqueeze(0), new], dim=1)
        with torch.no_grad():
            log_p = model(input_ids=whole).logits[:, prompt.numel() - 1 : -1].gather(2, new.unsqueeze(2)).sum()
        assert found.sequences_scores[number].item() == pytest.approx(log_p.item(), abs=1e-4)


@pytest.mark.parametrize("search", [{}, {"num_beams": 3}, {"do_sample": True}])
def test_texts_end_within_the_limit(search: dict[str, Any], tmp_path: Path) -> None:
    model = made(prior_with(tmp_path, "automaton({place}/endless.grammar, on_zero=skip)"))
    torch.manual_seed(5)
    ids, mask = rows(*["", "le chat qui"] * 20, left=True, end=False)
    written = model.head.decode(model.generate(ids, attention_mask=mask, max_new_tokens=10, **search)[:, ids.size(1) :])
    ends = ["le chat dort .", "la mer dort ."]
    assert set(written[::2]) <= {*ends, *(f"le chat qui voit {end}" for end in ends)}
    assert set(written[1::2]) <= {f"voit {end}" for end in (*ends, *(f"le chat qui voit {e}" for e in ends))}
    with pytest.raises(DataError, match="expected max_new_tokens of at least 5, .* found 4; give more"):
        model.generate(ids[:1, -1:], max_new_tokens=4)


def test_the_limit_changes_no_score(tmp_path: Path) -> None:
    """A beam search ranks the texts that end in time by p, without a factor for each step (all texts by hand)."""
    model = made(prior_with(tmp_path, "automaton({place}/endless.grammar, on_zero=skip)"))
    ends = ["le chat dort .", "la mer dort ."]
    log_p = {}
    for text in (*ends, *(f"le chat qui voit {end}" for end in ends)):
        tokens, _ = rows(text)
        with torch.no_grad():
            of_tokens = model(input_ids=tokens).logits[:, :-1].gather(2, tokens[:, 1:].unsqueeze(2))
        log_p[text] = of_tokens.sum().item()
    search = {"num_beams": 8, "num_return_sequences": 4, "length_penalty": 0.0, "return_dict_in_generate": True}
    found = model.generate(torch.tensor([[2]]), max_new_tokens=10, output_scores=True, **search)
    scores = dict(zip(model.head.decode(found.sequences[:, 1:]), found.sequences_scores.tolist(), strict=True))
    assert scores == pytest.approx(log_p, abs=1e-4) and [*scores] == sorted(log_p, key=lambda text: -log_p[text])
    assert sum(map(math.exp, log_p.values())) < 0.99, "longer texts have probability, too"


@pytest.mark.parametrize("search", [{"num_beams": 3}, {"num_beams": 6}, {"do_sample": True}, {}])
def test_complete_texts_are_preferred_to_dead_ends(search: dict[str, Any], tmp_path: Path) -> None:
    """Two grammars share a beginning that no common text has; the end of a dead end has log p -1e9."""
    for name, verb in (("one", "dort"), ("other", "voit")):
        (tmp_path / f"{name}.grammar").write_text(f'S -> "le chat {verb} ." | "la mer dort ."\n', encoding="utf-8")
    of = "automaton({{place}}/{}.grammar, on_zero=skip)"
    model = made(prior_with(tmp_path, f"{of.format('one')} times {of.format('other')}"))
    ids = torch.tensor([[2]] * 8)
    torch.manual_seed(1)
    found = model.generate(ids, max_new_tokens=8, return_dict_in_generate=True, output_scores=True, **search)
    texts = model.head.decode(found.sequences[:, 1:])
    assert set(texts) <= {"la mer dort .", "le chat"}
    if "num_beams" in search:
        assert set(texts) == {"la mer dort ."} and found.sequences_scores.min() > -1e6


def test_prompts_of_different_lengths_if_the_background_is_a_language_model(tmp_path: Path) -> None:
    """Its states grow with each word, so that all prompts need one length: one clear error."""
    model = made(prior_with(tmp_path))
    uniform = torch.full((len(SYMBOLS),), 1 / 11).log().index_fill(0, torch.tensor([0, 1]), -torch.inf)
    skewed = torch.randn(len(SYMBOLS), len(SYMBOLS), generator=torch.Generator().manual_seed(1)).log_softmax(1)
    old = model.head.background
    model.head.background = ModelBackground(
        old.class_of, old.num_classes, uniform, 2, lambda read, last: skewed[read[:, -1:] if last else read]
    )
    ids, mask = rows("la", "le mer", left=True, end=False)
    with pytest.raises(DataError, match="generate: expected prompts of one length, since the background is a language"):
        model.generate(ids, attention_mask=mask, max_new_tokens=4)
    same, mask = rows("la mer", "le mer", left=True, end=False)
    found = model.generate(same, attention_mask=mask, max_new_tokens=4, num_beams=2)
    for number in range(2):
        alone = model.generate(same[number : number + 1], max_new_tokens=4, num_beams=2)[0]
        assert found[number, : len(alone)].tolist() == alone.tolist()


# ---- arguments ------------------------------------------------------------------------------------------------------


def test_arguments_of_the_network_pass_through(tmp_path: Path) -> None:
    model = made(prior_with(tmp_path))
    model.set_attn_implementation("eager")
    ids, _ = rows(LANGUAGE[0])
    found = model(input_ids=ids, labels=ids, output_hidden_states=True, output_attentions=True)
    assert len(found.hidden_states) == 3 and len(found.attentions) == 2 and found.logits is None
    embeds = model.get_input_embeddings()(ids)
    torch.testing.assert_close(model(inputs_embeds=embeds, labels=ids).loss, found.loss)
    torch.testing.assert_close(model(inputs_embeds=embeds).logits, model(input_ids=ids).logits)
    of_grammar = made(prior_with(tmp_path, GRAMMAR_OF))
    with pytest.raises(DataError, match="expected input_ids next to inputs_embeds, since the background reads them"):
        of_grammar(inputs_embeds=embeds)
    both = of_grammar(inputs_embeds=of_grammar.get_input_embeddings()(ids), input_ids=ids).logits
    torch.testing.assert_close(both, of_grammar(input_ids=ids).logits)
    prompt, _ = rows("la", end=False)
    from_embeds = of_grammar.generate(prompt, inputs_embeds=of_grammar.get_input_embeddings()(prompt), max_new_tokens=8)
    assert from_embeds[0, -1] == 2
    with pytest.raises(DataError, match="expected input_ids next to inputs_embeds, since the background reads them"):
        of_grammar.generate(inputs_embeds=of_grammar.get_input_embeddings()(prompt), max_new_tokens=8)
    assert model(input_ids=ids, logits_to_keep=2).logits.shape == (1, 2, len(SYMBOLS))


def test_what_the_model_is_not_given(tmp_path: Path) -> None:
    model = made(prior_with(tmp_path, GRAMMAR_OF))
    ids, mask = rows(*LANGUAGE[:2])
    other = prior_with(tmp_path, source_dictionary=SYMBOLS, evidence=EvidenceOptions(("copies",)))
    LogLinearHead(other, 1, source_size=1).encode_source(["zèbre"])
    string = other.session.target.index("zèbre")
    for tokens in (torch.tensor([[2, string, 4]]), torch.tensor([[2, -1, 4]])):
        for use in (lambda t: model(input_ids=t), lambda t: model(input_ids=t, labels=t), model.generate):
            with pytest.raises(DataError, match=r"input_ids: expected token ids from 0 to 12, found (13|-1);"):
                use(tokens)
    with pytest.raises(DataError, match="labels: expected token ids from 0 to 12, found 13"):
        model(input_ids=ids[:1], labels=ids[:1].masked_fill(ids[:1] == 5, 13).masked_fill(ids[:1] == 4, 13))
    for use in (lambda t: model(input_ids=t), lambda t: model.generate(t, max_new_tokens=8)):
        with pytest.raises(DataError, match="expected the first of input_ids to be 2, as in training, found 4; give 2"):
            use(ids[:1, 1:4])
    moved = ids[:, 1:].masked_fill(mask[:, 1:] == 0, -100)
    with pytest.raises(DataError, match="expected labels as input_ids, found each label one place to the left"):
        model(input_ids=ids[:, :-1], attention_mask=mask[:, :-1], labels=moved)
    with pytest.raises(DataError, match="expected input_ids or inputs_embeds, found None"):
        model(labels=ids)
    cache = model.model(inputs_embeds=model.get_input_embeddings()(ids), use_cache=True).past_key_values
    with pytest.raises(DataError, match="past_key_values without the tokens that they are of"):
        model(input_ids=ids[:, :1], past_key_values=cache)
    with pytest.raises(DataError, match="prompts that are padded on the left, found padding on the right; set padding"):
        model.generate(ids, attention_mask=mask, max_new_tokens=4)
    for name in ("GPT2", "Llama"):
        for options in ({"prefill_chunk_size": 1}, {"past_key_values": transformers.DynamicCache()}):
            one = made(prior_with(tmp_path, "ngram:2 plus cache:4"), name)
            if "past_key_values" in options:
                one.model(ids[:1, :2], past_key_values=options["past_key_values"], use_cache=True)
                options["attention_mask"] = torch.ones(1, 3, dtype=torch.int64)
            prompt = ids[:1, 2:3] if "past_key_values" in options else ids[:1, :3]
            with pytest.raises(DataError, match="expected whole prompts, which the|the first of input_ids"):
                one.generate(prompt, max_new_tokens=4, **options)
    with pytest.raises(DataError, match="LogLinearForCausalLM.generate: assisted generation is not supported; use gre"):
        model.generate(ids[:1, :2], assistant_model=model, max_new_tokens=4)
    with pytest.raises(DataError, match="resize_token_embeddings: not supported"):
        model.resize_token_embeddings(30)
    wrapped = LogLinearForCausalLM.wrap(softmax("GPT2"), tokenizer())
    with pytest.raises(
        DataError, match="input_ids: expected tokens from 0 to 15, found 16; use the tokenizer that the"
    ):
        wrapped(input_ids=torch.tensor([[1, 16]]))


def test_a_model_comes_back_with_its_prior_and_nothing_is_pickled(tmp_path: Path) -> None:
    for settings in ({}, {"tie_word_embeddings": False}, {"feature_input": False}):
        model = made(prior_with(tmp_path), **settings)
        folder = tmp_path / "-".join(["saved", *settings])
        with pytest.raises(OptionError, match="push_to_hub=True uploads no prior; call model.push_to_hub"):
            model.save_pretrained(folder, push_to_hub=True)
        model.save_pretrained(folder)
        assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {
            ".json",
            ".safetensors",
            ".npz",
            ".txt",
            ".toml",
        }
        ids, _ = rows(*LANGUAGE[:1])
        for cls in (LogLinearForCausalLM, transformers.AutoModelForCausalLM):
            again = cls.from_pretrained(folder)
            assert type(again) is LogLinearForCausalLM
            torch.testing.assert_close(again(ids).logits, model(ids).logits, rtol=0, atol=0)
            names = [[n for n, p in one.named_parameters() if p.requires_grad] for one in (model, again)]
            assert names[0] == names[1]
        is_tied = not settings
        assert (not settings.get("feature_input", True)) or (
            (again.head.embedding.weight is again.head.output.weight) is is_tied
        )
    prior_with(tmp_path, "uniform").save(folder / "prior")
    with pytest.raises(PriorError, match="the checkpoint was trained with another prior than"):
        LogLinearForCausalLM.from_pretrained(folder)


def test_half_precision_and_compile_run(tmp_path: Path) -> None:
    model = made(prior_with(tmp_path))
    ids, mask = rows(*LANGUAGE[:2])
    given = {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}
    exact = model(**given).loss
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(**given).loss
    rounded.backward()
    torch.testing.assert_close(rounded.float(), exact, atol=0.1, rtol=0.05)
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(**given).loss, exact, atol=1e-5, rtol=1e-5)
    halves = model.to(torch.bfloat16)
    assert halves(**given).loss.isfinite()
    assert halves.generate(ids[:, :1], max_new_tokens=4).size(0) == 2
