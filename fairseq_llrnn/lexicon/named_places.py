"""Places that options name with what they are: `lexicon:FILE`, `lemmas:CODE`."""

from __future__ import annotations

from collections.abc import Mapping

from fairseq_llrnn.errors import OptionError


def split_place(named: str, option: str, kinds: Mapping[str, str]) -> tuple[str, str]:
    """The kind of a place, and what stands behind the colon.

    Args:
        option: which names it. kinds: all that there are, with what people write: {"lexicon": "lexicon:FILE", …}.

    Raises:
        OptionError: another kind, or nothing behind it.
    """
    kind, _, what = named.partition(":")
    if kind in kinds and what:
        return kind, what
    *others, last = kinds.values()
    raise OptionError(
        f"{option} {named}: expected {', '.join(others)} or {last}, found something else; say what the file is"
    )
