"""fairseq's dictionaries, read without fairseq."""

import logging
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.features.dictionary import EOS, SPECIALS, UNK, WordList, count_words, hash_symbols, load_dictionary
from fairseq_llrnn.features.subwords import CONVENTIONS, PieceText
from fairseq_llrnn.features.text_check import TextCheck
from fairseq_llrnn.files import text_blocks
from fairseq_llrnn.files.text_lines import iter_lines
from fairseq_llrnn.lexicon.language_check import is_warning, unknown_remark
from fairseq_llrnn.ngrams.ngrams import read_sentences


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "dict.txt"
    path.write_bytes(text.encode())
    return path


def test_symbols_counts_and_kinds(tmp_path: Path) -> None:
    words = load_dictionary(write(tmp_path, "le 50\nà côté 3\nmadeupword0000 0\nmadeupword0001 7\n"))
    assert words.symbols[:6] == ("<s>", "<pad>", "</s>", "<unk>", "le", "à côté")
    assert words.counts.tolist() == [0, 0, 0, 0, 50, 3, 0, 7]
    assert words.specials.tolist() == [True] * 4 + [False, False, True, False]
    assert words.predictable.tolist() == [False, False, True, True, True, True, False, True]


def test_equals_fairseqs_own_reading(tmp_path: Path) -> None:
    fairseq_data = pytest.importorskip("fairseq.data")
    path = write(tmp_path, "b 5\na 5\nd 2 #fairseq:overwrite\ne  3 \t\r\nà\u2028côté 1\nf\x85 7\nc 0")
    theirs = fairseq_data.Dictionary.load(str(path))
    ours = load_dictionary(path)
    assert list(ours.symbols) == theirs.symbols
    assert ours.counts[4:].tolist() == theirs.count[4:]


ODD = [
    "a 5\nb 6", "a 5 ", "a 5\r", "a 5\u00a0", "a 5 #fairseq:overwrite", "a 5 #fairseq:overwrite ",
    "a 5  #fairseq:overwrite", "a #fairseq:overwrite", "a 5\na 6", "a 5\na 6 #fairseq:overwrite",
    "<s> 0 #fairseq:overwrite", "<unk> 3", "a", "a 5.0", "a +5", "a -5", "a 1_000", "a ٣", "a ²", "\ufeffa 5",
    "a 5\n\nb 6", "a 5\n", "\n", "\u00a0 5", " 5", "  5", "a\u00a05", "a\rb 5",
    "a 5\rb 6", "a\x85b 5", "a\u2028b 5", "a\x0bb\x0c\x1cc 5", "a\tb 5", "a b 5", "#fairseq:overwrite 3",
]  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_reads_what_fairseq_reads_or_refuses_it(tmp_path: Path, text: str) -> None:
    """fairseq can read its own dictionary of the result again."""
    fairseq_data = pytest.importorskip("fairseq.data")
    path, again = write(tmp_path, f"{text}\n"), tmp_path / "again.txt"
    try:
        theirs = fairseq_data.Dictionary.load(str(path))
        theirs.save(str(again))
        fairseq_data.Dictionary.load(str(again))
    except Exception:
        with pytest.raises(DataError, match=r"dict\.txt, line [12]: "):
            load_dictionary(path)
        return
    try:
        ours = load_dictionary(path)
    except DataError as error:
        assert "dict.txt, line " in str(error)
    else:
        assert (list(ours.symbols), ours.counts.tolist()) == (theirs.symbols, [0] * 4 + theirs.count[4:])


def test_symbols_that_show_nothing_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, "a 5\n\u200b 3\nb\u200b 2\n\u2060\u00ad 1\n")
    assert load_dictionary(path).symbols[4:] == ("a", "\u200b", "b\u200b", "\u2060\u00ad")
    assert caplog.messages == [f"{path}: 2 symbols have no visible character (lines 2, 4); clean the text"]


def test_counts_of_a_text(tmp_path: Path) -> None:
    words = load_dictionary(write(tmp_path, "le 1\nchat 1\n"))
    text = tmp_path / "train.txt"
    text.write_text("le chat le\nle chien\n", encoding="utf-8")
    assert words.count_text([text, text])[2:].tolist() == [4, 2, 6, 2]
    # <unk> stays possible, even where the text holds none
    text.write_text("le\n", encoding="utf-8")
    assert words.count_text([text])[2:].tolist() == [1, 1, 1, 0]


def test_own_counts_estimate_the_ends_of_sentences(tmp_path: Path) -> None:
    words = load_dictionary(write(tmp_path, "le 40\nchat 10\n"))
    assert words.counts_with_ends()[2:].tolist() == [2, 1, 40, 10]


