"""Generate a small data set of dialog acts and sentences in the format of RNNLG, without a download.

It has a domain of its own (museums). Sentences consist of a few wordings for each slot, in any order of the slots. Some
values occur only in the test part. It shows that everything runs, and is far easier than human text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairseq_llrnn.files.atomic_write import whole_file

SIZES = {"train": 700, "valid": 100, "test": 100}
HEADER = "# made up by examples/dialog/dialog_toy.py\n"
FIRST = "old new small grand royal northern silver open river garden".split()
SECOND = "harbour glass railway science toy history map stone music ship".split()
AREAS = "docklands,old town,north bank,hill side,market quarter,south gate,castle hill,green lane".split(",")
LATER = "west end,lake shore".split(",")  # areas that only the test part has
PRICES = "cheap,moderate,expensive,free".split(",")
WORDINGS = {
    "area": ("is in the area of {}", "is located in {}", "is in {}"),
    "near": ("is near {}", "is close to {}"),
    "pricerange": ("is {}", "is in the {} price range", "has {} prices"),
    "phone": ("has the phone number {}", "can be reached at {}"),
    "address": ("is at {}", "has the address {}"),
    "kidsallowed=yes": ("allows children", "is good for kids"),
    "kidsallowed=no": ("does not allow children", "is not for kids"),
    "area=dont_care": ("is in any part of town",),
}
ASKED = {
    "area": ("what area would you like", "where should it be"),
    "pricerange": ("what price range do you want", "how much may it cost"),
    "near": ("what should it be near to",),
}
GREETINGS = ("goodbye", "thank you , goodbye", "thank you for calling")

Entry = tuple[str, str, str]


def write_toy(out: Path, seed: int = 1) -> None:
    """Write train, valid and test.json into the folder."""
    out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    for split, many in SIZES.items():
        entries = [_entry(random, AREAS + LATER if split == "test" else AREAS) for _ in range(many)]
        with whole_file(out / f"{split}.json") as file:
            file.write(HEADER)
            json.dump(entries, file, indent=1)
            file.write("\n")


def _entry(random: np.random.Generator, areas: Sequence[str]) -> Entry:
    draw = random.random()
    if draw < 0.08:
        return "goodbye()", str(random.choice(GREETINGS)), "goodbye"
    if draw < 0.2:
        slot = str(random.choice(list(ASKED)))
        return f"?request({slot})", str(random.choice(ASKED[slot])), "?"
    if draw < 0.3:
        count, area = str(random.integers(2, 60)), str(random.choice(areas))
        act = f"inform_count(count='{count}';type='museum';area='{area}')"
        return act, f"there are {count} museums in {area}", "-"
    name = f"the {random.choice(FIRST)} {random.choice(SECOND)} museum"
    values = {
        "area": str(random.choice(areas)),
        "near": str(random.choice(areas)),
        "pricerange": str(random.choice(PRICES)),
        "phone": str(random.integers(1_000_000_000, 9_999_999_999)),
        "address": f"{random.integers(1, 300)} {random.choice(SECOND)} street",
        "kidsallowed": str(random.choice(["yes", "no"])),
    }
    if random.random() < 0.1:
        values["area"] = "dont_care"
    slots = list(random.choice(list(values), size=int(random.integers(1, 4)), replace=False))
    act = f"inform({';'.join([f'name={name!r}'] + [f'{slot}={values[slot]!r}' for slot in slots])})"
    random.shuffle(slots)
    said = [_said(random, str(slot), values[str(slot)]) for slot in slots]
    return act, f"{name} {' and '.join(said)}", "-"


def _said(random: np.random.Generator, slot: str, value: str) -> str:
    wordings = WORDINGS.get(f"{slot}={value}") or WORDINGS[slot]
    return str(random.choice(wordings)).format(value)
