"""Dataclasses of settings: the annotations of a field are its range, help and option, and pydantic checks them.

    @dataclass(frozen=True)
    class SuffixSettings(Settings):
        floor: Annotated[int, Ge(1), Doc("words that must share a suffix")] = 5

    checked(SuffixSettings, {"floor": "7"}, option_name)  SuffixSettings(floor=7), with numbers parsed from text
    checked(SuffixSettings, {"flor": 7}, option_name)  OptionError: there is no key flor; did you mean floor?

The annotations are the only definition of a key: options, `--help`, docs/options and the property test of extreme
numbers use `keys`.
"""

from __future__ import annotations

import difflib
import os
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from typing_extensions import Doc

from fairseq_llrnn import registry
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.files import reading

_NUMBER = re.compile(r"[-+\d.][-+\d.e_]*|nan|[-+]?inf", re.IGNORECASE)
IS_PATH, IS_PATH_OR_NAME, IS_PLACE = "a path", "a path or a name", "KIND:PATH, or a path"
IS_PATH_OR_CONTENT, IS_FOLDER = "a path, or what is in the file", "the path of a folder"
PATH_KINDS = IS_PATH, IS_FOLDER, IS_PATH_OR_NAME, IS_PLACE, IS_PATH_OR_CONTENT
NOT_KEPT = "no part of what is written down"  # a key without effect on the result


Paths = Annotated[reading.Paths, IS_PATH]
FilePath = Annotated[str | Path, IS_PATH]
FolderPath = Annotated[str | Path, IS_FOLDER]
PathOrName = Annotated[str | Path, IS_PATH_OR_NAME]
PathsOrNames = Annotated[reading.Paths, IS_PATH_OR_NAME]
PathOrContent = Annotated[str | Path, IS_PATH_OR_CONTENT]
Places = Annotated[reading.Paths, IS_PLACE]


