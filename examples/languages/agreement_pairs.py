"""Write minimal pairs of subject-verb agreement from treebanks with gold trees, in the format of CLAMS.

    agreement_pairs.py --data DATA --out OUT hungarian greek czech

A pair is a sentence, and the same sentence with its verb in the other number. The verb is finite or a past participle.
Its subject is one noun or pronoun of the same number, without coordination or a numeral. The other form has the same
lemma, part of speech and features except the number, and occurs in the treebanks of the language. A verb whose form is
the same in both numbers makes no pair. Neither does a verb with an infinitive or subordinate verb that has a number (it
may be impersonal), nor an active one with a neuter noun and no object (the noun may be its object).

OUT/clams has a file for each of singular and plural, near and far. In far pairs, words stand between subject and verb.
`clams.py --data OUT --out RUNS --language greek ROW …` scores them.
"""

import argparse
import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from language_texts import CZECH, LANGUAGES, Language

from fairseq_llrnn.errors import DataError, OptionError, one_line_errors
from fairseq_llrnn.files.atomic_write import whole_binary
from fairseq_llrnn.lexicon.readers.conllu import Token, in_one_word, iter_conllu_words, treebank

SUBJECTS = ("nsubj", "nsubj:pass")
KINDS = tuple(f"{number}-{distance}" for number in ("plural", "singular") for distance in ("far", "near"))
NUMBERS = {"Number:Sing": "Number:Plur", "Number:Plur": "Number:Sing"}
VERBS = ("VERB", "AUX")
HELD_OUT = ("dev", "test")  # whose sentences become pairs; the forms come from the training text, too
CZECH_FILES = tuple(f"czech-treebanks/cs_{part}.conllu.gz" for part in CZECH)  # no model is trained on their sentences

Kind = str  # singular-near, …
Pair = tuple[Kind, str, str]  # the grammatical sentence, and the other one


class VerbForms:
    """The verb forms of a language by lemma and features."""

    def __init__(self, sentences: Sequence[list[Token]]) -> None:
        self._forms: dict[tuple[str, str | None, frozenset[str]], set[str]] = defaultdict(set)
        for token in (token for sentence in sentences for token in sentence if token.upos in VERBS):
            self._forms[token.lemma, token.upos, frozenset(token.feats)].add(token.form.lower())

    def other_number(self, verb: Token) -> str | None:
        """Return the form of the other number, first in the alphabet. None if there is none, or if it is the same."""
        feats = frozenset(verb.feats)
        if len(numbers := feats & NUMBERS.keys()) != 1:
            return None
        (number,) = numbers
        other = self._forms.get((verb.lemma, verb.upos, feats - {number} | {NUMBERS[number]}), set())
        form = min(other, default=None)
        if form is None or form in self._forms[verb.lemma, verb.upos, feats] or verb.form.lower() in other:
            return None
        return form.capitalize() if verb.form[:1].isupper() else form


def is_controller(subject: Token, children: Sequence[Token], verb: Token) -> bool:
    """Whether a subject is one noun or pronoun that surely decides the number of its verb."""
    numbers = NUMBERS.keys() & subject.feats
    is_nominative = "Case:Nom" in subject.feats or not any(feature.startswith("Case:") for feature in subject.feats)
    relations = {child.deprel or "" for child in children}
    return (
        subject.upos in ("NOUN", "PROPN", "PRON")
        and len(numbers) == 1
        and numbers <= {*verb.feats}
        and is_nominative
        and not any(relation.startswith(("conj", "nummod", "det:nummod", "det:numgov")) for relation in relations)
    )


def may_be_otherwise(verb: Token, subject: Token, children: Sequence[Token]) -> bool:
    """Whether the other number may be right, since the verb is impersonal, or the noun is its object."""
    is_active = "Voice:Pass" not in verb.feats and subject.deprel == "nsubj" and verb.upos == "VERB"
    has_object = any((child.deprel or "").startswith("obj") for child in children)
    return any(child.deprel in ("xcomp", "ccomp", "csubj") and NUMBERS.keys() & child.feats for child in children) or (
        "Gender:Neut" in subject.feats and is_active and not has_object
    )


