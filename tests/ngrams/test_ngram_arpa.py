"""ARPA files: round trip, completion of pruned files, and messages for malformed ones."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ngram_oracles import histories, log_prob, table_of, thinned, word_list

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.ngrams.arpa import LN_10, read_arpa, write_arpa
from fairseq_llrnn.ngrams.kneser_ney import estimate
from fairseq_llrnn.ngrams.ngrams import EMPTY, NGrams, Sentences

GOOD = """\
made by hand

\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-1.5\t<unk>
0\t<s>\t-0.4
-0.9\t</s>
-0.5\ta\t-0.25
-0.6\tb\t0.1

\\2-grams:
-0.3\t<s> a\t-0.2
-0.2\ta b\t-0.7
-99\tb </s>

\\3-grams:
-0.1\t<s> a b

\\end\\
"""


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "model.arpa"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_values(tmp_path: Path) -> None:
    model = read_arpa(written(tmp_path, GOOD))
    assert model.order == 3
    tens = {gram: (p / LN_10, b / LN_10) for gram, (p, b) in table_of(model).items()}
    assert tens.pop(("<s>",)) == (-np.inf, pytest.approx(-0.4))
    assert tens == {
        ("<unk>",): pytest.approx((-1.5, 0.0)),
        ("</s>",): pytest.approx((-0.9, 0.0)),
        ("a",): pytest.approx((-0.5, -0.25)),
        ("b",): pytest.approx((-0.6, 0.1)),
        ("<s>", "a"): pytest.approx((-0.3, -0.2)),
        ("a", "b"): pytest.approx((-0.2, -0.7)),
        ("b", "</s>"): pytest.approx((-99.0, 0.0)),
        ("<s>", "a", "b"): pytest.approx((-0.1, 0.0)),
    }


def test_gzip_blanks_and_minus_infinity(tmp_path: Path) -> None:
    plain = table_of(read_arpa(written(tmp_path, GOOD)))
    odd = GOOD.replace("-99\tb </s>", "-inf  b   </s> ").replace("\t", " ").replace("\n", "\r\n")
    (tmp_path / "model.arpa.gz").write_bytes(gzip.compress(odd.encode()))
    assert table_of(read_arpa(tmp_path / "model.arpa.gz")) == plain


def test_words_with_odd_blanks_are_one_word(tmp_path: Path) -> None:
    r"""Only blanks and tabs separate words; \u00a0 and \u2003 are ordinary characters."""
    odd = GOOD.replace("\ta\t", "\t1\u00a0000\t").replace("> a", "> 1\u00a0000").replace("\ta b", "\t1\u00a0000 b")
    assert ("1\u00a0000", "b") in table_of(read_arpa(written(tmp_path, odd)))


def random_model(seed: int) -> NGrams:
    rng = np.random.default_rng(seed)
    text = [rng.integers(4, 8, rng.integers(0, 7)).tolist() for _ in range(60)]
    return estimate(Sentences.of(text), word_list("a b c d"), 4)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    model = random_model(1)
    write_arpa(tmp_path / "model", model)
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    expected = {g: v for g, v in table_of(model).items() if g != ("<pad>",)}
    found = table_of(read_arpa(tmp_path / "model"))
    assert found.keys() == expected.keys()
    for gram, values in expected.items():
        assert found[gram] == pytest.approx(values, abs=1e-6)


def test_an_order_without_n_grams(tmp_path: Path) -> None:
    model = estimate(Sentences.of([[4]]), word_list("a"), 5)
    write_arpa(tmp_path / "model", model)
    assert table_of(read_arpa(tmp_path / "model")).keys() == table_of(model).keys() - {("<pad>",)}


@given(st.integers(0, 2**32 - 1))
def test_looking_up_equals_the_definition(seed: int) -> None:
    """The definition also applies to missing suffixes."""
    rng = np.random.default_rng(seed)
    model = thinned(random_model(int(rng.integers(100))), rng)
    table = table_of(model)
    for _ in range(20):
        words = rng.integers(4, 8, 5).tolist()
        history, total, expected = EMPTY, 0.0, 0.0
        for i, word in enumerate(words):
            total += float(model.log_prob(np.array([history]), np.array([word]))[0])
            expected += log_prob(table, tuple(model.words[w] for w in words[max(0, i - 3) : i]), model.words[word])
            history = history_after(model, history, word)
        assert total == pytest.approx(expected)


def history_after(model: NGrams, history: int, word: int) -> int:
    """Return the history after one more word, shortened to the model's n-grams."""
    while (entry := int(model.find(np.array([history]), np.array([word]))[0])) < 0:
        history = int(model.suffixes[history])
    return int(model.suffixes[entry]) if entry >= model.starts[-2] else entry


