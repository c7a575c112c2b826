"""A tokenizer of transformers over the symbols of a prior: `Prior.tokenizer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairseq_llrnn.features.dictionary import EOS, PAD, UNK

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

BLANKS = r"[\s\x1c-\x1f\x85]+"  # the separators of str.split()


def word_tokenizer(symbols: Sequence[str], add_eos_token: bool) -> PreTrainedTokenizerFast:
    """Return the tokenizer of `Prior.tokenizer`, over any symbols in the order of their ids. Needs transformers."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({symbol: at for at, symbol in enumerate(symbols)}, UNK))
    ends, blanks = pre_tokenizers.Split(EOS, "isolated"), pre_tokenizers.Split(Regex(BLANKS), "removed")
    words.pre_tokenizer = pre_tokenizers.Sequence([ends, blanks])
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token=EOS, eos_token=EOS, pad_token=PAD, unk_token=UNK,
        add_bos_token=True, add_eos_token=add_eos_token,
        split_special_tokens=True,  # <unk> inside a word is no symbol
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
