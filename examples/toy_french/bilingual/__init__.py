"""English-French pairs on top of the French-like language: the corpus of the translation example and of its tests.

Each sentence is built once, as a French tree (`speaker`, `clauses`, with the constructions of the monolingual corpus),
and said in both languages: read off in French, rendered in English (`rendering`) with the words of `glossary` or
invented ones (`stock`). So every pair has gold facts (`facts`), and the texts need no other ones.

    in 1917 , the fragile letters that the girl has closed cost 57,843 euros .
    en 1917 , les lettres fragiles que la fille a fermées coûtent 57.843 euros .

Both sides are tokenised, and lower-case save for names, codes and, in English, months: what `evidence` finds by a rule.

* **To copy or map**: numbers, times, codes, names, months; about two thirds of those in valid and test occur in no
  training sentence of either language. `mapping.tsv` holds the English and French form of each that changes.
* **To agree**: French adjectives and participles, in gender and number, with a noun that may stand a clause away;
  English marks neither. The English words decide both, save that an invented name does not tell the gender of who
  bears it but by its ending. Some forms never occur in training (`toy_french.stock`), other forms of the word do.
* **Rare words**: of the French words to translate, half the types occur fewer than six times in training.

The files (`files`): a line of `{valid,test}.facts.jsonl` belongs to the pair in the same line of the texts,

    {"copies": [{"source": 12, "target": 12, "kind": "number", "english": "57,843", "french": "57.843",
                 "seen": false}, …],
     "agreements": [{"target": 10, "controller": 4, "form": "fermées", "lemma": "fermer", "upos": "VERB",
                     "gender": "Fem", "number": "Plur", "seen": true}, …]}

with positions from 0. A translation copied wrongly where it has a token with a digit or a capital that is no
`french` of its pair; it agreed wrongly where it has another adjective form or participle of a `lemma` in place of
the `form`.

`lexicon.tsv` (form, lemma, UPOS, FEATS) has all French analyses but those of numbers, codes and names that training
does not show; `vocabulary.fr.txt` is a dictionary of the same forms for `fairseq-preprocess --tgtdict`, with their
counts in training, 0 if unseen.
"""

from toy_french.bilingual.corpus import Bitext, Pair, make_bitext, summary
from toy_french.bilingual.facts import Agreement, Copy
from toy_french.bilingual.files import write_bitext

__all__ = ["Agreement", "Bitext", "Copy", "Pair", "make_bitext", "summary", "write_bitext"]
