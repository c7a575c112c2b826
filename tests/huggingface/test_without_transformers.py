"""The error of a name that needs transformers, if it is not installed."""

import importlib.util
import sys

import pytest

from fairseq_llrnn.errors import OptionError


def test_the_model_needs_transformers_and_the_processor_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "fairseq_llrnn.huggingface", raising=False)
    huggingface = importlib.import_module("fairseq_llrnn.huggingface")
    for name in ("LogLinearForSeq2SeqLM", "LogLinearForCausalLM"):
        with pytest.raises(OptionError, match=f"{name}: expected the package transformers, found none; in a checkout"):
            getattr(huggingface, name)
    assert huggingface.BackgroundProcessor.__module__ == "fairseq_llrnn.huggingface.processor"
    with pytest.raises(AttributeError, match="has no attribute 'LogLinearBart'"):
        huggingface.LogLinearBart  # noqa: B018
