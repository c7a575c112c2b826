"""A small French-like language, generated here: the corpus of the demo and of the tests.

Sentences come from a grammar with gender and number agreement over a distance, so that every word has gold features and
a gold head. Some forms are withheld from training on purpose (`stock`), and held-out questions test them (`probes`).
Everything follows from one seed: same seed, same bytes.

Ordinary and invented words (`words`, `closed`, `ordinary`, `formation`) form the `stock`. A Speaker builds `phrases`
and `clauses` from it, as `trees`. `corpus` collects texts and probes, `files` writes them. `bilingual` also expresses
sentences of the same grammar in English, for a parallel corpus.

Paper: §3 (a number is more probable than a place after "the cost was", though neither was seen there).
"""

from toy_french.corpus import Corpus, make_corpus, summary
from toy_french.files import write_corpus
from toy_french.probes import Probe

__all__ = ["Corpus", "Probe", "make_corpus", "summary", "write_corpus"]
