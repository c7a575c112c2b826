"""Terms through fairseq's commands: training with invented ones, terms of a run and of lines, and what is wrong."""

import json
import math
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from evidence_world import EvidenceWorld
from same_training import assert_same_training
from shell import Result, Shell
from term_world import BAD, BAD_LINES, FORMS, SOURCES, TermWorld, said, written
from tiny_world import EVERY_SENTENCE, build

from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.plugin.scoring.sentences import IMPOSSIBLE, UNREAD, load_scorer


@pytest.fixture(scope="module")
def taught(shell: Shell, evidence: EvidenceWorld, tmp_path_factory: pytest.TempPathFactory) -> TermWorld:
    made = TermWorld(evidence, tmp_path_factory.mktemp("terms"))
    made.make_prior(shell)
    shell.run("fairseq-train", *made.train_args(made.place / "model"), "--max-epoch", 3)
    return made


def interactive(
    shell: Shell, taught: TermWorld, sources: Sequence[str], *options: object, code: int | None = 0
) -> Result:
    return shell.run(
        "fairseq-interactive", *taught.args(), "--path", taught.model, "--max-len-b", 14, "--num-workers", 0,
        "--beam", 3, *options, stdin="\n".join(sources) + "\n", code=code,
    )  # fmt: skip


def test_a_line_may_have_terms_of_its_own(shell: Shell, taught: TermWorld) -> None:
    lines = [SOURCES[0], f"{SOURCES[1]}\tvache", f"{SOURCES[1]}\tehcav => chat\tgrand", SOURCES[3]]
    lines.append(f"{SOURCES[0]}\ttahc => gros chat noir")
    plain = interactive(shell, taught, [line.partition("\t")[0] for line in lines])
    found = interactive(shell, taught, lines, "--tokenizer", "space")  # which would take the tab for a blank
    hypotheses, before = written(found), written(plain)
    assert said(hypotheses[1], "vache") == 1 and said(hypotheses[2], "chat") == said(hypotheses[2], "grand") == 1
    assert "gros chat noir" in " ".join(hypotheses[4])
    assert hypotheses[0] == before[0] and hypotheses[3] == before[3]
    assert found.printed("S") == plain.printed("S")


@pytest.mark.slow
def test_terms_stay_with_their_sentence_when_batches_are_sorted(shell: Shell, taught: TermWorld) -> None:
    """Lines of many lengths, each with another term: together in batches, in another order, and one by one."""
    lemmas, sources = list(FORMS), []
    for i in range(9):
        words = ["el", "tahc", *["tneiv"] * ((5 * i) % 7), "12"]
        sources.append(f"{' '.join(words)}\t{lemmas[i % 3]}")
    together = written(interactive(shell, taught, sources, "--buffer-size", 9, "--batch-size", 4))
    alone = written(interactive(shell, taught, sources, "--buffer-size", 1))
    backwards = written(interactive(shell, taught, sources[::-1], "--buffer-size", 9, "--batch-size", 9))
    for i in range(9):
        assert said(together[i], lemmas[i % 3]) == 1 and together[i] == alone[i] == backwards[8 - i]


@pytest.mark.parametrize("raw", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_data_set_has_the_terms_of_the_run(shell: Shell, taught: TermWorld, raw: bool) -> None:
    """Sorted by length and printed in another order, with workers of its own."""
    found = shell.run(
        "fairseq-generate", *taught.args(raw), "--path", taught.model, "--gen-subset", "test", "--max-tokens", 60,
        "--max-len-b", 14, "--num-workers", 1, *EVERY_SENTENCE, "--terms", taught.terms, "--beam", 2,
    )  # fmt: skip
    sources, hypotheses = taught.evidence.text("test", "src"), written(found)
    assert len(hypotheses) == len(sources) and any("tahc" in source.split() for source in sources)
    for number, source in enumerate(sources):
        if "tahc" in source.split():
            assert said(hypotheses[number], "chat") == source.split().count("tahc"), source


OTHERS = [["--sampling", "--nbest", 3], ["--diverse-beam-groups", 3], ["--no-repeat-ngram-size", 2, "--beam", 1]]


@pytest.mark.parametrize("options", [OTHERS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in OTHERS[1:])])
def test_other_searches_say_them_too(shell: Shell, taught: TermWorld, options: list[object]) -> None:
    found = written(interactive(shell, taught, SOURCES, "--terms", taught.terms, *options))
    assert [said(found[i], "chat") for i in (0, 2)] == [1, 1]


