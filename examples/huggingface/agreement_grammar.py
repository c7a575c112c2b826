"""Write a grammar of short French sentences in which determiners, adjectives, participles and verbs agree with their
noun.

It is made from the corpus' lexicon: one nonterminal for each part of speech with a gender and a number,
`NOUN_Fem_Plur`, and the few rules below, once for each gender and number. A model with this grammar can write no other
sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

GENDERS, NUMBERS = ("Masc", "Fem"), ("Sing", "Plur")

# {g} and {n}: a gender and a number
RULES = """
S -> STATEMENT "." | ADV "," STATEMENT "."
STATEMENT -> SUBJECT_{g}_{n} BE_{n} PREDICATE_{g}_{n} | SUBJECT_{g}_{n} DOES_{n} OBJECT
SUBJECT_{g}_{n} -> NP_{g}_{n} | PRON_{g}_{n}
OBJECT -> NP_{g}_{n} | "à" NP_{g}_{n} | "à" PLACE
NP_{g}_{n} -> DET_{g}_{n} NOUN_{g}_{n} | DET_{g}_{n} NOUN_{g}_{n} ADJ_{g}_{n} | DET_{g}_{n} ADJ_{g}_{n} NOUN_{g}_{n}
PREDICATE_{g}_{n} -> QUALITY_{g}_{n} | ADV QUALITY_{g}_{n} | ADV ADV QUALITY_{g}_{n}
QUALITY_{g}_{n} -> ADJ_{g}_{n} | PART_{g}_{n}
BE_{n} -> AUX_{n} | "ne" AUX_{n} "pas" | "n'" AUX_{n} "pas"
DOES_{n} -> VERB_{n} | VERB_{n} ADV | "ne" VERB_{n} "pas" | "n'" VERB_{n} "pas"
""".strip().splitlines()


def write_grammar(lexicon: Path, grammar: Path) -> None:
    """Write the grammar of the words of a lexicon: form, lemma, UPOS and FEATS in each line."""
    words = terminals(lexicon.read_text(encoding="utf-8").splitlines())
    cells = list(product(GENDERS, NUMBERS))
    rules = list(dict.fromkeys(rule.format(g=g, n=n) for rule in RULES for g, n in cells))
    grammar.write_text("\n".join([*rules, *words]) + "\n", encoding="utf-8")


def terminals(rows: list[str]) -> Iterator[str]:
    """Return a rule for each part of speech, gender and number, with all its words. A word without gender has both."""
    found: dict[str, dict[str, None]] = {}
    for form, lemma, upos, feats in (row.split("\t") for row in rows):
        features = dict(pair.split("=") for pair in feats.split("|")) if feats != "_" else {}
        for name in nonterminals(lemma, upos, features):
            found.setdefault(name, {})[form] = None
    for name, words in found.items():
        yield f"{name} -> " + " | ".join(f'"{word}"' for word in words)


def nonterminals(lemma: str, upos: str, features: dict[str, str]) -> Iterator[str]:
    """Return the nonterminals of a word."""
    if upos == "ADV" and "Polarity" not in features:
        yield "ADV"
    if features.get("NameType") == "Geo":
        yield "PLACE"
    if features.get("Person", "3") != "3" or features.get("NameType") or (upos == "AUX" and lemma != "être"):
        return
    genders = [features["Gender"]] if "Gender" in features else GENDERS
    numbers = [features["Number"]] if "Number" in features else NUMBERS
    kind = {"Part": "PART", "Inf": ""}.get(features.get("VerbForm", ""), upos)
    if kind in ("VERB", "AUX"):
        yield from (f"{kind}_{n}" for n in numbers)
    elif kind in ("DET", "NOUN", "ADJ", "PART") or (kind == "PRON" and "Gender" in features):
        yield from (f"{kind}_{g}_{n}" for g, n in product(genders, numbers))
