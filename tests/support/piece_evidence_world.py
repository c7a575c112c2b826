"""The world of evidence_world.py in pieces: words of at most four letters are whole, all others single characters."""

from __future__ import annotations

from pathlib import Path

from evidence_world import EvidenceWorld, write_data
from shell import Shell
from tiny_world import World

from fairseq_llrnn.features.subwords import CONVENTIONS

POST_PROCESS = {"sentencepiece": "sentencepiece", "bpe": "subword_nmt"}  # fairseq's names


def in_pieces(line: str, convention: str) -> str:
    """A line of words in pieces."""
    return " ".join(piece for word in line.split() for piece in _pieces(word, convention))


def _pieces(word: str, convention: str) -> list[str]:
    mark = CONVENTIONS[convention].mark
    parts = [word] if word.isalpha() and len(word) <= 4 and word[:1].islower() else list(word)
    if CONVENTIONS[convention].mark_begins:
        return [mark(parts[0]), *parts[1:]]
    return [*map(mark, parts[:-1]), parts[-1]]


def words_of(line: str, convention: str) -> list[str]:
    """The words of a line in pieces."""
    style = CONVENTIONS[convention]
    return [style.join(pieces) for pieces in style.split_words(line.split())]


def make_piece_evidence_world(place: Path, world: World, shell: Shell, convention: str) -> EvidenceWorld:
    """Write the pairs, then run fairseq-preprocess and `llrnn prior`."""
    made = EvidenceWorld(place)
    table = write_data(made, shell, "--joined-dictionary", spelled=lambda line: in_pieces(line, convention))
    shell.run(
        "llrnn", "prior", "--dict", made.data / "dict.tgt.txt", "--pieces", convention, "--count-text",
        place / "train.tgt", "--lexicon", world.place / "lexicon.tsv", "--suffixes", 2, "--shapes", "--top-words",
        "all", "--lexical-translation", made.data, "--set", "translations.aligner=ibm1", "--evidence",
        "numbers,names,copies",
        "--set", f"evidence.mapping={table}", "--set", "evidence.unsupported.numbers=0.5", "--out",
        made.data / "lexical",
    )  # fmt: skip
    return made
