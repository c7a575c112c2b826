#!/usr/bin/env python3
"""Write docs/options.md: every option of `llrnn`, our tasks, models, criteria and optimisers, from the code itself.

Options of a system go into options.md in its folder.

    python scripts/list_options.py [--check]

--check writes nothing and fails where the page is not what the code says.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY

from fairseq_llrnn import register, systems
from fairseq_llrnn.cli.main import COMMANDS, Parser, load
from fairseq_llrnn.cli.model_options import USER_CODE
from fairseq_llrnn.plugin.models.extensions import (
    ATTENTIVE,
    EXTENSIONS,
    HEAD,
    INPUT,
    RECURRENT,
    SOURCE,
    declared_options,
)
from fairseq_llrnn.prior.named_backgrounds import named_backgrounds
from fairseq_llrnn.prior.recipe import Recipe
from fairseq_llrnn.registry import load as load_module
from fairseq_llrnn.registry import names as plugged_in
from fairseq_llrnn.settings import Key, keys

MODELS = {
    HEAD: "all models", INPUT: "models that read what they write", SOURCE: "models with an encoder",
    RECURRENT: "models with a recurrent network", ATTENTIVE: "llrnn_lstm",
}  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "options.md"
MADE = "Made by `python scripts/list_options.py` from the code."
INTRODUCTION = f"""# All options

{MADE} What else fairseq-train and its sisters take is fairseq's own. Systems have pages of
their own, also for what they add to models and sub-commands of this page: {{systems}}.
"""
OF_SYSTEM = f"""# Options

{MADE}
"""
VIEWED = ("show", "explain")  # sub-commands that systems add to
PREFIX = f"{systems.__name__}."
REGISTRIES = (
    ("--task", TASK_DATACLASS_REGISTRY),
    ("--arch", MODEL_DATACLASS_REGISTRY),
    ("--criterion", CRITERION_DATACLASS_REGISTRY),
    ("--optimizer", OPTIMIZER_DATACLASS_REGISTRY),
)


def cell(text: str) -> str:
    """A text as a table has it: no bar ends the cell, and `<unk>` is no tag of HTML (code stays as it is)."""
    parts = text.replace("|", "\\|").split("`")
    return "`".join(part if i % 2 else part.replace("<", "&lt;") for i, part in enumerate(parts))


def contents(sections: list[str]) -> str:
    """A line of links for each kind of sections: sub-commands, tasks, models, …"""
    kinds: dict[str, list[str]] = {}
    for section in sections:
        if not section.startswith("## `"):
            continue
        title = section.partition("`")[2].partition("`")[0]
        kind, _, name = title.partition(" ")
        kinds.setdefault(kind, []).append(f"[{name}](#{title.replace(' ', '-')})")
    return "".join(f"- `{kind}`: {', '.join(links)}\n" for kind, links in kinds.items())


def rows(parser: argparse.ArgumentParser, only: set[str] | None = None) -> Iterator[str]:
    """A table row for every argument (whose destination is in `only`)."""
    for action in parser._actions:
        if action.dest == "help" or (only is not None and action.dest not in only):
            continue
        values = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
        name = ", ".join(action.option_strings) or values or action.dest
        if action.choices:
            name += f" {{{','.join(map(str, action.choices))}}}"
        elif action.option_strings and action.nargs != 0:
            name += f" {values or 'VALUE'}" + (" …" if action.nargs == "+" else "")
        text = action.help or ""
        number_or_name = isinstance(action.default, int | float | str) and not isinstance(action.default, bool)
        if "default" not in text and action.option_strings and number_or_name:
            text += f" (default: {action.default})"
        text %= {"default": action.default}
        yield f"| {cell(f'`{name}`')} | {cell(text)} |"


def ours(configuration: type) -> set[str]:
    """The fields that a class of this package declares; the others are fairseq's."""
    names: set[str] = set()
    for part in configuration.__mro__:
        if is_ours(part):
            declared = vars(part).get("__annotations__", {})
            names |= {f.name for f in dataclasses.fields(configuration) if f.name in declared and "help" in f.metadata}
    return names - {option.name for options in added_to_models().values() for option in options}


def added_to_models(system: str | None = None) -> dict[str, list[dataclasses.Field[Any]]]:
    """The options that a system adds to models, or that all do: by the kind of models."""
    found: dict[str, list[dataclasses.Field[Any]]] = {}
    for extension in EXTENSIONS:
        of_system = system_of(type(extension).__module__)
        if of_system and system in (None, of_system):
            for place, options in extension.options.items():
                found.setdefault(MODELS.get(place, f"the task {place}"), []).extend(declared_options(options))
    return found


def of_views(command: str, system: str | None = None) -> argparse.ArgumentParser:
    """The options that views of a system, or of all, add to a sub-command."""
    parser = argparse.ArgumentParser()
    for module in plugged_in(command).values() if command in VIEWED else ():
        if system in (None, system_of(module)):
            load_module(module).add_arguments(parser)
    return parser


def without_user_code(parser: argparse.ArgumentParser) -> set[str]:
    """The destinations of its options without those that a system has with each command that loads a model."""
    theirs = tuple(f"-{code.OPTION}" for code in USER_CODE)
    return {one.dest for one in parser._actions if not any(name.endswith(theirs) for name in one.option_strings)}


