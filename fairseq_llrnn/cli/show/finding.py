"""Words that a user names, as the dictionary of a prior has them."""

import difflib
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairseq_llrnn.cli.tables import note
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.features.subwords import CONVENTIONS

if TYPE_CHECKING:
    from fairseq_llrnn.prior.prior import Prior


def find_word(prior: "Prior", word: str, where: str) -> int:
    """The index of a word, given in any case; where the dictionary holds pieces, the piece's mark may be missing.

    Raises OptionError, with near words, if there is none.
    """
    convention = CONVENTIONS.get(str(prior.settings.get("pieces")))
    expected = f"{where}: expected a {'word' if convention is None else 'piece'} of its dictionary"
    return find(word, prior.symbols, expected, str if convention is None else convention.mark)


def find(word: str, symbols: Sequence[str], expected: str, mark: Callable[[str], str] = str) -> int:
    """The index of a word, given in any case and without its `mark`; an error begins with what was `expected`."""
    index = {symbol: i for i, symbol in enumerate(symbols)}
    composed = unicodedata.normalize("NFC", word)
    forms = (word, composed, word.lower(), composed.lower())
    for form in (*forms, *map(mark, forms)):
        if form in index:
            if form != word:
                note(f"{word!r} is not in the dictionary of this prior; showing {form!r}")
            return index[form]
    near = difflib.get_close_matches(composed.lower(), symbols, n=3)
    advice = f"did you mean {' or '.join(map(repr, near))}?" if near else "nothing in it is spelt nearly so"
    raise OptionError(f"{expected}, found {word!r}; {advice}")
