"""Print the summary of a new prior, for `llrnn prior`."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from fairseq_llrnn.cli.prior import language
from fairseq_llrnn.features.feature_table import sharing
from fairseq_llrnn.lexicon.guessing import WHOLE
from fairseq_llrnn.lexicon.language_check import is_warning
from fairseq_llrnn.lexicon.lexicon_table import Completed
from fairseq_llrnn.lexicon.unknown_word_features import KINDS, LEFT_OUT
from fairseq_llrnn.prior.building import BuildResult
from fairseq_llrnn.prior.parts.evidence_part import kinds_text
from fairseq_llrnn.prior.prior import Prior

GROUPS_SHOWN = 8
HINT_FROM = 10_000  # words: with fewer, the output layer takes little of the training time
NOTES = {  # explanations of the lines of the table
    "output features": "properties of words, such as noun or plural",
    "output signatures": "sets of features; the output layer has a row for each",
    "input signatures": "sets of features of the words that the network reads",
    "forbidden words": "never predicted, such as <s> and <pad>",
    "guessed words": "words with features guessed from their spelling",
    "words that share a signature": "only the background distinguishes them",
}


def print_table(built: BuildResult, evidence: dict[str, int], dictionary: str, out: str, seconds: float) -> None:
    counts = {**built.prior.counts(), "ordinary words": int((~built.words.specials).sum())}
    shared = sharing(built.prior.output, built.counts, ~built.words.specials)
    counts["words that share a signature"] = shared.words
    width = max(len(name) for name in counts)
    for name, value in counts.items():
        print(f"{name:<{width}}  {value:>10,}  {NOTES.get(name, '')}".rstrip())
    print(f"{'… as a share of the text':<{width}}  {shared.tokens:>10.1%}")
    print(f"{'seconds':<{width}}  {seconds:>10.1f}")
    recipe = built.prior.recipe
    if recipe is not None and not recipe.text and recipe.background != "uniform" and built.words.counts.any():
        print(f"counts: of {Path(dictionary).name}; to count another text, add --count-text")
    signatures, words = counts["output signatures"], counts["words"]
    is_asked_for = built.prior.settings["top_words"] == "all"
    if words >= HINT_FROM and 2 * signatures > words and not is_asked_for:
        print(f"hint: {signatures:,} signatures are more than half of the {words:,} words; training is faster with a "
              "smaller --top-words")  # fmt: skip
    completed = built.table.completed
    assert completed is not None  # the table is made from a text
    doubtful = any(map(is_warning, built.table.notes))
    for line in (*language.lines(built.table.packages), *guess_lines(completed, doubtful)):
        print(line)
    if evidence:
        print(f"evidence among the source words: {kinds_text(evidence)}")
    print(f"prior written to {Path(out)}")
    print(f"next: {next_line(built.prior, dictionary, out)}")


def next_line(prior: Prior, dictionary: str, out: str) -> str:
    """Return the `llrnn train` command for the prior."""
    folder, language = Path(dictionary).parent, Path(dictionary).name.removeprefix("dict.").removesuffix(".txt")
    pairs = [path.name.split(".")[1].split("-") for path in sorted(folder.glob(f"train.*-*.{language}.idx"))]
    if not pairs and not (folder / "train.idx").is_file():
        return shlex.join(["llrnn", "train", "DATA", "--prior", out]) + "   (DATA: made with this --dict)"
    words = ["llrnn", "train", str(folder)]
    if pairs and pairs[0][0] == language and not prior.has_labels:
        if not prior.source_symbols:
            return shlex.join([*words, "--prior", "PRIOR", "--source-prior", out]) + "   (PRIOR: the target's prior)"
        words += ["--source-lang", pairs[0][1], "--target-lang", language]
    return shlex.join([*words, "--prior", out])


def guess_lines(completed: Completed, doubtful: bool = False) -> list[str]:
    """Return lines on the coverage of the lexicon, and on guesses and their accuracy, or none without a lexicon.

    Args:
        doubtful: whether a source may be of another language. Then guesses are not tested.
    """
    coverage = completed.coverage
    if not (completed.entries or completed.added):
        return []
    lines = [
        f"lexicon: has {covered:,} of {words:,} dictionary words {place} the counted text ({covered / words:.1%})"
        for (covered, words), place in ((coverage.text, "in"), (coverage.others, "outside"))
        if words
    ]
    if doubtful:
        return [*lines, "guesses: not tested, because a source may be of another language (see the warning)"]
    if completed.package == KINDS:
        lines.append(
            "analyses of --language help to guess the features of words outside the lexicon: right "
            f"{completed.accuracy[WHOLE]:.0%}, without them {completed.without:.0%}"
        )
    elif completed.package == LEFT_OUT:
        reason = "the lexicon has the words"
        if completed.without is not None:
            reason = f"guesses are right {completed.without:.0%} with them, {completed.accuracy[WHOLE]:.0%} without"
        lines.append(f"analyses of --language are left out: {reason}")
    if not completed.guessed:
        lacks = any(covered < words for covered, words in (coverage.text, coverage.others))
        if completed.added:
            lines.append(f"guessed: the features of {completed.added:,} words")
        elif lacks:
            lines.append("guessed: nothing; --set words.guess=on guesses features of words outside the lexicon")
        return lines
    guessed = len(completed.guessed)
    lines.append(f"guessed: features of {guessed:,} words; the lexicon lacks {guessed - completed.crossed:,} of them")
    if completed.crossed:
        lines.append(
            f"guessed: the other {completed.crossed:,} occur once in the text, so that training sees as many guesses "
            "as a new text has"
        )
    if completed.beginnings:
        lines.append(
            f"guessed: {_first(completed.beginnings)} from the beginnings of words, all other features from the endings"
        )
    if completed.accuracy:
        groups = sorted(((name, share) for name, share in completed.accuracy.items() if name != WHOLE), key=_lowest)
        lines.append(
            f"test of the guesses on rare words of the lexicon: all features right {completed.accuracy[WHOLE]:.0%}; "
            f"{_first([f'{name} {share:.0%}' for name, share in groups])}"
        )
    return lines


def _first(items: Sequence[str]) -> str:
    return ", ".join(items[:GROUPS_SHOWN]) + (", …" if len(items) > GROUPS_SHOWN else "")


def _lowest(entry: tuple[str, float]) -> tuple[bool, float, str]:
    return entry[0] != "POS", entry[1], entry[0]


def warning(completed: Completed) -> str | None:
    """Return a warning if the lexicon covers unseen words worse and nothing is guessed, or None otherwise."""
    if completed.guessed or not completed.coverage.differs:
        return None
    (has, words), (others_has, others) = completed.coverage.text, completed.coverage.others
    return (
        f"warning: the lexicon has {has / words:.0%} of the dictionary words in the counted text and "
        f"{others_has / others:.0%} of the others; a model learns that words without features never occur. Remove "
        "words.guess=off, or add a lexicon with the other words"
    )
