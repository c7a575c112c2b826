"""README.md and the guides are run: every marked block, in order, one folder per page, as a reader would paste it."""

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from guide_pages import README, ROOT, Page, pages_to_run, read_page, reader_folder
from shell import Shell, run_script

PAGES = pages_to_run()
Run = Callable[[Page], tuple[Path, str]]


@pytest.fixture(scope="session")
def run_page(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a page, once, in a copy of the folder that the page before it left: (its folder, what it printed).

    Commands of README.md are processes from nothing, and so are those of fairseq that it lacks, once.
    """
    quick = shell.for_scripts(first_real=["fairseq-generate", "fairseq-validate"])
    done: dict[Path, tuple[Path, str]] = {}

    def run(page: Page) -> tuple[Path, str]:
        if page.path not in done:
            folder = tmp_path_factory.mktemp(page.path.stem)
            if page.continues is None:
                sentences = 1000 if page.path == README else 200  # README.md tells its figures
                reader_folder(folder, tmp_path_factory.mktemp("texts"), sentences)
            else:
                shutil.copytree(run(read_page(page.continues))[0], folder, dirs_exist_ok=True)
            for name, content in page.files.items():
                (folder / name).write_text(content, encoding="utf-8")
            done[page.path] = folder, _run_blocks(page, folder, shell, {} if page.path == README else quick)
        return done[page.path]

    return run


def _run_blocks(page: Page, folder: Path, shell: Shell, commands: Mapping[str, str]) -> str:
    """Every bash block in a shell of its own, then the python blocks as one script."""
    said = ""
    for language, block in page.blocks:
        if language == "bash":
            said += run_script("bash", "-euxo", "pipefail", "-c", block, cwd=folder, variables=commands).out
    if any("transformers" in block for _, block in page.blocks):
        pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")
    if script := "\n".join(block for language, block in page.blocks if language == "python"):
        if page.path == README:
            said += run_script(sys.executable, "-c", script, cwd=folder, variables={"PYTHONPATH": str(ROOT)}).out
        else:
            said += shell.run("python", "-c", script, cwd=folder).out
    return said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: "-".join((page.path.parent.name, page.path.stem)))
def test_the_blocks_of_a_page_run_one_after_the_other(run_page: Run, page: Page) -> None:
    run_page(page)


def test_the_first_page_prints_what_it_says(run_page: Run) -> None:
    """Figures of what was counted to the digit, perplexities within five per cent."""
    said = run_page(read_page(README))[1]
    shown = README.read_text(encoding="utf-8").partition("they print these lines")[2].split("```")[1].strip()
    assert len(shown.splitlines()) == 6
    for line in shown.splitlines():
        if "erplexity" not in line:
            assert line.removesuffix(", …") in said, line
            continue
        head, perplexity = line.split(" loss ")[0].split(" (base")[0], float(line.split()[-1])
        found = re.findall(rf"^{re.escape(head)} .*erplexity:? ([\d.]+)", said, re.MULTILINE)
        assert [float(one) for one in found] == [pytest.approx(perplexity, rel=0.05)], line
    assert "nats per word, perplexity" in said  # of llrnn explain


def test_the_first_page_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_translations_of_three_sentences_are_typed_and_printed(run_page: Run) -> None:
    said = run_page(read_page(ROOT / "docs" / "guides" / "translation.md"))[1]
    assert len(re.findall(r"^H-", said, re.MULTILINE)) == 3


def test_every_guide_is_in_the_list_of_guides_and_every_page_of_results_in_its_list() -> None:
    for folder in (ROOT / "docs" / "guides", ROOT / "docs" / "results"):
        index = (folder / "README.md").read_text(encoding="utf-8")
        pages = {page.name for page in folder.glob("*.md")} - {"README.md"}
        assert pages == {name for name in pages if f"({name})" in index}
