"""The log-linear head on a pretrained model: a prior over the tokens of a tokenizer, and weights that keep the softmax.

Sizes: K rows of the softmax, V words of the prior, H width.

Each row of the softmax is a word of the prior, also that of a start or padding token. With the rows w, the biases c and
a background b that does not depend on the context, the indicator of each word x starts with

    W_x  =  s w_x        c_x  =  s c'_x − log b(x)        all other weights 0

so that p(x | h) ∝ b(x) exp(hᵀ W_x + c_x) is the softmax. s is 1, or a factor by which the model scales its logits. If b
leaves a token without weight, as a table that does not list it, the token first gets the least weight of the others. A
background that depends on the context multiplies the softmax.
"""

from __future__ import annotations

import copy
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import MODEL_MAPPING, AutoModel, PreTrainedConfig

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import EOS, PADDING_ENTRY, SPECIALS, UNK, WordList, count_blocks
from fairseq_llrnn.features.feature_table import SPECIAL, TOP_FORM
from fairseq_llrnn.files.reading import as_paths
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.huggingface.token_weights import TokenAutomaton
from fairseq_llrnn.prior.building import build_prior
from fairseq_llrnn.prior.expression import Atom, Times
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart
from fairseq_llrnn.prior.parts.static import StaticPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.prior.recipe_file import read_recipe
from fairseq_llrnn.settings import checked

Recipes = Recipe | Mapping[str, Any] | str | os.PathLike[str] | None

NEVER = -1e4  # the bias of a word that no token stands for: its probability is 0, also in half precision
PROBES = 2, 6  # sequences and tokens of the batch that the logits are compared on
TOLERANCE = 1e-3  # of logits in float32, relative to the largest
LARGE = 1e3  # the largest logit of the comparison
CAP = re.compile("(?<!attn_)logits?_soft_?cap")  # settings of a configuration, to name in an error
DTYPES = torch.float16, torch.bfloat16, torch.float32, torch.float64  # of rows that can be copied


def head_width(auto_model: Any, config: PreTrainedConfig) -> tuple[int, int]:
    """The width of the states that a model's softmax reads, and that of the embeddings of its words."""
    with torch.device("meta"):
        model = auto_model.from_config(config)
    return model.get_output_embeddings().weight.size(1), model.get_input_embeddings().weight.size(1)


def wrapped(cls: Any, pretrained: Any, tokenizer: Any, recipe: Recipes, constraint: Any) -> Any:
    """As LogLinearModel.wrap, of the class `cls`."""
    if hasattr(pretrained, "peft_config"):
        raise OptionError(
            "wrap: expected a model without adapters, found one of PEFT; call merge_and_unload() first, or wrap the "
            'model and then add adapters with modules_to_save=["head"]'
        )
    if not hasattr(pretrained, "get_output_embeddings") or pretrained.get_output_embeddings() is None:
        raise OptionError(
            f"wrap: expected a model of transformers with a softmax over tokens, found {type(pretrained).__name__}; "
            "load it with AutoModelForCausalLM or AutoModelForSeq2SeqLM"
        )
    cls.check_network(pretrained.config)
    softmax = pretrained.get_output_embeddings()
    check_softmax(softmax)
    network = network_of(pretrained)
    symbols, words = token_words(tokenizer, len(softmax.weight))
    prior = with_weight_for_all(token_prior(symbols, tokenizer, words, as_recipe(recipe)), words)
    if constraint is not None:
        prior = constrained(prior, tokenizer, words, constraint)
    scale, biases = scale_and_biases(pretrained, network)
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    start = getattr(pretrained.config, "decoder_start_token_id", None)
    if start is None:
        start = special["eos_token_id"] if special["bos_token_id"] is None else special["bos_token_id"]
    else:
        special["decoder_start_token_id"] = start
    if special["pad_token_id"] is None:
        del special["pad_token_id"]
    config = cls.config_class(
        text_config=pretrained.config, feature_input=False, tie_word_embeddings=False, num_tokens=len(words),
        head_size=softmax.weight.size(1), start_token_id=start, **special,
    )  # fmt: skip
    with torch.device("meta"):
        model = cls(config, prior)
    model.model = network
    model.register_buffer("words", words.clone())
    set_weights(model.head, words, scale * softmax.weight.detach(), scale * biases)
    model.head.to(softmax.weight.device, softmax.weight.dtype)
    model.words = model.words.to(softmax.weight.device)
    model.generation_config = copy.deepcopy(pretrained.generation_config)
    ends = model.generation_config.eos_token_id
    if tokenizer.eos_token_id not in (ends if isinstance(ends, list) else [ends]):
        model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.tokenizer = tokenizer  # for scores of texts
    return model.train(pretrained.training)


