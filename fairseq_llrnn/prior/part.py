"""The contract of a part of a prior: whatever is known before training beside features and b₀.

A part is a frozen dataclass. It says what is kept of it on disk (arrays, a description in JSON, files of its own), how
it is read again, and what it makes of the background of the parts before it:

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

A prior's parts are in order, and each wraps the background of those before it. A part whose background stands by
itself (`is_base`: n-grams, a grammar, a frozen model) comes before all that wrap, and finds b₀ below. Reading is of
untrusted input: nothing of a part is executed, and `read` checks all that it is given.

Sizes: V words, S signatures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    from fairseq_llrnn.backgrounds.base import Background
    from fairseq_llrnn.evidence.table import EvidenceTable
    from fairseq_llrnn.features.feature_table import Signatures
    from fairseq_llrnn.open_vocabulary.table import OpenTable
    from fairseq_llrnn.output.class_source import ClassSource, Head

KIND = re.compile(r"[a-z][a-z0-9_]*")
# what is known of a word: headings, and below each texts, or words and their probabilities, the largest first
Facts = Mapping[str, Sequence[str | tuple[str, float]]]
KINDS: dict[str, type[Part]] = {}  # by the names under which they were registered


Value = TypeVar("Value")


class Session:
    """Target and source strings that were met so far, and what parts keep beside them."""

    def __init__(self, symbols: Sequence[str], source_symbols: Sequence[str]) -> None:
        self.target, self.source = OpenWords(symbols), OpenWords(source_symbols)
        self._memo: dict[str, Any] = {}

    def __deepcopy__(self, memo: object) -> Session:
        return self  # a copy of a model belongs to the same dictionaries

    def memoize(self, name: str, make: Callable[[], Value]) -> Value:
        """Return what `make` gave when this name was first used."""
        if name not in self._memo:
            self._memo[name] = make()
        value: Value = self._memo[name]
        return value


class Translations(Protocol):
    """Translations of the words of a source: t(word | source word), and what they are made of."""

    @property
    def unit_table(self) -> LexicalTable: ...

    @property
    def word_table(self) -> LexicalTable: ...

    @property
    def forms(self) -> LemmaForms | None: ...


class PriorView(Protocol):
    """What a part may ask of its prior: dictionary, features, b₀, and the parts before it (prior/prior.py has all)."""

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

    def offers(self, max_slots: int | None = None, once: bool | None = None) -> EvidenceTable | None: ...


@dataclass(frozen=True)
class BuildContext:
    """What a part may look at when it makes a background."""

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
    """What a directory holds of a part; not checked yet."""

    description: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]  # by the names that `Part.arrays` gave
    folder: Path  # of the part's own files, whether or not it is there
    prior: PriorView  # all that came before: words, features, b₀, the parts before this one
    load_model: Callable[..., Any] | None = None  # who can build another trained model (parts/model.py)

    def array(self, name: str, dtype: type) -> np.ndarray:
        """The row of numbers with that name. Raises KeyError or ValueError where it is missing or something else."""
        return read_array(self.arrays, name, dtype)

    def values(self, what: str, **types: type) -> list[Any]:
        """Entries of the description. Raises KeyError, or ValueError, about `what`, for one of another type."""
        values = [self.description[name] for name in types]
        if [*map(type, values)] != [*types.values()]:
            raise ValueError(f"{what} described by something else than {', '.join(types)}")
        return values


class Part:
    """A part of a prior (module docstring). All but `read` has a default: nothing."""

    kind: ClassVar[str]  # as register_part was told
    is_base: ClassVar[bool] = False  # whether its background stands by itself, over b₀, and wraps no other
    needs_source: ClassVar[bool] = False  # whether it belongs to the prior's source words
    has_source_strings: ClassVar[bool] = False  # whether strings of a source may be words of its translation by it
    is_of_features: ClassVar[bool] = False  # whether it only says where features come from
    needs_fairseq: ClassVar[bool] = False  # whether its background is a model of fairseq
    class_name: ClassVar[str] = ""  # of its source of classes; "": it has none
    subject: ClassVar[str] = "parts were"  # in "the prior's … made for another source dictionary"

    # ---- on disk ------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Plain numeric arrays, by names of the part's own choice."""
        return {}

    def description(self) -> dict[str, Any]:
        """All but the arrays, as JSON has it."""
        return {}

    def write(self, folder: Path) -> None:
        """Write files of its own into `folder`, which is not there yet; most parts have none."""

    @classmethod
    def read(cls, saved: SavedPart) -> Part:
        """The part that was saved so.

        Raises:
            ValueError, KeyError, TypeError: it is something else, or unsound: it is untrusted input.
        """
        raise NotImplementedError

    @property
    def identity(self) -> str:
        """What a model's weights depend on, beside arrays and source words; it goes into the prior's fingerprint."""
        return repr(sorted(self.description().items()))

    # ---- what it does -------------------------------------------------------------------------------------------

    def background(self, below: Background, context: BuildContext) -> Background:
        """The background with this part.

        Args:
            below: that of the parts before it, over the same signatures; b₀ for a part that `is_base`.
        """
        return below

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of φ that classes of this part may have, and no word needs to: a prior with the part has them.

        Each has weights of its own, a row of `weight` in `ClassSource.rows` and a number of `head.output.bias`, found
        by `prior.output.features.index`.
        """
        return ()

    def class_source(self, head: Head) -> ClassSource | None:
        """What gives a head rows for classes of this part (output/class_source.py); None: it has no use for it."""
        return None

    def input_signatures(self, signatures: Signatures) -> Signatures:
        """The input's signatures, with rows for strings outside the dictionary where the part tells such apart."""
        return signatures

    def reweighed(self, change: Callable[[np.ndarray], np.ndarray]) -> Part:
        """The part with static weights of its own changed, log b (V,) -> (V,); itself where it has none."""
        return self

    # ---- what may be asked of any part; the answer of most is no ---------------------------------------------------

    @property
    def forbids(self) -> bool:
        """Whether it gives words probability zero by what came before, as grammars do."""
        return False

    @property
    def leaves_out(self) -> bool:
        """Whether training leaves out sentences that it forbids."""
        return False

    @property
    def folds(self) -> int:
        """How many folds of whole sentences training is cross-fitted in; 0: it is not."""
        return 0

    def impossible(self, prior: PriorView, sentences: Sequence[Sequence[int]]) -> np.ndarray:
        """Of each sentence, without </s>, the first place that it forbids, −1 where there is none: (n,) int64."""
        return np.full(len(sentences), -1)

    @property
    def translations(self) -> Translations | None:
        """Itself, where it has translations of the source's words."""
        return None

    @property
    def offered_kinds(self) -> tuple[str, ...]:
        """Of which kinds the strings are that source tokens offer; () where they offer none."""
        return ()

    def offers(self, prior: PriorView, max_slots: int | None = None, once: bool | None = None) -> EvidenceTable | None:
        """What source tokens offer as strings of a translation; arguments as of prior/parts/evidence.py."""
        return None

    def source_index(self, prior: PriorView, word: str) -> int | None:
        """The number of a word that the source dictionary lacks, if a translation may need it; else it is <unk>.

        If the part `has_source_strings`, `prior.session.source.open(word)` gives it one. Strings of the translation
        have those of `prior.session.target.index(string)`.
        """
        return None

    @property
    def text_words(self) -> tuple[frozenset[str] | None, Mapping[str, int] | None]:
        """Over pieces: the words of the source's training text, and those of the target's with their counts."""
        return None, None

    def source_words(self, symbols: Sequence[str]) -> dict[str, int]:
        """How many of the source words it knows something of, by kinds; symbols: the source dictionary."""
        return {}

    def open_words(self, prior: PriorView) -> OpenTable | None:
        """The strings outside the dictionary that it gives probabilities, as met so far."""
        return None

    def guessed(self, word: int, features: Iterable[str]) -> list[str]:
        """Those of word number `word`'s features that are guesses."""
        return []

    # ---- what people see ----------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """The sizes a reader wants to see."""
        return {}

    def word(self, prior: PriorView, index: int) -> Facts:
        """What `llrnn show PRIOR WORD` says of a word of the dictionary beside features and b₀."""
        return {}

    def source_word(self, prior: PriorView, word: str, index: int | None) -> Facts:
        """What `llrnn show --source` says of a source word.

        Args:
            index: its number; None: the source dictionary lacks it.
        """
        return {}

    def lines(self, prior: PriorView) -> list[str]:
        """What `llrnn show` says of it, beside its sizes: a choice that was made, or a licence, in each line.

        Args:
            prior: the one that it is a part of.
        """
        return [f"{name.replace('_', ' ')}: {value}" for name, value in self.description().items()]

    def source_option(self, dictionary: str) -> str:
        """The option of `llrnn prior` that makes the part for the words of that source dictionary."""
        return f"--set source_dictionary={dictionary}"


