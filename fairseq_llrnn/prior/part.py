"""The interface of a part of a prior: knowledge in addition to features and b₀.

A part is a frozen dataclass. It defines its contents on disk (arrays, a JSON description, files of its own), reads them
again, and wraps the background of the parts before it:

    @register_part("recent")
    @dataclass(frozen=True)
    class RecentPart(Part):
        words: int

        def description(self): return {"words": self.words}

        @classmethod
        def read(cls, saved):
            words = saved.description["words"]
            if not isinstance(words, int) or words < 1:
                raise ValueError("recent words: expected a number above 0")
            return cls(words)

        def background(self, below, context): return RecentWords(below, self.words)

The parts of a prior are ordered, and each wraps the background of those before it. A part with a background of its own
(`is_base`: n-grams, a grammar, a frozen model) comes before all wrapping parts, and gets b₀ as `below`. Saved parts are
untrusted input: nothing of them is executed, and `read` checks everything.

Sizes: V words, S signatures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np

from fairseq_llrnn import registry
from fairseq_llrnn.errors import PriorError
from fairseq_llrnn.features.dictionary import OpenWords
from fairseq_llrnn.files.text_lines import shown
from fairseq_llrnn.prior.arrays import read_array
from fairseq_llrnn.prior.expression import Expression

if TYPE_CHECKING:
    from torch import Tensor

    from fairseq_llrnn.alignment.source_lemmas import LemmaForms
    from fairseq_llrnn.alignment.translation_table import LexicalTable
    from fairseq_llrnn.backgrounds.background import Background
    from fairseq_llrnn.evidence.evidence_table import EvidenceTable
    from fairseq_llrnn.features.feature_table import Signatures
    from fairseq_llrnn.output.class_source import ClassSource, Head

KIND = re.compile(r"[a-z][a-z0-9_]*")
# facts about a word: headings, each with texts, or with words and their probabilities, the largest first
Facts = Mapping[str, Sequence[str | tuple[str, float]]]
KINDS: dict[str, type[Part]] = {}  # the registered classes by name


Value = TypeVar("Value")


class Session:
    """Target and source strings seen so far, and tables of parts over them."""

    def __init__(self, symbols: Sequence[str], source_symbols: Sequence[str]) -> None:
        self.target, self.source = OpenWords(symbols), OpenWords(source_symbols)
        self._memo: dict[str, Any] = {}

    def __deepcopy__(self, memo: object) -> Session:
        return self  # a copy of a model shares its dictionaries

    def memoize(self, name: str, make: Callable[[], Value]) -> Value:
        """Return the value that `make` returned at the first call with this name."""
        if name not in self._memo:
            self._memo[name] = make()
        value: Value = self._memo[name]
        return value


class Translations(Protocol):
    """Translations of source words, t(word | source word), and the tables that they are made of."""

    @property
    def unit_table(self) -> LexicalTable: ...

    @property
    def word_table(self) -> LexicalTable: ...

    @property
    def forms(self) -> LemmaForms | None: ...


class PriorView(Protocol):
    """The attributes of a prior that its parts may use: dictionary, features, b₀, and earlier parts."""

    @property
    def symbols(self) -> tuple[str, ...]: ...

    @property
    def source_symbols(self) -> tuple[str, ...]: ...

    @property
    def output(self) -> Signatures: ...

    @property
    def log_weights(self) -> np.ndarray: ...

    @property
    def allowed(self) -> np.ndarray: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    @property
    def expression(self) -> Expression | None: ...

    @property
    def translations(self) -> Translations | None: ...

    @property
    def session(self) -> Session: ...

    def index(self, symbol: str) -> int: ...

    def offers(self, max_slots: int | None = None) -> EvidenceTable | None: ...


@dataclass(frozen=True)
class BuildContext:
    """The inputs of a part's `background`."""

    prior: PriorView
    has_source: bool  # whether sentences come with a source (translation)

    @property
    def num_classes(self) -> int:
        """S"""
        return self.prior.output.num_classes

    @property
    def class_of(self) -> Tensor:
        """The signature of every word: (V,) int64."""
        import torch

        return torch.from_numpy(self.prior.output.class_of.copy())

    @property
    def log_weights(self) -> Tensor:
        """log b₀ of every word, in nats: (V,) float64."""
        import torch

        return torch.from_numpy(self.prior.log_weights.copy())


@dataclass(frozen=True)
class SavedPart:
    """The contents of a directory for one part, not checked yet."""

    description: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]  # by their names in `Part.arrays`
    folder: Path  # for the part's own files; it may not exist
    prior: PriorView  # words, features, b₀, and the parts before this one
    load_model: Callable[..., Any] | None = None  # builds other trained models (parts/model.py)

    def array(self, name: str, dtype: type) -> np.ndarray:
        """Return the one-dimensional array `name`. Raises KeyError if it is missing, ValueError if it is unsound."""
        return read_array(self.arrays, name, dtype)

    def values(self, what: str, **types: type) -> list[Any]:
        """Return entries of the description. Raises KeyError, or ValueError about `what` for another type."""
        values = [self.description[name] for name in types]
        if [*map(type, values)] != [*types.values()]:
            raise ValueError(f"{what} described by something else than {', '.join(types)}")
        return values


