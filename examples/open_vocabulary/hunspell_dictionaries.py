"""Compare the forms that `--hunspell` lists with those that hunspell accepts: a Markdown table of dictionaries.

    python examples/open_vocabulary/hunspell_dictionaries.py [--entries 300] /usr/share/hunspell/*.dic

The script generates the forms of random entries of each dictionary, and checks them with hunspell (`pip install
'.[hunspell]'`). Two names of one file count as one dictionary.
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.readers.hunspell import iter_entries, iter_hunspell, rules_of
from fairseq_llrnn.lexicon.readers.hunspell_affixes import read_affixes


def sample_forms(dic: Path, number: int, seed: int = 1) -> tuple[int, list[str]]:
    """Return how many entries a dictionary has, and the forms of some of them. Raises DataError as the reader."""
    affixes = read_affixes(rules_of(dic))
    lines = dic.read_bytes().splitlines()
    numbers: list[int] = []  # of lines
    forbidden: list[int] = []
    for where, _, flags, _ in iter_entries(dic, affixes):
        (forbidden if affixes.has(flags, "forbidden") else numbers).append(int(where.rpartition(" ")[2]) - 1)
    some = sorted({*random.Random(seed).sample(numbers, min(number, len(numbers))), *forbidden})
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "part.dic")
        shutil.copy(rules_of(dic), part.with_suffix(".aff"))
        part.write_bytes(b"\n".join([b"%d" % len(some), *(lines[at] for at in some), b""]))
        forms = {form for _, forms in iter_hunspell(part) for form in forms}
    return len(numbers), sorted(forms)


def acceptance(dic: Path) -> Callable[[str], bool]:
    """Return the function that returns whether hunspell accepts a word. Its encoding may lack some characters."""
    import hunspell

    checker = hunspell.Hunspell(dic.stem, hunspell_data_dir=str(dic.parent))

    def is_accepted(word: str) -> bool:
        try:
            return bool(checker.spell(word))
        except UnicodeEncodeError:
            return False

    return is_accepted


def rejected(dic: Path, forms: list[str]) -> list[str]:
    """Return the forms that hunspell does not accept. Forms with a blank are skipped: hunspell checks single words."""
    is_accepted = acceptance(dic)
    return [form for form in forms if not is_accepted(form)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dictionaries", nargs="+", type=Path, metavar="FILE.dic")
    parser.add_argument("--entries", type=int, default=300)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| dictionary | entries | forms of the sample | rejected | examples |\n|---|---:|---:|---:|---|")
    for dic in sorted({path.resolve() for path in arguments.dictionaries}):
        try:
            entries, forms = sample_forms(dic, arguments.entries)
        except DataError as error:
            print(f"| {dic.stem} | not read | | | {str(error).replace(str(dic.parent) + '/', '')} |", flush=True)
            continue
        wrong = rejected(dic, forms)
        print(f"| {dic.stem} | {entries:,} | {len(forms):,} | {len(wrong):,} | {', '.join(wrong[:4])} |", flush=True)


if __name__ == "__main__":
    main()
