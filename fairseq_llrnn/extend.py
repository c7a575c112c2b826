"""Names for extensions: backgrounds, parts, classes and readers in other packages.

    from fairseq_llrnn.extend import ContextClasses, Part, register_part

Each is imported at its first use. docs/guides/extending.md shows examples. Import the names from here: the modules
that define them may change. `fairseq_llrnn.testing` has tests of the laws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairseq_llrnn.registry import lazily

if TYPE_CHECKING:
    from fairseq_llrnn.automata.automaton import END as END
    from fairseq_llrnn.backgrounds.background import Background as Background
    from fairseq_llrnn.backgrounds.background import StaticBackground as StaticBackground
    from fairseq_llrnn.backgrounds.background import View as View
    from fairseq_llrnn.backgrounds.by_source import BySource as BySource
    from fairseq_llrnn.backgrounds.cached import cached_property as cached_property
    from fairseq_llrnn.backgrounds.class_weights import ClassWeights as ClassWeights
    from fairseq_llrnn.backgrounds.class_weights import ExplicitWeights as ExplicitWeights
    from fairseq_llrnn.backgrounds.explicit_background import ExplicitBackground as ExplicitBackground
    from fairseq_llrnn.errors import DataError as DataError
    from fairseq_llrnn.errors import OptionError as OptionError
    from fairseq_llrnn.files.numbers import is_weight as is_weight
    from fairseq_llrnn.files.text_lines import iter_lines as iter_lines
    from fairseq_llrnn.files.text_lines import place as place
    from fairseq_llrnn.files.text_lines import shown as shown
    from fairseq_llrnn.lexicon.casing import lower as lower
    from fairseq_llrnn.lexicon.features import Lexicon as Lexicon
    from fairseq_llrnn.networks.recurrent import Cell as Cell
    from fairseq_llrnn.networks.recurrent import register_cell as register_cell
    from fairseq_llrnn.output.class_source import ClassSource as ClassSource
    from fairseq_llrnn.output.class_source import SentenceClasses as SentenceClasses
    from fairseq_llrnn.output.context_classes import ContextClasses as ContextClasses
    from fairseq_llrnn.output.context_source import NO_WORD as NO_WORD
    from fairseq_llrnn.output.context_source import ContextClassSource as ContextClassSource
    from fairseq_llrnn.prior.arrays import check_log_weights as check_log_weights
    from fairseq_llrnn.prior.named_backgrounds import a_file as a_file
    from fairseq_llrnn.prior.named_backgrounds import register_background as register_background
    from fairseq_llrnn.prior.part import Part as Part
    from fairseq_llrnn.prior.part import PriorView as PriorView
    from fairseq_llrnn.prior.part import register_part as register_part
    from fairseq_llrnn.settings import Settings as Settings

_NAMES = {
    "automata.automaton": "END",
    "backgrounds.by_source": "BySource",
    "backgrounds.background": "Background StaticBackground View",
    "backgrounds.cached": "cached_property",
    "backgrounds.explicit_background": "ExplicitBackground",
    "backgrounds.class_weights": "ClassWeights ExplicitWeights",
    "errors": "DataError OptionError",
    "files.numbers": "is_weight",
    "files.text_lines": "iter_lines place shown",
    "lexicon.casing": "lower",
    "lexicon.features": "Lexicon",
    "networks.recurrent": "Cell register_cell",
    "output.class_source": "ClassSource SentenceClasses",
    "output.context_classes": "ContextClasses",
    "output.context_source": "NO_WORD ContextClassSource",
    "prior.arrays": "check_log_weights",
    "prior.named_backgrounds": "a_file register_background",
    "prior.part": "Part PriorView register_part",
    "settings": "Settings",
}
__all__ = sorted(" ".join(_NAMES.values()).split())
__getattr__ = lazily(__name__, _NAMES)
