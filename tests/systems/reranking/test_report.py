"""`llrnn report`: figures that were counted by hand, a page that stands alone, and what is wrong with its input."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sacrebleu
from small_corpus import Llrnn

SOURCE = ["the cat sees 37 tables", "two men <b>& Mary</b>", "a table"]
REFERENCE = ["le chat voit 37 tables", "deux hommes & Marie", "une table noire"]
FIRST = ["le chat voit 36 table", "deux hommes & <script>alert(1)</script>", "un table noire"]
SECOND = ["le chat voit 37 tables", "deux hommes & Marie", "une table noire"]
TRAIN = ["le chat", "le chat le chat une", "deux"]
LEXICON = """\
chat chat NOUN Gender=Masc|Number=Sing
le le DET Gender=Masc|Number=Sing
noire noir ADJ Gender=Fem|Number=Sing
table table NOUN Gender=Fem|Number=Sing
tables table NOUN Gender=Fem|Number=Plur
un un DET Gender=Masc|Number=Sing
une un DET Gender=Fem|Number=Sing
"""
FACTS = """\
{"copies": [{"kind": "number", "french": "37", "seen": false}], "agreements": []}
{"copies": [{"kind": "name", "french": "Marie", "seen": false}], "agreements": []}
{"copies": [], "agreements": [{"form": "noire", "seen": true}]}
"""
VOID = {"meta", "br"}


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Everything that a report can be made of."""
    made = {
        name: write(tmp_path / name, lines)
        for name, lines in (
            ("source", SOURCE), ("reference", REFERENCE), ("first", FIRST), ("second", SECOND), ("train", TRAIN),
            ("lexicon", [row.replace(" ", "\t") for row in LEXICON.splitlines()]), ("facts", FACTS.splitlines()),
        )
    }  # fmt: skip
    return made | {"out": tmp_path / "report.html"}


def arguments(files: dict[str, Path], *more: object) -> list[object]:
    return ["report", "--source", files["source"], "--reference", files["reference"], "--out", files["out"], *more]


def systems(files: dict[str, Path]) -> list[str]:
    return ["--system", f"first={files['first']}", f"<b>second</b>={files['second']}"]


class Reading(HTMLParser):
    """The tables and the texts of a page; fails where elements are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.texts: dict[str, list[str]] = {"dd": [], "dt": [], "mark": [], "h1": [], "h3": [], "title": []}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data
        for tag in self.texts.keys() & self.open:
            self.texts[tag][-1] += data


def cells(out: str) -> list[list[str]]:
    """The rows of the terminal's tables."""
    return [re.split(r" {2,}", line.strip()) for line in out.splitlines() if line.startswith("  ")]


def test_all_figures(llrnn: Llrnn, files: dict[str, Path]) -> None:
    done = llrnn(
        *arguments(files, *systems(files), "--train", files["train"], "--lexicon", files["lexicon"]),
        "--facts", files["facts"],
    )  # fmt: skip
    assert (done.code, done.err) == (0, f"note: {files['lexicon']}: 7 of 7 rows read\n")
    assert done.out.startswith("3 sentences, 11 words in the reference, without punctuation\n\nScores\n")
    assert "Share of the reference's words, punctuation included, that" in " ".join(done.out.split())  # 12 of them
    bleu, chrf = sacrebleu.metrics.BLEU(force=True), sacrebleu.metrics.CHRF()
    expected = [f"{metric.corpus_score(FIRST, [REFERENCE]).score:.2f}" for metric in (bleu, chrf)]
    rows = cells(done.out)
    for row in [
        ["first", "<b>second</b>"],
        ["BLEU", expected[0], "100.00"],
        ["chrF2", expected[1], "100.00"],
        ["seen in training", "words", "first", "<b>second</b>"],
        ["0", "8", "62.5%", "100.0%"],  # voit hommes & table noire of voit 37 tables hommes & Marie table noire
        ["1", "2", "50.0%", "100.0%"],  # deux of deux une
        ["2–5", "2", "100.0%", "100.0%"],  # le chat
        ["6–20", "0", "–", "–"],
        [">100", "0", "–", "–"],
        ["words that match", "2", "2", "2"],  # 37 Marie; 36 1
        ["recall", "0.0%", "100.0%"],
        ["precision", "0.0%", "100.0%"],
        ["number, unseen", "1", "0.0%", "100.0%"],
        ["name, unseen", "1", "0.0%", "100.0%"],
        ["agreement, seen", "1", "100.0%", "100.0%"],
        ["wrong pairs per 1,000 words", "0.00", "71.43", "0.00"],  # un table, of 14 words
        ["wrong pairs", "0", "1", "0"],
        ["… in gender", "0", "1", "0"],
        ["… in number", "0", "0", "0"],
        ["pairs compared", "3", "3", "3"],
    ]:  # fmt: skip
        assert row in rows
    page = Reading(files["out"].read_text(encoding="utf-8"))
    shown = [[cell for cell in row if cell] for row in page.rows]
    assert len(shown) == 27 and all(row in rows for row in shown)
    by_sentence = [chrf.sentence_score(first, [right]).score for first, right in zip(FIRST, REFERENCE, strict=True)]
    worst_first = [f"Sentence {n + 1}" for n in sorted(range(3), key=by_sentence.__getitem__)]
    assert page.texts["h3"] == ["Most frequent wrong pairs", *worst_first]
    assert f"first, {by_sentence[1]:.1f}" in page.texts["dt"]
    assert "un table" in page.texts["dd"]


