"""All measures of some systems on one test set."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.systems.reranking.agreement import Agreement, Roles, count_errors
from fairseq_llrnn.systems.reranking.metrics import (
    TOKENIZERS,
    MetricScores,
    Piece,
    corpus_scores,
    most_different,
    pieces,
    sentence_scores,
    shortened,
)
from fairseq_llrnn.systems.reranking.tallies import Fact, RuleTally, Tally, by_facts, by_frequency, by_rule
from fairseq_llrnn.systems.reranking.texts import Texts, has_letters, words

EXAMPLES = 30


@dataclass(frozen=True)
class Example:
    """A sentence (numbered from 1) with the output and chrF of each system (Y)."""

    number: int
    source: str
    reference: str
    outputs: list[list[Piece]]
    scores: list[float]


@dataclass(frozen=True)
class Evaluation:
    """Measures of the systems (Y), in the order of `systems`. None: not requested."""

    systems: list[str]
    sentences: int
    reference_words: int
    metrics: list[MetricScores]
    frequency: list[Tally] | None
    evidence: RuleTally
    facts: list[Tally] | None
    agreement: list[Agreement] | None
    reference_agreement: Agreement | None
    examples: list[Example]


def evaluate(
    texts: Texts,
    rule: UserPatterns,
    *,
    counts: Counter[str] | None = None,
    facts: Sequence[Sequence[Fact]] | None = None,
    roles: Mapping[str, Roles] | None = None,
    tokenize: str = TOKENIZERS[0],
) -> Evaluation:
    """Measure the systems.

    Args:
        rule: pattern of evidence words.
        counts: of words in the training's target text.
        facts: N lists.
        roles: of the lexicon's forms.
        tokenize: of BLEU, one of TOKENIZERS.

    Raises:
        OptionError: the rule is far too slow.
    """
    reference = [words(line) for line in texts.reference]
    systems = [[words(line) for line in lines] for lines in texts.systems.values()]
    return Evaluation(
        systems=list(texts.systems),
        sentences=len(texts),
        reference_words=sum(has_letters(word) for sentence in reference for word in sentence),
        metrics=corpus_scores(texts, tokenize),
        frequency=None if counts is None else by_frequency(reference, systems, counts),
        evidence=by_rule(reference, systems, rule),
        facts=None if facts is None else by_facts(facts, systems),
        agreement=None if roles is None else [count_errors(outputs, roles) for outputs in systems],
        reference_agreement=None if roles is None else count_errors(reference, roles),
        examples=_examples(texts),
    )


def _examples(texts: Texts) -> list[Example]:
    scores = sentence_scores(texts)
    return [
        Example(
            n + 1,
            shortened(texts.source[n]),
            shortened(texts.reference[n]),
            [pieces(lines[n], texts.reference[n]) for lines in texts.systems.values()],
            scores[n].tolist(),
        )
        for n in most_different(scores, EXAMPLES)
    ]
