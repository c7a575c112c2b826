"""prior.json, checked before anything believes it: it may come from a stranger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import PriorError

FORMAT = "fairseq_llrnn prior"
VERSION = 3
READABLE = (2, 3)  # of version 2 is what knows neither an automaton nor an open vocabulary
JSON_FILE = "prior.json"
REBUILD = "build it again with `llrnn prior`"
SOURCE_HASH = "source_dictionary_sha256"  # in the parts that know source words
SOURCE_PARTS = {  # and how errors call them
    "lexical": "lexical translations were",
    "evidence": "evidence was",
    "copies": "words to copy were",
}


def read_description(directory: Path) -> dict[str, Any]:
    """What prior.json holds.

    Raises:
        PriorError: no prior there, another version, entries that are missing or of another kind.
    """
    path = directory / JSON_FILE
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise PriorError(
            f"{directory}: expected a prior (a directory with {JSON_FILE}), found none; make one with `llrnn prior`"
        ) from None
    except (ValueError, RecursionError) as error:
        raise PriorError(f"{path}: expected JSON, found damage ({error}); {REBUILD}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise PriorError(f"{path}: expected the description of a {FORMAT}, found something else; {REBUILD}")
    version = description.get("version")
    if version not in READABLE:
        known = " or ".join(map(str, READABLE))
        if isinstance(version, int) and version > VERSION:
            mend = "it comes from a newer fairseq_llrnn: use that one"
        else:
            mend = f"{REBUILD} of this version"
        raise PriorError(f"{path}: expected version {known}, found {version}; {mend}")
    missing = {"settings", "dictionary_sha256", "arrays_sha256", "output_features", "input_features"} - set(description)
    if missing:
        raise PriorError(f"{path}: expected the entries {', '.join(sorted(missing))}, found none; {REBUILD}")
    names = (description["output_features"], description["input_features"] or [])
    if not isinstance(description["settings"], dict) or not all(
        isinstance(part, list) and all(isinstance(name, str) for name in part) for part in names
    ):
        raise PriorError(f"{path}: expected settings and lists of feature names, found something else; {REBUILD}")
    return description


def check_source_hash(description: Mapping[str, Any], found: str) -> None:
    """Raise ValueError where a part was made for source words of another hash than `found`."""
    for part, name in SOURCE_PARTS.items():
        known = description.get(part, {SOURCE_HASH: found})
        if not isinstance(known, dict) or known.get(SOURCE_HASH) != found:
            raise ValueError(f"the {name} made for other source words")