class Part:
    """The base class of all parts. By default a part has no data and changes nothing; only `read` must be defined."""

    kind: ClassVar[str]  # set by register_part
    is_base: ClassVar[bool] = False  # whether it has a background of its own, over b₀, and wraps no other
    needs_source: ClassVar[bool] = False  # whether it belongs to the prior's source words
    has_source_strings: ClassVar[bool] = False  # whether it lets source strings be words of the translation
    needs_fairseq: ClassVar[bool] = False  # whether its background is a model of fairseq
    class_name: ClassVar[str] = ""  # of its class source; "": it has none
    subject: ClassVar[str] = "parts were"  # in "the prior's … made for another source dictionary"

    # ---- on disk ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return plain numeric arrays by names that the part chooses."""
        return {}

    def description(self) -> dict[str, Any]:
        """Return everything but the arrays, as JSON values."""
        return {}

    def write(self, folder: Path) -> None:
        """Write the part's own files, if any, into `folder`, which does not exist yet."""

    @classmethod
    def read(cls, saved: SavedPart) -> Part:
        """Return the saved part.

        Raises:
            ValueError, KeyError, TypeError: the contents are unsound. They are untrusted input.
        """
        raise NotImplementedError

    @property
    def identity(self) -> str:
        """All that a model's weights depend on but arrays and source words, for the prior's fingerprint."""
        return repr(sorted(self.description().items()))

    # ---- effect on a model --------------------------------------------------------------------------------------

    def background(self, below: Background, context: BuildContext) -> Background:
        """Return the background with this part.

        Args:
            below: the background of the parts before it, over the same signatures; b₀ if the part `is_base`.
        """
        return below

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that classes of this part may have in addition to those of words. Φ of the prior includes them.

        Each has weights of its own, a row of `weight` in `ClassSource.rows` and an entry of `head.output.bias`, at
        `prior.output.features.index`.
        """
        return ()

    def class_source(self, head: Head) -> ClassSource | None:
        """Return the source of rows for the part's classes in a head (output/class_source.py), or None.

        It is called only if `class_name` is set, to the `name` of the source.
        """
        return None

    def reweighed(self, change: Callable[[np.ndarray], np.ndarray]) -> Part:
        """Return the part with its own static weights changed, log b (V,) -> (V,). Without such weights, return
        itself.
        """
        return self

    # ---- properties of a part, "no" or empty by default ------------------------------------------------------------

    def impossible(self, prior: PriorView, sentences: Sequence[Sequence[int]]) -> np.ndarray | None:
        """Return the first position of each sentence (without </s>) that it forbids, or −1: (n,) int64.

        None: it gives no word probability zero in some contexts, as grammars do.
        """
        return None

    def source_index(self, prior: PriorView, word: str) -> int | None:
        """Return the number of a word outside the source dictionary if a translation may need it, or None for <unk>.

        If the part `has_source_strings`, `prior.session.source.open(word)` assigns the number. Strings of the
        translation are numbered by `prior.session.target.index(string)`.
        """
        return None

    # ---- for people ---------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """Return sizes for the user."""
        return {}

    def word(self, prior: PriorView, index: int) -> Facts:
        """Return facts about a dictionary word for `llrnn show PRIOR WORD`, in addition to features and b₀."""
        return {}

    def source_word(self, prior: PriorView, word: str, index: int | None) -> Facts:
        """Return facts about a source word for `llrnn show --source`.

        Args:
            index: its number (None: the source dictionary lacks it).
        """
        return {}

    def lines(self, prior: PriorView) -> list[str]:
        """Return lines for `llrnn show` in addition to the sizes: one option or licence each.

        Args:
            prior: the prior that contains the part.
        """
        return [f"{name.replace('_', ' ')}: {value}" for name, value in self.description().items()]


PartType = TypeVar("PartType", bound=Part)


def register_part(kind: str) -> Callable[[type[PartType]], type[PartType]]:
    """Register a class of parts, so that priors with such a part can be read. A later class replaces an earlier one.

    Args:
        kind: its name in prior.json: lower case letters, digits and `_`.

    Raises:
        ValueError: an invalid name, or a part with `has_source_strings` but not `needs_source`, or with only one of
            `class_source` and `class_name`.
    """
    if not KIND.fullmatch(kind):
        raise ValueError(f"expected a name of lower case letters, digits and _ for a part, found {kind!r}")

    def register(part: type[PartType]) -> type[PartType]:
        if part.has_source_strings and not part.needs_source:
            raise ValueError(f"part {kind}: has_source_strings = True needs needs_source = True; add it")
        if (part.class_source is not Part.class_source) != bool(part.class_name):
            present, absent = ("class_name", "class_source") if part.class_name else ("class_source", "class_name")
            raise ValueError(
                f"part {kind}: {present} needs {absent}, found none; class_name is the `name` of the ClassSource that "
                "class_source returns: define both"
            )
        part.kind = kind
        KINDS[kind] = part
        return part

    return register


def names_of(kinds: list[str]) -> list[str]:
    """Return the names of a prior's parts: `ngram`, and `ngram.2` for the second of its kind."""
    counts: dict[str, int] = {}
    names = []
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
        names.append(kind if counts[kind] == 1 else f"{kind}.{counts[kind]}")
    return names


def part_class(name: str) -> type[Part]:
    """Return the class of the part with that name (`automaton`, `automaton.2`). Raises PriorError for an unregistered
    one.
    """
    kind = name.partition(".")[0]
    places = registry.names("parts")
    if kind not in KINDS and kind in places:
        registry.load(places[kind])
    if kind not in KINDS:
        registry.load_all("parts")  # a module may have parts with other names
    if kind not in KINDS:
        if reason := registry.lost(kind):
            raise PriorError(f"the prior has a part {shown(name)}; {reason}")
        raise PriorError(
            f"the prior has a part {shown(name)}, expected one of {', '.join(sorted(KINDS))}; install the package "
            f"that has it under [fairseq_llrnn.parts], or import its module with @register_part({shown(kind)}) first"
        )
    return KINDS[kind]
