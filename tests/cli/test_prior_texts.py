"""What `llrnn prior` prints of its texts: unknown words, and sentences of the validation and test text."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from binary_texts import write_binary_text
from small_corpus import Done, Llrnn

from fairseq_llrnn.features.dictionary import SPECIALS

WORDS = "le chat voit la mer un roi tient bien sa tour il est là .".split()
SENTENCES = [[*WORDS[i:], *WORDS[:i]][: 6 + i % 3] for i in range(12)]
LEAK = "the perplexity of that text will be too low; build the prior from the training text alone"


def lines(sentences: list[list[str]]) -> str:
    return "".join(" ".join(sentence) + "\n" for sentence in sentences)


def treebank(sentences: list[list[str]]) -> str:
    rows = ("".join(f"{i}\t{w}\t{w}\tX\t_\t_\t0\t_\t_\t_\n" for i, w in enumerate(s, 1)) for s in sentences)
    return "".join(f"{row}\n" for row in rows)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of fairseq-preprocess, with a validation text of twelve sentences, and a test text of one."""
    folder = tmp_path / "data-bin"
    folder.mkdir()
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS), encoding="utf-8")
    ids = [[len(SPECIALS) + WORDS.index(word) for word in sentence] + [2] for sentence in SENTENCES]
    write_binary_text(folder / "valid", [*ids, [3] * 9, [4, 2]], 8)  # the last two say nothing: <unk>, and one word
    write_binary_text(folder / "test", ids[:1])
    return folder


@pytest.fixture
def build(data: Path, llrnn: Llrnn, tmp_path: Path) -> Callable[..., Done]:
    return partial(llrnn, "prior", "--dict", data / "dict.txt", "--out", tmp_path / "prior")


OTHERS = [WORDS[::-1], WORDS[::2]]


@pytest.mark.parametrize("dictionary", ["dict.txt", "dict.fr.txt"])
@pytest.mark.parametrize("kind", ["count-text", "conllu"])
def test_a_source_with_the_validation_text(
    build: Callable[..., Done], data: Path, tmp_path: Path, kind: str, dictionary: str
) -> None:
    if dictionary != "dict.txt":
        for name in ("valid.bin", "valid.idx", "dict.txt"):
            (data / name).rename(data / name.replace("valid", "valid.en-fr.fr").replace("dict", "dict.fr"))
    source, write = tmp_path / "source", {"count-text": lines, "conllu": treebank}[kind]
    prefix = data / ("valid" if dictionary == "dict.txt" else "valid.en-fr.fr")
    for sentences, seen in ((OTHERS + SENTENCES, 12), (OTHERS + SENTENCES[:7], 7), (OTHERS + SENTENCES[:6], 0)):
        source.write_text(write(sentences), encoding="utf-8")
        done = build(f"--{kind}", source, "--dict", data / dictionary)
        said = f"warning: {seen} of 12 sentences of {prefix} are in --{kind} {source}: {LEAK}\n"
        assert done.code == 0 and (said in done.err if seen else "sentences of" not in done.err)


def test_sentences_of_known_words_are_chosen(build: Callable[..., Done], data: Path, tmp_path: Path) -> None:
    ids = [[len(SPECIALS) + WORDS.index(word) for word in sentence] + [2] for sentence in SENTENCES]
    unknown = [[3] * 8 + [2]] * 1000
    write_binary_text(data / "valid", [row for sentence in ids for row in (*unknown, sentence)])
    (tmp_path / "source").write_text(lines(SENTENCES), encoding="utf-8")
    done = build("--count-text", tmp_path / "source")
    assert f"warning: 12 of 12 sentences of {data / 'valid'} are in " in done.err


@pytest.mark.parametrize("is_right", [True, False])
def test_surface_words_of_a_treebank(build: Callable[..., Done], data: Path, tmp_path: Path, is_right: bool) -> None:
    """`du` is `de le` in the treebank, and `du` in the text. A row of surface words out of its place says nothing."""
    source, empty = tmp_path / "a.conllu", "\t_" * 8
    (data / "dict.txt").write_text("".join(f"{word} 1\n" for word in ("du", *WORDS[1:])), encoding="utf-8")
    write_binary_text(data / "valid", [[4, 5 + i, 6, 7, 8, 9, 2] for i in range(10)])
    rest = [[WORDS[1 + i], *WORDS[2:6]] for i in range(10)]
    row = f"{'1-2' if is_right else '2-3'}\tdu{empty}\n"
    source.write_text("".join(row + treebank([["de", "le", *words]]) for words in rest), encoding="utf-8")
    done = build("--conllu", source)
    assert done.code == 0
    assert (f"warning: 10 of 10 sentences of {data / 'valid'} are in --conllu {source}: {LEAK}" in done.err) is is_right


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("le chat voit la mer\n", [], None),
        ("le chat voit la mer\n" * 4 + "oui\n", [], "note: 1 of the 21 tokens of {} are outside the dictionary (4.8%) "
         "and count as <unk>\n"),
        ("le chat voit oui\n", [], "warning: 1 of the 4 tokens of {} are outside the dictionary (25.0%) and count as "
         "<unk>. With so many, a perplexity is too low. Check the tokenisation and case of the text; if they are "
         "right, use a larger dictionary (llrnn dictionary --text FILES), pieces, or an open vocabulary (llrnn prior "
         "--open-vocabulary characters)\n"),
        ("le chat voit oui\n", ["--open-vocabulary", "characters"], "note: 1 of the 4 tokens of {} are outside the "
         "dictionary (25.0%); the open vocabulary spells them\n"),
        ("le chat. voit la mer.\n", [], "note: 2 of the 5 tokens of {} are outside the dictionary (40.0%) and count "
         "as <unk>\n"),
    ],
)  # fmt: skip
def test_the_share_of_unknown_words(
    build: Callable[..., Done], tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, options: list[str],
    says: str | None,
) -> None:  # fmt: skip
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    done = build("--count-text", tmp_path / "a.txt", *options)
    assert done.code == 0
    assert says.format(f"--count-text {tmp_path / 'a.txt'}") in done.err if says else "outside" not in done.err
    glued = "punctuation is glued to 2 of 5 words, such as 'chat.': tokenise it"
    assert caplog.text.count(glued) == text.count("chat.")


def test_a_foreign_treebank_is_no_test_of_guesses(build: Callable[..., Done], tmp_path: Path) -> None:
    words = "ev kedi köpek masa kapı pencere kitap ağaç çiçek güneş ay deniz".split()
    (tmp_path / "a.conllu").write_text(treebank([words, ["le"]]), encoding="utf-8")
    done = build("--conllu", tmp_path / "a.conllu", "--set", "words.guess=on")
    assert done.code == 0 and "are known to" in done.err and "POS" not in done.out and "right" not in done.out
    assert "guesses: not tested, because a source may be of another language (see the warning)\n" in done.out
