"""Fine-tuning of a tiny random network, its probabilities, and unsuitable networks."""

import math
from pathlib import Path

import pytest
import torch
import transformers
from small_transformers import save_network

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.huggingface.fine_tuning import check_lines, fine_tune, load_causal

TRAIN = [f"le chat {noun} dort ." for noun in "abcdefgh"] * 4
VALID = ["le chat i dort .", "la souris dort ."]


@pytest.fixture(scope="module")
def tiny_network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_network(tmp_path_factory.mktemp("tiny"))


def by_hand(folder: Path, line: str) -> float:
    """Return −log p of a line and its end, token by token, after the end of a sentence as start."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).double().eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens, total = [tokenizer.eos_token_id], 0.0
    with torch.inference_mode():
        for token in (*tokenizer(line)["input_ids"], tokenizer.eos_token_id):
            total -= model(torch.tensor([tokens])).logits[0, -1].log_softmax(0)[token].item()
            tokens.append(token)
    return total


def test_the_best_epoch_is_saved(tiny_network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = fine_tune(tiny_network, tmp_path / "model", TRAIN, VALID, 0.01, 1, 12)
    printed = [float(line.split()[-4]) for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == found.epochs and min(printed) == printed[found.best_epoch - 1] < printed[0]
    assert found.is_converged == (found.epochs > found.best_epoch)
    scorer = load_causal(tmp_path / "model")
    expected = sum(by_hand(tmp_path / "model", line) for line in VALID)
    assert scorer.score(VALID, unit="nats", per="text") == pytest.approx(expected, rel=1e-4)
    characters = sum(len(line) + 1 for line in VALID)
    assert printed[found.best_epoch - 1] == pytest.approx(expected / math.log(2) / characters, abs=1e-3)
    untrained = load_causal(tiny_network).score(VALID, unit="nats", per="text")
    assert expected < 0.95 * untrained


def test_the_seed_fixes_the_result(tiny_network: Path, tmp_path: Path) -> None:
    scores = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fine_tune(tiny_network, tmp_path / name, TRAIN, VALID, 0.01, seed, 1)
        scores.append(load_causal(tmp_path / name).score(VALID))
    assert scores[0] == scores[1] != scores[2]


def test_a_stop_during_a_save_keeps_the_last_whole_model(
    tiny_network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "model"
    fine_tune(tiny_network, out, TRAIN, VALID, 0.01, 1, 1)
    before = load_causal(out).score(VALID)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "save_pretrained", stop)
    with pytest.raises(KeyboardInterrupt):
        fine_tune(tiny_network, out, TRAIN, VALID, 0.01, 2, 1)
    assert load_causal(out).score(VALID) == before and [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("kind", ["unigram", "wordpiece"])
def test_a_tokenizer_that_cannot_write_every_string(kind: str, tmp_path: Path) -> None:
    folder = save_network(tmp_path / kind, kind)
    with pytest.raises(DataError, match=f"{kind}: expected a tokenizer that writes every string, found .* for 'Ünïq"):
        fine_tune(folder, tmp_path / "model", ["le chat dort", "Ünïque"], VALID, 0.01, 1, 1)
    assert not (tmp_path / "model").exists()


def test_a_line_that_is_too_long(tiny_network: Path) -> None:
    scorer = load_causal(tiny_network)
    check_lines(scorer, ["été 日本", VALID[0]], tiny_network)
    with pytest.raises(DataError, match=r"expected lines of at most 63 tokens, found 100 in 'Q+'; break the line"):
        check_lines(scorer, ["Q" * 100], tiny_network)
