"""n-best lists: several hypotheses for each sentence of a text, as other systems write them.

    lists.py            NBest, Hypothesis, Ranked; what a format offers
    fairseq_output.py   S-, H-, D-, P-… lines of fairseq-generate and fairseq-interactive
    moses.py            id ||| hypothesis ||| name= value … ||| score
    json_lines.py       one JSON object a line
    reading.py          open_nbest: which format it is, whether it is sound, and the sentences in order of their ids

Sentences are numbered from 0. Everything streams: only one sentence's hypotheses are in memory at a time.
"""

from fairseq_llrnn.systems.reranking.nbest.lists import Hypothesis, NBest, Ranked
from fairseq_llrnn.systems.reranking.nbest.reading import FORMATS, WITHOUT_HYPOTHESES, NBestFile, open_nbest, settle

__all__ = ["FORMATS", "WITHOUT_HYPOTHESES", "Hypothesis", "NBest", "NBestFile", "Ranked", "open_nbest", "settle"]
