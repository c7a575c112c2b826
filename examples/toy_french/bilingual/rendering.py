"""The English sentence of a French tree.

The French sentence is the tree read from left to right (`trees.tokens`). The English one is rendered here, clause by
clause and phrase by phrase. They differ in more than words:

* adjectives are before the noun, names too: l' église verte de Grenoble = the green Grenoble church;
* adverbs are before the main verb: elle ferme souvent = she often closes;
* ne … pas = does not …; will and did are words, not endings; être and avoir both make the perfect with *have*;
* elle a 37 ans = she is 37 years old; le prix est de 37 euros = the price is 37 euros;
* le 14 juillet 1789 = on July 14 , 1789.

Imparfait is rendered as simple past, passé composé as perfect. Only *he* and *she* show gender. Adjectives,
participles and articles show no number.
"""

from collections.abc import Iterator, Mapping, Sequence

from toy_french import ordinary
from toy_french.bilingual.evidence import english_evidence
from toy_french.bilingual.glossary import CLOSED, DETERMINERS, MONTHS, NUMBER_WORDS, Key
from toy_french.closed import DEGREE, NOT_FIRST, NOT_SECOND, OF, TO
from toy_french.trees import Node
from toy_french.words import Lexeme, Word

Piece = tuple[str, Node | None]  # an English text, perhaps of several tokens, and the French word it renders

_BE = {
    ("Pres", "1", "Sing"): "am",
    ("Pres", "3", "Sing"): "is",
    ("Imp", "1", "Sing"): "was",
    ("Imp", "3", "Sing"): "was",
}
_BE_OTHERWISE = {"Pres": "are", "Imp": "were"}
_IN_NOUN_PHRASE = ("amod", "nmod", "acl:relcl", "nummod", "flat")


