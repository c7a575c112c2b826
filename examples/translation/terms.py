# ruff: noqa: E501
"""How well terms are said: required lemmas that inflect against forced lemmas, on a test set whose terms are made here.

    terms.py make OUT --prior DIR --source test.en --reference test.cs --forms lemmas:cs
    terms.py measure OUT --prior DIR --forms lemmas:cs --reference test.cs [--treebank FILE …] NAME=HYPOTHESES …

`make` writes OUT/terms.json, and lines for fairseq-interactive: OUT/terms.in (`source<TAB>phrase => lemma`, for ours) and
OUT/constraints.in (`source<TAB>lemma`, for fairseq's --constraints). A term of the test is a content word of the source
whose best translation t(x | s) in the reference is a form of a lemma of which at least three forms are known; both stand
once in their sentences. Deterministic: at most two terms a sentence, those with the largest t. `measure` reads what
fairseq-interactive printed. A term counts as said if any of its forms is there, as right if the reference's form is,
and as right alone if no other of its forms is there beside that.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sacrebleu

from fairseq_llrnn.evaluation.agreement import count_errors, read_roles
from fairseq_llrnn.features.languages.base import Spelling
from fairseq_llrnn.features.readers.conllu import iter_conllu_words
from fairseq_llrnn.features.word_forms import WordForms, read_word_forms
from fairseq_llrnn.prior.parts.lexical import LexicalPart
from fairseq_llrnn.prior.prior import Prior

LEAST_FORMS = 3
LEAST_PROBABILITY = 0.2
MOST_FREQUENT = 0.01
MOST = 2  # terms of a sentence

Term = dict[str, str]  # phrase, lemma, form (of the reference)


def forms_of(prior: Prior, places: str) -> WordForms:
    return read_word_forms(places.split(","), prior.symbols, Spelling(lowercase=True))


def find_terms(prior: Prior, forms: WordForms, source: Sequence[str], reference: Sequence[str]) -> list[Term]:
    """The terms of a pair, in the order of the source."""
    part = prior.find(LexicalPart)
    assert part is not None, "the prior has no lexical translations"
    table, once = part.table, Counter(source)
    lemma_of = LEMMAS.setdefault(id(forms), {form: lemma for lemma in forms for form in forms.of(lemma)})
    lemmas = Counter(lemma_of.get(word) for word in reference)
    found = []
    for place, word in enumerate(source):
        token = INDEX.setdefault(id(prior), {w: i for i, w in enumerate(prior.source_symbols)}).get(word)
        if token is None or once[word] > 1 or not word.isalpha():
            continue
        begin, end = table.offsets[token : token + 2]
        likely = zip(table.targets[begin:end].tolist(), table.probabilities[begin:end].tolist(), strict=True)
        for target, probability in likely:  # the most probable first
            form = prior.symbols[target]
            lemma = lemma_of.get(form)
            if probability < LEAST_PROBABILITY or form not in reference or lemma is None or lemmas[lemma] != 1:
                continue
            known = forms.of(lemma)
            share = np.exp(prior.log_weights[[prior.index(one) for one in known]]).sum()
            if len(known) >= LEAST_FORMS and lemma.isalpha() and share <= MOST_FREQUENT:
                found.append((-probability, place, {"phrase": word, "lemma": lemma, "form": form}))
            break
    kept = sorted(sorted(found, key=lambda one: one[:2])[:MOST], key=lambda one: one[1])
    return [term for _, _, term in kept]


LEMMAS: dict[int, dict[str, str]] = {}
INDEX: dict[int, dict[str, int]] = {}


def make(args: argparse.Namespace) -> None:
    prior = Prior.load(args.prior)
    forms, out = forms_of(prior, args.forms), Path(args.out)
    sources, references = (Path(p).read_text(encoding="utf-8").splitlines() for p in (args.source, args.reference))
    terms = [find_terms(prior, forms, s.split(), r.split()) for s, r in zip(sources, references, strict=True)]
    out.mkdir(parents=True, exist_ok=True)
    (out / "terms.json").write_text(json.dumps(terms, ensure_ascii=False), encoding="utf-8")
    ours = ["\t".join([s, *(f"{t['phrase']} => {t['lemma']}" for t in own)]) for s, own in zip(sources, terms, strict=True)]
    forced = ["\t".join([s, *(t["lemma"] for t in own)]) for s, own in zip(sources, terms, strict=True)]
    for name, lines in (("terms.in", ours), ("constraints.in", forced), ("plain.in", sources)):
        (out / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    every = [term for own in terms for term in own]
    known = sum(term["lemma"] in prior.symbols for term in every)
    as_lemma = sum(term["lemma"] == term["form"] for term in every)
    print(f"{len(every)} terms of {sum(map(bool, terms))} of {len(sources)} sentences; of {known} the dictionary has the "
          f"lemma, of {as_lemma} the reference has it")  # fmt: skip


def read_hypotheses(path: str) -> list[list[str]]:
    """The best of each sentence, from what fairseq-interactive (or fairseq-generate) printed."""
    lines = re.findall(r"^H-(\d+)\t\S+\t(.*)$", Path(path).read_text(encoding="utf-8"), re.MULTILINE)
    best = {int(number): text.split() for number, text in reversed(lines)}
    return [best.get(i, []) for i in range(max(best) + 1)]


def measure(args: argparse.Namespace) -> None:
    prior, out = Prior.load(args.prior), Path(args.out)
    forms, terms = forms_of(prior, args.forms), json.loads((out / "terms.json").read_text(encoding="utf-8"))
    references = Path(args.reference).read_text(encoding="utf-8").splitlines()
    roles = None
    if args.treebank:
        rows = Counter(
            "\t".join([token.form.lower(), token.lemma, token.upos or "_", "|".join(token.feats).replace(":", "=") or "_"])
            for path in args.treebank for sentence in iter_conllu_words(path, True) for token in sentence
        )  # fmt: skip
        lexicon = out / "lexicon.tsv"
        lexicon.write_text("".join(f"{row}\t{count}\n" for row, count in rows.items()), encoding="utf-8")
        roles = read_roles(str(lexicon))
    print(f"{'':24} {'said':>7} {'right':>7} {'right alone':>11} {'BLEU':>6} {'disagreements per 1,000 words':>30}")
    given = [("reference", [r.split() for r in references]), *((n, read_hypotheses(p)) for n, _, p in map(split, args.of))]
    for name, hypotheses in given:
        said = right = alone = total = 0
        for words, own in zip(hypotheses, terms, strict=True):
            for term in own:
                known = {term["lemma"], *forms.of(term["lemma"])}
                total += 1
                found = [word for word in words if word in known]
                said += bool(found)
                right += term["form"] in found
                alone += found == [term["form"]]
        bleu = sacrebleu.corpus_bleu([" ".join(h) for h in hypotheses], [references], tokenize="none").score
        wrong = "" if roles is None else f"{count_errors(hypotheses, roles).per_thousand:.1f}"
        print(
            f"{name:24} {said / total:>7.1%} {right / total:>7.1%} {alone / total:>11.1%} {bleu:>6.2f} {wrong:>30}"
        )


def split(named: str) -> tuple[str, str, str]:
    return named.partition("=")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, run in (("make", make), ("measure", measure)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("out", metavar="OUT")
        command.add_argument("--prior", required=True)
        command.add_argument("--forms", required=True, help="as --term-forms")
        command.add_argument("--reference", required=True)
        if name == "make":
            command.add_argument("--source", required=True)
        else:
            command.add_argument("--treebank", action="append", help="whose lexicon says what agrees")
            command.add_argument("of", nargs="+", metavar="NAME=HYPOTHESES")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