@pytest.mark.parametrize("seed", range(5))
def test_missing_histories_are_added_and_change_nothing(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = {g: v for g, v in table_of(random_model(seed)).items() if len(g) in (1, 4) or rng.random() < 0.4}
    del table[("<pad>",)]
    path = tmp_path / "model"
    lines = ["\\data\\", *(f"ngram {n}={sum(len(g) == n for g in table)}" for n in range(1, 5))]
    for n in range(1, 5):
        lines += ["", f"\\{n}-grams:"]
        for gram, (log_p, back_off) in table.items():
            if len(gram) == n:
                end = f"\t{back_off / LN_10:.12g}" if n < 4 else ""
                lines.append(f"{max(log_p / LN_10, -99):.12g}\t{' '.join(gram)}{end}")
    path.write_text("\n".join([*lines, "\\end\\", ""]))
    model = read_arpa(path)
    found = table_of(model)
    assert found.keys() > table.keys()
    assert all(gram[:-1] in found for gram in found if len(gram) > 1)
    for history, word in itertools.product(histories(["a", "b", "c"], 3), ["a", "b", "</s>"]):
        assert log_prob(found, history, word) == pytest.approx(log_prob(table, history, word), abs=1e-9)


def failure(path: Path) -> str:
    with pytest.raises(DataError) as error:
        read_arpa(path)
    return str(error.value).replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\\data\\", "data", "FILE: expected a line `\\data\\`, found none in 23 lines; this is no ARPA file"),
        ("ngram 2=3", "ngram 2=x", "FILE, line 5: expected `ngram 2=COUNT`, found 'ngram 2=x'; fix the counts under "),
        ("ngram 2=3", "ngram 4=3", "FILE, line 5: expected `ngram 2=COUNT`, found 'ngram 4=3'; fix the counts under "),
        ("ngram 1=5", "ngram 1=0", "FILE, line 8: expected `ngram 1=COUNT` above, found no words; fix `\\data\\`"),
        ("ngram 2=3", "ngram 2=4", "FILE, line 20: expected 4 2-grams, as in `\\data\\`, found 3; the file is "),
        ("\\2-grams:", "\\3-grams:", "FILE, line 15: expected the section `\\2-grams:`, as in `\\data\\`, f"),
        ("\\2-grams:\n-0.3\t<s> a\t-0.2\n-0.2\ta b\t-0.7\n-99\tb </s>\n\n", "", "FILE, line 15: expected the section "),
        ("\\end\\", "", "FILE, line 23: expected `\\end\\`, found nothing; the file is cut short, or has more sect"),
        ("\\end\\", "\\4-grams:", "FILE, line 23: expected `\\end\\`, found '\\\\4-grams:'; the file is cut short, "),
        ("a b\n", "a b\t-1\n", "FILE, line 21: expected log10 p and 3 words without a back-off weight in the highest"),
        ("-0.2\ta b", "-0.2\ta", "FILE, line 17: expected words that are also 1-grams, found '-0.7'; add it to the 1-"),
        ("\ta b\t-0.7", "\ta b c d", "FILE, line 17: expected log10 p, 2 words and optionally a back-off weight"),
        ("-0.5\ta", "x\ta", "FILE, line 12: expected numbers before and after one word, found 'x\\ta\\t-0.25'; fix"),
        ("-0.5\ta", "nan\ta", "FILE, line 12: expected a log10 p of at most 0, found nan; fix the line, or es"),
        ("-0.5\ta", "0.5\ta", "FILE, line 12: expected a log10 p of at most 0, found 0.5; fix the line, or es"),
        ("\ta\t-0.25", "\ta\tinf", "FILE, line 12: expected a finite back-off weight, found inf; fix the line, or "),
        ("\ta b\t", "\ta zebra\t", "FILE, line 17: expected words that are also 1-grams, found 'zebra'; add it to "),
        ("\tb\t0.1", "\ta\t0.1", "FILE, line 13: this 1-gram was already given in line 12; remove one of them"),
        ("\ta b\t", "\t<s> a\t", "FILE, line 17: this 2-gram was already given in line 16; remove one of them"),
    ],
)  # fmt: skip
def test_what_is_bad_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    found = failure(written(tmp_path, GOOD.replace(old, new, 1)))
    assert found.startswith(said)


def test_cut_short(tmp_path: Path) -> None:
    """A truncated file gives one message, for every length."""
    for end in range(len(GOOD) - len("\\end\\\n")):
        assert failure(written(tmp_path, GOOD[:end])).startswith("FILE")
    packed = gzip.compress(GOOD.encode())
    assert "whole gzip file" in failure(written(tmp_path, packed[: len(packed) // 2]))
