"""The prior: features, b₀ and parts, saved in one directory.

    prior.py          Prior: dictionary, signatures, b₀ and parts, before training
    part.py           the interface of a part, and its view of the prior (PriorView)
    parts/            a file for each part: options, arrays, background, construction and registration;
                      parts/cache.py is a short one to copy
    expression.py     combinations of backgrounds (expression_parser.py reads their text)
    recipe.py         the settings that a prior is built from (recipe_file.py: the same as a TOML file)
    building.py       from a recipe to a prior: first base_prior.py, then the parts
    spelling_check.py … notes on words whose case or Unicode form differs between text and lexicon
    held_out_texts.py … sentences of the validation and test text, to find them in a treebank or counted text
    origins.py        the files and packages that it was built from
    named_backgrounds.py  registration of backgrounds by name; background_terms.py looks the name up
    directory.py      files, written whole and checked by hashes (arrays.py, model_files.py)
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