class _AsItIs:
    """A type of which pydantic checks only the class."""

    def __get_pydantic_core_schema__(self, source: Any, handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(source)


OBJECT = _AsItIs()  # for values that only Python can pass


@dataclass(frozen=True)
class OneOf:
    """Restrict a text to some words, which are computed when a value is checked."""

    words: Callable[[], Iterable[str]]

    def __get_pydantic_core_schema__(self, source: Any, handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.literal_schema([*self.words()])


class Settings:
    """Base of dataclasses of settings."""

    __pydantic_config__: ClassVar[Mapping[str, object]] = {
        "extra": "forbid",
        "revalidate_instances": "always",
        "arbitrary_types_allowed": True,  # objects that Python may pass instead of a file
        "allow_inf_nan": False,
    }

    def check(self, option_name: Callable[[str], str] = str) -> None:
        """Raise OptionError for keys that exclude each other. `option_name`: as in `checked`."""


@dataclass(frozen=True)
class Option:
    """Make a key an option of the command, too."""

    name: str  # --suffixes
    group: str  # of options, in the help
    metavar: str | None = None
    alone: object = None  # the value if the option has none
    list_of_commas: bool = False  # whether a,b,c is a list

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        if self.alone is None:
            return handler(source)
        flags = {True: self.alone, False: None}
        return core_schema.no_info_before_validator_function(
            lambda value: flags[value] if isinstance(value, bool) else value, handler(source)
        )


SettingsType = TypeVar("SettingsType", bound=Settings)


@dataclass(frozen=True)
class Key:
    """A key that is no section."""

    name: str  # with its section: evidence.weight
    owner: type[Settings]
    field: str
    type: Any
    default: object  # MISSING: it is required
    about: tuple[object, ...]  # its metadata in Annotated
    is_path: bool  # whether it contains paths
    asked_for: bool = False  # whether its section is absent by default

    @property
    def doc(self) -> str:
        """Its description."""
        return next((note.documentation for note in self.about if isinstance(note, Doc)), "")

    @property
    def help(self) -> str:
        """Its description, and its default if that is informative."""
        documented = "default" in self.doc or self.default in (MISSING, None, (), False, {})
        return self.doc if documented else f"{self.doc} (default: {self.default})"

    @property
    def option(self) -> Option | None:
        """Its option, or None."""
        return next((note for note in self.about if isinstance(note, Option)), None)


def keys(kind: type[Settings], section: str = "", asked_for: bool = False) -> tuple[Key, ...]:
    """Return all keys, those of sections included, in the order of the fields."""
    result: list[Key] = []
    for field in _fields(kind):
        name = f"{section}{field.name}"
        if field.section is None:
            result.append(Key(name, kind, *field[:4], field.path_kind is not None, asked_for))
        else:
            result += keys(field.section, f"{name}.", field.default is None)
    return tuple(result)


class Field(NamedTuple):
    """A field of a dataclass of settings."""

    name: str
    type: Any
    default: object  # MISSING: it is required
    about: tuple[object, ...]  # its metadata in Annotated
    section: type[Settings] | None  # its own dataclass of settings
    path_kind: str | None  # the kind of paths that it contains, such as IS_PATH


def _read_fields(kind: Any) -> tuple[Field, ...]:
    hints, result = get_type_hints(kind, include_extras=True), []
    for field in fields(kind):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        hint = hints[field.name]
        members, about = members_of(hint)
        section = next((part for part in members if isinstance(part, type) and issubclass(part, Settings)), None)
        path_kind = next((kind for kind in PATH_KINDS if kind in about), None)
        result.append(Field(field.name, hint, default, about, section, path_kind))
    return tuple(result)


# Without a cache, Python would parse every annotation again.
_fields: Callable[[Any], tuple[Field, ...]] = cache(_read_fields)


def members_of(hint: Any) -> tuple[tuple[Any, ...], tuple[object, ...]]:
    """Return the members of a union, or the type itself, and the metadata in Annotated of all of them."""
    members, about, waiting = [], [], [hint]
    while waiting:
        part = waiting.pop(0)
        if get_origin(part) is Annotated:
            inside, *notes = get_args(part)
            about += notes
            waiting.insert(0, inside)
        elif get_origin(part) in (Union, types.UnionType):
            waiting[:0] = get_args(part)
        else:
            members.append(part)
    return tuple(members), tuple(about)


# ---- checks ---------------------------------------------------------------------------------------------------------


def checked(
    kind: type[SettingsType],
    values: Mapping[str, Any] | SettingsType,
    option_name: Callable[[str], str],
) -> SettingsType:
    """Return settings with each value converted and checked. Numbers may be text.

    If an option may come without a value, true means its value then, and false that it is absent. Otherwise neither is
    a number.

    Args:
        option_name: full name of a key -> its name in messages. "": the name of the whole.

    Raises:
        OptionError: an unknown key, or an invalid value.
    """
    from pydantic import ValidationError

    try:
        settings: SettingsType = _validator(kind).validate_python(values)  # type: ignore[arg-type]  # a class is hashable
        return settings
    except ValidationError as error:
        raise OptionError(_message(kind, error, option_name)) from None


@cache
def _validator(kind: Any) -> Any:
    """Return pydantic's validator of a type."""
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    schema: Any = TypeAdapter(kind).core_schema
    _reject_flags(schema)
    return SchemaValidator(schema)


def _reject_flags(schema: Any) -> None:
    """Change a schema of pydantic: true and false are no numbers. Pydantic would convert them to 1 and 0."""
    from pydantic_core import PydanticKnownError, core_schema

    def checked_number(kind: Any, value: object) -> object:
        if isinstance(value, bool):
            raise PydanticKnownError(f"{kind}_type")  # type: ignore[arg-type]
        return value

    waiting = [schema]
    while waiting:
        node = waiting.pop()
        for key, inside in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(inside, dict) and inside.get("type") in ("int", "float"):
                check = partial(checked_number, inside["type"])
                node[key] = core_schema.no_info_before_validator_function(check, inside)
            elif isinstance(inside, (dict, list)):
                waiting.append(inside)


def _message(kind: type[Settings], error: Any, option_name: Callable[[str], str]) -> str:
    """Return a message about the first invalid key. Any type of a union is accepted."""
    every = keys(kind)
    names, classes = {key.name for key in every}, {key.owner.__name__ for key in every}
    entries = [(_key_of(names, classes, entry["loc"]), entry) for entry in error.errors(include_url=False)]
    name, first = entries[0]
    value = first["input"]
    if first["type"] == "unexpected_keyword_argument":
        return f"{option_name('')}: there is no key {name}; {nearest_key(kind, name)}"
    if first["type"] in ("missing", "missing_argument"):
        key = next(key for key in every if key.name == name)
        what, advice = key.doc.partition(";")[0].partition(" (")[0], key.option.name if key.option else None
        return f"{option_name(name)}: expected {what}, found nothing; {f'add {advice}' if advice else 'set it'}"
    of_key = [entry for place, entry in entries if place == name]
    others = [entry for entry in of_key if entry["type"] != "is_instance_of"] or of_key
    expected = " or ".join(dict.fromkeys(map(_expected, others)))
    if not isinstance(value, (str, int, float, list, tuple)):  # the whole, or an object of Python
        found = "None" if value is None else f"an object of {type(value).__name__}"
        return f"{option_name(name)}: expected {expected}, found {found}; correct it"
    is_text = isinstance(value, str) and not _NUMBER.fullmatch(value)
    shown = repr(value) if is_text else str(value).lower() if isinstance(value, bool) else value
    near = difflib.get_close_matches(str(value), re.split(", | or ", expected), n=1)
    deleted = registry.lost(str(value)) if any(entry["type"] == "literal_error" for entry in others) else None
    advice = deleted or (f"did you mean {near[0]}?" if near else "correct it")
    return f"{option_name(name)}: expected {expected}, found {shown}; {advice}"


def _key_of(names: Collection[str], classes: Collection[str], place: Sequence[object]) -> str:
    """Return the full name of the key at a place of pydantic, which continues into members of unions and into lists.

    Args:
        names, classes: of all keys, and of the dataclasses that have them.
    """
    name = ""
    for step in place:
        if name in names or not isinstance(step, str):
            break
        name = name if step in classes else f"{name}.{step}".lstrip(".")
    return name


_BOUNDS = {"gt": "above", "ge": "of at least", "lt": "below", "le": "of at most"}
_KINDS = {"int": "a whole number", "float": "a number", "finite": "a finite number", "bool": "true or false"}
_KINDS |= {"string": "text", "tuple": "a list", "path": "a path", "mapping": "a table", "dataclass": "a section"}


def _expected(entry: Mapping[str, Any]) -> str:
    """Return the expected value of an entry of pydantic's error."""
    kind, about = str(entry["type"]), entry.get("ctx", {})
    for name, bound in _BOUNDS.items():
        if name in about:
            return f"a number {bound} {about[name]:{',g' if about[name] < 1e6 else 'g'}}"
    if kind in ("value_error", "literal_error"):
        return str(about.get("error") or about["expected"].replace("'", ""))
    return _KINDS.get(kind.partition("_")[0], str(entry["msg"]).removeprefix("Input should be "))


def nearest_key(kind: type[Settings], name: str) -> str:
    """Return advice for an unknown key."""
    names = [key.name for key in keys(kind)]
    names += sorted({name.rpartition(".")[0] for name in names} - {""})
    wanted = name.replace("-", "_")
    last = [key_name for key_name in names if key_name.rpartition(".")[2] == wanted.rpartition(".")[2]]
    near = difflib.get_close_matches(wanted, names, n=1) or last
    near = [wanted] if wanted in names else last if len(last) == 1 else near
    if not names:
        return "it takes none"
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"


def check_needs(settings: Settings, needs: Mapping[str, str], option_name: Callable[[str], str]) -> None:
    """Raise OptionError for a key that is set although the key that it needs is not.

    Args:
        needs: key -> the other key, which is None if unset. option_name: as in `checked`.
    """
    for key in keys(type(settings)):
        other = needs.get(key.name)
        if other and getattr(settings, key.field) != key.default and getattr(settings, other) is None:
            raise OptionError(f"{option_name(key.name)}: it needs {option_name(other)}; add that, or leave it out")


# ---- paths ----------------------------------------------------------------------------------------------------------


def check_files(settings: Settings, option_name: Callable[[str], str], section: str = "") -> None:
    """Raise DataError for the first file or folder that cannot be read. `option_name`: as in `checked`."""
    for field in _fields(type(settings)):
        name, value, how = field.name, getattr(settings, field.name), field.path_kind
        if isinstance(value, Settings):
            check_files(value, option_name, f"{section}{name}.")
        elif isinstance(value, (str, Path)) or isinstance(value, (list, tuple)) and how != IS_PATH_OR_CONTENT:
            for path in reading.as_paths(value) if how not in (None, IS_PATH_OR_NAME) else ():
                key = option_name(f"{section}{name}")
                reading.check_there(key, file_of(key, path)[1] if how == IS_PLACE else path, how == IS_FOLDER)


def file_of(option_name: str, place: str) -> tuple[str | None, str]:
    """Return the place of the reader in `READER:FILE`, one of another package (registry.py), and the file.

    Raises:
        OptionError: there are readers, but neither this reader nor this file. `option_name`: the name of the place.
    """
    reader, _, file = place.partition(":")
    readers = registry.names("readers") if file else {}
    if readers and reader not in readers and not os.path.exists(place):
        raise OptionError(
            f"{option_name} {place}: expected a file, or READER:FILE with one of the readers "
            f"{', '.join(sorted(readers))}, found neither; check the spelling"
        )
    return (readers[reader], file) if reader in readers else (None, place)


def plain_values(settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """Return the differences from the defaults, as plain values by key, with sections, and the keys with
    objects of Python.
    """
    values: dict[str, Any] = {}
    objects: list[str] = []
    for name, _, default, about, *_ in _fields(type(settings)):
        value = getattr(settings, name)
        if NOT_KEPT in about:
            continue
        if isinstance(value, Settings):
            inside, more = plain_values(value)
            objects += [f"{name}.{key}" for key in more]
            if inside or default is None:
                values[name] = inside
        elif not _is_plain(value):
            objects.append(name)
        elif (plain := _plain(value)) != _plain(default):
            values[name] = plain
    return values, objects


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(inside) for key, inside in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, Path, bool, int, float))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inside) for key, inside in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [*map(_plain, sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return str(value) if isinstance(value, Path) else value


def with_paths(settings: SettingsType, change: Callable[[str], str]) -> SettingsType:
    """Return the settings with changed paths."""
    changed: dict[str, Any] = {}
    for field in _fields(type(settings)):
        name, value, how = field.name, getattr(settings, field.name), field.path_kind
        if isinstance(value, Settings):
            changed[name] = with_paths(value, change)
        elif isinstance(value, (str, Path)) and how:
            changed[name] = _moved(str(value), how, change)
        elif isinstance(value, (list, tuple)) and how and how != IS_PATH_OR_CONTENT:
            moved = tuple(_moved(str(path), how, change) for path in value)
            changed[name] = moved[0] if len(moved) == 1 else moved
    return replace(settings, **changed)  # type: ignore[type-var]


def _moved(path: str, how: str, change: Callable[[str], str]) -> str:
    kind, colon, rest = path.partition(":")
    if how == IS_PLACE and colon and "/" not in kind:
        return f"{kind}:{change(rest)}"
    if how == IS_PATH_OR_NAME and not set("/.") & set(path):
        return path
    return change(path)
