"""CoNLL-U: rows that are read, rows that are left out, and every malformed row."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lexicons import read_conllu

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.lexicon.readers.conllu import Token, iter_conllu_words

# Our own sentence: "Les chats des voisines dorment." with the contraction des = de + les, and an empty node.
CHATS = """\
# sent_id = 1
# text = Les chats des voisines dorment.
1\tLes\tle\tDET\t_\tDefinite=Def|Gender=Fem,Masc|Number=Plur\t2\tdet\t_\tSpaceAfter=Yes
2\tchats\tchat\tNOUN\t_\tGender=Masc|Number=Plur\t6\tnsubj\t_\t_
3-4\tdes\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_
4\tles\tle\tDET\t_\tNumber[psor]=Plur\t5\tdet\t_\t_
5\tvoisines\tvoisin\tNOUN\t_\tGender=Fem|Number=Plur\t2\tnmod\t_\t_
5.1\tqui\tqui\tPRON\t_\t_\t_\t_\t6:nsubj\t_
6\tdorment\tdormir\tVERB\t_\t_\t0\troot\t_\t_

1\tLes\t_\t_\t_\t_\t_\t_\t_\t_
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def row(number: object = 1, form: str = "mot", feats: str = "_", head: object = "_") -> str:
    return f"{number}\t{form}\t{form}\tNOUN\t_\t{feats}\t{head}\t_\t_\t_\n"


def test_words_and_their_features(tmp_path: Path) -> None:
    lexicon = read_conllu(write(tmp_path / "a.conllu", CHATS), lowercase=False)
    assert list(lexicon) == ["Les", "chats", "de", "les", "voisines", "dorment"]
    assert dict.fromkeys(
        ["POS:DET", "Definite:Def", "Gender:Fem", "Gender:Masc", "Number:Plur"], 1.0
    ) == lexicon.features("Les")
    assert lexicon.features("de") == {"POS:ADP": 1.0}
    assert lexicon.features("les") == {"POS:DET": 1.0, "Number[psor]:Plur": 1.0}


def test_lower_casing_unites(tmp_path: Path) -> None:
    lexicon = read_conllu(write(tmp_path / "a.conllu", CHATS), lowercase=True)
    assert list(lexicon) == ["les", "chats", "de", "voisines", "dorment"]
    assert {"Definite:Def", "Number[psor]:Plur"} <= set(lexicon.features("les"))


PLUS = """\
# global.columns = ID FORM UPOS LEMMA FEATS PARSEME:MWE
1\tle\tDET\tle\tGender=Masc\t*
2\tchat\tNOUN\tchat\tGender=Masc\t1:NE

# global.columns=id upos form
1\tVERB\tdort
"""


