"""The dictionary of a translation's source, which evidence is read by."""

from __future__ import annotations

from pathlib import Path

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.prior.recipe import Recipe


def source_symbols(options: Recipe, path: Path | None) -> tuple[str, ...]:
    """The source dictionary's words: those given, of the parallel text, or of the only other dictionary beside `path`.

    () where nothing needs them. Raises OptionError: none or several; one that is not the parallel text's.
    """
    given, translations = options.source_dictionary, options.translations
    if options.evidence is None:
        return ()
    if given is not None:
        symbols = load_dictionary(given).symbols if isinstance(given, (str, Path)) else tuple(given)
        if translations is not None and symbols != translations.parallel.source_symbols:
            name = f" {given}" if isinstance(given, (str, Path)) else ""
            raise OptionError(
                f"source_dictionary{name}: expected the words of the source side of --lexical-translation, found "
                "others; "
                "leave it out"
            )
        return symbols
    if translations is not None:
        return translations.parallel.source_symbols
    others = [] if path is None else [p for p in path.parent.glob("dict.*.txt") if p.name != path.name]
    if len(others) != 1:
        found = ", ".join(sorted(other.name for other in others)) or "none"
        raise OptionError(
            f"--evidence: expected one other dict.*.txt beside --dict {path}, the source's, found {found}; give it as "
            "source_dictionary"
        )
    return load_dictionary(others[0]).symbols
