"""Extract minimal pairs of right and wrong agreement from treebanks with gold trees.

A pair is a sentence's beginning (`prefix`), its next word (`right`: an adjective, participle or finite verb) and
another form of that word (`wrong`) that differs only in gender or only in number. The *controller*, the word that
decides which is right (the noun that the adjective modifies, the subject of the verb), is to the left. `distance` is
the number of words between the two. Dymetman & Xiao (2016, section 3) only sketch such a test.

    pairs.py --ud FOLDER --prepared OUT --out pairs.jsonl

OUT is the output of prepare.py. A pair is taken only if it is certain: controller and target agree in the gold
annotation; neither form can have the other's value (*rouge* is no wrong form of anything); and the wrong form is in the
dictionary, too.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from paradigms import VERBS, Paradigms, read_paradigms
from prepare import SPLITS, sentence_text

from fairseq_llrnn.errors import one_line_errors
from fairseq_llrnn.files.atomic_write import write_lines
from fairseq_llrnn.lexicon.readers.conllu import Token, iter_conllu_words, treebank

SUBJECT = {"nsubj", "nsubjpass", "nsubj:pass"}
PASSIVE_OR_COPULA = {"auxpass", "aux:pass", "cop"}
AUXILIARY = PASSIVE_OR_COPULA | {"aux", "aux:tense"}
RELATIVE_CLAUSE = {"acl:relcl", "acl"}
VALUES = {"Gender": ("Gender:Masc", "Gender:Fem"), "Number": ("Number:Sing", "Number:Plur")}


@dataclass(frozen=True)
class Pair:
    text: str  # test1 or test2
    sentence: int  # in the text, counted from 0
    position: int  # of the right form in the sentence, counted from 0
    prefix: str
    right: str
    wrong: str
    kind: str  # Gender or Number
    construction: str
    controller: str
    distance: int
    attractors: int  # nouns between controller and target that have the wrong value
    rank_right: int  # in the dictionary by frequency, from 0
    rank_wrong: int
    train_right: int  # counts in the training text, and in all four texts
    train_wrong: int
    all_right: int
    all_wrong: int


class Vocabulary:
    """The frequency rank and counts of each word."""

    def __init__(self, prepared: Path) -> None:
        self.all = Counter((prepared / "text" / "all.txt").read_text(encoding="utf-8").split())
        self.train = Counter((prepared / "text" / "train.txt").read_text(encoding="utf-8").split())
        rows = (prepared / "data-bin" / "dict.txt").read_text(encoding="utf-8").splitlines()
        self.rank = {row.rpartition(" ")[0]: rank for rank, row in enumerate(rows)}


class Tree:
    """A sentence with heads, which finds the controller of a word."""

    def __init__(self, words: list[Token]) -> None:
        self.words = words
        self.children: dict[int, list[int]] = defaultdict(list)
        for index, word in enumerate(words):
            if word.head:
                self.children[word.head - 1].append(index)

    def head(self, index: int) -> int | None:
        head = self.words[index].head
        return head - 1 if head else None

    def above(self, index: int) -> int | None:
        """Return the first conjunct of a further conjunct."""
        head = self.head(index)
        return head if self.words[index].deprel == "conj" and head is not None and head < index else None

    def child(self, index: int, relations: set[str]) -> int | None:
        return next((child for child in self.children[index] if self.words[child].deprel in relations), None)

    def subject(self, predicate: int) -> tuple[int, str] | None:
        """Return the word with which a predicate agrees, and the relation through which it was found."""
        found = self.child(predicate, SUBJECT)
        if found is None:
            above = self.above(predicate)
            shared = None if above is None else self.subject(above)
            return None if shared is None else (shared[0], shared[1].removesuffix("+coordination") + "+coordination")
        if self.words[found].form != "qui":
            return found, ""
        # In a relative clause the antecedent decides; the second of two clauses hangs on the first.
        first = predicate
        while (above := self.above(first)) is not None:
            first = above
        antecedent = self.head(first)
        return (
            (antecedent, "+relative")
            if self.words[first].deprel in RELATIVE_CLAUSE and antecedent is not None
            else None
        )

    def agrees_with_subject(self, index: int) -> bool:
        """Return whether the word agrees with the subject: adjectives, and participles with être but not with avoir."""
        auxiliaries = [self.words[child] for child in self.children[index] if self.words[child].deprel in AUXILIARY]
        if not auxiliaries:
            above = self.above(index)
            return above is not None and self.agrees_with_subject(above)
        if any(word.deprel in PASSIVE_OR_COPULA for word in auxiliaries):
            return True
        lemmas = {word.lemma for word in auxiliaries}
        return "être" in lemmas and "avoir" not in lemmas

    def controller(self, index: int) -> tuple[int, str] | None:
        """Return (controller, construction) of an adjective, past participle or finite verb, or None if it is not
        certain.
        """
        word = self.words[index]
        if word.upos in VERBS and "VerbForm:Fin" in word.feats:
            head = self.head(index)
            found = self.subject(head if word.deprel in AUXILIARY and head is not None else index)
            return None if found is None else (found[0], "verb" + found[1])
        is_participle = word.upos in VERBS and {"VerbForm:Part", "Tense:Past"} <= set(word.feats)
        if not is_participle and word.upos != "ADJ":
            return None
        if self.agrees_with_subject(index):
            found = self.subject(index)
            return None if found is None else (found[0], "predicate" + found[1])
        first = index
        while (above := self.above(first)) is not None and self.words[above].upos in VERBS | {"ADJ"}:
            first = above
        noun = self.head(first)
        if self.words[first].deprel in {"amod", "acl"} and noun is not None:
            return noun, "attribute" if first == index else "attribute+coordination"
        return None


@dataclass(frozen=True)
class Target:
    index: int
    controller: int
    construction: str
    kind: str
    wrong_value: str
    wrong_forms: list[str]


def targets(words: list[Token], paradigms: Paradigms) -> Iterator[Target]:
    """Yield every word of a sentence whose gender or number a word to its left decides, with its wrong forms."""
    tree = Tree(words)
    for index, word in enumerate(words):
        found = tree.controller(index)
        if found is None or found[0] >= index:
            continue
        controller, construction = found
        governor = words[controller]
        # Coordinated nouns have no gender and number of their own, and the first and second persons other
        # rules.
        if governor.upos not in {"NOUN", "PRON", "PROPN"} or tree.child(controller, {"conj"}) is not None:
            continue
        if {"Person:1", "Person:2"} & {*word.feats, *governor.feats}:
            continue
        marked = {kind: {*values} & {*word.feats} for kind, values in VALUES.items()}
        demanded = {kind: {*values} & {*governor.feats} for kind, values in VALUES.items()}
        # Where the annotation has them disagree in one of the two, it cannot be trusted about the other.
        if any(marked[kind] and demanded[kind] and marked[kind] != demanded[kind] for kind in VALUES):
            continue
        for kind, (first, second) in VALUES.items():
            if len(marked[kind]) != 1 or not demanded[kind]:
                continue
            right, wrong = (first, second) if first in marked[kind] else (second, first)
            if wrong_forms := paradigms.wrong_forms(word.form, word.upos, right, wrong):
                yield Target(index, controller, construction, kind, wrong, wrong_forms)


def mine(text: str, path: Path, paradigms: Paradigms, known: Vocabulary) -> Iterator[Pair]:
    for number, words in enumerate(iter_conllu_words(path, lowercase=True)):
        forms = sentence_text(word.form for word in words).split(" ")
        for target in targets(words, paradigms):
            index, right = target.index, forms[target.index]
            wrong = next((form for form in target.wrong_forms if form in known.rank), None)
            if wrong is None:
                continue
            between = words[target.controller + 1 : index]
            yield Pair(
                text=text,
                sentence=number,
                position=index,
                prefix=" ".join(forms[:index]),
                right=right,
                wrong=wrong,
                kind=target.kind,
                construction=target.construction,
                controller=forms[target.controller],
                distance=len(between),
                attractors=sum(word.upos == "NOUN" and target.wrong_value in word.feats for word in between),
                rank_right=known.rank[right],
                rank_wrong=known.rank[wrong],
                train_right=known.train[right],
                train_wrong=known.train[wrong],
                all_right=known.all[right],
                all_wrong=known.all[wrong],
            )


def summary(pairs: list[Pair], top_words: int) -> str:
    """Count the pairs of each sort."""
    rare_far = f"4 …, both outside the top {top_words}"
    rows = [f"{len(pairs):,} pairs at distance".ljust(36) + f"{'0':>8}{'1':>8}{'2-3':>8}{'4 …':>8}{rare_far:>38}"]
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        for group in (pair.kind, pair.construction, pair.text):
            groups[group].append(pair)
    for group, members in sorted(groups.items()):
        far = [pair for pair in members if pair.distance >= 4]
        rare = sum(min(pair.rank_right, pair.rank_wrong) >= top_words for pair in far)
        near = [sum(low <= pair.distance <= high for pair in members) for low, high in ((0, 0), (1, 1), (2, 3))]
        rows.append(f"{group:36}" + "".join(f"{count:8,}" for count in (*near, len(far))) + f"{rare:38,}")
    return "\n".join(rows)


@one_line_errors("pairs.py")
def main() -> None:
    parser = argparse.ArgumentParser(description="mine agreement pairs from dev and test of a treebank")
    parser.add_argument("--ud", type=Path, required=True, help="the folder given to prepare.py")
    parser.add_argument("--prepared", type=Path, required=True, help="what prepare.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="pairs, one JSON object a line")
    args = parser.parse_args()
    sources = {name: treebank(args.ud, split) for split, name in SPLITS.items()}
    lexicon = next(iter(sorted(args.ud.glob("lexicon.tsv*"))), None)
    paradigms = read_paradigms(lexicon, [treebank(args.ud, split) for split in ("train", "dev", "test")])
    vocabulary = Vocabulary(args.prepared)
    pairs = [pair for name, path in sources.items() for pair in mine(name, path, paradigms, vocabulary)]
    write_lines(args.out, (json.dumps(asdict(pair), ensure_ascii=False) for pair in pairs))
    print(summary(pairs, 2500))


if __name__ == "__main__":
    raise SystemExit(main())
