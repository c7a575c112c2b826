"""Terms over pieces through the commands: training with invented ones, a run's and a line's, in text and raw data."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from piece_evidence_world import POST_PROCESS, in_pieces, make_piece_evidence_world, words_of
from shell import Result, Shell
from term_world import FORMS, SOURCES, TermWorld, said, written
from tiny_world import EVERY_SENTENCE, World

RARE = ("champ", "neige", "livre", "fleur", "pomme", "train", "verte", "lourde")  # of several pieces each


class PieceTerms(TermWorld):
    """A world of terms in pieces."""

    convention: str
    shell: Shell

    def lines(self, sources: Sequence[str]) -> list[str]:
        """Lines in pieces, the terms behind them in words."""
        split = (source.partition("\t") for source in sources)
        return [f"{in_pieces(text, self.convention)}{tab}{cells}" for text, tab, cells in split]

    def interactive(self, sources: Sequence[str], *options: object, code: int | None = 0) -> Result:
        return self.shell.run(
            "fairseq-interactive", *self.args(), "--path", self.model, "--max-len-b", 24, "--num-workers", 0,
            "--beam", 3, "--post-process", POST_PROCESS[self.convention], *options,
            stdin="\n".join(self.lines(sources)) + "\n", code=code,
        )  # fmt: skip


@pytest.fixture(scope="module", params=[pytest.param("sentencepiece", marks=pytest.mark.slow), "bpe"])
def taught(
    request: pytest.FixtureRequest, shell: Shell, world: World, tmp_path_factory: pytest.TempPathFactory
) -> PieceTerms:
    place = tmp_path_factory.mktemp("piece-terms")
    evidence = make_piece_evidence_world(place, world, shell, request.param)
    made = PieceTerms(evidence, place)
    made.convention, made.shell = request.param, shell
    with made.forms.open("a", encoding="utf-8") as file:  # for training to invent terms of
        file.writelines(f"{form}\t{lemma}\tNOUN\t_\n" for lemma in RARE for form in (lemma, f"{lemma}s"))
    shell.run(
        "llrnn", "prior", "--dict", evidence.data / "dict.tgt.txt", "--pieces", request.param, "--count-text",
        place / "train.tgt", "--suffixes", 2, "--shapes", "--top-words", "all", "--evidence",
        "terms,numbers,names,copies", "--lexical-translation", evidence.data, "--set", "translations.aligner=ibm1",
        "--out", made.prior,
    )  # fmt: skip
    shell.run("fairseq-train", *made.train_args(place / "model"), "--max-epoch", 2, "--disable-validation")
    return made


def test_a_line_may_have_terms_of_its_own(taught: PieceTerms) -> None:
    lines = [f"{SOURCES[0]}\ttahc => chat", f"{SOURCES[1]}\tvache", f"{SOURCES[1]}\tehcav => gros chat noir\tgrand"]
    found = written(taught.interactive(lines, "--max-len-b", 14))
    assert said(found[0], "chat") == 1, "exactly one form"
    assert said(found[1], "vache") >= 1 and "gros chat noir" in " ".join(found[2]) and said(found[2], "grand") >= 1


SENTENCEPIECE = pytest.param("sentencepiece", False, marks=pytest.mark.slow)


@pytest.mark.parametrize(("taught", "raw"), [SENTENCEPIECE, ("bpe", True)], indirect=["taught"], scope="module")
def test_a_data_set_has_the_terms_of_the_run(taught: PieceTerms, raw: bool) -> None:
    found = written(
        taught.shell.run(
            "fairseq-generate", *taught.args(raw), "--path", taught.model, "--gen-subset", "test", "--max-tokens", 90,
            "--max-len-b", 24, "--num-workers", 1, *EVERY_SENTENCE, "--terms", taught.terms, "--beam", 2,
            "--post-process", POST_PROCESS[taught.convention],
        )
    )  # fmt: skip
    sources = [words_of(line, taught.convention) for line in taught.evidence.text("test", "src")]
    assert len(found) == len(sources) and any("tahc" in source for source in sources)
    for number, source in enumerate(sources):
        # a model of few updates may glue another piece to the term
        assert " ".join(found[number]).count("chat") >= source.count("tahc"), source


@pytest.mark.parametrize("taught", ["bpe"], indirect=True, scope="module")
def test_phrases_match_by_lemmas_of_the_source(taught: PieceTerms, tmp_path: Path) -> None:
    """`ehcav` is several pieces; the file has a lemma that no text has."""
    (tmp_path / "source.tsv").write_text("ehcav\tcow\tNOUN\t_\n", encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("cow\tchat\n", encoding="utf-8")
    given = ["--terms", tmp_path / "terms.tsv", "--source-lexicon", tmp_path / "source.tsv"]
    assert said(written(taught.interactive([SOURCES[1]], *given))[0], "chat") >= 1
    unread = taught.interactive([SOURCES[1]], *given[:2], "--source-lexicon", "nowhere", code=1)
    assert "nowhere: cannot be read: No such file" in unread.err and "Traceback" not in unread.err


def test_explain_shows_the_forms_of_terms(taught: PieceTerms) -> None:
    [source] = taught.lines([f"{SOURCES[1]}\tehcav => vache"])
    explained = taught.shell.run(
        "llrnn", "explain", "--path", taught.model, "--json", "--source", source,
        in_pieces("la vache", taught.convention),
    )  # fmt: skip
    words = json.loads(explained.out)["words"]
    mark = "▁" if taught.convention == "sentencepiece" else ""
    assert words[1]["word"] == f"{mark}vache" and words[1]["slot"]["kind"] == "terms" and words[2]["p"] > 0
    assert {f"{mark}{form}" for form in FORMS["vache"]} <= {slot["string"] for slot in words[0]["slots"]}
