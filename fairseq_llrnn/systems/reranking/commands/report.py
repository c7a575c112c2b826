"""`llrnn report`: compare systems' translations of a test set, on the terminal and as a page."""

import argparse

from fairseq_llrnn.cli.places import check_text_place, report_stream, text_output
from fairseq_llrnn.cli.tables import note, plural, warn
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.dictionary import UNK
from fairseq_llrnn.features.spelling_features import UserPatterns
from fairseq_llrnn.lexicon.language_check import MANY
from fairseq_llrnn.systems.reranking.agreement import count_errors, read_roles
from fairseq_llrnn.systems.reranking.commands._page import page
from fairseq_llrnn.systems.reranking.commands._tables import (
    FACTS,
    FREQUENCY,
    agreement_table,
    as_text,
    rule_table,
    score_table,
    tally_table,
)
from fairseq_llrnn.systems.reranking.metrics import TOKENIZERS, corpus_scores, examples
from fairseq_llrnn.systems.reranking.tallies import by_facts, by_frequency, by_rule, read_facts
from fairseq_llrnn.systems.reranking.texts import Texts, count_words, has_letters, read_texts, words

NAME = "report"
HELP = "compare translations: scores, rare words, numbers and names, agreement; as a table and a page"
EXAMPLES = (
    "llrnn report --source test.en --reference test.fr --system first=best.fr second=better.fr --out report.html",
    "llrnn report --source test.en --reference test.fr --system first=best.fr second=better.fr --tokenize none "
    "--train train.fr --lexicon lexicon.tsv --out report.html",
)

DEFAULT_RULE = r"\p{Lu}.*|.*\p{Nd}.*"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    test = parser.add_argument_group("the test set (files may be gzip)")
    test.add_argument("--source", required=True, metavar="FILE", help="source, a sentence a line")
    test.add_argument("--reference", required=True, metavar="FILE", help="its translation, a sentence a line")
    test.add_argument(
        "--system", required=True, nargs="+", action="extend", metavar="NAME=FILE",
        help="a system's translations, a sentence a line or the output of fairseq-generate; the first system is "
        "the baseline of the tests",
    )  # fmt: skip
    extra = parser.add_argument_group("further measures")
    extra.add_argument("--train", metavar="FILE", help="target text of the training, for words by training frequency")
    extra.add_argument(
        "--lexicon", metavar="FILE",
        help="table of `llrnn lexicon`, or rows of form, lemma, UPOS, FEATS and optionally a count (TSV), for "
        "agreement of neighbours in gender and number",
    )  # fmt: skip
    extra.add_argument(
        "--facts", metavar="FILE",
        help="JSON lines with the required words of each sentence, in the format of scripts/make_corpus.py --bilingual",
    )  # fmt: skip
    extra.add_argument(
        "--evidence", metavar="REGEX", default=DEFAULT_RULE,
        help="pattern of whole words that count as numbers and names (default: a capital first letter, or a digit)",
    )  # fmt: skip
    results = parser.add_argument_group("results")
    results.add_argument(
        "--tokenize", choices=TOKENIZERS, default=TOKENIZERS[0],
        help="tokenisation for BLEU (default: 13a, for running text; none: the texts are tokenised, as for "
        "multi-bleu)",
    )  # fmt: skip
    results.add_argument(
        "--out", required=True, metavar="FILE",
        help="the HTML page (`-`: stdout; the tables then go to stderr)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    systems = _systems(args.system)
    files = {"source": args.source, "reference": args.reference}
    files |= {f"system {name}": path for name, path in systems.items()}
    files |= {name: path for name in ("train", "lexicon", "facts") if (path := getattr(args, name)) is not None}
    check_text_place(args.out, files.values())

    # all files are read before anything is computed
    rule = UserPatterns({"evidence": args.evidence}, "--evidence")
    texts = read_texts(args.source, args.reference, systems)
    reference, *outputs = ([words(line) for line in lines] for lines in (texts.reference, *texts.systems.values()))
    counts = count_words(args.train) if args.train else None
    facts = read_facts(args.facts, reference) if args.facts else None
    roles = read_roles(args.lexicon) if args.lexicon else None

    names = list(systems)
    tables = [score_table(corpus_scores(texts, args.tokenize), names)]
    if counts is not None:
        tables.append(tally_table(by_frequency(reference, outputs, counts), names, *FREQUENCY))
    tables.append(rule_table(by_rule(reference, outputs, rule), names, args.evidence))
    if facts is not None:
        tables.append(tally_table(by_facts(facts, outputs), names, *FACTS))
    if roles is not None:
        tables.append(agreement_table([count_errors(side, roles) for side in (reference, *outputs)], names))
    in_reference = sum(has_letters(word) for sentence in reference for word in sentence)
    size = (
        f"{plural(len(texts), 'sentence')}, {plural(in_reference, 'word')} in the reference, without punctuation"
    )
    priors = {f"prior of {name}": signature for name, signature in texts.priors.items()}
    with text_output(args.out) as file:
        file.write(page(names, size, tables, examples(texts), files | priors))
    signatures = [f"{name}: {signature}" for name, signature in priors.items()]
    _report_unknown(texts)
    print("\n\n".join([size, *map(as_text, tables), *signatures]), file=report_stream(args.out))
    return 0


def _report_unknown(texts: Texts) -> None:
    """Report the share of `<unk>` in each text that has any. fairseq writes `<<unk>>` in references."""
    for name, lines in {"the reference": texts.reference, **texts.systems}.items():
        marks = [word in (UNK, f"<{UNK}>") for line in lines for word in line.split()]
        unknown = sum(marks)
        if unknown:
            hint = "use a larger dictionary, pieces or an open vocabulary"
            if lines is texts.reference:
                hint = "a system's <unk> counts as correct there; give the original text"
            remark = f"{unknown:,} of the {len(marks):,} words of {name} are <unk> ({unknown / len(marks):.1%}): {hint}"
            (warn if unknown > MANY * len(marks) else note)(remark)


def _systems(values: list[str]) -> dict[str, str]:
    """Return the files by system name."""
    systems: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not (name.strip() and equals and path):
            raise OptionError(f"--system {value}: expected NAME=FILE, such as softmax=softmax.out")
        if name in systems:
            raise OptionError(f"--system {value}: the name {name} is used for {systems[name]}; give another name")
        systems[name] = path
    return systems
