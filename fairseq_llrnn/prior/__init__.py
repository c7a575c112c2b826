"""The prior: features, b₀ and parts; one directory on disk.

    prior.py          Prior: what is known before training
    part.py           the contract of a part, and what it may ask of its prior (PriorView)
    parts/            a file for each part: options, arrays, background, how it is built, and where it is registered;
                      parts/cache.py is a short one to copy
    expression.py     how backgrounds are combined (expression_parser.py: as it is written)
    recipe.py         what a prior is built from: the keys of prior.toml (recipe_file.py), of options and in Python
    building.py       from a recipe to a prior; its first step is base_prior.py, then come the parts
    spelling_check.py … a text and a lexicon in different case or Unicode form
    held_out_texts.py … sentences of the validation and test text in a treebank or counted text
    origins.py        what it was made from
    named_backgrounds.py  how a background is registered under its name; background_terms.py looks the name up
    directory.py      files, whole and with hashes (arrays.py, model_files.py)
"""

from typing import TYPE_CHECKING

from fairseq_llrnn.registry import lazily

if TYPE_CHECKING:
    from fairseq_llrnn.lexicon.options import LexiconOptions as LexiconOptions
    from fairseq_llrnn.prior.building import build_prior as build_prior
    from fairseq_llrnn.prior.part import BuildContext as BuildContext
    from fairseq_llrnn.prior.part import Part as Part
    from fairseq_llrnn.prior.part import SavedPart as SavedPart
    from fairseq_llrnn.prior.part import register_part as register_part
    from fairseq_llrnn.prior.prior import Prior as Prior
    from fairseq_llrnn.prior.recipe import EvidenceOptions as EvidenceOptions
    from fairseq_llrnn.prior.recipe import OpenOptions as OpenOptions
    from fairseq_llrnn.prior.recipe import Recipe as Recipe
    from fairseq_llrnn.prior.recipe import TranslationOptions as TranslationOptions

__getattr__ = lazily(
    __name__,
    {
        "lexicon.options": "LexiconOptions",
        "prior.recipe": "EvidenceOptions OpenOptions Recipe TranslationOptions",
        "prior.building": "build_prior",
        "prior.part": "BuildContext Part SavedPart register_part",
        "prior.prior": "Prior",
    },
)
