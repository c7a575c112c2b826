"""Agreement of subject and verb: score minimal pairs, in the format of CLAMS (Mueller et al. 2020).

    clams.py COMPARISON --data FOLDER --language greek [--most 300]

COMPARISON is a folder of `llrnn compare`, whose networks are scored. FOLDER/clams has the pairs: the public ones
(French, German), or those of agreement_pairs.py. A pair is right if the grammatical sentence has the higher
probability, ends included. A tie counts as wrong. Of a longer list, every n-th pair is taken. Percentages of several
seeds are means, with standard deviations in the last lines. Compare `mean of lists`: a model that always prefers the
singular has 50 % there, and more in `all` if there are more pairs with a right singular.

`without the preference` compares each pair whose right form is singular with each pair whose right form is plural: they
are right if log p of the right sentences is larger in sum. What a model adds to all singulars has no effect. Chance is
50 %. It needs lists named singular-… and plural-…, as those of agreement_pairs.py.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import mean, stdev

from language_texts import LANGUAGES

import fairseq_llrnn
from fairseq_llrnn.comparison.pieces import Pieces
from fairseq_llrnn.errors import DataError, check_least, one_line_errors
from fairseq_llrnn.files.text_lines import iter_lines

CHECKPOINT = "model/checkpoint_best.pt"
Pair = tuple[str, str]  # the grammatical sentence, and the other one
Seed = dict[str, list[float]]  # by phenomenon, log p of the grammatical sentence less log p of the other one, in nats


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


def phenomena(data: Path, code: str) -> dict[str, Path]:
    """Return the lists of pairs of a language by phenomenon. Raises DataError if there are none."""
    folder = data / "clams"
    found = {path.name.split(".")[1]: path for path in sorted(folder.glob(f"{code}.*.txt.gz"))}
    if not found:
        raise DataError(f"{folder}: expected files named like {code}.simple_agrmt.txt.gz, found none; see --data")
    return found


def models_of(comparison: Path) -> dict[str, list[Path]]:
    """Return the folders of each network, one for each seed, by its name in the table."""
    path = comparison / "result.json"
    if not path.is_file():
        raise DataError(f"{path}: expected the result of `llrnn compare`, found none; finish the comparison first")
    found = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        stem = row["place"].rpartition("seed")[0]
        places = [comparison / f"{stem}seed{seed}" for seed in row["seeds"]]
        if stem and all((place / CHECKPOINT).exists() for place in places):
            found[row["title"]] = places
    if not found:
        raise DataError(f"{comparison}: expected networks with checkpoints, found none; compare more models")
    return found


def margins_of(lists: dict[str, list[Pair]], place: Path) -> Seed:
    """Return the margins of the pairs under a network of a comparison."""
    model = fairseq_llrnn.load(place / CHECKPOINT)
    pieces = Pieces(place / "pieces.model") if (place / "pieces.model").exists() else None
    seed = {}
    for kind, pairs in lists.items():
        good, bad = (map(pieces.write, side) if pieces else side for side in zip(*pairs, strict=True))
        found = model.minimal_pairs(good, bad, is_open=pieces is None).pairs
        seed[kind] = [pair.good - pair.bad for pair in found]
    return seed


def share_right(margins: Sequence[float]) -> float:
    """Return the share of right pairs."""
    return mean(margin > 0 for margin in margins)


def share_of(kind: str, seed: Seed) -> float:
    """Return the share of right pairs of a phenomenon."""
    return share_right(seed[kind])


def without_preference(seed: Seed) -> float:
    """Return the mean, over kinds of pairs, of the share of two pairs with a singular and a plural that are right."""
    kinds = [(kind, f"plural{kind.removeprefix('singular')}") for kind in seed if kind.startswith("singular")]
    return mean(share_right([a + b for a in seed[one] for b in seed[other]]) for one, other in kinds)


def table(outcomes: dict[str, list[Seed]]) -> str:
    """Return the percentage of right pairs, with a line per phenomenon and a column per network.

    Args:
        outcomes: the margins under each network, by its name, with one entry for each seed.
    """
    names = list(outcomes)
    sizes = {kind: len(right) for kind, right in outcomes[names[0]][0].items()}
    lines = ["| | pairs | " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) + 1)]

    def line(name: str, num_pairs: int, share: Callable[[Seed], float], has_spread: bool) -> str:
        cells = []
        for seeds in outcomes.values():
            shares = [100 * share(seed) for seed in seeds]
            spread = f" ± {stdev(shares):.1f}" if has_spread and len(shares) > 1 else ""
            cells.append(f"{mean(shares):.1f}{spread}")
        return f"| {name} | {num_pairs:,} | {' | '.join(cells)} |"

    for kind, size in sizes.items():
        lines.append(line(kind.replace("_", " "), size, partial(share_of, kind), False))
    total = sum(sizes.values())
    lines.append(line("mean of lists", total, lambda seed: mean(map(share_right, seed.values())), True))
    lines.append(line("all", total, lambda seed: share_right([*chain.from_iterable(seed.values())]), True))
    if any(kind.startswith("singular") for kind in sizes):
        lines.append(line("without the preference", total, without_preference, True))
    return "\n".join(lines)


@one_line_errors("clams.py")
def main() -> int:
    parser = argparse.ArgumentParser(description="minimal pairs of agreement under the networks of a comparison")
    parser.add_argument("comparison", type=Path, metavar="COMPARISON", help="a folder of llrnn compare")
    parser.add_argument("--data", type=Path, required=True, help="the folder with `clams` in it")
    parser.add_argument("--language", choices=LANGUAGES, required=True, help="the language of the pairs")
    parser.add_argument("--most", type=int, default=300, help="pairs of a phenomenon (default: %(default)s)")
    args = parser.parse_args()
    check_least("--most", args.most, 1, "pairs")
    found = phenomena(args.data, LANGUAGES[args.language].code)
    lists = {name: some(read_pairs(path), args.most) for name, path in found.items()}
    models = models_of(args.comparison)
    print(table({name: [margins_of(lists, place) for place in places] for name, places in models.items()}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