def pairs_of(sentence: list[Token], forms: VerbForms) -> Iterator[Pair]:
    """Yield the pairs of a sentence."""
    words = [in_one_word(token.form) for token in sentence]
    children = [[child for child in sentence if child.head == number] for number in range(1, len(sentence) + 1)]
    for at, verb in enumerate(sentence):
        is_finite = "VerbForm:Fin" in verb.feats or {"VerbForm:Part", "Tense:Past"} <= {*verb.feats}
        subjects = [token for token in children[at] if token.deprel in SUBJECTS]
        if verb.upos not in VERBS or not is_finite or len(subjects) != 1:
            continue
        (subject,) = subjects
        place = sentence.index(subject)
        auxiliaries = [child for child in children[at] if (child.deprel or "").startswith(("aux", "cop"))]
        other = forms.other_number(verb)
        if other is None or not is_controller(subject, children[place], verb):
            continue
        if may_be_otherwise(verb, subject, children[at]):
            continue
        if any(NUMBERS.keys() & {*auxiliary.feats} for auxiliary in auxiliaries):
            continue  # another word has the number, too
        number = "singular" if "Number:Sing" in verb.feats else "plural"
        wrong = [*words[:at], in_one_word(other), *words[at + 1 :]]
        yield f"{number}-{'near' if abs(place - at) == 1 else 'far'}", " ".join(words), " ".join(wrong)


def pairs_by_kind(language: Language, data: Path) -> dict[Kind, list[Pair]]:
    """Return the pairs of a language. Raises DataError for a missing or broken treebank."""
    if language.kind == "treebank":
        splits = [treebank(data / language.folder, split) for split in (*HELD_OUT, "train")]
        held_out = len(HELD_OUT)
    else:
        splits = [data / name for name in CZECH_FILES]
        held_out = len(splits)
    texts = [list(iter_conllu_words(path, lowercase=False)) for path in splits]
    forms = VerbForms([sentence for text in texts for sentence in text])
    found: dict[Kind, list[Pair]] = defaultdict(list)
    for pair in (pair for text in texts[:held_out] for sentence in text for pair in pairs_of(sentence, forms)):
        found[pair[0]].append(pair)
    if not found:
        raise DataError(f"{data}: expected subjects and verbs in the treebank of {language.name}, found none")
    return {kind: found[kind] for kind in KINDS}


def write(language: Language, data: Path, out: Path) -> None:
    """Write OUT/clams/CODE.KIND.txt.gz, and print the number of pairs."""
    folder = out / "clams"
    folder.mkdir(parents=True, exist_ok=True)
    for kind, pairs in pairs_by_kind(language, data).items():
        with whole_binary(folder / f"{language.code}.{kind}.txt.gz") as file:
            file.write(gzip.compress("".join(f"True\t{a}\nFalse\t{b}\n" for _, a, b in pairs).encode(), mtime=0))
        print(f"{language.name} {kind}: {len(pairs):,} pairs")


@one_line_errors("agreement_pairs.py")
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("languages", nargs="+", metavar="LANGUAGE", help="hungarian, greek, czech")
    parser.add_argument("--data", type=Path, required=True, help="the folder of all texts")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    args = parser.parse_args()
    return act(args)


def act(args: argparse.Namespace) -> int:
    """Run the command line. Raises LLRNNError."""
    possible = [name for name, language in LANGUAGES.items() if language.kind == "treebank" or name == "czech"]
    for name in args.languages:
        if name not in possible:
            raise OptionError(f"LANGUAGE: expected one of {', '.join(possible)}, found {name!r}; choose one of these")
    for name in args.languages:
        write(LANGUAGES[name], args.data, args.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
