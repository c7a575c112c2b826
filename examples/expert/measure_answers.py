"""Measure the answers to questions, and print a table: python measure_answers.py TEST.q TEST.a NAME=ANSWERS…."""

import sys
from pathlib import Path


def lines(path: str) -> list[list[str]]:
    return [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines()]


def numbers(words: list[str]) -> list[str]:
    return [word for word in words if word.isdigit()]


def share(some: int, of: int) -> str:
    return f"{some / of:.1%}" if of else "—"


def main() -> None:
    questions, references = lines(sys.argv[1]), lines(sys.argv[2])
    print("| | a number where one is due | that number is n | a number where none is due |")
    print("|---|---:|---:|---:|")
    for system in sys.argv[3:]:
        name, _, path = system.partition("=")
        answers = lines(path)
        if not len(answers) == len(references) == len(questions):
            raise SystemExit(f"{path}: expected {len(references)} answers, found {len(answers)}")
        pairs = [(numbers(a), numbers(r)) for a, r in zip(answers, references, strict=True)]
        due = [(found, wanted) for found, wanted in pairs if wanted]
        said = [(found, wanted) for found, wanted in due if found]
        other = [found for found, wanted in pairs if not wanted]
        right = sum(found == wanted for found, wanted in said)
        print(
            f"| {name} | {share(len(said), len(due))} of {len(due)} | {share(right, len(said))} of {len(said)} "
            f"| {share(sum(map(bool, other)), len(other))} of {len(other)} |"
        )


if __name__ == "__main__":
    main()
