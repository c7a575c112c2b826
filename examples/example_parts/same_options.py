"""Store the options of results in their folder, so that finished work is skipped only for the same options."""

import json
from collections.abc import Mapping
from pathlib import Path

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.atomic_write import whole_file

FILE = "options.json"


def keep_options(folder: Path, options: Mapping[str, str | int | float], has_results: bool) -> None:
    """Write the options into a folder that has none, or compare them.

    Raises:
        OptionError: an option differs, or the folder has results without options.
    """
    place = folder / FILE
    if not place.exists():
        if has_results:
            raise OptionError(f"{folder}: expected {FILE} next to the results, found none; use another --out")
        with whole_file(place) as file:
            json.dump(dict(options), file)
        return
    try:
        kept = dict(json.loads(place.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise OptionError(f"{place}: expected options, found something else; use another --out") from None
    for name, value in options.items():
        if name in kept and kept[name] != value:
            raise OptionError(
                f"{folder}: expected {name} {value}, found results of {name} {kept[name]}; use another --out, or "
                f"{name} {kept[name]}"
            )
