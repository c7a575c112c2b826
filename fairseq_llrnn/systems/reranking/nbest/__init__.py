"""N-best lists: several hypotheses for each sentence of a text, in the formats of other systems.

    lists.py            NBest, Hypothesis, Ranked, and the interface of a format
    fairseq_output.py   S-, H-, D-, P-… lines of fairseq-generate and fairseq-interactive
    moses.py            id ||| hypothesis ||| name= value … ||| score
    json_lines.py       one JSON object a line
    marks.py            marks of decoders, factors of words
    reading.py          open_nbest: detects the format, checks the list, yields sentences in order of their ids

Sentences are numbered from 0. Lists are streamed: only one sentence's hypotheses are in memory at a time.
"""

from fairseq_llrnn.systems.reranking.nbest.lists import Hypothesis, NBest, Ranked
from fairseq_llrnn.systems.reranking.nbest.reading import FORMATS, WITHOUT_HYPOTHESES, NBestFile, open_nbest

__all__ = ["FORMATS", "WITHOUT_HYPOTHESES", "Hypothesis", "NBest", "NBestFile", "Ranked", "open_nbest"]
