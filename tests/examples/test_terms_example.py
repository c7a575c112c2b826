"""How well terms are said: a test set is made, and what systems say is counted."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from example_modules import run_example
from shell import Result, Shell
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


def test_terms_of_two_words_are_made_and_counted(
    shell: Shell, translation: TranslationWorld, run: Run, tmp_path: Path
) -> None:
    """`grand chat`, and a system that says another form of the phrase, or the reference's twice."""
    (tmp_path / "lexicon.tsv").write_text(
        "".join(
            f"{form}\t{lemma}\t{upos}\tNumber={number}|Gender={gender}\n"
            for lemma, upos, gender in (("chat", "NOUN", "Masc"), ("le", "ADJ", "Masc"))
            for form, number in ((lemma, "Sing"), (f"{lemma}s", "Plur"), (f"{lemma}x", "Dual"))
        ),
        encoding="utf-8",
    )
    shell.run(
        "llrnn", "prior", "--dict", translation.data / "dict.tgt.txt", "--lexicon", tmp_path / "lexicon.tsv",
        "--top-words", 20, "--lexical-translation", translation.data, "--set", "translations.aligner=ibm1", "--out",
        tmp_path / "prior",
    )  # fmt: skip
    sources = (translation.place / "train.src").read_text(encoding="utf-8").splitlines()
    references = (translation.place / "train.tgt").read_text(encoding="utf-8").splitlines()
    pair = next(i for i, line in enumerate(references) if line.startswith("le chat ") and line.count("le chat") == 1)
    (tmp_path / "source").write_text(f"{sources[pair]}\n", encoding="utf-8")
    (tmp_path / "reference").write_text(f"{references[pair]}\n", encoding="utf-8")
    forms = tmp_path / "lexicon.tsv"
    given = ["--prior", tmp_path / "prior", "--reference", tmp_path / "reference", "--forms", forms]
    made = run("make", tmp_path / "test", *given, "--source", tmp_path / "source", "--words", 2)
    assert made.out.startswith("1 terms of 1 of 1 sentences")
    assert " => le chat\n" in (tmp_path / "test" / "terms.in").read_text(encoding="utf-8")
    for name, said in (("other", "les chats voient"), ("twice", "le chat voit le chat"), ("none", "les le chats")):
        (tmp_path / name).write_text(f"S-0\tx\nH-0\t-0.5\t{said}\n", encoding="utf-8")
    systems = [f"{name}={tmp_path / name}" for name in ("other", "twice", "none")]
    rows = run("measure", tmp_path / "test", *given, *systems).out.splitlines()
    found = {row.split()[0]: row.split()[1:4] for row in rows if row.split()}
    whole, nothing = "100.0%", "0.0%"
    assert found["other"] == [whole, nothing, nothing] and found["none"] == [nothing, nothing, nothing]
    assert found["reference"] == [whole, whole, whole] and found["twice"] == [whole, whole, nothing]
