"""A cache: recent words are more probable (backgrounds/cache_background.py), over b₀."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Gt, Le, Lt
from typing_extensions import Doc

from fairseq_llrnn import defaults
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.named_backgrounds import Inputs, register_background
from fairseq_llrnn.prior.part import BuildContext, Part, PriorView, SavedPart, register_part
from fairseq_llrnn.settings import Settings

WEIGHT = defaults.CACHE_WEIGHT  # near one: a mixture gives the cache its weight
DECAY = defaults.CACHE_DECAY
LEARNED_DECAY = defaults.LEARNED_CACHE_DECAY  # initial value of a learned decay
EXAMPLE = "cache:500"

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.background import Background


@register_part("cache")
@dataclass(frozen=True)
class CachePart(Part):
    """The last `size` words with the total share `weight`, each weighing `decay` times as much as its successor; b₀ the
    rest.
    """

    size: int
    weight: float = WEIGHT
    decay: float = DECAY
    learned: bool = False  # weight and decay are parameters of the model; these are their initial values

    is_base = True

    def description(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, saved: SavedPart) -> CachePart:
        return cls(*saved.values("the cache is", size=int, weight=float, decay=float, learned=bool))

    def __post_init__(self) -> None:
        """Raise ValueError for numbers out of range."""
        from fairseq_llrnn.backgrounds.cache_background import check_cache

        check_cache(self.size, self.weight, self.decay, self.learned)

    def background(self, below: Background, context: BuildContext) -> Background:
        from fairseq_llrnn.backgrounds.cache_background import Cache

        settings = (self.size, self.weight, self.decay, self.learned)
        return Cache(context.class_of, context.num_classes, context.log_weights, *settings)

    def lines(self, prior: PriorView) -> list[str]:
        begin = "learned, starting at " if self.learned else ""
        return [f"the last {self.size:,} words", f"weight {begin}{self.weight:g}", f"decay {begin}{self.decay:g}"]

    def counts(self) -> dict[str, int]:
        return {"words of the cache": self.size}


@dataclass(frozen=True)
class CacheOptions(Settings):
    """Options of `cache(N, …)`."""

    weight: Annotated[float, Gt(0), Lt(1), Doc("share of the last N words; b₀ has the rest")] = WEIGHT
    decay: Annotated[
        Annotated[float, Gt(0), Le(1)] | None,
        Doc(
            f"weight of a word relative to the next one (default: {DECAY:g}; if it is learned, it is below 1 and its "
            f"initial value is {LEARNED_DECAY})"
        ),
    ] = None
    learned: Annotated[bool, Doc("weight and decay are parameters, with these initial values")] = False


def _is_number(source: str) -> bool:
    if not (source.isdecimal() and int(source) > 0):
        raise ValueError(f"expected a number of words after the name, found none; write e.g. {EXAMPLE}")
    return False


def _part(source: str, options: CacheOptions, texts: Sequence[str] = ()) -> CachePart:
    """Return the part of an expression. Raises OptionError for numbers out of range."""
    decay = options.decay if options.decay is not None else LEARNED_DECAY if options.learned else DECAY
    try:
        return CachePart(int(source), options.weight, decay, options.learned)
    except ValueError as error:
        raise OptionError(f"--background cache:{source}: {error}; correct the number") from None


@register_background("cache", CachePart, EXAMPLE, is_file=_is_number, options=CacheOptions, check=_part)
def read_cache(source: str, prior: PriorView, inputs: Inputs) -> tuple[CachePart, Mapping[str, int]]:
    return _part(source, inputs.options), {}
