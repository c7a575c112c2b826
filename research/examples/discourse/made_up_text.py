"""Generate a text with paragraphs in which the order of sentences, and the words after conjunctions, can be learned.

made_up_text.py FOLDER      writes train.txt, valid.txt, test.txt, and the set custrev.all
"""

import argparse
import random
from pathlib import Path

STEPS = "wakes rises washes eats leaves walks works returns sleeps".split()
FOLLOWS = {"however": "sadly alas", "therefore": "surely clearly", "then": "soon later", "moreover": "too twice"}
PEOPLE = "Anna Boris Clara Dario Elena Fritz".split()
PARAGRAPHS = {"train": 300, "valid": 40, "test": 40}


def paragraph(rng: random.Random) -> list[str]:
    """Return a person's actions in a day, one sentence per step."""
    lines = []
    for i, step in enumerate(STEPS):
        sentence = [rng.choice(PEOPLE), step]
        if i and rng.random() < 0.4:
            phrase = rng.choice(sorted(FOLLOWS))
            sentence = [phrase.capitalize(), ",", *sentence, rng.choice(FOLLOWS[phrase].split())]
        lines.append(" ".join([*sentence, "."]))
    return lines


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, many) in enumerate(PARAGRAPHS.items()):
        rng = random.Random(seed)
        text = "\n\n".join("\n".join(paragraph(rng)) for _ in range(many))
        (folder / f"{split}.txt").write_text(text + "\n\n", encoding="utf-8")
    rng = random.Random(9)
    with (folder / "custrev.all").open("w", encoding="utf-8") as file:
        for _ in range(200):
            label = rng.randrange(2)
            file.write(f"{label} {rng.choice(PEOPLE)} {rng.choice(STEPS[4:] if label else STEPS[:4])} .\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Generate a text with paragraphs.")
    parser.add_argument("folder", type=Path)
    main(parser.parse_args().folder)
