"""An n-best list in all formats, and what is said of one that cannot be used."""

import math
import re
from collections.abc import Callable

import pytest

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.systems.reranking.nbest import NBestFile

# Two sentences of two hypotheses, in the order in which fairseq-generate may print them.
FAIRSEQ = """\
2026-11-21 12:00:00 | INFO | fairseq_cli.generate | {'_name': None}
S-1\tle roi
T-1\tthe king
H-1\t-0.5\tth@@ e king
D-1\t-0.5\tthe king
P-1\t-0.2000 -0.8000
A-1\t0-0 1-1
H-1\t-1.25\ta king
D-1\t-1.25\ta king
P-1\t-1.0000 -1.5000
S-0\tla mer
T-0\tthe sea
H-0\t-2.0\tthe sea
D-0\t-2.0\tthe sea
P-0\t-2.0000
H-0\t-3.0\t
D-0\t-3.0\t
P-0\t-3.0000
Generate test with beam=2: BLEU4 = 12.34, 50.0/20.0 (BP=1.000)
"""
MOSES = """\
0 ||| the sea ||| LM= -3.5 TM= -1 -2 w=2 ||| -2.0 ||| 0=0
0 ||| ||| LM= -4 TM= -1 -3 w=0 ||| -3.0 ||| 0=0
1 ||| the king ||| LM= -5 TM= 0 -1e-3 w=2 ||| -0.5 ||| 0=0
1 ||| a king ||| LM= -6 TM= 0 0 w=2 ||| -1.25 ||| 0=0
"""
JSON = """\
{"id": 0, "source": "la mer", "hypotheses": [{"text": "the sea", "score": -2, "features": {"lm": -3.5}}, \
{"text": "", "score": -3.0, "features": {"lm": -4}}], "domain": "test"}
{"id": 1, "source": "le roi", "hypotheses": [{"text": "the king", "score": -0.5, "features": {"lm": -5}, "steps": 3}, \
{"text": "a king", "score": -1.25, "features": {"lm": -6}}]}
"""
LISTS = {"fairseq": FAIRSEQ, "moses": MOSES, "json": JSON}
UNIT = {"fairseq": math.log(2), "moses": 1.0, "json": 1.0}

Open = Callable[..., NBestFile]


def failure(opened: Open, text: str | bytes, format_name: str | None = None) -> str:
    """What is said of a list, without its path."""
    with pytest.raises(DataError) as error:
        opened(text, format_name)
    assert "/list" in str(error.value)
    return re.sub(r"^\S*/list(, |: )?", "", str(error.value))