def network_of(pretrained: Any) -> Any:
    """The network of a model, as AutoModel makes it.

    Raises:
        OptionError: it has another one.
    """
    found = type(pretrained).__name__
    if type(pretrained.config) not in MODEL_MAPPING:
        raise OptionError(f"wrap: expected a model whose network AutoModel makes, found {found}; use another")
    with torch.device("meta"):
        network = AutoModel.from_config(pretrained.config)
    if type(network) is type(pretrained):
        raise OptionError(f"wrap: expected a network without a softmax, found {found}; wrap its language_model")
    for part in (pretrained.base_model, *pretrained.children()):
        if type(part) is type(network):
            return part
    for name, module in network.named_children():
        if type(getattr(pretrained, name, None)) is not type(module):
            raise OptionError(
                f"wrap: expected a model whose network is a {type(network).__name__}, found {found}; load a whole "
                "model whose network AutoModel makes, not a decoder alone"
            )
        setattr(network, name, getattr(pretrained, name))
    return network


# ---- the prior ------------------------------------------------------------------------------------------------------


def as_recipe(recipe: Recipes) -> Recipe:
    """Raises OptionError for a recipe in which some token has no indicator."""
    if recipe is None:
        return Recipe.softmax()
    if isinstance(recipe, (str, os.PathLike)):
        recipe = read_recipe(os.fspath(recipe))
    if not isinstance(recipe, Recipe):
        recipe = checked(Recipe, recipe, lambda name: f"wrap: recipe: {name}" if name else "wrap: recipe")
    if recipe.top_words not in (None, "all"):
        raise OptionError(
            f"wrap: recipe: top_words {recipe.top_words}: expected all, since each token keeps its row of the softmax; "
            "leave it out"
        )
    return replace(recipe, top_words="all")


def token_words(tokenizer: Any, rows: int) -> tuple[list[str], Tensor]:
    """The symbols of a prior over a tokenizer's tokens, (V,), and the word of each row of the softmax, (K,).

    A token's symbol is its string. A token with a blank in it, a second one of the same string, one that looks like a
    padding entry of a dictionary, and a row without a token have the symbol `<token:NUMBER>`.

    Raises:
        DataError: there is no end of sentence, or a token has no row.
    """
    end, unk = tokenizer.eos_token_id, tokenizer.unk_token_id
    if end is None or not end < rows:
        raise DataError(
            f"wrap: expected a tokenizer with an end of sentence among the model's {rows:,} tokens, found "
            f"{'none' if end is None else f'number {end:,}'}; set its eos_token"
        )
    if len(tokenizer) > rows:
        raise DataError(
            f"wrap: expected a row of the softmax for each token, found {len(tokenizer):,} tokens and {rows:,} rows; "
            "call model.resize_token_embeddings(len(tokenizer)) first"
        )
    fixed = {end: EOS} if unk is None or unk == end or unk >= rows else {end: EOS, unk: UNK}
    known = dict(enumerate(tokenizer.convert_ids_to_tokens(range(len(tokenizer)))))
    symbols = list(SPECIALS)
    number = {symbol: at for at, symbol in enumerate(symbols)}
    words = []
    for token in range(rows):
        symbol = str(fixed.get(token, known.get(token, "")))
        if token not in fixed:
            if not symbol or symbol in number or PADDING_ENTRY.fullmatch(symbol) or any(map(str.isspace, symbol)):
                symbol = f"<token:{token}>"
            number[symbol] = len(symbols)
            symbols.append(symbol)
        words.append(number[symbol])
    return symbols, torch.tensor(words)