def test_hash_knows_order_and_symbols(tmp_path: Path) -> None:
    one = hash_symbols(load_dictionary(write(tmp_path, "a 1\nb 1\n")).symbols)
    assert hash_symbols(load_dictionary(write(tmp_path, "a 9\nb 1\n")).symbols) == one
    assert hash_symbols(load_dictionary(write(tmp_path, "b 1\na 1\n")).symbols) != one


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected at least one `symbol count` line, found none"),
        ("le 3\nchat\n", "line 2: expected `symbol count`, found 'chat'"),
        ("le trois\n", "line 1: expected `symbol count`"),
        ("le -3\n", "line 1: expected `symbol count`, found 'le -3'"),
        ("le inf\n", "line 1: expected `symbol count`, found 'le inf'"),
        *((f"le {count}\n", f"line 1: expected `symbol count` up to 1,000,000,000,000, found 'le {count}'")
          for count in ("1000000000001", "9" * 18, "9" * 30)),
        (f"le {'9' * 5000}\n", "line 1: expected `symbol count` up to 1,000,000,000,000, found 'le 999"),
        ("le ²\n", "line 1: expected `symbol count`"),
        (f"le {10**19}\n", "line 1: expected `symbol count`"),
        ("le 3\nchat 1\nle 2\n", "line 3: symbol 'le' was already given in line 1; remove one of them"),
        ("<pad> 3\n", "line 1: symbol '<pad>' was already given by fairseq itself; remove one of them"),
        *(
            (
                f"{symbol} 0 #fairseq:overwrite\nle 5\n",
                f"line 1: symbol '{symbol}' was already given by fairseq itself, which #fairseq:overwrite only hides "
                "from fairseq-preprocess; remove one of them",
            )
            for symbol in ("<s>", "<pad>", "</s>", "<unk>")
        ),
        ("le 5\nle 3 #fairseq:overwrite\n", "line 2: symbol 'le' was already given in line 1, which #fairseq:overwrite "
         "only hides from fairseq-preprocess; remove one of them"),
        ("\ufeffle 5\n", "line 1: expected `symbol count`, found a byte order mark, which fairseq reads as a letter"),
        ("\u00a0 5\n", "line 1: expected `symbol count`, found '\\xa0 5'"),
        ("le\rchat 5\n", "line 1: expected `symbol count`, found 'le\\rchat 5'"),
    ],
)  # fmt: skip
def test_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load_dictionary(write(tmp_path, text))
    assert message in str(caught.value)


# Why words of a text are outside a dictionary, and what to type next
LOWER = "le chat la maison a vu une tour paris l' homme".split()
CASED = "Le le chat la maison a vu une tour Paris L' homme Der".split()


def advice(vocabulary: list[str], text: str) -> str | None:
    check = TextCheck(vocabulary)
    check.add((word, 1) for word in text.split())
    return check.advice("a.txt", "a b.txt")


@pytest.mark.parametrize(
    ("vocabulary", "text", "counts", "example", "fix"),
    [
        (LOWER, "le chat. la maison, a vu", "2 of 6", "chat.", "tokenize < 'a b.txt' > 'a b.txt'.tok; pip install"),
        (LOWER, "le chat « la maison »", "", "", ""),
        (LOWER, "le «chat» (maison", "2 of 3", "«chat»", "tokenise it (sacremoses"),
        (LOWER, "Le chat. la maison", "1 of 4", "chat.", "tokenise it"),  # as many words of either kind
        (LOWER, "le chat؟ la maison։ chat։", "3 of 5", "chat؟", "tokenise it"),
        ([*LOWER, "chat.", "maison,"], "le chat. la maison,", "2 of 4", "chat.", "tokenise it"),  # so is the dictionary
        (LOWER, "le chat ... la . ( 12. x. - l' homme", "", "", ""),
        (LOWER, "Le CHAT la maison", "2 of 4", "Le", "lower-case it (sed 's/.*/\\L&/' 'a b.txt' > 'a b.txt'.lower)"),
        (LOWER, "Le " + "chat " * 99, "1 of 100", "Le", "lower-case it"),
        (["ılık", "ile"], "Ilık İLE", "2 of 2", "Ilık", "lower-case it"),  # Turkish
        (["ılık", "ile"], "ilik ile", "", "", ""),  # other words
        (CASED, "le chat paris der l'", "3 of 5", "paris", "use the text with its own capitals"),
        (CASED, "LE CHAT LA MAISON", "4 of 4", "LE", "use the text with its own capitals"),
        (CASED, "La maison x y z", "", "", ""),  # a text with capitals has its own reasons
        (LOWER, "<s> le chat <unk> </s> <S>", "", "", ""),
        (LOWER, "x y z", "", "", ""),
        (LOWER, "", "", "", ""),
    ],
)  # fmt: skip
def test_one_reason_with_the_next_command(
    vocabulary: list[str], text: str, counts: str, example: str, fix: str
) -> None:
    found = advice(vocabulary, text)
    if not fix:
        assert found is None
        return
    assert found is not None and found.startswith("a.txt: ") and f"{counts} words" in found
    assert f"such as {example!r}: " in found and fix in found


