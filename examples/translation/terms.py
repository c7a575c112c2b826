"""Measure term translation: required lemmas that inflect, against forced lemmas, on a generated test set.

    terms.py make OUT --prior DIR --source test.en --reference test.cs --forms cs.tsv [--words 2]
    terms.py measure OUT --prior DIR --forms cs.tsv --reference test.cs [--treebank FILE …] NAME=HYPOTHESES …
    terms.py evidence --prior DIR --source test.en [--reference test.cs] NAME=HYPOTHESES …

`make` writes OUT/terms.json, and lines for fairseq-interactive: OUT/terms.in (`source<TAB>phrase => lemma`, for ours),
OUT/constraints.in (`source<TAB>lemma`, for fairseq's --constraints) and OUT/plain.in. A term of the test is a content
word of the source whose best translation t(x | s) in the reference is a form of a lemma with at least three known
forms. Both occur once in their sentences. At most two terms per sentence are taken, those with the largest t. With
`--words 2` a term is two adjacent words of the source whose translation in the prior is an adjective and a noun after
it. Its target is cited with the noun's lemma, and phrases of adjacent words are counted.
`measure` reads the output of fairseq-interactive. A term is said if any of its forms occurs, right if the reference's
form occurs, and right alone if none of its other forms occurs as well.
`evidence` counts the numbers, names and unknown words of the source that are missing in the output, and those that
occur too often.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import sacrebleu

from fairseq_llrnn.errors import OptionError, one_line_errors
from fairseq_llrnn.lexicon.merge_sources import WordForms, read_word_forms
from fairseq_llrnn.lexicon.readers.conllu import iter_conllu_words
from fairseq_llrnn.prior.parts.evidence_part import EvidencePart
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.systems.reranking.agreement import Roles, count_errors, read_roles
from fairseq_llrnn.systems.terms.phrases import PhraseForms, phrase_forms

LEAST_FORMS = 3
LEAST_PROBABILITY = 0.2
MOST_FREQUENT = 0.01
MOST = 2  # terms of a sentence

Term = dict[str, str]  # phrase, lemma, form (of the reference)


def two_words(line: str) -> list[str]:
    """Return all pairs of adjacent words of a text."""
    return [" ".join(pair) for pair in pairwise(line.split())]


class TermFinder:
    """Finds the terms of sentence pairs."""

    def __init__(self, prior: Prior, forms: WordForms) -> None:
        part = prior.find(LexicalPart)
        if part is None:
            raise OptionError("--prior: expected one with lexical translations, found none; use another")
        self.table, self.forms, self.symbols = part.unit_table, forms, prior.symbols
        self.source = {word: i for i, word in enumerate(prior.source_symbols)}
        self.weight_of = dict(zip(prior.symbols, np.exp(prior.log_weights).tolist(), strict=True))
        self.lemma_of = {form: lemma for lemma in forms for form in forms.of(lemma)}
        self.target = {word: i for i, word in enumerate(prior.symbols)}
        self.unit_of = np.arange(len(prior.symbols)) if part.forms is None else part.forms.head_of
        self.phrases = phrase_forms(prior, forms)

    def find(self, source: Sequence[str], reference: Sequence[str]) -> list[Term]:
        """Return the terms of a pair, in the order of the source."""
        found = []
        for place, word in enumerate(source):
            term = self._term(word, reference) if source.count(word) == 1 and word.isalpha() else None
            if term is not None:
                found.append((-term[0], place, term[1]))
        return self._best(found)

    def find_two_words(self, source: Sequence[str], reference: Sequence[str]) -> list[Term]:
        """Return the terms of two words of a pair, in the order of the source, without overlaps."""
        found = []
        for place, words in enumerate(pairwise(source)):
            if two_words(" ".join(source)).count(" ".join(words)) != 1 or not all(map(str.isalpha, words)):
                continue
            for target in pairwise(reference):
                least = min(map(self._probability, words, target))
                citation = self._citation(*target) if least >= LEAST_PROBABILITY else None
                if citation is not None:
                    term = {"phrase": " ".join(words), "lemma": citation, "form": " ".join(target)}
                    found.append((-least, place, term))
        return self._best(found)

    @staticmethod
    def _best(found: list[tuple[float, int, Term]]) -> list[Term]:
        kept: list[tuple[float, int, Term]] = []
        for one in sorted(found, key=lambda one: one[:2]):
            width = len(one[2]["phrase"].split())
            if len(kept) < MOST and all(abs(one[1] - other) >= width for _, other, _ in kept):
                kept.append(one)
        return [term for _, _, term in sorted(kept, key=lambda one: one[1])]

    def _probability(self, source: str, target: str) -> float:
        """Return t(target | source), of their lemmas if the table has these."""
        if source not in self.source or target not in self.target:
            return 0.0
        return dict(self.table.row(self.source[source])).get(int(self.unit_of[self.target[target]]), 0.0)

    def _citation(self, adjective: str, noun: str) -> str | None:
        """Return the dictionary form of an adjective and a noun, or None for other words, or too few forms."""
        features, lemma = self.phrases.analyses.features, self.lemma_of.get(noun)
        if {"POS:CCONJ", "POS:ADP"} & features.get(noun, {}).keys():
            return None
        if "POS:ADJ" not in features.get(adjective, ()) or "POS:NOUN" not in features.get(noun, ()) or lemma is None:
            return None
        known = list(self.phrases.of([self.lemma_of.get(adjective, adjective), lemma]))
        cited = next((form for form in known[1:] if form.endswith(f" {lemma}")), next(iter(known), None))
        return cited if cited is not None and len(self.phrases.of(cited.split())) >= LEAST_FORMS else None

    def _term(self, word: str, reference: Sequence[str]) -> tuple[float, Term] | None:
        """Return t(form | word) of the best translation in the reference, and the term, or None if there is none."""
        if word not in self.source:
            return None
        for target, probability in self.table.row(self.source[word]):  # the most probable first
            form = self.symbols[target]
            lemma = self.lemma_of.get(form)
            if probability < LEAST_PROBABILITY or form not in reference or lemma is None:
                continue
            if sum(self.lemma_of.get(other) == lemma for other in reference) != 1:
                continue
            known = self.forms.of(lemma)
            share = sum(self.weight_of.get(one, 0.0) for one in known)
            if len(known) < LEAST_FORMS or share > MOST_FREQUENT or not lemma.isalpha():
                return None
            return probability, {"phrase": word, "lemma": lemma, "form": form}
        return None


def forms_of(prior: Prior, places: str) -> WordForms:
    return read_word_forms(places.split(","), prior.symbols)


def make(args: argparse.Namespace) -> None:
    prior, out = Prior.load(args.prior), Path(args.out)
    finder = TermFinder(prior, forms_of(prior, args.forms))
    sources, references = (Path(p).read_text(encoding="utf-8").splitlines() for p in (args.source, args.reference))
    find = finder.find if args.words == 1 else finder.find_two_words
    terms = [find(s.split(), r.split()) for s, r in zip(sources, references, strict=True)]
    out.mkdir(parents=True, exist_ok=True)
    (out / "terms.json").write_text(json.dumps(terms, ensure_ascii=False), encoding="utf-8")
    pairs = list(zip(sources, terms, strict=True))
    ours = ["\t".join([s, *(f"{t['phrase']} => {t['lemma']}" for t in own)]) for s, own in pairs]
    forced = ["\t".join([s, *(t["lemma"] for t in own)]) for s, own in pairs]
    for name, lines in (("terms.in", ours), ("constraints.in", forced), ("plain.in", sources)):
        (out / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    every = [term for own in terms for term in own]
    known = sum(all(word in prior.symbols for word in term["lemma"].split()) for term in every)
    as_lemma = sum(term["lemma"] == term["form"] for term in every)
    print(
        f"{len(every)} terms of {sum(map(bool, terms))} of {len(sources)} sentences; of {known} the dictionary has the "
        f"lemma, of {as_lemma} the reference has it"
    )


def read_hypotheses(path: str) -> list[list[str]]:
    """Return the best hypothesis of each sentence, from the output of fairseq-interactive (or fairseq-generate)."""
    lines = re.findall(r"^H-(\d+)\t\S+\t(.*)$", Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    best = {int(number): text.split() for number, text in reversed(lines)}
    return [best.get(i, []) for i in range(max(best) + 1)]


def roles_of(treebanks: Sequence[str], lexicon: Path) -> dict[str, Roles]:
    """Return the agreement rules of a lexicon of the treebanks' words."""
    rows: Counter[str] = Counter()
    for path in treebanks:
        for sentence in iter_conllu_words(path, True):
            for token in sentence:
                feats = "|".join(token.feats).replace(":", "=") or "_"
                rows["\t".join([token.form.lower(), token.lemma, token.upos or "_", feats])] += 1
    lexicon.write_text("".join(f"{row}\t{count}\n" for row, count in rows.items()), encoding="utf-8")
    return read_roles(str(lexicon))


