"""Generate questions with numeric answers over a small table of towns, and small talk: make_questions.py OUT [--seed
S].

    table.tsv               town, attribute, number: the knowledge base, 900 facts
    {train,valid,test}.q    questions, and .a: answers, one per line
    vocabulary.{q,a}.txt    the words of all questions and of all answers, `word 0`, for fairseq-preprocess

The towns of valid and test are in the table, but in no training question, so that their numbers cannot be learned.
"""

import argparse
import random
from pathlib import Path

ATTRIBUTES = {
    "inhabitants": (
        ["how many people live in {town} ?", "what is the population of {town} ?", "is {town} big ?"],
        ["it has {n} inhabitants .", "{n} people live there .", "the town counts {n} inhabitants ."],
        (200, 9999),
    ),
    "founded": (
        ["when was {town} founded ?", "how old is {town} ?", "since when is there a town called {town} ?"],
        ["it was founded in {n} .", "the town is there since {n} .", "in {n} ."],
        (600, 1950),
    ),
    "bridges": (
        ["how many bridges has {town} ?", "are there bridges in {town} ?", "count the bridges of {town} ."],
        ["there are {n} bridges .", "it has {n} .", "{n} bridges cross the river ."],
        (2, 99),
    ),
}
SMALL_TALK = {
    "hello !": ["good day , what is your question ?", "hello ."],
    "thank you .": ["you are welcome .", "not at all ."],
    "who are you ?": ["i am a machine that reads a table .", "a machine ."],
    "what do you know of {town} ?": ["ask for its people , its age or its bridges .", "what the table says ."],
    "where is {town} ?": ["the table does not say where .", "nobody told me where it is ."],
}
SPLITS = {"train": 200, "valid": 40, "test": 60}  # towns
QUESTIONS = {"train": 9, "valid": 3, "test": 3}  # per town; and a piece of small talk for every third


def town_names(rng: random.Random, many: int) -> list[str]:
    """Return different names of one word."""
    first = "Alt Birk Cor Dun El Falk Gar Hol Ing Kel Lin Mar Nor Os Pell Rav Sund Tor Ul Wald".split()
    last = "au berg dorf feld ham haven holm hus low mark minster moor ness rup stad sted thal ton vik wyck".split()
    names = [a + b for a in first for b in last]
    return rng.sample(names, many)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    names = town_names(rng, sum(SPLITS.values()))
    table = {(town, of): rng.randint(*limits) for town in names for of, (_, _, limits) in ATTRIBUTES.items()}
    lines = [f"{town}\t{of}\t{n}" for (town, of), n in table.items()]
    (args.out / "table.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = {"q": set(names), "a": {str(n) for n in table.values()}}
    for split, many in SPLITS.items():
        towns, names = names[:many], names[many:]
        pairs = []
        for town in towns:
            for i in range(QUESTIONS[split]):
                of = list(ATTRIBUTES)[i % len(ATTRIBUTES)]
                questions, answers, _ = ATTRIBUTES[of]
                answer = rng.choice(answers).format(n=table[town, of])
                pairs.append((rng.choice(questions).format(town=town), answer))
                if i % 3 == 0:
                    said = rng.choice(list(SMALL_TALK))
                    pairs.append((said.format(town=town), rng.choice(SMALL_TALK[said])))
        rng.shuffle(pairs)
        for ending, side in zip("qa", zip(*pairs, strict=True), strict=True):
            (args.out / f"{split}.{ending}").write_text("\n".join(side) + "\n", encoding="utf-8")
            words[ending] |= {word for line in side for word in line.split()}
    for ending, known in words.items():
        vocabulary = "".join(f"{word} 0\n" for word in sorted(known))
        (args.out / f"vocabulary.{ending}.txt").write_text(vocabulary, encoding="utf-8")


if __name__ == "__main__":
    main()
