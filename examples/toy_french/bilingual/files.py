"""Write the bilingual corpus into a folder, every file under a temporary name first."""

import json
from dataclasses import asdict
from pathlib import Path

from fairseq_llrnn.files.atomic_write import write_lines
from toy_french.bilingual.corpus import Bitext, Pair
from toy_french.files import lexicon_rows, vocabulary_rows, writing_into

MEASURED = ("valid", "test")  # the splits whose facts are written


def write_bitext(bitext: Bitext, folder: Path) -> None:
    """Write {train,valid,test}.{en,fr}, {valid,test}.facts.jsonl, mapping.tsv, lexicon.tsv and vocabulary.fr.txt."""
    with writing_into(folder):
        for split, pairs in bitext.splits.items():
            write_lines(folder / f"{split}.en", (" ".join(pair.english) for pair in pairs))
            write_lines(folder / f"{split}.fr", (" ".join(pair.french) for pair in pairs))
        for split in MEASURED:
            write_lines(folder / f"{split}.facts.jsonl", map(_facts, bitext.splits[split]))
        write_lines(folder / "mapping.tsv", map("\t".join, bitext.mapping()))
        write_lines(folder / "lexicon.tsv", lexicon_rows(bitext.lexicon))
        write_lines(folder / "vocabulary.fr.txt", vocabulary_rows(bitext.lexicon, bitext.counts))


def _facts(pair: Pair) -> str:
    facts = {
        "copies": [asdict(fact) for fact in pair.copies],
        "agreements": [asdict(fact) for fact in pair.agreements],
    }
    return json.dumps(facts, ensure_ascii=False)
