"""What is said where transformers is not installed."""

import importlib.util

import pytest

import fairseq_llrnn.huggingface as huggingface
from fairseq_llrnn.errors import OptionError


def test_the_model_needs_transformers_and_the_processor_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        OptionError, match="LogLinearMarian: expected the package transformers, found none; in a checkout"
    ):
        huggingface.LogLinearMarian  # noqa: B018
    assert huggingface.BackgroundProcessor.__module__ == "fairseq_llrnn.huggingface.processor"
    with pytest.raises(AttributeError, match="has no attribute 'LogLinearBart'"):
        huggingface.LogLinearBart  # noqa: B018