def test_a_form_comes_first() -> None:
    assert advice(["été", "chat"], "e\u0301te\u0301 chat. Chat") == (
        "a.txt: 1 words that the dictionary has only in another Unicode form, such as 'e\u0301te\u0301', in NFC: "
        "convert the file to that form (`uconv -x any-nfc`)"
    )


def test_texts_that_are_counted_and_read_are_checked(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    import numpy as np

    from fairseq_llrnn.features.dictionary import read_ids

    path = tmp_path_factory.mktemp("texts") / "a.txt"
    path.write_text("le chat. la maison, <unk>\n", encoding="utf-8")
    words = WordList((*SPECIALS, *LOWER), np.zeros(len(SPECIALS) + len(LOWER), dtype=np.int64))
    check = TextCheck(words.ordinary)
    words.count_text([path], 1, check)
    read_ids([path], words.symbols, 3, 1)
    assert (check.words, check.unknown, check.glued) == (5, 3, 2)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert len({*caplog.messages}) == 1 and caplog.messages[0].startswith(f"{path}: punctuation is glued to 2 of 5")


# Words of texts, counted and as ids: as a loop over lines has it, in one process and in several
SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>", *(f"w{i}" for i in range(30)))
WORDS = WordList(SYMBOLS, np.zeros(len(SYMBOLS), dtype=np.int64))


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 500)
    random = np.random.default_rng(7)
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        lines = [" \t"[k % 2].join(f"w{i}" for i in random.geometric(0.1, size=k)) for k in random.integers(0, 9, 300)]
        path.write_text("\n".join(["\ufeffw1\u00a0w2\r", "", *lines, "w3 end"]), encoding="utf-8")
    return paths


@pytest.mark.parametrize("workers", [1, 2])
def test_counts_and_ids_are_those_of_the_lines(texts: list[Path], workers: int) -> None:
    lines = [line.split() for path in texts for _, line in iter_lines(path)]
    counts = Counter(word for line in lines for word in line)
    assert count_words(texts, workers) == (counts, len(lines))
    expected = np.zeros(len(WORDS), dtype=np.int64)
    for word, count in counts.items():
        expected[SYMBOLS.index(word if word in SYMBOLS else UNK)] += count
    expected[SYMBOLS.index(EOS)] = len(lines)
    assert WORDS.count_text(texts, workers).tolist() == expected.tolist()
    sentences = read_sentences(texts, WORDS, workers)
    assert sentences.lengths.tolist() == [len(line) for line in lines]
    ids = [SYMBOLS.index(word if word in SYMBOLS else UNK) for line in lines for word in line]
    assert sentences.tokens.tolist() == ids


@pytest.mark.parametrize("workers", [1, 2])
def test_split_words_come_in_the_order_of_the_text(texts: list[Path], workers: int) -> None:
    for path in texts:
        path.write_text(path.read_text().replace("1", "1@@"), encoding="utf-8")
    convention = CONVENTIONS["bpe"]
    lines = [convention.split_words(line.split()) for path in texts for _, line in iter_lines(path)]
    expected = Counter(tuple(word) for line in lines for word in line)
    assert list(PieceText.read(texts, convention, workers).counts.items()) == list(expected.items())


@pytest.mark.parametrize(
    ("text", "explains"),
    [
        ("Le Chat x", True),
        ("Le Chat x y", False),  # a half is not most of them
        ("chat. maison, x", True),
        ("chat. Le x y z", False),
        ("Le chat x y z", False),
    ],
)
def test_a_reason_explains_most_unknown_words_or_not(text: str, explains: bool) -> None:
    """The warning of many unknown words is left out only if another one gives the reason."""
    check = TextCheck(LOWER)
    check.add((word, 1) for word in text.split())
    assert check.explains_most() is explains
    remark = next(iter(unknown_remark("a.txt", check.unknown, 40, is_explained=explains)))
    assert is_warning(remark) is not explains
