"""Agreement of subject and verb: score minimal pairs, in the format of CLAMS (Mueller et al. 2020), with trained rows.

    clams.py ROW … --data FOLDER --out OUT --language french [--seeds 1 2 3] [--most 300]
    clams.py --data FOLDER --language french [--most 300] --dict DICT --path CHECKPOINT

FOLDER/clams has the pairs: the public ones (French, German), or those of agreement_pairs.py. A pair is right if the
grammatical sentence has the higher probability, ends included. A tie counts as wrong. A softmax has one if both forms
are <unk>. `known` counts the pairs with only words of the training text. Another language model of words can be
given by its checkpoint and dictionary; `known` then counts the pairs with only words of its dictionary. Of a longer
list, every n-th pair is taken. Percentages of several seeds are means, with standard deviations in the last lines.
Compare `mean of lists`: a model that always prefers the singular has 50 % there, and more in `all` if there are more
pairs with a right singular.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # what examples share

from language_rows import ROWS, Row, score_command, unit_writer
from language_texts import LANGUAGES
from languages import score

from fairseq_llrnn.errors import DataError, OptionError, check_least, one_line_errors
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.files.text_lines import iter_lines

KNOWN = "all, known words"
Pair = tuple[str, str]  # the grammatical sentence, and the other one
Score = Callable[[Sequence[str], str], str]


@dataclass(frozen=True)
class Outcome:
    """The number of right pairs."""

    right: int
    pairs: int
    known_right: int = 0  # of pairs without unknown words
    known_pairs: int = 0


def read_pairs(path: Path) -> list[Pair]:
    """Read the pairs of a file. Raises DataError unless lines are `True` and `False` in turn, a tab, a sentence."""
    lines = [(number, *line.partition("\t")[::2]) for number, line in iter_lines(path)]
    for number, kind, sentence in lines:
        expected = "True" if number % 2 else "False"
        if kind != expected or not sentence.strip():
            raise DataError(f"{path}, line {number}: expected {expected}, a tab and a sentence, found {kind[:40]!r}")
    if len(lines) % 2:
        raise DataError(f"{path}: expected pairs of lines, found {len(lines):,} lines")
    sentences = [" ".join(sentence.split()) for _, _, sentence in lines]
    return list(zip(sentences[::2], sentences[1::2], strict=True))


def some(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """Return every n-th pair, at most `most`."""
    return list(pairs[:: -(-len(pairs) // most)])


def row_command(row: Row, place: Path) -> list[str]:
    """Return the `llrnn score` command, without its options of output."""
    return [part for part in score_command(row, place) if part != "--json"]


def log_probs(
    sentences: Sequence[str], command: Sequence[str], write: Callable[[str], str], scored: Score
) -> dict[str, float]:
    """Return log p of each sentence, in nats. `write` converts it to the model's units."""
    said = scored([*command, "--per-sentence"], "".join(write(line) + "\n" for line in sentences))
    values = [float(line.split("\t")[1]) for line in said.splitlines()[1:]]
    return dict(zip(sentences, values, strict=True))


def outcome(pairs: Sequence[Pair], values: dict[str, float], known: set[str]) -> Outcome:
    """Count the right pairs. `known`: the words of the training text."""
    right = [values[good] > values[bad] for good, bad in pairs]
    inside = [known.issuperset(f"{good} {bad}".split()) for good, bad in pairs]
    both = sum(r for r, i in zip(right, inside, strict=True) if i)
    return Outcome(sum(right), len(pairs), both, sum(inside))


def phenomena(data: Path, code: str) -> dict[str, Path]:
    """Return the lists of pairs of a language by phenomenon. Raises DataError if there are none."""
    folder = data / "clams"
    found = {path.name.split(".")[1]: path for path in sorted(folder.glob(f"{code}.*.txt.gz"))}
    if not found:
        raise DataError(f"{folder}: expected files named like {code}.simple_agrmt.txt.gz, found none; see --data")
    return found


def percentage(found: Sequence[Outcome], is_known: bool) -> float:
    """Return the percentage of right pairs, or of those of known words. NaN: there are none."""
    right = sum(one.known_right if is_known else one.right for one in found)
    pairs = sum(one.known_pairs if is_known else one.pairs for one in found)
    return 100 * right / pairs if pairs else math.nan


def cell(shares: Sequence[float], has_spread: bool) -> str:
    if math.isnan(mean(shares)):
        return "–"
    return f"{mean(shares):.1f}" + (f" ± {stdev(shares):.1f}" if has_spread and len(shares) > 1 else "")


