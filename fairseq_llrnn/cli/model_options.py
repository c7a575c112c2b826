"""Options and the import of fairseq, shared by the sub-commands that need a model.

The options set the data and the prior of a model, and the user's own code, which no checkpoint can name.
"""

import argparse
import logging
from typing import TYPE_CHECKING

from fairseq_llrnn import register, registry

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.compat.loading import Places


USER_CODE = registry.load_all("user_code")
TRANSLATES = "source_prior"  # only of translation models
_PLACES = {
    "data": ("DIR", "data folder{of} (default: that of the training)"),
    "prior": ("DIR", "prior{of} (default: that of the training)"),
    **{code.OPTION: (code.METAVAR, code.HELP) for code in USER_CODE},
    TRANSLATES: ("DIR", "prior of the source words{of} (default: that of the training)"),
}
PARTS = tuple(_PLACES)


def add_places(group: "argparse._ActionsContainer", prefix: str = "", of: str = "", translates: bool = True) -> None:
    """Add an option --{prefix}PART for each of PARTS; --{prefix}source-prior only if the model `translates`.

    of: a phrase that names the model in the help, such as " of the language model".
    """
    for part, (metavar, help_text) in _PLACES.items():
        if translates or part != TRANSLATES:
            group.add_argument(f"--{prefix}{part.replace('_', '-')}", metavar=metavar, help=help_text.format(of=of))


def value_of(args: argparse.Namespace, prefix: str, part: str) -> str | None:
    """Return the value of the option of one of PARTS, or of a path, or None if it is absent."""
    value: str | None = getattr(args, f"{prefix}{part}".replace("-", "_"), None)
    return value


def places_in(args: argparse.Namespace, prefix: str = "") -> "Places":
    """Return the values of all PARTS. Call `need_fairseq` first."""
    from fairseq_llrnn.plugin.compat.loading import Places

    values = {part: value for part in PARTS if (value := value_of(args, prefix, part)) is not None}
    code = {module.OPTION: values.pop(module.OPTION) for module in USER_CODE if module.OPTION in values}
    return Places(**values, options=f"--{prefix}{{}}", code=code)


def need_fairseq() -> None:
    """Import fairseq quietly, before a module of plugin/ is imported. Raises OptionError if it is not installed."""
    for logger in ("fairseq", "fairseq_llrnn.plugin"):  # they log during the import, and while they load a model
        logging.getLogger(logger).setLevel(logging.WARNING)
    register()
