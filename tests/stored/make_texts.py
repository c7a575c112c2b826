"""Write the texts, lexicons and grammar that make.sh builds on into the current folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from discourse_texts import tiny_text
from evidence_world import KNOWN, MAPPED, UNKNOWN, pairs
from labels_world import examples
from piece_evidence_world import in_pieces
from tiny_grammar import grammar
from tiny_world import every_word_once, sentences, write_lexicon

SPLITS = {"train": 60, "valid": 4, "test": 5}


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


for seed, (split, count) in enumerate(SPLITS.items()):
    write(f"{split}.txt", sentences(count, seed) + (every_word_once() if split == "train" else []))
    if split == "train":
        bitext = pairs(count, seed, KNOWN, every_word_once())
    else:
        bitext = pairs(count, seed, [*KNOWN, *UNKNOWN])
    labelled = examples(count, seed)
    for side, lines in zip(("src", "tgt"), zip(*bitext, strict=True), strict=True):
        write(f"{split}.{side}", list(lines))
        write(f"pieces-{split}.{side}", [in_pieces(line, "sentencepiece") for line in lines])
    for side, lines in zip(("text", "labels"), zip(*labelled, strict=True), strict=True):
        write(f"{split}.{side}", list(lines))
    write(f"novel-{split}.txt", tiny_text(3 if split == "train" else 1, seed).splitlines())
write("map.tsv", [f"{source}\t{target}" for source, target in MAPPED.items()])
write("forms.tsv", [f"{word}\tchat\tNOUN\t_" for word in ("chat", "chats", "chatte")])
write_lexicon(Path("lexicon.tsv"))
write("grammar.txt", grammar().splitlines())
write("weights.tsv", ["le\t3", "la\t2", "chat\t0.5", "bien\t1"])
write("patterns.toml", ["[patterns]", 'Ends = ".*e"'])
for side in ("src", "tgt"):  # words that begin with the same two letters are forms of one lemma
    words = sorted(set(Path(f"train.{side}").read_text(encoding="utf-8").split()))
    write(f"lemmas.{side}.tsv", [f"{word}\t{word[:2]}\tX\t_" for word in words])
