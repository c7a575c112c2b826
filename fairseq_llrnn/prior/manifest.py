"""prior.json, checked before anything believes it: it is untrusted input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairseq_llrnn.errors import DataError, PriorError
from fairseq_llrnn.files.atomic_write import set_aside
from fairseq_llrnn.files.reading import refuse_special
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.prior.part import KINDS, Part
from fairseq_llrnn.registry import load, load_all, lost, names

FORMAT = "fairseq_llrnn prior"
VERSION = 4
JSON_FILE = "prior.json"
REBUILD = "build it again with `llrnn prior`"
FINGERPRINT = "fingerprint"  # of the whole prior, for who looks for one; what is loaded is asked itself
SOURCE_HASH = "source_dictionary_sha256"  # where some part belongs to source words
ENTRIES = ("settings", "dictionary_sha256", "arrays_sha256", "output_features", "input_features", "parts")


def read_description(directory: Path) -> dict[str, Any]:
    """What prior.json holds.

    Raises:
        PriorError: no prior there, another version, entries that are missing or of another kind.
    """
    path = directory / JSON_FILE
    try:
        refuse_special(path, may_be_pipe=False)
        description = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(description, ensure_ascii=False).encode()  # refuses halves of characters, which no file can hold
    except DataError as error:
        raise PriorError(str(error)) from None
    except OSError:
        aside = set_aside(directory.absolute())
        found = "none; make one with `llrnn prior`"
        if aside is not None:
            found = f"none, since a process that was to replace it was killed; it is in {aside}: move it back"
        elif inside := sorted(directory.glob(f"*/{JSON_FILE}")):
            found = f"none; did you mean {inside[0].parent}?"
        raise PriorError(f"{directory}: expected a prior (a directory with {JSON_FILE}), found {found}") from None
    except (ValueError, RecursionError) as error:
        raise PriorError(f"{path}: expected JSON, found damage ({error}); {REBUILD}") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise PriorError(f"{path}: expected the description of a {FORMAT}, found something else; {REBUILD}")
    version = description.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        fix = "it comes from a newer fairseq_llrnn: use that one" if newer else f"{REBUILD} of this version"
        raise PriorError(f"{path}: expected version {VERSION}, found {version}; {fix}")
    missing = set(ENTRIES) - set(description)
    if missing:
        raise PriorError(f"{path}: expected the entries {', '.join(sorted(missing))}, found none; {REBUILD}")
    names = (description["output_features"], description["input_features"] or [])
    if not isinstance(description["settings"], dict) or not all(
        isinstance(part, list) and all(isinstance(name, str) for name in part) for part in names
    ):
        raise PriorError(f"{path}: expected settings and lists of feature names, found something else; {REBUILD}")
    parts = description["parts"]
    if not isinstance(parts, list) or not all(isinstance(p, dict) and isinstance(p.get("part"), str) for p in parts):
        raise PriorError(f"{path}: expected a list of parts with their names, found something else; {REBUILD}")
    return description


def part_class(name: str) -> type[Part]:
    """The class of a part with that name (`automaton`, `automaton.2`). Raises PriorError for an unregistered one."""
    kind = name.partition(".")[0]
    places = names("parts")
    if kind not in KINDS and kind in places:
        load(places[kind])
    if kind not in KINDS:
        load_all("parts")  # some module has parts that are called otherwise
    if kind not in KINDS:
        if reason := lost(kind):
            raise PriorError(f"the prior has a part {shown(name)}; {reason}")
        raise PriorError(
            f"the prior has a part {shown(name)}, expected one of {', '.join(sorted(KINDS))}; import the module "
            f"that defines it, with @fairseq_llrnn.prior.register_part({shown(kind)}), before the prior is read"
        )
    return KINDS[kind]
