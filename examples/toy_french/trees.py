"""Dependency trees, from the grammar's nodes to numbered tokens."""

from dataclasses import dataclass, field

from toy_french.closed import before
from toy_french.words import Word


@dataclass(eq=False)
class Node:
    """A word with its dependents before and after it, in reading order."""

    word: Word
    deprel: str
    left: list["Node"] = field(default_factory=list)
    right: list["Node"] = field(default_factory=list)


@dataclass(frozen=True)
class Token:
    word: Word
    head: int  # 1 for the first token, 0 for the root's
    deprel: str


def in_order(node: Node) -> list[Node]:
    """Return the nodes of a tree in reading order."""
    left = [inner for child in node.left for inner in in_order(child)]
    right = [inner for child in node.right for inner in in_order(child)]
    return [*left, node, *right]


def tokens(root: Node) -> list[Token]:
    nodes = in_order(root)
    place = {node: index for index, node in enumerate(nodes, start=1)}
    heads = {child: place[node] for node in nodes for child in (*node.left, *node.right)}
    following = [node.word.form for node in nodes[1:]] + ["."]
    return [
        Token(before(node.word, form), heads.get(node, 0), node.deprel)
        for node, form in zip(nodes, following, strict=True)
    ]
