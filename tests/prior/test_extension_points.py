"""Each registered background can be loaded again and is on a page; each part's class source has the part's name."""

from pathlib import Path
from typing import Any

import pytest
from hostile_priors import make_priors

from fairseq_llrnn.head import LogLinearHead
from fairseq_llrnn.prior import Prior, Recipe
from fairseq_llrnn.prior.named_backgrounds import NoOptions, named_backgrounds
from fairseq_llrnn.prior.part import KINDS
from fairseq_llrnn.registry import names
from fairseq_llrnn.settings import keys

BACKGROUNDS = named_backgrounds()
(HELP,) = (key.doc for key in keys(Recipe) if key.name == "background")


@pytest.mark.parametrize("name", [name for name in BACKGROUNDS if name])
def test_each_background_is_kept_and_documented(name: str, root: Path) -> None:
    background = BACKGROUNDS[name]
    assert name in background.example and background.part in KINDS.values()
    assert background.part.__module__ in names("parts").values(), "registry.py does not find its module"
    page = (root / "docs" / "options" / "llrnn-prior.md").read_text(encoding="utf-8")
    if "systems" not in background.part.__module__ and background.read is not None:
        assert name in HELP, f"--background does not list {name}"
    for key in keys(background.options) if background.options is not NoOptions else ():
        assert key.doc and f"`{key.name}`" in page, f"llrnn-prior.md lacks {name}({key.name}=…)"


def test_class_sources_have_the_names_of_their_parts(tmp_path: Path) -> None:
    """A head finds the weights of a checkpoint by this name."""
    found: set[str] = set()
    for place in make_priors(tmp_path).values():
        prior = Prior.load(place)
        head: Any = LogLinearHead(prior, 4, source_size=4 if prior.source_symbols else None)
        own = {part.class_name for part in prior.parts if part.class_name}
        assert {source.name for source in head.sources} <= own and {*head._modules} >= {s.name for s in head.sources}
        found |= {source.name for source in head.sources}
    assert found == {"slot_rows", "open_words"}