def test_the_page_stands_alone_and_shows_texts_as_they_are(llrnn: Llrnn, files: dict[str, Path]) -> None:
    write(files["second"], ["le chat\u202e \x1b[31m voit", "57\u00a0843 \u200dñ", ""])
    assert llrnn(*arguments(files, *systems(files), "--train", files["train"])).code == 0
    written = files["out"].read_text(encoding="utf-8")
    page = Reading(written)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "b", "i", "a", "form"}
    assert not {name for _, attributes in page.elements for name in attributes} & {"src", "href", "onclick", "onload"}
    assert "url(" not in written and "http:" not in written and "https:" not in written and "@import" not in written
    metas = [attributes for tag, attributes in page.elements if tag == "meta"]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in metas
    assert any((meta.get("content") or "").startswith("default-src 'none'") for meta in metas)
    assert "prefers-color-scheme: dark" in written
    # the title says what was compared
    compared = f"first against <b>second</b>: {files['source'].name} to {files['reference'].name}"
    assert page.texts["h1"] == [compared] and page.texts["title"] == [f"{compared} (llrnn report)"]
    # each table scrolls by itself where the screen is narrow, by keys as well
    parents = [page.elements[i - 1][1] for i, (tag, _) in enumerate(page.elements) if tag == "table"]
    assert parents and all(p["class"] == "wide" and p["tabindex"] == "0" and p["aria-label"] for p in parents)
    assert ".wide { overflow-x: auto;" in written
    assert FIRST[1] in page.texts["dd"] and SOURCE[1] in page.texts["dd"]
    assert "<script>alert(1)</script>" in page.texts["mark"]
    assert "<b>second</b>, 0.0" in page.texts["dt"]
    assert "le chat\\u202e \\x1b[31m voit" in page.texts["dd"]
    assert "57\u00a0843 \u200dñ" in page.texts["dd"]
    assert "(empty)" in page.texts["dd"]
    bars = [(a["class"], a["style"]) for _, a in page.elements if (a.get("class") or "").startswith("bar ")]
    assert bars[:2] == [("bar c0", "width: 50.00%"), ("bar c1", "width: 10.00%")]  # 5 and 1 (voit) of 8; at most 80 %
    assert ".c1 { background: #e69f00; }" in written
    assert llrnn(*arguments(files, *systems(files), "--train", files["train"])).code == 0
    assert files["out"].read_text(encoding="utf-8") == written


def test_output_of_fairseq_generate_and_systems_given_one_by_one(
    llrnn: Llrnn, files: dict[str, Path], tmp_path: Path
) -> None:
    printed = [f"{letter}-{n}\t{rest}" for n in (2, 0, 1) for letter, rest in (("S", "x"), ("H", f"-0.5\t{SECOND[n]}"))]
    log = "2026 | INFO | base | prior llrnn:0.1.0|x", "Generate test with beam=5"
    generated = write(tmp_path / "generate-test.txt", [log[0], *printed, log[1]])
    done = llrnn(*arguments(files, "--system", f"a={files['second']}", "--system", f"b=c={generated}"))
    assert done.error.startswith(f"--system b=c={generated}: cannot be read")  # the first = divides
    done = llrnn(*arguments(files, "--system", f"a={files['second']}", "--system", f"b={generated}"))
    assert ["BLEU", "100.00", "100.00"] in cells(done.out)
    assert "\n\nprior of b: llrnn:0.1.0|x\n" in done.out
    assert "<dt>prior of b</dt><dd>llrnn:0.1.0|x</dd>" in files["out"].read_text(encoding="utf-8")
    assert "They score alike in all." in files["out"].read_text(encoding="utf-8")


def test_unknown_words_and_marks_of_decoders(llrnn: Llrnn, files: dict[str, Path]) -> None:
    write(files["reference"], ["le <<unk>> voit 37 tables", *REFERENCE[1:]])
    write(files["first"], ["le <unk> voit |0-2| 37 tables </s>", *SECOND[1:]])
    write(files["second"], ["le chat " * 20 + "<unk>", *SECOND[1:]])
    done = llrnn(*arguments(files, *systems(files)))
    larger = "use a larger dictionary, pieces or an open vocabulary"
    assert done.code == 0 and [line for line in done.err.splitlines() if "<unk>" in line] == [
        "warning: 1 of the 12 words of the reference are <unk> (8.3%): a system's <unk> counts as correct there; give "
        "the original text",
        f"warning: 1 of the 12 words of first are <unk> (8.3%): {larger}",
        f"note: 1 of the 48 words of <b>second</b> are <unk> (2.1%): {larger}",
    ]


# ---- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["file"], "--system file: expected NAME=FILE, such as softmax=softmax.out"),
        (["=file"], "--system =file: expected NAME=FILE, such as softmax=softmax.out"),
        (["name="], "--system name=: expected NAME=FILE, such as softmax=softmax.out"),
        (["a=b", "a=c"], "--system a=c: the name a is used for b; give another name"),
    ],
)
def test_systems_that_make_no_sense(llrnn: Llrnn, files: dict[str, Path], given: list[str], says: str) -> None:
    assert llrnn(*arguments(files, "--system", *given)).error == says
