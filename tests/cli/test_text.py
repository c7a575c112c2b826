"""`llrnn text`: treebanks as text, both kinds of words, every case; `llrnn prior` says what disagrees with it."""

import gzip
from pathlib import Path

import pytest
from small_corpus import Corpus, Llrnn

from fairseq_llrnn.prior.prior import Prior

# Our own sentences, of French and of Turkish. "20 000" is one word.
FRENCH = """\
# text = Il va au marché des 20 000 ?
1\tIl\til\tPRON\t_\t_\t2\tnsubj\t_\t_
2\tva\taller\tVERB\t_\t_\t0\troot\t_\t_
3-4\tau\t_\t_\t_\t_\t_\t_\t_\t_
3\tà\tà\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_
5\tmarché\tmarché\tNOUN\t_\t_\t2\tobl\t_\t_
6-7\tdes\t_\t_\t_\t_\t_\t_\t_\t_
6\tde\tde\tADP\t_\t_\t8\tcase\t_\t_
7\tles\tle\tDET\t_\t_\t8\tdet\t_\t_
8\t20 000\t20000\tNUM\t_\t_\t5\tnmod\t_\t_
8.1\tgens\tgens\tNOUN\t_\t_\t_\t_\t5:nmod\t_

1\tOui\toui\tINTJ\t_\t_\t0\troot\t_\t_
"""
TURKISH = """\
1\tIsparta\tIsparta\tPROPN\t_\t_\t0\troot\t_\t_
2\tİstanbul\tİstanbul\tPROPN\t_\t_\t1\tflat\t_\t_
3\tşehri\tşehir\tNOUN\t_\t_\t1\tflat\t_\t_

"""


@pytest.fixture
def french(tmp_path: Path) -> Path:
    path = tmp_path / "french.conllu.gz"
    path.write_bytes(gzip.compress(FRENCH.encode()))
    return path


@pytest.fixture
def turkish(tmp_path: Path) -> Path:
    path = tmp_path / "turkish.conllu"
    path.write_text(TURKISH, encoding="utf-8")
    return path


def test_syntactic_words_are_those_that_have_features(llrnn: Llrnn, french: Path, corpus: Corpus) -> None:
    done = llrnn("text", "--conllu", french, "--lower")
    assert done.out == "il va à le marché de les 20_000\noui\n"
    assert done.err.splitlines() == [
        "note: 2 sentences, 9 words",
        f"note: {french}: 9 of 12 rows read; left out: 1 for empty nodes, 2 for words written together",
    ]
    words = sorted(set(done.out.split()))
    dictionary = corpus.write("french.txt", "".join(f"{word} 1\n" for word in words))
    done = llrnn("prior", "--dict", dictionary, "--conllu", french, "--top-words", 1, "--out", corpus.out)
    assert "lexicon lacks" not in done.err


def test_surface_words_are_those_that_are_written(llrnn: Llrnn, french: Path) -> None:
    done = llrnn("text", "--conllu", french, "--words", "surface")
    assert done.out == "Il va au marché des 20_000\nOui\n"


def test_lower_case_by_language(llrnn: Llrnn, turkish: Path) -> None:
    assert llrnn("text", "--conllu", turkish, "--lower", "tr").out == "ısparta istanbul şehri\n"
    assert llrnn("text", "--conllu", turkish, "--lower").out == "isparta i̇stanbul şehri\n"
    assert llrnn("text", "--conllu", turkish).out == "Isparta İstanbul şehri\n"
    assert "--lower turkish: expected the code" in llrnn("text", "--conllu", turkish, "--lower", "turkish").error


def test_several_files_and_a_place(llrnn: Llrnn, french: Path, turkish: Path, tmp_path: Path) -> None:
    done = llrnn("text", "--conllu", turkish, french, "--out", tmp_path / "text.txt")
    assert (done.code, done.out) == (0, "")
    lines = (tmp_path / "text.txt").read_text(encoding="utf-8").splitlines()
    assert lines == ["Isparta İstanbul şehri", "Il va à le marché de les 20_000", "Oui"]
    done = llrnn("text", "--conllu", turkish, french, "--out", "-")
    assert done.out.splitlines() == lines


@pytest.mark.parametrize(
    "rows",
    [
        ["1\ta", "1-2\tab", "2\tb"],  # behind the first of its words
        ["1-3\tab", "1\ta", "2\tb"],  # a word that is not there
        ["1-2\tab", "1\ta", "2-3\tbc", "2\tb", "3\tc"],  # one word in two
        ["1\ta", "2\tb", "3-4\tcd"],
    ],
)
def test_rows_of_several_words_out_of_place(rows: list[str], llrnn: Llrnn, tmp_path: Path) -> None:
    path, out = tmp_path / "a.conllu", tmp_path / "out.txt"
    path.write_text("".join(f"{row}{8 * (chr(9) + '_')}\n" for row in rows), encoding="utf-8")
    assert llrnn("text", "--conllu", path).code == 0, "of no account for syntactic words"
    error = llrnn("text", "--conllu", path, "--words", "surface", "--out", out).error
    number = next(i for i, row in reversed(list(enumerate(rows, 1))) if "-" in row)
    assert error.startswith(f"{path}, line {number}: expected the row of the words")
    assert error.endswith("correct the IDs, or write the syntactic words")
    assert not out.exists()


# ---- `llrnn prior` ---------------------------------------------------------------------------------------------------


@pytest.fixture
def cased(llrnn: Llrnn, corpus: Corpus, turkish: Path) -> Llrnn:
    """`llrnn prior` for the words of a text, in the case of the first argument."""

    def run(casing: tuple[str, ...], *options: object) -> object:
        text = corpus.write("text.txt", llrnn("text", "--conllu", turkish, *casing).out)
        words = text.read_text(encoding="utf-8").split()
        dictionary = corpus.write("words.txt", "".join(f"{word} 1\n" for word in words))
        return llrnn(
            "prior", "--dict", dictionary, "--conllu", turkish, "--count-text", text, "--top-words", 1,
            *(["--set", *options] if options else []),
            "--out", corpus.out,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    ("casing", "options"),
    [(("--lower", "tr"), ("words.lower=tr",)), ((), ("words.keep_case=true",)), (("--lower",), ())],
)
def test_a_text_in_the_case_of_its_lexicon(
    casing: tuple[str, ...], options: tuple[str, ...], cased: Llrnn, corpus: Corpus
) -> None:
    done = cased(casing, *options)
    assert done.code == 0 and [line for line in done.err.splitlines() if not line.endswith("rows read")] == []
    prior = Prior.load(corpus.out)
    assert all("POS" in str(prior.output.features.row(i)) for i in range(4, 7))


@pytest.mark.parametrize(
    ("casing", "options", "count", "advice"),
    [
        (("--lower", "tr"), (), 2, "lower-cased by Turkish rules, the lexicon was not; add --set words.lower=tr"),
        (("--lower",), ("words.lower=tr",), 1, "the lexicon was lower-cased by words.lower tr, the text by other"),
        ((), (), 2, "the text has capitals, and the lexicon was lower-cased; add --set words.keep_case=true"),
        (("--lower",), ("words.keep_case=true",), 2, "the text has no capitals; leave words.keep_case out"),
    ],
)
def test_a_text_in_another_case(
    casing: tuple[str, ...], options: tuple[str, ...], count: int, advice: str, cased: Llrnn
) -> None:
    done = cased(casing, *options)
    assert done.code == 0
    share = f"{100 * count / 3:.1f} %"
    assert f"note: {count} dictionary words ({share} of the text) that the lexicon has in another case" in done.err
    assert advice in done.err
