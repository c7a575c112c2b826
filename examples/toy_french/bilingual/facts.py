"""Gold facts of a pair: words to copy or map, and French words that agree.

Positions count tokens from 0.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from toy_french.bilingual.evidence import KINDS, is_evidence
from toy_french.bilingual.rendering import Piece
from toy_french.closed import WHOM
from toy_french.phrases import agreement
from toy_french.trees import Node, Token, in_order


@dataclass(frozen=True)
class Copy:
    """A number, code, name or month: the English token and its French translation."""

    source: int
    target: int
    kind: str  # "number", "code", "name" or "month"
    english: str
    french: str
    seen: bool  # the training text holds either


@dataclass(frozen=True)
class Agreement:
    """A French adjective or participle that takes gender and number from the word at `controller`."""

    target: int
    controller: int
    form: str
    lemma: str
    upos: str
    gender: str
    number: str
    seen: bool  # the French training text holds the form


def copies(
    pieces: Sequence[Piece], root: Node, french: Sequence[Token], seen_english: Container[str], seen: Container[str]
) -> Iterator[Copy]:
    place = {node: index for index, node in enumerate(in_order(root))}
    for source, (text, node) in enumerate(pieces):
        if node is not None and is_evidence(text):
            form = french[place[node]].word.form
            known = text in seen_english or form in seen
            yield Copy(source, place[node], KINDS[node.word.upos], text, form, known)


def agreements(root: Node, seen: Container[str]) -> Iterator[Agreement]:
    """Return the agreements in which the word's form shows gender or number."""
    place = {node: index for index, node in enumerate(in_order(root))}
    for node, controller in _agreeing(root):
        word = node.word
        if word.feature("Gender") or word.feature("Number"):
            gender, number = agreement(controller.word)
            yield Agreement(
                place[node],
                place[controller],
                word.form,
                word.lemma,
                word.upos,
                gender,
                number,
                word.form in seen,
            )


def _agreeing(root: Node) -> Iterator[tuple[Node, Node]]:
    for head in in_order(root):
        children = (*head.left, *head.right)
        yield from ((child, head) for child in children if child.deprel == "amod")
        if any(child.word.lemma == "être" for child in head.left) and head.word.upos in ("ADJ", "VERB"):
            subject = next(child for child in head.left if child.deprel.startswith("nsubj"))
            yield head, subject
        for child in children:  # les lettres que le roi a fermées
            if child.deprel == "acl:relcl" and child.left[0].word == WHOM and child.word.feature("VerbForm") == "Part":
                yield child, head
