"""Small models of transformers with random weights, and small tokenizers of each kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_tokenizers import tiny_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from fairseq_llrnn.prior import Recipe, build_prior

END = "<end>"


def fast(model: Any, decoder: Any = None, pre_tokenizer: Any = None, normalizer: Any = None, **special: str) -> Any:
    made = Tokenizer(model)
    for name, value in (("decoder", decoder), ("pre_tokenizer", pre_tokenizer), ("normalizer", normalizer)):
        if value is not None:
            setattr(made, name, value)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, bos_token=END, **special)


def numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: at for at, token in enumerate(tokens)}


def byte_level() -> Any:
    vocabulary = numbered([END, "a", "b", "Ġ", "Ġa", "ab", "Ġab", "ba", "Ã", "©", "Ã©"])
    merges = [("Ġ", "a"), ("a", "b"), ("Ġ", "ab"), ("Ã", "©")]
    return fast(models.BPE(vocabulary, merges), decoders.ByteLevel(), pre_tokenizers.ByteLevel(add_prefix_space=False))


def sentencepiece() -> Any:
    pieces = [(END, 0.0), ("<unk>", 0.0), *((piece, -3.0) for piece in ("▁", "a", "b", "▁a", "ab", "▁ab"))]
    metaspace = {"replacement": "▁", "prepend_scheme": "always"}
    return fast(
        models.Unigram(pieces, unk_id=1), decoders.Metaspace(**metaspace), pre_tokenizers.Metaspace(**metaspace),
        unk_token="<unk>",
    )  # fmt: skip


def wordpiece() -> Any:
    vocabulary = numbered([END, "[UNK]", "a", "b", "ab", "##a", "##b", "##ab", "'"])
    return fast(
        models.WordPiece(vocabulary, unk_token="[UNK]"), decoders.WordPiece(), pre_tokenizers.BertPreTokenizer(),
        normalizers.Lowercase(), unk_token="[UNK]",
    )  # fmt: skip


def words_between_blanks() -> Any:
    return build_prior(["<s>", "<pad>", "</s>", "<unk>", "a", "b", "ab"], Recipe(top_words="all")).tokenizer()


def network(size: int, seed: int = 1, positions: int = 40) -> Any:
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=size, n_embd=16, n_layer=2, n_head=2, n_positions=positions, initializer_range=0.5, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).double().eval()


def save_network(place: Path, kind: str = "byte_level", positions: int = 64) -> Path:
    """Save a random network over the tokens of a tiny tokenizer of a kind, and return the folder."""
    tokenizer = tiny_tokenizer(kind)
    torch.manual_seed(1)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": positions}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), eos_token_id=1, bos_token_id=None, **sizes)
    transformers.GPT2LMHeadModel(config).save_pretrained(place)
    tokenizer.save_pretrained(place)
    return place
