"""Pages have the figures of docs/results/runs.jsonl, and each changed figure is found (scripts/check_results.py)."""

import json
import random
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from example_modules import ROOT, SCRIPTS, load

check, pages, ledger_module = load(SCRIPTS, "check_results", "page_figures", "ledger")
gains, lexicons = load(SCRIPTS, "gains_picture", "lexicon_picture")

RUN = {"metric": "BLEU", "better": "higher", "seeds": [1, 2, 3], "baseline": "none", "data": "a", "commit": "0123456",
       "command": "python scripts/one.py --quick -- --other"}  # fmt: skip
RUNS = [
    RUN | {"key": "a/softmax", "value": "31.0", "std": "0.5"},
    RUN | {"key": "a/ours", "value": "32.50", "std": "0.10", "p": "0.03", "values": ["32.4", "32.5", "32.6"],
           "baseline": "a/softmax"},
    RUN | {"key": "a/close", "value": "31.2", "std": "0.4"},
    RUN | {"key": "a/loss", "value": "1020", "metric": "loss", "better": "lower", "seeds": "not recorded"},
    RUN | {"key": "a/loss-ours", "value": "2.13", "metric": "loss", "better": "lower", "seeds": "none"},
    RUN | {"key": "lang/greek/test1", "value": "30.1"},
    RUN | {"key": "lang/greek/unseen", "value": "20.1"},
    RUN | {"key": "lang/greek-softmax/test1", "value": "29.9"},
]  # fmt: skip
PAGE = """# Page 5

†: commit or seeds not recorded.

| Data | System | BLEU ↑ | Std | p | Loss (nats) ↓ | Seeds |
|---|---|---:|---:|---:|---:|---:|
| a, 12 wide | softmax | 31.0 | 0.5 | | 1,020† | 3 <!-- = 12; a/softmax; a/loss --> |
| a | [ours](page.md#b-7) | 32.50 | 0.10 | 0.03 | | 3 <!-- = a/ours --> |

| Data | Ours | Std | Baseline | Seeds |
|---|---:|---:|---:|---:|
| a | **32.50** | 0.10 | 31.0 | 3 <!-- = a/ours; a/softmax --> |
| a | 31.2 | 0.4 | 31.0 | 3 <!-- = a/close; a/softmax --> |

- Ours gains 1.50 BLEU, or 5 %, with 2 layers (`--layers 9`). It is a 3-gram. Others
  lose +0.2. <!-- = gap(a/ours, a/softmax); rise(a/softmax, a/ours); 2;
  gap(a/close, a/softmax) -->
- No number.

| Language | Test1 (BLEU) | unseen | Goal |
|---|---:|---:|---:|
| Greek | 30.1 | 20.1 | 9 <!-- = lang/greek/test1; lang/greek/unseen; 9 --> |
| Greek, softmax | 29.9 | | <!-- = lang/greek-softmax/test1 --> |

Greek has 30.1 (goal 40 BLEU). <!-- = lang/greek/test1; 40 -->

<!-- code = a/loss-ours; a/close -->
```bash
python scripts/one.py --quick | tee log 5
loss 2.13, BLEU: 31.2
```
"""
GUIDE = """Ours is 32.5 BLEU better than 4 others. <!-- = round(a/ours, 1); 4 -->

Press 3 keys.

See 2.13. <!-- = a/loss-ours -->
"""


def ledger(runs: list[dict]) -> str:
    """Return the lines of a ledger. Numbers are texts in `runs`, so that their decimals stay."""
    lines = "".join(json.dumps(run) + "\n" for run in runs)
    return re.sub(r'"(-?\d+(?:\.\d+)?)"(?=[,}\]])', r"\1", lines).replace('"commit": 0123456', '"commit": "0123456"')


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two pages, their runs and one script."""
    for folder in ("docs/results", "docs/guides", "examples", "fairseq_llrnn", "scripts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts" / "one.py").write_text('add_argument("--quick")\n')
    (tmp_path / "README.md").write_text("Ours has 32.50 BLEU. <!-- = a/ours -->\n")
    (tmp_path / "docs" / "results" / "page.md").write_text(PAGE)
    (tmp_path / "docs" / "guides" / "guide.md").write_text(GUIDE)
    (tmp_path / "docs" / "results" / "runs.jsonl").write_text(ledger(RUNS))
    for picture in (gains, lexicons):
        (tmp_path / picture.PICTURE).write_text(picture.drawn(check.read_ledger(tmp_path / check.LEDGER)))
    monkeypatch.setattr(sys, "argv", ["check_results.py", "--root", str(tmp_path)])
    return tmp_path


def errors(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return what the script prints to stderr, after a check of its status."""
    arguments = [*sys.argv]
    sys.argv += options
    status = check.main()
    sys.argv[:] = arguments
    found = capsys.readouterr().err
    assert status == bool(found)
    return found


