"""docs/options.md says what the code takes."""

from pathlib import Path

from shell import Shell


def test_the_page_of_options_is_what_the_code_says(root: Path, shell: Shell) -> None:
    shell.run("python", root / "scripts" / "list_options.py", "--check")


def test_a_model_of_fairseqs_old_kind_has_its_own_options_and_not_those_of_fairseq(root: Path) -> None:
    page = (root / "docs" / "options.md").read_text(encoding="utf-8")
    section = page.partition("## `--arch llrnn_transformer`\n")[2].partition("\n## ")[0]
    assert "Beside those of fairseq's TransformerModel:" in section
    options = {line.split("`")[1].split()[0] for line in section.splitlines() if line.startswith("| `")}
    assert options >= {"--feature-input", "--tie-features", "--bf16-products", "--input-characters"}
    assert "| `--input-characters {none,cnn}` |" in section and "(default: none)" in section
    assert not options & {"--encoder-layers", "--decoder-layers-to-keep", "--dropout", "--share-all-embeddings"}
