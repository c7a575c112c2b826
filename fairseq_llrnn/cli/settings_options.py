"""Options of a command from dataclasses of settings (fairseq_llrnn/settings.py): a key that is one says so itself."""

import argparse
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.settings import Key, OneOf, Option, Settings, SettingsType, checked, keys, nearest_key, parts_of


def add_options(parser: argparse.ArgumentParser, kind: type[Settings], named: Collection[str] | None = None) -> None:
    """An option for each key that is one, in its group; none has a default, so that what is said is known.

    Args:
        named: the keys that are options, in the place of those that say so themselves.
    """
    groups: dict[str, argparse._ArgumentGroup] = {}
    for key in keys(kind):
        if (option := option_of(key, named)) is not None:
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group)
            groups[option.group].add_argument(option.name, dest=key.name, default=None, **_how(key, option))


def option_of(key: Key, named: Collection[str] | None) -> Option | None:
    """The option of a key; one that is `named`, and says none itself, has the key's name."""
    if named is None or key.name not in named or key.option is not None:
        return key.option if named is None or key.name in named else None
    metavar = "FILE" if key.is_path else "N" if int in parts_of(key.type) else "VALUE"
    return Option(f"--{key.name.replace('_', '-')}", "how they are read", metavar)


def said_by(args: argparse.Namespace, kind: type[SettingsType]) -> SettingsType:
    """What options of `add_options` say, those of the command at hand. Raises OptionError for what is none."""
    names = {key.name: option.name for key in keys(kind) if (option := option_of(key, vars(args))) is not None}
    values = {name: value for name in names if (value := getattr(args, name)) not in (None, False)}

    def called(name: str) -> str:
        return names.get(name, name)

    settings = checked(kind, values, called)
    settings.check(called)
    return settings


def _how(key: Key, option: Option) -> dict[str, Any]:
    parts = parts_of(key.type)
    said: dict[str, Any] = {"help": (key.doc if key.asked_for else key.help).replace("%", "%%")}
    if bool in parts:
        return {**said, "action": "store_true"}
    literals = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    if literals and all(part is type(None) or get_origin(part) is Literal for part in parts):
        return {**said, "choices": literals}
    words = next((note.words for note in key.about if isinstance(note, OneOf)), None)
    if words is not None and not option.list_of_commas:
        return {**said, "choices": [*words()]}
    said["metavar"] = option.metavar
    if option.alone is not None:
        return {**said, "nargs": "?", "const": str(option.alone)}
    if option.list_of_commas:
        return {**said, "type": _names}
    return {**said, "nargs": "+"} if any(get_origin(part) in LISTS for part in parts) else said


LISTS = (Sequence, tuple)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def add_set(group: argparse._ArgumentGroup) -> None:
    """An option that says any key."""
    group.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE",
        help="any other key of the recipe (docs/options.md has all), e.g. words.keep_case=true evidence.weight=0.5",
    )  # fmt: skip


def overridden(
    values: Mapping[str, Any], args: argparse.Namespace, kind: type[Settings]
) -> tuple[dict[str, Any], Callable[[str], str | None]]:
    """Values of settings with what options say in their place, and the option that said a key.

    Args:
        values: by key, sections within. args: of `add_options` and `add_set`.

    Raises:
        OptionError: --set with what is no key, or no value.
    """
    made, origins = _copied(values), dict[str, str]()
    for key in keys(kind):
        if key.option is not None and (value := getattr(args, key.name)) not in (None, False):
            _put(made, key.name, value)
            origins[key.name] = key.option.name
    for text in args.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--set {text}: expected KEY=VALUE, found no =; say e.g. words.keep_case=true")
        known = [key for key in keys(kind) if name == key.name or name.startswith(f"{key.name}.")]
        if not known:
            raise OptionError(f"--set {text}: there is no key {name}; {nearest_key(kind, name)}")
        said = _value(value)
        is_list = any(get_origin(part) is tuple for part in parts_of(known[0].type))
        _put(made, name, _names(said) if is_list and isinstance(said, str) else said)
        origins[known[0].name] = f"--set {known[0].name}"
    return made, origins.get


def _value(text: str) -> Any:
    """As TOML has it; text needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copied(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    *sections, last = name.split(".")
    for section in sections:
        inside = values.setdefault(section, {})
        if not isinstance(inside, dict):
            inside = values[section] = {}
        values = inside
    values[last] = value
