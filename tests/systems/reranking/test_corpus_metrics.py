"""BLEU and chrF from summed statistics are sacrebleu's own corpus scores."""

import sys

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.systems.reranking.metrics import METRICS, CorpusMetric

REFERENCES = ["deux hommes sont ici , dans la rue .", "un chat noir dort", "", "L' été , il fait très chaud ."]
HYPOTHESES = [
    ["deux hommes sont là , dans la rue .", "deux hommes sont ici .", ""],
    ["un chat noir dort", "le chat noir dort bien ici"],
    ["rien"],
    ["l' été , il fait chaud .", "L'été, il fait très chaud."],
]
SACREBLEU = {"bleu": sacrebleu.metrics.BLEU(force=True), "chrf": sacrebleu.metrics.CHRF()}


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=40, deadline=None)
@given(choice=st.tuples(*(st.integers(0, len(h) - 1) for h in HYPOTHESES)))
def test_sums_of_statistics_give_sacrebleus_corpus_score(name: str, choice: tuple[int, ...]) -> None:
    metric = CorpusMetric(name)
    tables = [metric.statistics(h, r) for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    sums = sum(table[k] for table, k in zip(tables, choice, strict=True))
    chosen = [h[k] for h, k in zip(HYPOTHESES, choice, strict=True)]
    expected = SACREBLEU[name].corpus_score(chosen, [REFERENCES])
    assert metric.score(np.asarray(sums)) == expected.score
    assert metric.name == expected.name
    assert metric.signature() == str(SACREBLEU[name].get_signature())


def test_text_in_tokens_may_be_left_as_it_is() -> None:
    metric, same = CorpusMetric("bleu", "none"), sacrebleu.metrics.BLEU(tokenize="none")
    hypotheses, references = ["l&apos; eau , bleue .", "un mot de plus"], ["l&apos; eau, bleue .", "un mot de plus"]
    sums = sum(metric.statistics([h], r)[0] for h, r in zip(hypotheses, references, strict=True))
    assert metric.score(np.asarray(sums)) == same.corpus_score(hypotheses, [references]).score < 100
    assert metric.signature() == str(same.get_signature()) and "tok:none" in metric.signature()
    assert CorpusMetric("bleu").compare([references, hypotheses], references).scores[1] > 99.9


def test_chance_is_not_significant_and_equals_are_not_tested() -> None:
    references = [f"la phrase numéro {n} est ici , dans la rue {n % 7}" for n in range(120)]
    one = [line.replace("phrase", "ligne") if n == 3 else line for n, line in enumerate(references)]
    other = [line.replace("dans", "en") if n in (7, 8) else line for n, line in enumerate(references)]
    found = CorpusMetric("bleu").compare([one, other], references)
    _, p = found.p_values
    assert p is not None and p > 0.05
    assert CorpusMetric("bleu").compare([one, one], references).p_values == [None, None]


def test_without_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(OptionError, match=r"expected the library sacrebleu, .*'\.\[metrics\]'"):
        CorpusMetric("bleu")
