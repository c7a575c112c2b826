"""Command-line options from dataclasses of settings (fairseq_llrnn/settings.py), for keys that declare an option."""

import argparse
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, get_args, get_origin

from fairseq_llrnn import registry
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files.toml import parsed_toml
from fairseq_llrnn.settings import (
    IS_PLACE,
    Key,
    Option,
    Settings,
    SettingsType,
    check_files,
    checked,
    keys,
    members_of,
    nearest_key,
)


def add_options(parser: argparse.ArgumentParser, kind: type[Settings], named: Collection[str] | None = None) -> None:
    """Add an option for each key that declares one, in its group. The default None means that the option is absent.

    Args:
        named: keys that get options, instead of those that declare one.
    """
    groups: dict[str, argparse._ArgumentGroup] = {}
    for key in keys(kind):
        if (option := option_of(key, named)) is not None:
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group)
            groups[option.group].add_argument(option.name, dest=key.name, default=None, **_argument(key, option))


def option_of(key: Key, named: Collection[str] | None) -> Option | None:
    """Return the option of a key. A key in `named` without an option gets one with its own name."""
    if named is None or key.name not in named or key.option is not None:
        return key.option if named is None or key.name in named else None
    metavar = "FILE" if key.is_path else "N" if int in members_of(key.type)[0] else "VALUE"
    return Option(f"--{key.name.replace('_', '-')}", "how the sources are read", metavar)


def settings_of(args: argparse.Namespace, kind: type[SettingsType]) -> SettingsType:
    """Return the settings of the options that `add_options` added. Raises OptionError for a wrong value."""
    names = {key.name: option.name for key in keys(kind) if (option := option_of(key, vars(args))) is not None}
    values = {name: value for name in names if (value := getattr(args, name)) not in (None, False)}

    def option_name(name: str) -> str:
        return names.get(name, name)

    settings = checked(kind, values, option_name)
    settings.check(option_name)
    check_files(settings, option_name)
    return settings


def _argument(key: Key, option: Option) -> dict[str, Any]:
    parts = members_of(key.type)[0]
    keywords: dict[str, Any] = {"help": (key.doc if key.asked_for else key.help).replace("%", "%%")}
    if IS_PLACE in key.about and (readers := registry.names("readers")):
        keywords["help"] += f". Readers: {', '.join(sorted(readers))}"
    if bool in parts:
        return {**keywords, "action": "store_true"}
    literals = [word for part in parts if get_origin(part) is Literal for word in get_args(part)]
    if literals and all(part is type(None) or get_origin(part) is Literal for part in parts):
        return {**keywords, "choices": literals}
    keywords["metavar"] = option.metavar
    if option.alone is not None:
        return {**keywords, "nargs": "?", "const": str(option.alone)}
    if option.list_of_commas:
        return {**keywords, "type": _names}
    return {**keywords, "nargs": "+"} if any(get_origin(part) in LISTS for part in parts) else keywords


LISTS = (Sequence, tuple)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def add_set(group: argparse._ArgumentGroup) -> None:
    """Add the option --set, which sets any key."""
    group.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=VALUE",
        help="set keys of the recipe (docs/options/llrnn-prior.md), e.g. words.keep_case=true evidence.weight=0.5",
    )  # fmt: skip


def overridden(
    values: Mapping[str, Any], args: argparse.Namespace, kind: type[Settings]
) -> tuple[dict[str, Any], Callable[[str], str | None]]:
    """Override values of settings by options. Return them, and a function from a key to the option that set it.

    Args:
        values: values by key, with nested sections.
        args: parsed options of `add_options` and `add_set`.

    Raises:
        OptionError: --set with an unknown key, or without a value.
    """
    merged, origins = deepcopy(dict(values)), dict[str, str]()
    for key in keys(kind):
        if key.option is not None and (value := getattr(args, key.name)) not in (None, False):
            _put(merged, key.name, value)
            origins[key.name] = key.option.name
    for text in args.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--set {text}: expected KEY=VALUE, found no =; e.g. --set words.keep_case=true")
        matches = [key for key in keys(kind) if name == key.name or name.startswith(f"{key.name}.")]
        if not matches:
            raise OptionError(f"--set {text}: there is no key {name}; {nearest_key(kind, name)}")
        parsed = _value(value)
        is_list = any(get_origin(part) is tuple for part in members_of(matches[0].type)[0])
        _put(merged, name, _names(parsed) if is_list and isinstance(parsed, str) else parsed)
        origins[matches[0].name] = f"--set {matches[0].name}"
    return merged, origins.get


def _value(text: str) -> Any:
    """Parse a TOML value. Text needs no quotes."""
    try:
        return parsed_toml(f"value = {text}")["value"]
    except ValueError:
        return text


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    *sections, last = name.split(".")
    for section in sections:
        inside = values.setdefault(section, {})
        if not isinstance(inside, dict):
            inside = values[section] = {}
        values = inside
    values[last] = value
