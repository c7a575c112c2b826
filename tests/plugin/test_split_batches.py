"""Validation and fairseq's scorer look at large batches in parts: the same answers, with evidence and experts, too."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import evidence_world
import pytest
import torch
from evidence_world import PREFIXES, EvidenceWorld
from expert_models import options
from fairseq.sequence_scorer import SequenceScorer
from tiny_world import World, batch, build, randomise
from translation_world import TranslationWorld, pairs

from fairseq_llrnn.registry import lost

SENTENCES = ["le chat voit la mer", "une pomme verte tient bien", "le roi", "le chat voit la mer", "bien"]


CASES = ["language model", *([] if lost("--expert") else ["experts"]), "llrnn_lstm", "llrnn_transformer"]


@pytest.fixture(params=CASES)
def case(
    request: pytest.FixtureRequest,
    world: World,
    translation: TranslationWorld,
    evidence: EvidenceWorld,
    expert_file: Path,
) -> tuple[Any, dict[str, Any]]:
    """A setting and a batch; the last two with evidence."""
    if request.param.startswith("llrnn"):
        setting = evidence_world.make(evidence, request.param, "lexical")
        return setting, evidence_world.batch(setting.task, evidence_world.SENTENCES, PREFIXES)
    if request.param == "experts":
        setting = build([*translation.train_args(), *options(expert_file, "Mirror", "Said")])
        sample = pairs(setting.task, SENTENCES)
    else:
        setting = build([*world.train_args(), "--label-smoothing", "0.1"])
        sample = batch(setting.task.dictionary, SENTENCES)
    randomise(setting.model, scale=0.3)
    setting.model.eval()
    return setting, sample


def answers(setting: Any, sample: dict[str, Any]) -> list[Any]:
    """What the criterion says by position, and logs; and the targets' log p by fairseq's scorer, alone and of two."""
    with torch.no_grad():
        found = list(setting.criterion(setting.model, sample, reduce=False))
    scorer = setting.task.build_generator([setting.model], Namespace(score_reference=True, print_alignment=None))
    assert isinstance(scorer, SequenceScorer)
    for models in ([setting.model], [setting.model] * 2):
        found.append([hypotheses[0]["positional_scores"] for hypotheses in scorer.generate(models, sample)])
    return found


def test_parts_say_what_the_whole_says(case: tuple[Any, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    setting, sample = case
    whole = answers(setting, sample)
    monkeypatch.setattr("fairseq_llrnn.output.records.CELLS", 1)
    with torch.no_grad():
        assert setting.model(**sample["net_input"])[1]["batch"].rest
    split = answers(setting, sample)
    torch.testing.assert_close(split, whole, rtol=1e-5, atol=1e-5)
    # and both scorers say what the criterion says
    log_p = -(setting.criterion(setting.model, sample, reduce=False)[0])
    if not setting.criterion.label_smoothing:
        real = sample["target"].ne(setting.task.target_dictionary.pad())
        for scores in split[3:]:
            torch.testing.assert_close(torch.cat(scores).float(), log_p[real], rtol=1e-4, atol=1e-4)


def test_only_what_the_scorer_was_given_may_be_asked(world: World) -> None:
    setting = build(world.train_args())
    sample = batch(setting.task.dictionary, SENTENCES)
    with torch.no_grad():
        answer = setting.model.eval().get_normalized_probs(setting.model(**sample["net_input"]), True, sample)
        assert answer.data.gather(2, sample["target"].unsqueeze(2)).shape == (*sample["target"].shape, 1)
        with pytest.raises(ValueError, match="expected the targets of the sample"):
            answer.gather(2, sample["net_input"]["src_tokens"].unsqueeze(2))
