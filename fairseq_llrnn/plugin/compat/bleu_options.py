"""The options of a search, and of a tokeniser, that --eval-bleu takes as JSON.

fairseq ignores those that it does not know, and ends in a trace where a value cannot be meant.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fairseq.data.encoders import TOKENIZER_REGISTRY
from fairseq.dataclass.configs import GenerationConfig

from fairseq_llrnn.errors import OptionError

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.compat.option_checks import Check

NUMBERS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"), int: ((int,), "a whole number"), float: ((int, float), "a number"),
}  # fmt: skip


def check_bleu_options(values: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    """Raise OptionError for what cannot be meant.

    Args:
        values: of all options. checks: of options that searches have, as of option_checks.py.
    """
    options = {field.name: field.type for field in fields(GenerationConfig) if not field.name.startswith("_")}
    for name, value in _read("eval_bleu_args", values.get("eval_bleu_args"), '{"beam": 4, "lenpen": 0.6}').items():
        if name not in options:
            raise OptionError(f"--eval-bleu-args: expected options of a search, found {name!r}{_near(name, options)}")
        types, expected = NUMBERS.get(options[name], ((object,), ""))
        fits = isinstance(value, types) and not (isinstance(value, bool) and options[name] in (int, float))
        if fits and value is not None and name in checks:
            fits, expected = checks[name][0](value), checks[name][1]
        if not fits:
            raise OptionError(
                f"--eval-bleu-args {name}: expected {expected}, found {json.dumps(value)}; correct it, or leave it out"
            )
    _read("eval_bleu_detok_args", values.get("eval_bleu_detok_args"), '{"moses_target_lang": "fr"}')
    detok = values.get("eval_bleu_detok")
    if detok is not None and detok not in TOKENIZER_REGISTRY:
        names = sorted(TOKENIZER_REGISTRY)
        raise OptionError(
            f"--eval-bleu-detok: expected one of {', '.join(names)}, found {detok!r}{_near(detok, names)}"
        )


def _read(option: str, text: str | None, example: str) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise OptionError(
            f"--{option.replace('_', '-')}: expected a dictionary of JSON, such as '{example}', found {text!r}; "
            "correct it, or leave it out"
        )
    return value


def _near(name: str, names: Collection[str]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]}?" if near else "; leave it out"