def token_prior(symbols: list[str], tokenizer: Any, words: Tensor, recipe: Recipe) -> Prior:
    """Build a prior over tokens. The tokenizer splits the texts of the recipe."""
    if not recipe.text:
        return build_prior(symbols, recipe)
    dictionary = WordList(tuple(symbols), np.zeros(len(symbols), dtype=np.int64))
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, path in enumerate(as_paths(recipe.text)):
            paths.append(Path(folder, str(number)))
            with paths[-1].open("w", encoding="utf-8") as file:
                for _, line in iter_lines(path):
                    tokens = tokenizer(line.rstrip("\n"), add_special_tokens=False).input_ids
                    file.write(" ".join(symbols[words[token]] for token in tokens) + "\n")
        # counted here, without advice on the tokenisation of words
        counts = dictionary.counts_of(count_blocks(paths, recipe.workers))
        return replace(build_prior(symbols, replace(recipe, text=paths, counts=counts)), recipe=recipe)


def with_weight_for_all(prior: Prior, words: Tensor) -> Prior:
    """Return a prior whose static background can be divided out: each token's word has weight. words: (K,)."""
    of_tokens = np.unique(words.numpy())

    def raised(log_weights: np.ndarray) -> np.ndarray:
        least = log_weights[np.isfinite(log_weights)].min()
        changed = log_weights.copy()
        changed[of_tokens] = np.where(np.isfinite(log_weights[of_tokens]), log_weights[of_tokens], least)
        return changed

    static = [prior.log_weights, *(part.log_weights for part in prior.parts if isinstance(part, StaticPart))]
    if all(np.isfinite(log_weights[of_tokens]).all() for log_weights in static):
        return prior
    if not prior.background(has_source=False).bind().is_context_independent:
        return prior
    parts = tuple(part.reweighed(raised) if isinstance(part, StaticPart) else part for part in prior.parts)
    return replace(prior, log_weights=raised(prior.log_weights), parts=parts)


def constrained(prior: Prior, tokenizer: Any, words: Tensor, constraint: Any) -> Prior:
    """Multiply the background of a prior by the automaton of a BackgroundProcessor. words: (K,).

    Raises:
        OptionError: the processor is no automaton, has other tokens or a limit.
    """
    weights = getattr(constraint, "weights", None)
    if (
        not isinstance(weights, TokenAutomaton) or constraint.longest is not None
        or not constraint.finds_unread and constraint.states.unread > 0
    ):  # fmt: skip
        raise OptionError(
            "wrap: constraint: expected a BackgroundProcessor that is an automaton over tokens, of from_regex, "
            "from_grammar in our format, from_words or a product of these, without `after`, `unread` and "
            f"`longest`, found another {type(constraint).__name__}; make one, or pass it to `generate` as a logits "
            "processor"
        )
    if (weights.num_tokens, constraint.eos) != (len(tokenizer), tokenizer.eos_token_id):
        raise OptionError(
            f"wrap: constraint: expected one on the model's tokenizer, {len(tokenizer):,} tokens with the end "
            f"{tokenizer.eos_token_id}, found {weights.num_tokens:,} with {constraint.eos}; make it with this tokenizer"
        )
    part = AutomatonPart(weights.over_words(words.numpy(), len(prior.symbols)), "automaton")
    larger = prior.with_part(part)
    *bases, own = (Atom(name, name) for name in larger.bases)
    if not bases:
        return larger
    return replace(larger, expression=Times((prior.expression or bases[0], own)))


# ---- the weights ----------------------------------------------------------------------------------------------------


def check_softmax(softmax: Any) -> None:
    """Check that the rows of a softmax can be copied. Raises OptionError for quantised rows."""
    rows: Any = getattr(softmax, "weight", None)
    if type(rows) not in (Tensor, nn.Parameter) or rows.dtype not in DTYPES or rows.dim() != 2:
        found = "no weight" if rows is None else f"a {type(rows).__name__} of {getattr(rows, 'dtype', 'no type')}"
        raise OptionError(
            f"wrap: expected rows of the softmax as one tensor of {', '.join(map(str, DTYPES))}, found {found} in "
            f"{type(softmax).__name__}; load the model without quantised output embeddings (name `lm_head` among the "
            "modules that are not converted)"
        )