def backgrounds() -> str:
    """What the backgrounds of an expression take in parentheses."""
    lists = []
    named = named_backgrounds()
    owners = {name: named[name].options for name in ("unigram", *named) if name != "language"}
    for name, owner in owners.items():
        if found := keys(owner):
            lists.append(f"**`{name}(…)`**\n\n{table(map(row_of_key, found), 'key')}")
    what = "What the backgrounds of `llrnn prior --background` take in parentheses, as in `ngram(3, folds=10)`."
    return "\n".join([f"## Backgrounds\n\n{what}\n", *lists])


def row_of_key(key: Key) -> str:
    """A key of a recipe, or of a background."""
    option = "" if key.option is None else f" (`{key.option.name}`)"
    return f"| {cell(f'`{key.name}`{option}')} | {cell(key.help)} |"


def is_ours(part: type) -> bool:
    return part.__module__.startswith("fairseq_llrnn")


def system_of(module: str) -> str:
    """The system that a module is in; empty: none."""
    return module.removeprefix(PREFIX).partition(".")[0] if module.startswith(PREFIX) else ""


def of_old_models(system: str) -> Iterator[tuple[str, str]]:
    """Name and rows of our models of fairseq's old kind, which have `add_args` and no dataclass."""
    for name, model in sorted(MODEL_REGISTRY.items()):
        if is_ours(model) and system_of(model.__module__) == system and name not in MODEL_DATACLASS_REGISTRY:
            base = next(part for part in model.__mro__ if not is_ours(part))
            whole, of_base = argparse.ArgumentParser(), argparse.ArgumentParser()
            model.add_args(whole)
            base.add_args(of_base)
            own = {action.dest for action in whole._actions} - {action.dest for action in of_base._actions}
            yield name, f"Beside those of fairseq's {base.__name__}:\n\n{table(rows(whole, own))}"


def table(lines: Iterator[str], first: str = "option") -> str:
    return "\n".join([f"| {first} | what it does |", "|---|---|", *lines, ""])


def page(system: str = "") -> str:
    """The page of what a system adds; without one, that of all else."""
    of_system = [name for name, module in plugged_in("commands").items() if system_of(module) == system]
    commands = of_system if system else COMMANDS
    parts: list[str] = []
    for name in commands:
        command = load(name)
        of_command = Parser(command)
        own = without_user_code(of_command) - {action.dest for action in of_views(name)._actions}
        listed = table(rows(of_command, own)) if len(of_command._actions) > 1 else "It takes no options.\n"
        what = command.HELP[0].upper() + command.HELP[1:]
        examples = "\n".join(f"    {example}" for example in command.EXAMPLES)
        parts.append(f"## `llrnn {name}`\n\n{what}.\n\n{examples}\n\n{listed}")
        if name == "prior":
            keys_of = table(map(row_of_key, keys(Recipe)), "key")
            what = "The keys of prior.toml, and of `--set`; those with a dot stand in a section."
            parts += [f"## Recipe\n\n{what}\n\n{keys_of}", backgrounds()]
    for option, registry in REGISTRIES:
        for name, configuration in sorted(registry.items()):
            if is_ours(configuration) and system_of(configuration.__module__) == system:
                parser = argparse.ArgumentParser()
                gen_parser_from_dataclass(parser, configuration())
                listed = table(rows(parser, ours(configuration))) if ours(configuration) else "It takes no options.\n"
                parts.append(f"## `{option} {name}`\n\n{listed}")
        if registry is MODEL_DATACLASS_REGISTRY:
            parts += [f"## `{option} {name}`\n\n{listed}" for name, listed in of_old_models(system)]
    if system:
        for name in VIEWED:
            if len((viewed := of_views(name, system))._actions) > 1:
                parts.append(f"## Beside those of `llrnn {name}`\n\n{table(rows(viewed, without_user_code(viewed)))}")
        for code in USER_CODE:
            if system_of(code.__name__) == system:
                parser = argparse.ArgumentParser()
                parser.add_argument(f"--{code.OPTION}", metavar=code.METAVAR, help=code.HELP.format(of=" of the model"))
                parts.append(f"## Of each command that loads a model\n\n{table(rows(parser))}")
        for models, options in added_to_models(system).items():
            parser = argparse.ArgumentParser()
            gen_parser_from_dataclass(parser, dataclasses.make_dataclass("Added", [
                (option.name, option.type, dataclasses.field(default=option.default, metadata=option.metadata))
                for option in options
            ], bases=(FairseqDataclass,))())  # fmt: skip
            parts.append(f"## Of {models}\n\n{table(rows(parser))}")
    links = [f"[{name}](../fairseq_llrnn/systems/{name}/options.md)" for name in of_systems()]
    introduction = OF_SYSTEM if system else INTRODUCTION.format(systems=", ".join(links))
    return "\n".join([introduction, contents(parts), *parts])


def of_systems() -> list[str]:
    """The systems that have options."""
    modules = [module for group in ("commands", "plugins", *VIEWED) for module in plugged_in(group).values()]
    return sorted({system_of(module) for module in modules} - {""})


def pages() -> dict[Path, str]:
    """All pages, and what they say."""
    register()
    folder = ROOT / "fairseq_llrnn" / "systems"
    return {PAGE: page()} | {folder / name / "options.md": page(name) for name in of_systems()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is out of date")
    check = parser.parse_args().check
    for place, text in pages().items():
        if not check:
            place.write_text(text, encoding="utf-8")
        elif not place.exists() or place.read_text(encoding="utf-8") != text:
            print(f"{place.name}: is not what the code says; run `python scripts/list_options.py`", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
