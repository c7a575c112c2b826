"""English-French pairs on top of the French-like language: the corpus of the translation example and of its tests.

Each sentence is built once, as a French tree (`speaker`, `clauses`, with the constructions of the monolingual corpus),
and expressed in both languages: read in French, rendered in English (`rendering`) with the words of `glossary` or
invented ones (`stock`). So every pair has gold facts (`facts`).

    in 1917 , the fragile letters that the girl has closed cost 57,843 euros .
    en 1917 , les lettres fragiles que la fille a fermées coûtent 57.843 euros .

Both sides are tokenised, and lower-case except for names, codes and, in English, months, which `evidence` finds.

* **To copy or map**: numbers, times, codes, names, months; about two thirds of those in valid and test occur in no
  training sentence of either language. `mapping.tsv` holds the English and French form of each that changes.
* **To agree**: French adjectives and participles, in gender and number, with a noun that may be a clause away.
  English marks neither. The English words determine both, except that the gender of an invented name depends on its
  ending. Some forms never occur in training (`toy_french.stock`), other forms of the word do.
* **Rare words**: of the French words to translate, half the types occur fewer than six times in training.

The files (`files`): a line of `{valid,test}.facts.jsonl` belongs to the pair in the same line of the texts,

    {"copies": [{"source": 12, "target": 12, "kind": "number", "english": "57,843", "french": "57.843",
                 "seen": false}, …],
     "agreements": [{"target": 10, "controller": 4, "form": "fermées", "lemma": "fermer", "upos": "VERB",
                     "gender": "Fem", "number": "Plur", "seen": true}, …]}

with positions from 0. A translation has a wrong copy if it has a token with a digit or a capital that is no `french`
of its pair. It has a wrong agreement if it has another adjective form or participle of a `lemma` instead of the
`form`.

`lexicon.tsv` (form, lemma, UPOS, FEATS) has all French analyses, except those of numbers, codes and names outside the
training text. `vocabulary.fr.txt` is a dictionary of the same forms for `fairseq-preprocess --tgtdict`, with their
counts in training, 0 if unseen.
"""

from toy_french.bilingual.corpus import Bitext, Pair, make_bitext, summary
from toy_french.bilingual.facts import Agreement, Copy
from toy_french.bilingual.files import write_bitext

__all__ = ["Agreement", "Bitext", "Copy", "Pair", "make_bitext", "summary", "write_bitext"]
