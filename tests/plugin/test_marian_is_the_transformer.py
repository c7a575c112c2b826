"""The head on Marian and llrnn_transformer of fairseq are one model: with equal weights, equal answers."""

import os
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from tiny_world import evaluated
from translation_world import TranslationWorld, pairs

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

from transformers import MarianConfig

from fairseq_llrnn import Prior
from fairseq_llrnn.huggingface import LogLinearForSeq2SeqLM

LAYERS = {"layers": 2, "attention_heads": 2, "ffn_dim": 24}
SIZES = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in LAYERS.items()}
OWN = {"d_model": 16, "scale_embedding": True, "activation_function": "relu", "max_position_embeddings": 64}


def with_weights_of(fairseq: Any, prior: Prior) -> Any:
    """The same names but for three, and fairseq's table of positions, which begins behind `<pad>`."""
    words = fairseq.encoder.embed_tokens.num_embeddings
    model = LogLinearForSeq2SeqLM.from_config(MarianConfig(vocab_size=words, **SIZES, **OWN), prior)
    names = (("decoder.head.", "head."), ("decoder.body.", "model.decoder."), ("encoder.", "model.encoder."))
    state = {}
    for name, value in fairseq.state_dict().items():
        own, new = next(pair for pair in names if name.startswith(pair[0]))
        state[new + name.removeprefix(own)] = value
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert {name.rsplit(".", 2)[-2] for name in missing} == {"embed_positions"}
    assert all(name.endswith(("_float_tensor", ".version")) for name in unexpected), unexpected
    with torch.no_grad():
        for side, body in (("encoder", fairseq.encoder), ("decoder", fairseq.decoder.body)):
            table = getattr(model.model, side).embed_positions.weight
            table.copy_(type(body.embed_positions).get_embedding(66, 16, 1)[2:66])
    return model.eval()


@pytest.mark.parametrize("prior", ["prior", "lexical"])
def test_log_probabilities_and_searches_are_equal(translation: TranslationWorld, prior: str) -> None:
    args = [*translation.train_args("llrnn_transformer", prior), "--feature-input", "--tie-features"]
    setting = evaluated(args, scale=0.3)
    head = setting.model.decoder.head
    end = head.output.rows.dense()[head.output.class_of[head.eos]] > 0
    with torch.no_grad():  # so that all hypotheses end before the limit, where fairseq would force them to
        head.output.bias[end] += 3.0
    model = with_weights_of(setting.model, setting.task.prior)
    sample = pairs(setting.task, translation.world.text("test")[:6])
    source, target = sample["net_input"]["src_tokens"], sample["target"]
    rows = [row[row != 1] for row in source]  # fairseq pads sources on the left
    right = torch.nn.utils.rnn.pad_sequence(rows, True, 1)
    with torch.inference_mode():
        output = setting.model(**sample["net_input"])
        expected = setting.model.get_normalized_probs(output, log_probs=True)
        found = model(input_ids=right, decoder_input_ids=model.head.previous(target)).logits
        real = target.ne(1)
        torch.testing.assert_close(found[real], expected[real], rtol=1e-4, atol=1e-4)
        cfg = GenerationConfig(beam=4, max_len_a=0.0, max_len_b=15, lenpen=1.0)
        generator = setting.task.build_generator([setting.model], cfg)
        theirs = setting.task.inference_step(generator, [setting.model], sample)
        ours = model.generate(  # at least a word, as fairseq
            right,
            num_beams=4,
            min_new_tokens=1,
            max_new_tokens=16,
            early_stopping=True,
            return_dict_in_generate=True,
            output_scores=True,
        )
    for hypotheses, row, score in zip(theirs, ours.sequences.tolist(), ours.sequences_scores.tolist(), strict=True):
        best = hypotheses[0]
        assert row[1 : row.index(2, 1) + 1] == best["tokens"].tolist()
        assert score == pytest.approx(best["score"].item(), abs=1e-4)