PartType = TypeVar("PartType", bound=Part)


def register_part(kind: str) -> Callable[[type[PartType]], type[PartType]]:
    """Make a class of parts known, so that priors which have one can be read; a later class takes an earlier's place.

    Args:
        kind: its name in prior.json: lower case letters, digits and `_`.

    Raises:
        ValueError: another sort of name; a part that brings strings of a source that it does not know.
    """
    if not KIND.fullmatch(kind):
        raise ValueError(f"expected a name of lower case letters, digits and _ for a part, found {kind!r}")

    def register(part: type[PartType]) -> type[PartType]:
        if part.has_source_strings and not part.needs_source:
            raise ValueError(f"part {kind}: has_source_strings is True, expected needs_source = True beside it; add it")
        part.kind = kind
        KINDS[kind] = part
        return part

    return register


def names_of(kinds: list[str]) -> list[str]:
    """What the parts of a prior are called: `ngram`, or `ngram.2` where it is the second of its kind."""
    counts: dict[str, int] = {}
    names = []
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
        names.append(kind if counts[kind] == 1 else f"{kind}.{counts[kind]}")
    return names


def part_class(name: str) -> type[Part]:
    """The class of a part with that name (`automaton`, `automaton.2`). Raises PriorError for an unregistered one."""
    kind = name.partition(".")[0]
    places = registry.names("parts")
    if kind not in KINDS and kind in places:
        registry.load(places[kind])
    if kind not in KINDS:
        registry.load_all("parts")  # some module has parts that are called otherwise
    if kind not in KINDS:
        if reason := registry.lost(kind):
            raise PriorError(f"the prior has a part {shown(name)}; {reason}")
        raise PriorError(
            f"the prior has a part {shown(name)}, expected one of {', '.join(sorted(KINDS))}; install the "
            f"package that has it, or import the module with @fairseq_llrnn.prior.register_part({shown(kind)}) first"
        )
    return KINDS[kind]
