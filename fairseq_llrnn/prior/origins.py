"""The origins of a prior for its description: files and packages."""

from __future__ import annotations

import os
from pathlib import Path

from fairseq_llrnn.files.reading import as_paths, file_digest
from fairseq_llrnn.lexicon.merge_sources import places
from fairseq_llrnn.lexicon.options import MORFESSOR
from fairseq_llrnn.prior.background_terms import with_files
from fairseq_llrnn.prior.expression import Expression, with_atoms
from fairseq_llrnn.prior.recipe import Recipe


def origins_of(options: Recipe, background: Expression, code: str | None) -> list[str]:
    """Return the files that the prior was built from: option, file name, and the beginning of the content's SHA-256.

    Args:
        code: the language of --language.
    """
    words = options.words
    translations = options.translations
    evidence_map = None if options.evidence is None else options.evidence.mapping
    files: list[tuple[str, str | Path]] = [
        *((f"--{n}", path) for n in ("conllu", "lexicon") for path in places(words, n)),
        *((f"words.{n}", path) for n in ("unimorph", "values") for path in places(words, n)),
        *(("words.morphemes", p) for p in [words.morphemes] if isinstance(p, (str, Path)) and p != MORFESSOR),
        *(("--count-text", path) for path in as_paths(options.text)),
        *(("patterns", path) for path in [options.patterns] if isinstance(path, (str, Path))),
        *(("--background", path) for path in _background_files(background)),
        *(("--lexical-translation", p) for p in (translations.parallel.files if translations else ())),
        *(("words.hunspell", path) for path in as_paths(words.hunspell if translations else ())),
        *(("translations.source_lexicon", p) for p in as_paths(translations.source_lexicon if translations else ())),
        *(("evidence.mapping", path) for path in [evidence_map] if isinstance(path, (str, Path))),
    ]
    described = []
    for option, path in files:
        if not os.path.isfile(path):  # a pipe, whose content is gone
            described.append(f"{option} (a pipe)")
            continue
        described.append(f"{option} {Path(path).name} {file_digest(Path(path))[:16]}")
    if code is not None:
        described.append(f"--language {code}, lemmas that {words.lemma_floor} words share")
    return described + ([] if words.apertium is None else [f"words.apertium {Path(words.apertium).name}"])


def _background_files(background: Expression) -> list[str]:
    """Return the files of the backgrounds in an expression. The counted text of `unigram` is none of them."""
    files: list[str] = []

    def seen(path: str) -> str:
        files.append(path)
        return path

    with_atoms(background, lambda atom: with_files(atom, seen))
    return [path for path in dict.fromkeys(files) if not os.path.isdir(path)]
