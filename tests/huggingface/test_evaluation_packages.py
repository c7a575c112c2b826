"""lm-eval and minicons (extra `eval`) score with `Prior.tokenizer` and give our numbers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_llrnn.prior import Recipe, build_prior

transformers = pytest.importorskip("transformers")
from fairseq_llrnn import LogLinearForCausalLM  # noqa: E402

LINES = ["le chat dort .", "la xyzzy .", "le le"]
WHY = "needs the extra eval"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    text = tmp_path_factory.mktemp("text") / "train.txt"
    text.write_text("le chat dort .\nla table dort .\n", encoding="utf-8")
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *"le la chat table dort .".split()]
    prior = build_prior(symbols, Recipe(text=text, top_words="all", background="ngram:2"))
    torch.manual_seed(1)
    config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=12)
    return LogLinearForCausalLM.from_config(config, prior).eval()


def log_ps(model: Any) -> list[list[float]]:
    """Of the words and the end of each line."""
    return [[-row.surprisal for row in model.surprisals([line], unit="nats")] for line in LINES]


def test_minicons(model: Any) -> None:
    scorer = pytest.importorskip("minicons.scorer", reason=WHY)
    theirs = scorer.IncrementalLMScorer(model, "cpu", tokenizer=model.head.prior.tokenizer())
    whole = theirs.sequence_score(LINES, reduction=lambda x: x.sum(0).item(), eos_token=True)
    assert whole == pytest.approx([sum(each) for each in log_ps(model)], abs=1e-4)
    words = theirs.sequence_score(LINES, reduction=lambda x: x.sum(0).item())
    assert words == pytest.approx([sum(each[:-1]) for each in log_ps(model)], abs=1e-4)
    rows = theirs.token_score(LINES[:1], surprisal=True, base_two=True)[0]
    ours = model.surprisals(LINES[:1])[:-1]
    assert [token for token, _ in rows[1:]] == [row.word for row in ours]
    assert [bits for _, bits in rows[1:]] == pytest.approx([row.surprisal for row in ours], abs=1e-4)


def test_lm_eval(model: Any, tmp_path: Path) -> None:
    models = pytest.importorskip("lm_eval.models.huggingface", reason=WHY)
    from lm_eval.api.instance import Instance

    tokenizer = model.head.prior.tokenizer()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    theirs = models.HFLM(pretrained=model, tokenizer=tokenizer, device="cpu", batch_size=2, max_length=12)

    def asked(kind: str, *arguments: str) -> Any:
        return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)

    # as in BLiMP: no context, the sentence alone; `</s>` behind it scores the end as well
    ends = theirs.loglikelihood([asked("loglikelihood", "", f"{line} </s>") for line in LINES])
    assert [log_p for log_p, _ in ends] == pytest.approx([sum(each) for each in log_ps(model)], abs=1e-4)
    words = theirs.loglikelihood([asked("loglikelihood", "", line) for line in LINES])
    assert [log_p for log_p, _ in words] == pytest.approx([sum(each[:-1]) for each in log_ps(model)], abs=1e-4)
    (after,) = theirs.loglikelihood([asked("loglikelihood", "le chat", " dort .")])
    assert after[0] == pytest.approx(sum(log_ps(model)[0][2:4]), abs=1e-4)
    alone = models.HFLM(pretrained=model, tokenizer=tokenizer, device="cpu", max_length=12, add_bos_token=False)
    rolled = alone.loglikelihood_rolling([asked("loglikelihood_rolling", f"{line} </s>") for line in LINES])
    assert rolled == pytest.approx([sum(each) for each in log_ps(model)], abs=1e-4)
