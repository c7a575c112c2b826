"""What `llrnn prior` says of the prior that it has built."""

from pathlib import Path

from fairseq_llrnn.cli.prior import guessing, language
from fairseq_llrnn.features.identities import sharing
from fairseq_llrnn.prior.building import Built
from fairseq_llrnn.prior.parts.evidence import kinds_text


def print_table(built: Built, evidence: dict[str, int], out: str, seconds: float) -> None:
    counts = {**built.prior.counts(), "ordinary words": int((~built.words.specials).sum())}
    shared = sharing(built.prior.output, built.counts, ~built.words.specials)
    counts["words that share a signature"] = shared.words
    width = max(len(name) for name in counts)
    for name, value in counts.items():
        print(f"{name:<{width}}  {value:>10,}")
    print(f"{'… as a share of the text':<{width}}  {shared.tokens:>10.1%}")
    print(f"{'seconds':<{width}}  {seconds:>10.1f}")
    for line in (*language.lines(built.gathered), *guessing.lines(built.completed)):
        print(line)
    if evidence:
        print(f"evidence among the source words: {kinds_text(evidence)}")
    print(f"prior written to {Path(out)}")
