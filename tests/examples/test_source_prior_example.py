"""examples/translation/source_prior.sh at toy size: texts, priors, and a row of either network."""

import gzip
from pathlib import Path

import pytest
from example_modules import run_example

PAIRS = {
    "train": [("malý pes spí .", "the small dog sleeps ."), ("velký pes běží .", "the big dog runs .")] * 6,
    "val": [("malá kočka spí .", "the small cat sleeps .")],
    "test2016": [("velká kočka běží .", "the big cat runs ."), ("malý kůň spí .", "the small horse sleeps .")],
}
TREEBANK = "".join(
    f"1\t{word}\t{lemma}\tADJ\t_\tCase=Nom|Gender={gender}\t0\troot\t_\t_\n\n"
    for word, lemma, gender in (("malý", "malý", "Masc"), ("malá", "malý", "Fem"), ("velká", "velký", "Fem"))
)


@pytest.mark.slow
def test_rows_are_trained_and_translate_and_what_is_done_is_skipped(tmp_path: Path) -> None:
    def packed(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))

    for split, pairs in PAIRS.items():
        for side, language in enumerate(("cs", "en")):
            packed(tmp_path / language / f"{split}.tok.{language}.gz", "".join(f"{pair[side]}\n" for pair in pairs))
    packed(tmp_path / "treebanks" / "one.conllu.gz", TREEBANK)
    work = tmp_path / "work"
    folders = (tmp_path / "cs", tmp_path / "en", tmp_path / "treebanks", work)
    settings = {"PAIRS": "8", "EPOCHS": "1", "ROWS": "source-treebanks tran-table-known"}
    done = run_example("translation/source_prior.sh", *folders, variables=settings)
    assert len((work / "text" / "train.cs").read_text(encoding="utf-8").splitlines()) == 8
    for row, epochs in (("source-treebanks-1", 1), ("tran-table-known-1", 3)):
        assert f"{row}: validation perplexity" in done.out
        assert (work / row / "test.log").read_text(encoding="utf-8").count("\nH-") == 2
        assert f"epoch {epochs:03d} | valid" in (work / row / "train.log").read_text(encoding="utf-8")
    assert done.out.count("BLEU = ") == 2 and not (work / "table-known-1").exists()
    again = run_example("translation/source_prior.sh", *folders, variables=settings)
    assert "BLEU" not in again.out
