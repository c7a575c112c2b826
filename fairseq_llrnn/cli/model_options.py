"""What sub-commands share that need fairseq and a model: the options of its places, and the import of fairseq.

The options say where a model's data and prior are, and name code of the user's own, which no checkpoint does. fairseq
is imported quietly, or the user is told what to install.
"""

import argparse
import logging
from typing import TYPE_CHECKING

from fairseq_llrnn import register, registry

if TYPE_CHECKING:
    from fairseq_llrnn.plugin.compat.loading import Places


USER_CODE = registry.load_all("user_code")
TRANSLATES = "source_prior"  # of models that translate
_WHAT = {
    "data": ("DIR", "data folder{of} (default: the one the checkpoint was trained with)"),
    "prior": ("DIR", "prior{of} (default: the one the checkpoint was trained with)"),
    **{code.OPTION: (code.METAVAR, code.HELP) for code in USER_CODE},
    TRANSLATES: ("DIR", "prior of the source's words{of} (default: the one the checkpoint was trained with)"),
}
PARTS = tuple(_WHAT)


def add_places(group: "argparse._ActionsContainer", prefix: str = "", of: str = "", translates: bool = True) -> None:
    """An option --{prefix}PART for each of PARTS; --{prefix}source-prior if the model `translates`.

    of: which model it is.
    """
    for part, (metavar, what) in _WHAT.items():
        if translates or part != TRANSLATES:
            group.add_argument(f"--{prefix}{part.replace('_', '-')}", metavar=metavar, help=what.format(of=of))


def value_of(args: argparse.Namespace, prefix: str, part: str) -> str | None:
    """The value of the option of one of PARTS, or of a path; None: it is absent."""
    value: str | None = getattr(args, f"{prefix}{part}".replace("-", "_"), None)
    return value


def places_in(args: argparse.Namespace, prefix: str = "") -> "Places":
    """The values of all PARTS, in a command that has fairseq."""
    from fairseq_llrnn.plugin.compat.loading import Places

    values = {part: value for part in PARTS if (value := value_of(args, prefix, part)) is not None}
    code = {one.OPTION: values.pop(one.OPTION) for one in USER_CODE if one.OPTION in values}
    return Places(**values, options=f"--{prefix}{{}}", code=code)


def need_fairseq() -> None:
    """To be called before a module of plugin/ is imported. Raises OptionError where fairseq is not installed."""
    for logger in ("fairseq", "fairseq_llrnn.plugin"):  # they report while they are imported, and load a model
        logging.getLogger(logger).setLevel(logging.WARNING)
    register()
