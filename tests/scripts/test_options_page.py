"""docs/options has the options of the parsers."""

from pathlib import Path

from shell import Shell


def test_the_option_pages_agree_with_the_parsers(root: Path, shell: Shell) -> None:
    shell.run("python", root / "scripts" / "list_options.py", "--check")


def test_a_page_that_differs_is_named(root: Path, shell: Shell, tmp_path: Path) -> None:
    code = f"""import sys
from pathlib import Path
sys.path.insert(0, {str(root / "scripts")!r})
import list_options
list_options.ROOT = list_options.FOLDER = Path({str(tmp_path)!r})
list_options.pages = lambda: {{list_options.ROOT / "a.md": "new", list_options.ROOT / "b.md": "same"}}
sys.argv = ["list_options.py", "--check"]
sys.exit(list_options.main())
"""
    (tmp_path / "check.py").write_text(code)
    for name, text in (("a", "old"), ("b", "same"), ("c", "of an option that is gone")):
        (tmp_path / f"{name}.md").write_text(text)
    done = shell.run("python", tmp_path / "check.py", code=2)
    for name in ("a", "c"):
        assert f"{name}.md differs from the parsers; run `python scripts/list_options.py`" in done.err
    assert "b.md" not in done.err and (tmp_path / "a.md").read_text() == "old"


def test_a_model_with_fairseqs_older_interface_lists_its_own_options_only(root: Path) -> None:
    page = (root / "docs" / "options" / "fairseq-train.md").read_text(encoding="utf-8")
    section = page.partition("## `--arch llrnn_transformer`\n")[2].partition("\n## ")[0]
    assert "It also takes the options of fairseq's TransformerModel." in section
    options = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert options >= {"--feature-input", "--tie-features", "--bf16-products", "--input-characters"}
    row = next(line for line in section.splitlines() if line.startswith("| `--input-characters` `{none,cnn}` |"))
    assert row.endswith("| none |")
    assert not options & {"--encoder-layers", "--decoder-layers-to-keep", "--dropout", "--share-all-embeddings"}


def test_the_navigation_of_the_site_has_all_pages_of_docs(root: Path) -> None:
    navigation = (root / "scripts" / "site" / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = {line.split()[-1] for line in navigation.splitlines() if line.endswith(".md")}
    assert {str(page.relative_to(root)) for page in (root / "docs").rglob("*.md")} <= listed
    assert all((root / page).is_file() for page in listed)