class Renderer:
    def __init__(self, glosses: Mapping[Key, Lexeme]) -> None:
        self._glosses = glosses

    def sentence(self, root: Node) -> list[Piece]:
        """Return one piece per token."""
        pieces = [(token, node) for text, node in self._clause(root) for token in text.split(" ")]
        following = [token for token, _ in pieces[1:]] + [""]
        return [
            ("an" if token == "a" and next_token[:1] in tuple("aeiou") else token, node)
            for (token, node), next_token in zip(pieces, following, strict=True)
        ]

    # -- words --------------------------------------------------------------------------------------

    def _word(self, word: Word) -> str:
        """Return the English of a French word; of a verb form, its participle or infinitive."""
        if word.upos in ("PROPN", "X"):
            return english_evidence(word)
        if word.upos == "NUM":
            return NUMBER_WORDS.get(word.form) or english_evidence(word)
        if word.upos == "DET":
            return DETERMINERS[word.lemma][word.feature("Number") == "Plur"]
        if word.upos == "NOUN":
            return self._gloss(word, "Plur" if word.feature("Number") == "Plur" else "Sing")
        if word.upos == "ADJ":
            return self._gloss(word)
        if word.upos == "VERB":
            return self._gloss(word, word.feature("VerbForm"))
        return CLOSED[word.form if word.form in CLOSED else word.lemma]

    def _gloss(self, word: Word, *cell: str) -> str:
        return self._glosses[word.upos, word.lemma].forms[cell].form

    # -- noun phrases -------------------------------------------------------------------------------

    def _phrase(self, node: Node) -> Iterator[Piece]:
        if node.word.form in MONTHS:
            yield from self._date(node)
        else:
            yield from self._noun_phrase(node, node.left, node.right)

    def _noun_phrase(self, node: Node, left: Sequence[Node], right: Sequence[Node]) -> Iterator[Piece]:
        before = [child for child in right if child.deprel == "amod" or _is_name_of(child)]
        for child in left:
            at = child.word == TO and node.word.upos == "NUM"  # at 8:30, but: to Grenoble
            yield "at" if at else self._word(child.word), child
        for child in before:
            yield self._word(child.word), child
        yield self._word(node.word), node
        for child in right:
            if child.deprel == "acl:relcl":
                yield from self._clause(child)
            elif child not in before:
                yield from self._phrase(child)

    def _date(self, month: Node) -> Iterator[Piece]:
        _, day = month.left
        (year,) = month.right
        yield "on", None
        yield english_evidence(month.word), month
        yield self._word(day.word), day
        yield ",", None
        yield self._word(year.word), year

    # -- clauses ------------------------------------------------------------------------------------

    def _clause(self, node: Node) -> Iterator[Piece]:
        place = next(i for i, child in enumerate(node.left) if child.deprel.startswith("nsubj"))
        for child in node.left[:place]:
            yield from self._phrase(child)
        yield from self._phrase(node.left[place])
        left = node.left[place + 1 :]
        auxiliary = next((child for child in left if child.deprel in ("aux:tense", "aux:pass", "cop")), None)
        adverbs = [child for child in (*left, *node.right) if child.deprel == "advmod"]
        degree = [child for child in adverbs if child.word in DEGREE]
        years = _years_of_age(node)
        yield from self._verbs(
            node,
            auxiliary,
            is_be=years is not None or (auxiliary is not None and auxiliary.deprel != "aux:tense"),
            negated=any(child.word == NOT_FIRST for child in adverbs),
            adverbs=[child for child in adverbs if child.word not in (*DEGREE, NOT_FIRST, NOT_SECOND)],
        )
        for child in degree:
            yield from self._phrase(child)
        right = [child for child in node.right if child.deprel != "advmod"]
        if auxiliary is not None:  # the predicate itself: closed; green; a quiet town; 37 euros
            own = [child for child in right if child.deprel in _IN_NOUN_PHRASE]
            inner = [child for child in left if child is not auxiliary and child.deprel not in ("advmod", "case")]
            yield from self._noun_phrase(node, inner, own)
            right = [child for child in right if child not in own]
        for child in right:
            if child.deprel in ("ccomp", "conj"):
                yield from self._clause(child)
            elif child.deprel == "xcomp":
                yield "to", None
                yield from self._phrase(child)
            else:
                yield from self._phrase(child)
            if child is years:
                yield "old", None

    def _verbs(
        self, node: Node, auxiliary: Node | None, is_be: bool, negated: bool, adverbs: Sequence[Node]
    ) -> Iterator[Piece]:
        """Return the finite verb with not and adverbs, up to the participle or predicate: does not often close; has
        often.
        """
        finite = (auxiliary or node).word
        tense, person, number = (finite.feature(name) for name in ("Tense", "Person", "Number"))
        third = (person, number) == ("3", "Sing")
        if tense == "Fut":
            first, last = "will", "be" if is_be else self._main(node.word, "Inf")
        elif is_be:
            first, last = _BE.get((tense, person, number)) or _BE_OTHERWISE[tense], ""
        elif auxiliary is not None:
            first, last = ("had" if tense == "Imp" else "has" if third else "have"), ""
        elif negated:
            first, last = ("did" if tense == "Imp" else "does" if third else "do"), self._main(node.word, "Inf")
        else:
            cell = "Past" if tense == "Imp" else "Pres" if third else "Inf"
            first, last = "", self._main(node.word, cell)
        if first:
            yield first, auxiliary
        if negated:
            yield "not", None
        for adverb in adverbs:
            for degree in adverb.left:
                yield self._word(degree.word), degree
            yield self._word(adverb.word), adverb
        if last:
            yield last, node

    def _main(self, verb: Word, cell: str) -> str:
        if verb.lemma == "avoir":
            return {"Inf": "have", "Pres": "has", "Past": "had"}[cell]
        return self._gloss(verb, cell)


def _is_name_of(child: Node) -> bool:
    """Return whether it is the name in: la gare de Grenoble."""
    return child.deprel == "nmod" and child.word.upos == "PROPN" and [case.word for case in child.left] == [OF]


def _years_of_age(node: Node) -> Node | None:
    """Return the object in: elle a 37 ans."""
    return next((child for child in node.right if child.word.lemma == ordinary.YEARS_OF_AGE), None)
