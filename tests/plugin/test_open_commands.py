"""An open vocabulary through the commands: prior, training, resuming, perplexity, searches, scores of any text."""

import copy
import itertools
import json
import logging
import math
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from omegaconf import OmegaConf
from shell import Shell
from small_corpus import Llrnn
from tiny_world import World, batch, build, open_prior, randomise, randomised

import fairseq_llrnn
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evaluation.texts import LineScore, sum_of
from fairseq_llrnn.plugin.data.evidence_data import RareWordAliases
from fairseq_llrnn.plugin.scoring.text_bits import TextScorer
from fairseq_llrnn.plugin.search.spell_unknown import spell_unknown
from fairseq_llrnn.prior.parts.open_vocabulary import OpenVocabularyPart
from fairseq_llrnn.prior.prior import Prior

ENDS = ["--sample-break-mode", "eos", "--tokens-per-sample", "64"]


@pytest.fixture(scope="module")
def opened(shell: Shell, world: World) -> str:
    return open_prior(shell, world, world.data, "open")


@pytest.fixture(scope="module")
def model(shell: Shell, world: World, opened: str) -> Path:
    """A checkpoint after two epochs."""
    place = world.place / "open-model"
    shell.run("fairseq-train", *world.train_args("open", place), "--max-epoch", 2)
    return place / "checkpoint_last.pt"


def test_training_advises_to_score_a_text_with_its_unknown_words(
    shell: Shell, world: World, opened: str, tmp_path: Path
) -> None:
    options = ["--prior", world.data / opened, "--decoder-embed-dim", 8, "--decoder-hidden-size", 8, "--max-epoch", 1]
    done = shell.run("llrnn", "train", world.data, *options, "--save-dir", tmp_path / "a folder")
    best = tmp_path / "a folder" / "checkpoint_best.pt"
    assert done.out.splitlines()[-1] == f"next        llrnn score --path '{best}' --open TEXT"
    assert "spelling" in shell.run("llrnn", "score", "--path", best, "--open", stdin="le chat xyzzy\n").out


# ---- the decoder, in this process -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def setting(world: World, opened: str) -> Any:
    """fairseq's task and model in float64, every parameter its own value."""
    return randomised(world.train_args("open"), double=True)


def log_probs(setting: Any, lines: list[str]) -> tuple[torch.Tensor, dict[str, Any]]:
    sample = batch(setting.task.dictionary, lines)
    decoder = setting.model.decoder
    hidden, extra = decoder(sample["net_input"]["src_tokens"])
    return decoder.head.target_log_probs(extra["batch"], sample["target"]), sample


def test_strings_are_targets_and_unk_is_their_sum(setting: Any) -> None:
    """Of all V columns, <unk> is the sum of the open classes; a string is <unk> times Σ r P."""
    decoder, task = setting.model.decoder, setting.task
    line = "le chat xyzzy voit 1999"
    found, sample = log_probs(setting, [line])
    net = sample["net_input"]
    table = decoder.get_normalized_probs(decoder(net["src_tokens"]), log_probs=True)
    torch.testing.assert_close(table.exp().sum(-1), torch.ones_like(table[..., 0]))
    known = sample["target"].masked_fill(sample["target"] >= len(task.dictionary), task.dictionary.unk())
    of_words = table.gather(2, known.unsqueeze(2)).squeeze(2)
    hidden, extra = decoder(net["src_tokens"])
    shares = extra["batch"].open_scores[0].softmax(-1)
    vocabulary = task.prior.find(OpenVocabularyPart).vocabulary
    for place, word in enumerate([*line.split(), "</s>"]):
        expected = of_words[0, place]
        if word in ("xyzzy", "1999"):
            strings = torch.from_numpy(vocabulary.strings.log_probs([word]) - vocabulary.log_outside)[0]
            expected = expected + (shares[place] * strings.exp()).sum().log()
        torch.testing.assert_close(found[0, place], expected, rtol=1e-5, atol=1e-5)


