"""`llrnn show`: the summary and the words of a prior, as a table and as JSON."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from small_corpus import Corpus, Llrnn

from fairseq_llrnn.cli.show.shown_text import find
from fairseq_llrnn.cli.tables import WIDTH, columns
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.subwords import CONVENTIONS
from fairseq_llrnn.prior.prior import Prior


@pytest.fixture
def prior(corpus: Corpus, llrnn: Llrnn) -> Path:
    """Three words with an identity; petite, tables … without."""
    done = llrnn(
        "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 3, "--shapes", "--out",
        corpus.out, "--set", "words.guess=off",
    )  # fmt: skip
    assert done.code == 0, done.err
    return corpus.out


# ---- the whole prior ------------------------------------------------------------------------------------------------


def test_the_summary_as_a_table(prior: Path, llrnn: Llrnn) -> None:
    done = llrnn("show", prior)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"prior {prior}"
    for line in (
        "  top words          3",
        "  features           all",
        "  input features     as φ",
        "  shapes             yes",
        "  suffix floor       none",
        "  patterns           none",
        "  words                      17",
        "  forbidden words             3",
    ):
        assert line in lines
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert rows["TOPFORM"] == ["3", "3"]
    assert rows["Gender"] == ["2", "9"]  # features, words
    assert rows["Number"] == ["2", "10"]
    where = lines.index("background  unigram")
    weights = np.exp(Prior.load(prior).log_weights)
    entropy = -sum(w * math.log(w) for w in weights if w > 0)
    assert lines[where + 1].strip() == (
        f"14 possible next words of its root b₀, entropy {entropy:.3f} nats (perplexity {math.exp(entropy):.1f})"
    )


def test_the_largest_signatures(prior: Path, llrnn: Llrnn) -> None:
    shown = llrnn("show", "--json", prior).out
    summary = json.loads(shown)
    sizes = np.bincount(Prior.load(prior).output.class_of)
    assert summary["words_alone_in_their_signature"] == (sizes == 1).sum()
    first = summary["largest_signatures"][0]
    assert first["words"] == sizes.max() == 2
    assert first["features"] == {"NOTTOP": 1.0, "POS:NOUN": 1.0, "Gender:Fem": 1.0, "Number:Sing": 1.0}
    assert [member["word"] for member in first["members"]] == ["table", "chatte"]
    assert sum(member["share"] for member in first["members"]) == pytest.approx(1)
    table = llrnn("show", prior).out
    assert "Gender:Fem  NOTTOP  Number:Sing  POS:NOUN" in table
    assert "table, chatte\n" in table


def test_input_features_of_their_own(corpus: Corpus, llrnn: Llrnn) -> None:
    patterns = corpus.write("p.toml", "[patterns]\none = '12'\n")
    llrnn(
        "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 3, "--set",
        "input_features=POS", f"patterns={patterns}", "--out", corpus.out,
    )  # fmt: skip
    text = llrnn("show", corpus.out).out
    assert "  input features     POS\n" in text
    assert "  patterns           one\n" in text
    assert "feature groups that the network reads (ψ)" in text
    assert set(json.loads(llrnn("show", corpus.out, "--json").out)["input_groups"]) == {
        "POS", "NOTTOP", "SPECIAL", "TOPFORM"
    }  # fmt: skip
    word = llrnn("show", corpus.out, "petite").out
    assert "  as input      NOTTOP   POS:ADJ\n" in word
    (known,) = json.loads(llrnn("show", corpus.out, "petite", "--json").out)["words"]
    assert known["input_features"] == {"NOTTOP": 1.0, "POS:ADJ": 1.0}
    assert known["input_signature_size"] == 2


# ---- words ----------------------------------------------------------------------------------------------------------


def test_a_word(prior: Path, llrnn: Llrnn) -> None:
    done = llrnn("show", prior, "chatte")
    assert done.code == 0
    loaded = Prior.load(prior)
    b = {w: float(np.exp(loaded.log_weights[loaded.symbols.index(w)])) for w in ("table", "chatte")}
    lines = done.out.splitlines()
    assert lines[0] == "chatte"
    assert lines[1] == "  features      Gender:Fem   NOTTOP   Number:Sing   POS:NOUN"
    assert lines[2] == f"  signature     {loaded.output.class_of[loaded.symbols.index('chatte')]}, shared by 2 words"
    share = b["chatte"] / sum(b.values())
    assert lines[3].startswith("  its words     table ")
    assert lines[3].endswith(f"   chatte {100 * share:.0f}%")
    assert lines[4].startswith(f"  root b₀       {b['chatte']:.4f}, which is {100 * share:.0f}% of its signature's ")
    alone = llrnn("show", prior, "le").out
    assert ", of this word only\n" in alone and "its words" not in alone
    assert ", which is 100% of its signature's " in alone
    assert "Shape:SmallNumber=0.88" in llrnn("show", prior, "12").out


def test_what_several_parts_of_a_kind_know(corpus: Corpus, llrnn: Llrnn) -> None:
    """Of two automata, both are shown; weights that no float holds are logarithms."""
    (corpus.place / "a.txt").write_text("0 1 le -800\n0 1 chat 800\n1\n", encoding="utf-8")
    (corpus.place / "b.txt").write_text("0 1 le 1\n0 1 chat 1\n1\n", encoding="utf-8")
    done = llrnn(
        "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 3, "--out", corpus.out,
        "--background", " times ".join(f"automaton({corpus.place}/{name}.txt, on_zero=skip)" for name in "ab"),
    )  # fmt: skip
    assert done.code == 0, done.err
    (facts,) = json.loads(llrnn("show", corpus.out, "le", "--json").out)["words"]
    assert [facts["parts"]["automaton"][i] for i in (1, 3)] == [
        "log weight at the beginning: 800", "log weight at the beginning: -1",
    ]  # fmt: skip


def test_a_class_without_mass(corpus: Corpus, llrnn: Llrnn) -> None:
    weights = corpus.write("weights.tsv", "le\t1\n")
    llrnn(
        "prior", "--dict", corpus.dictionary, "--conllu", corpus.treebank, "--top-words", 1, "--background", weights,
        "--out", corpus.out, "--set", "words.guess=off",
    )  # fmt: skip
    text = llrnn("show", corpus.out, "table").out
    assert "  its words     table   chatte\n" in text
    assert "it is forbidden as the next word" in text
    assert "entropy 0.000 nats (perplexity 1.0)" in llrnn("show", corpus.out).out


@pytest.mark.parametrize("word", ["Chatte", "CHATTE"])
def test_any_case(prior: Path, llrnn: Llrnn, word: str) -> None:
    done = llrnn("show", prior, word)
    assert done.out.startswith("chatte\n")
    assert done.err == f"note: {word!r} is not in the dictionary of this prior; showing 'chatte'\n"
    assert json.loads(llrnn("show", prior, word, "--json").out)["words"][0]["word"] == "chatte"


@pytest.mark.parametrize(
    ("dictionary", "asked", "shown"),
    [
        ("Le 2\nle 5\n", "Le", "Le\n"),  # the given case comes first
        ("été 2\n", "e\u0301te\u0301", "été\n"),
        ("cafe\u0301 2\n", "caf\u00e9", "cafe\u0301\n"),
        ("cafe\u0301 2\n", "Caf\u00c9", "cafe\u0301\n"),
        ("ışık 2\nisim 1\n", "Işık", "ışık\n"),
        ("ışık 2\nisim 1\n", "İSİM", "isim\n"),
        ("λόγος 2\n", "ΛΌΓΟΣ", "λόγος\n"),
        ("Paris 2\n", "paris", "Paris\n"),
        ("\x1b[31mred 2\n", "\x1b[31mred", "\\x1b[31mred\n"),  # escape sequences are not obeyed
    ],
)
def test_how_a_word_is_found_and_written(corpus: Corpus, llrnn: Llrnn, dictionary: str, asked: str, shown: str) -> None:
    llrnn("prior", "--dict", corpus.write("other.txt", dictionary), "--softmax", "--out", corpus.out)
    done = llrnn("show", corpus.out, asked)
    assert done.out.startswith(shown) and "\x1b" not in done.out
    assert asked != "Le" or done.err == ""


def test_a_piece_and_a_source_word_are_found_so_too() -> None:
    """Pieces without their mark."""
    symbols = ["<unk>", "▁cafe\u0301", "ışık", "▁ışık", "the"]
    assert find("CAF\u00c9", symbols, "x", CONVENTIONS["sentencepiece"].mark) == 1
    assert find("IŞIK", symbols, "x", CONVENTIONS["sentencepiece"].mark) == 2
    assert find("The", symbols, "x") == 4
    with pytest.raises(OptionError, match="^x, found 'CAFÉ'; no entry has a similar spelling$"):
        find("CAFÉ", symbols[2:], "x")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["chatt"], "found 'chatt'; did you mean 'chatte' or 'chat'?"),
        (["xylophone"], "found 'xylophone'; no entry has a similar spelling"),
        (["le", "xylophone"], "found 'xylophone'; no entry has a similar spelling"),
    ],
)
def test_an_unknown_word(prior: Path, llrnn: Llrnn, words: list[str], found: str) -> None:
    assert llrnn("show", prior, *words).error == f"{prior}: expected a word of its dictionary, {found}"


# ---- what is no prior -----------------------------------------------------------------------------------------------


def test_no_prior_there(prior: Path, llrnn: Llrnn) -> None:
    expected = "{}: expected a prior (a directory with prior.json), found none; {}"
    assert llrnn("show", prior.parent).error == expected.format(prior.parent, f"did you mean {prior}?")
    (prior.parent / "empty").mkdir()
    made = expected.format(prior.parent / "empty", "make one with `llrnn prior`")
    assert llrnn("show", prior.parent / "empty").error == made
    arrays = prior / "arrays.npz"
    arrays.write_bytes(arrays.read_bytes()[:300])
    cut = f"{arrays}: expected the arrays described in prior.json, found 300 other"
    assert llrnn("show", prior).error.startswith(cut)


# ---- the terminal ---------------------------------------------------------------------------------------------------


def test_it_fits_a_terminal(corpus: Corpus, llrnn: Llrnn) -> None:
    long = [f"anti{'constitution' * i}nel" for i in range(1, 12)]
    dictionary = corpus.write("long.txt", "".join(f"{w} 2\n" for w in [*long, "漢字" * 30]))
    lexicon = corpus.write("l.tsv", "".join(f"{w}\t_\tNOUN\tGender=Masc|Number=Sing|Other={'X' * 60}\n" for w in long))
    llrnn("prior", "--dict", dictionary, "--lexicon", lexicon, "--top-words", 2, "--out", corpus.out)
    text = llrnn("show", corpus.out).out + llrnn("show", corpus.out, *long[-3:], "漢字" * 30).out
    whole = {*long, "漢字" * 30}  # the word asked for is never cut
    assert max(columns(line) for line in text.splitlines() if line not in whole and "prior" not in line) <= WIDTH
