"""docs/options.md says what the code takes."""

import re
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


def test_what_looks_like_a_tag_is_shown_and_not_read_as_html(root: Path) -> None:
    page = (root / "docs" / "options.md").read_text(encoding="utf-8")
    assert "&lt;" in page
    assert not re.search(r"<[/a-z]", re.sub(r"`[^`]*`|^    .*$", "", page, flags=re.MULTILINE))


def test_the_page_begins_with_links_to_its_sections(root: Path) -> None:
    page = (root / "docs" / "options.md").read_text(encoding="utf-8")
    links = page.partition("\n## ")[0]
    for title in re.findall(r"^## `(.*)`$", page, re.MULTILINE):
        assert f"(#{title.replace(' ', '-')})" in links


def test_a_page_that_is_out_of_date_is_said_to_be(root: Path, shell: Shell, tmp_path: Path) -> None:
    """A copy of the script looks for the page beside itself."""
    for folder in ("scripts", "docs"):
        (tmp_path / folder).mkdir()
    script = tmp_path / "scripts" / "list_options.py"
    script.write_bytes((root / "scripts" / "list_options.py").read_bytes())
    (tmp_path / "docs" / "options.md").write_text("# All options\n", encoding="utf-8")
    done = shell.run("python", script, "--check", code=2)
    assert "options.md: is not what the code says; run `python scripts/list_options.py`" in done.err
