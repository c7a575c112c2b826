"""The origins of a prior for its description: files and packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairseq_llrnn.files.reading import as_paths, file_digest, is_pipe, name_of
from fairseq_llrnn.lexicon.readers.apertium import find_analyser
from fairseq_llrnn.lexicon.readers.hunspell import rules_of
from fairseq_llrnn.prior.background_terms import parse_or_path, with_files
from fairseq_llrnn.prior.expression import Expression, with_atoms
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.settings import IS_PATH_OR_CONTENT, IS_PLACE, file_of, keys

LEXICON = "open_vocabulary.lexicon"
SYMBOLS = ("dictionary", "source_dictionary", "translations.data")  # keys with files whose words the prior stores


def origins_of(options: Recipe, background: Expression, code: str | None) -> list[str]:
    """Return the files that the prior was built from: option, file name, and the beginning of the content's SHA-256.

    Args:
        code: the language of --language.
    """
    described = [_described(option, reader, file) for option, reader, file in _files_of_keys(options)]
    expressions = [("--background", background)]
    if options.over is not None:
        expressions.append(("over", parse_or_path(options.over, "over")))
    described += [_described(option, "", file) for option, term in expressions for file in _background_files(term)]
    if options.translations is not None:
        files = map(str, options.translations.parallel.files)
        described += [_described("--lexical-translation", "", file) for file in files]
    if code is not None:
        described.append(f"--language {code}, lemmas that {options.words.lemma_floor} words share")
    return described


def _files_of_keys(options: Recipe) -> Iterator[tuple[str, str, str]]:
    """Yield option, reader and file of each key with paths: ("--lexicon", "NAME:", FILE) for `--lexicon NAME:FILE`."""
    for key in keys(Recipe):
        value: Any = options
        for name in key.name.split("."):
            value = getattr(value, name, None)
        is_text = isinstance(value, (str, Path))
        if not key.is_path or key.name in SYMBOLS or not (is_text or isinstance(value, (list, tuple))):
            continue
        if IS_PATH_OR_CONTENT in key.about and not is_text:
            continue
        option = key.name if key.option is None else key.option.name
        for place in as_paths(value):
            if key.name == "words.apertium":
                yield option, "", str(find_analyser(place))
            elif key.name == "words.hunspell" or (key.name == LEXICON and place.endswith(".dic")):
                yield from ((option, "", file) for file in (place, str(rules_of(place))))
            elif IS_PLACE in key.about:
                file = file_of(option, place)[1]
                yield option, place.removesuffix(file), file
            elif key.name != "words.morphemes" or os.path.exists(place):  # or `morfessor`
                yield option, "", place


def _described(option: str, reader: str, file: str) -> str:
    """Describe a file by the beginning of the SHA-256 of its content, a folder by its name."""
    if is_pipe(file):
        return f"{option} {reader}(a pipe) {file_digest(Path(file))[:16]}"
    digest = f" {file_digest(Path(file))[:16]}" if os.path.isfile(file) else ""
    return f"{option} {reader}{name_of(file)}{digest}"


def _background_files(background: Expression) -> list[str]:
    """Return the files of the backgrounds in an expression. The counted text of `unigram` is none of them."""
    files: list[str] = []

    def seen(path: str) -> str:
        files.append(path)
        return path

    with_atoms(background, lambda atom: with_files(atom, seen))
    return [path for path in dict.fromkeys(files) if not os.path.isdir(path)]
