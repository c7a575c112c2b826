#!/usr/bin/env python3
"""The first neural translators, each with a softmax and with our output layer, in the same processor time.

    translators.py prepare --data PATH-TO-multi30k-en-fr --out OUT   texts, data, priors: half a minute
    translators.py row rctm-softmax --out OUT                        train, perplexity, translate: six or seven minutes
    translators.py rescore rctm-ours --of rnnsearch-softmax --out OUT    its 5-best lists; --tune: tuned on valid
    translators.py phrases --of rnnsearch-ours --out OUT                 … with a phrase table, and scores of Cho et al.
    translators.py table --out OUT                                   of all finished rows

Finished steps are skipped. An interrupted training starts again. Rows are in translator_rows.py, results in
docs/results.
"""

import argparse
import json
import os
import re
import shutil
import sys
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))

import translator_rows as rows
from example_parts.processes import alone, run
from translator_rescoring import rescore, rescore_with_phrases
from translator_table import lines_of, table

from fairseq_llrnn.errors import DataError, OptionError, one_line_errors
from fairseq_llrnn.files.atomic_write import whole_file, write_lines
from fairseq_llrnn.files.text_lines import iter_lines

LEXICON = "lexicon.tsv.gz"
HYPOTHESIS = re.compile(r"H-(\d+)\t[^\t]*\t(.*)")


def prepare(out: Path, data: Path, lexicon: Path) -> None:
    """Write texts, data and priors."""
    for split, name in rows.SPLITS.items():
        for language in ("en", "fr"):
            source, target = data / f"{name}.tok.{language}.gz", out / "text" / f"{split}.{language}"
            if not source.is_file():
                raise OptionError(
                    f"{source}: expected a file of Multi30k, found none; --data names the folder that holds it"
                )
            if not target.exists():
                most = rows.PAIRS if split == "train" else None
                write_lines(target, (line for _, line in islice(iter_lines(source), most)))
    if not (out / LEXICON).exists():
        shutil.copyfile(lexicon, out / LEXICON)
    os.chdir(out)
    log = Path("prepare.log")
    if not Path("data").exists():
        shutil.rmtree("data.part", ignore_errors=True)
        texts = ["--trainpref", "text/train", "--validpref", "text/valid", "--testpref", "text/test"]
        run("fairseq-preprocess", ["-s", "en", "-t", "fr", *texts, "--destdir", "data.part"], log)
        os.replace("data.part", "data")
    for name, options in rows.PRIORS.items():
        if not Path("data", name).exists():
            run("llrnn", ["prior", *options.split(), "--out", f"data/{name}"], log)
            print(f"data/{name}: a prior", flush=True)


def make_row(name: str, updates: int | None, lr: float | None) -> None:
    """Train, measure perplexity, translate. With another learning rate, the row has its own folder."""
    network, output = rows.find(name)
    place = Path("rows", name if lr is None else f"{name}-lr{lr:g}")
    with alone(place):
        facts_file, log = place / "facts.json", place / "log"
        facts = json.loads(facts_file.read_text(encoding="utf-8")) if facts_file.exists() else {}
        asked = updates or network.updates[output]
        if facts.get("updates", asked) != asked:
            raise OptionError(
                f"{place}: expected a training of {asked} updates, found one of {facts['updates']}; use another --out"
            )
        if "train_seconds" not in facts:
            for checkpoint in place.glob("checkpoint*.pt"):
                checkpoint.unlink()
            facts["updates"] = asked
            training = rows.train(name, str(place), facts["updates"], network.lr if lr is None else lr)
            facts["train_seconds"] = run("fairseq-train", training, log)
            _keep(facts_file, facts)
            print(f"{place.name}: {facts['updates']} updates in {facts['train_seconds']:.0f} s", flush=True)
        common = rows.searching(name, str(place))
        for subset in ("valid", "test"):
            if f"{subset}_ppl" not in facts:
                part = place / f"{subset}.validated"
                part.unlink(missing_ok=True)
                run("fairseq-validate", [*common, "--valid-subset", subset, "--log-format", "json"], part)
                facts[f"{subset}_ppl"] = _perplexity(part, subset)
                _keep(facts_file, facts)
        if not (place / "test.fr").exists():
            found = place / "test.out"
            found.unlink(missing_ok=True)
            searching = [*common, "--gen-subset", "test", *rows.SEARCH.split()]
            facts["translate_seconds"] = run("fairseq-generate", searching, log, stdout=found)
            _keep(facts_file, facts)
            _write_best(found, place / "test.fr", len(lines_of(Path("text/test.fr"))))
        print(f"{place.name}: perplexity {facts['valid_ppl']} on valid, {facts['test_ppl']} on test", flush=True)


