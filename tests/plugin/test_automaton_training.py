"""What is looked at before training with grammars and cross-fitted n-grams, and sentences that are left out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import positions
import pytest
import torch
from automaton_prior import with_bigrams, with_grammar
from tiny_world import Setting, World, batch, build, randomised

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.features.dictionary import load_dictionary
from fairseq_llrnn.ngrams.background import ngram_from_text
from fairseq_llrnn.ngrams.ngrams import read_sentences
from fairseq_llrnn.plugin.data.zero_mass import check_training_sentences, check_whole_sentences
from fairseq_llrnn.prior.parts.automaton_part import AutomatonPart
from fairseq_llrnn.prior.prior import Prior

LINES = ["le chat voit la mer", "la rose", "la verte mer"]


def cross_fitted(world: World, folds: int = 3) -> Prior:
    words = load_dictionary(world.data / "dict.txt")
    made = ngram_from_text(read_sentences([world.place / "train.txt"], words), words, 3, folds)
    known = replace(Prior.load(world.prior("prior")), log_weights=made.log_weights)
    return known.with_part(AutomatonPart(made.automaton, "ngram"))


def losses(setting: Setting, lines: list[str], **options: Any) -> torch.Tensor:
    loss, _, _ = setting.criterion(setting.model, batch(setting.task.dictionary, lines), **options)
    return loss


def test_training_is_cross_fitted_and_validation_is_not(world: World) -> None:
    prior = cross_fitted(world)
    setting = build(world.train_args(), prior)
    assert prior.find(AutomatonPart).folds == 3
    with torch.no_grad():
        for parameter in setting.model.parameters():
            parameter.zero_()  # the model is its background
        lines = world.text("train")[:40]
        setting.model.train()
        training = losses(setting, lines, reduce=False)
        setting.model.eval()
        using = losses(setting, lines, reduce=False)
    assert training.mean() > using.mean() + 0.1, "it is surer of its own text than of a fold that it has not seen"
    background = setting.model.decoder.head.background
    sample = batch(setting.task.dictionary, lines)
    previous, target = sample["net_input"]["src_tokens"], sample["target"]
    expected = background.bind(text=previous)
    mass = positions.log_mass(expected, previous)
    own = positions.log_share(expected, previous, target) + mass.gather(
        2, background.class_of[target].unsqueeze(2)
    ).squeeze(2)
    mask = target.ne(setting.task.dictionary.pad())
    torch.testing.assert_close(training[mask], -(own - mass.logsumexp(2))[mask].float(), atol=1e-4, rtol=1e-4)


def test_sentences_without_probability_are_left_out(world: World) -> None:
    prior = with_grammar(Prior.load(world.prior("prior")), on_zero="skip")
    setting = randomised([*world.train_args(), "--label-smoothing", "0.1", "--adaptor-penalty", "0.1"], prior)
    mixed, size, log = setting.criterion(setting.model, batch(setting.task.dictionary, LINES))
    mixed.backward()
    gradients = [p.grad.clone() for p in setting.model.parameters()]
    setting.model.zero_grad()
    alone, alone_size, alone_log = setting.criterion(setting.model, batch(setting.task.dictionary, LINES[::2]))
    alone.backward()
    torch.testing.assert_close(mixed, alone)
    assert size == alone_size == 10
    for name in ("ntokens", "nsentences", "sample_size"):
        assert log[name] == alone_log[name]
    for one, other in zip(gradients, setting.model.parameters(), strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other.grad)
    setting.model.eval()
    setting.criterion(setting.model, batch(setting.task.dictionary, LINES))


def test_a_batch_of_nothing_but_such_sentences(world: World) -> None:
    from fairseq.logging import metrics

    setting = build(world.train_args(), with_grammar(Prior.load(world.prior("prior")), on_zero="skip"))
    loss, size, log = setting.criterion(setting.model, batch(setting.task.dictionary, ["la rose", "un roi"]))
    assert (loss.item(), size) == (0.0, 0)
    with metrics.aggregate(new_root=True) as found:
        setting.criterion.reduce_metrics([log])
    assert found["loss"].avg == 0.0


def check(setting: Setting, lines: list[str]) -> None:
    dictionary = setting.task.dictionary
    targets = [dictionary.encode_line(line, add_if_not_exist=False, append_eos=True).long() for line in lines]
    check_training_sentences(setting.task.prior, targets, dictionary, "train")


def test_what_training_looks_at_first(world: World, caplog: pytest.LogCaptureFixture) -> None:
    prior = Prior.load(world.prior("prior"))
    setting = build(world.train_args(), with_grammar(prior))
    check(setting, [LINES[0], LINES[2]])
    message = (
        "sentence 2 of the train data: the background gives 'rose' probability zero in 'la rose </s>' .token 2; 1 such "
        "sentences in all.; fix the grammar or the text, or build the prior with automaton.FILE, on_zero=skip. or "
        "on_zero=floor"
    )
    with pytest.raises(DataError, match=message):
        check(setting, LINES)
    check(build(world.train_args(), with_grammar(prior, on_zero="skip")), LINES)
    assert "1 of 3 sentences of the train data have probability zero under the background, and are left" in caplog.text
    check(build(world.train_args(), with_bigrams(prior, {"le": {"chat": 0.5}})), LINES)
    check(build(world.train_args()), LINES)


def test_positions_without_their_place_are_refused(world: World) -> None:
    """What fairseq-eval-lm --softmax-batch does: it hands over some positions, not where they are."""
    setting = build(world.train_args(), with_grammar(Prior.load(world.prior("prior"))))
    setting.model.eval()
    with torch.no_grad():
        hidden, extra = setting.model(**batch(setting.task.dictionary, LINES[::2])["net_input"])
        with pytest.raises(OptionError, match="^--softmax-batch: not supported; remove it: a batch is always scored i"):
            setting.model.get_normalized_probs((hidden.flatten(0, 1)[None, :3], extra), log_probs=True)


def test_blocks_that_cut_sentences(world: World) -> None:
    prior = Prior.load(world.prior("prior"))
    for mode in (None, "none"):
        with pytest.raises(OptionError, match="--sample-break-mode none: it cuts sentences, but .* is a grammar; use"):
            check_whole_sentences(with_grammar(prior), mode)
        with pytest.raises(OptionError, match="is cross-fitted n-grams, which look up whole training sentences"):
            check_whole_sentences(cross_fitted(world), mode)
        check_whole_sentences(prior, mode)
        check_whole_sentences(with_bigrams(prior, {"le": {"chat": 0.5}}), mode)
    for mode in ("eos", "complete"):
        check_whole_sentences(with_grammar(prior), mode)
        with pytest.raises(OptionError, match="--shorten-method truncate: it cuts sentences, .* a grammar; remove it"):
            check_whole_sentences(with_grammar(prior), mode, "truncate")
        check_whole_sentences(prior, mode, "truncate")


def test_a_task_looks_before_it_trains(world: World, tmp_path: Path) -> None:
    with_grammar(Prior.load(world.prior("prior"))).save(tmp_path / "prior")
    setting = build([*world.train_args(), "--prior", tmp_path / "prior"])
    with pytest.raises(DataError, match="sentence 1 of the train data: the background gives .* probability zero"):
        setting.task.load_dataset("train", combine=True)
    cut = build([*world.train_args(), "--prior", tmp_path / "prior", "--sample-break-mode", "none"])
    with pytest.raises(OptionError, match="--sample-break-mode none"):
        cut.task.load_dataset("train", combine=True)
    cut.task.load_dataset("valid")
