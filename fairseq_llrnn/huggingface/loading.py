"""Reads folders of transformers' save_pretrained: models of ours, and any causal language model."""

from __future__ import annotations

import os

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from fairseq_llrnn.errors import DataError, LLRNNError
from fairseq_llrnn.huggingface.scoring import CausalScorer, Seq2SeqScorer, tokenizer_of

TOKENIZER = "tokenizer.json"


def load_scorer(path: str, max_tokens: int = 2048) -> CausalScorer | Seq2SeqScorer:
    """Read a model, and its tokenizer if there is one, from a folder of save_pretrained.

    Nothing in the folder is executed: weights are those of safetensors, and code next to them is not run.

    Raises:
        OptionError: transformers is not installed. PriorError: another prior than the weights were trained with.
        DataError: a folder that is damaged, of another kind of model, or without its tokenizer.
    """
    was_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(path, **safe)
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model = kind.from_pretrained(path, config=config, dtype=torch.float32, use_safetensors=True, **safe)
        has_tokenizer = os.path.isfile(os.path.join(path, TOKENIZER))
        model.tokenizer = AutoTokenizer.from_pretrained(path, **safe) if has_tokenizer else None
    except LLRNNError:
        raise
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(
            f"{path}: expected a language model of transformers' save_pretrained, found a folder that cannot be "
            f"read: {reason[0]}; save it again",
            path,
        ) from error
    finally:
        if was_shown:
            logging.enable_progress_bar()
    model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
    if config.is_encoder_decoder:
        return Seq2SeqScorer(model)
    return CausalScorer(model, tokenizer_of(model), max_tokens=max_tokens)
