"""A cache: words that came a moment ago come again (backgrounds/cache.py), over b₀."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairseq_llrnn import defaults
from fairseq_llrnn.errors import OptionError
from fairseq_llrnn.prior.named_backgrounds import Given, register_background
from fairseq_llrnn.prior.part import BuildContext, Part, SavedPart, register_part

WEIGHT = defaults.CACHE_WEIGHT  # nearly all of it is what came before: a mixture says how much that counts
DECAY = defaults.CACHE_DECAY
LEARNED_DECAY = defaults.LEARNED_CACHE_DECAY  # where a learned decay begins
EXAMPLE = "cache:500"

if TYPE_CHECKING:
    from fairseq_llrnn.backgrounds.base import Background
    from fairseq_llrnn.prior.prior import Prior


@register_part("cache")
@dataclass(frozen=True)
class CachePart(Part):
    """The last `size` words, whose share is `weight`, each `decay` times as much as the next; the rest is b₀'s."""

    size: int
    weight: float = WEIGHT
    decay: float = DECAY
    learned: bool = False  # weight and decay are parameters of the model, which begin there

    is_base = True

    def description(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, saved: SavedPart) -> CachePart:
        size, weight, decay, learned = (saved.description[name] for name in ("size", "weight", "decay", "learned"))
        whole = isinstance(size, int) and not isinstance(size, bool)
        if not (whole and isinstance(weight, float) and isinstance(decay, float) and isinstance(learned, bool)):
            raise ValueError("the cache is described by something else than size, weight, decay, learned")
        part = cls(size, weight, decay, learned)
        part.check()
        return part

    def check(self) -> None:
        """Raise ValueError for numbers out of range."""
        from fairseq_llrnn.backgrounds.cache import check_cache

        check_cache(self.size, self.weight, self.decay, self.learned)

    def background(self, below: Background, context: BuildContext) -> Background:
        from fairseq_llrnn.backgrounds.cache import Cache

        own = (self.size, self.weight, self.decay, self.learned)
        return Cache(context.class_of, context.num_classes, context.log_weights, *own)

    def lines(self, prior: Prior) -> list[str]:
        begin = "learned, starting at " if self.learned else ""
        return [f"the last {self.size:,} words", f"weight {begin}{self.weight:g}", f"decay {begin}{self.decay:g}"]

    def counts(self) -> dict[str, int]:
        return {"words of the cache": self.size}


def _is_number(source: str) -> bool:
    if not (source.isdecimal() and int(source) > 0):
        raise ValueError(f"expected a number of words behind the colon; say e.g. {EXAMPLE}")
    return False


@register_background("cache", example=EXAMPLE, is_file=_is_number)
def read_cache(source: str, prior: Prior, given: Given) -> tuple[CachePart, Mapping[str, int]]:
    options = given.options
    part = CachePart(int(source), options.cache_weight, options.cache_decay, options.cache_learned)
    try:
        part.check()
    except ValueError as error:
        raise OptionError(f"--background cache:{source}: {error}; correct the number") from None
    return part, {}