def test_columns_of_conllu_plus_are_read_by_their_names(tmp_path: Path) -> None:
    first, second = iter_conllu_words(write(tmp_path / "a.conllup", PLUS), False)
    assert [(token.form, token.lemma, token.upos, token.feats, token.head, token.deprel) for token in first] == [
        ("le", "le", "DET", ("Gender:Masc",), None, None),
        ("chat", "chat", "NOUN", ("Gender:Masc",), None, None),
    ]
    assert (second[0].form, second[0].lemma, second[0].upos) == ("dort", "_", "VERB")
    usual = "# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n" + CHATS
    expected = list(iter_conllu_words(write(tmp_path / "a", CHATS), False))
    found = list(iter_conllu_words(write(tmp_path / "b", usual), False))
    assert [[word._replace(line=word.line - 1) for word in words] for words in found] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# global.columns = ID LEMMA\n", "line 1: expected columns with different names, ID and FORM among them, "),
        ("# global.columns =\n", "line 1: expected columns with different names, ID and FORM among them, found ''"),
        ("# global.columns = ID FORM form\n", "line 1: expected columns with different names"),
        ("# global.columns = ID FORM UPOS\n1\ta\tX\tx\n", "line 2: expected 3 columns separated by tabs, found 4 col"),
        ("# global.columns = ID FORM FEATS\n1\ta\tX\n", "line 2: .*X"),
    ],
)
def test_bad_columns_of_conllu_plus(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        list(iter_conllu_words(write(tmp_path / "a", text), False))


def test_sentences_as_tokens(tmp_path: Path) -> None:
    first, second = iter_conllu_words(write(tmp_path / "a.conllu", CHATS), lowercase=True)
    assert [token.form for token in first] == ["les", "chats", "de", "les", "voisines", "dorment"]
    assert first[1] == Token("chats", "chat", "NOUN", ("Gender:Masc", "Number:Plur"), 6, "nsubj", 4)
    assert first[5].head == 0 and first[5].features == ("POS:VERB",)
    assert second == [Token("les", "_", None, (), None, None, 12)] and second[0].features == ()


def test_sentences_are_streamed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", row() + "\n" + row("one"))
    sentences = iter_conllu_words(path, False)
    assert len(next(sentences)) == 1
    with pytest.raises(DataError, match="line 3"):
        next(sentences)


def test_line_ends_spaces_and_comments_do_not_matter(tmp_path: Path) -> None:
    tidy = list(iter_conllu_words(write(tmp_path / "tidy", row() + "\n" + row()), False))
    untidy = write(tmp_path / "untidy", "# only\n\n\n" + row().replace("\n", "\r\n") + " \t\n# x\n" + row()[:-1])
    assert [[t.form for t in s] for s in iter_conllu_words(untidy, False)] == [[t.form for t in s] for s in tidy]


def test_spaces_in_a_form_do_not_shift_the_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "a", row(form="20 000", head=0) + row(2, form="a  b", head=1) + row(3, form="\u00a0a"))
    sentence = next(iter_conllu_words(path, False))
    assert [(t.form, t.upos, t.head) for t in sentence] == [
        ("20 000", "NOUN", 0),
        ("a  b", "NOUN", 1),
        ("a", "NOUN", None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tmot\tmot\tNOUN\n", "line 1: expected 10 columns separated by tabs, found 4 columns: '1.tmot"),
        (row()[:-1] + "\tx\n", "line 1: expected 10 columns separated by tabs, found 11 columns"),
        (row().replace("\t", "  "), "line 1: expected 10 columns separated by tabs, found 1 columns: '1  mot"),
        ("just some words\n", "line 1: expected 10 columns separated by tabs, found 1 columns: 'just some words'"),
        (row("1x"), r"line 1: column 1 .ID.: expected a number \(1\), a range .*, found '1x'"),
        (row("4-2"), "line 1: column 1 .ID.: .*found '4-2'"),
        (row("_"), "line 1: expected the ID 1, found '_'"),
        (row("0"), "line 1: expected the ID 1, found '0'"),
        (row() + row(1), "line 2: expected the ID 2, found '1'; word IDs run 1, 2, 3, … in a sentence, and an empty"),
        (row() + row(3), "line 2: expected the ID 2, found '3'"),
        (row(form=""), r"line 1: column 2 \(FORM\) is empty; expected a word"),
        (row(feats="Fem"), r"line 1: expected FEATS that are _ or Key=Value pairs .*; found 'Fem'$"),
        (row(feats="Fem" * 999), "found 'F[Fem]{59}…'$"),
        (row(feats="Gender=Fem|Plur"), "found 'Gender=Fem|Plur' with the part 'Plur'"),
        (row(feats="Gender=Fem|"), "with the part ''"),
        (row(feats="Gender="), "found 'Gender='"),
        (row(feats="=Fem"), "found '=Fem'"),
        (row(feats="Gender=Fem,"), "found 'Gender=Fem,'"),
        (row(feats="Gender=Fem=x"), "found 'Gender=Fem=x'"),
        (row(feats="A:b=Fem"), "found 'A:b=Fem'"),
        (row(feats=""), "found ''"),
        (row(head="deux"), "line 1: column 7 .HEAD.: expected a number or _, found 'deux'"),
        (row(head="2"), "line 1: HEAD is 2, but the sentence has 1 words; expected 0 to 1, or _"),
        (row(head="-1"), "line 1: HEAD is -1"),
        (CHATS + "\n# comment\n" + row("x"), "line 15: column 1 .ID.: expected"),
        *((row() + "\n1-2\tdu" + "\t_" * 8 + "\n" + end, "line 3: expected the row of the words 1-2 right before the "
        "first")
          for end in ("", "\n" + row())),
        *((text, "expected CoNLL-U sentences, found none; is the file empty, or the path wrong?")
          for text in ("", "\n\n", "# sent_id = 1\n\n")),
    ],
)  # fmt: skip
def test_a_malformed_row_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "bad.conllu", text + "\n")
    with pytest.raises(DataError, match=message) as error:
        read_conllu(path, lowercase=True)
    assert str(error.value).startswith(str(path))


# Cells as a treebank can have them: no control characters, no spaces at the ends, no two spaces in a row.
CELL_CHARACTERS = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Zs"])
CELLS = st.text(CELL_CHARACTERS, min_size=1, max_size=8)
KEYS = st.sampled_from(["Gender", "Number", "Number[psor]", "VerbForm"])
VALUES = st.lists(st.sampled_from(["Fem", "Masc", "Plur", "1"]), min_size=1, max_size=2, unique=True)


@st.composite
def generated_rows(draw: st.DrawFn) -> tuple[list[list[Token]], str]:
    """Generate sentences with their CoNLL-U text."""
    sentences, lines = [], []
    for _ in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 4))
        sentence = []
        for position in range(1, length + 1):
            feats = draw(st.dictionaries(KEYS, VALUES, max_size=3))
            head = draw(st.none() | st.integers(0, length))
            upos = draw(st.none() | st.sampled_from(["NOUN", "X", "_x"]))
            form, lemma = draw(CELLS), draw(CELLS)
            names = tuple(f"{key}:{value}" for key, values in feats.items() for value in values)
            if draw(st.booleans()):
                lines.append(f"{position}-{position + 1}\tdu" + "\t_" * 8)
            written = "|".join(f"{key}={','.join(values)}" for key, values in feats.items()) or "_"
            cells = [position, form, lemma, upos or "_", "_", written, "_" if head is None else head]
            lines.append("\t".join(map(str, [*cells, "dep", "_", "_"])))
            sentence.append(Token(form, lemma, upos, names, head, "dep", len(lines)))
        lines.append("")
        sentences.append(sentence)
    return sentences, "\n".join(lines)


@settings(max_examples=40, deadline=None)
@given(generated=generated_rows())
def test_generated_rows_come_back(tmp_path_factory: pytest.TempPathFactory, generated: tuple) -> None:
    sentences, text = generated
    path = write(tmp_path_factory.mktemp("generated") / "a.conllu", text)
    assert list(iter_conllu_words(path, lowercase=False)) == sentences


@pytest.mark.real_data("ud-french-gsd-1.4")
def test_the_french_treebank(shared_data: Path) -> None:
    folder = shared_data / "ud-french-gsd-1.4"
    lexicon = read_conllu(folder / "test.conllu.gz", lowercase=True)
    assert len(lexicon) == 2279
    sentences = list(iter_conllu_words(folder / "test.conllu.gz", lowercase=True))
    assert sum(map(len, sentences)) == 7_020
    assert all(token.head is not None and token.deprel for sentence in sentences for token in sentence)


# Whatever bytes a file holds, a reader gives a lexicon or a DataError that begins with the path