def test_the_pages_of_this_repository(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["check_results.py"])
    assert errors(capsys) == ""


def test_a_picture_of_other_figures(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (picture := root / gains.PICTURE).write_text((right := picture.read_text()).replace(">ours<", ">theirs<"))
    assert errors(capsys).startswith(f"{gains.PICTURE}: expected the figures of the ledger, found others; run")
    assert errors(capsys, "--write") == "" and picture.read_text() == right


def test_the_picture_has_the_differences_from_ours() -> None:
    texts = {"ngrams": "2.25", "softmax": "2.3", "mixed-softmax": "2.13", "mixed-ours": "2.15"}
    greek = {"pieces": "1.9", "mixed-characters": "2.03", "mixed-ours": "2"}
    welsh_run = {"data": "Welsh (no list), 5 words", "command": "llrnn compare"}
    greek_run = {"data": "Greek", "command": "llrnn compare --spelling-lexicon el.dic"}
    runs = {f"compare/welsh/{name}": welsh_run | {"value": Decimal(text)} for name, text in texts.items()}
    runs |= {f"compare/greek/{name}": greek_run | {"value": Decimal(text)} for name, text in greek.items()}
    (without, [welsh]), (listed, [greek]) = gains.groups(runs)
    assert (without, listed) == ("without a lexicon", "with a lexicon for all word models")
    assert welsh == ("Welsh", (Decimal("0.10"), Decimal("-0.02"), None, None), None)
    assert greek == ("Greek", (None, None, Decimal("-0.1"), Decimal("0.03")), None)
    marks = re.findall(r">([-+.\d]+|ours)<", gains.drawn(runs))
    assert marks == ["-0.10", "ours", "+0.10"]


def test_the_picture_has_the_bits_without_and_with_a_lexicon() -> None:
    bits = {"unlisted/greek": "29", "compare/greek": "21", "unlisted/czech": "31", "compare/czech": "20.5"}
    runs = {f"{key}/ours": {"unseen": Decimal(text), "data": key.rpartition("/")[2]} for key, text in bits.items()}
    assert lexicons.pairs(runs) == [("czech", Decimal(31), Decimal("20.5")), ("greek", Decimal(29), Decimal(21))]
    marks = re.findall(r">(\d+)<", lexicons.drawn(runs))
    assert marks == ["20", "22", "24", "26", "28", "30", "32"]


def test_pages_that_agree_are_not_written(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main() == 0 and capsys.readouterr().out == "the pages have the figures of 8 runs\n"
    assert errors(capsys, "--write") == ""
    assert (root / "docs/results/page.md").read_text() == PAGE
    assert (root / "docs/guides/guide.md").read_text() == GUIDE


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("31.0 | 0.5", "31.1 | 0.5", "docs/results/page.md:7: expected 31.0, found 31.1\n"),
        ("0.5 |", "0.6 |", "page.md:7: expected 0.5, found 0.6\n"),
        ("0.5 |", "|", "page.md:7: expected 0.5, found nothing\n"),
        ("0.03", "0.003", "page.md:8: expected 0.03, found 0.003\n"),
        ("0.03 | | 3", "0.03 | | 5", "page.md:8: expected 3, found 5\n"),
        ("1,020†", "1,021†", "page.md:7: expected 1,020†, found 1,021†\n"),
        ("1,020†", "1,020", "page.md:7: expected 1,020†, found 1,020\n"),
        ("32.50 | 0.10 | 0", "32.5 | 0.10 | 0", "page.md:8: expected 32.50, found 32.5\n"),
        ("**32.50**", "32.50", "page.md:12: expected **32.50**, found 32.50\n"),
        ("31.2", "**31.2**", "page.md:13: expected 31.2, found **31.2**\n"),
        ("12 wide", "13 wide", "page.md:7: expected 12, found 13\n"),
        ("1.50 BLEU", "1.51 BLEU", "page.md:15: expected 1.50, found 1.51\n"),
        ("5 %,", "6 %,", "page.md:15: expected 5, found 6\n"),
        ("2 layers", "20 layers", "page.md:15: expected 2, found 20\n"),
        ("+0.2", "+0.3", "page.md:16: expected +0.2, found +0.3\n"),
        ("No number", "3 numbers", "page.md:18: expected a comment <!-- = … --> with expressions for 3, found none"),
        ("1.50 BLEU", "**1.50** BLEU", "page.md:15: expected 1.50, found **1.50**\n"),
        ("1.50 BLEU", "1.50 nats", "page.md:15: expected 1.50 in bleu or points, found nats"),
        ("5 %,", "5 BLEU,", "page.md:15: expected 5 in %, found bleu"),
        ("BLEU ↑", "Exact match (%) ↑", "page.md:7: expected 31.0 in bleu, found %"),
        ("| a | 31.2", "| a, perplexity | 31.2", "page.md:13: expected 31.2 in bleu, found perplexity"),
        ("No number", "5x as good", "page.md:18: expected a plain number, found 5x; write it like 5 times or 5,000"),
        ("gains", "gains 7 or", "page.md:15: expected an expression for each of 5 numbers (7; 1.50; 5; 2; +0.2)"),
        ("not recorded", "missing", "page.md: expected the sentence “†: commit or seeds not recorded.”, found none"),
        ("= a/ours -", "= a/our -", "page.md:8: expected a key of docs/results/runs.jsonl, found a/our; correct"),
        ("= a/ours -", "= a/ours.low -", "page.md:8: expected a numeric entry of a/ours, found none named low"),
        ("| a | [ours]", "| [ours]", "page.md:8: expected 7 cells in the row, found 6; correct it"),
        ("= a/ours -", "= a/loss -", "page.md:8: expected a run for which higher is better, found a/loss"),
        ("gap(a/ours, a/s", "gap(a/softmax, a/s", "page.md:15: expected 0.0, found 1.50"),
        ("rise(a/softmax, a/ours)", "rise(a/ours, a/softmax)", "expected a difference in the other direction, found ("),
        ("rise(a/softmax, a/ours)", "rise(a/softmax)", "expected other arguments of rise, found 1 ("),
        ("rise(a/softmax", "grow(a/softmax", "expected one of the functions fall, rise, gap, ratio, percent, exp, ro"),
        ("rise(a/softmax, a/ours)", "rise(a/softmax, a/ours", "expected ) after the arguments of rise, found nothing"),
        ("rise(a/softmax, a/ours)", "a/softmax a/ours", "expected one expression, found a/ours after it"),
        ("one.py", "two.py", "page.md: scripts/two.py: expected a script of this repository, found no such file"),
        ("| Greek", "| Welsh", "page.md:22: expected the languages greek of the runs, found welsh"),
        ("| Greek", "| Greek, Czech", "page.md:22: expected the languages greek of the runs, found czech, greek"),
        ("\nGreek", "\nCzech", "page.md:25: expected the languages greek of the runs, found czech"),
        ("Test1", "Test2", "page.md:22: expected 30.1 in a column of test1, found Test2 (BLEU)"),
        ("| unseen", "| seen", "page.md:22: expected 20.1 in a column of unseen, found seen"),
        ("| Goal", "| Goal ↑", "page.md:22: expected a run for 9 in the column Goal ↑, found a literal; name the run"),
        ("goal 40", "ours 40", "page.md:25: expected a run for 40 BLEU, found a literal; name the run"),
        ("Greek, softmax |", "Greek, ours |", "page.md:23: expected a row that names the softmax of its runs"),
        ("loss 2.13", "loss 2.14", "page.md:27: expected 2.13 (a/loss-ours) in the code block, found none; correct it"),
        ("BLEU: 31.2", "BLEU: 31.3", "page.md:27: expected 31.2 (a/close) in the code block, found none; correct it"),
        ("code = a/loss-", "code = a/lost-", "page.md:27: expected a key of docs/results/runs.jsonl, found a/lost"),
        ("<!-- code =", "<!-- kode =", "page.md:28: expected 31.2 in a comment <!-- code = … --> before the block,"),
        ("; a/close -->\n```", " -->\n```", "page.md:27: expected 31.2 in a comment <!-- code = … --> before the"),
        ("12 wide |", "12 wide, 2026-11-30, 7 |", "expected an expression for each of 4 numbers (12; 7; 31.0; 1,020)"),
        ("--quick", "--quack", "page.md: scripts/one.py: expected options that its source has, found --quack"),
    ],
)  # fmt: skip
def test_a_changed_page(root: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, message: str) -> None:
    page = root / "docs/results/page.md"
    assert errors(capsys) == "" and before in PAGE
    page.write_text(PAGE.replace(before, after, 1))
    assert message in errors(capsys)
    if message.endswith("\n"):
        assert errors(capsys, "--write") == ""
        assert page.read_text() == PAGE


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"value": 31.0', '"value": 31.4', "docs/results/page.md:7: expected 31.4, found 31.0"),
        ('"key": "a/softmax", ', "", 'runs.jsonl:1: None: expected key, a text, found null'),
        ('"data": "a", ', "", "runs.jsonl:1: a/softmax: expected data, a text, found null"),
        ('"baseline": "none", ', "", "runs.jsonl:1: a/softmax: expected baseline, a text, found null"),
        ('"commit": "0123456", ', "", "runs.jsonl:1: a/softmax: expected commit, a text, found null"),
        ('"commit": "0123456"', '"commit": "today"', 'expected a commit, "not recorded" or "published", found "today"'),
        ('"seeds": [1, 2, 3], ', "", 'expected seeds, a list of them, "none" or "not recorded", found null'),
        ('"value": 31.0', '"value": "31.0"', 'a/softmax: expected a number for value, found "31.0"'),
        ('"value": 31.0', '"count": 31.0', "a/softmax: expected a value, found none"),
        ('"value": 31.0', '"count": 31.0', "a/softmax: expected entries of the list in scripts/ledger.py, found count"),
        ('"value": 31.0', '"value": 31.0, "n": 3', "expected n only if the seeds are not recorded; remove it"),
        ('"better": "higher"', '"better": "more"', 'expected better "higher", "lower" or "neither", found "more"'),
        ('"key": "a/softmax"', '"key": "a/Softmax"', "expected a key of lower-case letters, digits, single - and /"),
        ('"key": "a/close"', '"key": "a/ours"', ":3: a/ours: expected one line for each key, found a second one"),
        ("32.6]", "32.9]", "runs.jsonl:2: a/ours: expected std 0.26 (of its values), found 0.10"),
        ("32.6]", "33.9]", "runs.jsonl:2: a/ours: expected value 32.93 (of its values), found 32.50"),
        (", 32.6]", "]", "runs.jsonl:2: a/ours: expected a value for each of 3 seeds, found 2"),
        ('"baseline": "a/softmax"', '"baseline": "a/soft"', "a/ours: expected the key of a run as its baseline"),
        ('{"metric"', "{metric", "runs.jsonl:1: expected a JSON object, found Expecting property name"),
        ("one.py --quick --", "one.py --new --", "runs.jsonl: scripts/one.py: expected options that its source"),
    ],
)  # fmt: skip
def test_a_changed_ledger(
    root: Path, capsys: pytest.CaptureFixture[str], before: str, after: str, message: str
) -> None:
    path = root / "docs/results/runs.jsonl"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    assert message in errors(capsys)


