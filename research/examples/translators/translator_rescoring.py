"""Rescore a row's 5-best lists: with another row, a phrase table, or phrase scores of an encoder-decoder."""

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import translator_rows as rows
from example_parts.processes import alone, run
from translator_table import lines_of

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.atomic_write import whole_file
from fairseq_llrnn.files.text_lines import iter_lines
from llrnn_research.phrase_tables.commands.phrases.cover import FEATURE
from llrnn_research.phrase_tables.phrase_table import read_phrase_table, write_phrase_table

HYPOTHESIS = re.compile(r"H-(\d+)\t[^\t]*\t(.*)")
PLACE = Path("phrases")
Phrase = tuple[str, ...]


def rescore(name: str, of: str, tune: bool) -> Iterator[str]:
    """Run `llrnn rescore` on a row's 5-best lists, with weights 1 and 1, or tuned on valid. Yield its table of BLEU."""
    checkpoint = f"rows/{name}/{rows.BEST}"
    out = Path("rows", name, f"{'tuned' if tune else 'rescored'}-{of}.fr")
    rows.find(name)
    _needed(of, checkpoint)
    return _rescored(out, of, checkpoint, tune)


def rescore_with_phrases(of: str, updates: int | None) -> Iterator[str]:
    """Rescore a row's lists with its own model, tuned on valid; with a phrase table; and with the scores of Cho et al.
    2014.

    The encoder-decoders are trained on the different phrase pairs of the training text (§3.1). Only pairs that the
    lists can use are scored. Yields a table of BLEU of each.
    """
    checkpoint = f"rows/{of}/{rows.BEST}"
    _needed(of, checkpoint)
    with alone(PLACE):
        _extract()
        wanted = _usable(of)
        tables = {"no phrases": None, "phrases": PLACE / "table.gz"}
        for name, most in rows.PHRASES.items():
            _train_on_phrases(name, updates or most)
            tables[f"phrases, {name}"] = _scored(name, of, wanted)
        for title, table in tables.items():
            yield f"{title}:"
            out = PLACE / f"{of}-{title.replace(', ', '-').replace(' ', '-')}.fr"
            yield from _rescored(out, of, checkpoint, True, table)


def _needed(of: str, checkpoint: str) -> None:
    rows.find(of)
    for path in (Path("rows", of, "test.out"), Path(checkpoint)):
        if not path.exists():
            raise OptionError(f"{path}: expected a file of `row`, found none; make that row first")


def _lists(of: str, subset: str) -> Path:
    """Return a row's 5-best lists of valid or test."""
    place = Path("rows", of)
    found, part = place / f"{subset}.out", place / f"{subset}.part"
    if not found.exists():
        part.unlink(missing_ok=True)
        options = [*rows.searching(of, str(place)), "--gen-subset", subset, *rows.SEARCH.split()]
        run("fairseq-generate", options, place / "log", stdout=part)
        os.replace(part, found)
    return found


def _rescored(out: Path, of: str, checkpoint: str, tune: bool, table: Path | None = None) -> Iterator[str]:
    log = out.with_suffix(".log")
    if not out.exists():
        log.unlink(missing_ok=True)
        lists = {subset: _lists(of, subset) for subset in ("test", "valid") if tune or subset == "test"}
        options = ["--path", checkpoint, "--source", "text/test.en"]
        if table is not None:
            lists = {subset: _covered(path, table, subset, log) for subset, path in lists.items()}
            num_scores = len(next(read_phrase_table(table)).scores)
            options += ["--features", *(f"{FEATURE}{n + 1}" for n in range(num_scores))]
        options += ["--nbest", str(lists["test"])]
        options += ["--tokenize", "none", "--reference", "text/test.fr", "--out", str(out)]
        if tune:
            options += ["--tune", "text/valid.en", str(lists["valid"]), "text/valid.fr"]
        run("llrnn", ["rescore", *options], log)
    said = log.read_text(encoding="utf-8").splitlines()
    yield from said[next(i for i, line in enumerate(said) if line.startswith("score ")) :]


def _covered(nbest: Path, table: Path, subset: str, log: Path) -> Path:
    """Return a list with the features of a phrase table."""
    covered = log.with_suffix(f".{subset}.jsonl")
    options = ["--table", str(table), "--source", f"text/{subset}.en", "--nbest", str(nbest), "--out", str(covered)]
    run("llrnn", ["phrases", "cover", *options], log)
    return covered


def _extract() -> None:
    """Make the phrase table, and its data."""
    log, table, pairs, data = (PLACE / name for name in ("log", "table.gz", "pairs", "data"))
    if not table.exists():
        texts = ["--bitext", "text/train.en", "text/train.fr", "--max-length", str(rows.LONGEST)]
        run("llrnn", ["phrases", "extract", *texts, "--out", str(table)], log)
    if not data.exists():
        with whole_file(Path(f"{pairs}.en")) as source, whole_file(Path(f"{pairs}.fr")) as target:
            for pair in read_phrase_table(table):
                source.write(" ".join(pair.source) + "\n")
                target.write(" ".join(pair.target) + "\n")
        part = PLACE / "data.part"
        shutil.rmtree(part, ignore_errors=True)
        same = ["--srcdict", "data/dict.en.txt", "--tgtdict", "data/dict.fr.txt", "--trainpref", str(pairs)]
        run("fairseq-preprocess", ["-s", "en", "-t", "fr", *same, "--destdir", str(part)], log)
        os.replace(part, data)


def _train_on_phrases(name: str, updates: int) -> None:
    place = PLACE / name
    if not (place / "done").exists():
        (place / "checkpoint_last.pt").unlink(missing_ok=True)
        options = rows.train_on_phrases(name, str(place), updates, str(PLACE / "data"))
        seconds = run("fairseq-train", options, place / "log")
        (place / "done").touch()
        print(f"{name} on phrase pairs: {updates} updates in {seconds:.0f} s", flush=True)


def _scored(name: str, of: str, wanted: Mapping[Phrase, set[Phrase]]) -> Path:
    """Return the pairs that a row's lists can use, with one further score."""
    place, used = PLACE / f"scored-{of}-{name}.gz", PLACE / f"used-{of}.gz"
    if not place.exists():
        pairs = (p for p in read_phrase_table(PLACE / "table.gz") if p.target in wanted.get(p.source, ()))
        with whole_file(used) as file:
            many = write_phrase_table(file, pairs)
        options = ["--path", str(PLACE / name / "checkpoint_last.pt"), "--table", str(used), "--out", str(place)]
        seconds = run("llrnn", ["phrases", "score", *options], PLACE / "log")
        print(f"{many} phrase pairs that the lists can use, scored by {name} in {seconds:.0f} s", flush=True)
    return place


def _usable(of: str) -> Mapping[Phrase, set[Phrase]]:
    """Return each phrase of a source, and the phrases of its hypotheses."""
    found: dict[Phrase, set[Phrase]] = defaultdict(set)
    for subset in ("valid", "test"):
        said: dict[int, set[Phrase]] = defaultdict(set)
        for _, line in iter_lines(_lists(of, subset)):
            if match := HYPOTHESIS.fullmatch(line):
                said[int(match[1])].update(_phrases(match[2]))
        for number, line in enumerate(lines_of(Path("text", f"{subset}.en"))):
            for phrase in _phrases(line):
                found[phrase] |= said[number]
    return found


def _phrases(line: str) -> Iterator[Phrase]:
    words = tuple(line.split())
    for start in range(len(words)):
        for end in range(start + 1, min(start + rows.LONGEST, len(words)) + 1):
            yield words[start:end]