def counted(
    hypotheses: Sequence[Sequence[str]], terms: Sequence[Sequence[Term]], forms: WordForms, phrases: PhraseForms
) -> list[float]:
    """Return the fractions of terms that are said, right, and right alone."""
    said = right = alone = 0
    for words, own in zip(hypotheses, terms, strict=True):
        for term in own:
            cited = term["lemma"].split()
            known = {term["lemma"], *(forms.of(term["lemma"]) if len(cited) == 1 else phrases.of(cited))}
            texts = words if len(cited) == 1 else two_words(" ".join(words))
            found = [text for text in texts if text in known | {term["form"]}]
            said += bool(found)
            right += term["form"] in found
            alone += found == [term["form"]]
    return [count / max(1, sum(map(len, terms))) for count in (said, right, alone)]


def measure(args: argparse.Namespace) -> None:
    prior, out = Prior.load(args.prior), Path(args.out)
    forms, terms = forms_of(prior, args.forms), json.loads((out / "terms.json").read_text(encoding="utf-8"))
    references = Path(args.reference).read_text(encoding="utf-8").splitlines()
    phrases = phrase_forms(prior, forms)
    roles = roles_of(args.treebank, out / "lexicon.tsv") if args.treebank else None
    print(f"{'':24} {'said':>7} {'right':>7} {'right alone':>11} {'BLEU':>6} {'disagreements per 1,000 words':>30}")
    systems = (named.partition("=") for named in args.of)
    given = {"reference": [r.split() for r in references]} | {name: read_hypotheses(path) for name, _, path in systems}
    for name, hypotheses in given.items():
        said, right, alone = counted(hypotheses, terms, forms, phrases)
        bleu = bleu_of(hypotheses, args.reference)
        wrong = "" if roles is None else f"{count_errors(hypotheses, roles).per_thousand:.1f}"
        print(f"{name:24} {said:>7.1%} {right:>7.1%} {alone:>11.1%} {bleu:>6.2f} {wrong:>30}")


