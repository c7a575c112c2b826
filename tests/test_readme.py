"""The README is run: every bash block after `<!-- run -->`, in order, in one folder, as a reader would paste it."""

import re
from pathlib import Path

import pytest
from host_commands import run_script

from toy_french import make_corpus, write_corpus
from toy_french.bilingual import make_bitext, write_bitext

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- run -->\n```bash\n(.*?)```", re.DOTALL)
# What the README leaves to an hour, the test leaves to a moment.
SHORTENED = {"--max-epoch 30": "--max-epoch 1", "256": "32", "--top-words 2500": "--top-words 300"}


def test_blocks_run_one_after_the_other(tmp_path: Path) -> None:
    blocks = BLOCK.findall(README)
    assert len(blocks) >= 3, "the README shows how to make data, train, and look"
    corpus = tmp_path / "corpus"
    write_corpus(make_corpus(1000, 1), corpus)
    for name in ("train.txt", "valid.txt", "test.txt", "train.conllu"):
        (tmp_path / name).write_bytes((corpus / name).read_bytes())
    bitext = tmp_path / "bitext_corpus"
    write_bitext(make_bitext(400, 1), bitext)
    for name in ("train.en", "train.fr", "valid.en", "valid.fr", "test.en", "test.fr", "lexicon.tsv"):
        (tmp_path / name).write_bytes((bitext / name).read_bytes())
    (tmp_path / "fairseq_llrnn").symlink_to(ROOT / "fairseq_llrnn")
    said = ""
    for block in blocks:
        for long, short in SHORTENED.items():
            block = block.replace(long, short)
        said += (done := run_script("bash", "-euxo", "pipefail", "-c", block, cwd=tmp_path)).out
    assert "perplexity" in said
    assert len(re.findall(r"^H-", done.out, re.MULTILINE)) == 3, "three sentences typed at the end"


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
