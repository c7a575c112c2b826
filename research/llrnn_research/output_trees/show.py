"""`llrnn show --tree`: list the words below the nodes of an output tree (Jernite 2018, Table 3.2 and Figure 3.8)."""

import argparse
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairseq_llrnn.cli.model_options import PARTS, need_fairseq
from fairseq_llrnn.cli.places import check_place
from fairseq_llrnn.cli.show.shown_text import find_word
from fairseq_llrnn.cli.tables import WIDTH, cut, percent, plural, printable
from fairseq_llrnn.errors import OptionError, check_unused_options
from fairseq_llrnn.files.atomic_write import writing
from llrnn_research.output_trees.tree import Tree, load_tree
from llrnn_research.output_trees.tree_words import NodeWords, draw_tree, words_of_nodes
from llrnn_research.pictures import need_matplotlib

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior

OPTION = "--tree FILE"
FURTHER = ("picture",)
EXAMPLES = ("llrnn show --tree with-a-tree/checkpoint_best.pt --picture tree.png",)
WORDS, NODES = 10, 12  # shown per node, per level
OTHERS = ("path", *(part for part in PARTS if part != "prior"), "source")  # options of other views


def add_arguments(parser: argparse.ArgumentParser) -> None:
    tree = parser.add_argument_group("words of an output tree")
    tree.add_argument(
        "--tree", metavar="FILE",
        help="print the most frequent words of each node, level by level, heaviest nodes first. FILE is a checkpoint "
        "trained with --output-tree (needs fairseq), or a tree file (needs its PRIOR). With words after PRIOR: print "
        "the nodes on their paths",
    )  # fmt: skip
    tree.add_argument(
        "--picture", metavar="FILE", help="also draw the heaviest nodes as a PNG (needs matplotlib)"
    )


def run(args: argparse.Namespace) -> int:
    unused = {option: getattr(args, option, None) for option in OTHERS}
    check_unused_options(unused, "not possible together with --tree; run two commands")
    prior_option = getattr(args, "prior", None)  # another view's
    if args.folder is not None and prior_option is not None:
        raise OptionError(f"--prior {prior_option}: expected one prior, found {args.folder} as well; leave one out")
    if args.picture is not None:
        check_place(args.picture, f"--picture {args.picture}")
        need_matplotlib("--picture")
    tree, prior = _read(args.tree, args.folder or prior_option)
    nodes = words_of_nodes(tree, prior, WORDS)
    if args.picture is not None:
        with writing(f"--picture {args.picture}", "result"):
            draw_tree(nodes, Path(args.picture))
    paths = [(word, _path(tree, prior, word, nodes, args.folder)) for word in args.words]
    if args.json:
        print(json.dumps(_as_json(args.tree, tree, nodes, paths), ensure_ascii=False))
    else:
        print(_text(args.tree, tree, nodes) if not paths else "\n\n".join(_path_text(*item) for item in paths))
    return 0


def _read(path: str, folder: str | None) -> "tuple[Tree, Prior]":
    if _is_tree_file(path):
        if folder is None:
            raise OptionError(f"--tree {path}: a tree file needs PRIOR, the prior that it was made for; give it")
        from fairseq_llrnn.prior.prior import Prior
        from llrnn_research.output_trees.output_tree import class_fingerprint

        prior = Prior.load(folder)
        fingerprint = class_fingerprint(prior.symbols, prior.output.class_of)
        return load_tree(path, fingerprint, prior.output.num_classes), prior
    need_fairseq()
    from llrnn_research.output_trees.plugin.checkpoint_tree import tree_of_checkpoint

    return tree_of_checkpoint(path, folder)


def _is_tree_file(path: str) -> bool:
    """Return whether a file is an archive with a tree; a checkpoint is an archive, too."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "parent.npy" in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False


def _path(tree: Tree, prior: "Prior", word: str, nodes: Sequence[NodeWords], where: str) -> list[NodeWords]:
    """Return the nodes from the root to the class of a word."""
    index = find_word(prior, word, where)
    by_number = {node.node: node for node in nodes}
    path = tree.path[prior.output.class_of[index]].tolist()
    return [by_number[node] for node in path if node in by_number]  # nodes without mass are not listed


def _as_json(
    path: str, tree: Tree, nodes: Sequence[NodeWords], paths: Sequence[tuple[str, list[NodeWords]]]
) -> dict[str, Any]:
    result: dict[str, Any] = {"tree": path, "classes": tree.leaves, "arity": tree.arity, "depth": tree.levels}
    if paths:
        result["paths"] = {word: [node.as_json() for node in path_nodes] for word, path_nodes in paths}
    else:
        result["nodes"] = [node.as_json() for node in nodes]
    return result


def _text(path: str, tree: Tree, nodes: Sequence[NodeWords]) -> str:
    lines = [
        f"tree {path}",
        "",
        f"{plural(tree.leaves, 'class', 'classes')}, arity {tree.arity:,}, depth {tree.levels}; "
        f"{plural(len(nodes), 'node')} with words",
    ]
    for depth in range(1 + nodes[-1].depth):
        level = [node for node in nodes if node.depth == depth]
        lines += ["", f"level {depth}   {plural(len(level), 'node')}", f"  {'node':>8} {'share':>7} {'words':>8}"]
        lines += [_line(node) for node in level[:NODES]]
        if len(level) > NODES:
            lines.append(f"  {'…':>8} {plural(len(level) - NODES, 'lighter node')}; --json lists all")
    return "\n".join(cut(line, WIDTH) for line in lines)


def _path_text(word: str, path: Sequence[NodeWords]) -> str:
    lines = [printable(word), f"  {'node':>8} {'share':>7} {'words':>8}", *map(_line, path)]
    return "\n".join(cut(line, WIDTH) for line in lines)


def _line(node: NodeWords) -> str:
    ellipsis = ["…"] if node.size > len(node.words) else []
    words = ", ".join([*map(printable, node.words), *ellipsis])
    return f"  {node.node:>8} {percent(node.share):>7} {node.size:>8,}  {words}"