def test_the_lead_of_a_run() -> None:
    runs = {"a": {"value": Decimal("2.5"), "metric": "bits", "better": "lower", "baseline": "b"},
            "b": {"value": Decimal("2.75"), "metric": "bits", "better": "higher", "baseline": "a"}}  # fmt: skip
    assert [str(ledger_module.evaluate(f"{key}.lead", runs).value) for key in runs] == ["0.25", "0.25"]


def test_a_run_that_no_page_cites(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "docs/results/runs.jsonl"
    path.write_text(path.read_text() + ledger([RUN | {"key": "a/new", "value": "1"}]))
    assert "runs.jsonl: a/new: expected a page that cites it, found none; remove it" in errors(capsys)


def test_the_commit_of_a_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init")
    git("commit", "--allow-empty", "-m", "before the script")
    early = git("rev-parse", "HEAD")
    git("add", ".")
    git("commit", "-m", "the script")
    abandoned = git("rev-parse", "HEAD")
    git("commit", "--amend", "-m", "the commit before is on no branch")
    path = root / "docs/results/runs.jsonl"
    assert "runs.jsonl: expected a commit of this branch, found 0123456; write" in errors(capsys)
    path.write_text(path.read_text().replace("0123456", abandoned))
    assert f"expected a commit of this branch, found {abandoned}" in errors(capsys)
    path.write_text(path.read_text().replace(abandoned, early))
    assert f"expected scripts/one.py in commit {early}, found no such file; write" in errors(capsys)
    path.write_text(path.read_text().replace(early, git("rev-parse", "HEAD")))
    assert errors(capsys) == ""


@pytest.mark.parametrize(
    "text",
    ["It takes 3 times as long.", "It has 12\nnats.", "Perplexity falls to 12.", "9 % are right.",
     "| A ↑ |\n|--|\n| 5 |", "| **5** |", "| bits/char test |\n|--|\n| 2.4 |", "| Test perplexity |\n|--|\n| 897 |"],
)  # fmt: skip
def test_guides_need_expressions_for_measured_figures(
    root: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (root / "docs/guides/guide.md").write_text(f"{GUIDE}\n{text}\n")
    assert re.match(r"docs/guides/guide.md:\d: expected a comment <!-- = … --> with expressions for", errors(capsys))


@pytest.mark.parametrize(
    ("printed", "number"),
    [("Loss (base 2): 9.8096, Perplexity: 897.41", "897.41"), ("perplexity of tokens      92.84", "92.84"),
     ("valid  loss 5.684, perplexity 51.42", "51.42"), ("entropy 6.335 nats (perplexity 563.8)", "563.8"),
     ("bits per character      1.6254", "1.6254"), ("7.24 bits per word", "7.24"), ("BLEU: 33.5", "33.5")],
)  # fmt: skip
@pytest.mark.parametrize("block", ["    {}\n", "```\n{}\n```\n"])
def test_guides_need_runs_for_printed_scores(
    root: Path, capsys: pytest.CaptureFixture[str], printed: str, number: str, block: str
) -> None:
    guide, shown = root / "docs/guides/guide.md", block.format(printed)
    guide.write_text(f"{GUIDE}\n{shown}")
    assert f"docs/guides/guide.md:7: expected {number} in a comment <!-- code = … -->" in errors(capsys)
    path = root / "docs/results/runs.jsonl"
    path.write_text(path.read_text() + ledger([RUN | {"key": "a/printed", "value": number}]))
    guide.write_text(f"{GUIDE}\n<!-- code = a/printed -->\n\n{shown}")
    assert errors(capsys) == ""


def test_large_figures_are_printed_without_a_comma(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "docs/guides/guide.md").write_text(f"{GUIDE}\n<!-- code = a/loss -->\n\n    Perplexity: 1020\n")
    assert errors(capsys) == ""


# the figures of this repository


@pytest.fixture(scope="module")
def runs() -> dict[str, dict]:
    return check.read_ledger(ROOT / check.LEDGER)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    paths = dict.fromkeys(path for pattern in check.PAGES for path in sorted(ROOT.glob(pattern)))
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}


def is_strict(name: str) -> bool:
    return name.startswith(("README.md", "docs/results/"))


def problems_of_page(name: str, text: str, runs: dict[str, dict]) -> list[str]:
    wrong: list[str] = []
    check.rewritten(name, text, is_strict(name), runs, wrong)
    return wrong


def figure_places(text: str) -> list[tuple[int, int]]:
    """Return the places of the numbers of all blocks that have a comment, with Std, Seeds and other derived cells."""
    places = []
    begin, lines = 0, text.splitlines(keepends=True)
    starts = [0, *(begin := begin + len(line) for line in lines)]
    for block in pages.blocks(text):
        if pages.comments(block.text):
            numbers = pages.NUMBER.finditer(pages.masked(block.text))
            places += [
                (starts[block.line - 1] + number.start(), starts[block.line - 1] + number.end()) for number in numbers
            ]
    return places


def changed(figure: str, generator: random.Random) -> str:
    """Return a figure with another digit."""
    index = generator.choice([index for index, sign in enumerate(figure) if sign.isdigit()])
    return figure[:index] + str((int(figure[index]) + generator.randint(1, 9)) % 10) + figure[index + 1 :]


def test_sixty_changed_figures_are_found_and_restored(texts: dict[str, str], runs: dict[str, dict]) -> None:
    """A third is in README.md, a third in docs/results and a third in guides and other pages."""
    generator = random.Random(64)
    names = [name for name, text in texts.items() if figure_places(text)]
    results = [name for name in names if name.startswith("docs/results/")]
    groups = [["README.md"], results, [name for name in names if not is_strict(name)]]
    for trial in range(60):
        name = generator.choice(groups[trial % 3])
        text = texts[name]
        start, end = generator.choice(figure_places(text))
        other = text[:start] + changed(text[start:end], generator) + text[end:]
        assert problems_of_page(name, other, runs), f"{name}: {text[start:end]} may change to {other[start:end]}"
        assert check.rewritten(name, other, is_strict(name), runs, []) == text


@pytest.mark.parametrize("name", ["README.md", *(f"docs/results/{name}.md" for name in ("README", "small-texts"))])
def test_changed_bold_type_is_found(name: str, texts: dict[str, str], runs: dict[str, dict]) -> None:
    text = texts[name]
    for figure in re.findall(r"\*\*[\d.,]+\*\*", text)[:5]:
        assert problems_of_page(name, text.replace(figure, figure.strip("*"), 1), runs)
    for figure in re.findall(r"\| ([\d.,]+)†? (?=\||<)", text)[:5]:
        assert problems_of_page(name, text.replace(f"| {figure}", f"| **{figure}**", 1), runs)


@pytest.mark.parametrize(
    ("before", "after"),
    [("**2.101**", "**2.401**"), ("| 89.4 |", "| 85.4 |"), ("**89.4**", "**79.9**"), ("| 3 |", "| 5 |")],
)
def test_another_number_of_the_ledger_is_found(
    before: str, after: str, texts: dict[str, str], runs: dict[str, dict]
) -> None:
    assert before in texts["README.md"]
    assert problems_of_page("README.md", texts["README.md"].replace(before, after, 1), runs)


# ledger and files of results


def test_the_ledger_has_the_losses_of_the_french_models(runs: dict[str, dict]) -> None:
    models = {model["name"]: model for model in json.loads((ROOT / "docs/results/french.json").read_text())["models"]}
    names = {
        "paper/m2500": "paper-m2500", "paper/best-recipe": "paper-best", "paper/best-recipe-regularised": "paper-awd",
        "paper/best-recipe-regularised-400-wide": "paper-awd-wide", "paper/softmax-unigram": "paper-softmax-unigram",
        "paper/m2500-without-morphology": "paper-no-morphology",
        "paper/m2500-without-background": "paper-no-background",
        "honest/m2500-without-morphology": "honest-no-morphology", "honest/best-recipe": "honest-best",
        "honest/m2500-without-background": "honest-no-background", "honest/m3000": "honest-m3000",
        "honest/guessed-regularised": "honest-guess-awd", "honest/softmax-unigram": "honest-softmax-unigram",
        "honest/guessed-regularised-400-wide": "honest-guess-awd-wide", "none/softmax-as-in-the-paper": "softmax-stock",
        "none/adaptive-softmax-256-wide": "softmax-adaptive", "none/adaptive-softmax-400-wide": "softmax-adaptive-wide",
        "none/adaptive-softmax-512-wide": "softmax-adaptive-wider",
    }  # fmt: skip
    for key, name in names.items():
        for test in ("test1", "test2"):
            value = float(runs[f"french/{key}/{test}"]["value"])
            assert value == pytest.approx(models[name]["loss"][test]["with_ends"], abs=0.00051), (key, test)


def test_the_ledger_has_the_losses_of_the_french_novels(runs: dict[str, dict]) -> None:
    rows = {
        (row["row"], row["words"]): row["test"] for row in json.loads((ROOT / "docs/results/growth.json").read_text())
    }
    for key, row, words in [
        ("100k/softmax-over-bpe-32-passes", "pieces+passes=32", 100_000),
        ("100k/words-by-features-16-passes", "words", 100_000),
        ("1m/softmax-over-bpe-10-passes", "pieces+passes=10+times=4+rate=0.004+gpu=1", 1_000_000),
        ("1m/words-by-features-10-passes", "words+passes=10+times=4+rate=0.004+gpu=1", 1_000_000),
        ("8-6m/softmax-over-bpe-4-passes", "pieces+passes=4+times=8+rate=0.004+gpu=1", 8_557_951),
        ("8-6m/pieces-by-features-4-passes", "pieces-features+passes=4+times=8+rate=0.004+gpu=1", 8_557_951),
        ("8-6m/words-by-features-4-passes", "words+passes=4+times=8+rate=0.004+gpu=1", 8_557_951),
    ]:
        assert float(runs[f"more-text/{key}/bits"]["value"]) == pytest.approx(rows[row, words], abs=0.00051), key