def test_the_validation_log_tells_strings_from_ends(setting: Any) -> None:
    """Strings outside the dictionary are of the kind of <unk>, which stands for them."""
    sample = batch(setting.task.dictionary, ["le chat xyzzy voit 1999", "le roi"])
    log = setting.criterion(setting.model.eval(), sample)[2]
    assert (log["count_unknown"], log["count_end"]) == (2, 2)
    assert sum(count for name, count in log.items() if name.startswith("count_")) == sample["ntokens"]


def test_a_text_next_to_binary_data_keeps_its_strings(
    setting: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """So a validation loss has the spelling of unknown words. fairseq prefers the text."""
    task = copy.copy(setting.task)
    data = shutil.copytree(task.args.data, tmp_path / "data")
    task.args = copy.copy(task.args)
    task.args.data, task.datasets = str(data), {}
    (data / "valid").write_text("le chat xyzzy voit 1999\n")
    with pytest.raises(DataError, match=r"valid: expected the text of .*valid\.bin \(.*\), found another one \(1 sent"):
        task.load_dataset("valid")
    for ending in ("bin", "idx"):
        (data / f"valid.{ending}").unlink()
    caplog.set_level(logging.INFO, "fairseq_llrnn.plugin")
    task.load_dataset("valid")
    assert "2 of the 5 tokens" in caplog.text and "; the open vocabulary spells them" in caplog.text
    targets = task.dataset("valid")[0]["target"]
    assert (targets >= len(task.dictionary)).tolist() == [False, False, True, False, True, False]


def test_unknown_words_are_read_as_the_class_they_look_like(setting: Any) -> None:
    table, embedding = setting.task.prior.open_words, setting.model.decoder.head.embedding
    names, size = table.vocabulary.names, len(setting.task.dictionary)
    ids = torch.tensor([table.words.index(word) for word in ("roses", "Zoé", "1999", "2016")])
    unknown = torch.full_like(ids, setting.task.dictionary.unk())
    read = setting.model.decoder.head.open_words.input_id_of(ids, unknown) - size
    looked_like = [names[o] for o in read.tolist()]
    assert looked_like[0].startswith("NOUN") and looked_like[2:] == ["number", "number"]
    # a class is read by its features, as every word is
    rows = embedding.rows.compose(embedding.weight)[embedding.class_of[size + read]]
    features = torch.from_numpy(table.vocabulary.features.dense())[read].double()
    torch.testing.assert_close(rows, features @ embedding.weight)
    one, other, different = (log_probs(setting, [f"le {word} voit"])[0] for word in ("7", "2016", "roses"))
    torch.testing.assert_close(one[0, 2:], other[0, 2:])
    assert not torch.isclose(one[0, 1], other[0, 1]) and not torch.isclose(one[0, 2], different[0, 2])


def test_a_text_is_cross_fitted_by_its_own_words(setting: Any) -> None:
    """Also where some of them are aliases: backgrounds that leave a training text out know it by its words."""
    decoder, dictionary = setting.model.decoder, setting.task.dictionary
    line = batch(dictionary, ["le chat xyzzy voit"])["net_input"]["src_tokens"]
    alias = line.clone()
    alias[0, 2] = int(decoder.head.open_words.table.aliases(line[0, 2:3].numpy())[0])
    assert alias[0, 2] >= len(dictionary)
    asked: list[torch.Tensor] = []
    with pytest.MonkeyPatch.context() as patch:
        bind = lambda self, source, text: asked.append(text) or self  # noqa: E731
        patch.setattr(type(decoder.head.background), "bind", bind)
        decoder.train()
        decoder(alias)
        decoder.eval()
    expected = line.masked_fill(line >= len(dictionary), dictionary.unk())
    assert [tokens.tolist() for tokens in asked] == [expected.tolist()]


# ---- the data -------------------------------------------------------------------------------------------------------


def test_a_share_of_rare_words_is_unknown_in_training(world: World, opened: str) -> None:
    task = build(world.train_args("open")).task
    task.load_dataset("train", combine=True)
    data = task.dataset("train")
    assert isinstance(data, RareWordAliases)
    size, pad = len(task.dictionary), task.dictionary.pad()
    met, unknown = np.zeros(size), np.zeros(size)
    for epoch in range(1, 16):
        data.set_epoch(epoch)
        for index in range(len(data)):
            plain, pair = data.dataset[index], data[index]
            changed = (pair["target"] != plain["target"]).numpy()
            np.add.at(met, plain["target"].numpy(), 1)
            np.add.at(unknown, plain["target"].numpy()[changed], 1)
            # the same word, which the next position reads
            for place in np.flatnonzero(changed):
                assert task.dictionary[int(pair["target"][place])] == task.dictionary[int(plain["target"][place])]
            assert torch.equal(pair["source"][1:], pair["target"][:-1])
            assert bool((pair["target"] != pad).all())
    shares = task.prior.find(OpenVocabularyPart).vocabulary.word_shares
    assert not unknown[shares == 0].any() and unknown.sum() > 0
    assert unknown.sum() / (met * shares).sum() == pytest.approx(1.0, abs=0.2)
    again = build(world.train_args("open")).task
    again.load_dataset("train", combine=True)
    again.dataset("train").set_epoch(15)
    same = [again.dataset("train")[i]["target"].tolist() for i in range(len(data))]
    assert same == [data[i]["target"].tolist() for i in range(len(data))]
    again.load_dataset("valid")
    assert not isinstance(again.dataset("valid"), RareWordAliases)


# ---- the commands ---------------------------------------------------------------------------------------------------


def test_scores_of_any_text(shell: Shell, as_typed: Llrnn, world: World, model: Path) -> None:
    """Bits of a text of known words are those of fairseq-eval-lm; unknown words are spelled, or not."""
    text = "\n".join(world.text("test")) + "\n"
    scored = json.loads(as_typed("score", "--path", model, "--open", "--json", stdin=text).out)
    evaluated = shell.run("fairseq-eval-lm", *world.task_args("open"), "--path", model, "--gen-subset", "test", *ENDS)
    assert f"Loss (base 2): {scored['bits_per_token']:.3f}"[:-1] in evaluated.err + evaluated.out
    assert scored["characters"] == len(text) and scored["unknown_words"] == 0
    assert f"prior {scored['prior']}" in evaluated.err + evaluated.out
    strange = "le chat xyzzy voit Zoé\n\n<unk> <s> 1999 \U0001d11e\n"
    scored = json.loads(as_typed("score", "--path", model, "--open", "--json", stdin=strange).out)
    assert scored["unknown_words"] == 6 and scored["sentences"] == 3 and scored["spelling_bits"] > 60
    assert scored["characters"] == len(strange) and scored["unknown_characters"] == 5 + 3 + 5 + 3 + 4 + 1
    parts = [scored[f"{name}_bits"] for name in ("known", "unknown", "spelling", "end")]
    assert sum(parts) == pytest.approx(scored["bits"]) and min(parts) > 0
    closed = as_typed("score", "--path", model, "--json", stdin="le chat xyzzy voit Zoé\n")
    assert json.loads(closed.out)["spelling_bits"] == 0
    assert closed.err.startswith(
        "warning: 2 of the 5 tokens of stdin are outside the dictionary (40.0%) and count as <unk>. The bits lack "
        "their spelling: add --open, because the model can spell them\n"
    )
    assert re.search("bits per character +not defined", as_typed("score", "--path", model, stdin="le xyzzy\n").out)
    assert "lower" not in closed.err  # zoé is no word of the dictionary either
    capitals = as_typed("score", "--path", model, stdin="Le CHAT xyzzy VOIT Zoé\n").err
    assert (
        "warning: stdin: 3 of 5 words are in the dictionary only in another case, such as 'Le': lower-case it (sed "
        "'s/.*/\\L&/' TEXT > TEXT.lower)\n"
        "note: 5 of the 5 tokens of stdin are outside the dictionary (100.0%) and count as <unk>\n"
    ) in capitals
    foreign = as_typed("score", "--path", model, stdin="Le chat xyzzy VOIT Zoé\n").err  # case explains half
    assert "warning: 1 of the 5 tokens of stdin are words of the dictionary: is it of the text's language" in foreign
    glued = as_typed("score", "--path", model, stdin="le chat. le chat, voit\n").err
    assert "warning: stdin: punctuation is glued to 2 of 5 words, such as 'chat.': tokenise it (sacremoses" in glued
    table = as_typed("score", "--path", model, "--open", stdin=strange).out
    assert "their spelling" in table and table.splitlines()[-2].startswith("bits per character")
    assert "perplexity of tokens" in as_typed("score", "--path", model, stdin=strange).out
    assert table.splitlines()[-1] == f"prior  {scored['prior']}"


def test_a_score_for_each_sentence(as_typed: Llrnn, model: Path) -> None:
    """As many rows as lines, which sum to the score of the text; an empty line is the end of a sentence."""
    strange = "le chat xyzzy voit\n\n  la\tmer \n"
    table = as_typed("score", "--path", model, "--open", "--per-sentence", "--json", stdin=strange)
    head, *rows = [line.split("\t") for line in table.out.splitlines()]
    assert head == ["line", "log_p", "bits", "tokens", "unknown", "impossible", "sentence"]
    assert [[row[i] for i in (0, 3, 4, 5, 6)] for row in rows] == [
        ["1", "5", "1", "", "le chat xyzzy voit"],
        ["2", "1", "0", "", ""],
        ["3", "3", "0", "", "la mer"],
    ]
    assert "note: 1 line without words; only the sentence end of each is scored\n" in table.err
    scored = json.loads(as_typed("score", "--path", model, "--open", "--json", stdin=strange).out)
    assert json.loads(table.err.splitlines()[-1]) == scored | {"unscored_lines": 0}
    assert sum(float(row[2]) for row in rows) == pytest.approx(scored["bits"], abs=1e-4)
    assert sum(float(row[1]) for row in rows) == pytest.approx(-math.log(2) * scored["bits"], abs=1e-4)
    assert scored["empty_lines"] == 1


def test_python_and_the_command_have_one_figure(as_typed: Llrnn, model: Path) -> None:
    """Unknown words are <unk>, unless an argument asks for their spelling."""
    lines, command = ["le chat xyzzy voit Zoé", "la mer"], ("score", "--path", model)
    loaded: Any = fairseq_llrnn.load(model)
    for options, arguments in (((), {}), (("--open",), {"is_open": True})):
        printed = as_typed(*command, *options, "--json", stdin="\n".join(lines)).out
        assert loaded.score(lines, **arguments) == pytest.approx(json.loads(printed)["bits_per_word"])
        printed = as_typed(*command, *options, "--per-word", stdin="\n".join(lines)).out
        assert loaded.surprisals(lines, **arguments).to_tsv() == printed
    good, bad = ["le chat"], ["le xyzzyzzyzzy"]
    closed, spelled = loaded.minimal_pairs(good, bad).pairs[0], loaded.minimal_pairs(good, bad, is_open=True).pairs[0]
    assert closed.good == spelled.good and closed.bad > spelled.bad
    assert "<unk>" in [word.word for word in loaded.next_words("le", 99)]


def test_lines_without_a_word_have_no_bits_a_word(as_typed: Llrnn, model: Path) -> None:
    score = ("score", "--path", model)
    scored = json.loads(as_typed(*score, "--json", stdin="\n\n").out)
    assert (scored["words"], scored["bits_per_word"], scored["empty_lines"]) == (0, None, 2)
    assert scored["bits_per_character"] == scored["bits_per_token"] == scored["bits"] / 2
    table = as_typed(*score, stdin="\n\n").out
    assert "bits per character" in table and "bits per word" not in table


def test_a_line_that_is_too_long_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops the sums; among the lines it stands in its place, whatever batch the others are of."""
    scorer = TextScorer.__new__(TextScorer)
    scorer.longest, scorer.max_tokens = 4, 6

    def of_batch(batch: list[LineScore], is_open: bool) -> tuple[list[LineScore], torch.Tensor]:
        return [score(line, len(line.words)) for line in batch], torch.empty(0)

    def score(line: LineScore, many: int) -> LineScore:
        return replace(line, unknown=[False] * many, log_probs=[-1.0] * (many + 1), spelt=[0.0] * many)

    monkeypatch.setattr(scorer, "scored", of_batch)
    found = list(scorer.lines(["a b c", "a", "", "a b c d", "a b"]))
    assert [(line.number, line.too_long_for) for line in found] == [(1, None), (2, None), (3, None), (4, 3), (5, None)]
    assert [len(line.words) for line in found] == [3, 1, 0, 4, 2]
    with pytest.raises(DataError, match="line 2: expected at most 3 words, the limit of the model, found 4;"):
        sum_of(scorer.lines(["a", "a b c d"]))


def test_what_score_refuses(as_typed: Llrnn, world: World, model: Path, trained: Path) -> None:
    def said(*args: object, stdin: str = "le chat\n") -> str:
        return as_typed("score", *args, stdin=stdin, code=2).err

    closed = said("--path", trained / "checkpoint_last.pt", "--open")
    assert "--open needs an open vocabulary" in closed and "--open-vocabulary characters" in closed
    assert "expected a text, found none on stdin" in said("--path", model, stdin="")
    assert "--max-tokens 0: expected a number of at least 1" in said("--path", model, "--max-tokens", 0)


@pytest.mark.parametrize("log_linear", [True, False])
def test_a_criterion_that_knows_words_alone_is_refused(log_linear: bool, world: World, opened: str) -> None:
    """Rare words of training are strings, beyond the columns that it asks for."""
    task = build(world.train_args(opened)).task
    task.log_linear = log_linear
    with pytest.raises(
        OptionError, match="^--criterion cross_entropy: expected log_linear, .*an open vocabulary.*; use"
    ):
        task.build_criterion(OmegaConf.create({"_name": "cross_entropy", "sentence_avg": False}))


def test_searches_spell_unknown_words(shell: Shell, world: World, model: Path) -> None:
    """<unk> is no word of the output any more: beams and samples show strings that the dictionary lacks."""
    symbols = set(Prior.load(world.prior("open")).symbols)
    for options in (["--beam", 12, "--nbest", 12], ["--sampling", "--beam", 12, "--nbest", 12]):
        found = shell.run(
            "fairseq-interactive", *world.task_args("open"), "--path", model, "--max-len-b", 8, *options,
            "--unkpen", -4, "--log-format", "none", stdin="le xyzzy\n",
        )  # fmt: skip
        texts = [text.split() for _, text in found.hypotheses()[0]]
        assert all(text[:2] == ["le", "xyzzy"] for text in texts)
        new = set(itertools.chain.from_iterable(text[2:] for text in texts)) - symbols
        assert new and "<unk>" not in " ".join(map(" ".join, texts))


def unknown_words(setting: Any, many: int) -> list[list[dict[str, torch.Tensor]]]:
    """What a search leaves of `many` sentences "le <unk>"."""
    row = torch.tensor([setting.task.dictionary.index("le"), setting.task.dictionary.unk(), 2])
    return [[{"tokens": row.clone()}] for _ in range(many)]


def spelt(setting: Any, many: int, random: np.random.Generator | None, *more: Any) -> Counter[str]:
    found = unknown_words(setting, many)
    spell_unknown([setting.model, *more], {}, found, None, random)
    return Counter(setting.task.dictionary[int(hypotheses[0]["tokens"][1])] for hypotheses in found)


def test_unknown_words_are_samples_or_the_best(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are of class o with r_o(K); other searches write the best string of the most probable class."""
    decoder, dictionary = setting.model.eval().decoder, setting.task.dictionary
    table, many = decoder.head.open_words.table, 150
    drawn = spelt(setting, many, np.random.default_rng(1))
    assert drawn == spelt(setting, many, np.random.default_rng(1)) != spelt(setting, many, np.random.default_rng(2))
    assert len(drawn) > 20 and not set(drawn) & set(dictionary.symbols)
    with torch.no_grad():
        hidden, extra = decoder(torch.tensor([[2, dictionary.index("le")]]))
        shares = extra["batch"].open_scores[0, 1].softmax(-1).numpy()
    best = dictionary[table.spelt(int(shares.argmax()))]
    assert spelt(setting, 3, None) == {best: 3}
    monkeypatch.setattr(table, "drawn", lambda of_class, many, random: np.full(many, of_class))
    drawn = spelt(setting, many, np.random.default_rng(3))
    for o, share in enumerate(shares.tolist()):
        assert drawn[dictionary[o]] / many == pytest.approx(share, abs=4 * math.sqrt(share / many) + 0.005)


def test_an_ensemble_spells_by_the_mean_of_its_models(setting: Any) -> None:
    other = copy.deepcopy(setting.model)
    randomise(other, seed=3)
    dictionary, le = setting.task.dictionary, setting.task.dictionary.index("le")

    def probabilities(decoder: Any) -> torch.Tensor:
        """Of <unk> behind `le`, by class."""
        batch = decoder(torch.tensor([[2, le]]))[1]["batch"]
        unknown = decoder.head.target_log_probs(batch, torch.tensor([[le, dictionary.unk()]]))[0, 1]
        return (unknown + batch.open_scores[0, 1].log_softmax(-1)).exp()

    with torch.no_grad():
        both = sum(probabilities(model.eval().decoder) for model in (setting.model, other))
    best = dictionary[setting.model.decoder.head.open_words.table.spelt(int(both.argmax()))]
    assert spelt(setting, 3, None, other) == {best: 3}
    assert sum(spelt(setting, 5, np.random.default_rng(1), other).values()) == 5


def test_a_seed_of_fairseq_is_that_of_the_strings(setting: Any) -> None:
    task, found = setting.task, []
    with torch.no_grad():  # unknown words are likely
        setting.model.decoder.head.output.bias[task.prior.output.features.index["SPECIAL:<unk>"]] += 12.0
    for sampling in (True, True, False):
        torch.manual_seed(5)
        generator = task.build_generator([setting.model], GenerationConfig(beam=4, max_len_b=6, sampling=sampling))
        sample = {"net_input": {"src_tokens": torch.tensor([[2, 5]]), "src_lengths": torch.tensor([2])}}
        hypotheses = task.inference_step(generator, [setting.model], sample)[0]
        found.append([task.dictionary.string(h["tokens"]) for h in hypotheses])
    words = [word for text in found[0] for word in text.split() if word not in task.prior.symbols]
    assert found[0] == found[1] != found[2] and len(set(words)) > 3 and "<unk>" not in " ".join(found[0])
    with torch.no_grad():
        setting.model.decoder.head.output.bias[task.prior.output.features.index["SPECIAL:<unk>"]] -= 12.0


def test_explain_sums_to_what_training_says(as_typed: Llrnn, world: World, model: Path) -> None:
    explained = json.loads(as_typed("explain", "--path", model, "--json", "le chat xyzzy voit").out)
    command = ("score", "--path", model, "--open", "--json")  # explain reads unknown words as strings, too
    scored = json.loads(as_typed(*command, stdin="le chat xyzzy voit\n").out)
    nats = sum(word["nats"] for word in explained["words"])
    assert nats / math.log(2) == pytest.approx(scored["bits"] - scored["spelling_bits"], rel=1e-4)
    unknown = explained["words"][2]
    assert unknown["token"] == "<unk>" and any(name.startswith("Open:") for name in unknown["features"])
