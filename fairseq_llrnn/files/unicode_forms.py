"""Unicode's normal forms (UAX #15): é is one character in NFC, and an e with a mark behind it in NFD.

Both look alike, and are different words to every dictionary. `--normalize FORM` reads words in the form that the text
has; where nobody said so, words that are known in another form only are worth a note (`known_otherwise`).
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from fairseq_llrnn.errors import OptionError

FORMS = ("nfc", "nfd")
logger = logging.getLogger(__name__)


def check_form(form: str | None) -> None:
    """Raise OptionError for what is no form."""
    if form is not None and form not in FORMS:
        raise OptionError(f"--normalize {form}: expected {' or '.join(FORMS)}; correct the spelling")


def in_form(text: str, form: str | None) -> str:
    """The text in a form of FORMS; None: as it is."""
    if form is None or text.isascii():
        return text
    return unicodedata.normalize("NFC" if form == "nfc" else "NFD", text)


def form_of(words: Iterable[str]) -> str | None:
    """The form that most of the words have that look the same in both; None where there are none."""
    told = [word for word in words if in_form(word, "nfc") != in_form(word, "nfd")]
    composed = sum(word == in_form(word, "nfc") for word in told)
    return None if not told else "nfc" if 2 * composed >= len(told) else "nfd"


def known_otherwise(words: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Of words that are not known: what is, and differs in its Unicode form only."""
    by_form = {in_form(word, "nfc"): word for word in known if not word.isascii()}
    found = ((word, by_form.get(in_form(word, "nfc"))) for word in words if by_form and not word.isascii())
    return {word: other for word, other in found if other is not None and word not in known}


def advice_on_form(word: str, normalize: str | None) -> str:
    """What makes a word of the text the same as one in a file. normalize: of --normalize."""
    own = next((form for form in FORMS if word == in_form(word, form)), None)
    if normalize is not None or own is None:
        wanted = (normalize or FORMS[0]).upper()
        return f"the text is not in {wanted} throughout; bring it into that form (`uconv -x any-{wanted.lower()}`)"
    return f"the text has them in {own.upper()}; say --normalize {own}"


def form_hint(word: str, known: Collection[str]) -> str:
    """What to add where a word is said to be unknown."""
    return " (but in another Unicode form: NFC and NFD look alike)" if known_otherwise([word], known) else ""


def warn_of_forms(paths: Sequence[Path | str], lacking: Iterable[str], symbols: Collection[str]) -> None:
    """Say which words of texts, or of n-grams, a dictionary lacks because of their form."""
    if otherwise := known_otherwise(lacking, frozenset(symbols)):
        word, other = next(iter(sorted(otherwise.items())))
        own = (form_of([other]) or FORMS[0]).upper()
        logger.warning(
            f"{', '.join(map(str, paths))}: {len(otherwise):,} words that the dictionary has in another Unicode form "
            f"only, such as {word!r}, in {own}: bring the file into that form (`uconv -x any-{own.lower()}`)"
        )
