"""Terms through fairseq's commands: training with invented ones, terms of a run and of lines, and what is wrong."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from evidence_world import EvidenceWorld
from same_training import resumed_as_whole
from shell import Result, Shell
from term_world import BAD, BAD_LINES, FORMS, SOURCES, TermWorld, said, written
from tiny_world import EVERY_SENTENCE

from fairseq_llrnn.prior.parts.evidence import EvidencePart
from fairseq_llrnn.prior.prior import Prior


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


def test_the_prior_says_that_it_knows_terms(taught: TermWorld) -> None:
    part = Prior.load(taught.prior).find(EvidencePart)
    assert part is not None and part.rules.kinds == ("terms", "numbers", "names", "copies")


def test_every_translation_has_exactly_one_form_of_each_term(shell: Shell, taught: TermWorld) -> None:
    found = written(interactive(shell, taught, SOURCES, "--terms", taught.terms))
    assert [said(found[i], "chat") for i in (0, 2)] == [1, 1] and len(found) == len(SOURCES)


def test_a_line_may_have_terms_of_its_own(shell: Shell, taught: TermWorld) -> None:
    lines = [SOURCES[0], f"{SOURCES[1]}\tvache", f"{SOURCES[1]}\tehcav => chat\tgrand", SOURCES[3]]
    plain = interactive(shell, taught, [line.partition("\t")[0] for line in lines])
    found = interactive(shell, taught, lines)
    hypotheses, before = written(found), written(plain)
    assert said(hypotheses[1], "vache") == 1 and said(hypotheses[2], "chat") == said(hypotheses[2], "grand") == 1
    assert hypotheses[0] == before[0] and hypotheses[3] == before[3]
    assert re.findall(r"^S-\d+\t(.*)$", found.out, re.MULTILINE) == re.findall(
        r"^S-\d+\t(.*)$", plain.out, re.MULTILINE
    )
    # a tokeniser would take the tab for a blank
    assert written(interactive(shell, taught, lines, "--tokenizer", "space")) == hypotheses


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


@pytest.mark.parametrize("raw", [False, True])
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


OTHERS = [["--sampling", "--nbest", 3], ["--diverse-beam-groups", 3], ["--no-repeat-ngram-size", 2], ["--beam", 1]]


@pytest.mark.parametrize("options", OTHERS)
def test_other_searches_say_them_too(shell: Shell, taught: TermWorld, options: list[object]) -> None:
    found = written(interactive(shell, taught, SOURCES, "--terms", taught.terms, *options))
    assert [said(found[i], "chat") for i in (0, 2)] == [1, 1]


def test_an_ensemble_says_them_too(shell: Shell, taught: TermWorld) -> None:
    both = f"{taught.model}:{taught.model}"
    found = written(interactive(shell, taught, SOURCES, "--terms", taught.terms, "--path", both))
    assert [said(found[i], "chat") for i in (0, 2)] == [1, 1]


def test_what_may_be_said_is_made_likely(shell: Shell, taught: TermWorld) -> None:
    found = written(interactive(shell, taught, SOURCES, "--terms", taught.terms, "--term-strength", "may"))
    assert len(found) == len(SOURCES)


def test_a_term_of_several_words_is_written_as_it_is(shell: Shell, taught: TermWorld) -> None:
    found = written(interactive(shell, taught, [f"{SOURCES[0]}\ttahc => gros chat noir"]))
    assert "gros chat noir" in " ".join(found[0])


def test_a_resumed_run_is_the_run_that_never_stopped(shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    resumed_as_whole(shell, taught.train_args, tmp_path)


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_in_a_line(name: str, shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    text, options, message = BAD[name]
    (tmp_path / "terms.tsv").write_text(text, encoding="utf-8")
    found = interactive(shell, taught, SOURCES[:1], "--terms", tmp_path / "terms.tsv", *options, code=1)
    assert message in found.err and "Traceback" not in found.err


@pytest.mark.parametrize("name", BAD_LINES)
def test_what_is_wrong_with_a_line_is_said_with_its_number(name: str, shell: Shell, taught: TermWorld) -> None:
    text, message = BAD_LINES[name]
    found = interactive(shell, taught, [*text.splitlines(), SOURCES[0]], code=1)
    assert message in found.err and "Traceback" not in found.err
    lines = len(text.splitlines()) + 1
    assert f"fairseq_llrnn: error: 1 of {lines} sentences of the input have no answer; the first of them: " in found.err
    answered = re.findall(r"^H-(\d+)\t", found.out, re.MULTILINE)
    assert answered == [str(number) for number in range(lines) if number != lines - 2], "the session goes on"
    together = interactive(shell, taught, [*text.splitlines(), SOURCES[0]], "--buffer-size", 9, code=1)
    assert sorted(written(together)) == sorted(written(found)) and message in together.err


def test_files_that_are_missing_are_no_fault_of_a_sentence(shell: Shell, taught: TermWorld) -> None:
    for option in ("--term-forms", "--source-lexicon"):
        for lines in ([SOURCES[0]], [f"{SOURCES[0]}\ttahc => chat"]):
            terms = () if "\t" in lines[0] else ("--terms", taught.terms)
            found = interactive(shell, taught, lines, *terms, option, "none.tsv", code=1)
            assert "fairseq_llrnn: error: none.tsv: cannot be read: No such file" in found.err
            assert "sentence" not in found.err.splitlines()[-1]


def test_training_without_forms_says_what_it_cannot_learn(shell: Shell, taught: TermWorld) -> None:
    arguments = taught.train_args(taught.place / "without-forms")
    at = arguments.index("--term-forms")
    found = shell.run("fairseq-train", *arguments[:at], *arguments[at + 2 :], "--max-update", 1)
    said = "--term-forms: not given, and the prior has no features Lemma:…, so training can invent no terms"
    assert said in found.out + found.err


def test_a_prior_without_terms_is_refused(shell: Shell, evidence: EvidenceWorld, taught: TermWorld) -> None:
    found = shell.run(
        "fairseq-interactive", *evidence.task_args(), "--path", taught.model, "--terms", taught.terms, stdin="a\n",
        code=1,
    )
    assert "expected a prior that knows terms, found one that does not" in found.err


def test_training_refuses_terms_of_a_run(shell: Shell, taught: TermWorld, tmp_path: Path) -> None:
    found = shell.run("fairseq-train", *taught.train_args(tmp_path), "--terms", taught.terms, code=1)
    assert "not supported in training" in found.err


def explained(shell: Shell, taught: TermWorld, *options: object, code: int | None = 0) -> Result:
    return shell.run("llrnn", "explain", "--path", taught.model, "--json", *options, code=code)


def test_explain_shows_the_forms_of_terms(shell: Shell, taught: TermWorld) -> None:
    found = explained(shell, taught, "--source", SOURCES[0], "--terms", taught.terms)
    sentence = json.loads(found.out)
    assert said([word["word"] for word in sentence["words"]], "chat") == 1
    slots = {slot["string"]: slot for slot in sentence["words"][0]["slots"]}
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


def test_explain_shows_a_term_without_a_place_in_the_source(shell: Shell, taught: TermWorld) -> None:
    source = f"{SOURCES[1]}\tvache"
    words = json.loads(explained(shell, taught, "--source", source, "la vache").out)["words"]
    (word,) = (w for w in words if w["slot"])
    assert (word["slot"]["string"], word["slot"]["words"], word["slot"]["positions"]) == ("vache", [], [])
    table = shell.run("llrnn", "explain", "--path", taught.model, "--source", source, "la vache").out
    assert "terms: no word of the source" in table and "vache terms " in table


def test_explain_reads_a_term_of_several_words_as_one(shell: Shell, taught: TermWorld) -> None:
    found = explained(shell, taught, "--source", f"{SOURCES[0]}\ttahc => gros chat noir", "le gros chat noir voit")
    assert [word["word"] for word in json.loads(found.out)["words"]][:2] == ["le", "gros chat noir"]


def test_explain_refuses_terms_that_the_prior_does_not_know(
    shell: Shell, evidence: EvidenceWorld, taught: TermWorld, tmp_path: Path
) -> None:
    shell.run("fairseq-train", *evidence.train_args(save_dir=tmp_path), "--max-epoch", 1)
    path = tmp_path / "checkpoint_last.pt"
    for source, options in ((f"{SOURCES[0]}\tchat", []), (SOURCES[0], ["--terms", taught.terms])):
        found = shell.run("llrnn", "explain", "--path", path, "--source", source, *options, code=2)
        assert "knows terms" in found.err or "knows no terms" in found.err
