"""The content that a model is made from, apart from the texts: sources of word features, and a pretrained network.

A digest of this content names the model's folder. So results never come from another lexicon or network, and a
corrected lexicon trains only the model that reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from fairseq_llrnn.comparison.settings import OF_PIECES, PRETRAINED_FILES, Comparison
from fairseq_llrnn.comparison.texts import Texts
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.reading import as_paths, file_digest
from fairseq_llrnn.lexicon.features import Lexicon
from fairseq_llrnn.lexicon.languages.names import language_code
from fairseq_llrnn.lexicon.lexicon_table import Table
from fairseq_llrnn.lexicon.merge_sources import gather
from fairseq_llrnn.lexicon.unknown_word_features import TextWords
from fairseq_llrnn.prior.background_terms import read_background
from fairseq_llrnn.prior.origins import origins_of
from fairseq_llrnn.prior.parts.open_vocabulary import read_lists
from fairseq_llrnn.prior.recipe import Recipe

LENGTH = 8  # of a digest


def digests(models: Sequence[str], settings: Comparison, texts: Texts) -> dict[str, str]:
    """Return the digest of each model of MODELS that is made from more than the texts."""
    spelling = [*map(_spelling, as_paths(settings.open_vocabulary.lexicon))]
    found = {model: _digest(spelling) for model in models if spelling and model not in (*OF_PIECES, "pretrained")}
    if "lexicon" in models:
        found["lexicon"] = _digest([_sources(settings, texts), *spelling])
    if "pretrained" in models:
        assert settings.pretrained is not None
        files = sorted(path for pattern in PRETRAINED_FILES for path in settings.pretrained.glob(pattern))
        found["pretrained"] = _digest([[path.name, file_digest(path)] for path in files])
    return found


def _spelling(place: str) -> list[str | None]:
    """Return the content of a spelling lexicon: a file, with the rules of a hunspell dictionary, or language:CODE."""
    files = [path for path in (Path(place), Path(place).with_suffix(".aff")) if path.is_file()]
    return [*map(file_digest, files)] if files else [place]


def check_sources(models: AbstractSet[str], settings: Comparison, texts: Texts) -> None:
    """Read what these models are made from, before a training starts. Raises DataError for a malformed source."""
    if models - {*OF_PIECES, "pretrained"}:
        places = as_paths(settings.open_vocabulary.lexicon)
        read_lists(places, settings.sources.spelling, settings.name_of("spelling_lexicon"))
    if "lexicon" in models:
        words = replace(settings.sources, conllu=texts.originals)
        gather(words, TextWords(Counter(word for line in texts.train for word in line.split())))


def _sources(settings: Comparison, texts: Texts) -> Any:
    """Return the content of files, and all other values of the options, in values that JSON has."""
    words = replace(settings.sources, conllu=texts.originals)
    code = None if words.language is None else language_code(words.language)
    others = {field.name: _without_files(getattr(words, field.name)) for field in fields(words)}
    return [origins_of(Recipe(words=words), read_background("unigram"), code), others]


def _without_files(value: object) -> Any:
    """Return the content of an option without its files, whose content `origins_of` has."""
    if isinstance(value, (str, Path, list, tuple)):
        places = as_paths(value)
        return [p for p in places if not (os.path.exists(p) or os.path.exists(p.partition(":")[2]))]  # READER:FILE
    return _content(value)


def _content(value: object) -> Any:
    """Return a value as JSON has it. Raises OptionError for other objects."""
    if isinstance(value, Table):
        return sorted([str(tuple(row)), count] for row, count in value.rows.items())
    if isinstance(value, Lexicon):
        return {word: dict(value.features(word)) for word in value}
    if isinstance(value, Mapping):
        return {str(key): _content(inside) for key, inside in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [*map(_content, value)]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise OptionError(f"words: expected text, numbers and lexicons, found {type(value).__name__}; correct it")


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:LENGTH]
