"""`llrnn prior --evidence` and what `llrnn show` says of it."""

import json
import shlex
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from shell import Shell
from small_corpus import Built, Done, Llrnn

from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.parts.lexical import LexicalPart

ENGLISH = ["the house", "the cat", "12 cats", "Bob 's house", "flight AF447 to Lyon", "in 1998", "1,000 cats"]
FRENCH = ["la maison", "le chat", "12 chats", "la maison de Bob", "vol AF447 pour Lyon", "en 1998", "1 000 chats"]


@pytest.fixture(scope="session")
def made(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evidence")
    for language, lines in (("en", ENGLISH), ("fr", FRENCH)):
        (place / f"train.{language}").write_text("\n".join(lines * 3) + "\n", encoding="utf-8")
    shell.run(
        "fairseq-preprocess", "-s", "en", "-t", "fr", "--trainpref", place / "train", "--destdir", place / "data-bin"
    )
    return place / "data-bin"


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may break."""
    return Path(shutil.copytree(made, tmp_path / "data-bin"))


Run = Callable[..., Done]


@pytest.fixture
def prior(data: Path, llrnn: Llrnn) -> Run:
    """Run `llrnn prior`; later options win."""
    return partial(llrnn, "prior", "--dict", data / "dict.fr.txt", "--top-words", 3, "--out", data / "prior")


def write(data: Path, name: str, text: str) -> Path:
    path = data.parent / name
    path.write_text(text, encoding="utf-8")
    return path


def source_words(data: Path, language: str = "en") -> list[str]:
    return [line.split()[0] for line in (data / f"dict.{language}.txt").read_text(encoding="utf-8").splitlines()]


# ---- what it makes --------------------------------------------------------------------------------------------------


def test_the_only_other_dictionary_is_the_source_s(built: Built, data: Path) -> None:
    prior = built("--evidence", "names, numbers")
    assert prior.find(LexicalPart) is None
    rules = prior.find(EvidencePart).rules
    assert rules.kinds == ("numbers", "names")
    assert (rules.weight, dict(rules.mapping), dict(rules.patterns)) == (0.25, {}, {})
    assert list(prior.source_symbols[4:]) == source_words(data)
    assert prior.output.features.names[-3:] == ("Evidence:Number", "Evidence:Name", "Evidence:Unknown")


def test_with_translations(built: Built, data: Path) -> None:
    prior = built("--evidence", "numbers", "--lexical-translation", data, "--set", "translations.aligner=ibm1")
    assert prior.find(EvidencePart) is not None and prior.find(LexicalPart) is not None
    assert list(prior.source_symbols[4:]) == source_words(data)
    same = built(
        "--evidence", "numbers", "--lexical-translation", data, "--set", "translations.aligner=ibm1", "--set",
        f"source_dictionary={data / 'dict.en.txt'}",
    )  # fmt: skip
    assert same.fingerprint == prior.fingerprint


def test_a_table(built: Built, data: Path) -> None:
    table = write(data, "map.tsv", "1,000\t1 000\nBob\tRobert\n")
    prior = built("--set", f"evidence.mapping={table}", "--set", "evidence.weight=2")
    assert prior.find(EvidencePart).rules.kinds == ("mapped",)
    assert prior.find(EvidencePart).rules.mapping == {"1,000": ("1", "000"), "Bob": ("Robert",)}
    assert prior.find(EvidencePart).rules.weight == 2.0
    assert prior.output.features.names[-3:] == ("Evidence:Mapped", "Evidence:Unknown", "Evidence:Next")
    assert [s.split()[:2] for s in prior.settings["sources"]] == [["evidence.mapping", "map.tsv"]]
    also = built("--set", f"evidence.mapping={table}", "--evidence", "numbers").find(EvidencePart)
    assert also is not None and also.rules.kinds == ("mapped", "numbers")


def test_patterns(built: Built, data: Path) -> None:
    patterns = write(data, "patterns.toml", "[patterns]\nflight = 'AF\\d+'\nnone = 'QQ'\n")
    prior = built("--evidence", "patterns", "--set", f"patterns={patterns}")
    assert prior.find(EvidencePart).rules.patterns == {"flight": "AF\\d+", "none": "QQ"}
    assert {"Pattern:flight", "Pattern:none"} <= set(prior.output.features.names)


def test_words_that_need_evidence(prior: Run, built: Built, data: Path) -> None:
    plain = built("--evidence", "numbers,names")
    unsupported = ("evidence.unsupported.numbers=0.1", "evidence.unsupported.names=0")
    options = ("--evidence", "numbers,names", "--set", *unsupported)
    assert prior(*options).err == (
        "note: 2 target words are names, impossible without evidence\n"
        "note: 4 target words are numbers, weighed 0.1 times as much without evidence\n"
        f"note: replaced another prior in {data / 'prior'}; models trained with that prior cannot use this one\n"
    )
    less = built(*options)
    before, after = (made.background().bind() for made in (plain, less))
    lost = (after.view(after.start(1)).log_weights - before.view(before.start(1)).log_weights)[0].exp()
    assert {word: float(f) for word, f in zip(less.symbols, lost, strict=True) if f < 0.999} == pytest.approx(
        dict.fromkeys(["Bob", "Lyon"], 0.0) | dict.fromkeys(["000", "1", "12", "1998"], 0.1)
    )


# ---- what it refuses ------------------------------------------------------------------------------------------------

ALL = "terms, mapped, patterns, numbers, dates, codes, urls, names, copies or translations"


def test_text_without_capitals(prior: Run, data: Path) -> None:
    (data / "dict.en.txt").write_text("the 3\nbob 1\n", encoding="utf-8")
    assert prior("--evidence", "names").err == (
        "note: the source dictionary has no names; recognising names needs a text with capitals\n"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--evidence number", f"--evidence: expected {ALL}, found 'number'; did you mean numbers?"),
        ("--evidence numbers,zzz", f"--evidence: expected {ALL}, found 'zzz'; correct it"),
        ("--evidence ' , '", "--evidence: expected kinds, or evidence.mapping, found none; name one, e.g. numbers"),
        ("--evidence mapped", "--evidence mapped needs evidence.mapping; add it"),
        ("--evidence patterns", "--evidence patterns needs patterns, a file of regular expressions; add it"),
        ("--evidence numbers,translations", "--evidence translations needs --lexical-translation; add it"),
        ("--evidence numbers --set evidence.weight=0", "--set evidence.weight: expected a number above 0, found 0; "
         "correct it"),
        ("--evidence numbers --set evidence.weight=inf", "--set evidence.weight: expected a finite number, found inf; "
         "correct it"),
        ("--evidence numbers --set evidence.weight=much", "--set evidence.weight: expected a number, found 'much'; "
         "correct it"),
        ("--evidence numbers --set evidence.unsupported.name=0", "--set evidence.unsupported: expected numbers, dates, "
         "codes, urls or names, found 'name'; did you mean names?"),
        ("--evidence numbers --set evidence.unsupported.names=1.5", "--set evidence.unsupported: expected a number of "
         "at most 1, found 1.5; correct it"),
        ("--set evidence.weight=0.5", "--evidence: expected kinds, or evidence.mapping, found none; name one, e.g. "
         "numbers"),
        ("--set source_dictionary=/dev/null", "source_dictionary: it needs translations, evidence or a "
         "background that uses the source; add one of them, or leave it out"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(data: Path, llrnn: Llrnn, options: str, says: str) -> None:
    given = ("prior", "--dict", data / "dict.fr.txt", "--out", data / "prior", *shlex.split(options))
    assert llrnn(*given).error == says
    assert not (data / "prior").exists()


def test_several_other_dictionaries_or_none(prior: Run, data: Path) -> None:
    shutil.copy(data / "dict.en.txt", data / "dict.de.txt")
    expected = f"--evidence: expected one other dict.*.txt next to --dict {data / 'dict.fr.txt'}, the source's, found "
    assert prior("--evidence", "names").error == f"{expected}dict.de.txt, dict.en.txt; give it as source_dictionary"
    (data / "dict.de.txt").unlink()
    (data / "dict.en.txt").unlink()
    assert prior("--evidence", "names").error == f"{expected}none; give it as source_dictionary"
    assert prior("--evidence", "names", "--set", f"source_dictionary={data / 'dict.en.txt'}").error.startswith(
        f"--set source_dictionary {data / 'dict.en.txt'}: cannot be read"
    )


def test_a_source_dictionary_that_is_not_the_bitext_s(prior: Run, data: Path) -> None:
    options = ("--evidence", "names", "--lexical-translation", data, "--set", "translations.aligner=ibm1")
    assert prior(*options, "--set", f"source_dictionary={data / 'dict.fr.txt'}").error == (
        f"source_dictionary {data / 'dict.fr.txt'}: expected the words of the source side of --lexical-translation, "
        "found others; leave it out"
    )


def test_dictionaries_that_hold_no_pieces(prior: Run, data: Path) -> None:
    done = prior("--evidence", "numbers", "--pieces", "bpe")
    assert done.error.startswith(f"{data / 'dict.fr.txt'}: expected pieces that end in @@ (--pieces bpe), found none")
    dictionary = data / "dict.fr.txt"
    dictionary.write_text(dictionary.read_text(encoding="utf-8") + "ch@@ 1\n", encoding="utf-8")
    assert prior("--evidence", "numbers", "--pieces", "bpe").error.startswith(
        "--evidence: the source dictionary: expected pieces that end in @@ (--pieces bpe), found none in "
    )
    assert not (data / "prior").exists()


# ---- showing it -----------------------------------------------------------------------------------------------------


def test_what_a_source_word_counts_as(prior: Run, data: Path, llrnn: Llrnn) -> None:
    table = write(data, "map.tsv", "1,000\t1 000\n")
    prior("--evidence", "numbers,copies", "--set", f"evidence.mapping={table}")
    asked = [part for word in ("12", "1,000", "house", "Schröder", "77", "—") for part in ("--source", word)]
    done = llrnn("show", data / "prior", *asked)
    unknown = "   unknown: the source dictionary lacks it"
    assert done.err == ""
    assert done.out == "\n\n".join(
        [
            "12\n  evidence      numbers: 12",
            "1,000\n  evidence      mapped: 1 000",
            "house\n  evidence      none",
            f"Schröder\n  evidence      copies: Schröder{unknown}",
            f"77\n  evidence      numbers: 77{unknown}",
            f"—\n  evidence      none{unknown}\n",
        ]
    )
    shown = json.loads(llrnn("show", data / "prior", "--source", "12", "--source", "—", "--json").out)
    assert shown["translations"] == [
        {"source": "12", "parts": {"evidence": ["numbers: 12"]}},
        {"source": "—", "parts": {"evidence": ["none", "unknown: the source dictionary lacks it"]}},
    ]


def test_terms_and_translations_over_pieces(prior: Run, data: Path) -> None:
    dictionary = data / "dict.fr.txt"
    dictionary.write_text(dictionary.read_text(encoding="utf-8") + "ch@@ 1\n", encoding="utf-8")
    source = data / "dict.en.txt"
    source.write_text(source.read_text(encoding="utf-8") + "c@@ 1\n", encoding="utf-8")
    assert prior("--evidence", "terms,numbers", "--pieces", "bpe").error == (
        "--evidence terms with --pieces bpe needs --count-text, since only the target's training text contains whole "
        "words; add it"
    )
    translations = ("--evidence", "translations", "--lexical-translation", data, "--set", "translations.aligner=ibm1")
    assert prior(*translations, "--pieces", "bpe").error.startswith(
        "--evidence translations: it is of whole words, found --pieces bpe; preprocess words, or "
    )
    assert not (data / "prior").exists()


def test_a_source_in_pieces(shell: Shell, llrnn: Llrnn, tmp_path: Path) -> None:
    for language, line in (("en", "12 c@@ ats and A@@ nn"), ("fr", "12 ch@@ ats et A@@ nn")):
        (tmp_path / f"train.{language}").write_text(f"{line}\n" * 3, encoding="utf-8")
    data = tmp_path / "data-bin"
    shell.run("fairseq-preprocess", "-s", "en", "-t", "fr", "--trainpref", tmp_path / "train", "--destdir", data)
    built = llrnn(
        "prior", "--dict", data / "dict.fr.txt", "--pieces", "bpe", "--top-words", "all", "--lexical-translation", data,
        "--set", "translations.aligner=ibm1", "--evidence", "numbers,copies", "--set",
        "evidence.unsupported.numbers=0.5", "--out", data / "prior",
    )  # fmt: skip
    assert "evidence among the source words: numbers 1, copies (unknown words)\n" in built.out
    assert "\nparts       lexical" in llrnn("show", data / "prior").out
    words = [part for word in ("cats", "12", "dogs", "Ann", "c@@") for part in ("--source", word)]
    shown = llrnn("show", data / "prior", *words).out
    assert "cats\n  translations  none\n  evidence      none\n\n" in shown
    assert "  evidence      copies: dogs   unknown: the source's training text lacks it\n" in shown
    [asked] = json.loads(llrnn("show", data / "prior", "--source", "12", "--json").out)["translations"]
    assert asked["parts"]["evidence"] == ["numbers: 12"]