def _keep(place: Path, facts: dict[str, float]) -> None:
    with whole_file(place) as file:
        json.dump(facts, file, indent=1)


def _perplexity(log: Path, subset: str) -> float:
    for line in reversed(log.read_text(encoding="utf-8").splitlines()):
        if f'"{subset}_ppl"' in line:
            return float(json.loads(line[line.index("{") :])[f"{subset}_ppl"])
    raise DataError(f"{log}: expected a perplexity of fairseq-validate, found none; delete the row's folder")


def _write_best(found: Path, place: Path, count: int) -> None:
    best: dict[int, str] = {}
    for _, line in iter_lines(found):
        if match := HYPOTHESIS.fullmatch(line):
            best.setdefault(int(match[1]), match[2])
    if len(best) != count:
        raise DataError(f"{found}: expected translations of {count:,} sentences, found {len(best):,}; delete it")
    write_lines(place, (best[number] for number in range(count)))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The first neural translators, with two outputs each.")
    stages = parser.add_subparsers(dest="stage", required=True, metavar="STAGE")
    for stage, what in (
        ("prepare", "texts, data, priors"),
        ("row", "train a row of the table, and measure it"),
        ("rescore", "a row's 5-best lists with the model of another row"),
        ("phrases", "a row's 5-best lists with a phrase table, and phrases scored by an encoder-decoder"),
        ("table", "of all rows that are there"),
    ):
        made = stages.add_parser(stage, help=what, description=what)
        made.add_argument("--out", type=Path, default=Path("runs/translators"), help="(default: runs/translators)")
        if stage == "prepare":
            made.add_argument("--data", type=Path, required=True, help="the folder of train.tok.en.gz")
            made.add_argument(
                "--lexicon", type=Path, help="French (default: ../ud-french-gsd-1.4/lexicon.tsv.gz of --data)"
            )
        if stage in ("row", "rescore"):
            made.add_argument("name", metavar="ROW", help=", ".join(rows.ROWS))
        if stage in ("row", "phrases"):
            made.add_argument("--max-update", type=int, metavar="N", help="updates (default: the row's)")
        if stage == "row":
            made.add_argument("--lr", type=float, metavar="X", help="another learning rate, in a folder ROW-lrX")
        if stage in ("rescore", "phrases"):
            made.add_argument("--of", required=True, metavar="ROW", help="whose lists")
        if stage == "rescore":
            made.add_argument("--tune", action="store_true", help="tune the weights on valid (default: 1 and 1)")
    return parser.parse_args()


@one_line_errors("translators")
def main() -> int:
    args = parsed()
    out = args.out.resolve()
    if args.stage == "prepare":
        prepare(out, args.data.resolve(), (args.lexicon or args.data.parent / "ud-french-gsd-1.4" / LEXICON).resolve())
        return 0
    if not (out / "data").is_dir():
        raise OptionError(f"{out}: expected a folder of `translators.py prepare`, found none; see --out")
    os.chdir(out)
    if args.stage == "row":
        make_row(args.name, args.max_update, args.lr)
    elif args.stage == "rescore":
        print("\n".join(rescore(args.name, args.of, args.tune)))
    elif args.stage == "phrases":
        print("\n".join(rescore_with_phrases(args.of, args.max_update)))
    else:
        print("\n".join(table(Path("rows"), Path("text"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
