"""Forms of lemmas from tables, whoever wrote them, and what is no table."""

import io
from pathlib import Path

import pytest
from lexicons import read_table

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.gather import read_word_forms

CASED, LOWER = ("Psi", "psa"), ("psi", "psa")  # texts
FILES = {
    "lexicon": "Psi\tpes\tNOUN\tCase=Nom|Number=Plur\npsa\tpes\tNOUN\tCase=Gen|Number=Sing\npsa\tpes\tNOUN\tCase=Acc\n",
    "unimorph": "pes\tPsi\tN;NOM;PL\n\npes\tpsa\tN;GEN;SG\npes\t-\tN;VOC\n\tkos\tN\npes\tpsi mí\tN;PL\n",
    "conllu": (
        "1\tPsi\tpes\tNOUN\t_\tCase=Nom|Number=Plur\t2\tnsubj\t_\t_\n2\tpsa\tpes\tNOUN\t_\tCase=Gen\t0\troot\t_\t_\n\n"
    ),
}


def written(folder: Path, kind: str) -> str:
    """The table of what a reader knows."""
    (folder / "file").write_text(FILES[kind], encoding="utf-8")
    read_table(kind, folder / "file", lowercase=False).write(text := io.StringIO())
    (path := folder / f"{kind}.tsv").write_text(text.getvalue(), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("kind", FILES)
def test_a_table_says_the_forms_of_a_lemma(kind: str, tmp_path: Path) -> None:
    found = read_word_forms([written(tmp_path, kind)], CASED)
    assert {*found.of("pes")} - {"psi mí"} == {"Psi", "psa"} and not found.of("psa") and list(found) == ["pes"]
    assert {"POS:NOUN", "Case:Nom", "Number:Plur"} == set(found.of("pes")["Psi"])
    assert "Case:Gen" in found.of("pes")["psa"]
    assert ("psi mí" in found.of("pes")) == (kind == "unimorph")


@pytest.mark.parametrize("kind", FILES)
def test_in_lower_cased_text_forms_are_lower_cased(kind: str, tmp_path: Path) -> None:
    assert {"psi", "psa"} <= set(read_word_forms([written(tmp_path, kind)], LOWER).of("pes"))


def test_several_tables_are_united(tmp_path: Path) -> None:
    found = read_word_forms([written(tmp_path, kind) for kind in FILES], CASED)
    assert len(found) == 1 and {"Case:Gen", "Case:Acc", "Number:Sing"} < set(found.of("pes")["psa"])


def test_what_endings_say_is_no_form(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(
        "form\tlemma\tUPOS\tFEATS\tcount\tsource\tguessed\tvalues\npsa\tpes\t_\t_\t0\tendings\tyes\t_\n"
        "psi\tpes\t_\t_\t0\tsimplemma:cs\tyes\t_\n", encoding="utf-8",
    )  # fmt: skip
    assert list(read_word_forms([str(path)], LOWER).of("pes")) == ["psi"]


def test_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: cannot be read: No such file or directory"):
        read_word_forms([str(tmp_path / "nowhere")], ("a",))
