"""What `llrnn prior` says of the prior that it has built."""

import shlex
from pathlib import Path

from fairseq_llrnn.cli.prior import guessing, language
from fairseq_llrnn.features.identities import sharing
from fairseq_llrnn.prior.building import Built
from fairseq_llrnn.prior.parts.evidence import kinds_text
from fairseq_llrnn.prior.prior import Prior


def print_table(built: Built, evidence: dict[str, int], dictionary: str, out: str, seconds: float) -> None:
    counts = {**built.prior.counts(), "ordinary words": int((~built.words.specials).sum())}
    shared = sharing(built.prior.output, built.counts, ~built.words.specials)
    counts["words that share a signature"] = shared.words
    width = max(len(name) for name in counts)
    for name, value in counts.items():
        print(f"{name:<{width}}  {value:>10,}")
    print(f"{'… as a share of the text':<{width}}  {shared.tokens:>10.1%}")
    print(f"{'seconds':<{width}}  {seconds:>10.1f}")
    completed = built.table.completed
    assert completed is not None  # since it is of a text
    for line in (*language.lines(built.table.packages), *guessing.lines(completed)):
        print(line)
    if evidence:
        print(f"evidence among the source words: {kinds_text(evidence)}")
    print(f"prior written to {Path(out)}")
    print(f"next: {next_line(built.prior, dictionary, out)}")


def next_line(prior: Prior, dictionary: str, out: str) -> str:
    """What trains with the prior: `llrnn train`, which knows task, network and criterion by data and prior."""
    folder, language = Path(dictionary).parent, Path(dictionary).name.removeprefix("dict.").removesuffix(".txt")
    pairs = [path.name.split(".")[1].split("-") for path in sorted(folder.glob(f"train.*-*.{language}.idx"))]
    if not pairs and not (folder / "train.idx").is_file():
        return shlex.join(["llrnn", "train", "DATA", "--prior", out]) + "   (DATA: made with this --dict)"
    words = ["llrnn", "train", str(folder)]
    if pairs and pairs[0][0] == language and not prior.of_labels:
        if not prior.source_symbols:
            return shlex.join([*words, "--prior", "PRIOR", "--source-prior", out]) + "   (PRIOR: that of the target)"
        words += ["--source-lang", pairs[0][1], "--target-lang", language]
    return shlex.join([*words, "--prior", out])
