"""`--speller-start separate`: unknown words are spelled from context and decoder state by a way of their own."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from shell import Shell, assert_says
from tiny_world import World, evaluated, open_prior
from translation_world import TranslationWorld, assert_resumed_is_never_stopped, pairs

from fairseq_llrnn.open_vocabulary.open_strings import log_spelling

LINES = ["le chat xyzzy voit", "une Zoé 1999 bien"]
SMALL = ["--speller-embed-dim", "6", "--speller-hidden-size", "10"]
SEPARATE = [*SMALL, "--speller-start", "separate"]


@pytest.fixture(scope="module")
def opened(shell: Shell, world: World, translation: TranslationWorld) -> str:
    """A prior of the translation world whose open words a network spells."""
    return open_prior(shell, world, translation.data, "spelled", kind="neural")


@pytest.fixture(scope="module")
def setting(translation: TranslationWorld, opened: str) -> Any:
    return evaluated([*translation.train_args(prior=opened), *SEPARATE], double=True)


def slow_joined(decoder: Any, hidden: torch.Tensor, source: torch.Tensor, length: int) -> torch.Tensor:
    """[context; h] of a decoder state (H,) over a source (L, E) of which `length` states are no padding."""
    scores = torch.stack([(decoder.attention.query(hidden) * state).sum() for state in source[:length]])
    weights = scores.softmax(0)
    return torch.cat([sum(w * s for w, s in zip(weights, source[:length], strict=True)), hidden])


def test_the_value_by_its_definition(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """log p(<unk> | K) Σ_o r_o(K) P(w | [c; h], o), and the LSTM begins with tanh(W [c; h] + b)."""
    decoder = setting.model.decoder
    head, sample = decoder.head, pairs(setting.task, LINES)
    asked: list[tuple[torch.Tensor, ...]] = []
    plain = decoder.attention.forward
    monkeypatch.setattr(decoder.attention, "forward", lambda *given: asked.append(given) or plain(*given))
    _, extra = setting.model(**sample["net_input"])
    ((hidden, source, padding),) = asked
    target, unk, size = sample["target"], decoder.dictionary.unk(), len(setting.task.target_dictionary)
    found = head.target_log_probs(extra["batch"], target)
    of_known = head.target_log_probs(extra["batch"], target.masked_fill(target >= size, unk))
    scores, table = extra["batch"].kept["open_words"], head.open_words.table
    strings = (target >= size).nonzero().tolist()
    assert len(strings) == 3
    for row, place in strings:
        joined = slow_joined(decoder, hidden[row, place], source[row], int((~padding[row]).sum()))
        ids = target[row, place : place + 1].numpy()
        begun = torch.tanh(head.open_words.speller.start.weight @ joined + head.open_words.speller.start.bias)
        torch.testing.assert_close(torch.cat(head.open_words.speller.begin(joined[None]), dim=-1)[0, 0], begun)
        log_ngrams = torch.from_numpy(table.log_probs(ids))
        log_strings = head.open_words.speller.log_strings(joined[None], ids, log_ngrams)
        expected = of_known[row, place] + log_spelling(scores[row, place][None], log_strings)[0]
        torch.testing.assert_close(found[row, place], expected)
    # the same in parts, as an evaluation on little memory does it
    with torch.no_grad():
        monkeypatch.setattr("fairseq_llrnn.output.records.CELLS", 1)
        _, extra = setting.model(**sample["net_input"])
        assert extra["batch"].spelling is not None and not hasattr(extra["batch"], "positions")
        torch.testing.assert_close(head.target_log_probs(extra["batch"], target), found)


def test_gradients_of_a_spelling_reach_attention_and_not_the_attentional_state(setting: Any) -> None:
    decoder, sample = setting.model.decoder, pairs(setting.task, LINES[:1])
    setting.model.zero_grad()
    _, extra = setting.model(**sample["net_input"])
    target, size = sample["target"], len(setting.task.target_dictionary)
    ids = target[target >= size].numpy()
    spelled = decoder.head.open_words.speller.spelled.of(ids)
    decoder.head.open_words.speller.log_neural(extra["batch"].spelling[target >= size], spelled).sum().backward()
    assert decoder.attention.combine.weight.grad is None
    assert decoder.attention.query.weight.grad.abs().sum() > 0
    width = decoder.bridge.in_features + decoder.head.hidden_size
    assert decoder.head.open_words.speller.start.weight.shape == (20, width)


def test_a_search_spells_from_there(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, task = setting.model.decoder, setting.task
    bias = decoder.head.output.bias
    place = task.prior.output.features.index["SPECIAL:<unk>"]
    with torch.no_grad():  # unknown words are likely
        bias[place] += 12.0
    widths: list[int] = []
    words = decoder.head.open_words
    plain = words.strings

    def strings(hidden: torch.Tensor, *given: Any) -> Any:
        widths.append(hidden.size(1))
        return plain(hidden, *given)

    monkeypatch.setattr(words, "strings", strings)
    generator = task.build_generator([setting.model], GenerationConfig(beam=2, max_len_b=5))
    found = task.inference_step(generator, [setting.model], pairs(task, LINES))
    with torch.no_grad():
        bias[place] -= 12.0
    tokens = torch.cat([h["tokens"] for of_sentence in found for h in of_sentence])
    assert widths == [words.speller.hidden_size] and words.speller.hidden_size > decoder.head.hidden_size
    assert bool((tokens >= len(task.target_dictionary)).any()) and not bool((tokens == decoder.dictionary.unk()).any())


@pytest.mark.slow
def test_train_stop_resume_score_and_generate(
    translation: TranslationWorld, opened: str, shell: Shell, tmp_path: Path
) -> None:
    checkpoint = assert_resumed_is_never_stopped(shell, translation, tmp_path, SEPARATE, opened)
    task = [*translation.task_args(opened), "--path", checkpoint, "--beam", 2]
    sentence = translation.source("test")[0]
    done = shell.run("fairseq-interactive", *task, stdin=f"{sentence} yzzyx\n")
    assert sum(line.startswith("H-0\t") for line in done.out.splitlines()) == 1
    nbest = tmp_path / "nbest"
    target = " ".join(word[::-1] for word in sentence.split())
    hypotheses = [{"text": target, "score": -1.0}, {"text": f"{target} xyzzy", "score": -1.0}]
    nbest.write_text(json.dumps({"id": 0, "source": sentence, "hypotheses": hypotheses}) + "\n", encoding="utf-8")
    shell.run("llrnn", "rescore", "--path", checkpoint, "--nbest", nbest, "--out", tmp_path / "best")
    assert (tmp_path / "best").read_text(encoding="utf-8").startswith(target)


def test_where_it_makes_no_sense(translation: TranslationWorld, opened: str, shell: Shell) -> None:
    done = shell.run("fairseq-train", *translation.train_args(), "--speller-start", "separate", code=None)
    assert_says(done, "--speller-start separate: it needs a prior built with `llrnn prior --open-vocabulary neural`")
    done = shell.run(
        "fairseq-train", *translation.train_args(prior=opened), *SEPARATE, "--attention", "none", code=None
    )
    assert_says(done, "--speller-start separate: it needs attention on the source, found --attention none")
