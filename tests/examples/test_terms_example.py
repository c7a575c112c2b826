"""How well terms are said: a test set is made, and what systems say is counted."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from example_modules import run_example
from shell import Result
from translation_world import TranslationWorld

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    return partial(run_example, "translation/terms.py")


def test_terms_are_made_and_counted(translation: TranslationWorld, run: Run, tmp_path: Path) -> None:
    reference, source = translation.place / "test.tgt", translation.place / "test.src"
    references = reference.read_text(encoding="utf-8").splitlines()
    words = sorted({word for line in references for word in line.split()})
    # every word is a lemma with two more forms, one of which is another word
    lexicon = tmp_path / "forms.tsv"
    rows = [f"{form}\t{word}\tNOUN\t_\n" for word in words for form in (word, f"{word}s", f"{word}x")]
    lexicon.write_text("".join(rows), encoding="utf-8")
    given = ["--prior", translation.data / "lexical", "--reference", reference, "--forms", lexicon]
    made = run("make", tmp_path / "test", *given, "--source", source)
    terms = int(made.out.split()[0])
    assert terms > 0 and "the dictionary has the lemma" in made.out
    lines = (tmp_path / "test" / "terms.in").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == source.read_text(encoding="utf-8").splitlines()
    assert sum(line.count(" => ") for line in lines) == terms

    def system(name: str, said: list[str]) -> str:
        found = [line for i, text in enumerate(said) for line in (f"S-{i}\tx", f"H-{i}\t-0.5\t{text}")]
        (tmp_path / name).write_text("\n".join(found) + "\n", encoding="utf-8")
        return f"{name}={tmp_path / name}"

    systems = [
        system("right", references),
        system("others", [" ".join(f"{word}s" for word in line.split()) for line in references]),
        system("both", [" ".join(f"{word} {word}x" for word in line.split()) for line in references]),
        system("none", ["…" for _ in references]),
    ]
    rows = run("measure", tmp_path / "test", *given, *systems).out.splitlines()
    found = {row.split()[0]: row.split()[1:4] for row in rows if row.split()}
    whole, nothing = "100.0%", "0.0%"
    assert found["reference"] == found["right"] == [whole, whole, whole]
    assert found["others"] == [whole, nothing, nothing]
    assert found["both"] == [whole, whole, nothing]
    assert found["none"] == [nothing, nothing, nothing]
