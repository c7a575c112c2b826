"""Sources of another language than the text's: nothing about them is wrong but that, and the first line says it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_corpus import Llrnn

from fairseq_llrnn.lexicon.casing import lower
from fairseq_llrnn.lexicon.language_check import few_words_remark, is_warning, unknown_remark, words_in_both

WORDS = "maison chat chien table porte fenêtre livre arbre fleur soleil lune mer ciel terre eau feu pain vin".split()
OTHERS = "ev kedi köpek masa kapı pencere kitap ağaç çiçek güneş ay deniz gök toprak su ateş ekmek şarap".split()
ASKS = "is it of the text's language, and in its case?"


def treebank(words: list[str]) -> str:
    return "".join(f"{i}\t{word}\t{word}\tNOUN\t_\t_\t0\troot\t_\t_\n" for i, word in enumerate(words, 1)) + "\n"


WRITTEN: dict[str, Callable[[list[str]], str]] = {  # what each option reads
    "conllu": treebank,
    "lexicon": lambda words: "".join(f"{word}\t{word}\tNOUN\t_\n" for word in words),
    "unimorph": lambda words: "".join(f"{word}\t{word}\tN;SG\n" for word in words),
    "values": lambda words: "".join(f"{word}\tLength:all\t{len(word)}\n" for word in words),
    "morphemes": lambda words: "".join(f"{word}\t{word[:1]} {word[1:]}\n" for word in words if len(word) > 1),
    "hunspell": lambda words: f"{len(words)}\n" + "".join(f"{word}/S\n" for word in words),
}
LEMMAS = ("conllu", "lexicon", "unimorph", "hunspell")  # which know some


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, list[str]], Path]:
    (tmp_path / "text").write_text(" ".join(WORDS) + " ,\n", encoding="utf-8")
    (tmp_path / "dict.txt").write_text("".join(f"{word} 1\n" for word in (*WORDS, ",")), encoding="utf-8")
    (tmp_path / "words.aff").write_text("SET UTF-8\nSFX S Y 1\nSFX S 0 s .\n", encoding="utf-8")

    def written(kind: str, words: list[str]) -> Path:
        path = tmp_path / ("words.dic" if kind == "hunspell" else f"words.{kind}")
        path.write_text(WRITTEN[kind](words), encoding="utf-8")
        return path

    return written


# shared with the text: one word of 18, and of a short list that the text knows
FOREIGN, SHORT = [*OTHERS, "chat"], WORDS[:3]


@pytest.mark.parametrize("kind", [kind for kind in WRITTEN if kind != "hunspell"])
def test_a_prior(llrnn: Llrnn, tmp_path: Path, write: Callable[[str, list[str]], Path], kind: str) -> None:
    name = "lexicon" if kind in ("unimorph", "values", "morphemes") else "prior"
    command = [name, "--dict", tmp_path / "dict.txt", "--count-text", tmp_path / "text", "--out", tmp_path / "prior"]
    path = write(kind, FOREIGN)
    done = llrnn(*command, f"--{kind}", path)
    said = f"warning: 1 of the text's 18 words are known to {path}, among 19: {ASKS}"
    assert (done.code, done.err.splitlines()[0]) == (0, said)
    for words in (WORDS + OTHERS * 9, SHORT):
        assert "warning" not in llrnn(*command, f"--{kind}", write(kind, list(dict.fromkeys(words)))).err


@pytest.mark.parametrize("kind", LEMMAS)
def test_a_dictionary(llrnn: Llrnn, tmp_path: Path, write: Callable[[str, list[str]], Path], kind: str) -> None:
    command = ["dictionary", "--text", tmp_path / "text", "--out", tmp_path / "d"]
    if kind in ("unimorph", "hunspell"):
        command = ["lexicon", "--count-text", tmp_path / "text", "--out", tmp_path / "d"]
    path = write(kind, FOREIGN)
    said = f"warning: 1 of the text's 18 words are known to {path}{'' if kind == 'hunspell' else ', among 19'}"
    assert llrnn(*command, f"--{kind}", path).err.splitlines()[0] == f"{said}: {ASKS}"
    assert "warning" not in llrnn(*command, f"--{kind}", write(kind, WORDS)).err


@pytest.mark.parametrize("options", [["--count-text", "{}"], ["--background", "ngram(2, folds=0, text={})"]])
def test_texts(llrnn: Llrnn, tmp_path: Path, write: Callable[[str, list[str]], Path], options: list[str]) -> None:
    other = tmp_path / "other"
    (tmp_path / "other").write_text(f"{' '.join(OTHERS)} chat\n{'chat ' * 9}\n", encoding="utf-8")
    options = [option.format(other) for option in options]
    done = llrnn("prior", "--dict", tmp_path / "dict.txt", "--out", tmp_path / "p", *options)
    what = f"--count-text {other}" if options[0] == "--count-text" else f"the text of ngram(…, text={other})"
    said = f"warning: 10 of the 28 tokens of {what} are words of the dictionary: {ASKS}"
    assert (done.code, done.err.splitlines()[0]) == (0, said)


@pytest.mark.parametrize(
    ("unknown", "words", "is_open", "remark", "warns"),
    [
        (5, 9, False, "4 of the 9 tokens of it are words of the dictionary: is it of the text's language,", True),
        (4, 8, False, "4 of the 8 tokens of it are outside the dictionary (50.0%) and count as <unk>. With so many, a "
         "perplexity is too low. Check the tokenisation and case of the text; if they are right, use a larger", True),
        (51, 1000, False, "51 of the 1,000 tokens of it are outside the dictionary (5.1%) and count as <unk>. W", True),
        (50, 1000, False, "50 of the 1,000 tokens of it are outside the dictionary (5.0%) and count as <unk>", False),
        (4, 8, True, "4 of the 8 tokens of it are outside the dictionary (50.0%); the open vocabulary spells", False),
    ],
)  # fmt: skip
def test_the_share_of_unknown_words(unknown: int, words: int, is_open: bool, remark: str, warns: bool) -> None:
    ((said, count),) = unknown_remark("it", unknown, words, is_open).items()
    assert f"{count} {said}".startswith(remark) and is_warning(said) is warns
    assert warns or not said.endswith("characters)")


def test_where_it_begins() -> None:
    assert few_words_remark("it", 1, 11) and not few_words_remark("it", 1, 10) and not few_words_remark("it", 0, 9)
    assert few_words_remark("it", 1, 100, 11) and not few_words_remark("it", 1, 100, 10)
    assert not unknown_remark("it", 0, 0) and not unknown_remark("it", 0, 9)
    numbers = [str(i) for i in range(99)]
    assert not words_in_both("it", [lower(word) for word in WORDS] + numbers, WORDS)
    assert words_in_both("it", OTHERS + numbers, WORDS + numbers)  # which are the same in all languages
