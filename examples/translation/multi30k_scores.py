"""BLEU of translations, in the two usual variants.

* *tokenised*: the lower-cased tokens against the tokenised references: multi-bleu's figure, the protocol of the
literature on Multi30k (sacreBLEU's `tok:none`).
* *detokenised*: running text against the raw references, 13a and case-insensitive (`case:lc`), because the systems
write lower case.

The detokeniser is a rule of a few lines, independent of installed packages. It restores 99.1 % of test2016's tokenised
French references exactly, except for case. The score of the tokenised reference in the table shows the loss.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from fairseq_llrnn.systems.reranking.texts import plain

# In this order. Quotes first, while a blank still stands at either side of them.
JOINED = (
    (re.compile(r'" ([^"]*) "'), r'"\1"'),
    (re.compile(r"(?<=\w['’]) (?=\w)"), ""),  # l' eau
    (re.compile(r" (?=[.,)\]}…%])"), ""),
    (re.compile(r"(?<=[(\[{]) "), ""),
)
JOINED_BUT_IN_FRENCH = re.compile(r" (?=[?!:;])")
REFERENCE = "the reference itself"


def detokenise(line: str, language: str = "fr") -> str:
    """Return running text from tokens with Moses' escapes."""
    text = plain(line)
    for blank, without in JOINED:
        text = blank.sub(without, text)
    return text if language == "fr" else JOINED_BUT_IN_FRENCH.sub("", text)


def table(
    systems: Mapping[str, Sequence[str]], reference: Sequence[str], raw: Sequence[str], language: str = "fr"
) -> str:
    """Return scores of the systems' tokens, one line each, and of the tokenised reference if it is not perfect."""
    tokenised = BLEU(tokenize="none", force=True)
    running = BLEU(lowercase=True, force=True), CHRF(lowercase=True)
    rows = [f"{'system':<32} {'tokenised BLEU':>14} {'detokenised BLEU':>16} {'chrF':>7}"]
    for name, lines in {**systems, REFERENCE: reference}.items():
        text = [detokenise(line, language) for line in lines]
        scores = [tokenised.corpus_score(lines, [reference]), *(m.corpus_score(text, [raw]) for m in running)]
        rows.append(f"{name:<32} {scores[0].score:>14.2f} {scores[1].score:>16.2f} {scores[2].score:>7.2f}")
    for what, metric in (("tokenised", tokenised), ("detokenised", running[0]), ("detokenised chrF", running[1])):
        rows.append(f"{what}: {metric.get_signature()}")
    return "\n".join(rows)


def unseen_table(
    systems: Mapping[str, Sequence[str]], reference: Sequence[str], shown: Collection[str], listed: Collection[str]
) -> str:
    """Count the reference's words outside the training text that each system uses anywhere in the sentence.

    Args:
        shown: the words of the training text.
        listed: those of a dictionary with more forms.
    """
    rows = [f"{'system':<32} {'unseen':>14} {'in dictionary':>16} {'not in it':>14}"]
    for name, lines in systems.items():
        said, every = Counter[bool](), Counter[bool]()
        for line, expected in zip(lines, reference, strict=True):
            there = Counter(line.split())
            for word, count in Counter(expected.split()).items():
                if word not in shown:
                    every[word in listed] += count
                    said[word in listed] += min(count, there[word])
        shares = [_share(said.total(), every.total()), *(_share(said[kind], every[kind]) for kind in (True, False))]
        rows.append(f"{name:<32} {shares[0]:>14} {shares[1]:>16} {shares[2]:>14}")
    return "\n".join(rows)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} of {whole}" if whole else "none"