def test_an_ensemble_says_them_too(shell: Shell, taught: TermWorld) -> None:
    both = f"{taught.model}:{taught.model}"
    found = written(interactive(shell, taught, SOURCES, "--terms", taught.terms, "--path", both))
    assert [said(found[i], "chat") for i in (0, 2)] == [1, 1]


@pytest.mark.slow
def test_a_resumed_run_is_the_run_that_never_stopped(shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    for epochs in (1, 3):
        shell.run("fairseq-train", *taught.train_args(tmp_path), "--max-epoch", epochs)
    assert_same_training(tmp_path / "checkpoint_last.pt", taught.model)


def test_llrnn_takes_the_forms_of_the_training(shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    """Unless others are given; bare commands take what they are given."""
    command = ("llrnn", "interactive", taught.evidence.data, "--path", taught.model, "--max-len-b", 14, "--beam", 3)
    line = f"{SOURCES[1]}\tehcav => vache | NOUN\n"
    found = shell.run(*command, stdin=line)
    assert found.best() == shell.run(*command, "--term-forms", taught.forms, stdin=line).best()
    assert said(written(found)[0], "vache") == 1 and "forms are known" not in found.err
    other = tmp_path / "other.tsv"
    other.write_text("chien\tchien\tNOUN\t_\n", encoding="utf-8")
    assert "no forms are known" in shell.run(*command, "--term-forms", other, stdin=line).err


@pytest.mark.parametrize("subset", ["train", "test"])
@pytest.mark.parametrize("raw", [True, False])
def test_a_worker_that_is_spawned_gets_the_same_pairs(
    taught: TermWorld, subset: str, raw: bool, tmp_path: Path
) -> None:
    """As on macOS: in a pickle, also after terms were looked for, but not the terms themselves."""
    terms = () if subset == "train" else ("--terms", taught.terms)
    task = build([*taught.train_args(tmp_path, raw), *terms]).task
    task.load_dataset(subset, combine=subset == "train")
    pairs, dictionary = task.dataset(subset), task.source_dictionary
    dictionary.encode_line("el tahc\tchat")
    spawned, of_worker = pickle.loads(pickle.dumps((pairs, dictionary)))
    assert all(torch.equal(spawned[i]["source"], pairs[i]["source"]) for i in range(len(pairs)))
    with pytest.raises(RuntimeError, match="terms can be marked only in the process that read them"):
        of_worker.encode_line("el tahc\tchat")


@pytest.mark.parametrize("name", sorted(BAD.keys() - {"a part of speech among words"}))  # as test_terms.py refuses it
def test_what_is_wrong_is_said_in_a_line(name: str, shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    text, options, message = BAD[name]
    (tmp_path / "terms.tsv").write_text(text, encoding="utf-8")
    found = interactive(shell, taught, SOURCES[:1], "--terms", tmp_path / "terms.tsv", *options, code=1)
    assert message in found.err and "Traceback" not in found.err


def test_what_is_wrong_with_a_line_is_said_with_its_number(shell: Shell, taught: TermWorld) -> None:
    """And the session goes on, line by line and with all of them at once."""
    lines = ["el tahc", *BAD_LINES, SOURCES[0]]
    last = "fairseq_llrnn: error: 4 of 6 sentences of the input have no answer; the first error: sentence 2 of the "
    for options in ([], ["--buffer-size", 9]):
        found = interactive(shell, taught, lines, *options, code=1)
        for number, message in enumerate(BAD_LINES.values(), start=2):
            assert f"sentence {number} of the input: {message}" in found.err
        assert found.err.splitlines()[-1].startswith(last) and "Traceback" not in found.err
        assert sorted(written(found)) == [0, 5]


@pytest.mark.parametrize(("option", "of_line"), [("--term-forms", True), ("--source-lexicon", False)])
def test_files_that_are_missing_are_no_fault_of_a_sentence(
    option: str, of_line: bool, shell: Shell, taught: TermWorld
) -> None:
    line, terms = (f"{SOURCES[0]}\ttahc => chat", ()) if of_line else (SOURCES[0], ("--terms", taught.terms))
    found = interactive(shell, taught, [line], *terms, option, "none.tsv", code=1)
    assert "fairseq_llrnn: error: none.tsv: cannot be read: No such file" in found.err
    assert "sentence" not in found.err.splitlines()[-1]


def test_training_without_forms_says_what_it_cannot_learn(shell: Shell, taught: TermWorld) -> None:
    arguments = taught.train_args(taught.place / "without-forms")
    at = arguments.index("--term-forms")
    found = shell.run("fairseq-train", *arguments[:at], *arguments[at + 2 :], "--max-update", 1, "--no-save")
    said = "--term-forms: not given, and the prior has no features Lemma:…, so training has no"
    assert said in found.out + found.err


def test_a_prior_without_terms_is_refused(shell: Shell, evidence: EvidenceWorld, taught: TermWorld) -> None:
    found = shell.run(
        "fairseq-interactive", *evidence.task_args(), "--path", taught.model, "--terms", taught.terms, stdin="a\n",
        code=1,
    )
    assert "the prior has no terms; build it with `llrnn prior --evidence terms`" in found.err


def test_training_refuses_terms_of_a_run(taught: TermWorld, tmp_path: Path) -> None:
    setting = build([*taught.train_args(tmp_path), "--terms", taught.terms])
    with pytest.raises(OptionError, match="not supported in training"):
        setting.task.load_dataset("train", combine=True)


def explained(shell: Shell, taught: TermWorld, *options: object, code: int | None = 0) -> Result:
    return shell.run("llrnn", "explain", "--path", taught.model, "--json", *options, code=code)


def test_explain_shows_the_forms_of_terms(shell: Shell, taught: TermWorld) -> None:
    found = explained(shell, taught, "--source", SOURCES[0], "--terms", taught.terms, "le chats")
    words = json.loads(found.out)["words"]
    assert words[1]["slot"]["kind"] == "terms" and words[2]["p"] > 0
    slots = {slot["string"]: slot for slot in words[0]["slots"]}
    assert set(FORMS["chat"]) <= set(slots) and slots["chats"]["kind"] == "terms"


def test_terms_of_tbx_are_those_of_the_model_s_languages(shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    path = tmp_path / "terms.tbx"
    sides = {"src": "tahc", "tgt": "chat"}.items()
    of_sides = (f'<langSec xml:lang="{of}"><termSec><term>{term}</term></termSec></langSec>' for of, term in sides)
    path.write_text(f"<tbx><conceptEntry>{''.join(of_sides)}</conceptEntry></tbx>", encoding="utf-8")
    found = explained(shell, taught, "--source", SOURCES[0], "--terms", path)
    assert said([word["word"] for word in json.loads(found.out)["words"]], "chat") == 1
    wrong = path.with_name("wrong.tbx")
    wrong.write_text(path.read_text(encoding="utf-8").replace('"tgt"', '"xx"'), encoding="utf-8")
    refused = explained(shell, taught, "--source", SOURCES[0], "--terms", wrong, code=2)
    assert "wrong.tbx: expected terms in the language tgt, found src, xx" in refused.err


def test_explain_reads_terms_behind_the_source(shell: Shell, taught: TermWorld) -> None:
    found = explained(shell, taught, "--source", f"{SOURCES[1]}\tehcav => vache", "la vache")
    words = json.loads(found.out)["words"]
    assert words[2]["p"] > 0 and words[1]["slot"]["kind"] == "terms"
    forbidden = explained(shell, taught, "--source", f"{SOURCES[1]}\tehcav => vache", "la table")
    assert json.loads(forbidden.out)["words"][2]["p"] == 0  # without the term there is no end


def test_rescoring_reads_terms_behind_the_source(shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    alone = "el tahc"  # without evidence, which a search counts as it is said
    source = f"{alone}\ttahc => chat\t "
    words = json.loads(explained(shell, taught, "--source", source, "le chat").out)["words"]
    scorer = load_scorer(str(taught.model), 512)
    plain, with_term, without = scorer.score([alone, source, source], ["le chat", "le chat", "la table"])
    assert with_term == pytest.approx(sum(math.log(word["p"]) for word in words), abs=1e-4) and with_term > plain
    assert without == -math.inf and scorer.notes[IMPOSSIBLE] == 1 and not scorer.notes[UNREAD]
    with pytest.raises(DataError, match="the sentence lacks the phrase 'ehcav'"):
        scorer.score([f"{alone}\tehcav => vache"], ["la vache"])


def test_explain_shows_a_term_without_a_place_in_the_source_and_one_of_several_words(
    shell: Shell, taught: TermWorld
) -> None:
    source = f"{SOURCES[1]}\tvache\tehcav => gros chat noir"
    words = json.loads(explained(shell, taught, "--source", source, "la vache le gros chat noir").out)["words"]
    assert [word["word"] for word in words] == ["la", "vache", "le", "gros chat noir", "</s>"]
    slot = words[1]["slot"]
    assert (slot["string"], slot["words"], slot["positions"]) == ("vache", [], [])
    table = shell.run("llrnn", "explain", "--path", taught.model, "--source", source, "la vache").out
    assert "terms: no word of the source" in table and "vache terms " in table


def test_explain_refuses_terms_that_the_prior_does_not_know(
    shell: Shell, evidence_models: dict[str, Path], taught: TermWorld
) -> None:
    path = evidence_models["lstm"]
    for source, options in ((f"{SOURCES[0]}\tchat", []), (SOURCES[0], ["--terms", taught.terms])):
        found = shell.run("llrnn", "explain", "--path", path, "--source", source, *options, code=2)
        assert "has no terms" in found.err


# Terms beside translations that are slots, through the real commands
def test_a_term_that_is_a_translation_is_said_once(shell: Shell, evidence: EvidenceWorld, tmp_path: Path) -> None:
    shell.run(
        "llrnn", "prior", "--dict", evidence.data / "dict.tgt.txt", "--top-words", 10, "--suffixes", 2,
        "--evidence", "terms,numbers,names,copies,translations", "--lexical-translation", evidence.data,
        "--set", "translations.learned=true", "--set", "translations.aligner=ibm1", "--out", tmp_path / "prior",
    )  # fmt: skip
    forms, terms = tmp_path / "forms.tsv", tmp_path / "terms.tsv"
    forms.write_text("chat\tchat\tNOUN\t_\nchats\tchat\tNOUN\t_\n", encoding="utf-8")
    terms.write_text("tahc\tchat\n", encoding="utf-8")
    common = ("--prior", tmp_path / "prior", "--term-forms", forms)
    arguments = evidence.train_args("llrnn_transformer", "lexical", tmp_path / "model", raw=True)
    shell.run("fairseq-train", *arguments, *common, "--invented-terms", 0.5, "--max-epoch", 2)
    found = shell.run(
        "fairseq-interactive", *evidence.task_args(raw=True), *common, "--path",
        tmp_path / "model" / "checkpoint_last.pt", "--terms", terms, "--beam", 3, "--max-len-b", 14,
        "--num-workers", 0, stdin="el tahc tiov 12\nel tiov\n",
    )  # fmt: skip
    with_term, without = found.best().values()
    assert sum(word in ("chat", "chats") for word in with_term.split()) == 1
    assert without
