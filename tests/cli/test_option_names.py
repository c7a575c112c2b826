"""Messages name options as the commands at hand have them."""

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairseq import options
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer_lm import TransformerLanguageModel
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.tasks.translation import TranslationTask

from fairseq_llrnn.cli.main import Parser, all_commands, load
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.settings import keys

PACKAGE = Path(__file__).parents[2] / "fairseq_llrnn"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*(?<!-)(?![a-z0-9-])")
OF_OTHERS = {"--no-build-isolation", "--version"}  # of pip, and of llrnn itself
OF_OTHERS |= {"--lr-shrink", "--lr-patience"}  # of fairseq's reduce_lr_on_plateau
OF_OTHERS |= {"--logits-processors", "--speculative-config"}  # of vLLM


def texts(file: Path) -> Iterator[str]:
    """All strings of a module, those of an f-string together, docstrings aside."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    whole = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            whole.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(value.value) for value in node.values if isinstance(value, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in whole:
            yield node.value


@pytest.fixture(scope="module")
def modules() -> dict[str, list[str]]:
    """The strings of each, by its path in the package."""
    return {
        str(file.relative_to(PACKAGE)): [*texts(file)]
        for file in sorted(PACKAGE.rglob("*.py"))
        if file.name != "_page.py"  # which has names of colours
    }


def of_fairseq() -> set[str]:
    """Every option of fairseq's commands, tasks and models, and of our plugins, as their pages have them."""
    parsers = [options.get_training_parser(), options.get_interactive_generation_parser()]
    parsers += [options.get_eval_lm_parser(), options.get_preprocessing_parser()]
    for kind in (TranslationTask, LanguageModelingTask, TransformerModel, TransformerLanguageModel):
        parsers.append(argparse.ArgumentParser(conflict_handler="resolve"))
        kind.add_args(parsers[-1])
    pages = [*(PACKAGE.parent / "docs" / "options").glob("*.md"), *PACKAGE.glob("systems/*/*.md")]
    pages += (PACKAGE.parent / "research").glob("*/*/options.md")
    documented = (option for page in pages for option in OPTION.findall(page.read_text(encoding="utf-8")))
    return {*documented, *(option for parser in parsers for option in parser._option_string_actions)}


def test_every_option_that_a_message_names_is_one(modules: dict[str, list[str]]) -> None:
    known = OF_OTHERS.union(of_fairseq())
    known |= {option for name in all_commands() for option in Parser(load(name))._option_string_actions}
    unknown = defaultdict(set)
    for module, said in modules.items():
        for option in {option for text in said for option in OPTION.findall(text)} - known:
            unknown[option].add(module)
    assert not unknown


# who reads words of several commands, or builds a prior
CORE = "alignment", "automata", "backgrounds", "features", "files", "lexicon", "ngrams", "open_vocabulary", "prior"


def test_what_llrnn_prior_runs_names_no_option_that_it_does_not_have(modules: dict[str, list[str]]) -> None:
    """But with the name of the command that has it; a text that is an option's name alone is no message."""
    messages = [text for module, said in modules.items() if module.startswith(CORE) for text in said if " " in text]
    only_keys = {f"--{key.name.rpartition('.')[2].replace('_', '-')}" for key in keys(Recipe) if key.option is None}
    assert not [text for text in messages if only_keys.intersection(OPTION.findall(text)) and "llrnn " not in text]


def test_they_compute_no_name_of_an_option(modules: dict[str, list[str]]) -> None:
    """`--{key}` is no option if `key` has none; `option_name(key)` is one."""
    computed = re.compile(r"--(?=[^a-z>]|$)")
    said = [text for module, strings in modules.items() if module.startswith(CORE) for text in strings]
    assert not list(filter(computed.search, said))


def test_every_key_that_a_message_names_is_one(modules: dict[str, list[str]]) -> None:
    names = {key.name for key in keys(Recipe)}
    sections = "|".join({name.partition(".")[0] for name in names if "." in name})
    named = re.compile(rf"(?<![\w./-])(?:{sections})\.(?!tsv|txt)[a-z_]+(?![\w(.])")
    said = {name for texts_of in modules.values() for text in texts_of for name in named.findall(text)}
    assert not said - names and len(said) > 9