def table(outcomes: dict[str, list[dict[str, Outcome]]]) -> str:
    """Return the percentage of right pairs, with a line per phenomenon and a column per row.

    Args:
        outcomes: by row, of each seed, by phenomenon.
    """
    rows = list(outcomes)
    lines = ["| | pairs | of known words | " + " | ".join(rows) + " |", "|---|" + "---:|" * (len(rows) + 2)]
    lists = list(outcomes[rows[0]][0])
    groups = {name: [[name]] for name in lists} | {"mean of lists": [[name] for name in lists], "all": [lists]}
    for name, groups_of_lists in [*groups.items(), (KNOWN, [lists])]:
        cells = []
        for row in rows:
            shares = [
                mean(percentage([seed[one] for one in group], name == KNOWN) for group in groups_of_lists)
                for seed in outcomes[row]
            ]
            cells.append(cell(shares, name not in lists))
        found = [outcomes[rows[0]][0][one] for group in groups_of_lists for one in group]
        sizes = f"{sum(one.pairs for one in found):,} | {sum(one.known_pairs for one in found):,}"
        lines.append(f"| {name.replace('_', ' ')} | {sizes} | {' | '.join(cells)} |")
    return "\n".join(lines)


def lists_of(language: str, data: Path, most: int) -> dict[str, list[Pair]]:
    """Return the pairs to measure, by phenomenon."""
    return {name: some(read_pairs(path), most) for name, path in phenomena(data, LANGUAGES[language].code).items()}


def sentences_of(lists: dict[str, list[Pair]]) -> list[str]:
    """Return each sentence once."""
    return sorted({sentence for pairs in lists.values() for pair in pairs for sentence in pair})


def measure_checkpoint(
    path: Path, dictionary: Path, language: str, data: Path, most: int, scored: Score = score
) -> dict[str, list[dict[str, Outcome]]]:
    """Measure one model of words, by phenomenon."""
    lists = lists_of(language, data, most)
    known = set(load_dictionary(dictionary).symbols)
    values = log_probs(sentences_of(lists), ["llrnn", "score", "--path", str(path)], str, scored)
    return {path.parent.name: [{name: outcome(pairs, values, known) for name, pairs in lists.items()}]}


def measure(
    rows: Sequence[Row], language: str, seeds: Sequence[int], data: Path, out: Path, most: int, scored: Score = score
) -> dict[str, list[dict[str, Outcome]]]:
    """Measure rows, by row, seed and phenomenon."""
    lists = lists_of(language, data, most)
    known = set((out / language / "text" / "train.txt").read_text(encoding="utf-8").split())
    sentences = sentences_of(lists)
    outcomes = defaultdict(list)
    places = {(row, seed): out / language / f"{row.name}-{seed}" for row, seed in product(rows, seeds)}
    for place in places.values():
        if not (place / "result.json").exists():
            raise DataError(f"{place}: expected a row that `languages.py train` has finished, found none")
    for (row, _), place in places.items():
        values = log_probs(sentences, row_command(row, place), unit_writer(row, place), scored)
        outcomes[row.name].append({name: outcome(pairs, values, known) for name, pairs in lists.items()})
    return outcomes


@one_line_errors("clams.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="minimal pairs of agreement under trained rows")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="finished rows of language_rows.py")
    parser.add_argument("--data", type=Path, required=True, help="the folder of all texts, with `clams` in it")
    parser.add_argument("--out", type=Path, default=Path("OUT"), help="what languages.py wrote")
    parser.add_argument("--path", type=Path, help="checkpoint of another language model, of words")
    parser.add_argument("--dict", type=Path, help="its dict.txt")
    parser.add_argument("--language", required=True, help="a language of the pairs, such as french")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the rows (default: 1)")
    parser.add_argument("--most", type=int, default=300, help="pairs of a phenomenon (default: %(default)s)")
    args = parser.parse_args()
    return act(args)


def act(args: argparse.Namespace) -> int:
    """Run the command line. Raises LLRNNError."""
    if args.language not in LANGUAGES:
        raise OptionError(f"--language {args.language}: expected one of {', '.join(LANGUAGES)}")
    check_least("--most", args.most, 1, "pairs")
    trained = [row.name for row in ROWS.values() if not row.network]
    for name in args.rows:
        if name not in trained:
            raise OptionError(f"there is no row {name!r} that is trained; there are: {', '.join(trained)}")
    if (args.path is None) != (args.dict is None) or (args.path is None) == (not args.rows):
        raise OptionError("expected either rows, or --path and --dict")
    if args.path is not None and args.seeds != [1]:
        raise OptionError("--seeds goes with rows; leave it out next to --path")
    if args.path is not None:
        print(table(measure_checkpoint(args.path, args.dict, args.language, args.data, args.most)))
    else:
        rows = [ROWS[name] for name in args.rows]
        print(table(measure(rows, args.language, args.seeds, args.data, args.out, args.most)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
