"""`llrnn prior`: what it reads and where it writes; what cannot be used is said in one line."""

import errno
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from small_corpus import Build, Corpus, Llrnn, files

from fairseq_llrnn.files import atomic_write
from fairseq_llrnn.prior.prior import Prior

# ---- what it reads --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("--dict", "", ": expected at least one `symbol count` line, found none; run fairseq-preprocess first"),
        ("--dict", b"\xff\xfe 1\n", ", line 1, byte 1: expected UTF-8, found the byte 0xff"),
        ("--dict", None, ": cannot be read: No such file or directory"),
        ("--conllu", "", ": expected CoNLL-U sentences, found none"),
        ("--conllu", "1\tle\n", ", line 1: expected 10 columns separated by tabs, found 2 columns"),
        ("--conllu", b"1\t\xe9t\xe9\t_\tX\t_\t_\t0\t_\t_\t_\n", ", line 1, byte 3: expected UTF-8"),
        ("--conllu", "x" * 2_000_000, ", line 1: the line has more than"),
        ("--lexicon", "chat\n", ", line 1: "),
    ],
)
def test_a_file_that_cannot_be_used(
    build: Build, corpus: Corpus, option: str, text: str | bytes | None, says: str
) -> None:
    path = corpus.place / "nowhere" / "dict.txt" if text is None else corpus.write("broken", text)
    error = build(*([option, corpus.treebank, path] if option == "--conllu" else [option, path])).error
    assert error.startswith(f"{'--dict ' if text is None else ''}{path}{says}")
    assert len(error) < 1000
    assert not corpus.out.exists()


def test_a_dictionary_through_a_pipe(build: Build, corpus: Corpus) -> None:
    assert build().code == 0
    expected, pipe = Prior.load(corpus.out), corpus.place / "pipe"
    os.mkfifo(pipe)
    content = Path(corpus.dictionary).read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=[content], daemon=True)
    writer.start()
    assert build("--dict", pipe, "--shapes", "--count-text", corpus.write("text", "le la\n")).code == 0
    writer.join()
    assert Prior.load(corpus.out).symbols == expected.symbols


ARPA = "\\data\\\nngram 1=4\n\n\\1-grams:\n-1\t</s>\n-1\t<unk>\n-0.5\tle\n-0.7\tchat\n\n\\end\\\n"
# files of backgrounds and of other options, some of which are opened more than once
PIPED: dict[str, tuple[list[str], str]] = {
    "n-grams": (["--background", "ngram:@"], ARPA),
    "n-grams in an expression": (["--background", "0.5 ngram(@) plus 0.5 unigram"], ARPA),
    "n-grams of a text": (["--background", "ngram(2, folds=0, text=@)"], "le chat\nla table\n"),
    "automaton": (["--background", "automaton:@"], "0 1 le\n0 1 la\n1 2 chat\n2\n"),
    "weights": (["--background", "@"], "le\t3\nchat\t1\n"),
    "text": (["--count-text", "@", "--background", "ngram(2, folds=0)"], "le chat\nla table\n"),
    "text of an automaton": (["--count-text", "@", "--background", "automaton(FILE, on_zero=skip)"], "le\nla\n"),
    "lexicon": (["--lexicon", "@"], "le\tle\tDET\t_\n"),
    "values": (["--set", "words.values=@"], "le\tSize:Log\t2\n"),
    "recipe": (["--recipe", "@"], 'suffixes = 2\nbackground = "unigram"\n'),
}


@pytest.mark.parametrize("kind", PIPED)
def test_what_comes_through_a_pipe_is_as_a_file(
    kind: str, build: Build, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, text = PIPED[kind]
    automaton, file, pipe = corpus.write("a.txt", "0 1 le\n1\n"), corpus.write("file", text), corpus.place / "pipe"
    monkeypatch.chdir(corpus.place)
    os.mkfifo(pipe)
    priors, notes = list[Prior](), list[list[str]]()
    for path in (file, pipe):
        writer = threading.Thread(target=pipe.write_bytes, args=[text.encode()], daemon=True)
        if path == pipe:
            writer.start()
        done = build(*(option.replace("@", str(path)).replace("FILE", str(automaton)) for option in options))
        assert done.code == 0, done.err
        priors.append(Prior.load(corpus.out))
        notes.append([line.replace(str(path), "@") for line in done.err.splitlines() if "another prior" not in line])
    writer.join()
    assert np.array_equal(priors[0].log_weights, priors[1].log_weights)
    assert priors[0].names == priors[1].names and notes[0] == notes[1]


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("model:@", "x", "--background model:@: expected a checkpoint after the name, found a pipe; give"),
        ("automaton:@", "(le|la) chat", "@, line 1: … (automata as text may come through a pipe; other formats…"),
    ],
)
def test_what_no_pipe_can_give_is_said(option: str, text: str, says: str, build: Build, corpus: Corpus) -> None:
    pipe = corpus.place / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[text.encode()], daemon=True)
    writer.start()
    build("--background", option.replace("@", str(pipe))).refuses(says.replace("@", str(pipe)) + "…")


@pytest.mark.parametrize("options", [("--count-text", "@"), ("--background", "ngram(1, text=@) plus uniform")])
def test_names_that_are_not_utf8(
    options: tuple[str, ...], build: Build, llrnn: Llrnn, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus.place)
    name = os.fsdecode(b"t\xff.txt")
    Path(name).write_text("le chat\n")
    assert build(*(option.replace("@", name) for option in options)).code == 0
    first = Prior.load(corpus.out)
    assert [options[0], "t\\xff.txt"] in [source.split()[:2] for source in first.settings["sources"]]
    done = llrnn("prior", "--recipe", corpus.out / "recipe.toml", "--out", "again")
    assert done.code == 0, done.err
    assert (corpus.out / "prior.json").read_bytes() == Path("again/prior.json").read_bytes()


# ---- where it writes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_rename_that_fails_keeps_the_earlier_prior(
    can_exchange: bool, build: Build, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build().code == 0
    before, names = files(corpus.out), sorted(p.name for p in corpus.place.iterdir())
    replace = os.replace

    def refuse(source: Path, target: Path) -> bool:
        new = Path(source) / "prior.json"
        if new.exists() and json.loads(new.read_text(encoding="utf-8"))["settings"]["top_words"] == 4:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target)
        return False

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(atomic_write, "exchange", refuse if can_exchange else lambda one, other: False)
    assert "the prior cannot be written (Input/output error)" in build("--top-words", 4).error
    assert files(corpus.out) == before
    assert sorted(p.name for p in corpus.place.iterdir()) == names