def evidence_counts(
    prior: Prior, sources: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> tuple[int, int, int]:
    """Count the strings to copy from the sources, those that are missing, and those that occur too often."""
    part = prior.find(EvidencePart)
    if part is None:
        raise OptionError("--prior: expected one with evidence, found none; use another")
    known, copied = set(prior.source_symbols), {word for one in sources for word in one}
    found = {word: part.find(word, known) for word in copied}
    offered = {word for word, one in found.items() if one is not None and one.words == (word,)}
    many = missing = beyond = 0
    for source, words in zip(sources, hypotheses, strict=True):
        wanted = Counter(word for word in source if word in offered)
        said = Counter(word for word in words if word in wanted)
        many += wanted.total()
        missing += (wanted - said).total()
        beyond += (said - wanted).total()
    return many, missing, beyond


def evidence(args: argparse.Namespace) -> None:
    prior = Prior.load(args.prior)
    sources = [line.split() for line in Path(args.source).read_text(encoding="utf-8").splitlines()]
    print(f"{'':24} {'strings':>7} {'missing':>8} {'too many':>9} {'BLEU':>6}")
    for name, _, path in (named.partition("=") for named in args.of):
        hypotheses = read_hypotheses(path)
        many, missing, beyond = evidence_counts(prior, sources, hypotheses)
        bleu = "" if args.reference is None else f"{bleu_of(hypotheses, args.reference):.2f}"
        print(f"{name:24} {many:>7} {missing:>8} {beyond:>9} {bleu:>6}")


def bleu_of(hypotheses: Sequence[Sequence[str]], reference: str) -> float:
    """Return BLEU of words, against the reference in a file."""
    references = Path(reference).read_text(encoding="utf-8").splitlines()
    return float(sacrebleu.corpus_bleu([" ".join(h) for h in hypotheses], [references], tokenize="none").score)


@one_line_errors("terms.py")
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("make", make), ("measure", measure), ("evidence", evidence)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        if name != "evidence":
            command.add_argument("out", metavar="OUT")
            command.add_argument("--forms", required=True, help="as --term-forms")
        command.add_argument("--prior", required=True)
        command.add_argument("--reference", required=name != "evidence")
        if name != "measure":
            command.add_argument("--source", required=True)
        if name == "make":
            command.add_argument("--words", type=int, choices=(1, 2), default=1, help="of a term (default: 1)")
        if name == "measure":
            command.add_argument("--treebank", action="append", help="treebanks for the rules of agreement")
        if name != "make":
            command.add_argument("of", nargs="+", metavar="NAME=HYPOTHESES")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    raise SystemExit(main())
