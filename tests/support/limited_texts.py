"""All texts that a processor allows within a limit of length, over a tokenizer of letters."""

from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from fairseq_llrnn.huggingface import BackgroundProcessor

END, IMPOSSIBLE = 0, -1e8
LETTERS = ["a", "b", "c"]


def tokenizer_of(*pieces: str) -> Any:
    """Tokens that are letters, and these pieces, with Ġ for a space."""
    vocabulary = {token: at for at, token in enumerate(dict.fromkeys(["<end>", "<pad>", *LETTERS, *pieces]))}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>", pad_token="<pad>")


def all_texts(processor: BackgroundProcessor, longest: int) -> dict[tuple[int, ...], float]:
    """Return the texts within the limit, without their ends, with their log probabilities given random logits.

    Fails at a dead end, and where p' does not sum to one.
    """
    found: dict[tuple[int, ...], float] = {}
    level: dict[tuple[int, ...], float] = {(): 0.0}
    generator = torch.Generator().manual_seed(1)
    for length in range(longest):
        prefixes = torch.tensor(list(level), dtype=torch.long).reshape(len(level), length)
        scores = torch.randn(len(level), processor.weights.num_tokens, generator=generator, dtype=torch.float64)
        log_p = processor(prefixes, scores)
        assert not (log_p.amax(1) < IMPOSSIBLE).any(), f"a dead end after {length} tokens"
        np.testing.assert_allclose(log_p.exp().sum(1), 1.0)
        longer = {}
        for (row, total), following in zip(level.items(), log_p.tolist(), strict=True):
            for token, value in enumerate(following):
                if token == END and value > IMPOSSIBLE:
                    found[row] = total + value
                elif value > IMPOSSIBLE:
                    longer[*row, token] = total + value
        level = longer
        if not level:
            return found
    raise AssertionError(f"{len(level)} texts are longer than {longest} tokens")