@torch.no_grad()
def scale_and_biases(pretrained: Any, network: Any) -> tuple[float, Tensor]:
    """By what a model scales its logits, and the biases (K,) of its softmax.

    The output of the softmax is enlarged in the comparison, since a cap hardly changes small logits.

    Raises:
        OptionError: the logits are not linear in the network's last hidden states, or need more than tokens.
    """
    softmax = pretrained.get_output_embeddings()
    rows = softmax.weight
    biases = torch.zeros_like(rows[:, 0]) if getattr(softmax, "bias", None) is None else softmax.bias.detach()
    final = getattr(pretrained, "final_logits_bias", None)
    final = torch.zeros_like(biases) if final is None else final.flatten().to(biases.dtype)
    tokens = torch.arange(PROBES[0] * PROBES[1], device=rows.device).view(PROBES) * 7919 % len(rows)
    batch = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    if pretrained.config.is_encoder_decoder:
        batch["decoder_input_ids"] = tokens.flip(1)
    factor = 1.0

    def enlarge(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        nonlocal factor
        factor = LARGE / max(float(output.abs().amax()), 1e-6)
        return output * factor

    was_training = pretrained.training
    pretrained.eval()
    network.eval()
    handle = softmax.register_forward_hook(enlarge)
    try:
        wanted = pretrained(**batch).logits.float()
        states = network(**batch).last_hidden_state.float()
    except Exception as error:
        main = pretrained.main_input_name
        raise OptionError(
            f"wrap: expected a model that reads tokens alone, found {type(pretrained).__name__} "
            f"({error if main == 'input_ids' else f'it reads {main}'}); leave the model as it is, and constrain its "
            "search with a BackgroundProcessor"
        ) from error
    finally:
        handle.remove()
        pretrained.train(was_training)
    off = float("inf")
    if wanted.shape == (*states.shape[:-1], len(rows)) and states.size(-1) == rows.size(1):
        found = factor * (states @ rows.float().T + biases.float()) + final.float()
        wanted, found = (each - each.mean(-1, keepdim=True) for each in (wanted, found))
        scale = float((wanted * found).sum() / found.square().sum().clamp_min(1e-30))
        usual = (1.0, rows.size(1) ** -0.5)
        scale = next((each for each in usual if abs(scale / each - 1.0) < TOLERANCE / 10), scale)
        off = float((wanted - scale * found).abs().amax() / wanted.abs().amax().clamp_min(1.0))
    if off > (TOLERANCE if rows.dtype in (torch.float32, torch.float64) else 0.05):
        text_config = pretrained.config.get_text_config(decoder=True)
        settings = (f"{name}={value}" for name, value in vars(text_config).items() if CAP.search(name) and value)
        by = "of another size" if off == float("inf") else f"by up to {100 * off:.2g} %"
        raise OptionError(
            f"wrap: expected logits that are linear in the last hidden states, found others in "
            f"{type(pretrained).__name__} ({by}{''.join(f', {each}' for each in settings)}); a model that caps or "
            "transforms its logits is not supported"
        )
    return scale, biases + final


@torch.no_grad()
def set_weights(head: Any, words: Tensor, rows: Tensor, biases: Tensor) -> None:
    """Let a head over tokens start as a softmax (module docstring).

    Args:
        words: (K,). rows: (K, H). biases: (K,).
    """
    prior, output = head.prior, head.output
    index, weight, bias = prior.output.features.index, output.weight, output.bias
    indicators = torch.tensor([index[f"{SPECIAL if x in SPECIALS else TOP_FORM}:{x}"] for x in prior.symbols])
    weight.zero_()
    bias.zero_()
    weight[indicators[words]] = rows.to(weight)
    bias[indicators[words]] = biases.to(bias)
    background = head.background.bind()
    if background.is_context_independent:
        bias[indicators[words]] -= background.view(background.start(1)).log_weights[0].to(bias)[words]
    without = torch.ones(len(prior.symbols), dtype=torch.bool)
    without[words] = False
    bias[indicators[without]] = NEVER
